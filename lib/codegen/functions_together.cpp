// A function takes as long for one number as for a register of them. So where a block computes a
// function several times, of numbers that do not depend on each other, one vector holds them:
//
//   v1 = load m0[0]                    v1 = load m0[0]
//   v2 = sin v1                        v3 = load m0[1]
//   v4 = mul v2 0.5                    v2, v5 = sin of v1, v3 as lanes
//   v3 = load m0[1]                    v4 = mul v2 0.5
//   v5 = sin v3                        ...
//
// What a later one is computed from comes before the first one, if that only computes, and loads
// what no statement between them stores.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/functions_together.h"

#include <plait/rules/rules.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// How far apart they may be, and what a later one may bring along: beyond, numbers would leave the
// registers before they are used.
constexpr std::size_t farthest = 512, most_before = 12;

class Ordering {
 public:
  Ordering(const LoopProgram& program, const Block& block, int vector_bytes)
      : program_(program),
        block_(block),
        vector_bytes_(vector_bytes),
        is_written_(block.size(), false) {
    for (std::size_t i = 0; i < block.size(); ++i)
      if (block[i].value >= 0) made_by_[block[i].value] = i;
  }

  std::vector<std::vector<std::size_t>> run() {
    for (std::size_t i = 0; i < block_.size(); ++i) {
      if (is_written_[i]) continue;
      if (is_of_numbers(block_[i]))
        write_with_others(i);
      else
        write({i});
    }
    return std::move(order_);
  }

 private:
  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }

  bool is_of_numbers(const Statement& s) const {
    if (s.kind != Kind::compute || !is_function(*s.primitive)) return false;
    const DType result = dtype(s.value);
    return (result == DType::float32 || result == DType::float64) &&
           std::all_of(s.operands.begin(), s.operands.end(),
                       [&](Value operand) { return dtype(operand) == result; });
  }
  bool is_alike(const Statement& s, const Statement& other) const {
    return s.kind == Kind::compute && *s.primitive == *other.primitive &&
           dtype(s.value) == dtype(other.value) && s.params == other.params && is_of_numbers(s);
  }

  void write(std::vector<std::size_t> statements) {
    for (const std::size_t i : statements) is_written_[i] = true;
    order_.push_back(std::move(statements));
  }

  void write_with_others(std::size_t first) {
    const std::size_t most = std::size_t(vector_bytes_ / size_of(dtype(block_[first].value)));
    std::vector<std::size_t> together{first};
    std::set<std::size_t> before;
    std::set<int> stored;
    kept_.clear();
    for (std::size_t i = first + 1; i < std::min(block_.size(), first + farthest); ++i) {
      const Statement& s = block_[i];
      if (together.size() == most) break;
      if (s.kind == Kind::store) {
        stored.insert(s.place.memory);
        continue;
      }
      if (s.kind != Kind::compute && s.kind != Kind::load) break;
      if (s.kind == Kind::load && stored.count(s.place.memory)) kept_.insert(i);
      if (is_written_[i] || !is_alike(s, block_[first])) continue;
      std::set<std::size_t> needed = before;
      if (!add_needed(s, first, needed) || needed.size() > before.size() + most_before) continue;
      before = std::move(needed);
      together.push_back(i);
    }
    if (together.size() > 1)
      for (const std::size_t i : before) write({i});
    write(std::move(together));
  }

  // What a statement is made of behind the first one. Whether all of it may come before that.
  bool add_needed(const Statement& s, std::size_t first, std::set<std::size_t>& needed) const {
    bool may = true;
    for_each_use(s, [&](Value value) {
      const auto found = made_by_.find(value);
      if (!may || found == made_by_.end() || found->second < first || is_written_[found->second])
        return;
      const Statement& made = block_[found->second];
      const bool is_cheap =
          made.kind == Kind::load || (made.kind == Kind::compute && !is_function(*made.primitive));
      may = is_cheap && !kept_.count(found->second);
      if (may && needed.insert(found->second).second) may = add_needed(made, first, needed);
    });
    return may;
  }

  const LoopProgram& program_;
  const Block& block_;
  const int vector_bytes_;
  std::vector<bool> is_written_;
  std::unordered_map<Value, std::size_t> made_by_;
  std::set<std::size_t> kept_;  // loads that stay behind the first one
  std::vector<std::vector<std::size_t>> order_;
};

}  // namespace

std::vector<std::vector<std::size_t>> functions_together(const LoopProgram& program,
                                                         const Block& block, int vector_bytes) {
  return Ordering(program, block, vector_bytes).run();
}

}  // namespace plait::codegen
