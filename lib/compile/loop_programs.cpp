// Lowers, with the bodies of loops simplified as those that run step by step are. See
// loop_programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/loop_programs.h"

#include <array>
#include <unordered_map>

#include "codegen/prune.h"
#include "compile/passes/pipeline.h"

namespace plait::compile_passes {
namespace {

// The first equation that a library takes, which then runs it better than a loop over numbers.
const Equation* taken_by(std::span<const Backend* const> libraries, const Jaxpr& program) {
  for (const Equation& equation : program->equations) {
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
    for (Var var : equation.outputs) outputs.push_back(program->aval(var));
    if (is_claimed(libraries, equation, inputs, outputs)) return &equation;
  }
  return nullptr;
}

codegen::Lowered lower(const Jaxpr& group) {
  const auto keep_none = [](const Equation&, std::span<const Aval>, std::span<const Aval>) {
    return false;
  };
  const std::vector<const Backend*> libraries = backends_of(Device::Kind::cpu, Preference::library);
  std::string taken;
  codegen::Lowered lowered = codegen::lower(group, [&](const Jaxpr& body) {
    const Jaxpr simple = simplify_program(body, keep_none);
    if (const Equation* equation = taken_by(libraries, simple); equation && taken.empty())
      taken = "a library takes `" + std::string(equation->primitive->name()) + "`";
    return simple;
  });
  if (!taken.empty()) return {{}, taken};
  if (lowered.program) codegen::prune(*lowered.program);
  return lowered;
}

}  // namespace

// A loop is asked for several times in turn: by each backend, as one that may be claimed and as a
// group.
SharedLowered loop_program(const Jaxpr& group) {
  struct Entry {
    Jaxpr group;
    SharedLowered program;
  };
  static thread_local std::array<Entry, 8> entries;
  Entry& entry = entries[group.hash() % entries.size()];
  if (entry.group && entry.group == group) return entry.program;
  SharedLowered program = std::make_shared<const codegen::Lowered>(lower(group));
  // Host functions are released by their owner, not by the cache of a thread.
  if (!holds_callable(group)) entry = {group, program};
  return program;
}

SharedLowered loop_program(const Equation& equation, std::span<const Aval> inputs) {
  Builder builder;
  std::vector<Atom> atoms = equation.inputs;
  std::unordered_map<int, Var> binders;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (!atoms[i].is_var()) continue;
    const auto [binder, is_new] = binders.try_emplace(atoms[i].var().id);
    if (is_new) binder->second = builder.add_binder(inputs[i]);
    atoms[i] = binder->second;
  }
  const std::vector<Var> outputs =
      builder.add(*equation.primitive, std::move(atoms), equation.params, equation.source);
  return loop_program(builder.close({outputs.begin(), outputs.end()}));
}

}  // namespace plait::compile_passes
