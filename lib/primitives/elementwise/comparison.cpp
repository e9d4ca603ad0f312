// Elementwise primitives that compare and select: cmp and select.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/commute.h>
#include <plait/rules/motion.h>

#include <complex>
#if defined(__AVX2__)
#include <immintrin.h>

#include "primitives/elementwise_aval.h"
#include "primitives/spelling.h"
#endif

namespace plait {

using Values = Sample::Input::Values;

namespace {

// Complex numbers are ordered as pairs, as NumPy orders them.
template <class T>
bool less(T x, T y) {
  return x < y;
}
template <class T>
bool less(std::complex<T> x, std::complex<T> y) {
  return x.real() < y.real() || (x.real() == y.real() && x.imag() < y.imag());
}
template <class T>
bool less_or_equal(T x, T y) {
  return x <= y;
}
template <class T>
bool less_or_equal(std::complex<T> x, std::complex<T> y) {
  return less(x, y) || x == y;
}

constexpr DTypes with_equal_bits = {1u << int(DType::key) | 1u << int(DType::int4) |
                                    1u << int(DType::uint4)};

Array compare(const char* direction, const Array& x, const Array& y) {
  return bind(cmp_p, {x, y}, {{"direction", std::string(direction)}});
}

}  // namespace

constinit const Primitive cmp_p{"cmp"};
static const auto cmp_def =
    define(cmp_p,
           "Compares: direction eq, ne, lt, le, gt or ge. NaN compares unequal to everything.")
        .family(elementwise(all_dtypes | with_equal_bits, 2, ResultType::truth))
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& direction = params.text("direction");
          if (inputs[0].dtype == DType::key && direction != "eq" && direction != "ne")
            throw_stored(DType::key);  // keys have no order
          return std::vector<Aval>{
              elementwise_aval("cmp", inputs, all_dtypes | with_equal_bits, ResultType::truth)};
        })
        .rule<Commute>([](const Params& params) {
          const std::string& direction = params.text("direction");
          return direction == "eq" || direction == "ne";
        })
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) -> Chunk {
          const std::string& d = params.text("direction");
          if (d == "eq")
            return predicate_loops<all_dtypes, bool>([](auto x, auto y) { return x == y; })(in,
                                                                                            params);
          if (d == "ne")
            return predicate_loops<all_dtypes, bool>([](auto x, auto y) { return x != y; })(in,
                                                                                            params);
          if (d == "lt")
            return predicate_loops<all_dtypes, bool>([](auto x, auto y) { return less(x, y); })(
                in, params);
          if (d == "le")
            return predicate_loops<all_dtypes, bool>(
                [](auto x, auto y) { return less_or_equal(x, y); })(in, params);
          if (d == "gt")
            return predicate_loops<all_dtypes, bool>([](auto x, auto y) { return less(y, x); })(
                in, params);
          if (d == "ge")
            return predicate_loops<all_dtypes, bool>(
                [](auto x, auto y) { return less_or_equal(y, x); })(in, params);
          throw ValueError("cmp: there is no direction '" + d + "'",
                           "choose eq, ne, lt, le, gt or ge");
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call(w.params().text("direction"), w.numbers());
        })
        .rule<Jvp>(zero_derivative())
        .rule<Samples>([] {
          std::vector<Sample> samples;
          for (const char* direction : {"eq", "ne", "lt", "le", "gt", "ge"})
            samples.push_back({{{{{2, 3}, DType::float64}}, {{{2, 3}, DType::float64}}},
                               {{"direction", std::string(direction)}}});
          return samples;
        });
Array lax::eq(Operand x, Operand y) { return compare("eq", x, y); }
Array lax::ne(Operand x, Operand y) { return compare("ne", x, y); }
Array lax::lt(Operand x, Operand y) { return compare("lt", x, y); }
Array lax::le(Operand x, Operand y) { return compare("le", x, y); }
Array lax::gt(Operand x, Operand y) { return compare("gt", x, y); }
Array lax::ge(Operand x, Operand y) { return compare("ge", x, y); }

namespace {

#if defined(__AVX2__)
// Masks of 32 bytes, whose bits are all set where the bool is true. Written out because g++ widens
// bools one by one.
template <class T>
__m256i lanes_where(const bool* pred) {
  const __m256i zero = _mm256_setzero_si256();
  if constexpr (sizeof(T) == 1)
    return _mm256_sub_epi8(zero, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pred)));
  const __m128i* bytes = reinterpret_cast<const __m128i*>(pred);
  if constexpr (sizeof(T) == 2)
    return _mm256_sub_epi16(zero, _mm256_cvtepu8_epi16(_mm_loadu_si128(bytes)));
  if constexpr (sizeof(T) == 4)
    return _mm256_sub_epi32(zero, _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes)));
  if constexpr (sizeof(T) == 8)
    return _mm256_sub_epi64(zero, _mm256_cvtepu8_epi64(_mm_loadu_si32(pred)));
}
#endif

template <class T>
void select_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const bool* pred = static_cast<const bool*>(inputs[0]);
  const T *yes = static_cast<const T*>(inputs[1]), *no = static_cast<const T*>(inputs[2]);
  T* out = static_cast<T*>(output);
  std::int64_t i = 0;
#if defined(__AVX2__)
  if constexpr (sizeof(T) <= 8) {
    constexpr std::int64_t width = 32 / sizeof(T);
    auto load = [](const T* src) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
    };
    for (; i + width <= n; i += width)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(out + i),
          _mm256_blendv_epi8(load(no + i), load(yes + i), lanes_where<T>(pred + i)));
  }
#endif
  for (; i < n; ++i) out[i] = pred[i] ? yes[i] : no[i];
}

}  // namespace

constinit const Primitive select_p{"select"};
static const auto select_def =
    define(select_p,
           "Elements of the second operand where the first, bool, is true, of the third elsewhere.")
        .family(elementwise(all_dtypes | stored_dtypes, 3))
        .takes_stored()
        .rule<Motion>(Motion::cheap)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_dtype("select: the predicate", inputs[0], boolean);
          Aval pred = inputs[0], aval = inputs[1];
          if (inputs[1].dtype != inputs[2].dtype)
            throw DtypeError("select: branches have dtypes " +
                                 std::string(name_of(inputs[1].dtype)) + " and " +
                                 std::string(name_of(inputs[2].dtype)),
                             "convert one with astype, or use where, which promotes");
          for (const Aval& input : inputs) {
            if (input.rank() == 0) continue;
            if (aval.rank() == 0) aval.shape = input.shape;
            if (!(aval.shape == input.shape))
              throw ShapeError("select: operands have shapes (" + inputs[0].shape.to_string() +
                                   "), (" + inputs[1].shape.to_string() + ") and (" +
                                   inputs[2].shape.to_string() + ")",
                               "give equal shapes, or use where, which broadcasts");
          }
          aval.weak = inputs[1].weak && inputs[2].weak;
          return std::vector<Aval>{aval};
        })
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          switch (size_of(in[1])) {
            case 1:
              return {&select_loop<std::uint8_t>};
            case 2:
              return {&select_loop<std::uint16_t>};
            case 4:
              return {&select_loop<std::uint32_t>};
            case 8:
              return {&select_loop<std::uint64_t>};
            default:
              return {&select_loop<complex128>};
          }
        })
        .rule<Autocast>(Autocast::follows)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("select", w.numbers(1));
        })
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params&) -> Tangents {
          // Tangents may have rank 0 where the result does not: both are broadcast to its shape.
          const Array yes = broadcast_tangent(tangents[1], outputs[0].aval()).instantiate();
          const Array no = broadcast_tangent(tangents[2], outputs[0].aval()).instantiate();
          return {lax::select(primals[0], yes, no)};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          const Array& ct = cotangents[0].array();
          const Array zero = lax::zeros_like(ct.aval());
          Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval()),
                          Tangent(inputs[2].aval())};
          if (inputs[1].is_linear())
            result[1] =
                unbroadcast_cotangent(lax::select(inputs[0].known(), ct, zero), inputs[1].aval());
          if (inputs[2].is_linear())
            result[2] =
                unbroadcast_cotangent(lax::select(inputs[0].known(), zero, ct), inputs[2].aval());
          return result;
        })
        .rule<Samples>([] {
          const Sample::Input pred{{{2, 3}, DType::bool_}, Values::boolean},
              x{{{2, 3}, DType::float64}};
          const Sample::Input scalar{{{}, DType::bool_}, Values::boolean};
          return std::vector<Sample>{{{pred, x, x}, {}}, {{scalar, x, x}, {}}};
        });
Array lax::select(Operand pred, Operand on_true, Operand on_false) {
  return bind(select_p, {pred, on_true, on_false});
}
}  // namespace plait
