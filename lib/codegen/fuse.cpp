// Nests of loops whose steps are independent, with the same numbers of steps, become one where what
// one of them writes the other one reads or writes at the same indices alone. What is stored and
// read again stays a number; memory that nothing else reads goes with the dead code.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/fuse.h"

#include <algorithm>

#include "codegen/effects.h"
#include "codegen/in_place.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// Of one body; long ones are cut again: see segments.h.
constexpr std::size_t most_statements = 640, farthest = 64;

// Loops in loops, of which the innermost is parallel; outer ones only compute and load beside.
bool is_nest(const Statement& s) {
  if (s.kind != Kind::repeat || !s.carries.empty() || !s.exchanged.empty()) return false;
  const Block& block = s.blocks[0];
  if (s.is_parallel) return std::all_of(block.begin(), block.end(), is_straight);
  return s.is_apart && !block.empty() && is_nest(block.back()) &&
         std::all_of(block.begin(), block.end() - 1, [](const Statement& each) {
           return each.kind == Kind::compute || each.kind == Kind::load;
         });
}

bool have_equal_steps(const Statement& a, const Statement& b) {
  return a.steps == b.steps && a.is_parallel == b.is_parallel &&
         (a.is_parallel || have_equal_steps(a.blocks[0].back(), b.blocks[0].back()));
}

std::size_t num_statements(const Statement& nest) {
  return nest.blocks[0].size() + (nest.is_parallel ? 0 : num_statements(nest.blocks[0].back()));
}

// Whether it reads or writes at indices that it computes: one after the other, such accesses wait
// for each other, while those of loops apart overlap.
bool has_computed_places(const Statement& nest) {
  const Block& block = nest.blocks[0];
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    if (s.kind == Kind::repeat) return has_computed_places(s);
    return std::any_of(s.place.terms.begin(), s.place.terms.end(), [&](const Place::Term& term) {
      return std::any_of(block.begin(), block.end(),
                         [&](const Statement& other) { return other.value == term.index; });
    });
  });
}

template <class T>
bool have_common(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const T& each) { return std::find(b.begin(), b.end(), each) != b.end(); });
}

// Two loops whose steps are apart, of which the outer one does nothing else, as one over both
// indices, where every place goes on from one to the other alike.
class Merger {
 public:
  static void run(Block& block) {
    for (Statement& s : block) {
      for (Block& inner : s.blocks) run(inner);
      if (!runs_in_any_order(s) || s.is_parallel || s.blocks[0].size() != 1) continue;
      Statement& inner = s.blocks[0][0];
      if (!runs_in_any_order(inner) || !only_computes(inner)) continue;
      for (const bool outer_is_first : {true, false})
        if (goes_on(s, inner, outer_is_first)) {
          merge(s, outer_is_first);
          break;
        }
    }
  }

 private:
  static bool only_computes(const Statement& loop) {
    return std::all_of(loop.blocks[0].begin(), loop.blocks[0].end(), [](const Statement& s) {
      return is_straight(s) || (runs_in_any_order(s) && only_computes(s)) ||
             (s.kind == Kind::combine &&
              std::all_of(s.blocks[0].begin(), s.blocks[0].end(), is_straight));
    });
  }
  static bool goes_on(const Statement& outer, const Statement& inner, bool outer_is_first) {
    bool goes_on = true;
    for_each_statement(inner.blocks[0], [&](const Statement& s) {
      for (Value operand : s.operands)
        goes_on = goes_on && operand != outer.value && operand != inner.value;
      const std::int64_t a = stride_of(s.place, outer.value), b = stride_of(s.place, inner.value);
      goes_on = goes_on && (outer_is_first ? a == b * inner.steps : b == a * outer.steps);
    });
    return goes_on;
  }
  static void merge(Statement& outer, bool outer_is_first) {
    Statement inner = std::move(outer.blocks[0][0]);
    const Value step = inner.value, of_outer = outer.value;
    const Value first = outer_is_first ? step : of_outer;
    const auto write = [&](auto& self, Block& block) -> void {
      for (Statement& s : block) {
        const std::int64_t stride = stride_of(s.place, first);
        std::erase_if(s.place.terms, [&](const Place::Term& term) {
          return term.index == step || term.index == of_outer;
        });
        loops::add_index(s.place, {0, {{step, 1}}}, stride);
        for (Block& each : s.blocks) self(self, each);
      }
    };
    write(write, inner.blocks[0]);
    inner.steps *= outer.steps;
    outer = std::move(inner);
  }
};

class Fuser {
 public:
  explicit Fuser(LoopProgram& program) : names_(program.dtypes.size()) {
    for (std::size_t i = 0; i < names_.size(); ++i) names_[i] = Value(i);
  }

  void run(Block& block) {
    for (std::size_t i = 1; i < block.size(); ++i)
      if (const int before = loop_to_join(block, i); before >= 0) {
        join(block[std::size_t(before)], block[i]);
        block.erase(block.begin() + std::ptrdiff_t(i));
        --i;
      }
    for (Statement& s : block)
      if (!is_nest(s))
        for (Block& inner : s.blocks) run(inner);
  }

 private:
  // A nest before this one that it may become a part of, or -1.
  int loop_to_join(const Block& block, std::size_t index) {
    const Statement& loop = block[index];
    if (!is_nest(loop)) return -1;
    Effects mine;
    mine.add(loop);
    const bool is_computing = has_computed_places(loop), is_checked = has_places_to_check(loop);
    const std::size_t end = index > farthest ? index - farthest : 0;
    for (std::size_t i = index; i-- > end;) {
      const Statement& other = block[i];
      if (is_nest(other) && have_equal_steps(other, loop) &&
          num_statements(other) + num_statements(loop) <= most_statements &&
          !(has_computed_places(other) && is_computing) && may_join(other, loop))
        return int(i);
      // What is read at computed indices stays behind their checks.
      if (is_checked && has_checks(other)) return -1;
      Effects theirs;
      theirs.add(other);
      if (have_common(mine.used, theirs.defined) || have_common(mine.reads, theirs.writes) ||
          have_common(mine.writes, theirs.reads) || have_common(mine.writes, theirs.writes))
        return -1;
    }
    return -1;
  }

  struct Access {
    Place place;
    bool is_write;
  };
  static void collect(const Statement& nest, std::vector<Access>& accesses) {
    for (const Statement& s : nest.blocks[0]) {
      if (s.kind == Kind::load || s.kind == Kind::store)
        accesses.push_back({s.place, s.kind == Kind::store});
      if (s.kind == Kind::repeat) collect(s, accesses);
    }
  }
  // The counters of a nest, from the outermost on.
  static std::vector<const Statement*> loops_of(const Statement& nest) {
    std::vector<const Statement*> loops{&nest};
    while (!loops.back()->is_parallel) loops.push_back(&loops.back()->blocks[0].back());
    return loops;
  }

  static bool may_join(const Statement& first, const Statement& second) {
    const std::vector<const Statement*> loops = loops_of(first), others = loops_of(second);
    std::vector<Access> a, b;
    collect(first, a);
    collect(second, b);
    for (Access& access : b) {
      Place renamed{access.place.memory, access.place.offset};
      for (const Place::Term& term : access.place.terms) {
        Value index = term.index;
        for (std::size_t i = 0; i < loops.size(); ++i)
          if (index == others[i]->value) index = loops[i]->value;
        loops::add_index(renamed, {0, {{index, 1}}}, term.stride);
      }
      access.place = std::move(renamed);
    }
    for (const Access& x : a)
      for (const Access& y : b)
        if (x.place.memory == y.place.memory && (x.is_write || y.is_write) &&
            !(x.place == y.place && is_injective(x.place, loops)))
          return false;
    return true;
  }

  // --- Joining -----------------------------------------------------------------------------------

  Value name(Value value) const { return value < 0 ? value : names_[std::size_t(value)]; }
  void rename(Statement& s) const {
    for (Value& operand : s.operands) operand = name(operand);
    Place place{s.place.memory, s.place.offset};
    for (const Place::Term& term : s.place.terms)
      loops::add_index(place, {0, {{name(term.index), 1}}}, term.stride);
    s.place = std::move(place);
  }

  void join(Statement& into, Statement& loop) {
    names_[std::size_t(loop.value)] = into.value;
    Block& block = into.blocks[0];
    std::optional<Statement> inner;
    if (!into.is_parallel) {
      inner = std::move(block.back());
      block.pop_back();
    }
    for (Statement& s : loop.blocks[0]) {
      if (s.kind == Kind::repeat) {
        join(*inner, s);
        continue;
      }
      rename(s);
      if (const std::optional<Value> same = known_number(block, s))
        names_[std::size_t(s.value)] = *same;
      else
        block.push_back(std::move(s));
    }
    if (inner) block.push_back(std::move(*inner));
  }

  std::vector<Value> names_;  // by value: of the nests that were joined
};

}  // namespace

void fuse(LoopProgram& program) { Fuser(program).run(program.body); }
void merge(Block& block) { Merger::run(block); }

}  // namespace plait::codegen
