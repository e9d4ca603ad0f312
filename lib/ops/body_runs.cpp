// Which bodies an equation runs, and how often. See cost.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/cost.h>
#include <plait/linear_solve.h>
#include <plait/ops.h>
#include <plait/ops_control.h>

#include <numeric>

namespace plait {

Jaxpr body_of_call(const Params& params, std::string_view entry);  // call.cpp

namespace {

using Runs = std::vector<BodyRun>;

double count_of(Dim size) {
  if (size.is_constant()) return double(size.constant());
  throw ValueError("how often a body runs depends on the size " + size.to_string(),
                   "instantiate the program first, with a number for each size");
}
double count_of(std::span<const Lane> lanes) {
  double count = 1;
  for (const Lane& lane : lanes) count *= count_of(lane.size);
  return count;
}

// The inputs of a body, one after the other from the equation's first.
std::vector<int> from(int first, const Jaxpr& body) {
  std::vector<int> operands(std::size_t(body->num_binders));
  std::iota(operands.begin(), operands.end(), first);
  return operands;
}
// Those of a loop's body, of which the first are carried; the rest begin at an input.
std::vector<int> carried(std::size_t num_carry, int first, const Jaxpr& body) {
  std::vector<int> operands = from(first - int(num_carry), body);
  std::fill_n(operands.begin(), num_carry, -1);
  return operands;
}

Runs of_call(const Params& params) {
  const Jaxpr body = body_of_call(params, "body");
  return {{body, 1, true, from(0, body)}};
}

Runs of_cond(const Params& params) {
  const std::vector<Jaxpr> branches = CondParams(params).branches;
  std::size_t most = 0;
  bool same = true;
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const Work work = work_of(branches[i]), best = work_of(branches[most]);
    same &= work == best;
    if (work.flops > best.flops || (work.flops == best.flops && work.bytes() > best.bytes()))
      most = i;
  }
  Runs runs;
  for (std::size_t i = 0; i < branches.size(); ++i)
    runs.push_back({branches[i], i == most ? 1.0 : 0.0, same, from(1, branches[i])});
  return runs;
}

Runs of_scan(const Params& params) {
  const ScanParams scan(params);
  return {{scan.body, scan.length ? count_of(*scan.length) : 1, scan.length.has_value(),
           carried(scan.num_carry, int(scan.num_carry), scan.body)}};
}

Runs of_while(const Params& params) {
  const WhileParams loop(params);
  const int consts = int(loop.num_carry);
  return {{loop.cond, 1, false, carried(loop.num_carry, consts, loop.cond)},
          {loop.body, 1, false,
           carried(loop.num_carry, consts + int(loop.num_cond_consts), loop.body)}};
}

Runs of_lanes(const Params& params) {
  const LanesParams lanes(params);
  return {{lanes.body, count_of(lanes.lanes), true, from(lanes.guarded ? 1 : 0, lanes.body)}};
}

Runs of_masked(const Params& params) {
  const MaskedParams masked(params);
  return {{instantiate(masked.open_body(), masked.open_bounds()), count_of(masked.lanes), false,
           from(int(masked.num_ragged()), masked.body)}};
}

Runs of_linear_solve(const Params& params) {
  const LinearSystem system(params);
  std::vector<int> operands = from(0, system.solve);
  for (int i = system.num_unknowns(); i < int(operands.size()); ++i)
    operands[std::size_t(i)] += system.num_matvec;
  return {{system.solve, 1, true, std::move(operands)}};
}

}  // namespace

std::vector<BodyRun> bodies_run(const Equation& equation) {
  static constexpr std::pair<const Primitive*, Runs (*)(const Params&)> kinds[] = {
      {&call_p, of_call},
      {&cond_p, of_cond},
      {&scan_p, of_scan},
      {&while_p, of_while},
      {&lanes_p, of_lanes},
      {&masked_p, of_masked},
      {&linear_solve_p, of_linear_solve}};
  if (!holds_bodies(equation.params)) return {};
  for (const auto& [primitive, runs] : kinds)
    if (*equation.primitive == *primitive) return runs(equation.params);
  return {};
}

}  // namespace plait
