// Two loops one after the other, whose steps are apart, become one loop where each step of the
// second one uses of what the first one makes only what the step of the same number has made: it is
// still in the cache then, and threads that share the steps meet once.
//
//   apart for e in 0..64                     apart for e in 0..64
//     for t in 0..100                          for t in 0..100
//       m1[t * 64 + e] = ...                     m1[t * 64 + e] = ...
//   apart for e in 0..64                       for t in 0..100
//     for t in 0..100                            ... = m1[t * -64 + e + 6336]
//       ... = m1[t * -64 + e + 6336]
//
// Where one of them has several steps for each of the other's, as lanes that are examples times
// elements, it is cut into loops of as many. Lanes that compute a number for each row, and loops
// that read the same rows, join the loop over the rows, in which such numbers stay numbers. It runs
// behind outward.cpp, which makes such loops of serial ones.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/unite.h"

#include <algorithm>
#include <set>

#include "codegen/cut.h"
#include "codegen/effects.h"
#include "codegen/part.h"
#include "codegen/promote.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// More in one body is long to compile, and loops farther from each other are seldom of one kind.
constexpr std::size_t most_statements = 1500, farthest = 64;

// What a statement and those in it do, as sets.
struct Deeds {
  explicit Deeds(const Statement& statement) {
    Effects effects;
    effects.add(statement);
    reads.insert(effects.reads.begin(), effects.reads.end());
    writes.insert(effects.writes.begin(), effects.writes.end());
    used.insert(effects.used.begin(), effects.used.end());
    defined.insert(effects.defined.begin(), effects.defined.end());
    is_checked = has_places_to_check(statement);
    for_each_statement(statement, [&](const Statement& s) {
      may_fail = may_fail || s.kind == Kind::check || s.kind == Kind::call;
    });
  }

  std::set<int> reads, writes;
  std::set<Value> used, defined;
  bool may_fail = false;
  bool is_checked = false;  // what it reads at computed indices stays behind their checks
};

template <class T>
bool have_common(const std::set<T>& a, const std::set<T>& b) {
  return std::any_of(a.begin(), a.end(), [&](const T& each) { return b.count(each) > 0; });
}
bool are_independent(const Deeds& a, const Deeds& b) {
  return !have_common(a.defined, b.used) && !have_common(b.defined, a.used) &&
         !have_common(a.writes, b.reads) && !have_common(a.reads, b.writes) &&
         !have_common(a.writes, b.writes) && !(a.may_fail && (b.may_fail || b.is_checked)) &&
         !(a.is_checked && b.may_fail);
}

class Uniter {
 public:
  explicit Uniter(LoopProgram& program) : program_(program) {}

  void run(Block& block) {
    for (std::size_t i = 1; i < block.size(); ++i) {
      if (!runs_in_any_order(block[i])) continue;
      const std::size_t end = i > farthest ? i - farthest : 0;
      for (std::size_t before = i; before-- > end;)
        if (runs_in_any_order(block[before]) && unite(block, before, i)) {
          i = before - 1;  // which may go on with one before it now
          break;
        }
    }
  }

 private:
  // Whether they are one now, at the place of the first one or behind it.
  bool unite(Block& block, std::size_t& first, std::size_t second) {
    if (num_statements({block[first]}) + num_statements({block[second]}) > most_statements)
      return false;
    const Deeds a(block[first]), b(block[second]);
    if ((!have_common(a.writes, b.reads) && !read_same_rows(block[first], block[second], a, b)) ||
        (a.may_fail && b.may_fail))
      return false;
    std::vector<Statement> ahead, behind;
    for (std::size_t i = first + 1; i < second; ++i) {
      const Deeds mine(block[i]);
      const auto is_independent = [&](const Statement& s) {
        return are_independent(Deeds(s), mine);
      };
      if (are_independent(a, mine) && std::all_of(behind.begin(), behind.end(), is_independent))
        ahead.push_back(block[i]);
      else if (are_independent(b, mine))
        behind.push_back(block[i]);
      else
        return false;
    }
    const std::size_t before = program_.dtypes.size();
    std::optional<Statement> united = united_of(block[first], block[second], a, b);
    if (!united) {
      program_.dtypes.resize(before);
      if (program_.ranges.size() > before) program_.ranges.resize(before);
      return false;
    }
    auto at = std::move(ahead.begin(), ahead.end(), block.begin() + std::ptrdiff_t(first));
    first = std::size_t(at - block.begin());
    *at++ = std::move(*united);
    at = std::move(behind.begin(), behind.end(), at);
    block.erase(at);
    if (block[first].is_parallel) {
      promote(program_, block[first]);
      return true;
    }
    run(block[first].blocks[0]);
    if (goes_through_rows(block[first])) keep_numbers(program_, block[first]);
    return true;
  }

  std::optional<Statement> united_of(const Statement& first, const Statement& second,
                                     const Deeds& a, const Deeds& b) {
    std::optional<Statement> united = first, more = second;
    if (first.steps != second.steps) {
      if (first.is_parallel && !second.is_parallel)
        united = cut(first, second.steps);
      else if (second.is_parallel && !first.is_parallel)
        more = cut(second, first.steps);
      else
        return {};
    } else if (united->is_parallel != more->is_parallel) {
      Statement &lanes = united->is_parallel ? *united : *more,
                &rows = united->is_parallel ? *more : *united;
      if (!make_rows(lanes, rows)) return {};
    }
    if (!united || !more || united->is_parallel != more->is_parallel) return {};
    for (Statement& s : more->blocks[0]) {
      rename(s, {{more->value, united->value}});
      united->blocks[0].push_back(std::move(s));
    }
    std::set<int> common;
    for (const auto& [writes, other] : {std::pair(&a, &b), std::pair(&b, &a)})
      for (const int memory : writes->writes)
        if (other->reads.count(memory) || other->writes.count(memory)) common.insert(memory);
    const bool keeps_apart = std::all_of(common.begin(), common.end(), [&](int memory) {
      const std::optional<std::int64_t> stride = stride_of_parts(*united, memory);
      return stride && Part(program_, *united, memory, *stride).is_all_that_steps_use();
    });
    return keeps_apart ? std::move(united) : std::nullopt;
  }

  // Whether their steps read the same parts of a large memory.
  bool read_same_rows(const Statement& first, const Statement& second, const Deeds& a,
                      const Deeds& b) const {
    constexpr std::int64_t first_cache = 32 << 10;
    if (first.steps != second.steps || first.is_parallel || second.is_parallel ||
        !goes_through_rows(first) || !goes_through_rows(second))
      return false;
    return std::any_of(a.reads.begin(), a.reads.end(), [&](int memory) {
      const Memory& read = program_.memories[std::size_t(memory)];
      if (!b.reads.count(memory) || read.size * size_of(read.dtype) <= first_cache) return false;
      const std::optional<std::int64_t> stride = stride_of_parts(first, memory);
      return stride && stride == stride_of_parts(second, memory);
    });
  }
  // Lanes that compute a number for each step of another loop, in little of the time of that step,
  // become steps like those: what the number is made of is still there then.
  bool make_rows(Statement& lanes, const Statement& rows) const {
    constexpr double most = 0.25;
    if (!lanes.is_apart || !goes_through_rows(rows) ||
        !std::all_of(lanes.blocks[0].begin(), lanes.blocks[0].end(), [](const Statement& s) {
          return s.kind == Kind::compute || s.kind == Kind::load || s.kind == Kind::store;
        }))
      return false;
    lanes.is_parallel = false;
    const Work work(program_);
    return work.of_step(lanes) <= most * work.of_step(rows);
  }
  // A loop whose steps are lanes as a loop of so many steps over such loops.
  std::optional<Statement> cut(const Statement& lanes, std::int64_t steps) {
    return lanes.steps % steps == 0 ? codegen::cut(program_, lanes, 0, steps, lanes.steps / steps)
                                    : std::nullopt;
  }

  LoopProgram& program_;
};

}  // namespace

void unite(LoopProgram& program) { Uniter(program).run(program.body); }

}  // namespace plait::codegen
