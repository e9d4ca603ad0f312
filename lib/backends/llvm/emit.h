// Writing IR: one kernel's module under construction, and Lane<T>, a register of values of T, whose
// operators emit the instruction that they name.
//
// NOTE: [emitted mathematics] base/math is written once over V, which is a scalar or a Pack. Lane
// is a third V: math::exp(Lane<float>) emits the operations that math::exp(Pack<float, 8>) runs,
// each of which is exactly rounded or bitwise, so that a kernel has the bits of eager evaluation at
// any width of registers, by construction. What has no lane-wise form (reductions of huge angles,
// fmod) is called: see primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/math/blocks.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jit.h"

namespace plait::llvm {

// A module with one function, `void(void* const* memory, int64_t begin, int64_t end)`, others of
// the same type that it may hand on, and the place where instructions go. While it lives, Lane's
// operators on this thread write to it.
class Emitter {
 public:
  explicit Emitter(int lanes);
  ~Emitter();
  Emitter(const Emitter&) = delete;
  static Emitter& current();

  int lanes() const { return lanes_; }
  // Of what is written from here on; at most most_changed_lanes. Returns how many there were.
  int set_lanes(int lanes) { return std::exchange(lanes_, lanes); }
  Builder builder() const { return builder_; }
  Context context() const { return context_; }
  Object compile() const;
  std::string text() const;

  // Types. In registers bools are bits; 16-bit floats are computed in float32.
  Type element(DType dtype) const;  // in memory: integers of its size for bools and 16-bit floats
  // One lane is a scalar.
  Type vector(Type element) const {
    return lanes_ == 1 ? element : api().VectorType(element, unsigned(lanes_));
  }
  Type integer(int bits) const { return api().IntTypeInContext(context_, unsigned(bits)); }
  Type pointer() const { return api().PointerTypeInContext(context_, 0); }

  Value constant(std::int64_t value) const;  // int64
  Value splat(Value scalar) const;
  // A constant of any type in every lane of a vector, which has as many as the kernel or `count`.
  Value splat_bits(Type type, std::uint64_t bits, int num_bits, int count = 0) const;
  Value parameter(int index) const { return api().GetParam(written_.function, unsigned(index)); }
  // Another function, which body writes: a pointer to it.
  template <class Body>
  Value function(const Body& body) {
    const Written outer = begin_function("plait_share", internal_linkage);
    body();
    return end_function(outer);
  }

  Value add(Value a, Value b) const { return api().BuildAdd(builder_, a, b, ""); }
  Value multiply(Value a, Value b) const { return api().BuildMul(builder_, a, b, ""); }
  // pointer + index elements of a type.
  Value at(Type type, Value pointer, Value index) const;
  Value load(Type type, Value pointer, int alignment) const;
  // streams: past the caches, to memory that is aligned for it; return_void then orders these
  // stores before whatever tells others of them.
  void store(Value value, Value pointer, int alignment, bool streams = false);
  void return_void();
  // Asks the second-level cache for the line at a place, which need not be memory. The first-level
  // one would be asked for no more lines at a time than it waits for: a tenth slower.
  void prefetch(Value pointer) const;
  Value is_less(Value a, Value b) const;  // signed integers
  Value is_unequal(Value a, Value b) const;
  Value is_outside(Value index, std::int64_t low, std::int64_t high) const;  // an int64
  Value smaller(Value a, Value b) const {
    return api().BuildSelect(builder_, is_less(a, b), a, b, "");
  }
  // Memory of the function's frame.
  Value frame_memory(Type element, std::int64_t count) const;
  // The same for one vector of elements of up to 8 bytes, or pointers to all operands of a call,
  // which calls share.
  static constexpr int most_operands = 4, most_changed_lanes = 64;
  Value vector_memory(int slot);
  Value any(Value mask) const;  // whether a lane is true
  Block here() const { return api().GetInsertBlock(builder_); }
  Value merge(Value first, Block from_first, Value second, Block from_second) const;
  // Lanes [first, first + count) of a vector, and one of them.
  Value slice(Value v, int first, int count) const;
  Value extract(Value v, int lane) const;
  Value insert(Value v, Value scalar, int lane) const;
  Value reversed(Value v) const;
  Value shuffle(Value a, Value b,
                std::span<const int> lanes) const;  // those of b follow those of a
  Value ramp(Value first) const;                    // first, first + 1, ... of int64

  Value intrinsic(const char* name, std::initializer_list<Type> types,
                  std::initializer_list<Value> arguments) const;
  // A call of a function that functions.h names.
  void call(const std::string& name, std::initializer_list<Type> types,
            std::initializer_list<Value> arguments);

  // for (i = from; i < to; i += step): body(i). Runs body's emission once.
  template <class Body>
  void loop(Value from, Value to, std::int64_t step, const Body& body) {
    const LoopBlocks blocks = begin_loop(from, to);
    body(blocks.index);
    end_loop(blocks, step);
  }
  // The same with values that every iteration takes and gives to the next; returns the last ones.
  template <class Body>
  std::vector<Value> loop_carrying(Value from, Value to, std::int64_t step,
                                   std::vector<Value> values, const Body& body) {
    const Block before = here();
    const LoopBlocks blocks = begin_loop(from, to);
    std::vector<Value> carried;
    for (Value value : values) carried.push_back(start_phi(value, before));
    const std::vector<Value> next = body(blocks.index, carried);
    const Block latch = here();
    for (std::size_t i = 0; i < next.size(); ++i) add_incoming(carried[i], next[i], latch);
    end_loop(blocks, step);
    for (std::size_t i = 0; i < next.size(); ++i)
      values[i] = merge(values[i], before, next[i], latch);
    return values;
  }
  // while (condition(values)) values = body(values): returns the last ones.
  template <class Condition, class Body>
  std::vector<Value> while_carrying(std::vector<Value> values, const Condition& condition,
                                    const Body& body) {
    const Block before = here(), head = new_block(), then = new_block(), after = new_block();
    go_to(head, head);
    for (Value& value : values) value = start_phi(value, before);
    api().BuildCondBr(builder_, condition(values), then, after);
    api().PositionBuilderAtEnd(builder_, then);
    const std::vector<Value> next = body(values);
    for (std::size_t i = 0; i < next.size(); ++i) add_incoming(values[i], next[i], here());
    go_to(head, after);
    return values;
  }
  // What one of two gives.
  template <class Then, class Else>
  std::vector<Value> choose(Value condition, const Then& first, const Else& second) {
    const Block then = new_block(), otherwise = new_block(), after = new_block();
    api().BuildCondBr(builder_, condition, then, otherwise);
    api().PositionBuilderAtEnd(builder_, then);
    std::vector<Value> values = first();
    const Block from_first = here();
    go_to(after, otherwise);
    const std::vector<Value> others = second();
    const Block from_second = here();
    go_to(after, after);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = merge(values[i], from_first, others[i], from_second);
    return values;
  }
  // Leaves the function where a condition holds, after body.
  template <class Body>
  void return_if(Value condition, const Body& body) {
    const Block then = new_block(), after = new_block();
    api().BuildCondBr(builder_, condition, then, after);
    api().PositionBuilderAtEnd(builder_, then);
    body();
    return_void();
    api().PositionBuilderAtEnd(builder_, after);
  }
  template <class Body>
  void branch_if(Value condition, const Body& body) {
    const Block then = new_block(), after = new_block();
    api().BuildCondBr(builder_, condition, then, after);
    api().PositionBuilderAtEnd(builder_, then);
    body();
    api().BuildBr(builder_, after);
    api().PositionBuilderAtEnd(builder_, after);
  }

 private:
  struct LoopBlocks {
    Block body, after;
    Value index, to;
  };
  LoopBlocks begin_loop(Value from, Value to);
  void end_loop(const LoopBlocks& blocks, std::int64_t step);
  Value start_phi(Value value, Block from) const;
  void add_incoming(Value phi, Value value, Block from) const;
  // Ends this block with a jump, and goes on in another.
  void go_to(Block target, Block next) const {
    api().BuildBr(builder_, target);
    api().PositionBuilderAtEnd(builder_, next);
  }
  Block new_block() const {
    return api().AppendBasicBlockInContext(context_, written_.function, "");
  }
  void add_attribute(unsigned place, const char* name) const;

  // The function that is written.
  struct Written {
    Value function = nullptr;
    Block entry = nullptr, here = nullptr;  // here: of one that waits for another
    std::vector<Value> vector_memory = {};
    bool streams = false;  // some store
  };
  static constexpr int external_linkage = 0, internal_linkage = 8;  // of llvm-c/Core.h
  Written begin_function(const char* name, int linkage);
  Value end_function(const Written& outer);

  int lanes_;
  Context context_;
  Module module_;
  Builder builder_;
  Written written_;
  bool is_portable_ = true;
  Emitter* const outer_;
};

// Lanes that are true or false.
struct Mask {
  Value v = nullptr;
  friend Mask operator&(Mask a, Mask b);
  friend Mask operator|(Mask a, Mask b);
  friend Mask operator^(Mask a, Mask b);
  friend Mask operator!(Mask a);
};

namespace detail {

enum class Op { add, sub, mul, div, bit_and, bit_or, bit_xor, shift_left, shift_right };
enum class Compare { eq, ne, lt, le, gt, ge };
enum class Kind { floating, signed_integer, unsigned_integer };

Value binary(Op op, Kind kind, Value a, Value b);
Mask compare(Compare how, Kind kind, Value a, Value b);
Value negate(Kind kind, Value a);
Value choose(Mask mask, Value a, Value b);
Value splat_constant(DType dtype, std::uint64_t bits);
Value reinterpret(Value v, DType dtype);
Value unary_intrinsic(const char* name, Value v);
Value fused_multiply_add(Value x, Value y, Value z);
Value to_double(Value v);
Value to_float(Value v);
// x 2^k rounded once, by one instruction, where the machine has it for such vectors; or nullptr.
Value scaled(Value x, Value k, int element_bits);

template <class T>
constexpr Kind kind_of = std::is_floating_point_v<T> ? Kind::floating
                         : std::is_signed_v<T>       ? Kind::signed_integer
                                                     : Kind::unsigned_integer;

}  // namespace detail

template <class T>
struct Lane {
  Value v = nullptr;

  Lane() = default;
  Lane(T constant)  // implicit, as Pack's
      : v(detail::splat_constant(dtype_of<T>(), std::bit_cast<BitsOf<T>>(constant))) {}
  static Lane of(Value value) {
    Lane lane;
    lane.v = value;
    return lane;
  }

  friend Lane operator-(Lane a) { return of(detail::negate(detail::kind_of<T>, a.v)); }
#define PLAIT_LANE_OPERATOR(symbol, op)                                      \
  friend Lane operator symbol(Lane a, Lane b) {                              \
    return of(detail::binary(detail::Op::op, detail::kind_of<T>, a.v, b.v)); \
  }
  PLAIT_LANE_OPERATOR(+, add)
  PLAIT_LANE_OPERATOR(-, sub)
  PLAIT_LANE_OPERATOR(*, mul)
  PLAIT_LANE_OPERATOR(/, div)
  PLAIT_LANE_OPERATOR(&, bit_and)
  PLAIT_LANE_OPERATOR(|, bit_or)
  PLAIT_LANE_OPERATOR(^, bit_xor)
#undef PLAIT_LANE_OPERATOR
#define PLAIT_LANE_COMPARISON(symbol, how)                                      \
  friend Mask operator symbol(Lane a, Lane b) {                                 \
    return detail::compare(detail::Compare::how, detail::kind_of<T>, a.v, b.v); \
  }
  PLAIT_LANE_COMPARISON(==, eq)
  PLAIT_LANE_COMPARISON(!=, ne)
  PLAIT_LANE_COMPARISON(<, lt)
  PLAIT_LANE_COMPARISON(<=, le)
  PLAIT_LANE_COMPARISON(>, gt)
  PLAIT_LANE_COMPARISON(>=, ge)
#undef PLAIT_LANE_COMPARISON

  // The vocabulary of pack.h, found through the argument's type.
  friend Lane select(Mask mask, Lane a, Lane b) { return of(detail::choose(mask, a.v, b.v)); }
  friend Lane lesser(Lane a, Lane b) { return select(a < b, a, b); }
  friend Lane greater(Lane a, Lane b) { return select(a > b, a, b); }
  friend Lane shift_left(Lane a, int count) { return shifted(detail::Op::shift_left, a, count); }
  friend Lane shift_right(Lane a, int count) { return shifted(detail::Op::shift_right, a, count); }
  friend Lane<BitsOf<T>> to_bits(Lane a) {
    return Lane<BitsOf<T>>::of(detail::reinterpret(a.v, dtype_of<BitsOf<T>>()));
  }
  // math::scale, which this is found before: the same bits from fewer instructions.
  friend Lane scale(Lane x, Lane<BitsOf<T>> k) {
    const Value v = detail::scaled(x.v, k.v, 8 * int(sizeof(T)));
    return v ? of(v) : math::scale<Lane>(x, k);
  }

 private:
  static Lane shifted(detail::Op op, Lane a, int count) {
    return of(detail::binary(op, detail::kind_of<T>, a.v, Lane(T(count)).v));
  }
};

inline Lane<float> from_bits(Lane<std::uint32_t> i) {
  return Lane<float>::of(detail::reinterpret(i.v, DType::float32));
}
inline Lane<double> from_bits(Lane<std::uint64_t> i) {
  return Lane<double>::of(detail::reinterpret(i.v, DType::float64));
}

template <std::floating_point T>
Lane<T> fma(Lane<T> x, std::type_identity_t<Lane<T>> y, std::type_identity_t<Lane<T>> z) {
  return Lane<T>::of(detail::fused_multiply_add(x.v, y.v, z.v));
}
#define PLAIT_LANE_INTRINSIC(function, name)                \
  template <std::floating_point T>                          \
  Lane<T> function(Lane<T> x) {                             \
    return Lane<T>::of(detail::unary_intrinsic(name, x.v)); \
  }
PLAIT_LANE_INTRINSIC(sqrt, "llvm.sqrt")
PLAIT_LANE_INTRINSIC(floor, "llvm.floor")
PLAIT_LANE_INTRINSIC(ceil, "llvm.ceil")
PLAIT_LANE_INTRINSIC(trunc, "llvm.trunc")
PLAIT_LANE_INTRINSIC(round, "llvm.roundeven")
#undef PLAIT_LANE_INTRINSIC

inline std::array<Lane<double>, 1> widen(Lane<float> x) {
  return {Lane<double>::of(detail::to_double(x.v))};
}
inline Lane<float> narrow(std::array<Lane<double>, 1> x) {
  return Lane<float>::of(detail::to_float(x[0].v));
}

}  // namespace plait::llvm

namespace plait {

template <class T>
struct Lanes<llvm::Lane<T>> {
  using Element = T;
  using Bits = llvm::Lane<BitsOf<T>>;
  using MaskType = llvm::Mask;
};

}  // namespace plait
