// What the text of loop programs calls (codegen/scalar_text.h): functions of plait::lax over one
// number, with the bits of their kernels. 16-bit floats are computed as float and rounded once.
//
// The mathematics is base/math; what C++ leaves open, such as division by zero, is written out here
// a second time, apart from the blocks in lib/primitives that it is compared with.
//
// Compilers of kernels read it too, with the few headers that they have: see std.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/math.h>
#include <plait/base/math/special.h>
#include <plait/base/threefry.h>

#include "primitives/elementwise/wrapping.h"

#include <bit>
#include <cmath>
#include <limits>

// Not inlined by compilers of the host: a text of hundreds of calls stays small.
#ifdef __CUDACC_RTC__
#define PLAIT_CALLED inline
#else
#define PLAIT_CALLED [[gnu::noinline]]
#endif

namespace plait {

template <class T>
concept Half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <Half T>
T operator-(T x) {
  return T(-float(x));
}
template <Half T>
T operator+(T x, T y) {
  return T(float(x) + float(y));
}
template <Half T>
T operator-(T x, T y) {
  return T(float(x) - float(y));
}
template <Half T>
T operator*(T x, T y) {
  return T(float(x) * float(y));
}
template <Half T>
T operator/(T x, T y) {
  return T(float(x) / float(y));
}
template <Half T>
bool operator==(T x, T y) {
  return float(x) == float(y);
}
template <Half T>
bool operator<(T x, T y) {
  return float(x) < float(y);
}
template <Half T>
bool operator<=(T x, T y) {
  return float(x) <= float(y);
}
template <Half T>
bool operator>(T x, T y) {
  return float(x) > float(y);
}
template <Half T>
bool operator>=(T x, T y) {
  return float(x) >= float(y);
}

}  // namespace plait

namespace lax {

using plait::Half;
using plait::is_complex_v;

#define PLAIT_UNARY(function)                    \
  template <class T>                             \
  PLAIT_CALLED T function(T x) {                 \
    if constexpr (Half<T>)                       \
      return T(plait::math::function(float(x))); \
    else                                         \
      return plait::math::function(x);           \
  }
PLAIT_UNARY(floor)
PLAIT_UNARY(ceil)
PLAIT_UNARY(round)
PLAIT_UNARY(exp)
PLAIT_UNARY(expm1)
PLAIT_UNARY(log)
PLAIT_UNARY(log1p)
PLAIT_UNARY(sqrt)
PLAIT_UNARY(sin)
PLAIT_UNARY(cos)
PLAIT_UNARY(tanh)
PLAIT_UNARY(erf)
PLAIT_UNARY(erf_inv)
PLAIT_UNARY(lgamma)
PLAIT_UNARY(digamma)
PLAIT_UNARY(bessel_i0e)
PLAIT_UNARY(bessel_i1e)
PLAIT_UNARY(erfc)
PLAIT_UNARY(erfcx)
PLAIT_UNARY(ndtri)
PLAIT_UNARY(expi)
PLAIT_UNARY(spence)
PLAIT_UNARY(dawsn)
PLAIT_UNARY(fresnel_sine)
PLAIT_UNARY(fresnel_cosine)
PLAIT_UNARY(sine_integral)
PLAIT_UNARY(cosine_integral)
#undef PLAIT_UNARY

#define PLAIT_BINARY(function)                             \
  template <class T>                                       \
  PLAIT_CALLED T function(T x, T y) {                      \
    if constexpr (Half<T>)                                 \
      return T(plait::math::function(float(x), float(y))); \
    else                                                   \
      return plait::math::function(x, y);                  \
  }
PLAIT_BINARY(igamma)
PLAIT_BINARY(igammac)
PLAIT_BINARY(igamma_grad_a)
PLAIT_BINARY(random_gamma_grad)
PLAIT_BINARY(zeta)
PLAIT_BINARY(polygamma)
PLAIT_BINARY(expn)
PLAIT_BINARY(owens_t)
#undef PLAIT_BINARY

#define PLAIT_SEVERAL(function)                                    \
  template <class T, class... Others>                              \
  PLAIT_CALLED T function(T x, Others... others) {                 \
    if constexpr (Half<T>)                                         \
      return T(plait::math::function(float(x), float(others)...)); \
    else                                                           \
      return plait::math::function(x, others...);                  \
  }
PLAIT_SEVERAL(betainc)
PLAIT_SEVERAL(hyp1f1)
PLAIT_SEVERAL(hyp2f1)
#undef PLAIT_SEVERAL

template <class T>
PLAIT_CALLED T atan2(T y, T x) {
  if constexpr (Half<T>)
    return T(plait::math::atan2(float(y), float(x)));
  else
    return plait::math::atan2(y, x);
}

template <class T>
PLAIT_CALLED T pow(T x, T y) {
  if constexpr (Half<T>) {
    return T(plait::math::pow(float(x), float(y)));
  } else if constexpr (std::is_integral_v<T>) {
    if (y < 0) return x == 1 ? T(1) : x == T(-1) ? T(y % 2 == 0 ? 1 : -1) : T(0);
    T result = 1;
    for (auto n = std::make_unsigned_t<T>(y); n > 0; n >>= 1, x = T(x * x))
      if (n & 1) result = T(result * x);
    return result;
  } else {
    return plait::math::pow(x, y);
  }
}

template <class T>
T fma(T x, T y, T z) {
  if constexpr (Half<T>)
    return T(std::fma(float(x), float(y), float(z)));
  else
    return std::fma(x, y, z);
}

inline std::uint64_t threefry(std::uint32_t k0, std::uint32_t k1, std::uint32_t high,
                              std::uint32_t low) {
  const auto [x, y] = plait::threefry2x32({k0, k1}, {high, low});
  return std::uint64_t(x) << 32 | y;
}

// Where signed integers that overflow are undefined: they wrap.
template <class T>
T add(T x, T y) {
  return T(plait::wrapping(x) + plait::wrapping(y));
}
template <class T>
T sub(T x, T y) {
  return T(plait::wrapping(x) - plait::wrapping(y));
}
template <class T>
T neg(T x) {
  return T(-plait::wrapping(x));
}
template <class T>
T mul(T x, T y) {
  return plait::product(x, y);
}

// By squaring, from the low bit of the exponent up.
template <class T>
T integer_pow(T base, long exponent) {
  if constexpr (Half<T>) {
    return T(integer_pow(float(base), exponent));
  } else {
    T result(1);
    bool is_one = true;
    for (long n = exponent < 0 ? -exponent : exponent; n > 0; n /= 2) {
      if (n % 2 == 1) result = is_one ? base : mul(result, base);
      if (n % 2 == 1) is_one = false;
      base = mul(base, base);
    }
    return exponent < 0 ? T(T(1) / result) : result;
  }
}

template <class T>
T div(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return y == 0 ? T(0) : y == T(-1) && std::is_signed_v<T> ? T(-x) : T(x / y);
  else
    return plait::quotient(x, y);
}
template <class T>
T rem(T x, T y) {
  if constexpr (Half<T>)
    return T(plait::math::rem(float(x), float(y)));
  else if constexpr (std::is_integral_v<T>)
    return y == 0 || (y == T(-1) && std::is_signed_v<T>) ? T(0) : T(x % y);
  else
    return plait::math::rem(x, y);
}

// NaN where either is; of equal numbers, such as both zeros, the first.
template <class T>
T max(T x, T y) {
  return x != x || y <= x ? x : y;
}
template <class T>
T min(T x, T y) {
  return x != x || y >= x ? x : y;
}

template <class T>
auto abs(T x) {
  if constexpr (Half<T>) {
    return T(plait::math::abs(float(x)));
  } else if constexpr (is_complex_v<T>) {
    using Real = typename T::value_type;
    const Real a = plait::math::abs(x.real()), b = plait::math::abs(x.imag());
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    if (a == infinity || b == infinity) return infinity;
    const Real large = b <= a || a != a ? a : b, small = b >= a || a != a ? a : b;
    if (large == 0) return large;
    const Real ratio = small / large;
    return large * std::sqrt(1 + ratio * ratio);
  } else if constexpr (std::is_floating_point_v<T>) {
    return plait::math::abs(x);
  } else if constexpr (std::is_signed_v<T>) {
    return T(x < 0 ? -x : x);
  } else {
    return x;
  }
}

template <class T>
auto real(T x) {
  return x.real();
}
template <class T>
auto imag(T x) {
  return x.imag();
}
template <class T>
std::complex<T> complex(T x, T y) {
  return {x, y};
}

// Of complex numbers as pairs.
template <class T>
bool lt(T x, T y) {
  return x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
}
template <class T>
bool le(T x, T y) {
  return lt(x, y) || x == y;
}
template <class T>
bool gt(T x, T y) {
  return lt(y, x);
}
template <class T>
bool ge(T x, T y) {
  return le(y, x);
}

// By as many places as there are bits, or more, nothing is left but the sign.
template <class T>
T shift_left(T x, T y) {
  using Bits = std::make_unsigned_t<T>;
  return Bits(y) < 8 * sizeof(T) ? T(Bits(x) << y) : T(0);
}
template <class T>
T shift_right_logical(T x, T y) {
  using Bits = std::make_unsigned_t<T>;
  return Bits(y) < 8 * sizeof(T) ? T(Bits(x) >> y) : T(0);
}
template <class T>
T shift_right_arithmetic(T x, T y) {
  using Bits = std::make_unsigned_t<T>;
  const auto number = std::make_signed_t<T>(x);
  return Bits(y) < 8 * sizeof(T) ? T(number >> y) : T(number < 0 ? -1 : 0);
}

// Floats as integers are cut off, and the nearest that there is; NaN is 0.
template <class To>
To saturated(double x) {
  using Limits = std::numeric_limits<To>;
  if (x != x) return 0;
  if (x <= double(Limits::min())) return Limits::min();
  return x >= double(Limits::max()) ? Limits::max() : To(x);
}
template <class To, class From>
To convert(From x) {
  constexpr bool to_integer = std::is_integral_v<To> && !std::is_same_v<To, bool>;
  if constexpr (std::is_same_v<To, From>)
    return x;
  else if constexpr (Half<From>)
    return convert<To>(float(x));
  else if constexpr (is_complex_v<To> && is_complex_v<From>)
    return To(x);
  else if constexpr (is_complex_v<To>)
    return To(typename To::value_type(x));
  else if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (is_complex_v<From>)
    return convert<To>(x.real());
  else if constexpr (to_integer && std::is_floating_point_v<From>)
    return saturated<To>(double(x));
  else if constexpr (Half<To>)
    return To(float(x));
  else
    return To(x);
}

}  // namespace lax

using plait::bfloat16;
using plait::complex128;
using plait::complex64;
using plait::float16;
