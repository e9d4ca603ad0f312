// The combinations in the turns of a short loop, which go through the same elements, become one
// with as many results: it loads these elements once, or computes them where feed.cpp finds that
// nothing else reads them.
//
//   apart for k in 0..2                     v1 = load m1[0]
//     v1 = load m1[k]                       v2 = load m1[1]
//     v5 = combine add from 0.0 of c in ..  v5 and v6 = combine add from 0.0 of c in ..
//       v3 = load m0[c]                       v3 = load m0[c]
//       v4 = mul v3 v1                        v4 = mul v3 v1
//       -> v4                                 v7 = mul v3 v2
//     store m2[k] = v5                        -> v4 v7
//                                           store m2[0] = v5
//                                           store m2[1] = v6
//
// Only GPUs are given such combinations: their emitter writes them. It runs behind the passes that
// know those of one result alone, and before feed.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/combine_turns.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <set>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t most_turns = 4;  // each has eight parts in registers
constexpr std::size_t most_statements = 48;
// Fewer steps around the loop leave its turns to threads of their own.
constexpr std::int64_t fewest_around = 1 << 10;

class Combiner {
 public:
  explicit Combiner(LoopProgram& program) : program_(program) {}

  // around: the steps, in any order, of the loops around the block.
  bool run(Block& block, std::int64_t around) {
    bool changes = false;
    Block result;
    for (Statement& s : block) {
      if (around >= fewest_around && are_one(s)) {
        write(s, result);
        changes = true;
        continue;
      }
      if (s.kind != Kind::combine && !s.is_parallel)
        for (Block& inner : s.blocks)
          changes |= run(inner, runs_in_any_order(s) ? around * s.steps : 1);
      result.push_back(std::move(s));
    }
    block = std::move(result);
    return changes;
  }

 private:
  static bool is_plain(const Statement& s) {
    return s.kind == Kind::compute || s.kind == Kind::load;
  }

  // Whether each turn combines, and computes, loads and stores beside, and all of them read an
  // element at every step of a combination.
  static bool are_one(const Statement& loop) {
    if (!runs_in_any_order(loop) || loop.is_parallel || loop.steps > most_turns) return false;
    const Block& turn = loop.blocks[0];
    std::set<Value> of_turn{loop.value};
    for_each_statement(turn, [&](const Statement& s) {
      for_each_definition(s, [&](Value value) { of_turn.insert(value); });
    });
    bool read_same = false;
    for (const Statement& s : turn) {
      if (is_straight(s)) continue;
      if (s.kind != Kind::combine || *s.primitive == dot_general_p || !s.carries.empty() ||
          s.blocks[0].size() * std::size_t(loop.steps) > most_statements ||
          !std::all_of(s.blocks[0].begin(), s.blocks[0].end(), is_plain))
        return false;
      for (const Statement& load : s.blocks[0])
        read_same |= load.kind == Kind::load && stride_of(load.place, s.counter) != 0 &&
                     std::all_of(load.place.terms.begin(), load.place.terms.end(),
                                 [&](const Place::Term& term) {
                                   return term.index == s.counter || !of_turn.contains(term.index);
                                 });
    }
    return read_same;
  }

  // Turns are apart: each statement runs for all of them, before the next one does.
  void write(const Statement& loop, Block& result) {
    std::vector<Block> turns;
    for (std::int64_t i = 0; i < loop.steps; ++i) {
      Names names;
      turns.push_back(copy_of(program_, loop.blocks[0], names));
      for (Statement& s : turns.back()) count(s, loop.value, i, result);
    }
    for (std::size_t i = 0; i < loop.blocks[0].size(); ++i) {
      std::optional<Statement> all;
      for (Block& turn : turns)
        if (turn[i].kind == Kind::combine)
          add(std::move(turn[i]), all);
        else
          result.push_back(std::move(turn[i]));
      if (all) result.push_back(std::move(*all));
    }
  }
  void count(Statement& s, Value counter, std::int64_t turn, Block& before) {
    count_by(program_, s, counter, {turn}, before);
    for (Block& block : s.blocks)
      for (Statement& inner : block) count(inner, counter, turn, before);
  }
  static void add(Statement combine, std::optional<Statement>& all) {
    if (!all) {
      all = std::move(combine);
      return;
    }
    Names names{{combine.counter, all->counter}};
    for (Statement& s : combine.blocks[0]) {
      rename(s, names);
      if (const std::optional<Value> same = known_number(all->blocks[0], s))
        names[s.value] = *same;
      else
        all->blocks[0].push_back(std::move(s));
    }
    all->carries.push_back(
        {-1, combine.operands[0], named(names, combine.operands[1]), combine.value});
  }

  LoopProgram& program_;
};

}  // namespace

bool combine_turns(LoopProgram& program) { return Combiner(program).run(program.body, 1); }

}  // namespace plait::codegen
