// See kept.h.
// SPDX-License-Identifier: Apache-2.0
#include "kept.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::cuda {
namespace {

using codegen::Block;
using codegen::Memory;
using codegen::Place;
using codegen::Statement;
using codegen::Value;
using Kind = Statement::Kind;

// Turns of a loop whose end is not known.
constexpr double usual_turns = 16;
// So often each element is read or written, on average, where it is worth to bring it.
constexpr double often = 4;
constexpr std::int64_t fewest_of_kept = 256;

// What the statements of a stage do with a memory.
struct Use {
  std::vector<Place::Term> terms;  // of the grid's counters
  std::int64_t low = 0, high = -1;
  double times = 0;  // reads and writes of its elements in a step
  bool is_written = false, fits = true;
  std::optional<int> partner;  // that it changes places with
};

class Uses {
 public:
  explicit Uses(const Stage& stage) {
    for (const Stage::Axis& axis : stage.grid) grid_.insert(axis.counter);
    add(stage.body, 1);
  }
  std::map<int, Use>& by_memory() { return uses_; }
  bool has_turns() const { return has_turns_; }

 private:
  void add(const Block& block, double times) {
    for (const Statement& s : block) add(s, times);
  }
  void add(const Statement& s, double times) {
    for (const auto& pair : s.exchanged)
      for (std::size_t i = 0; i < 2; ++i) {
        Use& use = uses_[pair[i]];
        use.fits &= !use.partner || *use.partner == pair[1 - i];
        use.partner = pair[1 - i];
      }
    for (std::size_t i = 0; i < s.exchanged.size(); ++i)
      for (const int memory : s.exchanged[i]) {
        if (s.regions.empty()) {
          uses_[memory].fits = false;
          continue;
        }
        Place place = s.regions[i].place;
        place.memory = memory;
        add(place, s.regions[i].shape, s.regions[i].strides, 0, false);
      }
    double elements = times;
    if (s.kind == Kind::copy) elements *= double(num_elements(s.shape));
    codegen::for_each_place(s, [&](const Place& place, bool is_write) {
      if (s.kind == Kind::call) uses_[place.memory].fits = false;
      add(place, s.shape, is_write ? s.strides : s.source_strides, elements, is_write);
    });
    if (s.kind == Kind::repeat || s.kind == Kind::combine)
      steps_[s.kind == Kind::combine ? s.counter : s.value] = s.steps;
    const bool is_in_order =
        s.kind == Kind::loop || (s.kind == Kind::repeat && !codegen::runs_in_any_order(s));
    has_turns_ |= is_in_order;
    const double turns = s.kind == Kind::loop ? usual_turns : s.steps > 0 ? double(s.steps) : 1;
    for (const Block& inner : s.blocks) add(inner, times * turns);
  }
  void add(const Place& place, const Sizes64& shape, const Sizes64& strides, double times,
           bool is_write) {
    Use& use = uses_[place.memory];
    std::int64_t low = place.offset, high = place.offset;
    const auto stretch = [&](std::int64_t stride, std::int64_t steps) {
      (stride < 0 ? low : high) += stride * (steps - 1);
    };
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      use.fits &= shape[axis] > 0;
      stretch(strides[axis], shape[axis]);
    }
    std::vector<Place::Term> terms;
    for (const Place::Term& term : place.terms) {
      const auto steps = steps_.find(term.index);
      if (grid_.contains(term.index))
        terms.push_back(term);
      else if (steps != steps_.end())
        stretch(term.stride, steps->second);
      else
        use.fits = false;
    }
    const bool is_first = use.high < use.low;
    use.fits &= is_first || terms == use.terms;
    use.terms = terms;
    use.low = is_first ? low : std::min(use.low, low);
    use.high = is_first ? high : std::max(use.high, high);
    use.times += times;
    use.is_written |= is_write;
  }

  std::set<Value> grid_;
  std::unordered_map<Value, std::int64_t> steps_;  // of counters in the stage
  std::map<int, Use> uses_;
  bool has_turns_ = false;
};

// Whether what steps of the grid have of a memory does not overlap.
bool is_apart(const Stage& stage, const Use& use) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // strides and steps
  for (const Stage::Axis& axis : stage.grid) {
    const auto term = std::find_if(use.terms.begin(), use.terms.end(),
                                   [&](const Place::Term& t) { return t.index == axis.counter; });
    if (axis.steps == 1) continue;
    if (term == use.terms.end() || term->stride <= 0) return false;
    axes.emplace_back(term->stride, axis.steps);
  }
  std::sort(axes.begin(), axes.end());
  std::int64_t reach = use.high - use.low + 1;
  for (const auto& [stride, steps] : axes) {
    if (stride < reach) return false;
    reach += stride * (steps - 1);
  }
  return true;
}

// Memory that no other stage sees, and nobody else.
std::set<int> own_memories(const Staged& staged, const Stage& stage) {
  std::map<int, std::set<const Stage*>> users;
  for (const Stage& each : staged.stages) {
    codegen::Effects effects;
    for (const Statement& s : each.body) effects.add(s);
    for (const int memory : effects.reads) users[memory].insert(&each);
    for (const int memory : effects.writes) users[memory].insert(&each);
  }
  std::set<int> own;
  for (const auto& [memory, stages] : users)
    if (stages.size() == 1 && *stages.begin() == &stage &&
        staged.program.memories[std::size_t(memory)].space == Memory::Space::frame)
      own.insert(memory);
  return own;
}

}  // namespace

std::int64_t room_of(const codegen::LoopProgram& program, const Row& row) {
  const DType dtype = program.memories[std::size_t(row.memory)].dtype;
  return (row.size * std::int64_t(size_of(dtype)) + 15) / 16 * 16;
}

std::vector<Kept> kept_of(const Staged& staged, const Stage& stage, std::int64_t most_bytes) {
  if (stage.grid.empty() || stage.is_cooperative || width_of(stage.body).steps < fewest_of_kept)
    return {};
  Uses all(stage);
  if (!all.has_turns()) return {};
  std::map<int, Use>& uses = all.by_memory();
  // Those that change places are one: they lie alike.
  for (auto& [memory, use] : uses) {
    if (!use.partner) continue;
    Use& other = uses[*use.partner];
    use.fits &= other.fits && other.partner == memory && use.terms == other.terms;
    use.low = other.low = std::min(use.low, other.low);
    use.high = other.high = std::max(use.high, other.high);
    use.is_written = other.is_written = true;
  }
  const std::set<int> own = own_memories(staged, stage);
  struct Choice {
    std::vector<int> memories;
    std::int64_t bytes;
    double worth;  // times an element is used
  };
  std::vector<Choice> choices;
  const auto row_for = [&](int memory) -> Row {
    const Use& use = uses[memory];
    return {memory, use.terms, use.low, use.high - use.low + 1, own.contains(memory)};
  };
  for (const auto& [memory, use] : uses) {
    if (use.partner && *use.partner < memory) continue;  // with the other one
    Choice choice{{memory}, 0, 0};
    if (use.partner) choice.memories.push_back(*use.partner);
    bool fits = true;
    double times = 0, elements = 0;
    for (const int each : choice.memories) {
      const Use& of = uses[each];
      fits &= of.fits && (!of.is_written || own.contains(each) || is_apart(stage, of));
      if (!fits) break;
      choice.bytes += room_of(staged.program, row_for(each));
      times += of.times;
      elements += double(of.high - of.low + 1);
    }
    if (!fits || elements < double(fewest_of_kept) || times < often * elements) continue;
    choice.worth = times / elements;
    choices.push_back(std::move(choice));
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.worth > b.worth; });
  std::vector<Kept> kept;
  for (const Choice& choice : choices) {
    if (choice.bytes > most_bytes) continue;
    most_bytes -= choice.bytes;
    for (const int memory : choice.memories)
      kept.push_back({row_for(memory), uses[memory].is_written});
  }
  return kept;
}

}  // namespace plait::cuda
