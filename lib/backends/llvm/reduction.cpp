// The operations of reduce, emitted. See reduction.h.
// SPDX-License-Identifier: Apache-2.0
#include "reduction.h"

#include <plait/primitives/kernels.h>

#include <limits>

namespace plait::llvm {
namespace {

// The bits of the value that changes nothing, for an element or an accumulator of 16-bit floats.
std::uint64_t identity_bits(const std::string& kind, DType dtype) {
  return visit_dtype(dtype, [&](auto element) -> std::uint64_t {
    using T = plait::detail::Compute<decltype(element)>;
    if constexpr (is_complex_v<T>) {
      throw InternalError("llvm: a reduction of complex numbers");
    } else if constexpr (std::is_same_v<T, bool>) {
      return kind == "and" || kind == "min" ? 1 : 0;
    } else {
      using Limits = std::numeric_limits<T>;
      const T largest = Limits::has_infinity ? Limits::infinity() : Limits::max();
      const T lowest = Limits::has_infinity ? T(-Limits::infinity()) : Limits::lowest();
      if (kind == "and") return ~std::uint64_t(0) >> (64 - 8 * sizeof(T));
      const T value = kind == "prod"  ? T(1)
                      : kind == "max" ? lowest
                      : kind == "min" ? largest
                                      : T(0);
      return std::bit_cast<BitsOf<T>>(value);
    }
  });
}

DType compute_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

Builder here() { return Emitter::current().builder(); }

}  // namespace

Value Reduction::identity(int count) const {
  const Emitter& emitter = Emitter::current();
  const DType compute = compute_dtype(dtype_);
  const int bits = is_bool(dtype_) ? 1 : 8 * int(size_of(compute));
  return emitter.splat_bits(is_bool(dtype_) ? emitter.integer(1) : emitter.element(compute),
                            identity_bits(kind_, dtype_), bits, count);
}

Value Reduction::start() const { return identity(width); }

Value Reduction::take(Value accumulators, const Register& value, int count) const {
  const Emitter& emitter = Emitter::current();
  Value v = value.v;
  if (count < emitter.lanes()) {
    Value exists[64];
    for (int i = 0; i < emitter.lanes(); ++i)
      exists[i] = api().ConstInt(emitter.integer(1), i < count, false);
    v = api().BuildSelect(here(), api().ConstVector(exists, unsigned(emitter.lanes())), v,
                          identity(emitter.lanes()), "");
  }
  for (int first = 0; first < count; first += width)
    accumulators =
        combine(accumulators, emitter.lanes() == width ? v : emitter.slice(v, first, width));
  return accumulators;
}

Value Reduction::finish(Value accumulators) const {
  const Emitter& emitter = Emitter::current();
  for (int half = width / 2; half > 0; half /= 2)
    accumulators =
        combine(emitter.slice(accumulators, 0, half), emitter.slice(accumulators, half, half));
  return emitter.extract(accumulators, 0);
}

Value Reduction::combine_pairwise(std::span<const Value> numbers) const {
  if (numbers.size() == 1) return numbers[0];
  const std::size_t half = numbers.size() / 2;
  const Value a = combine_pairwise(numbers.first(half));
  return combine(a, combine_pairwise(numbers.subspan(half)));
}

Register Reduction::result(Value number) const {
  return {rounded(dtype_, Emitter::current().splat(number)), dtype_};
}

Value Reduction::combine(Value a, Value b) const {
  const bool is_float = is_floating(dtype_);
  if (kind_ == "and" || (is_bool(dtype_) && kind_ == "min"))
    return api().BuildAnd(here(), a, b, "");
  if (kind_ == "or" || (is_bool(dtype_) && kind_ == "max")) return api().BuildOr(here(), a, b, "");
  const detail::Kind kind = is_float                    ? detail::Kind::floating
                            : is_signed_integer(dtype_) ? detail::Kind::signed_integer
                                                        : detail::Kind::unsigned_integer;
  if (kind_ == "sum") return detail::binary(detail::Op::add, kind, a, b);
  if (kind_ == "prod") return detail::binary(detail::Op::mul, kind, a, b);
  const auto better = kind_ == "max" ? detail::Compare::ge : detail::Compare::le;
  const Value chosen = detail::choose(detail::compare(better, kind, a, b), a, b);
  if (!is_float) return chosen;
  return detail::choose(detail::compare(detail::Compare::ne, kind, a, a), a, chosen);  // NaN wins
}

}  // namespace plait::llvm
