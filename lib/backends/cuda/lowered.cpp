// See lowered.h.
// SPDX-License-Identifier: Apache-2.0
#include "lowered.h"

#include <algorithm>
#include <array>

#include "codegen/walk.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Longer ones take seconds to compile.
constexpr std::size_t most_statements_of_text = 4000;

Lowered lower_anew(const Jaxpr& group, std::span<const Sizes64> strides,
                   std::int64_t fewest_of_cooperative) {
  constexpr Device any{Device::Kind(1), 0};
  const compile_passes::SharedLowered program = compile_passes::loop_program(group, strides, any);
  if (!program->program) return {nullptr, program->reason};
  if (codegen::num_statements(program->program->body) > most_statements_of_text)
    return {nullptr, "too many statements"};
  if (program->program->memories.size() > most_parameters) return {nullptr, "too many arrays"};
  return {std::make_shared<const Staged>(stages_of(*program->program, fewest_of_cooperative)), {}};
}

}  // namespace

// A group that grows is asked for again whenever it may take in an equation, and so are those that
// it may take in; what is compiled was asked for shortly before.
Lowered lowered(const Jaxpr& group, std::span<const Sizes64> strides, Device,
                std::int64_t fewest_of_cooperative) {
  struct Entry {
    Jaxpr group;
    std::vector<Sizes64> strides;
    std::int64_t fewest_of_cooperative = 0;
    Lowered lowered;
  };
  static thread_local std::array<Entry, 64> entries;
  Entry& entry = entries[group.hash() % entries.size()];
  if (entry.group && entry.group == group && entry.fewest_of_cooperative == fewest_of_cooperative &&
      std::ranges::equal(entry.strides, strides) &&
      compile_passes::have_same_sources(entry.group, group))
    return entry.lowered;
  Lowered made = lower_anew(group, strides, fewest_of_cooperative);
  // Host functions are released by their owner, not by a thread.
  if (!holds_callable(group))
    entry = {group, {strides.begin(), strides.end()}, fewest_of_cooperative, made};
  return made;
}

}  // namespace plait::cuda
