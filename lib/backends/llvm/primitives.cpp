// One row for each primitive that is emitted: the expression of its block in lib/primitives, over
// lanes. See NOTE: [emitted mathematics]. Tests compare every row with the reference, bit by bit.
// SPDX-License-Identifier: Apache-2.0
#include "primitives.h"

#include "codegen/split_complex.h"
#include "random_bits.h"
#include "trigonometry.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>

#include <unordered_map>

namespace plait::llvm {
namespace {

using Registers = std::span<const Register>;
using Emit = std::function<Register(Registers, const Params&, DType output)>;

Builder here() { return Emitter::current().builder(); }
Type vector_of(DType dtype) {
  const Emitter& emitter = Emitter::current();
  return emitter.vector(emitter.element(dtype));
}

// The float32 lanes of a value of a 16-bit dtype, rounded to it.
Value round_to_half(DType dtype, Value v) {
  const Emitter& emitter = Emitter::current();
  if (dtype == DType::float16) {
    const Type half = emitter.vector(api().HalfTypeInContext(emitter.context()));
    return api().BuildFPExt(here(), api().BuildFPTrunc(here(), v, half, ""),
                            vector_of(DType::float32), "");
  }
  // As bfloat16's constructor: half to even, NaN quieted.
  const auto bits = to_bits(Lane<float>::of(v));
  using Bits = Lane<std::uint32_t>;
  const Bits rounded = bits + Bits(0x7fff) + (shift_right(bits, 16) & Bits(1));
  const Mask nan = (bits & Bits(0x7fffffffu)) > Bits(0x7f800000u);
  const Bits kept = select(nan, bits | Bits(0x400000u), rounded) & Bits(0xffff0000u);
  return from_bits(kept).v;
}

template <class T>
Lane<T> lane(const Register& value) {
  return Lane<T>::of(value.v);
}
bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// f over the lanes of the operands' dtype, which must be of a set; the result has that dtype too.
template <DTypes types, class F>
Emit same(F f) {
  return [f](Registers in, const Params&, DType) -> Register {
    const DType dtype = in[0].dtype;
    auto apply = [&]<class T>() {
      if constexpr (std::is_invocable_v<F, Lane<T>>)
        return f(lane<T>(in[0])).v;
      else
        return f(lane<T>(in[0]), lane<T>(in[1])).v;
    };
    return visit_dtype(dtype, [&](auto element) -> Register {
      using T = decltype(element);
      if constexpr (!types.has(dtype_of<T>()) || std::is_same_v<T, bool>)
        throw InternalError("llvm: a primitive is emitted for a dtype that it has not");
      else if constexpr (plait::detail::is_half<T>)
        return { round_to_half(dtype, apply.template operator()<float>()), dtype };
      else
        return { apply.template operator()<T>(), dtype };
    });
  };
}

// The same, of integers and bools by their bits.
template <class F>
Emit bitwise(F f) {
  return [f](Registers in, const Params&, DType) -> Register {
    return {in.size() == 1 ? f(in[0].v, nullptr) : f(in[0].v, in[1].v), in[0].dtype};
  };
}

template <class F>
Mask compare_lanes(const Register& x, const Register& y, F f) {
  return visit_dtype(x.dtype, [&](auto element) -> Mask {
    using T = decltype(element);
    if constexpr (is_complex_v<T>)
      throw InternalError("llvm: a comparison of complex numbers");
    else if constexpr (std::is_same_v<T, bool>)
      return f(lane<std::uint8_t>(x), lane<std::uint8_t>(y));  // one bit, unsigned
    else
      return f(lane<plait::detail::Compute<T>>(x), lane<plait::detail::Compute<T>>(y));
  });
}

Register compare(Registers in, const Params& params, DType) {
  const std::string& d = params.text("direction");
  auto result = [&](auto f) { return Register{compare_lanes(in[0], in[1], f).v, DType::bool_}; };
  if (d == "eq") return result([](auto x, auto y) { return x == y; });
  if (d == "ne") return result([](auto x, auto y) { return x != y; });
  if (d == "lt") return result([](auto x, auto y) { return x < y; });
  if (d == "le") return result([](auto x, auto y) { return x <= y; });
  if (d == "gt") return result([](auto x, auto y) { return x > y; });
  return result([](auto x, auto y) { return x >= y; });
}

// Of floats NaN when either is; of bools or and and.
template <bool larger>
Register extremum(Registers in, const Params& params, DType output) {
  if (is_bool(in[0].dtype))
    return {(larger ? api().BuildOr : api().BuildAnd)(here(), in[0].v, in[1].v, ""), DType::bool_};
  return same<real_numbers>([](auto x, auto y) {
    if constexpr (std::is_floating_point_v<ElementOf<decltype(x)>>)
      return select(!(x == x), x, select(larger ? y <= x : y >= x, x, y));
    else
      return select(larger ? x > y : x < y, x, y);
  })(in, params, output);
}

// Squaring from the low bit up, as the loop of integer_pow.
Register integer_power(Registers in, const Params& params, DType output) {
  const std::int64_t y = params.integer("y");
  return same<real_numbers>([y](auto x) {
    using V = decltype(x);
    std::optional<V> result;
    V square = x;
    for (std::int64_t n = y < 0 ? -y : y; n > 0; n >>= 1) {
      if (n & 1) result = result ? *result * square : square;
      if (n > 1) square = square * square;
    }
    const V power = result.value_or(V(ElementOf<V>(1)));
    if constexpr (std::is_floating_point_v<ElementOf<V>>)
      return y < 0 ? V(ElementOf<V>(1)) / power : power;
    else
      return power;
  })(in, params, output);
}

Register choose(Registers in, const Params&, DType) {
  return {api().BuildSelect(here(), in[0].v, in[1].v, in[2].v, ""), in[1].dtype};
}

DType compute_dtype(DType dtype) { return is_half(dtype) ? DType::float32 : dtype; }

// Integers of any width, and bools, as another type of number.
Value cast_integer(const Register& x, DType to) {
  const Type type = vector_of(compute_dtype(to));
  const bool is_signed = is_signed_integer(x.dtype);
  if (is_floating(to) && is_bool(x.dtype)) {
    const DType compute = compute_dtype(to);
    const std::uint64_t one = compute == DType::float64 ? std::bit_cast<std::uint64_t>(1.0)
                                                        : std::bit_cast<std::uint32_t>(1.0f);
    return api().BuildSelect(here(), x.v, detail::splat_constant(compute, one),
                             api().ConstNull(type), "");
  }
  if (is_floating(to))
    return (is_signed ? api().BuildSIToFP : api().BuildUIToFP)(here(), x.v, type, "");
  const std::int64_t from_size = is_bool(x.dtype) ? 0 : size_of(x.dtype);
  if (size_of(to) == from_size) return x.v;
  if (size_of(to) < from_size) return api().BuildTrunc(here(), x.v, type, "");
  return (is_signed ? api().BuildSExt : api().BuildZExt)(here(), x.v, type, "");
}

// A float as an integer: truncated, saturated, and 0 for NaN. libLLVM's own intrinsic does it
// number by number, where numbers are moved between the ends of the integer's range first, lanes do
// it.
template <class T>
Value saturated(Lane<T> x, DType to) {
  const bool is_signed = is_signed_integer(to);
  const int bits = 8 * int(size_of(to)) - is_signed;
  const T end = std::ldexp(T(1), bits), last = std::nextafter(end, T(0));
  const Lane<T> low(is_signed ? -end : T(0)), high(last);
  const Lane<T> moved = select(x > low, select(x < high, x, high), low);
  const Type type = vector_of(to);
  Value whole = (is_signed ? api().BuildFPToSI : api().BuildFPToUI)(here(), moved.v, type, "");
  if (bits > std::numeric_limits<T>::digits) {  // the greatest integer is no float
    const Emitter& emitter = Emitter::current();
    const Value greatest = emitter.splat_bits(
        emitter.element(to), bits == 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << bits) - 1,
        8 * int(size_of(to)));
    whole = api().BuildSelect(here(), (x >= Lane<T>(end)).v, greatest, whole, "");
  }
  return api().BuildSelect(here(), (x == x).v, whole, api().ConstNull(type), "");
}

Value cast_float(const Register& x, DType to) {
  const Emitter& emitter = Emitter::current();
  const DType from = compute_dtype(x.dtype);
  if (is_integer(to) && emitter.lanes() > 1)
    return from == DType::float64 ? saturated(Lane<double>::of(x.v), to)
                                  : saturated(Lane<float>::of(x.v), to);
  if (is_integer(to))
    return emitter.intrinsic(is_signed_integer(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                             {vector_of(to), api().TypeOf(x.v)}, {x.v});
  const DType compute = compute_dtype(to);
  if (from == compute) return x.v;
  return compute == DType::float64 ? detail::to_double(x.v) : detail::to_float(x.v);
}

Register cast(Registers in, const Params&, DType output) {
  const Register& x = in[0];
  if (x.dtype == output) return x;
  if (is_bool(output)) {
    const Register zero{api().ConstNull(api().TypeOf(x.v)), x.dtype};
    return {compare_lanes(x, zero, [](auto a, auto b) { return a != b; }).v, output};
  }
  Value v = is_floating(x.dtype) ? cast_float(x, output) : cast_integer(x, output);
  if (is_half(output)) v = round_to_half(output, v);
  return {v, output};
}

Register bitcast(Registers in, const Params&, DType output) {
  return {api().BuildBitCast(here(), in[0].v, vector_of(output), ""), output};
}

// The quotient of lanes that processors divide one by one. One of float64 is within 2^-53 of it,
// and it is at least 2^-32 away from an integer that it is not.
template <class T>
Lane<T> quotient_by_floats(Lane<T> x, Lane<T> y) {
  const Emitter& emitter = Emitter::current();
  const Type wide = vector_of(DType::float64);
  const auto widened = [&](Lane<T> v) {
    return (std::is_signed_v<T> ? api().BuildSIToFP : api().BuildUIToFP)(here(), v.v, wide, "");
  };
  const Value exact = api().BuildFDiv(here(), widened(x), widened(y), "");
  const Value whole = api().BuildFPToSI(here(), exact, emitter.vector(emitter.integer(32)), "");
  if constexpr (sizeof(T) == 4) return Lane<T>::of(whole);
  return Lane<T>::of(api().BuildTrunc(here(), whole, vector_of(dtype_of<T>()), ""));
}

// Integers divided as div and rem say: what the processor refuses is replaced before and after.
template <bool is_quotient>
Register divide(Registers in, const Params& params, DType output) {
  return same<integers>([](auto x, auto y) {
    using T = ElementOf<decltype(x)>;
    using X = decltype(x);
    const X zero(T(0)), one(T(1));
    const Mask by_zero = y == zero;
    const auto apply = [&](auto build, X divisor) -> X {
      if constexpr (sizeof(T) < 4 || std::is_same_v<T, std::int32_t>)
        if (Emitter::current().lanes() > 1) {
          const X quotient = quotient_by_floats(x, divisor);
          return is_quotient ? quotient : x - quotient * divisor;
        }
      return X::of((api().*build)(here(), x.v, divisor.v, ""));
    };
    if constexpr (std::is_signed_v<T>) {
      const Mask by_minus_one = y == X(T(-1));
      const X divisor = select(by_zero | by_minus_one, one, y);
      if constexpr (is_quotient)
        return select(by_zero, zero, select(by_minus_one, -x, apply(&Api::BuildSDiv, divisor)));
      else
        return select(by_zero | by_minus_one, zero, apply(&Api::BuildSRem, divisor));
    } else {
      return select(
          by_zero, zero,
          apply(is_quotient ? &Api::BuildUDiv : &Api::BuildURem, select(by_zero, one, y)));
    }
  })(in, params, output);
}
Register divide_numbers(Registers in, const Params& params, DType output) {
  if (is_integer(output)) return divide<true>(in, params, output);
  return same<floating>([](auto x, auto y) { return x / y; })(in, params, output);
}

// By counts that may be as large as the width, which the processor refuses: every bit is shifted
// out.
Register shift(Registers in, const Params& params, DType output) {
  const std::string& kind = params.text("kind");
  return same<integers>([&kind](auto x, auto y) {
    using X = decltype(x);
    using T = ElementOf<X>;
    const X width(T(8 * sizeof(T))), zero(T(0));
    const Mask is_all =
        detail::compare(detail::Compare::ge, detail::Kind::unsigned_integer, y.v, width.v);
    if (kind == "right_arithmetic")
      return X::of(api().BuildAShr(here(), x.v, select(is_all, width - X(T(1)), y).v, ""));
    const Value count = select(is_all, zero, y).v;
    const Value shifted =
        (kind == "left" ? api().BuildShl : api().BuildLShr)(here(), x.v, count, "");
    return select(is_all, zero, X::of(shifted));
  })(in, params, output);
}

Register multiply_and_add(Registers in, const Params&, DType output) {
  const Value sum = detail::fused_multiply_add(in[0].v, in[1].v, in[2].v);
  return {is_half(output) ? round_to_half(output, sum) : sum, output};
}

Register random_words(Registers in, const Params&, DType output) {
  using Word = std::uint32_t;
  const auto [x, y] =
      threefry(lane<Word>(in[0]), lane<Word>(in[1]), lane<Word>(in[2]), lane<Word>(in[3]));
  return {random_word(output, x, y), output};
}

struct Row {
  DTypes types;  // of the first operand
  Emit emit;
};

constexpr DTypes bits = integers | boolean;
constexpr DTypes f = floating;

using Rows = std::unordered_map<int, Row>;  // by the primitive's index

const Rows& rows() {
  auto binary_bits = [](auto build) {
    return bitwise([build](Value x, Value y) { return (api().*build)(here(), x, y, ""); });
  };
  static const Rows& rows = *new Rows{
      {neg_p.index(), {real_numbers, same<real_numbers>([](auto x) { return -x; })}},
      {abs_p.index(), {real_numbers, same<real_numbers>([](auto x) {
                         using T = ElementOf<decltype(x)>;
                         if constexpr (std::is_floating_point_v<T>)
                           return math::abs(x);
                         else if constexpr (std::is_signed_v<T>)
                           return select(x < decltype(x)(T(0)), -x, x);
                         else
                           return x;
                       })}},
      {floor_p.index(), {f, same<f>([](auto x) { return floor(x); })}},
      {ceil_p.index(), {f, same<f>([](auto x) { return ceil(x); })}},
      {round_p.index(), {f, same<f>([](auto x) { return round(x); })}},
      {sin_p.index(), {f, same<f>([](auto x) { return math::sin(x); })}},
      {cos_p.index(), {f, same<f>([](auto x) { return math::cos(x); })}},
      {sqrt_p.index(), {f, same<f>([](auto x) { return sqrt(x); })}},
      {exp_p.index(), {f, same<f>([](auto x) { return math::exp(x); })}},
      {expm1_p.index(), {f, same<f>([](auto x) { return math::expm1(x); })}},
      {log_p.index(), {f, same<f>([](auto x) { return math::log(x); })}},
      {log1p_p.index(), {f, same<f>([](auto x) { return math::log1p(x); })}},
      {tanh_p.index(), {f, same<f>([](auto x) { return math::tanh(x); })}},
      {erf_p.index(), {f, same<f>([](auto x) { return math::erf(x); })}},
      {erf_inv_p.index(), {f, same<f>([](auto x) { return math::erf_inv(x); })}},
      {integer_pow_p.index(), {real_numbers, integer_power}},
      {cast_p.index(), {real_numbers | boolean, cast}},
      {bitcast_p.index(), {integers | dtypes<float, double>(), bitcast}},
      {not_p.index(),
       {bits, bitwise([](Value x, Value) { return api().BuildNot(here(), x, ""); })}},
      {add_p.index(), {real_numbers, same<real_numbers>([](auto x, auto y) { return x + y; })}},
      {sub_p.index(), {real_numbers, same<real_numbers>([](auto x, auto y) { return x - y; })}},
      {mul_p.index(), {real_numbers, same<real_numbers>([](auto x, auto y) { return x * y; })}},
      {div_p.index(), {real_numbers, divide_numbers}},
      {rem_p.index(), {integers, divide<false>}},
      {pow_p.index(), {f, same<f>([](auto x, auto y) { return math::pow(x, y); })}},
      {atan2_p.index(), {f, same<f>([](auto x, auto y) { return math::atan2(x, y); })}},
      {max_p.index(), {real_numbers | boolean, extremum<true>}},
      {min_p.index(), {real_numbers | boolean, extremum<false>}},
      {and_p.index(), {bits, binary_bits(&Api::BuildAnd)}},
      {or_p.index(), {bits, binary_bits(&Api::BuildOr)}},
      {xor_p.index(), {bits, binary_bits(&Api::BuildXor)}},
      {shift_p.index(), {integers, shift}},
      {cmp_p.index(), {real_numbers | boolean, compare}},
      {select_p.index(), {boolean, choose}},
      {fma_p.index(), {f, multiply_and_add}},
      {threefry_p.index(), {dtypes<std::uint32_t>(), random_words}},
  };
  return rows;
}

const Row* find_row(const Primitive& primitive, DType first, const Params& params) {
  const auto found = rows().find(primitive.index());
  if (found == rows().end() || !found->second.types.has(first)) return nullptr;
  if (primitive == bitcast_p) {
    const DType to = params.get<DType>("dtype");
    if (is_half(to) || is_bool(to)) return nullptr;
  }
  return &found->second;
}

}  // namespace

bool may_reduce(const Equation& reduction, DType dtype) {
  return !is_complex(dtype) || reduction.params.text("kind") == "sum";
}

bool can_count(DType dtype) { return is_integer(dtype) || is_floating(dtype); }

Value to_memory(const Register& value) {
  const Emitter& emitter = Emitter::current();
  const Type type = vector_of(value.dtype);
  if (is_bool(value.dtype)) return api().BuildZExt(here(), value.v, type, "");
  if (value.dtype == DType::float16) {
    const Type half = emitter.vector(api().HalfTypeInContext(emitter.context()));
    return api().BuildBitCast(here(), api().BuildFPTrunc(here(), value.v, half, ""), type, "");
  }
  if (value.dtype == DType::bfloat16)
    return api().BuildTrunc(here(), shift_right(to_bits(lane<float>(value)), 16).v, type, "");
  return value.v;
}

Register from_memory(Value vector, DType dtype) {
  const Emitter& emitter = Emitter::current();
  if (is_bool(dtype))
    return {(lane<std::uint8_t>({vector, dtype}) != Lane<std::uint8_t>(0)).v, dtype};
  if (dtype == DType::float16) {
    const Type half = emitter.vector(api().HalfTypeInContext(emitter.context()));
    return {api().BuildFPExt(here(), api().BuildBitCast(here(), vector, half, ""),
                             vector_of(DType::float32), ""),
            dtype};
  }
  if (dtype == DType::bfloat16) {
    const Value wide = api().BuildZExt(here(), vector, vector_of(DType::uint32), "");
    return {from_bits(shift_left(Lane<std::uint32_t>::of(wide), 16)).v, dtype};
  }
  return {vector, dtype};
}

Value first_lanes(int count) {
  const Emitter& emitter = Emitter::current();
  Value bits[64];
  for (int i = 0; i < emitter.lanes(); ++i)
    bits[i] = api().ConstInt(emitter.integer(1), i < count, false);
  return api().ConstVector(bits, unsigned(emitter.lanes()));
}

namespace {

Value alignment_of(DType dtype) {
  return api().ConstInt(Emitter::current().integer(32), std::uint64_t(size_of(dtype)), false);
}

Value masked_load(DType dtype, Value address, Value mask) {
  const Emitter& emitter = Emitter::current();
  const Type type = vector_of(dtype);
  return emitter.intrinsic("llvm.masked.load", {type, emitter.pointer()},
                           {address, alignment_of(dtype), mask, api().ConstNull(type)});
}

}  // namespace

Register load_lanes(DType dtype, Value address, int count) {
  const Emitter& emitter = Emitter::current();
  const Type type = vector_of(dtype);
  if (count == emitter.lanes())
    return from_memory(emitter.load(type, address, int(size_of(dtype))), dtype);
  return from_memory(masked_load(dtype, address, first_lanes(count)), dtype);
}

void store_lanes(const Register& value, Value address, int count, bool streams) {
  Emitter& emitter = Emitter::current();
  const Value vector = to_memory(value);
  if (count == emitter.lanes())
    emitter.store(vector, address, int(size_of(value.dtype)), streams);
  else
    emitter.intrinsic("llvm.masked.store", {vector_of(value.dtype), emitter.pointer()},
                      {vector, address, alignment_of(value.dtype), first_lanes(count)});
}

Value rounded(DType dtype, Value v) { return is_half(dtype) ? round_to_half(dtype, v) : v; }

Register constant_of(const Literal& literal) {
  const Buffer buffer = Array::literal(literal).buffer();
  const int bytes = int(size_of(literal.dtype));
  std::uint64_t bits = 0;
  std::memcpy(&bits, buffer.data(), bytes);
  const Emitter& emitter = Emitter::current();
  return from_memory(emitter.splat_bits(emitter.element(literal.dtype), bits, 8 * bytes),
                     literal.dtype);
}

bool is_elementwise(const Equation& equation, std::span<const Aval> inputs,
                    std::span<const Aval> outputs) {
  if (!Pointwise::table().find(*equation.primitive) || inputs.size() > Emitter::most_operands)
    return false;
  const bool splits = codegen::is_split(*equation.primitive, equation.params);
  auto fits = [&](const Aval& aval) {
    return (!is_complex(aval.dtype) || splits) && aval.stack == 0 &&
           num_elements(aval.shape.to_sizes()) > 0;
  };
  return std::all_of(inputs.begin(), inputs.end(), fits) &&
         std::all_of(outputs.begin(), outputs.end(), fits);
}

Register lower(const Equation& equation, std::span<const Register> inputs, DType output) {
  const Primitive& primitive = *equation.primitive;
  if (const Row* row = find_row(primitive, inputs[0].dtype, equation.params))
    return row->emit(inputs, equation.params, output);
  // The reference's loop, for as many elements as there are lanes.
  Emitter& emitter = Emitter::current();
  std::vector<DType> dtypes;
  for (const Register& input : inputs) dtypes.push_back(input.dtype);
  const Chunk chunk = rule<Pointwise>(primitive)(dtypes, equation.params);
  if (!chunk.loop)
    throw InternalError("`" + std::string(primitive.name()) + "` has no loop for " +
                        std::string(name_of(dtypes[0])));
  const Value pointers = emitter.vector_memory(0), result = emitter.vector_memory(1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value memory = emitter.vector_memory(int(i) + 2);
    emitter.store(to_memory(inputs[i]), memory, 64);
    emitter.store(memory, emitter.at(emitter.pointer(), pointers, emitter.constant(i)), 8);
  }
  const Type pointer = emitter.pointer(), i64 = emitter.integer(64);
  emitter.call(
      loop_of(equation, dtypes, output), {pointer, pointer, i64, i64},
      {pointers, result, emitter.constant(emitter.lanes()), emitter.constant(chunk.argument)});
  return from_memory(emitter.load(vector_of(output), result, 64), output);
}

}  // namespace plait::llvm
