// plait.numpy: the parts of floats, their neighbours, Bessel's I0 and the window made of it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_numbers.h>

#include <cmath>

#include "functions/float_layout.h"
#include "functions/functions.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// 2^n for integers n from 1 - bias to bias, from its bits.
Array power_of_two(const Array& n, DType dtype) {
  const FloatLayout layout = layout_of(dtype);
  const Array biased = lax::add(astype(n, layout.word), Array::literal(layout.bias, layout.word));
  const Array bits = lax::shift_left(biased, Array::literal(layout.fraction, layout.word));
  return lax::bitcast_convert_type(bits, dtype);
}

// x 2^n, rounded once unless the result is subnormal: each factor is a power that the dtype has.
Array scaled_by(const Array& x, const Array& n) {
  const int bias = layout_of(x.dtype()).bias;
  Array result = x, rest = n;
  for (int step = 0; step < 3; ++step) {
    const Array now = lax::min(lax::max(rest, constant(1 - bias, rest)), constant(bias, rest));
    result = lax::mul(result, as_weak_as(x, power_of_two(now, x.dtype())));
    rest = lax::sub(rest, now);
  }
  return result;
}

}  // namespace

std::pair<Array, Array> numpy::modf(Operand x) {
  const Array y = floating_only("modf", x);
  const Array fraction = in_one_program("modf", Arrays{y}, [](std::span<const Array> x) {
    const Array whole = lax::stop_gradient(trunc(x[0]));
    const Array rest = where(isinf(x[0]), constant(0, x[0]), lax::sub(x[0], whole));
    return Arrays{copysign(rest, lax::stop_gradient(x[0]))};
  });
  return {fraction, trunc(y)};
}

namespace {

Array exponent_of(const Array& y) {
  const Array fixed = lax::stop_gradient(y);
  const FloatLayout layout = layout_of(y.dtype());
  auto number = [&](std::int64_t value) { return Array::literal(double(value), layout.word); };
  // A subnormal number is scaled up before its exponent is read.
  const Array least = constant(std::ldexp(1.0, 1 - layout.bias), fixed);
  const Array is_small = lax::lt(lax::abs(fixed), least);
  const int lift = layout.fraction + 1;
  const Array lifted =
      lax::select(is_small, lax::mul(fixed, constant(std::ldexp(1.0, lift), fixed)), fixed);
  const Array bits = lax::bitcast_convert_type(lifted, layout.word);
  const Array biased = lax::bitwise_and(lax::shift_right_logical(bits, number(layout.fraction)),
                                        number(2 * std::int64_t(layout.bias) + 1));
  Array exponent = lax::sub(biased, number(layout.bias - 1));
  exponent = lax::sub(exponent, numpy::where(is_small, number(lift), number(0)));
  const Array has_none = numpy::logical_or(lax::eq(fixed, constant(0, fixed)),
                                           numpy::logical_not(numpy::isfinite(fixed)));
  return astype(numpy::where(has_none, number(0), exponent), default_int());
}

}  // namespace

std::pair<Array, Array> numpy::frexp(Operand x) {
  const Array y = floating_only("frexp", x);
  const Array exponent = in_one_program(
      "frexp", Arrays{y}, [](std::span<const Array> x) { return Arrays{exponent_of(x[0])}; });
  return {in_one_program(
              "scaled_by_negative", Arrays{y, exponent},
              [](std::span<const Array> x) { return Arrays{scaled_by(x[0], lax::neg(x[1]))}; }),
          exponent};
}

Array numpy::ldexp(Operand x1, Operand x2) {
  if (!is_integer(x2.dtype()) && !is_bool(x2.dtype()))
    throw DtypeError("ldexp: exponents of dtype " + std::string(name_of(x2.dtype())),
                     "give integers");
  const Array x = floating_only("ldexp", x1);
  Arrays both{plait::functions::astype(x, is_inexact(x1.dtype()) ? x.dtype() : default_float()),
              x2};
  broadcast_shapes(std::span<Array>(both), "ldexp");
  return in_one_program("ldexp", both, [](std::span<const Array> x) {
    // Beyond these bounds every result is 0 or infinite.
    const int limit = 3 * layout_of(x[0].dtype()).bias;
    const Array exponent = plait::functions::astype(clip(x[1], -limit, limit), default_int());
    const Shape& shape = x[0].ndim() == 0 ? x[1].shape() : x[0].shape();
    return Arrays{
        scaled_by(plait::broadcast_to(x[0], shape), plait::broadcast_to(exponent, shape))};
  });
}

Array numpy::spacing(Operand x) {
  const Array y = lax::stop_gradient(floating_only("spacing", x));
  return in_one_program("spacing", Arrays{y}, [](std::span<const Array> x) {
    return Arrays{lax::sub(nextafter(x[0], copysign(filled(INFINITY, x[0]), x[0])), x[0])};
  });
}

// --- Bessel's I0 ---------------------------------------------------------------------------------

namespace {

constexpr double far = 30;

// I0(x) = (1 / pi) int_0^pi cosh(x cos t) dt. The midpoint rule with 32 points, of which symmetry
// leaves 16, is exact to 2 I64(x) / I0(x) < 1e-29 for |x| <= 30.
Array i0_near(const Array& x) {
  Array nodes = lax::add(counting(16, DType::float64), Array::literal(0.5, DType::float64));
  nodes = lax::cos(lax::mul(nodes, Array::literal(M_PI / 32, DType::float64)));
  nodes = as_weak_as(x, astype(nodes, x.dtype()));
  const Array angles = numpy::multiply(numpy::expand_dims(x, {-1}), nodes);
  return numpy::mean(numpy::cosh(angles), -1);
}

// exp(x) / sqrt(2 pi x) sum_k ((2k - 1)!!)^2 / (k! (8x)^k), asymptotic: Abramowitz and
// Stegun 9.7.1.
Array i0_far(const Array& x) {
  constexpr int terms = 16;
  const Array step = lax::div(constant(1.0 / 8, x), x);
  Array sum = filled(1, x);  // Horner's rule from the last term
  for (int k = terms; k > 0; --k) {
    const double ratio = (2.0 * k - 1) * (2.0 * k - 1) / k;
    sum = lax::add(lax::mul(lax::mul(sum, step), constant(ratio, x)), constant(1, x));
  }
  // The exponential in two factors, so that it overflows where the result does.
  const Array half = lax::exp(lax::mul(x, constant(0.5, x)));
  const Array front = lax::div(half, lax::sqrt(lax::mul(x, constant(2 * M_PI, x))));
  return lax::mul(lax::mul(front, sum), half);
}

}  // namespace

Array numpy::i0(Operand x) {
  const Array given = floating_only("i0", x);
  const Array y = is_inexact(x.dtype()) ? given : plait::functions::astype(given, default_float());
  const Array size = lax::abs(y), is_far = lax::gt(size, constant(far, y));
  const Array zero = lax::zeros_like(y.aval());
  const Array near = lax::select(is_far, zero, y);
  const Array distant = lax::select(is_far, size, filled(far, y));
  return where(isnan(y), y, where(is_far, i0_far(distant), i0_near(near)));
}

// I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta)
Array numpy::kaiser(Dim M, Operand beta) {
  if (beta.ndim() != 0)
    throw ShapeError("kaiser: beta of shape (" + beta.shape().to_string() + ")", "give a scalar");
  if (M == Dim(1)) return lax::full({1}, 1, default_float());
  const Array i = counting(M, DType::float64);
  const Array half = divide(number_of(M - 1, DType::float64), 2.0);
  const Array place = lax::div(lax::sub(i, half), half);
  const Array inside =
      lax::max(lax::sub(constant(1, place), lax::mul(place, place)), constant(0, place));
  const Array wide = plait::functions::astype(beta, DType::float64);
  return plait::functions::astype(divide(i0(multiply(wide, lax::sqrt(inside))), i0(wide)),
                                  default_float());
}

// --- Others --------------------------------------------------------------------------------------

Array numpy::sort_complex(Operand a) {
  return plait::functions::astype(sort(a), complex_dtype_of(a.dtype()));
}

Array numpy::array_equiv(Operand a1, Operand a2) {
  const Shape &s = a1.shape(), &t = a2.shape();
  for (int i = 1; i <= std::min(a1.ndim(), a2.ndim()); ++i) {
    const Dim m = s[a1.ndim() - i], n = t[a2.ndim() - i];
    if (!(m == n) && !(m == Dim(1)) && !(n == Dim(1))) return Array(false);
  }
  return all(equal(a1, a2));
}

namespace {

[[maybe_unused]] const FunctionInfo* const float_part_functions[] = {
    function("numpy", "modf(x, out=None!)",
             "(fraction, whole number), both of x's sign and dtype; integers as float32.",
             &numpy::modf),
    function("numpy", "frexp(x)",
             "(mantissa, exponent) with x = mantissa * 2^exponent, 0.5 <= |mantissa| < 1, and "
             "int32 exponents. 0, infinities and NaN have the exponent 0.",
             &numpy::frexp),
    function("numpy", "ldexp(x1, x2)", "x1 * 2^x2, for integers x2.", &numpy::ldexp),
    function("numpy", "spacing(x)",
             "The distance to the next float away from 0, of x's sign. Its derivative is 0.",
             &numpy::spacing),
    function("numpy", "i0(x)", "The modified Bessel function of order 0, I0.", &numpy::i0),
    function("numpy", "kaiser(M, beta)",
             "Kaiser's window of M points, float32: I0(beta sqrt(1 - t^2)) / I0(beta) for t from "
             "-1 to 1.",
             &numpy::kaiser),
    function("numpy", "sort_complex(a)",
             "The elements along the last axis in order, as complex "
             "numbers, which are ordered as pairs.",
             &numpy::sort_complex),
    function("numpy", "array_equiv(a1, a2)",
             "Whether the shapes broadcast and the elements are equal, as a bool array of rank 0.",
             &numpy::array_equiv),
};

}  // namespace
}  // namespace plait
