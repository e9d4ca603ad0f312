// The passes, in order. Each later one needs simplified programs, and leaves equations that
// simplification merges or drops.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/pipeline.h"

#include <plait/rules/prune.h>

#include <algorithm>

#include "compile/passes/draw_blocks.h"
#include "compile/passes/loop_invariant_code_motion.h"
#include "compile/passes/loop_sums.h"
#include "compile/passes/merge_masked.h"
#include "compile/passes/outer_products.h"
#include "compile/passes/rematerialize.h"
#include "compile/passes/simplify.h"
#include "compile/passes/unchanged_carries.h"

namespace plait::compile_passes {
namespace {

// For every program, bodies of loops included: all of these, in order.
constexpr struct {
  const char* name;
  Jaxpr (*run)(const Jaxpr& program, const KeepWhole& keep);
} simplification[] = {
    {"simplify equations", simplify_equations},  // it runs the passes over loops
    {"merge masked equations", [](const Jaxpr& program, auto&) { return merge_masked(program); }},
    {"dead-code elimination", [](const Jaxpr& program, auto&) { return prune(program); }},
};

// For every scan whose body is simplified: the first that changes it.
constexpr struct {
  const char* name;
  Jaxpr (*run)(const Params& scan, std::span<const Aval> operands,
               const std::function<Jaxpr(const Jaxpr&)>& simplified);
} passes_over_loops[] = {
    {"unchanged carries", forward_unchanged_in_scan},
    {"loop-invariant code motion", move_code_out_of_loop},
    {"sums behind loops", sum_behind_loop},
};

// For the whole simplified program: all of these, each followed by simplification if it changed it.
constexpr struct {
  const char* name;
  Jaxpr (*run)(const Jaxpr& program);  // empty: nothing changes
} whole_program[] = {
    {"draws of blocks", draw_blocks},
    {"outer products as multiplications", multiply_outer_products},
    {"rematerialisation", rematerialize},
};

}  // namespace

Jaxpr simplify_program(const Jaxpr& program, const KeepWhole& keep) {
  Jaxpr result = program;
  for (const auto& pass : simplification) result = pass.run(result, keep);
  return result;
}

Jaxpr simplify_loop(const Params& params, std::span<const Aval> operands, const KeepWhole& keep) {
  auto simplified = [&](const Jaxpr& body) { return simplify_program(body, keep); };
  for (const auto& pass : passes_over_loops)
    if (const Jaxpr smaller = pass.run(params, operands, simplified)) return smaller;
  return {};
}

Jaxpr prepare(const Jaxpr& program, std::span<const Backend* const> backends, Device device) {
  const KeepWhole keep = [&](const Equation& equation, std::span<const Aval> inputs,
                             std::span<const Aval> outputs) {
    return is_claimed(backends, equation, inputs, outputs, device);
  };
  Jaxpr plain = simplify_program(program, keep);
  for (const auto& pass : whole_program)
    if (const Jaxpr changed = pass.run(plain)) plain = simplify_program(changed, keep);
  return plain;
}

bool is_claimed(std::span<const Backend* const> backends, const Equation& equation,
                std::span<const Aval> inputs, std::span<const Aval> outputs, Device device) {
  return std::any_of(backends.begin(), backends.end(), [&](const Backend* backend) {
    return bool(backend->supports(equation, inputs, outputs, device));
  });
}

}  // namespace plait::compile_passes
