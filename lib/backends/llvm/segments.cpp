// Cutting a group. See segments.h.
// SPDX-License-Identifier: Apache-2.0
#include "segments.h"

#include <plait/primitives/primitives.h>

#include <unordered_map>
#include <unordered_set>

namespace plait::llvm {
namespace {

// Of a chain in a segment, and of all its equations: a processor looks a few hundred instructions
// ahead, which should take it to the next vector before the chain of this one ends.
constexpr double longest_chain = 60;
constexpr double most_weight = 300;
constexpr double most_recomputed = 8;

}  // namespace

double weight_of(const Equation& equation) {
  static const auto& heavy = *new std::unordered_map<int, double>{
      {div_p.index(), 8},    {sqrt_p.index(), 8},         {exp_p.index(), 24},
      {expm1_p.index(), 36}, {log_p.index(), 32},         {log1p_p.index(), 48},
      {tanh_p.index(), 40},  {erf_p.index(), 48},         {pow_p.index(), 80},
      {atan2_p.index(), 60}, {erf_inv_p.index(), 120},    {sin_p.index(), 60},
      {cos_p.index(), 60},   {lgamma_p.index(), 400},     {digamma_p.index(), 400},
      {rem_p.index(), 30},   {random_bits_p.index(), 110}};
  const auto found = heavy.find(equation.primitive->index());
  return found == heavy.end() ? 2 : found->second;
}

namespace {

// Of a handful of instructions, which wait for little.
bool is_light(const Equation& equation) {
  static const auto& light = *new std::unordered_set<int>{add_p.index(),
                                                          sub_p.index(),
                                                          mul_p.index(),
                                                          neg_p.index(),
                                                          abs_p.index(),
                                                          max_p.index(),
                                                          min_p.index(),
                                                          and_p.index(),
                                                          or_p.index(),
                                                          xor_p.index(),
                                                          not_p.index(),
                                                          cmp_p.index(),
                                                          cast_p.index(),
                                                          iota_p.index(),
                                                          select_p.index(),
                                                          scatter_p.index(),
                                                          broadcast_in_dim_p.index()};
  return light.count(equation.primitive->index()) > 0;
}

// Replaces what crosses cuts by its computation where that is short.
class Recomputer {
 public:
  Recomputer(const JaxprData& group, std::span<const int> order, Segments& segments)
      : group_(group), segments_(segments), definition_(group.avals.size(), -1) {
    std::vector<double> weight(group.avals.size(), 0);
    std::vector<int> kept(group.avals.size(), -1);  // what has to be read for it, beside inputs
    std::vector<bool> is_output(group.avals.size(), false), crosses(group.avals.size(), false);
    for (const Atom& atom : group.outputs)
      if (atom.is_var()) is_output[atom.var().id] = true;
    for (int index : order)
      for (const Atom& atom : group.equations[index].inputs)
        if (atom.is_var() && segments.written[atom.var().id] !=
                                 segments.written[group.equations[index].outputs[0].id])
          crosses[atom.var().id] = true;
    for (int index : order) {
      const Equation& equation = group.equations[index];
      const int out = equation.outputs[0].id;
      bool is_short = is_light(equation) && !is_output[out];
      weight[out] = weight_of(equation);
      for (const Atom& atom : equation.inputs) {
        const int var = atom.is_var() ? atom.var().id : -1;
        if (var < 0 || segments.written[var] < 0) continue;
        const bool is_kept = definition_[var] < 0;
        const int needed = is_kept ? var : kept[var];
        is_short &= !is_kept || crosses[var];
        is_short &= kept[out] < 0 || needed < 0 || kept[out] == needed;
        if (needed >= 0) kept[out] = needed;
        if (!is_kept) weight[out] += weight[var];
      }
      if (is_short && weight[out] <= most_recomputed) definition_[out] = index;
    }
  }

  void run() {
    for (std::vector<int>& equations : segments_.equations) {
      std::vector<int> before;
      before.swap(equations);
      is_there_.assign(group_.avals.size(), false);
      for (int index : before)
        if (definition_[group_.equations[index].outputs[0].id] < 0) add(index, equations);
    }
  }

 private:
  void add(int index, std::vector<int>& equations) {
    const Equation& equation = group_.equations[index];
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && definition_[atom.var().id] >= 0 && !is_there_[atom.var().id])
        add(definition_[atom.var().id], equations);
    equations.push_back(index);
    is_there_[equation.outputs[0].id] = true;
  }

  const JaxprData& group_;
  Segments& segments_;
  std::vector<int> definition_;  // by var: the equation, of what is computed where it is read
  std::vector<bool> is_there_;   // by var, in the segment that is written
};

}  // namespace

std::int64_t Segments::offset_of(int slot, std::int64_t elements) const {
  std::int64_t offset = 0;
  for (int s = 0; s < slot; ++s) offset += (elements * size_of(slots[s].dtype) + 63) / 64 * 64;
  return offset;
}

std::vector<bool> Segments::computed_by(int segment, const JaxprData& group) const {
  std::vector<bool> computed(group.avals.size(), false);
  for (int e : equations[segment]) computed[group.equations[e].outputs[0].id] = true;
  return computed;
}

Segments make_segments(const JaxprData& group, std::span<const int> order,
                       std::span<const int> pass) {
  Segments segments;
  segments.written.assign(group.avals.size(), -1);
  segments.last_read.assign(group.avals.size(), -1);
  segments.slot_of.assign(group.avals.size(), -1);
  double weight = 0;
  std::vector<double> chain(group.avals.size(), 0);  // by var, in the segment that computes it
  auto chain_to = [&](const Equation& equation) {
    double longest = 0;
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && segments.written[atom.var().id] == segments.size() - 1)
        longest = std::max(longest, chain[atom.var().id]);
    return longest + weight_of(equation);
  };
  for (int index : order) {
    const Equation& equation = group.equations[index];
    const double next = weight_of(equation);
    const bool cuts = segments.equations.empty() || segments.pass.back() != pass[index] ||
                      weight + next > most_weight || chain_to(equation) > longest_chain;
    if (cuts) {
      segments.equations.emplace_back();
      segments.pass.push_back(pass[index]);
      weight = 0;
    }
    weight += next;
    segments.equations.back().push_back(index);
    const int out = equation.outputs[0].id;
    chain[out] = chain_to(equation);
    segments.written[out] = segments.size() - 1;
  }
  Recomputer(group, order, segments).run();
  for (int s = 0; s < segments.size(); ++s) {
    const std::vector<bool> computed = segments.computed_by(s, group);
    for (int index : segments.equations[s])
      for (const Atom& atom : group.equations[index].inputs)
        if (atom.is_var() && !computed[atom.var().id]) segments.last_read[atom.var().id] = s;
  }

  for (int index : order) {
    const int var = group.equations[index].outputs[0].id, from = segments.written[var],
              to = segments.last_read[var];
    if (to <= from) continue;
    const DType dtype = group.avals[var].dtype;
    int& slot = segments.slot_of[var];
    for (int s = 0; s < int(segments.slots.size()) && slot < 0; ++s)
      if (segments.slots[s].free_from <= from && segments.slots[s].dtype == dtype) slot = s;
    if (slot < 0) {
      slot = int(segments.slots.size());
      segments.slots.push_back({dtype, 0});
      segments.bytes += size_of(dtype);
    }
    // Written while its last reader's segment runs would be too early: vectors ahead are unread.
    segments.slots[slot].free_from = to + 1;
  }
  return segments;
}

}  // namespace plait::llvm
