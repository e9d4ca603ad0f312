// plait.numpy: bits, logic, comparison, tests of numbers, where.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>

#include <cmath>
#include <map>

#include "functions/functions.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {
Array bits(const Primitive& primitive, std::string_view name, const Operand& x1, const Operand& x2,
           const Params& params = {}) {
  return bind(primitive, promoted(name, {x1, x2}), params);
}
// A comparison of x with an integer outside its dtype's range: the same for all elements.
Array beyond(std::string_view direction, const Array& x, const Array& number) {
  const Literal literal = *number.as_literal();
  const bool above = is_unsigned_integer(number.dtype()) || literal.integer > 0;
  const bool holds = direction == "ne" || (direction[0] == (above ? 'l' : 'g'));
  return plait::broadcast_to(Array(holds), x.shape());
}
// A number whose value is not known is compared in a dtype that holds both.
Array unnarrowed(const Array& x, const Array& other) {
  const bool widens = is_integer(x.dtype()) && !x.aval().weak && other.aval().weak &&
                      is_integer(other.dtype()) && !other.as_literal() &&
                      holds_all(other.dtype(), x.dtype());
  return widens ? astype(x, other.dtype()) : x;
}
Array compared(const char* direction, std::string_view name, const Operand& x1, const Operand& x2);
// Whether x is unsigned and the number, whose value is not known, may be negative.
bool may_lie_below(const Array& x, const Array& number) {
  return is_unsigned_integer(x.dtype()) && !x.aval().weak && number.aval().weak &&
         is_signed_integer(number.dtype()) && !number.as_literal() &&
         !holds_all(number.dtype(), x.dtype());
}
Array compared_above(const char* direction, std::string_view name, const Array& x,
                     const Array& number) {
  const Array zero = lax::zeros_like(number.aval()), below = lax::lt(number, zero);
  const Array above =
      compared(direction, name, x, narrowed(lax::max(number, zero), x.dtype(), name));
  const bool holds = direction[0] == 'g' || std::string_view(direction) == "ne";
  return holds ? numpy::logical_or(below, above)
               : numpy::logical_and(numpy::logical_not(below), above);
}
Array compared(const char* direction, std::string_view name, const Operand& x1, const Operand& x2) {
  static const auto& turned = *new const std::map<std::string_view, std::string_view>{
      {"eq", "eq"}, {"ne", "ne"}, {"lt", "gt"}, {"le", "ge"}, {"gt", "lt"}, {"ge", "le"}};
  if (is_integer(x1.dtype()) && !x1.aval().weak && !is_representable(x2, x1.dtype()))
    return beyond(direction, x1, x2);
  if (is_integer(x2.dtype()) && !x2.aval().weak && !is_representable(x1, x2.dtype()))
    return beyond(turned.at(direction), x2, x1);
  if (may_lie_below(x1, x2)) return compared_above(direction, name, x1, x2);
  if (may_lie_below(x2, x1)) return compared_above(turned.at(direction).data(), name, x2, x1);
  return bind(cmp_p, promoted(name, {unnarrowed(x1, x2), unnarrowed(x2, x1)}),
              Params{{"direction", std::string(direction)}});
}
Array logic(const Primitive& primitive, std::string_view name, const Operand& x1,
            const Operand& x2) {
  const auto combine = [&](const Array& x, const Array& y) {
    Arrays flags{truth(x), truth(y)};
    broadcast_shapes(std::span<Array>(flags), name);
    return bind(primitive, flags);
  };
  if (is_bool(x1.dtype()) && is_bool(x2.dtype())) return combine(x1, x2);
  return few_in_one_program(name, Arrays{x1, x2},
                            [&](std::span<const Array> x) { return Arrays{combine(x[0], x[1])}; });
}
// The signed integer of a float's width.
DType bits_dtype(DType dtype) {
  return size_of(dtype) == 2 ? DType::int16 : size_of(dtype) == 4 ? DType::int32 : DType::int64;
}
Array all_false(const Array& x) { return plait::broadcast_to(Array(false), x.shape()); }
}  // namespace

Array numpy::bitwise_and(Operand x1, Operand x2) { return bits(and_p, "bitwise_and", x1, x2); }
Array numpy::bitwise_or(Operand x1, Operand x2) { return bits(or_p, "bitwise_or", x1, x2); }
Array numpy::bitwise_xor(Operand x1, Operand x2) { return bits(xor_p, "bitwise_xor", x1, x2); }
Array numpy::bitwise_not(Operand x) { return lax::bitwise_not(x); }
Array numpy::bitwise_invert(Operand x) { return lax::bitwise_not(x); }
Array numpy::invert(Operand x) { return lax::bitwise_not(x); }
Array numpy::left_shift(Operand x1, Operand x2) {
  return bits(shift_p, "left_shift", x1, x2, {{"kind", std::string("left")}});
}
Array numpy::bitwise_left_shift(Operand x1, Operand x2) { return left_shift(x1, x2); }
Array numpy::right_shift(Operand x1, Operand x2) {
  const Arrays x = promoted("right_shift", {x1, x2});
  const bool logical = is_unsigned_integer(x[0].dtype());
  return bind(shift_p, x,
              Params{{"kind", std::string(logical ? "right_logical" : "right_arithmetic")}});
}
Array numpy::bitwise_right_shift(Operand x1, Operand x2) { return right_shift(x1, x2); }

Array numpy::logical_and(Operand x1, Operand x2) { return logic(and_p, "logical_and", x1, x2); }
Array numpy::logical_or(Operand x1, Operand x2) { return logic(or_p, "logical_or", x1, x2); }
Array numpy::logical_xor(Operand x1, Operand x2) { return logic(xor_p, "logical_xor", x1, x2); }
Array numpy::logical_not(Operand x) {
  return is_bool(x.dtype()) ? lax::bitwise_not(x) : lax::eq(x, constant(0, x));
}

Array numpy::equal(Operand x1, Operand x2) { return compared("eq", "equal", x1, x2); }
Array numpy::not_equal(Operand x1, Operand x2) { return compared("ne", "not_equal", x1, x2); }
Array numpy::less(Operand x1, Operand x2) { return compared("lt", "less", x1, x2); }
Array numpy::less_equal(Operand x1, Operand x2) { return compared("le", "less_equal", x1, x2); }
Array numpy::greater(Operand x1, Operand x2) { return compared("gt", "greater", x1, x2); }
Array numpy::greater_equal(Operand x1, Operand x2) {
  return compared("ge", "greater_equal", x1, x2);
}

Array numpy::isnan(Operand x) { return is_inexact(x.dtype()) ? lax::ne(x, x) : all_false(x); }
Array numpy::isinf(Operand x) {
  if (!is_inexact(x.dtype())) return all_false(x);
  if (is_complex(x.dtype())) return lax::bitwise_or(isinf(lax::real(x)), isinf(lax::imag(x)));
  return few_in_one_program("isinf", Arrays{x}, [](std::span<const Array> x) {
    return Arrays{lax::eq(lax::abs(x[0]), constant(INFINITY, x[0]))};
  });
}
Array numpy::isfinite(Operand x) {
  if (!is_inexact(x.dtype())) return plait::broadcast_to(Array(true), x.shape());
  if (is_complex(x.dtype()))
    return lax::bitwise_and(isfinite(lax::real(x)), isfinite(lax::imag(x)));
  return few_in_one_program("isfinite", Arrays{x}, [](std::span<const Array> x) {
    return Arrays{lax::lt(lax::abs(x[0]), constant(INFINITY, x[0]))};
  });
}
Array numpy::isposinf(Operand x) {
  return is_inexact(x.dtype()) ? lax::eq(floating_only("isposinf", x), constant(INFINITY, x))
                               : all_false(x);
}
Array numpy::isneginf(Operand x) {
  return is_inexact(x.dtype()) ? lax::eq(floating_only("isneginf", x), constant(-INFINITY, x))
                               : all_false(x);
}

Array numpy::signbit(Operand x) {
  if (is_bool(x.dtype())) return all_false(x);
  if (is_integer(x.dtype())) return lax::lt(x, constant(0, x));
  const Array y = floating_only("signbit", x);
  return few_in_one_program("signbit", Arrays{y}, [](std::span<const Array> x) {
    const DType bits = bits_dtype(x[0].dtype());
    return Arrays{lax::lt(lax::bitcast_convert_type(x[0], bits), Array::literal(0, bits))};
  });
}

namespace {
Array copysign_of(const Array& x, const Array& y) {
  const Array size = lax::abs(x), negative = numpy::signbit(y);
  const Shape shape = size.ndim() == 0 ? negative.shape() : size.shape();
  return lax::select(plait::broadcast_to(negative, shape),
                     plait::broadcast_to(lax::neg(size), shape), plait::broadcast_to(size, shape));
}
}  // namespace

Array numpy::copysign(Operand x1, Operand x2) {
  return in_one_program("copysign", promoted_inexact("copysign", {x1, x2}),
                        [](std::span<const Array> x) { return Arrays{copysign_of(x[0], x[1])}; });
}

namespace {
Array neighbour_of(std::span<const Array> x) {
  const Shape& shape = x[0].shape();
  const DType dtype = x[0].dtype(), words = bits_dtype(dtype);
  const Array zero = constant(0, x[0]), one = Array::literal(1, words);
  // The bits of floats of one sign increase with their magnitude.
  const Array bits = lax::bitcast_convert_type(x[0], words), rises = lax::gt(x[1], x[0]);
  const Array grows = lax::eq(rises, lax::gt(x[0], zero));
  const Array beside = lax::select(grows, lax::add(bits, one), lax::sub(bits, one));
  const Array from_zero = lax::select(rises, one, lax::bitwise_or(one, lowest_finite(words)));
  const Array moved_bits =
      lax::select(lax::eq(x[0], zero), plait::broadcast_to(from_zero, shape), beside);
  const Array moved = lax::convert_element_type(lax::bitcast_convert_type(moved_bits, dtype), dtype,
                                                x[0].aval().weak);
  const Array result = lax::select(lax::eq(x[0], x[1]), x[1], moved);
  return lax::select(numpy::isnan(x[0]), x[0], lax::select(numpy::isnan(x[1]), x[1], result));
}
}  // namespace

Array numpy::nextafter(Operand x1, Operand x2) {
  Arrays x = promoted_inexact("nextafter", {x1, x2});
  floating_only("nextafter", x[0]);
  const Shape shape = x[0].ndim() == 0 ? x[1].shape() : x[0].shape();
  for (Array& array : x) array = lax::stop_gradient(plait::broadcast_to(array, shape));
  return in_one_program("nextafter", x,
                        [](std::span<const Array> x) { return Arrays{neighbour_of(x)}; });
}

namespace {
Array are_close(std::span<const Array> x, double rtol, double atol, bool equal_nan) {
  const Array difference = lax::abs(lax::sub(x[0], x[1])), size = lax::abs(x[1]);
  const Array near =
      lax::le(difference, lax::add(lax::mul(size, constant(rtol, size)), constant(atol, size)));
  // An infinity is close only to itself: inf - inf is NaN, and inf - 1 <= inf.
  Array close = lax::bitwise_or(lax::eq(x[0], x[1]), lax::bitwise_and(near, numpy::isfinite(x[1])));
  if (equal_nan)
    close = lax::bitwise_or(close, lax::bitwise_and(numpy::isnan(x[0]), numpy::isnan(x[1])));
  return close;
}
}  // namespace

Array numpy::isclose(Operand a, Operand b, double rtol, double atol, bool equal_nan) {
  const Arrays x = promoted_inexact("isclose", {a, b});
  const Dim work = maximum(x[0].shape().num_elements(), x[1].shape().num_elements());
  return in_one_program(
      "isclose", x, {{"rtol", rtol}, {"atol", atol}, {"equal_nan", equal_nan}}, work,
      [=](std::span<const Array> x) { return Arrays{are_close(x, rtol, atol, equal_nan)}; });
}
Array numpy::allclose(Operand a, Operand b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan));
}

Array numpy::array_equal(Operand a1, Operand a2, bool equal_nan) {
  if (!(a1.shape() == a2.shape())) return Array(false);
  Array same = equal(a1, a2);
  if (equal_nan) same = logical_or(same, logical_and(isnan(a1), isnan(a2)));
  return all(same);
}

Array numpy::where(Operand condition, Operand x, Operand y) {
  Arrays values{x, y};
  promote_dtypes(values, "where");
  Arrays operands{truth(condition), values[0], values[1]};
  broadcast_shapes(std::span<Array>(operands), "where");
  return lax::select(operands[0], operands[1], operands[2]);
}

namespace {

[[maybe_unused]] const FunctionInfo* const logic_functions[] = {
    function("numpy", "bitwise_and(x1, x2)", "The bits set in both, of integers or bools.",
             &numpy::bitwise_and),
    function("numpy", "bitwise_or(x1, x2)", "The bits set in either, of integers or bools.",
             &numpy::bitwise_or),
    function("numpy", "bitwise_xor(x1, x2)", "The bits set in exactly one, of integers or bools.",
             &numpy::bitwise_xor),
    function("numpy", "bitwise_not(x)", "The bits not set; of bools, not.", &numpy::bitwise_not),
    function("numpy", "bitwise_invert(x)", "The same as bitwise_not.", &numpy::bitwise_invert),
    function("numpy", "invert(x)", "The same as bitwise_not.", &numpy::invert),
    function("numpy", "left_shift(x1, x2)",
             "The bits of x1 moved up by x2 places, zeros moving in.", &numpy::left_shift),
    function("numpy", "bitwise_left_shift(x1, x2)", "The same as left_shift.",
             &numpy::bitwise_left_shift),
    function("numpy", "right_shift(x1, x2)",
             "The bits of x1 moved down by x2 places; signed numbers keep their sign.",
             &numpy::right_shift),
    function("numpy", "bitwise_right_shift(x1, x2)", "The same as right_shift.",
             &numpy::bitwise_right_shift),
    function("numpy", "logical_and(x1, x2)", "Where both are not 0, as bool.", &numpy::logical_and),
    function("numpy", "logical_or(x1, x2)", "Where either is not 0, as bool.", &numpy::logical_or),
    function("numpy", "logical_xor(x1, x2)", "Where exactly one is not 0, as bool.",
             &numpy::logical_xor),
    function("numpy", "logical_not(x)", "Where x is 0, as bool.", &numpy::logical_not),
    function("numpy", "equal(x1, x2)", "x1 == x2, as bool.", &numpy::equal),
    function("numpy", "not_equal(x1, x2)", "x1 != x2, as bool; NaN is unequal to everything.",
             &numpy::not_equal),
    function("numpy", "less(x1, x2)", "x1 < x2, as bool; complex numbers are ordered as pairs.",
             &numpy::less),
    function("numpy", "less_equal(x1, x2)", "x1 <= x2, as bool.", &numpy::less_equal),
    function("numpy", "greater(x1, x2)", "x1 > x2, as bool.", &numpy::greater),
    function("numpy", "greater_equal(x1, x2)", "x1 >= x2, as bool.", &numpy::greater_equal),
    function("numpy", "isnan(x)", "Where x is NaN, as bools; nowhere for integers.", &numpy::isnan),
    function("numpy", "isinf(x)", "Where x is inf or -inf.", &numpy::isinf),
    function("numpy", "isfinite(x)", "Where x is neither NaN nor infinite.", &numpy::isfinite),
    function("numpy", "isposinf(x)", "Where x is inf, as bools.", &numpy::isposinf),
    function("numpy", "isneginf(x)", "Where x is -inf, as bools.", &numpy::isneginf),
    function("numpy", "signbit(x)",
             "Where the sign is set: negative numbers, -0.0, and NaN with a sign.",
             &numpy::signbit),
    function("numpy", "copysign(x1, x2)", "x1 with the sign of x2, as a float.", &numpy::copysign),
    function("numpy", "nextafter(x1, x2)", "The float next to x1 towards x2. Its derivative is 0.",
             &numpy::nextafter),
    function("numpy", "isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False)",
             "Where |a - b| <= atol + rtol * |b|.", &numpy::isclose),
    function("numpy", "allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False)",
             "Whether |a - b| <= atol + rtol * |b| everywhere, as a bool array of rank 0.",
             &numpy::allclose),
    function("numpy", "array_equal(a1, a2, equal_nan=False)",
             "Whether shapes and elements are equal, as a bool array of rank 0.",
             &numpy::array_equal),
};

}  // namespace
}  // namespace plait
