// Loops for elementwise primitives: a lambda over scalars and packs becomes the Pointwise rule of a
// primitive, for every dtype of a set.
//
//   .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::tanh(x); }))
//
// Floats run through Pack, one register at a time, and the tail through the same lambda on scalars,
// which gives the same bits. 16-bit floats are computed in float32 and rounded once. No compiler
// option is required: -march=x86-64-v3 makes the loops faster, and -ffp-contract=off gives them the
// bits that they would have inside plait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math.h>
#include <plait/rules/rules.h>

#include <type_traits>

namespace plait {

// A set of dtypes, usable as a template argument.
struct DTypes {
  std::uint32_t bits = 0;
  constexpr bool has(DType dtype) const { return bits >> int(dtype) & 1; }
  constexpr DTypes operator|(DTypes other) const { return {bits | other.bits}; }
};
template <class... T>
constexpr DTypes dtypes() {
  return {((1u << int(dtype_of<T>())) | ...)};
}

inline constexpr DTypes boolean = dtypes<bool>();
inline constexpr DTypes signed_integers =
    dtypes<std::int8_t, std::int16_t, std::int32_t, std::int64_t>();
inline constexpr DTypes unsigned_integers =
    dtypes<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>();
inline constexpr DTypes integers = signed_integers | unsigned_integers;
inline constexpr DTypes floating = dtypes<float16, bfloat16, float, double>();
inline constexpr DTypes complexes = dtypes<complex64, complex128>();
inline constexpr DTypes real_numbers = integers | floating;
inline constexpr DTypes inexact = floating | complexes;
inline constexpr DTypes numbers = real_numbers | complexes;
inline constexpr DTypes all_dtypes = numbers | boolean;  // that something computes with
inline constexpr DTypes stored_dtypes = {((1u << num_dtypes) - 1) & ~all_dtypes.bits};
std::string to_string(DTypes dtypes);  // "float or complex": for messages

namespace detail {

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// The type that a lambda computes in: float for 16-bit floats, the element type otherwise.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;
// One register of the processor that the file is compiled for. Wider packs would be passed by
// another calling convention than in code for AVX, under the same symbol names.
#if defined(__AVX2__) && defined(__FMA__)
constexpr int register_bytes = 32;
#else
constexpr int register_bytes = 16;
#endif
// Lanes of the pack that T is computed in; 1 where there is no pack.
template <class T>
constexpr int lanes = is_half<T> || std::is_same_v<T, float> ? register_bytes / 4
                      : std::is_same_v<T, double>            ? register_bytes / 8
                                                             : 1;

template <class T, int N>
auto load(const T* src) {
  if constexpr (is_half<T>) {
    float wide[N];
    for (int i = 0; i < N; ++i) wide[i] = float(src[i]);
    return Pack<float, N>::load(wide);
  } else {
    return Pack<T, N>::load(src);
  }
}
template <class T, class P>
void store(P value, T* dst) {
  if constexpr (is_half<T>) {
    float wide[P::width];
    value.store(wide);
    for (int i = 0; i < P::width; ++i) dst[i] = T(wide[i]);
  } else {
    value.store(dst);
  }
}

template <class F, class T>
void unary_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const T* x = static_cast<const T*>(inputs[0]);
  T* out = static_cast<T*>(output);
  std::int64_t i = 0;
  if constexpr (lanes<T> > 1)
    for (; i + lanes<T> <= n; i += lanes<T>) store<T>(F{}(load<T, lanes<T>>(x + i)), out + i);
  for (; i < n; ++i) out[i] = T(F{}(Compute<T>(x[i])));
}

template <class F, class T>
void binary_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const T *x = static_cast<const T*>(inputs[0]), *y = static_cast<const T*>(inputs[1]);
  T* out = static_cast<T*>(output);
  std::int64_t i = 0;
  if constexpr (lanes<T> > 1)
    for (; i + lanes<T> <= n; i += lanes<T>)
      store<T>(F{}(load<T, lanes<T>>(x + i), load<T, lanes<T>>(y + i)), out + i);
  for (; i < n; ++i) out[i] = T(F{}(Compute<T>(x[i]), Compute<T>(y[i])));
}

// Any input and output types, scalars only: comparisons, casts, predicates.
template <class F, class In, class Out>
void map_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t argument) {
  const In* x = static_cast<const In*>(inputs[0]);
  Out* out = static_cast<Out*>(output);
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_invocable_v<F, Compute<In>, std::int64_t>)
      out[i] = Out(F{}(Compute<In>(x[i]), argument));
    else
      out[i] = Out(F{}(Compute<In>(x[i])));
  }
}
template <class F, class In, class Out>
void map2_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const In *x = static_cast<const In*>(inputs[0]), *y = static_cast<const In*>(inputs[1]);
  Out* out = static_cast<Out*>(output);
  for (std::int64_t i = 0; i < n; ++i) out[i] = Out(F{}(Compute<In>(x[i]), Compute<In>(y[i])));
}

// make.operator()<T>() for the dtype's element type, when the set has it.
template <DTypes types, class Make>
Chunk::Loop choose(DType dtype, Make make) {
  return visit_dtype(dtype, [&](auto element) -> Chunk::Loop {
    using T = decltype(element);
    if constexpr (types.has(dtype_of<T>()))
      return make.template operator()<T>();
    else
      return nullptr;
  });
}

}  // namespace detail

template <DTypes types, class F>
Pointwise::Rule unary_loops(F) {
  return [](std::span<const DType> in, const Params&) -> Chunk {
    return {detail::choose<types>(
        in[0], []<class T>() -> Chunk::Loop { return &detail::unary_loop<F, T>; })};
  };
}

template <DTypes types, class F>
Pointwise::Rule binary_loops(F) {
  return [](std::span<const DType> in, const Params&) -> Chunk {
    return {detail::choose<types>(
        in[0], []<class T>() -> Chunk::Loop { return &detail::binary_loop<F, T>; })};
  };
}

// Results of another type than the operands: Out is bool for predicates.
template <DTypes types, class Out, class F>
Pointwise::Rule predicate_loops(F) {
  return [](std::span<const DType> in, const Params&) -> Chunk {
    return {detail::choose<types>(
        in[0], []<class T>() -> Chunk::Loop { return &detail::map2_loop<F, T, Out>; })};
  };
}

// Runs a chunk over whole views: inputs have the output's shape or rank 0, any strides.
void run_pointwise(const Chunk& chunk, std::span<const View> inputs, const View& output);
// Copies elements [begin, begin + count) of a view, in row-major order, to dense memory.
void gather_run(const View& view, std::int64_t begin, std::int64_t count, void* dst);

}  // namespace plait
