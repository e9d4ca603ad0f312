// Control flow, functions of the host and decompositions of matrices with one wrong rule each: the
// laws must find every one.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/control/primitives.h>
#include <plait/primitives/decompositions.h>
#include <plait/primitives/host_call.h>
#include <plait/transforms/laned.h>

#include <deque>

#include "../laws.h"
#include "planted.h"

using namespace plait;
using namespace plait::laws;

namespace {

// --- Edits ---------------------------------------------------------------------------------------

using Edited = std::optional<Arrays>;

Arrays rebind(const Equation& equation, std::span<const Array> inputs, const Params& params) {
  return bind(*equation.primitive, inputs, params);
}
// Scans that begin at the other end.
Edited other_end(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == scan_p)) return std::nullopt;
  ScanParams scan(equation.params);
  scan.reverse = !scan.reverse;
  return rebind(equation, inputs, scan.to_params());
}
// Scans whose last xs, residuals in reverse mode, are those of the next step.
Edited next_step(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == scan_p)) return std::nullopt;
  const ScanParams scan(equation.params);
  Arrays operands(inputs.begin(), inputs.end());
  Array& last = operands[scan.num_carry + scan.num_xs - 1];
  last = rolled(last);
  return rebind(equation, operands, equation.params);
}
// What a choice by element would have replaced.
Edited first_of_select(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == select_p)) return std::nullopt;
  return Arrays{inputs[1]};
}
// Scans over stacks whose steps are taken by all examples.
Edited all_take_steps(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == scan_p) || !equation.params.has("flagged")) return std::nullopt;
  ScanParams scan(equation.params);
  scan.flagged = false;
  scan.body = make_closed_jaxpr(
      [&](std::span<const Array> in) { return eval_edited(scan.body, in, first_of_select); },
      scan.body->input_avals(), scan.body->sizes);
  Arrays operands(inputs.begin(), inputs.end());
  Array& flags = operands[scan.num_carry];
  flags = map_stacks(Arrays{flags}, [](std::span<const Array> flag) {
    return lax::bitwise_or(flag[0], lax::bitwise_not(flag[0]));
  });
  return rebind(equation, operands, scan.to_params());
}
// The branch after the one that is chosen, of two.
Edited other_branch(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == cond_p)) return std::nullopt;
  Arrays operands(inputs.begin(), inputs.end());
  operands[0] = Array::literal(1, DType::int32) - operands[0];
  return rebind(equation, operands, equation.params);
}
Edited swapped_select(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == select_p)) return std::nullopt;
  return rebind(equation, Arrays{inputs[0], inputs[2], inputs[1]}, equation.params);
}
// Loops that end with the first example that ends.
Edited all_for_any(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == reduce_p) || equation.params.text("kind") != "or")
    return std::nullopt;
  return rebind(equation, inputs, equation.params.with("kind", std::string("and")));
}
// Loops that take one step less, by a limit.
Edited first_step_only(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == while_p)) return std::nullopt;
  const WhileParams loop(equation.params);
  Arrays carry = rebind(equation, inputs, equation.params);
  carry.back() = inputs[loop.num_carry - 1];
  return carry;
}
// Consts of a scan with the sign of their cotangents lost.
Edited negative_scan(const Equation& equation, std::span<const Array> inputs) {
  if (!(*equation.primitive == scan_p)) return std::nullopt;
  Arrays results = rebind(equation, inputs, equation.params);
  results.back() = lax::neg(results.back());
  return results;
}

// --- scan ----------------------------------------------------------------------------------------

constinit const Primitive scan_sign{"mutant_scan_sign"}, scan_carry{"mutant_scan_carry"},
    scan_order{"mutant_scan_order"}, scan_residual{"mutant_scan_residual"},
    scan_batch{"mutant_scan_batch"}, scan_direction{"mutant_scan_direction"},
    scan_mask{"mutant_scan_mask"}, scan_second{"mutant_scan_second"};
const Definition scan_mutants[] = {
    like(scan_sign, scan_p, "scan, whose derivative has the other sign")
        .rule<Linearize>(linearize_negative(scan_p)),
    like(scan_carry, scan_p, "scan, whose derivative drops the tangent of the carry")
        .rule<Linearize>(linearize_without(scan_p, 0)),
    like(scan_order, scan_p, "scan, whose linear part begins at the other end")
        .rule<Linearize>(linearize_edited(scan_p, other_end)),
    like(scan_residual, scan_p, "scan, whose linear part reads residuals of another step")
        .rule<Linearize>(linearize_edited(scan_p, next_step)),
    like(scan_batch, scan_p, "scan, whose examples are exchanged")
        .rule<Batch>(batch_rolled(scan_p)),
    like(scan_direction, scan_p, "scan, which begins at the other end under vmap")
        .rule<Batch>(batch_edited(scan_p, other_end)),
    like(scan_mask, scan_p, "scan, which goes on behind the end of a ragged axis")
        .rule<Mask>(mask_of_bounds(scan_p)),
    like(scan_second, scan_p, "scan, whose last result is wrong in the linear part")
        .rule<Linearize>(linearize_edited(scan_p, negative_scan)),
};

// --- while ---------------------------------------------------------------------------------------

constinit const Primitive while_sign{"mutant_while_sign"}, while_carry{"mutant_while_carry"},
    while_consts{"mutant_while_consts"}, while_order{"mutant_while_order"},
    while_frozen{"mutant_while_frozen"}, while_any{"mutant_while_any"},
    while_step{"mutant_while_step"}, while_batch{"mutant_while_batch"},
    while_lanes{"mutant_while_lanes"}, lanes_unflagged{"mutant_lanes_unflagged"};
const Definition while_mutants[] = {
    like(while_sign, while_p, "while, whose derivative has the other sign")
        .rule<Linearize>(linearize_negative(while_p)),
    like(while_carry, while_p, "while, whose derivative drops the tangent of the carry")
        .rule<Linearize>(linearize_without(while_p, 1)),
    like(while_consts, while_p, "while, whose derivative drops the tangent of what it captured")
        .rule<Linearize>(linearize_without(while_p, 2)),
    like(while_order, while_p, "while, which pops residuals in the order of pushing")
        .rule<Linearize>(linearize_edited(while_p, other_end)),
    like(while_frozen, while_p, "while, in which examples that have ended go on")
        .rule<Batch>(batch_edited(while_p, in_lanes(first_of_select))),
    like(while_any, while_p, "while, which ends with the first example")
        .rule<Batch>(batch_edited(while_p, in_lanes(all_for_any))),
    like(while_step, while_p, "while, which under vmap gives the carry that came in")
        .rule<Batch>(batch_edited(while_p, first_step_only)),
    like(while_batch, while_p, "while, whose examples are exchanged")
        .rule<Batch>(batch_rolled(while_p)),
    like(while_lanes, while_p, "while, in whose transpose examples that have ended take part")
        .rule<Batch>(batch_edited(while_p, lanes_as(lanes_unflagged))),
    define(lanes_unflagged, "lanes, whose scans forget who takes a step")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          return infer(lanes_p, inputs, params);
        })
        .rule<Samples>([] { return rule<Samples>(lanes_p)(); })
        .rule<Decompose>([](std::span<const Array> inputs, const Params& params) {
          const Jaxpr program = decomposition(lanes_p, avals_of(inputs), params);
          return eval_edited(program, inputs, all_take_steps);
        })
        .rule<Linearize>([](std::span<const Array> primals, std::span<const Tangent> tangents,
                            const Params& params, Trace* linear) {
          return linearize_laned(lanes_unflagged, LanesParams(params), primals, tangents, linear);
        })
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params& params) {
          return transpose_laned(lanes_unflagged, LanesParams(params), cotangents, inputs);
        }),
};

// --- cond ----------------------------------------------------------------------------------------

constinit const Primitive cond_sign{"mutant_cond_sign"}, cond_operand{"mutant_cond_operand"},
    cond_index{"mutant_cond_index"}, cond_linear{"mutant_cond_linear"},
    cond_lanes{"mutant_cond_lanes"}, cond_one_branch{"mutant_cond_one_branch"},
    lanes_sign{"mutant_lanes_sign"}, lanes_transpose{"mutant_lanes_transpose"},
    lanes_batch{"mutant_lanes_batch"};
const Definition cond_mutants[] = {
    like(cond_sign, cond_p, "cond, whose derivative has the other sign")
        .rule<Linearize>(linearize_negative(cond_p)),
    like(cond_operand, cond_p, "cond, whose derivative drops the tangent of an operand")
        .rule<Linearize>(linearize_without(cond_p, 1)),
    like(cond_index, cond_p, "cond, which takes the other branch under vmap")
        .rule<Batch>(batch_edited(cond_p, other_branch)),
    like(cond_linear, cond_p, "cond, whose linear part takes the other branch")
        .rule<Linearize>(linearize_edited(cond_p, other_branch)),
    like(cond_lanes, cond_p, "cond, whose examples take what others would")
        .rule<Batch>(batch_edited(cond_p, in_lanes(swapped_select))),
    like(cond_one_branch, cond_p, "cond, whose examples all take one branch")
        .rule<Batch>(batch_edited(cond_p, in_lanes(first_of_select))),
    like(lanes_sign, lanes_p, "lanes, whose derivative has the other sign")
        .rule<Linearize>(linearize_negative(lanes_p)),
    like(lanes_transpose, lanes_p, "lanes, whose linear part takes other branches")
        .rule<Linearize>(linearize_edited(lanes_p, other_branch)),
    like(lanes_batch, lanes_p, "lanes, whose examples are exchanged")
        .rule<Batch>(batch_rolled(lanes_p)),
};

// --- Functions of the host, and checks -----------------------------------------------------------

constinit const Primitive host_batch{"mutant_host_call_batch"}, host_dead{"mutant_host_call_dead"},
    host_never{"mutant_host_call_never"};
const Definition host_mutants[] = {
    like(host_batch, host_call_p, "host_call, whose examples are exchanged")
        .rule<Batch>(batch_rolled(host_call_p)),
    like(host_dead, ordered_host_call_p, "ordered_host_call, which happens for every example")
        .rule<Guard>({{},
                      [](const Array&, std::span<const Array> inputs, const Params& params) {
                        return Arrays(bind(ordered_host_call_p, inputs, params));
                      }})
        .effectful(),
    like(host_never, ordered_host_call_p, "ordered_host_call, which happens for no example")
        .rule<Guard>({{},
                      [](const Array&, std::span<const Array> inputs, const Params& params) {
                        return rule<Guard>(ordered_host_call_p).apply(Array(false), inputs, params);
                      }})
        .effectful(),
};

// --- Matrices ------------------------------------------------------------------------------------

// A mutant of each kind for each decomposition.
const std::vector<Mutant>& matrix_mutants() {
  static std::deque<std::string> names;
  static std::deque<Primitive> primitives;
  static std::vector<Mutant> mutants;
  if (!mutants.empty()) return mutants;
  auto add = [&](const Primitive& right, const std::string& mistake, const char* law, auto plant) {
    const std::string& name =
        names.emplace_back("mutant_" + std::string(right.name()) + "_" + mistake);
    const Primitive& mutant = primitives.emplace_back(name.c_str());
    Definition definition = like(mutant, right, std::string(right.name()) + ", " + mistake);
    plant(definition);
    mutants.push_back({mutant, {law}});
  };
  const std::pair<const Primitive*, std::size_t> decompositions[] = {{&triangular_solve_p, 1},
                                                                     {&lu_p, 1},
                                                                     {&det_p, 1},
                                                                     {&qr_p, 2},
                                                                     {&eigh_p, 2},
                                                                     {&svd_p, 3},
                                                                     {&pinv_p, 1},
                                                                     {&cholesky_p, 1},
                                                                     {&eig_p, 3},
                                                                     {&schur_p, 2},
                                                                     {&triangular_sylvester_p, 1},
                                                                     {&sqrtm_p, 1},
                                                                     {&tridiagonal_solve_p, 1}};
  for (const auto& decomposition : decompositions) {
    const Primitive* const right = decomposition.first;  // clang 14 captures no structured bindings
    const auto num_outputs = decomposition.second;
    for (std::size_t k = 0; k < num_outputs; ++k) {
      const std::string of = "_" + std::to_string(k);
      add(*right, "drops" + of, "jvp", [&](Definition& d) { d.rule<Jvp>(jvp_without(*right, k)); });
      add(*right, "sign" + of, "jvp",
          [&](Definition& d) { d.rule<Jvp>(jvp_scaled(*right, k, -1)); });
      add(*right, "scale" + of, "jvp",
          [&](Definition& d) { d.rule<Jvp>(jvp_scaled(*right, k, 1.001)); });
    }
    if (Batch::table().find(*right))
      add(*right, "batch", "vmap", [&](Definition& d) { d.rule<Batch>(batch_rolled(*right)); });
    if (Transpose::table().find(*right))
      add(*right, "transpose", "transpose",
          [&](Definition& d) { d.rule<Transpose>(transpose_negative(*right)); });
    if (Mask::table().find(*right))
      add(*right, "mask", "mask", [&](Definition& d) { d.rule<Mask>(mask_of_bounds(*right)); });
  }
  return mutants;
}

const Mutant mutants[] = {
    {scan_sign, {"jvp"}},
    {scan_carry, {"jvp"}},
    {scan_order, {"adjoint"}},
    {scan_residual, {"adjoint"}},
    {scan_batch, {"vmap"}},
    {scan_direction, {"vmap"}},
    {scan_mask, {"mask"}},
    {scan_second, {"adjoint"}},
    {while_sign, {"jvp"}},
    {while_carry, {"jvp"}},
    {while_consts, {"jvp"}},
    {while_order, {"adjoint"}},
    {while_frozen, {"vmap"}},
    {while_any, {"vmap"}},
    {while_step, {"vmap"}},
    {while_batch, {"vmap"}},
    {while_lanes, {"batched gradient"}},
    {cond_sign, {"jvp"}},
    {cond_operand, {"jvp"}},
    {cond_index, {"vmap"}},
    {cond_linear, {"adjoint"}},
    {cond_lanes, {"vmap"}},
    {cond_one_branch, {"vmap"}},
    {lanes_sign, {"jvp"}},
    {lanes_transpose, {"adjoint"}},
    {lanes_batch, {"vmap"}},
    {host_batch, {"vmap"}},
    {host_dead, {"effect"}},
    {host_never, {"effect"}},
};

void check_found(const Mutant& mutant) {
  for (const std::string& law : mutant.laws) {
    const std::string primitive(mutant.primitive.name());
    CAPTURE(primitive);
    CAPTURE(law);
    CHECK(violation(law_named(law), mutant.primitive));
  }
}

}  // namespace

std::span<const Mutant> plait::laws::control_mutants() { return mutants; }

TEST_CASE("the laws find every mutant of control flow and of functions of the host") {
  for (const Mutant& mutant : mutants) check_found(mutant);
}
TEST_CASE("the laws find every mutant of decompositions of matrices") {
  for (const Mutant& mutant : matrix_mutants()) check_found(mutant);
}

constinit const Primitive right_scan{"mutant_of_no_scan"}, right_while{"mutant_of_no_while"};
const Definition right_loops[] = {
    like(right_scan, scan_p, "scan")
        .rule<Linearize>(linearize_edited(scan_p, [](auto&&...) { return std::nullopt; })),
    like(right_while, while_p, "while").rule<Batch>(batch_edited(while_p, in_lanes([](auto&&...) {
                                                                   return std::nullopt;
                                                                 }))),
};
TEST_CASE("loops in which nothing is edited pass") {
  for (const Primitive* primitive : {&right_scan, &right_while})
    for (const char* law : {"jvp", "adjoint", "vmap", "batched gradient"}) {
      const std::string found = violation(law_named(law), *primitive).value_or("");
      CAPTURE(found);
      CHECK(found.empty());
    }
}
