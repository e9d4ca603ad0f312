// Cutting a group. See segments.h.
// SPDX-License-Identifier: Apache-2.0
#include "segments.h"

#include <plait/ops.h>

#include <unordered_map>

namespace plait::llvm {
namespace {

constexpr double segment_weight = 60;

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

Segments make_segments(const JaxprData& group, std::span<const int> order,
                       std::span<const int> pass) {
  Segments segments;
  segments.written.assign(group.avals.size(), -1);
  segments.last_read.assign(group.avals.size(), -1);
  segments.slot_of.assign(group.avals.size(), -1);
  double weight = 0;
  for (int index : order) {
    const Equation& equation = group.equations[index];
    const double next = weight_of(equation);
    const bool cuts = segments.equations.empty() ||
                      pass[segments.equations.back().back()] != pass[index] ||
                      weight + next > segment_weight;
    if (cuts) {
      segments.equations.emplace_back();
      weight = 0;
    }
    weight += next;
    segments.equations.back().push_back(index);
    const int segment = segments.size() - 1;
    for (const Atom& atom : equation.inputs)
      if (atom.is_var()) segments.last_read[atom.var().id] = segment;
    segments.written[equation.outputs[0].id] = segment;
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
