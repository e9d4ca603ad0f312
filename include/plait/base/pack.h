// Pack: a SIMD value of N lanes, and the primitive lane-wise operations on packs and scalars.
//
// An algorithm written once as a template over V runs for Pack<float, 8>, Pack<double, 4>, float
// and double with the same bits in every lane: each operation here is exactly rounded or purely
// bitwise, a multiply-add is fused only where fma is written, and a select never depends on its
// neighbours. Built on the GCC/clang vector extensions; intrinsics appear only where those have no
// form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace plait {

// The signed integer as wide as T.
template <class T>
using IntegerOf = std::conditional_t<
    sizeof(T) == 8, std::int64_t,
    std::conditional_t<sizeof(T) == 4, std::int32_t,
                       std::conditional_t<sizeof(T) == 2, std::int16_t, std::int8_t>>>;

// The bits of a T, as the unsigned integer as wide: its arithmetic wraps, and lanes whose result a
// select discards may overflow.
template <class T>
using BitsOf = std::make_unsigned_t<IntegerOf<T>>;

// N values of T in one register. A trait, because g++ drops the attribute from a dependent typedef
// that appears in a constructor's signature.
template <class T, int N>
struct VectorType {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using VectorOf = typename VectorType<T, N>::type;

// The result of comparing packs: per lane all bits set or none. The scalar counterpart is bool.
template <class I, int N>
struct LaneMask {
  using Vector = VectorOf<I, N>;
  Vector v;
  LaneMask() = default;
  explicit LaneMask(Vector vector) : v(vector) {}
  bool operator[](int lane) const { return v[lane] != 0; }
  friend LaneMask operator&(LaneMask a, LaneMask b) { return LaneMask(a.v & b.v); }
  friend LaneMask operator|(LaneMask a, LaneMask b) { return LaneMask(a.v | b.v); }
  friend LaneMask operator^(LaneMask a, LaneMask b) { return LaneMask(a.v ^ b.v); }
  friend LaneMask operator!(LaneMask a) { return LaneMask(~a.v); }
};

template <class T, int N>
struct Pack {
  using Element = T;
  using MaskType = LaneMask<IntegerOf<T>, N>;
  static constexpr int width = N;
  using Vector = VectorOf<T, N>;
  using IntegerVector = VectorOf<IntegerOf<T>, N>;

  Vector v;

  Pack() = default;
  // Implicit, so that 2 * x works. Subtracting zero keeps the sign of -0.0; adding it would not.
  Pack(T x) : v(x - Vector{}) {}
  explicit Pack(Vector vector) : v(vector) {}

  static Pack load(const T* src) {
    Pack x;
    std::memcpy(&x.v, src, sizeof x.v);
    return x;
  }
  void store(T* dst) const { std::memcpy(dst, &v, sizeof v); }

  // Only the first count lanes are read or written; lanes not read are zero.
  static Pack load(const T* src, int count) {
    Pack x(Vector{});
    std::memcpy(&x.v, src, count * sizeof(T));
    return x;
  }
  void store(T* dst, int count) const { std::memcpy(dst, &v, count * sizeof(T)); }

  T operator[](int lane) const { return v[lane]; }

  friend Pack operator-(Pack a) { return Pack(-a.v); }
  friend Pack operator+(Pack a, Pack b) { return Pack(a.v + b.v); }
  friend Pack operator-(Pack a, Pack b) { return Pack(a.v - b.v); }
  friend Pack operator*(Pack a, Pack b) { return Pack(a.v * b.v); }
  friend Pack operator/(Pack a, Pack b) { return Pack(a.v / b.v); }
  friend Pack operator&(Pack a, Pack b)
    requires std::is_integral_v<T>
  {
    return Pack(a.v & b.v);
  }
  friend Pack operator|(Pack a, Pack b)
    requires std::is_integral_v<T>
  {
    return Pack(a.v | b.v);
  }
  friend Pack operator^(Pack a, Pack b)
    requires std::is_integral_v<T>
  {
    return Pack(a.v ^ b.v);
  }
  friend Pack operator~(Pack a)
    requires std::is_integral_v<T>
  {
    return Pack(~a.v);
  }

  friend MaskType operator==(Pack a, Pack b) { return MaskType((IntegerVector)(a.v == b.v)); }
  friend MaskType operator!=(Pack a, Pack b) { return MaskType((IntegerVector)(a.v != b.v)); }
  friend MaskType operator<(Pack a, Pack b) { return MaskType((IntegerVector)(a.v < b.v)); }
  friend MaskType operator<=(Pack a, Pack b) { return MaskType((IntegerVector)(a.v <= b.v)); }
  friend MaskType operator>(Pack a, Pack b) { return MaskType((IntegerVector)(a.v > b.v)); }
  friend MaskType operator>=(Pack a, Pack b) { return MaskType((IntegerVector)(a.v >= b.v)); }
};

// What a lane-wise algorithm over V (a scalar or a Pack) is made of.
template <class V>
struct Lanes {
  using Element = V;
  using Bits = BitsOf<V>;
  using MaskType = bool;
  static constexpr int width = 1;
};
template <class T, int N>
struct Lanes<Pack<T, N>> {
  using Element = T;
  using Bits = Pack<BitsOf<T>, N>;
  using MaskType = LaneMask<IntegerOf<T>, N>;
  static constexpr int width = N;
};

template <class V>
using ElementOf = typename Lanes<V>::Element;
template <class V>
using BitLanesOf = typename Lanes<V>::Bits;
template <class V>
using MaskOf = typename Lanes<V>::MaskType;

// What math's functions take: float, double, or a Pack of either.
template <class V>
concept RealLanes = std::is_floating_point_v<ElementOf<V>>;

namespace math {

// True for the packs whose operations are one AVX2 instruction.
template <class T, int N>
inline constexpr bool is_native_pack =
#if defined(__AVX2__) && defined(__FMA__)
    std::is_floating_point_v<T> && N * sizeof(T) == 32;
#else
    false;
#endif

// f of every lane in turn: for routines that have no vector form.
template <class F, class T>
  requires std::is_arithmetic_v<T>
T each_lane(F f, T x) {
  return f(x);
}
template <class F, class T>
  requires std::is_arithmetic_v<T>
T each_lane(F f, T x, T y) {
  return f(x, y);
}
template <class F, class T, int N>
Pack<T, N> each_lane(F f, Pack<T, N> x) {
  for (int i = 0; i < N; ++i) x.v[i] = f(x.v[i]);
  return x;
}
template <class F, class T, int N>
Pack<T, N> each_lane(F f, Pack<T, N> x, Pack<T, N> y) {
  for (int i = 0; i < N; ++i) x.v[i] = f(x.v[i], y.v[i]);
  return x;
}

// The bits of a real, and back.
inline std::uint32_t to_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
inline std::uint64_t to_bits(double x) { return std::bit_cast<std::uint64_t>(x); }
inline float from_bits(std::uint32_t i) { return std::bit_cast<float>(i); }
inline double from_bits(std::uint64_t i) { return std::bit_cast<double>(i); }
template <class T, int N>
Pack<BitsOf<T>, N> to_bits(Pack<T, N> x) {
  using Bits = Pack<BitsOf<T>, N>;
  return Bits((typename Bits::Vector)x.v);
}
template <int N>
Pack<float, N> from_bits(Pack<std::uint32_t, N> i) {
  return Pack<float, N>((typename Pack<float, N>::Vector)i.v);
}
template <int N>
Pack<double, N> from_bits(Pack<std::uint64_t, N> i) {
  return Pack<double, N>((typename Pack<double, N>::Vector)i.v);
}

// Shifts by a count below the width; the right shift is logical.
template <class I>
  requires std::is_integral_v<I>
I shift_left(I x, int count) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(x) << count);
}
template <class I>
  requires std::is_integral_v<I>
I shift_right(I x, int count) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(x) >> count);
}
template <class I, int N>
Pack<I, N> shift_left(Pack<I, N> x, int count) {
  return Pack<I, N>(x.v << count);
}
template <class I, int N>
Pack<I, N> shift_right(Pack<I, N> x, int count) {
  using U = VectorOf<std::make_unsigned_t<I>, N>;
  return Pack<I, N>((typename Pack<I, N>::Vector)((U)x.v >> count));
}

template <class T>
  requires std::is_arithmetic_v<T>
T select(bool mask, T a, T b) {
  return mask ? a : b;
}
template <class T, int N>
Pack<T, N> select(LaneMask<IntegerOf<T>, N> mask, Pack<T, N> a, Pack<T, N> b) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (N * sizeof(T) == 32) {
    using V = typename Pack<T, N>::Vector;
    if constexpr (sizeof(T) == 8)
      return Pack<T, N>((V)_mm256_blendv_pd((__m256d)b.v, (__m256d)a.v, (__m256d)mask.v));
    else if constexpr (sizeof(T) == 4)
      return Pack<T, N>((V)_mm256_blendv_ps((__m256)b.v, (__m256)a.v, (__m256)mask.v));
    else
      return Pack<T, N>((V)_mm256_blendv_epi8((__m256i)b.v, (__m256i)a.v, (__m256i)mask.v));
  } else
#endif
  {
    using I = typename Pack<T, N>::IntegerVector;
    using V = typename Pack<T, N>::Vector;
    return Pack<T, N>((V)(((I)a.v & mask.v) | ((I)b.v & ~mask.v)));
  }
}
// Lets a constant stand on either side: select(mask, 0, x).
template <class T, int N>
Pack<T, N> select(LaneMask<IntegerOf<T>, N> mask, std::type_identity_t<T> a, Pack<T, N> b) {
  return select(mask, Pack<T, N>(a), b);
}
template <class T, int N>
Pack<T, N> select(LaneMask<IntegerOf<T>, N> mask, Pack<T, N> a, std::type_identity_t<T> b) {
  return select(mask, a, Pack<T, N>(b));
}

inline bool any(bool mask) { return mask; }
inline bool all(bool mask) { return mask; }
template <class I, int N>
bool any(LaneMask<I, N> mask) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (N * sizeof(I) == 32) return !_mm256_testz_si256((__m256i)mask.v, (__m256i)mask.v);
#endif
  I bits = 0;
  for (int i = 0; i < N; ++i) bits |= mask.v[i];
  return bits != 0;
}
template <class I, int N>
bool all(LaneMask<I, N> mask) {
  return !any(!mask);
}

// x * y + z with one rounding.
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
template <class T, int N>
Pack<T, N> fma(Pack<T, N> x, Pack<T, N> y, Pack<T, N> z) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N> && sizeof(T) == 4)
    return Pack<T, N>(_mm256_fmadd_ps(x.v, y.v, z.v));
  else if constexpr (is_native_pack<T, N>)
    return Pack<T, N>(_mm256_fmadd_pd(x.v, y.v, z.v));
  else
#endif
    for (int i = 0; i < N; ++i) z.v[i] = fma(x.v[i], y.v[i], z.v[i]);
  return z;
}
template <class T, int N>
Pack<T, N> fma(Pack<T, N> x, Pack<T, N> y, std::type_identity_t<T> z) {
  return fma(x, y, Pack<T, N>(z));
}
template <class T, int N>
Pack<T, N> fma(Pack<T, N> x, std::type_identity_t<T> y, Pack<T, N> z) {
  return fma(x, Pack<T, N>(y), z);
}
template <class T, int N>
Pack<T, N> fma(Pack<T, N> x, std::type_identity_t<T> y, std::type_identity_t<T> z) {
  return fma(x, Pack<T, N>(y), Pack<T, N>(z));
}

inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
template <class T, int N>
Pack<T, N> sqrt(Pack<T, N> x) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N> && sizeof(T) == 4)
    return Pack<T, N>(_mm256_sqrt_ps(x.v));
  else if constexpr (is_native_pack<T, N>)
    return Pack<T, N>(_mm256_sqrt_pd(x.v));
  else
#endif
    return each_lane([](T a) { return sqrt(a); }, x);
}

inline float floor(float x) { return __builtin_floorf(x); }
inline double floor(double x) { return __builtin_floor(x); }
inline float ceil(float x) { return __builtin_ceilf(x); }
inline double ceil(double x) { return __builtin_ceil(x); }
inline float trunc(float x) { return __builtin_truncf(x); }
inline double trunc(double x) { return __builtin_trunc(x); }
inline float round(float x) { return __builtin_nearbyintf(x); }  // half to even, as NumPy
inline double round(double x) { return __builtin_nearbyint(x); }

#if defined(__AVX2__) && defined(__FMA__)
template <int mode, class T, int N>
Pack<T, N> round_native(Pack<T, N> x) {
  if constexpr (sizeof(T) == 4)
    return Pack<T, N>(_mm256_round_ps(x.v, mode | _MM_FROUND_NO_EXC));
  else
    return Pack<T, N>(_mm256_round_pd(x.v, mode | _MM_FROUND_NO_EXC));
}
#endif
template <class T, int N>
Pack<T, N> floor(Pack<T, N> x) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N>)
    return round_native<_MM_FROUND_TO_NEG_INF>(x);
  else
#endif
    return each_lane([](T a) { return floor(a); }, x);
}
template <class T, int N>
Pack<T, N> ceil(Pack<T, N> x) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N>)
    return round_native<_MM_FROUND_TO_POS_INF>(x);
  else
#endif
    return each_lane([](T a) { return ceil(a); }, x);
}
template <class T, int N>
Pack<T, N> trunc(Pack<T, N> x) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N>)
    return round_native<_MM_FROUND_TO_ZERO>(x);
  else
#endif
    return each_lane([](T a) { return trunc(a); }, x);
}
template <class T, int N>
Pack<T, N> round(Pack<T, N> x) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N>)
    return round_native<_MM_FROUND_TO_NEAREST_INT>(x);
  else
#endif
    return each_lane([](T a) { return round(a); }, x);
}

// Sign-bit arithmetic.
template <class V>
inline constexpr BitsOf<ElementOf<V>> sign_bit =
    BitsOf<ElementOf<V>>(1) << (sizeof(ElementOf<V>) * 8 - 1);
template <class V>
V abs(V x) {
  return from_bits(to_bits(x) & ~sign_bit<V>);
}
template <class V>
BitLanesOf<V> sign_of(V x) {  // the sign bit alone
  return to_bits(x) & BitLanesOf<V>(sign_bit<V>);
}
template <class V>
V copysign(V magnitude, V sign) {
  return from_bits((to_bits(magnitude) & ~sign_bit<V>) | sign_of(sign));
}
template <class V>
MaskOf<V> is_nan(V x) {
  return x != x;
}

// The hardware's min and max: b if either operand is NaN.
template <class T>
  requires std::is_arithmetic_v<T>
T lesser(T a, T b) {
  return a < b ? a : b;
}
template <class T>
  requires std::is_arithmetic_v<T>
T greater(T a, T b) {
  return a > b ? a : b;
}
template <class T, int N>
Pack<T, N> lesser(Pack<T, N> a, Pack<T, N> b) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N> && sizeof(T) == 4)
    return Pack<T, N>(_mm256_min_ps(a.v, b.v));
  else if constexpr (is_native_pack<T, N>)
    return Pack<T, N>(_mm256_min_pd(a.v, b.v));
  else
#endif
    return select(a < b, a, b);
}
template <class T, int N>
Pack<T, N> greater(Pack<T, N> a, Pack<T, N> b) {
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (is_native_pack<T, N> && sizeof(T) == 4)
    return Pack<T, N>(_mm256_max_ps(a.v, b.v));
  else if constexpr (is_native_pack<T, N>)
    return Pack<T, N>(_mm256_max_pd(a.v, b.v));
  else
#endif
    return select(a > b, a, b);
}

// NumPy's minimum and maximum: NaN if either operand is; -0 is below +0.
template <class V>
V minimum(V a, V b) {
  V r = select(a == b, from_bits(to_bits(a) | to_bits(b)), lesser(a, b));
  return select(is_nan(a), a, r);
}
template <class V>
V maximum(V a, V b) {
  V r = select(a == b, from_bits(to_bits(a) & to_bits(b)), greater(a, b));
  return select(is_nan(a), a, r);
}

// float lanes as double lanes and back, so that an algorithm can have a double interior.
inline std::array<double, 1> widen(float x) { return {double(x)}; }
inline float narrow(std::array<double, 1> x) { return float(x[0]); }
template <int N>
std::array<Pack<double, N / 2>, 2> widen(Pack<float, N> x) {
  Pack<double, N / 2> low, high;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (N == 8) {
    low.v = _mm256_cvtps_pd(_mm256_castps256_ps128(x.v));
    high.v = _mm256_cvtps_pd(_mm256_extractf128_ps(x.v, 1));
  } else
#endif
    for (int i = 0; i < N / 2; ++i) low.v[i] = x.v[i], high.v[i] = x.v[i + N / 2];
  return {low, high};
}
template <int H>
Pack<float, 2 * H> narrow(std::array<Pack<double, H>, 2> x) {
  Pack<float, 2 * H> r;
#if defined(__AVX2__) && defined(__FMA__)
  if constexpr (H == 4)
    r.v = _mm256_set_m128(_mm256_cvtpd_ps(x[1].v), _mm256_cvtpd_ps(x[0].v));
  else
#endif
    for (int i = 0; i < H; ++i) r.v[i] = float(x[0].v[i]), r.v[i + H] = float(x[1].v[i]);
  return r;
}

}  // namespace math
}  // namespace plait
