// Complex extensions of real functions, built from real functions of both parts.
//
// The inverse circular and hyperbolic functions are Kahan's ("Branch cuts for complex elementary
// functions", 1987), which stay accurate near the branch points and keep signs on the cuts.
// Infinite and NaN parts are as in annex G of C99 and in the array-API standard.
// SPDX-License-Identifier: Apache-2.0
#include "functions/numpy/complex.h"

#include <cmath>

namespace plait::functions {
namespace {

struct ComplexParts {
  Array re, im;
};
ComplexParts parts_of(const Array& z) { return {lax::real(z), lax::imag(z)}; }

Array times_i(const Array& z) {
  const auto [x, y] = parts_of(z);
  return lax::complex(lax::neg(y), x);
}
Array over_i(const Array& z) {
  const auto [x, y] = parts_of(z);
  return lax::complex(y, lax::neg(x));
}

// sqrt(1 + z) and sqrt(1 - z).
struct Roots {
  ComplexParts plus, minus;
};
Roots roots_of(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array one = constant(1, x);
  return {parts_of(lax::sqrt(lax::complex(lax::add(one, x), y))),
          parts_of(lax::sqrt(lax::complex(lax::sub(one, x), lax::neg(y))))};
}
// The imaginary part of conj(a) b.
Array crossed(const ComplexParts& a, const ComplexParts& b) {
  return lax::sub(lax::mul(a.re, b.im), lax::mul(a.im, b.re));
}

Array is_infinite(const Array& x) { return lax::eq(lax::abs(x), constant(INFINITY, x)); }
Array is_nan(const Array& x) { return lax::ne(x, x); }
Array is_zero(const Array& x) { return lax::eq(x, constant(0, x)); }
Array either(const Array& x, const Array& y) { return lax::bitwise_or(x, y); }
// The number with the sign of another one: of a zero too.
Array signed_as(double size, const Array& x) { return numpy::copysign(filled(size, x), x); }
// +-1 for an infinite x, else +-0; NaN for NaN.
Array infinite_part(const Array& x) {
  return lax::select(is_nan(x), x, lax::select(is_infinite(x), signed_as(1, x), signed_as(0, x)));
}
// As C99's annex G has it: the value where a part of z is infinite, else the one given.
Array unless_infinite(const ComplexParts& z, const ComplexParts& infinite,
                      const ComplexParts& otherwise) {
  const Array there = either(is_infinite(z.re), is_infinite(z.im));
  return lax::complex(lax::select(there, infinite.re, otherwise.re),
                      lax::select(there, infinite.im, otherwise.im));
}

}  // namespace

// exp(x) sin y, and expm1(x) cos y - 2 sin^2(y / 2), where nothing cancels near 0. Of what is not
// finite it is exp(z) - 1.
Array complex_expm1(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array half = lax::sin(lax::mul(y, constant(0.5, y)));
  const Array re = lax::sub(lax::mul(lax::expm1(x), lax::cos(y)),
                            lax::mul(constant(2, x), lax::mul(half, half)));
  const Array finite = lax::bitwise_and(numpy::isfinite(x), numpy::isfinite(y));
  const auto [outer_re, outer_im] = parts_of(lax::exp(z));
  // The real part of a zero is +0: re + 0 is never -0.
  return lax::complex(
      lax::select(finite, lax::add(re, constant(0, x)), lax::sub(outer_re, constant(1, x))),
      outer_im);
}

// log |1 + z|; near 0 from |1 + z|^2 - 1 = x (2 + x) + y^2.
Array complex_log1p(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array one = constant(1, x), limit = constant(0.5, x);
  const Array near = lax::bitwise_and(lax::lt(lax::abs(x), limit), lax::lt(lax::abs(y), limit));
  const Array zero = lax::zeros_like(x.aval());
  const Array u = lax::select(near, x, zero), v = lax::select(near, y, zero);
  const Array square = lax::add(lax::mul(u, lax::add(constant(2, u), u)), lax::mul(v, v));
  const Array small = lax::mul(limit, lax::log1p(square));
  const Array large = lax::log(numpy::hypot(lax::add(one, x), y));
  return lax::complex(lax::select(near, small, large), lax::atan2(y, lax::add(one, x)));
}

Array complex_extreme(const Array& x, const Array& y, bool largest) {
  const ComplexParts a = parts_of(x), b = parts_of(y);
  auto is_ahead = [&](const Array& p, const Array& q) {
    return largest ? lax::gt(p, q) : lax::lt(p, q);
  };
  const Array is_equal = lax::bitwise_and(lax::eq(a.re, b.re), lax::ge(a.im, b.im));
  const Array is_equal_least = lax::bitwise_and(lax::eq(a.re, b.re), lax::le(a.im, b.im));
  const Array is_first = either(is_ahead(a.re, b.re), largest ? is_equal : is_equal_least);
  return numpy::where(either(lax::bitwise_and(is_first, lax::eq(y, y)), lax::ne(x, x)), x, y);
}

Array complex_extreme_over(const Array& x, std::span<const int> axes, bool largest) {
  auto reduced = [&](const Array& part) {
    return largest ? lax::reduce_max(part, axes) : lax::reduce_min(part, axes);
  };
  const ComplexParts parts = parts_of(x);
  const Array re = reduced(parts.re);
  const Array is_there =
      lax::eq(parts.re, plait::broadcast_to(with_axes(re, x.shape(), axes), x.shape()));
  const Array im =
      reduced(lax::select(is_there, parts.im, filled(largest ? -INFINITY : INFINITY, parts.im)));
  const Array result = lax::complex(re, im);
  const Array has_nan = lax::reduce_or(lax::ne(x, x), axes);
  return lax::select(has_nan, filled(NAN, result), result);
}

Array complex_logaddexp(const Array& x, const Array& y) {
  const Array is_first = lax::ge(lax::real(x), lax::real(y));
  const Array large = numpy::where(is_first, x, y), small = numpy::where(is_first, y, x);
  const Array sum = lax::add(large, complex_log1p(lax::exp(lax::sub(small, large))));
  const ComplexParts parts = parts_of(sum);
  const Array turn = constant(2 * M_PI, parts.im);
  const Array angle =
      lax::sub(parts.im, lax::mul(turn, lax::stop_gradient(lax::round(lax::div(parts.im, turn)))));
  // Where both exponentials are 0, or one is infinite.
  const Array is_infinite_sum =
      lax::bitwise_and(is_infinite(lax::real(large)), lax::eq(small, small));
  return lax::select(is_infinite_sum, large, lax::complex(parts.re, angle));
}

Array complex_arcsinh(const Array& z) {
  const ComplexParts parts = parts_of(z);
  const auto [plus, minus] = roots_of(times_i(z));  // of 1 + i z and 1 - i z
  const Array product = lax::sub(lax::mul(plus.re, minus.re), lax::mul(plus.im, minus.im));
  const ComplexParts finite{numpy::arcsinh(crossed(minus, plus)), lax::atan2(parts.im, product)};
  const Array real_axis = lax::bitwise_and(is_nan(parts.re), is_zero(parts.im));
  return unless_infinite(parts,
                         {signed_as(INFINITY, parts.re),
                          lax::atan2(infinite_part(parts.im), lax::abs(infinite_part(parts.re)))},
                         {finite.re, lax::select(real_axis, parts.im, finite.im)});
}
Array complex_arcsin(const Array& z) { return over_i(complex_arcsinh(times_i(z))); }

Array complex_arccos(const Array& z) {
  const ComplexParts parts = parts_of(z);
  const auto [plus, minus] = roots_of(z);
  const ComplexParts finite{lax::mul(constant(2, plus.re), lax::atan2(minus.re, plus.re)),
                            numpy::arcsinh(crossed(plus, minus))};
  const Array imaginary_axis = lax::bitwise_and(is_zero(parts.re), is_nan(parts.im));
  return unless_infinite(
      parts,
      {lax::atan2(lax::abs(infinite_part(parts.im)), infinite_part(parts.re)),
       signed_as(INFINITY, lax::neg(parts.im))},
      {lax::select(imaginary_axis, filled(M_PI_2, parts.re), finite.re), finite.im});
}

// +-i arccos z, on the side whose real part is not negative.
Array complex_arccosh(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array one = constant(1, x);
  const ComplexParts plus = parts_of(lax::sqrt(lax::complex(lax::add(x, one), y)));
  const ComplexParts minus = parts_of(lax::sqrt(lax::complex(lax::sub(x, one), y)));
  const Array product = lax::add(lax::mul(minus.re, plus.re), lax::mul(minus.im, plus.im));
  const Array angle = lax::mul(constant(2, x), lax::atan2(minus.im, plus.re));
  const Array imaginary_axis = lax::bitwise_and(is_zero(x), is_nan(y));
  return unless_infinite(
      {x, y},
      {filled(INFINITY, x),
       numpy::copysign(lax::atan2(lax::abs(infinite_part(y)), infinite_part(x)), y)},
      {numpy::arcsinh(product), lax::select(imaginary_axis, filled(M_PI_2, x), angle)});
}

// log1p(4 x / ((1 - x)^2 + y^2)) / 4, and atan2(2 y, (1 - x) (1 + x) - y^2) / 2; for large |z|
// x / |z|^2 and +-pi / 2, where the squares would overflow.
Array complex_arctanh(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array size = lax::max(lax::abs(x), lax::abs(y));
  const Array large = lax::gt(size, constant(size_of(x.dtype()) == 8 ? 1e9 : 1e5, x));
  const Array zero = lax::zeros_like(x.aval()), one = constant(1, x);
  const Array u = lax::select(large, zero, x), v = lax::select(large, zero, y);
  const Array rest = lax::sub(one, u), square = lax::mul(v, v);
  const Array ratio = lax::div(lax::mul(constant(4, u), u), lax::add(lax::mul(rest, rest), square));
  const Array below = lax::sub(lax::mul(rest, lax::add(one, u)), square);
  const Array re = lax::mul(constant(0.25, x), lax::log1p(ratio));
  const Array im = lax::mul(constant(0.5, x), lax::atan2(lax::mul(constant(2, v), v), below));
  const Array right_angle = signed_as(M_PI_2, y);
  const Array safe = lax::select(large, size, filled(1, x));
  const Array u_far = lax::div(lax::select(large, x, zero), safe),
              v_far = lax::div(lax::select(large, y, zero), safe);
  const Array far = lax::div(
      lax::div(u_far, lax::select(large, lax::add(lax::mul(u_far, u_far), lax::mul(v_far, v_far)),
                                  filled(1, x))),
      safe);
  const Array imaginary_axis = lax::bitwise_and(is_zero(x), is_nan(y));
  const Array near_re = lax::select(imaginary_axis, x, lax::select(large, far, re));
  return unless_infinite({x, y}, {signed_as(0, x), lax::select(is_nan(y), y, right_angle)},
                         {near_re, lax::select(large, right_angle, im)});
}
Array complex_arctan(const Array& z) { return over_i(complex_arctanh(times_i(z))); }

// Annex G defines circular functions by the hyperbolic ones. Of an infinite x, tanh has the zero of
// the sign of y, as the array-API standard has it.
Array complex_sinh(const Array& z) { return over_i(lax::sin(times_i(z))); }
Array complex_cosh(const Array& z) { return lax::cos(times_i(z)); }
Array complex_tanh(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array limit = lax::bitwise_and(is_infinite(x), numpy::isfinite(y));
  return lax::select(limit, lax::complex(signed_as(1, x), signed_as(0, y)), lax::tanh(z));
}
Array complex_tan(const Array& z) { return over_i(complex_tanh(times_i(z))); }

}  // namespace plait::functions
