// Complex extensions of real functions, built from real functions of both parts.
//
// The inverse circular and hyperbolic functions are Kahan's ("Branch cuts for complex elementary
// functions", 1987), which stay accurate near the branch points and keep signs on the cuts.
// SPDX-License-Identifier: Apache-2.0
#include "functions/numpy/complex.h"

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

}  // namespace

// exp(x) sin y, and expm1(x) cos y - 2 sin^2(y / 2), where nothing cancels near 0.
Array complex_expm1(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array half = lax::sin(lax::mul(y, constant(0.5, y)));
  const Array re = lax::sub(lax::mul(lax::expm1(x), lax::cos(y)),
                            lax::mul(constant(2, x), lax::mul(half, half)));
  return lax::complex(re, lax::mul(lax::exp(x), lax::sin(y)));
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

Array complex_arcsin(const Array& z) {
  const auto [plus, minus] = roots_of(z);
  const Array product = lax::sub(lax::mul(plus.re, minus.re), lax::mul(plus.im, minus.im));
  return lax::complex(lax::atan2(lax::real(z), product), numpy::arcsinh(crossed(minus, plus)));
}
Array complex_arccos(const Array& z) {
  const auto [plus, minus] = roots_of(z);
  return lax::complex(lax::mul(constant(2, plus.re), lax::atan2(minus.re, plus.re)),
                      numpy::arcsinh(crossed(plus, minus)));
}
Array complex_arcsinh(const Array& z) { return over_i(complex_arcsin(times_i(z))); }
Array complex_arccosh(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array one = constant(1, x);
  const ComplexParts plus = parts_of(lax::sqrt(lax::complex(lax::add(x, one), y)));
  const ComplexParts minus = parts_of(lax::sqrt(lax::complex(lax::sub(x, one), y)));
  const Array product = lax::add(lax::mul(minus.re, plus.re), lax::mul(minus.im, plus.im));
  return lax::complex(numpy::arcsinh(product),
                      lax::mul(constant(2, x), lax::atan2(minus.im, plus.re)));
}

// log1p(4 x / ((1 - x)^2 + y^2)) / 4, and atan2(2 y, (1 - x) (1 + x) - y^2) / 2.
Array complex_arctanh(const Array& z) {
  const auto [x, y] = parts_of(z);
  const Array one = constant(1, x), rest = lax::sub(one, x), square = lax::mul(y, y);
  const Array ratio = lax::div(lax::mul(constant(4, x), x), lax::add(lax::mul(rest, rest), square));
  const Array below = lax::sub(lax::mul(rest, lax::add(one, x)), square);
  return lax::complex(lax::mul(constant(0.25, x), lax::log1p(ratio)),
                      lax::mul(constant(0.5, x), lax::atan2(lax::mul(constant(2, y), y), below)));
}
Array complex_arctan(const Array& z) { return over_i(complex_arctanh(times_i(z))); }

}  // namespace plait::functions
