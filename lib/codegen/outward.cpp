// A serial loop whose steps treat the indices of an axis apart from each other, as a loop that was
// vmapped does, becomes a loop over that axis, in which each index runs all steps for itself:
//
//   for t in 0..100                          parallel for e in 0..64
//     parallel for e in 0..64                  for t in 0..100
//       m1[e] = m1[e] * 0.5 + m0[t * 64 + e]     m1[e] = m1[e] * 0.5 + m0[t * 64 + e]
//
// What an index has of an array is then a number that the loop carries (see promote.cpp), the steps
// of several indices are lanes, and threads share the axis without meeting at every step.
//
// It moves where each access to memory that the loop writes is to the part of its own index. What
// such an array holds for one index may be apart in memory: its element is outer * (stride * size)
// + index * stride + inner, where inner is less than the stride.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/outward.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/effects.h"
#include "codegen/fuse.h"
#include "codegen/lanes.h"
#include "codegen/overlap.h"
#include "codegen/promote.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t fewest_indices = 8;
constexpr std::size_t most_statements = 1500;
// Of the arrays of a step, so that those of several side by side stay in the nearest cache.
constexpr std::int64_t most_bytes = 4096;

bool is_apart(const Statement& s) {
  return s.kind == Kind::repeat && (s.is_parallel || s.is_apart);
}
bool is_serial(const Statement& s) {
  return s.kind == Kind::loop || (s.kind == Kind::repeat && !is_apart(s));
}

// Whether statements use a memory, but for one of them.
bool uses_memory(const Block& block, int memory, const Statement& except) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    if (&s == &except) return false;
    bool uses = false;
    for_each_place(s, [&](const Place& place, bool) { uses = uses || place.memory == memory; });
    for (const auto& pair : s.exchanged) uses = uses || pair[0] == memory || pair[1] == memory;
    return uses || std::any_of(s.blocks.begin(), s.blocks.end(), [&](const Block& inner) {
             return uses_memory(inner, memory, except);
           });
  });
}

// Statements that run, roughly.
double work_of(const Statement& s) {
  constexpr double usual_steps = 16;  // of a while
  double inner = 0;
  for (const Block& block : s.blocks)
    for (const Statement& each : block) inner += work_of(each);
  if (s.kind == Kind::repeat || s.kind == Kind::combine) return double(s.steps) * inner;
  return s.kind == Kind::loop ? usual_steps * inner : 1 + inner;
}

// The memories that a statement writes, with those in it.
std::set<int> written_by(const Statement& statement) {
  Effects effects;
  effects.add(statement);
  return {effects.writes.begin(), effects.writes.end()};
}

// A copy of elements as loops.
Statement as_loops(LoopProgram& program, const Statement& copy) {
  Statement load, store;
  load.kind = Kind::load, store.kind = Kind::store;
  load.source = store.source = copy.source;
  load.place = copy.source_place, store.place = copy.place;
  load.value = define(program, program.memories[std::size_t(copy.place.memory)].dtype);
  store.operands = {load.value};
  std::vector<Statement> loops;
  for (std::size_t axis = 0; axis < copy.shape.size(); ++axis) {
    if (copy.shape[axis] == 1) continue;
    Statement loop;
    loop.kind = Kind::repeat;
    loop.source = copy.source;
    loop.steps = copy.shape[axis];
    loop.is_apart = true;
    loop.value = define(program, DType::int64);
    program.know(loop.value, {0, loop.steps - 1});
    loops::add_index(load.place, {0, {{loop.value, 1}}}, copy.source_strides[axis]);
    loops::add_index(store.place, {0, {{loop.value, 1}}}, copy.strides[axis]);
    loops.push_back(std::move(loop));
  }
  Block block{load, store};
  loops.back().is_parallel = true;
  for (std::size_t i = loops.size(); i-- > 0;) {
    loops[i].blocks = {std::exchange(block, {})};
    block = {loops[i]};
  }
  return block[0];
}

void copies_as_loops(LoopProgram& program, Block& block) {
  for (Statement& s : block) {
    if (s.kind == Kind::copy && num_elements(s.shape) > 1) s = as_loops(program, s);
    for (Block& inner : s.blocks) copies_as_loops(program, inner);
  }
}

// One loop, for the axis of one size.
class Mover {
 public:
  // instead: the statement of the program that the loop stands for. choice: which loop of that size
  // is the first one along the axis.
  Mover(LoopProgram& program, const Statement& loop, const Statement& instead, std::int64_t size,
        int choice)
      : program_(program), loop_(loop), instead_(instead), size_(size), choice_(choice) {
    written_ = written_by(loop);
  }

  // The loop over the axis, or nothing.
  std::optional<Statement> run() {
    while (!plan_all())
      if (!std::exchange(grew_, false)) return {};
    Statement moved;
    moved.kind = Kind::repeat;
    moved.source = loop_.source;
    moved.steps = size_;
    moved.is_apart = true;
    moved.value = index_ = define(program_, DType::int64);
    program_.know(index_, {0, size_ - 1});
    for (const int memory : common_) program_.memories[std::size_t(memory)].size *= size_;
    Names own;
    moved.blocks = {copy_of(program_, rebuilt({loop_}), own)};
    return moved;
  }

  // Memory of the loop alone, `moved` by now, is laid so that what the indices have of it is side
  // by side: lanes load and store it together.
  void lay_side_by_side(Statement& moved) const {
    std::map<int, std::int64_t> strides = strides_;
    for (const int memory : common_)
      strides[memory] = program_.memories[std::size_t(memory)].size / size_;
    for (const auto& [memory, stride] : strides)
      if (stride > 1 && is_of_the_loop(memory, moved) && goes_by(moved, memory, stride))
        lay_side_by_side(moved, memory, stride);
  }

  // Whether other loops have its size.
  bool has_other_choices() const { return skipped_ > choice_; }

  // Whether what an index has of what steps read again lies together in memory, where it is much.
  bool lies_apart() const {
    constexpr std::int64_t many = 8;  // fill a line
    std::set<int> read;
    for_each_statement(loop_, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (!is_write) read.insert(place.memory);
      });
    });
    return std::all_of(strides_.begin(), strides_.end(), [&](const auto& each) {
      const auto& [memory, stride] = each;
      return stride >= many || !read.count(memory) ||
             program_.memories[std::size_t(memory)].size / size_ < many;
    });
  }

 private:
  // --- Whether it fits ---------------------------------------------------------------------------

  bool plan_all() {
    strides_.clear();
    counters_.clear();
    skipped_ = 0;
    common_work_ = own_work_ = 0;
    if (!plan(loop_.blocks) || counters_.empty()) return false;
    bool fits = true;
    for_each_statement(loop_, [&](const Statement& s) {
      for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
        const auto [a, b] = s.exchanged[i];
        // What steps write alone has no other place than the memory that it changes places with.
        if (strides_.count(a)) strides_.try_emplace(b, strides_[a]);
        if (strides_.count(b)) strides_.try_emplace(a, strides_[b]);
        fits = fits && strides_.count(a) && strides_.count(b) && strides_[a] == strides_[b] &&
               (s.regions.empty() || region_within(s.regions[i]));
      }
      for_each_place(s, [&](const Place& place, bool) {
        if (!common_.count(place.memory)) return;
        for (const Place::Term& term : place.terms) fits = fits && !counters_.count(term.index);
      });
    });
    // What is the same for all is computed again for each.
    constexpr double most_again = 0.25;
    return fits && common_work_ <= most_again * own_work_ / double(size_);
  }

  bool plan(const std::vector<Block>& blocks) {
    return std::all_of(blocks.begin(), blocks.end(), [&](const Block& block) {
      return std::all_of(block.begin(), block.end(), [&](const Statement& s) { return plan(s); });
    });
  }
  // What runs once in a step is run for each index: it must be the same.
  bool plan(const Statement& s) {
    switch (s.kind) {
      case Kind::compute:
      case Kind::check:
        return true;
      case Kind::load:
      case Kind::combine:
      case Kind::store:
        return is_common(s);
      case Kind::branch:
      case Kind::loop:
        return plan(s.blocks);
      case Kind::repeat: {
        if (is_apart(s) || only_checks(s)) return plan_nest(s) || is_common_nest(s);
        if (s.carries.empty() && s.exchanged.empty() && goes_along(s)) return true;
        const double before = std::exchange(times_, times_ * double(s.steps));
        const bool fits = plan(s.blocks);
        times_ = before;
        return fits;
      }
      default:
        return false;
    }
  }
  bool is_common_nest(const Statement& s) {
    common_work_ += times_ * work_of(s);
    return is_common(s);
  }

  // Whether a statement does the same for all indices. What it writes each of them gets for itself,
  // if the loop alone uses it.
  bool is_common(const Statement& s) {
    bool common = true;
    for_each_statement(s, [&](const Statement& each) {
      common = common && each.kind != Kind::call && each.exchanged.empty();
      for_each_place(each, [&](const Place& place, bool) {
        if (!written_.count(place.memory) || common_.count(place.memory)) return;
        common = false;
        if (is_of_the_loop(place.memory)) grew_ |= common_.insert(place.memory).second;
      });
    });
    return common;
  }
  // The loop is not yet part of the program: of what is, `instead` will be.
  bool is_of_the_loop(int memory) const { return is_of_the_loop(memory, instead_); }
  bool is_of_the_loop(int memory, const Statement& instead) const {
    return program_.memories[std::size_t(memory)].space == Memory::Space::frame &&
           !uses_memory(program_.body, memory, instead);
  }

  // Whether a loop goes along the axis.
  bool goes_along(const Statement& loop) {
    if (loop.steps != size_ || (counters_.empty() && skipped_++ < choice_)) return false;
    const std::map<int, std::int64_t> before = strides_;
    if (!keeps_apart(loop)) {
      strides_ = before;
      return false;
    }
    counters_.insert(loop.value);
    own_work_ += times_ * work_of(loop);
    return true;
  }
  // Whether a loop goes along the axis, or the loops in it do.
  bool plan_nest(const Statement& loop) {
    if (goes_along(loop)) return true;
    bool has_inner = false;
    for (const Statement& s : loop.blocks[0]) {
      const bool is_loop = is_apart(s) || only_checks(s);
      has_inner = has_inner || is_loop;
      if (is_loop ? !plan_nest(s) : s.kind != Kind::compute && !is_common(s)) return false;
    }
    return has_inner;
  }

  bool keeps_apart(const Statement& loop) {
    bool apart = true;
    for_each_statement(loop, [&](const Statement& s) {
      apart = apart && (s.kind != Kind::check || only_checks(loop)) && s.kind != Kind::call &&
              s.kind != Kind::branch && s.kind != Kind::copy && s.exchanged.empty();
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (!apart || !written_.count(place.memory)) return;
        apart = common_.count(place.memory) ? !is_write : is_own(place, loop.value);
      });
    });
    return apart;
  }

  // Whether an element belongs to the index alone.
  bool is_own(const Place& place, Value counter) {
    std::int64_t stride = 0;
    for (const Place::Term& term : place.terms)
      if (term.index == counter) stride += term.stride;
    if (stride <= 0) return false;
    const auto [known, is_new] = strides_.try_emplace(place.memory, stride);
    if (known->second != stride) return false;
    return place.offset % (stride * size_) >= 0 &&
           belongs_to_step(program_, place, counter, stride, size_);
  }

  // --- The new loop ------------------------------------------------------------------------------

  Block rebuilt(const Block& block) {
    Block result;
    for (const Statement& s : block) {
      if (s.kind == Kind::repeat && counters_.count(s.value)) {
        Block inner = rebuilt(s.blocks[0]);
        for (Statement& each : inner) {
          rename(each, {{s.value, index_}});
          result.push_back(std::move(each));
        }
        continue;
      }
      result.push_back(s);
      Statement& own = result.back();
      for_each_place(own, [&](Place& place, bool) {
        if (!common_.count(place.memory)) return;
        const std::int64_t size = program_.memories[std::size_t(place.memory)].size / size_;
        loops::add_index(place, {0, {{index_, 1}}}, size);
      });
      own.regions.clear();
      for (std::size_t i = 0; i < s.exchanged.size(); ++i)
        own.regions.push_back(s.regions.empty() ? region_of(s.exchanged[i][0])
                                                : *region_within(s.regions[i]));
      for (Block& inner : own.blocks) inner = rebuilt(inner);
    }
    return result;
  }

  // The elements of the index.
  Statement::Region region_of(int memory) const {
    const std::int64_t stride = strides_.at(memory), row = stride * size_;
    const std::int64_t rows = program_.memories[std::size_t(memory)].size / row;
    return {{memory, 0, {{index_, stride}}}, {rows, stride}, {row, 1}};
  }
  // Of a region, whose last elements lie side by side.
  std::optional<Statement::Region> region_within(Statement::Region region) const {
    const std::int64_t stride = strides_.at(region.place.memory), row = stride * size_;
    const std::size_t last = region.shape.size() - 1;
    if (region.shape[last] % row != 0) return {};
    loops::add_index(region.place, {0, {{index_, 1}}}, stride);
    region.shape[last] /= row;
    region.strides[last] = row;
    region.shape.push_back(stride);
    region.strides.push_back(1);
    return region;
  }

  // --- Layout ------------------------------------------------------------------------------------

  bool goes_by(const Statement& moved, int memory, std::int64_t stride) const {
    bool does = true;
    for_each_statement(moved, [&](const Statement& s) {
      does = does && s.exchanged.empty() && s.kind != Kind::copy && s.kind != Kind::call;
      for_each_place(s, [&](const Place& place, bool) {
        if (place.memory != memory) return;
        std::int64_t by = 0;
        for (const Place::Term& term : place.terms)
          if (term.index == index_) by += term.stride;
        does = does && by == stride;
      });
    });
    return does;
  }
  // From outer * (stride * size) + index * stride + inner to (outer * stride + inner) * row +
  // index.
  void lay_side_by_side(Statement& moved, int memory, std::int64_t stride) const {
    Memory& laid = program_.memories[std::size_t(memory)];
    // A row is an odd number of lines: what an index has lies in different sets of the cache.
    const std::int64_t line = 64 / size_of(laid.dtype);
    const std::int64_t row = ((size_ + line - 1) / line | 1) * line, before = stride * size_;
    const auto laid_out = [&](std::int64_t distance) {
      return (distance / before * stride + distance % before) * row;
    };
    laid.size = laid.size / size_ * row;
    const auto visit = [&](const auto& self, Statement& s) -> void {
      for_each_place(s, [&](Place& place, bool) {
        if (place.memory != memory) return;
        place.offset = laid_out(place.offset);
        for (Place::Term& term : place.terms)
          term.stride = term.index == index_ ? 0 : laid_out(term.stride);
        std::erase_if(place.terms, [](const Place::Term& term) { return term.stride == 0; });
        loops::add_index(place, {0, {{index_, 1}}}, 1);
      });
      for (Block& block : s.blocks)
        for (Statement& inner : block) self(self, inner);
    };
    visit(visit, moved);
  }

  LoopProgram& program_;
  const Statement &loop_, &instead_;
  const std::int64_t size_;
  const int choice_;
  int skipped_ = 0;
  double times_ = 1, common_work_ = 0, own_work_ = 0;  // statements
  std::set<int> written_;
  std::set<int> common_;                 // memories that hold the same for all indices
  bool grew_ = false;                    // they are more
  std::map<int, std::int64_t> strides_;  // by memory: from an index to the next one
  std::set<Value> counters_;             // of the loops along the axis
  Value index_ = -1;
};

class Outward {
 public:
  explicit Outward(LoopProgram& program) : program_(program) {}

  bool run() { return run(program_.body); }

 private:
  bool run(Block& block) {
    bool changed = false;
    for (std::size_t i = 0; i < block.size(); ++i) {
      std::optional<Statement> numbers;
      if (is_serial(block[i]) && move_with_numbers(block[i], numbers)) {
        changed = true;
        if (numbers) block.insert(block.begin() + std::ptrdiff_t(i++), std::move(*numbers));
      } else if (is_serial(block[i]) || block[i].kind == Kind::branch) {
        for (Block& inner : block[i].blocks) changed |= run(inner);
      }
    }
    return changed;
  }

  // numbers: the loop without its arrays, to run before, where it is wanted: for numbers that it
  // carries, and for its checks, which are the same for all indices.
  bool move_with_numbers(Statement& s, std::optional<Statement>& numbers) {
    Statement loop = s;
    if (has_checks(s) && (numbers = without_arrays(s, true))) {
      for (bool changes = true; std::exchange(changes, false);) {
        const std::set<Value> used = uses_of(loop);
        for (Block& block : loop.blocks)
          changes |= drop(block, [&](const Statement& each) {
            return each.kind == Kind::check || is_unused(each, used);
          });
      }
      return move(s, std::move(loop));
    }
    for (Block& block : loop.blocks) check_each(block);
    const bool fails_by_index = has_long_checks(loop);
    if (uses_behind(s) && !(numbers = without_arrays(s, false))) return false;
    if (!move(s, std::move(loop))) return false;
    program_.fails_by_example |= fails_by_index;
    return true;
  }

  // Indices that are tested together, and one by one where a test fails, are tested one by one:
  //
  //   v3 = combine or from false of v0 in 0..64     for v4 in 0..64
  //     v1 = load m0[v0]                              v5 = load m0[v4]
  //     -> whether it is outside                      check 0 <= v5 <= 9
  //   branch v3
  //    0
  //    1
  //     for v4 in 0..64
  //       v5 = load m0[v4]
  //       check 0 <= v5 <= 9
  void check_each(Block& block) const {
    for (std::size_t i = 0; i < block.size(); ++i) {
      for (Block& inner : block[i].blocks) check_each(inner);
      const std::optional<std::size_t> test = test_of(block, i);
      if (!test) continue;
      Statement checks = std::move(block[i].blocks[1][0]);
      block[i] = std::move(checks);
      block.erase(block.begin() + std::ptrdiff_t(*test), block.begin() + std::ptrdiff_t(i));
      i = *test;
    }
  }
  // Where the statements begin by which a branch knows that an index fails, of which it checks
  // each.
  std::optional<std::size_t> test_of(const Block& block, std::size_t at) const {
    const Statement& branch = block[at];
    if (at < 2 || branch.kind != Kind::branch || !branch.carries.empty() ||
        branch.blocks.size() != 2 || !branch.blocks[0].empty() || branch.blocks[1].size() != 1)
      return {};
    const Statement &cast = block[at - 1], &test = block[at - 2];
    const Statement& checks = branch.blocks[1][0];
    if (cast.kind != Kind::compute || *cast.primitive != cast_p ||
        cast.value != branch.operands[0] || test.kind != Kind::combine || *test.primitive != or_p ||
        cast.operands[0] != test.value || !only_checks(checks) || checks.steps != test.steps)
      return {};
    return compute_the_same(checks, test) ? std::optional(at - 2) : std::nullopt;
  }
  // Whether checks are of the index that a test compares with the same bounds.
  bool compute_the_same(const Statement& checks, const Statement& test) const {
    const Block &own = checks.blocks[0], &others = test.blocks[0];
    if (own.back().kind != Kind::check || others.size() < own.size()) return false;
    Names names{{checks.value, test.counter}};
    for (std::size_t i = 0; i + 1 < own.size(); ++i) {
      Statement same = own[i];
      rename(same, names);
      const Statement& other = others[i];
      if (same.kind != other.kind || !same.blocks.empty() || same.operands != other.operands ||
          same.primitive != other.primitive || !(same.params == other.params) ||
          !have_same_elements(same.place, other.place))
        return false;
      names[same.value] = other.value;
    }
    const Statement& check = own.back();
    return is_outside(test, named(names, check.operands[0]), check.low, check.high);
  }
  static bool have_same_elements(const Place& a, const Place& b) {
    const auto in_order = [](const Place& place) {
      std::map<Value, std::int64_t> strides;
      for (const Place::Term& term : place.terms) strides[term.index] += term.stride;
      return strides;
    };
    return a.memory == b.memory && a.offset == b.offset && in_order(a) == in_order(b);
  }
  // Whether a combination's terms say that an index is less than one bound or greater than another
  // one. What is known of the index may have left one of them.
  bool is_outside(const Statement& test, Value index, std::int64_t low, std::int64_t high) const {
    const auto definition = [&](Value value) {
      return std::find_if(test.blocks[0].begin(), test.blocks[0].end(),
                          [&](const Statement& s) { return s.value == value; });
    };
    const auto either = definition(test.operands[1]), end = test.blocks[0].end();
    if (either == end || either->kind != Kind::compute || *either->primitive != or_p) return false;
    int compared = 0;
    for (const Value operand : either->operands) {
      const auto compares = definition(operand);
      if (compares == end) continue;
      if (compares->kind != Kind::compute || *compares->primitive != cmp_p ||
          compares->operands[0] != index)
        return false;
      const std::string& direction = compares->params.get<std::string>("direction");
      const std::optional<std::int64_t> bound = literal(compares->operands[1]);
      if (!(direction == "lt" && bound == low) && !(direction == "gt" && bound == high))
        return false;
      ++compared;
    }
    return compared > 0;
  }
  std::optional<std::int64_t> literal(Value value) const {
    for (const auto& [known, literal] : program_.literals)
      if (known == value) return literal.integer;
    return {};
  }

  // Whether they take long beside the rest, for all indices again.
  static bool has_long_checks(const Statement& loop) {
    bool has = false;
    for_each_statement(loop, [&](const Statement& s) {
      has = has ||
            (s.kind == Kind::repeat && &s != &loop && s.steps >= fewest_indices && has_checks(s));
    });
    return has;
  }

  static std::set<Value> uses_of(const Statement& statement) {
    Effects effects;
    effects.add(statement);
    return {effects.used.begin(), effects.used.end()};
  }
  static bool is_unused(const Statement& s, const std::set<Value>& used) {
    const bool is_empty = std::all_of(s.blocks.begin(), s.blocks.end(),
                                      [](const Block& block) { return block.empty(); });
    switch (s.kind) {
      case Kind::compute:
      case Kind::load:
      case Kind::combine:
        return !used.count(s.value);
      case Kind::repeat:
      case Kind::branch:
        return s.carries.empty() && s.exchanged.empty() && is_empty;
      default:
        return false;
    }
  }
  // Drops statements, also of inner blocks. Whether there were any.
  template <class F>
  static bool drop(Block& block, const F& is_dropped) {
    bool changes = std::erase_if(block, is_dropped) > 0;
    for (Statement& s : block)
      for (Block& inner : s.blocks) changes |= drop(inner, is_dropped);
    return changes;
  }

  // Nothing where what is left needs arrays that the loop writes.
  static std::optional<Statement> without_arrays(const Statement& loop, bool with_checks) {
    const std::set<int> written = written_by(loop);
    Statement numbers = loop;
    const auto leave_exchanges = [](const auto& self, Statement& s) -> void {
      s.exchanged.clear();
      for (Block& block : s.blocks)
        for (Statement& inner : block) self(self, inner);
    };
    leave_exchanges(leave_exchanges, numbers);
    for (bool changes = true; std::exchange(changes, false);) {
      const std::set<Value> used = uses_of(numbers);
      for (Block& block : numbers.blocks)
        changes |= drop(block, [&](const Statement& s) {
          return is_apart(s) || s.kind == Kind::copy || s.kind == Kind::store ||
                 (s.kind == Kind::check && !with_checks) || is_unused(s, used);
        });
    }
    bool are_apart = true;
    for_each_statement(numbers, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool) {
        are_apart = are_apart && !written.count(place.memory);
      });
    });
    return are_apart ? std::optional(std::move(numbers)) : std::nullopt;
  }

  bool move(Statement& s, Statement loop) {
    if (num_statements({s}) > most_statements) return false;
    for (Block& block : loop.blocks) copies_as_loops(program_, block);
    return move_as_lanes(s, loop, true) || move_as_lanes(s, loop, false) || move_apart(s, loop);
  }

  // Tries the axes of a loop that stands for s: f says whether what became of it is good.
  template <class F>
  bool try_axes(Statement& s, const Statement& loop, const std::vector<std::int64_t>& sizes,
                const F& f) {
    constexpr int most_choices = 3;
    for (const std::int64_t size : sizes)
      for (int choice = 0; choice < most_choices; ++choice) {
        const std::vector<Memory> memories = program_.memories;
        Mover mover(program_, loop, s, size, choice);
        std::optional<Statement> moved = mover.run();
        if (!moved && mover.has_other_choices()) continue;
        if (!moved) break;
        Statement before = std::exchange(s, std::move(*moved));
        if (f(mover)) return true;
        s = std::move(before);
        program_.memories = memories;
      }
    return false;
  }

  // To lanes, where all that a step has for itself are numbers then.
  bool move_as_lanes(Statement& s, Statement loop, bool is_merged) {
    if (is_merged)
      for (Block& block : loop.blocks) merge(block);
    std::vector<std::int64_t> sizes = sizes_of(loop);
    std::sort(sizes.rbegin(), sizes.rend());
    return try_axes(s, loop, sizes, [&](const Mover&) {
      promote(program_, s);
      return bytes_of_a_step(s) == 0 && become_lanes(s);
    });
  }

  // To a loop whose steps are those of one index alone, or are lanes: as loops within them are, or
  // all, whichever is less work.
  bool move_apart(Statement& s, const Statement& loop) {
    const double together = Work(program_).of(s);
    return try_axes(s, loop, sizes_of(loop), [&](const Mover& mover) {
      const bool lies_apart = mover.lies_apart();
      give_lanes(s.blocks[0]);
      merge(s.blocks[0]);
      if (!has_lanes_within(s)) {
        promote(program_, s);
        if (lies_apart && bytes_of_a_step(s) > most_bytes) return true;
        return become_lanes(s, mover) ||
               (has_checks(s) && lies_apart && Work(program_).of(s) < together);
      }
      constexpr double gain = 0.7;
      const Statement before = s;
      const std::vector<Memory> memories = program_.memories;
      const double within = Work(program_).of_step(s);
      promote(program_, s);
      if (bytes_of_a_step(s) <= most_bytes && become_lanes(s, mover) &&
          Work(program_).of_step(s) < gain * within)
        return true;
      s = before, program_.memories = memories;
      if (lies_apart) run(s.blocks[0]);
      return lies_apart;
    });
  }

  // Where the axis that went outside was that of the lanes, the innermost loops have them, or the
  // ones around those where these are too short and do not merge.
  static void give_lanes(Block& block) {
    for (Statement& s : block) {
      if (s.is_parallel || s.kind == Kind::combine) continue;
      for (Block& inner : s.blocks) give_lanes(inner);
      if (!is_apart(s)) continue;
      s.is_parallel =
          std::all_of(s.blocks[0].begin(), s.blocks[0].end(), [](const Statement& each) {
            return each.kind == Kind::compute || each.kind == Kind::load ||
                   each.kind == Kind::store;
          });
    }
  }
  bool become_lanes(Statement& s) const {
    leave_loops(s.blocks[0]);
    return s.is_parallel = runs_in_lanes(s, lanes_within(s));
  }
  bool become_lanes(Statement& s, const Mover& mover) const {
    if (!become_lanes(s)) return false;
    mover.lay_side_by_side(s);
    return true;
  }
  // Which values change along with the steps.
  std::vector<bool> lanes_within(Statement& s) const {
    s.is_parallel = true;
    return find_lanes(program_);
  }

  // Whether numbers that it carries are wanted behind it.
  bool uses_behind(const Statement& loop) const {
    std::set<Value> last;
    for (const Statement::Carry& carry : loop.carries) last.insert(carry.last);
    bool used = false;
    for_each_statement(program_.body, [&](const Statement& s) {
      for_each_use(s, [&](Value value) { used = used || last.count(value); });
    });
    return used;
  }

  // Loops within a step are no lanes where its steps are.
  static void leave_loops(Block& block) {
    for (Statement& s : block) {
      if (s.is_parallel) s.is_parallel = false, s.is_apart = true;
      for (Block& inner : s.blocks) leave_loops(inner);
    }
  }

  // What a step has of the arrays that loops within it read and write.
  std::int64_t bytes_of_a_step(const Statement& loop) const {
    std::set<Value> own;
    for_each_statement(loop.blocks[0], [&](const Statement& s) {
      for_each_definition(s, [&](Value value) { own.insert(value); });
    });
    std::set<int> read;
    std::map<int, std::int64_t> written;  // to the elements that most places reach
    const auto visit = [&](const Place& place, bool is_write) {
      if (!is_write) {
        read.insert(place.memory);
        return;
      }
      std::int64_t& elements = written[place.memory];
      elements = std::max(elements, elements_within(loop, place, own));
    };
    for (const Statement& s : loop.blocks[0])
      for (const Block& inner : s.blocks)
        for_each_statement(inner, [&](const Statement& each) { for_each_place(each, visit); });
    std::int64_t bytes = 0;
    for (const auto& [memory, elements] : written)
      if (read.count(memory))
        bytes += elements * size_of(program_.memories[std::size_t(memory)].dtype);
    return bytes;
  }
  // How many elements of a memory a step reaches at a place, whose own indices are these.
  std::int64_t elements_within(const Statement& loop, const Place& place,
                               const std::set<Value>& own) const {
    const std::int64_t most = program_.memories[std::size_t(place.memory)].size / loop.steps;
    std::int64_t elements = 1;
    for (const Place::Term& term : place.terms) {
      if (!own.count(term.index)) continue;
      const std::optional<Range> range = program_.range(term.index);
      if (!range || range->high - range->low >= most) return most;
      elements = std::min(most, elements * (range->high - range->low + 1));
    }
    return elements;
  }
  // Whether there are loops within a step that are long enough for lanes.
  static bool has_lanes_within(const Statement& loop) {
    bool has = false;
    for_each_statement(loop.blocks[0], [&](const Statement& s) {
      has = has || ((s.is_parallel || s.kind == Kind::combine) && s.steps >= fewest_indices);
    });
    return has;
  }

  // Of the axes that loops go along, from outer loops to inner ones.
  static std::vector<std::int64_t> sizes_of(const Statement& loop) {
    std::vector<std::int64_t> sizes;
    for (const Block& block : loop.blocks)
      for_each_statement(block, [&](const Statement& s) {
        if (is_apart(s) && s.steps >= fewest_indices &&
            std::find(sizes.begin(), sizes.end(), s.steps) == sizes.end())
          sizes.push_back(s.steps);
      });
    return sizes;
  }

  LoopProgram& program_;
};

}  // namespace

bool move_outward(LoopProgram& program) { return Outward(program).run(); }

}  // namespace plait::codegen
