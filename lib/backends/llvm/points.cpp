// Elements, their nodes and their loads. See points.h; the rules of movement are in
// point_rules.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "points.h"

#include <plait/base/error.h>
#include <plait/primitives/primitives.h>

#include "segments.h"

namespace plait::llvm {
namespace {

Builder here() { return Emitter::current().builder(); }

// step, 2 * step, ... by lane.
Value multiples(std::int64_t step, int bits) {
  const Emitter& emitter = Emitter::current();
  Value all[64];
  for (int i = 0; i < emitter.lanes(); ++i)
    all[i] = api().ConstInt(emitter.integer(bits), std::uint64_t(step * i), true);
  return api().ConstVector(all, unsigned(emitter.lanes()));
}

}  // namespace

Index Index::times(std::int64_t factor) const {
  Index result = *this;
  for (std::int64_t& step : result.steps) step *= factor;
  result.constant *= factor;
  result.scale *= computed < 0 ? 1 : factor;
  return result;
}

Index Index::plus(std::int64_t more) const {
  Index result = *this;
  result.constant += more;
  return result;
}

Points::Points(const JaxprData& data, std::vector<int> levels, int num_levels, int lane_counter,
               std::vector<Sizes64> strides)
    : data_(data),
      levels_(std::move(levels)),
      num_levels_(num_levels),
      lane_(lane_counter),
      strides_(std::move(strides)),
      definition_(data.avals.size(), nullptr) {
  for (const Equation& equation : data.equations)
    for (Var var : equation.outputs) definition_[var.id] = &equation;
}

Index Points::counter(int which) const {
  Index index = fixed(0);
  index.steps[which] = 1;
  return index;
}

Index Points::fixed(std::int64_t constant) const {
  return {std::vector<std::int64_t>(levels_.size(), 0), constant};
}

int Points::add(int level, double weight, Emit emit) {
  nodes_.push_back({level, weight, std::move(emit)});
  return int(nodes_.size()) - 1;
}

int Points::level_of(const Index& index) const {
  int level = level_of(index.computed);
  for (std::size_t i = 0; i < levels_.size(); ++i)
    if (index.steps[i] != 0) level = std::max(level, levels_[i]);
  return level;
}

double Points::weight(int level) const {
  double sum = 0;
  for (const Node& node : nodes_)
    if (node.level == level) sum += node.weight;
  return sum;
}

void Points::emit(int level, const Place& place, std::vector<Register>& values) const {
  const Emission emission{place, values};
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].level == level) values[i] = nodes_[i].emit(emission);
}

int Points::pull(const Atom& atom, const Indices& place, int mask) {
  if (!atom.is_var()) {
    const Literal literal = atom.literal();
    return add(0, 0, [literal](const Emission&) { return constant_of(literal); });
  }
  const int var = atom.var().id;
  const auto key = std::make_tuple(var, place, mask);
  if (const auto found = pulled_.find(key); found != pulled_.end()) return found->second;
  const int node = definition_[var] ? pull_equation(*definition_[var], place, mask)
                                    : pull_load(var, place, mask);
  pulled_.emplace(key, node);
  return node;
}

int Points::pull_elementwise(const Equation& equation, const Indices& place, int mask) {
  std::vector<int> inputs;
  int level = 0;
  for (const Atom& atom : equation.inputs) {
    inputs.push_back(pull(atom, data_.aval(atom).rank() == 0 ? Indices{} : place, mask));
    level = std::max(level, level_of(inputs.back()));
  }
  const DType dtype = data_.avals[equation.outputs[0].id].dtype;
  return add(level, weight_of(equation), [&equation, inputs, dtype](const Emission& emission) {
    std::vector<Register> operands;
    for (int input : inputs) operands.push_back(emission.values[input]);
    return lower(equation, operands, dtype);
  });
}

int Points::pull_load(int var, const Indices& place, int mask) {
  Index offset = fixed(0);
  std::vector<std::pair<int, std::int64_t>> computed;
  int level = level_of(mask);
  for (std::size_t axis = 0; axis < place.size(); ++axis) {
    const std::int64_t stride = strides_[var][axis];
    if (stride == 0) continue;
    const Index index = place[axis].times(stride);
    level = std::max(level, level_of(index));
    for (std::size_t i = 0; i < index.steps.size(); ++i) offset.steps[i] += index.steps[i];
    offset.constant += index.constant;
    if (index.computed >= 0) computed.emplace_back(index.computed, index.scale);
  }
  return add(level, 2, [=, this](const Emission& emission) {
    return load(var, offset, computed, mask, emission);
  });
}

Value Points::scalar_of(const Index& index, const Place& place) const {
  const Emitter& emitter = Emitter::current();
  Value sum = emitter.constant(index.constant);
  for (std::size_t i = 0; i < index.steps.size(); ++i)
    if (index.steps[i] != 0)
      sum = emitter.add(sum, emitter.multiply(place.counters[i], emitter.constant(index.steps[i])));
  return sum;
}

Value Points::lanes_of(const Index& index, const Emission& emission) const {
  const Emitter& emitter = Emitter::current();
  Value lanes = emitter.splat(scalar_of(index, emission.place));
  if (index.steps[lane_] != 0) lanes = emitter.add(lanes, multiples(index.steps[lane_], 64));
  if (index.computed >= 0)
    lanes = emitter.add(lanes, emitter.multiply(emission.values[index.computed].v,
                                                emitter.splat(emitter.constant(index.scale))));
  return lanes;
}

Value Points::short_lanes_of(const Index& index, const Emission& emission) const {
  const Emitter& emitter = Emitter::current();
  const Type i32 = emitter.integer(32);
  if (index.computed >= 0)
    return api().BuildTrunc(here(), lanes_of(index, emission), emitter.vector(i32), "");
  const Value lanes =
      emitter.splat(api().BuildTrunc(here(), scalar_of(index, emission.place), i32, ""));
  if (index.steps[lane_] == 0) return lanes;
  return emitter.add(lanes, multiples(index.steps[lane_], 32));
}

Register Points::load(int var, const Index& offset,
                      const std::vector<std::pair<int, std::int64_t>>& computed, int mask,
                      const Emission& emission) const {
  const Emitter& emitter = Emitter::current();
  const DType dtype = data_.avals[var].dtype;
  const Type element = emitter.element(dtype);
  Value scalar = scalar_of(offset, emission.place), lanes = nullptr;
  for (auto [node, scale] : computed) {
    const Value v = emission.values[node].v, factor = emitter.constant(scale);
    if (!varies(node)) {
      scalar = emitter.add(scalar, emitter.multiply(emitter.extract(v, 0), factor));
    } else {
      const Value scaled = emitter.multiply(v, emitter.splat(factor));
      lanes = lanes ? emitter.add(lanes, scaled) : scaled;
    }
  }
  const std::int64_t step = offset.steps[lane_];
  const Value allowed = mask < 0 ? nullptr : emission.values[mask].v;
  if (!lanes && step == 0) {
    if (allowed)
      scalar = api().BuildSelect(here(), emitter.any(allowed), scalar, emitter.constant(0), "");
    return load_splat(dtype, emitter.at(element, memory_[var], scalar));
  }
  const int count = emission.place.count;
  if (!lanes && step == 1) {
    const Value address = emitter.at(element, memory_[var], scalar);
    if (!allowed) return load_lanes(dtype, address, count);
    return load_allowed(dtype, address, allowed, count);
  }
  Value exists = first_lanes(count);
  if (allowed) exists = api().BuildAnd(here(), exists, allowed, "");
  if (!lanes && step == -1) {
    const int last = emitter.lanes() - 1;
    const Value address =
        emitter.at(element, memory_[var], emitter.add(scalar, emitter.constant(-last)));
    const Value vector = count == emitter.lanes() && !allowed
                             ? emitter.load(emitter.vector(element), address, int(size_of(dtype)))
                             : masked_load(dtype, address, emitter.reversed(exists));
    return from_memory(emitter.reversed(vector), dtype);
  }
  Value places = emitter.splat(scalar);
  if (step != 0) places = emitter.add(places, multiples(step, 64));
  if (lanes) places = emitter.add(places, lanes);
  return from_memory(masked_gather(dtype, emitter.at(element, memory_[var], places), exists),
                     dtype);
}

}  // namespace plait::llvm
