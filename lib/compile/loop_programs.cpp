// Lowers, with the bodies of loops simplified as those that run step by step are. See
// loop_programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/loop_programs.h"

#include <plait/control/primitives.h>
#include <plait/rules/bodies.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "codegen/ahead.h"
#include "codegen/column_sums.h"
#include "codegen/columns.h"
#include "codegen/combine_turns.h"
#include "codegen/copy_loops.h"
#include "codegen/cost.h"
#include "codegen/effects.h"
#include "codegen/feed.h"
#include "codegen/fuse.h"
#include "codegen/hand_on.h"
#include "codegen/invariants.h"
#include "codegen/inward.h"
#include "codegen/once.h"
#include "codegen/outward.h"
#include "codegen/own.h"
#include "codegen/promote.h"
#include "codegen/prune.h"
#include "codegen/segments.h"
#include "codegen/share.h"
#include "codegen/short_rows.h"
#include "codegen/side_by_side.h"
#include "codegen/together.h"
#include "codegen/uniform.h"
#include "codegen/unite.h"
#include "compile/passes/pipeline.h"

namespace plait::compile_passes {
namespace {

constexpr Device host;

// A kernel of the CPU, of what neither compiles slowly nor is a loop itself.
std::shared_ptr<const Kernel> kernel_for(const Jaxpr& program, std::span<const Sizes64> strides) {
  const Equation& equation = program->equations[0];
  std::vector<Aval> inputs, outputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
  for (Var var : equation.outputs) outputs.push_back(program->aval(var));
  // Of what a slow library takes, neither: such a loop changes over between its steps.
  for (const Backend* library : backends_of(host, Preference::library))
    if (!library->runs_eagerly() && library->supports(equation, inputs, outputs, host))
      return nullptr;
  for (const Backend* backend : backends_of(host))
    if (backend->runs_eagerly() && backend->supports(equation, inputs, outputs, host))
      return backend->compile(program, {host, strides});
  return nullptr;
}

// What one thread does in a step beside its calls, in operations.
double work_beside_calls(const codegen::Block& block) {
  using Kind = codegen::Statement::Kind;
  double work = 0;
  for (const codegen::Statement& s : block) {
    if (s.grain > 0) continue;
    double inner = 0;
    for (const codegen::Block& each : s.blocks) inner += work_beside_calls(each);
    work += s.kind == Kind::repeat || s.kind == Kind::combine ? double(s.steps) * inner
            : s.kind == Kind::copy                            ? double(num_elements(s.shape))
                                                              : 1 + inner;
  }
  return work;
}
bool has_calls(const codegen::Block& block) {
  return std::any_of(block.begin(), block.end(), [](const codegen::Statement& s) {
    return s.call || std::any_of(s.blocks.begin(), s.blocks.end(), has_calls);
  });
}
// Whether steps that call kernels leave too much to one thread: step by step, they use several.
bool are_long_beside_calls(const codegen::Block& block) {
  constexpr double most_work = 1 << 20;
  return std::any_of(block.begin(), block.end(), [](const codegen::Statement& s) {
    return std::any_of(s.blocks.begin(), s.blocks.end(), [](const codegen::Block& step) {
      return has_calls(step) &&
             (work_beside_calls(step) > most_work || are_long_beside_calls(step));
    });
  });
}

using Operands = std::span<const Aval>;

codegen::Lowered lower(const Jaxpr& group, std::span<const Sizes64> strides, Device device,
                       const KeepWhole& keep) {
  const std::vector<const Backend*> libraries =
      device.is_host() ? backends_of(host, Preference::library) : std::vector<const Backend*>();
  // The steps of a loop wait for each other; where there is none, lanes are better than lists.
  constexpr std::int64_t few_without_loops = 4;
  const bool has_loops = std::any_of(
      group->equations.begin(), group->equations.end(),
      [](const Equation& equation) { return has_loop_body(equation) || runs_examples(equation); });
  return codegen::lower(group, strides,
                        {[&](const Jaxpr& body) { return simplify_program(body, keep); },
                         [&](const Equation& equation, Operands inputs, Operands outputs) {
                           return is_claimed(libraries, equation, inputs, outputs, host);
                         },
                         kernel_for, has_loops ? loops::few : few_without_loops, device.is_host()});
}

// Loops over the same rows become one, in which a row that was read or made stays near.
void bring_loops_together(codegen::LoopProgram& program) {
  codegen::fuse(program);
  codegen::move_outward(program);
  codegen::move_copies_inward(program);
  codegen::unite(program);
  codegen::move_copies_inward(program);
  codegen::promote(program);
  codegen::compute_once(program);
  codegen::merge(program.body);
  codegen::hand_on(program);
  codegen::prune(program);
}
// Passes over a row become fewer.
void bring_passes_together(codegen::LoopProgram& program, Device device) {
  if (device.is_host() && codegen::sum_columns_with_rows(program)) {
    codegen::move_uniform_numbers(program);
    codegen::compute_once(program);
    codegen::prune(program);
  }
  if (codegen::feed_combinations(program)) {
    codegen::fuse(program);
    codegen::prune(program);
  }
  codegen::move_uniform_numbers(program);
  codegen::bring_combinations_together(program);
}

std::optional<int> count_loops_apart(const codegen::Block& body) {
  int loops = 0;
  for (const codegen::Statement& s : body) {
    codegen::Effects effects;
    effects.add(s);
    if (s.blocks.empty() || effects.writes.empty()) continue;
    if (!s.is_parallel && !s.is_apart) return {};
    ++loops;
  }
  return loops;
}

codegen::Lowered finished(codegen::Lowered lowered, Device device) {
  if (!lowered.program) return lowered;
  codegen::LoopProgram& program = *lowered.program;
  codegen::move_invariants(program);
  if (!device.is_host()) codegen::write_copies_out(program);
  bring_loops_together(program);
  lowered.loops_apart = count_loops_apart(program.body);
  bring_passes_together(program, device);
  if (!device.is_host()) {
    if (codegen::combine_turns(program)) {
      codegen::feed_combinations(program);
      codegen::compute_once(program);
      codegen::prune(program);
    }
    return lowered;
  }
  codegen::run_side_by_side(program);
  codegen::take_in_rows(program);
  codegen::join_short_rows(program);
  codegen::cut_chains(program);
  codegen::give_steps_their_own(program);
  codegen::share(program);
  codegen::ask_ahead(program);
  if (are_long_beside_calls(program.body)) return {{}, "its steps are long"};
  return lowered;
}

// Examples in the steps of a loop that may go their own ways do all that any of them does, or one
// after the other what each of them does, whichever is predicted to take less.
codegen::Lowered lower(const Jaxpr& group, std::span<const Sizes64> strides, Device device) {
  bool go_apart = false;
  codegen::Lowered together =
      lower(group, strides, device, [&](const Equation& equation, Operands, Operands) {
        go_apart |= *equation.primitive == lanes_p && LanesParams(equation.params).is_divergent();
        return false;
      });
  if (!go_apart || (together.program && !device.is_host()))
    return finished(std::move(together), device);
  codegen::Lowered apart =
      lower(group, strides, device, [](const Equation& equation, Operands, Operands) {
        return *equation.primitive == lanes_p && LanesParams(equation.params).is_divergent();
      });
  if (!apart.program) return finished(std::move(together), device);
  apart = finished(std::move(apart), device);
  if (!together.program) return apart;
  together = finished(std::move(together), device);
  if (!together.program || !apart.program) return together;
  // Together, all wait for the one that takes longest.
  constexpr double longest = 1.5;
  return codegen::predict(*apart.program).ns < longest * codegen::predict(*together.program).ns
             ? apart
             : together;
}

}  // namespace

bool have_same_sources(const Jaxpr& one, const Jaxpr& other) {
  if (one.operator->() == other.operator->()) return true;
  const auto bodies_of = [](const Params& params) {
    std::vector<Jaxpr> bodies;
    for_each_body(params, [&](const Jaxpr& body) { bodies.push_back(body); });
    return bodies;
  };
  return std::ranges::equal(
      one->equations, other->equations, [&](const Equation& a, const Equation& b) {
        return a.source == b.source &&
               std::ranges::equal(bodies_of(a.params), bodies_of(b.params), have_same_sources);
      });
}

std::vector<int> results_of(const Jaxpr& program, std::span<const int> uses,
                            std::span<const int> equations) {
  std::unordered_map<int, int> inner_uses;
  for (const int index : equations)
    for (const Atom& atom : program->equations[std::size_t(index)].inputs)
      if (atom.is_var()) ++inner_uses[atom.var().id];
  std::vector<int> results;
  for (const int index : equations)
    for (const Var var : program->equations[std::size_t(index)].outputs)
      if (uses[std::size_t(var.id)] > inner_uses[var.id]) results.push_back(var.id);
  return results;
}

bool run_as_one(const Jaxpr& program, std::span<const int> uses, std::vector<int> equations) {
  std::sort(equations.begin(), equations.end());
  const auto may_be_part = [&](int index) {
    const Equation& equation = program->equations[std::size_t(index)];
    if (!has_loop_body(equation) && !runs_examples(equation)) return true;
    std::vector<Aval> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
    return loop_program(equation, inputs)->loops_apart.has_value();
  };
  return std::all_of(equations.begin(), equations.end(), may_be_part) &&
         loop_program(
             codegen::program_of(*program, equations, results_of(program, uses, equations)))
                 ->loops_apart == 1;
}

bool counts_lane_work(const codegen::LoopProgram& program) {
  return std::any_of(program.memories.begin(), program.memories.end(), [](const auto& memory) {
    return memory.space == codegen::Memory::Space::counts;
  });
}

void raise_step_by_step(const Jaxpr& group, std::span<const View> inputs, const Launch& launch) {
  std::vector<View> views(inputs.begin(), inputs.end());  // by var
  views.resize(group->avals.size());
  std::vector<Buffer> made;
  for (const Equation& equation : group->equations) {
    std::vector<Aval> from, to;
    std::vector<View> operands, results;
    std::vector<Sizes64> strides;
    std::set<int> known;
    for (const Atom& atom : equation.inputs) {
      from.push_back(group->aval(atom));
      if (!atom.is_var() || !known.insert(atom.var().id).second) continue;
      operands.push_back(views[std::size_t(atom.var().id)]);
      strides.push_back(operands.back().strides);
    }
    for (const Var var : equation.outputs) {
      to.push_back(group->aval(var));
      made.push_back(Buffer::empty(to.back().dtype, to.back().shape.to_sizes()));
      results.push_back(views[std::size_t(var.id)] = made.back().view());
    }
    const std::vector<const Backend*> backends = backends_of(host, Preference::reference);
    const auto backend =
        std::find_if(backends.begin(), backends.end(), [&](const Backend* each) -> bool {
          return bool(each->supports(equation, from, to, host));
        });
    if (backend == backends.end()) return;
    const std::unique_ptr<Kernel> kernel =
        (*backend)->compile(codegen::program_of(equation, from), {host, strides});
    const Storage scratch = Storage::allocate(std::size_t(kernel->scratch_bytes()));
    kernel->enqueue(operands, results, scratch.data(), launch);
  }
}

std::vector<Sizes64> dense_inputs(const Jaxpr& group) {
  std::vector<Sizes64> strides;
  for (const Aval& aval : group->input_avals())
    strides.push_back(aval.shape.is_constant() ? dense_strides(aval.shape.to_sizes()) : Sizes64());
  return strides;
}

std::vector<Sizes64> inputs_as_read(const Jaxpr& group, std::span<const Sizes64> given) {
  std::vector<Sizes64> strides = dense_inputs(group);
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (std::all_of(given[i].begin(), given[i].end(), [](std::int64_t s) { return s >= 0; }))
      strides[i] = given[i];
  return strides;
}

// A loop is asked for several times in turn: by each backend, as one that may be claimed and as a
// group.
SharedLowered loop_program(const Jaxpr& group, std::span<const Sizes64> strides, Device device) {
  struct Entry {
    Jaxpr group;
    std::vector<Sizes64> strides;
    Device device;
    SharedLowered program;
  };
  static thread_local std::array<Entry, 8> entries;
  Entry& entry = entries[group.hash() % entries.size()];
  if (entry.group && entry.group == group && entry.device == device &&
      std::ranges::equal(entry.strides, strides) && have_same_sources(entry.group, group))
    return entry.program;
  SharedLowered program = std::make_shared<const codegen::Lowered>(lower(group, strides, device));
  // Host functions are released by their owner, not by the cache of a thread.
  if (!holds_callable(group)) entry = {group, {strides.begin(), strides.end()}, device, program};
  return program;
}

SharedLowered loop_program(const Jaxpr& group) { return loop_program(group, dense_inputs(group)); }

SharedLowered loop_program(const Equation& equation, std::span<const Aval> inputs, Device device) {
  const Jaxpr group = codegen::program_of(equation, inputs);
  return loop_program(group, dense_inputs(group), device);
}

}  // namespace plait::compile_passes
