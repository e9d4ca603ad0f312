// See joins.h.
//
// A group grows by an equation at a time, and to lower it each time takes most of the time that a
// program is compiled in. So what comes next is looked at ahead: where a group and the group with
// the next elementwise equations are as many kernels, those between them are taken to be as many.
// They may be more, where it is only a later equation that brings two kernels together; the group
// is the better one then.
// SPDX-License-Identifier: Apache-2.0
#include "joins.h"

#include <algorithm>
#include <array>
#include <set>

#include "codegen/lower.h"
#include "compile/loop_programs.h"
#include "loop_products.h"
#include "lowered.h"

namespace plait::cuda {
namespace {

using Equations = std::vector<int>;  // ascending

constexpr std::size_t largest_group = 192;
// Beyond, to lower a group that grows takes longer than a launch that it saves.
constexpr std::size_t largest_lowered = 64;
constexpr std::size_t farthest_ahead = 16;

constexpr Device any{Device::Kind(1), 0};  // of these devices

bool is_elementwise(const Jaxpr& program, std::span<const int> equations) {
  return std::all_of(equations.begin(), equations.end(), [&](int index) {
    return Pointwise::table().find(*program->equations[std::size_t(index)].primitive);
  });
}
const Shape& shape_of(const Jaxpr& program, int equation) {
  return program->avals[std::size_t(program->equations[std::size_t(equation)].outputs[0].id)].shape;
}

// Of a program that may be gone: another one in its place has another hash, or is the same.
struct Identity {
  const void* address = nullptr;
  std::size_t hash = 0;
  explicit Identity(const Jaxpr& program) : address(program.operator->()), hash(program.hash()) {}
  Identity() = default;
  bool operator==(const Identity&) const = default;
};

// Groups that are as many kernels, and those between them.
struct KernelRange {
  Identity program;
  Equations least, most;
  std::size_t kernels = 0;
  bool has(const Identity& of, const Equations& equations) const {
    return program == of && std::ranges::includes(equations, least) &&
           std::ranges::includes(most, equations);
  }
};

// What this thread knows of the program that it compiles.
struct Known {
  std::array<KernelRange, 8> ranges;
  std::size_t next = 0;
};
Known& known() {
  static thread_local Known known;
  return known;
}

class Joining {
 public:
  Joining(const Jaxpr& program, std::span<const int> uses)
      : program_(program), identity_(program), uses_(uses) {}

  bool saves_a_kernel(const Equations& group, const Equations& more) const {
    const std::optional<std::size_t> first = kernels_of(group), second = kernels_of(more);
    if (!first || !second) return false;
    const Equations all = united(group, more);
    const std::optional<std::size_t> known = known_kernels(all),
                                     both = known ? known : kernels_of(all);
    if (!both || *both >= *first + *second) return false;
    if (!known) look_ahead(all, *both);
    return true;
  }

 private:
  static Equations united(const Equations& a, const Equations& b) {
    Equations all;
    std::ranges::set_union(a, b, std::back_inserter(all));
    return all;
  }
  std::optional<std::size_t> known_kernels(const Equations& equations) const {
    for (const KernelRange& range : known().ranges)
      if (range.has(identity_, equations)) return range.kernels;
    return {};
  }
  // How many kernels equations are, as one group; absent where they have no loop program.
  std::optional<std::size_t> kernels_of(const Equations& equations) const {
    if (const auto kernels = known_kernels(equations)) return kernels;
    const Jaxpr group = codegen::program_of(*program_, equations,
                                            compile_passes::results_of(program_, uses_, equations));
    const Lowered made = lowered(group, compile_passes::dense_inputs(group), any);
    if (!made.staged) return {};
    return made.staged->stages.size();
  }

  // Whether the elementwise equations that come next are no more kernels.
  void look_ahead(const Equations& group, std::size_t kernels) const {
    Known& now = known();
    for (std::size_t count = farthest_ahead; count > 0; count /= 2) {
      const Equations ahead = with_next(group, count);
      if (ahead.size() == group.size()) return;
      if (kernels_of(ahead) != kernels) continue;
      now.ranges[now.next++ % now.ranges.size()] = {identity_, group, ahead, kernels};
      return;
    }
  }

  // With so many of the later equations that read from it, and the views that they read through.
  Equations with_next(const Equations& all, std::size_t count) const {
    std::set<int> together(all.begin(), all.end());
    std::set<int> made;                     // vars
    std::vector<std::pair<int, int>> seen;  // vars of views of these, and their equations
    const auto add = [&](int index) {
      together.insert(index);
      for (const Var var : equation(index).outputs) made.insert(var.id);
    };
    for (const int index : all) add(index);
    const auto end =
        int(std::min(program_->equations.size(), std::size_t(all.back()) + 1 + 4 * farthest_ahead));
    for (int index = all.back() + 1; index < end && count > 0; ++index) {
      if (together.size() >= largest_lowered) break;
      bool reads = false;
      for (const Atom& atom : equation(index).inputs) {
        if (!atom.is_var()) continue;
        const int var = atom.var().id;
        reads = reads || made.count(var) > 0;
        for (const auto& [view, by] : seen)
          if (view == var) add(by), reads = true;
      }
      if (!reads) continue;
      if (Alias::table().find(*equation(index).primitive)) {
        for (const Var var : equation(index).outputs) seen.emplace_back(var.id, index);
      } else if (Pointwise::table().find(*equation(index).primitive)) {
        add(index);
        --count;
      }
    }
    if (together.size() > largest_lowered) return all;
    return {together.begin(), together.end()};
  }
  const Equation& equation(int index) const { return program_->equations[std::size_t(index)]; }

  const Jaxpr& program_;
  const Identity identity_;
  const std::span<const int> uses_;
};

}  // namespace

bool are_better_as_one(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                       std::span<const int> more) {
  if (group.size() + more.size() > largest_group) return false;
  if (is_elementwise(program, group) && is_elementwise(program, more))
    return shape_of(program, group[0]) == shape_of(program, more[0]);
  if (group.size() + more.size() > largest_lowered) return false;
  for (const std::span<const int> part : {group, more})
    for (const int index : part)
      if (has_library_products(program->equations[std::size_t(index)], any)) return false;
  Equations first(group.begin(), group.end()), second(more.begin(), more.end());
  std::ranges::sort(first);  // views stand behind
  std::ranges::sort(second);
  return Joining(program, uses).saves_a_kernel(first, second);
}

}  // namespace plait::cuda
