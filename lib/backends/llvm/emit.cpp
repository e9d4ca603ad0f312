// Instructions and their types. See emit.h.
// SPDX-License-Identifier: Apache-2.0
#include "emit.h"

#include <plait/base/error.h>

#include <algorithm>
#include <cstring>

#include "functions.h"

namespace plait::llvm {
namespace {

thread_local Emitter* current_emitter = nullptr;

// Of llvm-c/Core.h: Compare's order, for floats (unordered is false but for ne) and integers.
constexpr int float_predicates[] = {1, 14, 4, 5, 2, 3};
constexpr int signed_predicates[] = {32, 33, 40, 41, 38, 39};
constexpr int unsigned_predicates[] = {32, 33, 36, 37, 34, 35};

}  // namespace

Emitter::Emitter(int lanes) : lanes_(lanes), outer_(current_emitter) {
  require_compiler();
  const Api& llvm = api();
  context_ = llvm.ContextCreate();
  module_ = llvm.ModuleCreateWithNameInContext(kernel_name, context_);
  llvm.SetTarget(module_, module_target().triple.c_str());
  llvm.SetModuleDataLayout(module_, module_target().layout);
  builder_ = llvm.CreateBuilderInContext(context_);
  begin_function(kernel_name, external_linkage);
  current_emitter = this;
}

Emitter::Written Emitter::begin_function(const char* name, int linkage) {
  const Api& llvm = api();
  Written outer = std::exchange(written_, {});
  if (outer.function) outer.here = here();
  Type parameters[] = {pointer(), integer(64), integer(64)};
  written_.function = llvm.AddFunction(
      module_, name, llvm.FunctionType(llvm.VoidTypeInContext(context_), parameters, 3, false));
  llvm.SetLinkage(written_.function, linkage);
  add_attribute(~0u, "nounwind");
  written_.entry = new_block();
  llvm.PositionBuilderAtEnd(builder_, written_.entry);
  return outer;
}

Value Emitter::end_function(const Written& outer) {
  const Value function = written_.function;
  return_void();
  written_ = outer;
  api().PositionBuilderAtEnd(builder_, outer.here);
  return function;
}

Emitter::~Emitter() {
  current_emitter = outer_;
  api().DisposeBuilder(builder_);
  api().DisposeModule(module_);
  api().ContextDispose(context_);
}

Emitter& Emitter::current() { return *current_emitter; }

void Emitter::add_attribute(unsigned place, const char* name) const {
  const unsigned kind = api().GetEnumAttributeKindForName(name, std::strlen(name));
  api().AddAttributeAtIndex(written_.function, place, api().CreateEnumAttribute(context_, kind, 0));
}

std::string Emitter::text() const {
  char* text = api().PrintModuleToString(module_);
  std::string result = text;
  api().DisposeMessage(text);
  return result;
}

Type Emitter::element(DType dtype) const {
  if (dtype == DType::float32) return api().FloatTypeInContext(context_);
  if (dtype == DType::float64) return api().DoubleTypeInContext(context_);
  return integer(8 * int(size_of(dtype)));
}

Value Emitter::constant(std::int64_t value) const {
  return api().ConstInt(integer(64), static_cast<unsigned long long>(value), true);
}

Value Emitter::splat(Value scalar) const {
  if (lanes_ == 1) return scalar;
  const Type type = vector(api().TypeOf(scalar));
  const Value undefined = api().GetUndef(type);
  const Value first =
      api().BuildInsertElement(builder_, undefined, scalar, api().ConstInt(integer(32), 0, 0), "");
  return api().BuildShuffleVector(builder_, first, undefined, api().ConstNull(vector(integer(32))),
                                  "");
}

Value Emitter::splat_bits(Type type, std::uint64_t bits, int num_bits, int count) const {
  const Value value = api().ConstBitCast(api().ConstInt(integer(num_bits), bits, false), type);
  if (count == 0 && lanes_ == 1) return value;
  if (count == 0) count = lanes_;
  Value all[64];
  std::fill_n(all, count, value);
  return api().ConstVector(all, unsigned(count));
}

Value Emitter::at(Type type, Value pointer, Value index) const {
  return api().BuildGEP2(builder_, type, pointer, &index, 1, "");
}

Value Emitter::load(Type type, Value pointer, int alignment) const {
  const Value value = api().BuildLoad2(builder_, type, pointer, "");
  api().SetAlignment(value, unsigned(alignment));
  return value;
}

void Emitter::return_void() {
  if (written_.streams) intrinsic("llvm.x86.sse.sfence", {}, {});
  api().BuildRetVoid(builder_);
}

void Emitter::store(Value value, Value pointer, int alignment, bool streams) {
  written_.streams |= streams;
  const Value store = api().BuildStore(builder_, value, pointer);
  api().SetAlignment(store, streams ? 64 : unsigned(alignment));
  if (!streams) return;
  Metadata one = api().ValueAsMetadata(api().ConstInt(integer(32), 1, false));
  const Value node = api().MetadataAsValue(context_, api().MDNodeInContext2(context_, &one, 1));
  api().SetMetadata(store, api().GetMDKindIDInContext(context_, "nontemporal", 11), node);
}

void Emitter::prefetch(Value place) const {
  const Type i32 = integer(32);  // to read, into the second-level cache, data
  intrinsic(
      "llvm.prefetch", {pointer()},
      {place, api().ConstInt(i32, 0, 0), api().ConstInt(i32, 2, 0), api().ConstInt(i32, 1, 0)});
}

Value Emitter::is_less(Value a, Value b) const {
  return api().BuildICmp(builder_, signed_predicates[2], a, b, "");
}

Value Emitter::is_unequal(Value a, Value b) const {
  return api().BuildICmp(builder_, signed_predicates[1], a, b, "");
}

// One unsigned comparison: what lies below is far above.
Value Emitter::is_outside(Value index, std::int64_t low, std::int64_t high) const {
  if (high < low) return splat(api().ConstInt(integer(1), 1, false));
  const Value above = low == 0 ? index : api().BuildSub(builder_, index, splat(constant(low)), "");
  const std::uint64_t most = std::uint64_t(high) - std::uint64_t(low);
  return api().BuildICmp(builder_, unsigned_predicates[4], above,
                         splat(constant(std::int64_t(most))), "");
}

Value Emitter::frame_memory(Type element, std::int64_t count) const {
  // In the entry block, where it is part of the frame; in a loop it would grow the stack.
  const Block here = api().GetInsertBlock(builder_);
  if (const Value first = api().GetFirstInstruction(written_.entry))
    api().PositionBuilderBefore(builder_, first);
  else
    api().PositionBuilderAtEnd(builder_, written_.entry);
  const Value memory = api().BuildAlloca(builder_, api().ArrayType(element, unsigned(count)), "");
  api().SetAlignment(memory, 64);
  api().PositionBuilderAtEnd(builder_, here);
  return memory;
}

Value Emitter::vector_memory(int slot) {
  std::vector<Value>& memory = written_.vector_memory;
  while (int(memory.size()) <= slot)
    memory.push_back(frame_memory(integer(64), std::max(lanes_, most_changed_lanes)));
  return memory[std::size_t(slot)];
}

Value Emitter::any(Value mask) const {
  if (lanes_ == 1) return mask;
  const Type bits = integer(lanes_);
  return api().BuildICmp(builder_, signed_predicates[1],
                         api().BuildBitCast(builder_, mask, bits, ""), api().ConstNull(bits), "");
}

Value Emitter::merge(Value first, Block from_first, Value second, Block from_second) const {
  const Value merged = api().BuildPhi(builder_, api().TypeOf(first), "");
  Value values[] = {first, second};
  Block blocks[] = {from_first, from_second};
  api().AddIncoming(merged, values, blocks, 2);
  return merged;
}

Value Emitter::start_phi(Value value, Block from) const {
  const Value phi = api().BuildPhi(builder_, api().TypeOf(value), "");
  add_incoming(phi, value, from);
  return phi;
}

void Emitter::add_incoming(Value phi, Value value, Block from) const {
  api().AddIncoming(phi, &value, &from, 1);
}

Value Emitter::slice(Value v, int first, int count) const {
  Value lanes[64];
  for (int i = 0; i < count; ++i)
    lanes[i] = api().ConstInt(integer(32), std::uint64_t(first + i), false);
  return api().BuildShuffleVector(builder_, v, api().GetUndef(api().TypeOf(v)),
                                  api().ConstVector(lanes, unsigned(count)), "");
}

Value Emitter::shuffle(Value a, Value b, std::span<const int> lanes) const {
  std::vector<Value> order;
  for (int lane : lanes) order.push_back(api().ConstInt(integer(32), std::uint64_t(lane), false));
  return api().BuildShuffleVector(builder_, a, b,
                                  api().ConstVector(order.data(), unsigned(order.size())), "");
}

Value Emitter::reversed(Value v) const {
  Value order[64];
  for (int i = 0; i < lanes_; ++i)
    order[i] = api().ConstInt(integer(32), std::uint64_t(lanes_ - 1 - i), false);
  return api().BuildShuffleVector(builder_, v, api().GetUndef(api().TypeOf(v)),
                                  api().ConstVector(order, unsigned(lanes_)), "");
}

Value Emitter::ramp(Value first) const {
  Value numbers[64];
  for (int i = 0; i < lanes_; ++i) numbers[i] = constant(i);
  return add(splat(first), api().ConstVector(numbers, unsigned(lanes_)));
}

Value Emitter::insert(Value v, Value scalar, int lane) const {
  return api().BuildInsertElement(builder_, v, scalar,
                                  api().ConstInt(integer(32), std::uint64_t(lane), false), "");
}

Value Emitter::extract(Value v, int lane) const {
  return api().BuildExtractElement(builder_, v,
                                   api().ConstInt(integer(32), std::uint64_t(lane), false), "");
}

Value Emitter::intrinsic(const char* name, std::initializer_list<Type> types,
                         std::initializer_list<Value> arguments) const {
  const unsigned id = api().LookupIntrinsicID(name, std::strlen(name));
  auto* overloads = const_cast<Type*>(types.begin());
  const Value function = api().GetIntrinsicDeclaration(module_, id, overloads, types.size());
  const Type type = api().IntrinsicGetType(context_, id, overloads, types.size());
  return api().BuildCall2(builder_, type, function, const_cast<Value*>(arguments.begin()),
                          unsigned(arguments.size()), "");
}

void Emitter::call(const std::string& name, std::initializer_list<Type> types,
                   std::initializer_list<Value> arguments) {
  const Type type =
      api().FunctionType(api().VoidTypeInContext(context_), const_cast<Type*>(types.begin()),
                         unsigned(types.size()), false);
  is_portable_ = is_portable_ && is_in_plait(function_named(name));
  Value declared = api().GetNamedFunction(module_, name.c_str());
  if (!declared) declared = api().AddFunction(module_, name.c_str(), type);
  api().BuildCall2(builder_, type, declared, const_cast<Value*>(arguments.begin()),
                   unsigned(arguments.size()), "");
}

Object Emitter::compile() const {
  Object object = compile_module(module_);
  object.is_portable = is_portable_;
  return object;
}

Emitter::LoopBlocks Emitter::begin_loop(Value from, Value to) {
  const Block before = api().GetInsertBlock(builder_);
  LoopBlocks blocks{new_block(), new_block(), nullptr, to};
  const Value any = api().BuildICmp(builder_, signed_predicates[2], from, to, "");
  api().BuildCondBr(builder_, any, blocks.body, blocks.after);
  api().PositionBuilderAtEnd(builder_, blocks.body);
  blocks.index = api().BuildPhi(builder_, integer(64), "");
  Value start = from;
  Block block = before;
  api().AddIncoming(blocks.index, &start, &block, 1);
  return blocks;
}

void Emitter::end_loop(const LoopBlocks& blocks, std::int64_t step) {
  Value next = add(blocks.index, constant(step));
  Block latch = api().GetInsertBlock(builder_);
  api().AddIncoming(blocks.index, &next, &latch, 1);
  const Value more = api().BuildICmp(builder_, signed_predicates[2], next, blocks.to, "");
  api().BuildCondBr(builder_, more, blocks.body, blocks.after);
  api().PositionBuilderAtEnd(builder_, blocks.after);
}

namespace {

Builder here() { return Emitter::current().builder(); }

}  // namespace

Mask operator&(Mask a, Mask b) { return {api().BuildAnd(here(), a.v, b.v, "")}; }
Mask operator|(Mask a, Mask b) { return {api().BuildOr(here(), a.v, b.v, "")}; }
Mask operator^(Mask a, Mask b) { return {api().BuildXor(here(), a.v, b.v, "")}; }
Mask operator!(Mask a) { return {api().BuildNot(here(), a.v, "")}; }

Value detail::binary(Op op, Kind kind, Value a, Value b) {
  const Api& llvm = api();
  const bool is_float = kind == Kind::floating;
  switch (op) {
    case Op::add:
      return (is_float ? llvm.BuildFAdd : llvm.BuildAdd)(here(), a, b, "");
    case Op::sub:
      return (is_float ? llvm.BuildFSub : llvm.BuildSub)(here(), a, b, "");
    case Op::mul:
      return (is_float ? llvm.BuildFMul : llvm.BuildMul)(here(), a, b, "");
    case Op::div:
      if (is_float) return llvm.BuildFDiv(here(), a, b, "");
      throw InternalError("llvm: integers have no quotient in lanes");
    case Op::bit_and:
      return llvm.BuildAnd(here(), a, b, "");
    case Op::bit_or:
      return llvm.BuildOr(here(), a, b, "");
    case Op::bit_xor:
      return llvm.BuildXor(here(), a, b, "");
    case Op::shift_left:
      return llvm.BuildShl(here(), a, b, "");
    default:
      return llvm.BuildLShr(here(), a, b, "");
  }
}

Mask detail::compare(Compare how, Kind kind, Value a, Value b) {
  const int index = int(how);
  if (kind == Kind::floating) return {api().BuildFCmp(here(), float_predicates[index], a, b, "")};
  const auto& predicates = kind == Kind::signed_integer ? signed_predicates : unsigned_predicates;
  return {api().BuildICmp(here(), predicates[index], a, b, "")};
}

Value detail::negate(Kind kind, Value a) {
  if (kind == Kind::floating) return api().BuildFNeg(here(), a, "");
  return api().BuildSub(here(), api().ConstNull(api().TypeOf(a)), a, "");
}

Value detail::choose(Mask mask, Value a, Value b) {
  return api().BuildSelect(here(), mask.v, a, b, "");
}

Value detail::splat_constant(DType dtype, std::uint64_t bits) {
  const Emitter& emitter = Emitter::current();
  return emitter.splat_bits(emitter.element(dtype), bits, 8 * int(size_of(dtype)));
}

Value detail::reinterpret(Value v, DType dtype) {
  const Emitter& emitter = Emitter::current();
  return api().BuildBitCast(here(), v, emitter.vector(emitter.element(dtype)), "");
}

Value detail::unary_intrinsic(const char* name, Value v) {
  return Emitter::current().intrinsic(name, {api().TypeOf(v)}, {v});
}

Value detail::fused_multiply_add(Value x, Value y, Value z) {
  return Emitter::current().intrinsic("llvm.fma", {api().TypeOf(x)}, {x, y, z});
}

Value detail::scaled(Value x, Value k, int element_bits) {
  const Emitter& emitter = Emitter::current();
  const int bits = emitter.lanes() * element_bits;
  if (!machine().has_avx512 || emitter.lanes() == 1 || bits > 512 || bits < 128) return nullptr;
  const Value exponent = api().BuildSIToFP(here(), k, api().TypeOf(x), "");
  const std::string name = std::string("llvm.x86.avx512.mask.scalef.p") +
                           (element_bits == 32 ? "s." : "d.") + std::to_string(bits);
  const Value all = api().ConstInt(emitter.integer(std::max(8, emitter.lanes())), ~0ull, true);
  const Value as_set = api().ConstInt(emitter.integer(32), 4, false);  // the mode of rounding
  if (bits == 512) return emitter.intrinsic(name.c_str(), {}, {x, exponent, x, all, as_set});
  return emitter.intrinsic(name.c_str(), {}, {x, exponent, x, all});
}

Value detail::to_double(Value v) {
  const Emitter& emitter = Emitter::current();
  return api().BuildFPExt(here(), v, emitter.vector(emitter.element(DType::float64)), "");
}

Value detail::to_float(Value v) {
  const Emitter& emitter = Emitter::current();
  return api().BuildFPTrunc(here(), v, emitter.vector(emitter.element(DType::float32)), "");
}

}  // namespace plait::llvm
