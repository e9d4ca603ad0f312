// Conversions of stored dtypes. See stored_casts.h.
//
// The formats are those of the OCP 8-bit floating point specification (OFP8): float8_e4m3fn has no
// infinity, and one NaN of each sign.
// SPDX-License-Identifier: Apache-2.0
#include "compile/stored_casts.h"

#include <plait/base/stored.h>
#include <plait/primitives/primitives.h>

#include <cmath>

namespace plait::compile_passes {
namespace {

Array integer(std::int64_t value, DType dtype) {
  return Array::literal(Literal{dtype, false, value, 0, 0});
}
Array number(double value, DType dtype) { return Array::literal(value, dtype); }

// The code of a float's magnitude: how many numbers of the layout lie between it and zero.
Array code_of(const Array& magnitude, const Float8Layout& layout) {
  const bool is_double = magnitude.dtype() == DType::float64;
  const DType word = is_double ? DType::int64 : DType::int32;
  const int dropped = (is_double ? 52 : 23) - layout.mantissa;
  const std::int64_t lower = (is_double ? 1023 : 127) - layout.bias();
  const Array bits = lax::bitcast_convert_type(magnitude, word);
  const Array is_odd =
      lax::bitwise_and(lax::shift_right_logical(bits, integer(dropped, word)), integer(1, word));
  const Array half = integer((std::int64_t(1) << (dropped - 1)) - 1, word);
  const Array kept =
      lax::shift_right_logical(lax::add(lax::add(bits, is_odd), half), integer(dropped, word));
  const Array normal = lax::sub(kept, integer(lower << layout.mantissa, word));
  // Below the least exponent steps are equal.
  const DType dtype = magnitude.dtype();
  const int least = 1 - layout.bias();
  const Array steps =
      lax::round(lax::mul(magnitude, number(std::ldexp(1.0, layout.mantissa - least), dtype)));
  const Array is_small = lax::lt(magnitude, number(std::ldexp(1.0, least), dtype));
  return lax::convert_element_type(
      lax::select(is_small, lax::convert_element_type(steps, word), normal), DType::int32);
}

Array float8_of(const Array& given, DType to) {
  const Float8Layout layout = float8_layout(to);
  const bool is_wide = given.dtype() == DType::float64 || given.dtype() == DType::int64 ||
                       given.dtype() == DType::uint64 || given.dtype() == DType::complex128;
  const Array x = lax::convert_element_type(given, is_wide ? DType::float64 : DType::float32);
  Array code = code_of(lax::abs(x), layout);
  code = lax::select(lax::gt(code, integer(layout.largest, DType::int32)),
                     integer(layout.overflowed, DType::int32), code);
  code = lax::select(lax::ne(x, x), integer(0x7f, DType::int32), code);
  const DType word = is_wide ? DType::int64 : DType::int32;
  const Array is_negative = lax::lt(lax::bitcast_convert_type(x, word), integer(0, word));
  const Array sign =
      lax::select(is_negative, integer(0x80, DType::int32), integer(0, DType::int32));
  return lax::convert_element_type(lax::bitwise_or(code, sign), DType::uint8);
}

Array of_float8(const Array& carried, DType from) {
  const Float8Layout layout = float8_layout(from);
  const auto word = [](std::int64_t value) { return integer(value, DType::int32); };
  const Array bits = lax::convert_element_type(carried, DType::int32);
  const Array code = lax::bitwise_and(bits, word(0x7f));
  const Array normal =
      lax::bitcast_convert_type(lax::add(lax::shift_left(code, word(23 - layout.mantissa)),
                                         word(std::int64_t(127 - layout.bias()) << 23)),
                                DType::float32);
  const double step = std::ldexp(1.0, 1 - layout.bias() - layout.mantissa);
  const Array small =
      lax::mul(lax::convert_element_type(code, DType::float32), number(step, DType::float32));
  Array magnitude = lax::select(lax::lt(code, word(1 << layout.mantissa)), small, normal);
  const Array beyond =
      from == DType::float8_e5m2
          ? lax::select(lax::eq(code, word(layout.overflowed)), number(HUGE_VAL, DType::float32),
                        number(NAN, DType::float32))
          : number(NAN, DType::float32);
  magnitude = lax::select(lax::gt(code, word(layout.largest)), beyond, magnitude);
  const Array sign = lax::shift_left(lax::bitwise_and(bits, word(0x80)), word(24));
  return lax::bitcast_convert_type(
      lax::bitwise_or(lax::bitcast_convert_type(magnitude, DType::int32), sign), DType::float32);
}

Array narrow_integer(const Array& given, DType to) {
  const bool has_sign = to == DType::int4;
  const DType dtype = carrier_of(to);
  Array x = is_complex(given.dtype()) ? lax::real(given) : given;
  if (is_floating(x.dtype())) {
    x = lax::max(x, number(has_sign ? -8 : 0, x.dtype()));
    x = lax::min(x, number(has_sign ? 7 : 15, x.dtype()));
    return lax::convert_element_type(lax::select(lax::ne(x, x), number(0, x.dtype()), x), dtype);
  }
  x = lax::convert_element_type(x, dtype);
  if (!has_sign) return lax::bitwise_and(x, integer(15, dtype));
  return lax::shift_right_arithmetic(lax::shift_left(x, integer(4, dtype)), integer(4, dtype));
}

}  // namespace

Array convert_carried(const Array& x, DType from, DType to) {
  const Array plain = is_float8(from) ? of_float8(x, from) : x;
  if (is_float8(to)) return float8_of(plain, to);
  if (is_stored(to)) return narrow_integer(plain, to);
  return lax::convert_element_type(plain, to);
}

}  // namespace plait::compile_passes
