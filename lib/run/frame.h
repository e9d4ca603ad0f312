// The memory that one run of an executable uses: a copy of its steps' views, an arena, and handles
// of the stacks that live there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/plan.h"

#include <plait/base/stack.h>

#include <bit>

namespace plait {

class Frame {
 public:
  using Plan = compile_passes::Plan;
  using PlannedView = compile_passes::PlannedView;
  using Segment = PlannedView::Segment;

  explicit Frame(const Plan& plan)
      : inputs(plan.inputs.size()), outputs(plan.storages.size()), storages(plan.storages.size()) {
    for (const compile_passes::Step& step : plan.steps) {
      for (const PlannedView& view : step.inputs) add(plan, view);
      for (const PlannedView& view : step.outputs) add(plan, view);
    }
    for (Patch& patch : patches_) patch.view = &views[patch.number];
  }
  Frame(const Frame&) = delete;  // patches point at its members

  // Points every view at the memory of this call.
  void patch(char* arena, Stack::Handle* handles = nullptr) {
    arena_ = arena;
    handles_ = handles;
    for (const Patch& patch : patches_)
      patch.view->data = static_cast<char*>(*patch.base) + patch.byte_offset;
  }

  std::vector<View> views;  // of the steps in order: inputs, then outputs
  std::vector<void*> inputs, outputs;
  std::vector<Storage> storages;  // for outputs that this call owns

 private:
  struct Patch {
    std::size_t number;
    View* view;
    void* const* base;
    std::int64_t byte_offset;
  };
  void add(const Plan& plan, const PlannedView& planned) {
    views.push_back(planned.view);
    if (planned.segment == Segment::constant)
      views.back().data =
          static_cast<char*>(plan.constants[planned.index].placed().data) + planned.byte_offset;
    else
      patches_.push_back({views.size() - 1, nullptr, base_of(planned), planned.byte_offset});
  }
  void* const* base_of(const PlannedView& planned) const {
    if (planned.segment == Segment::arena) return &arena_;
    if (planned.segment == Segment::handles) return &handles_;
    const auto index = std::size_t(planned.index);
    return planned.segment == Segment::input ? &inputs[index] : &outputs[index];
  }
  void *arena_ = nullptr, *handles_ = nullptr;
  std::vector<Patch> patches_;
};

inline Storage allocate_output(const compile_passes::OutputStorage& wanted) {
  return wanted.is_stack ? allocate_handle() : Storage::allocate(std::size_t(wanted.bytes));
}

// Allocates an arena that is released after each run. Arenas of similar sizes share blocks, and
// pages that are never touched are never committed.
inline Storage allocate_shared_arena(std::int64_t bytes) {
  constexpr std::size_t several_huge_pages = 4 << 20;
  const auto size = std::size_t(bytes);
  return Storage::allocate(size < several_huge_pages ? size : std::bit_ceil(size));
}

inline Stack::Handle* handle_at(void* arena, std::int64_t offset) {
  return reinterpret_cast<Stack::Handle*>(static_cast<char*>(arena) + offset);
}
inline void make_handles(const compile_passes::Plan& plan, void* arena) {
  for (std::int64_t offset : plan.arena_stacks) new (handle_at(arena, offset)) Stack::Handle;
}
inline void release_handles(const compile_passes::Plan& plan, void* arena) {
  for (std::int64_t offset : plan.arena_stacks) handle_at(arena, offset)->~shared_ptr();
}

}  // namespace plait
