// Lanes that store what combinations behind them take in, all of it and each element once, move
// into these combinations: one pass over a row instead of two, and what is stored is not loaded
// again.
//
//   parallel for e in 0..2000                 v1 = combine add from 0.0 of c in 0..1024
//     ... = ...                                 ... = ...
//     store m1[e] = ...                         store m1[c] = ...
//   v1 = combine add from 0.0 of c in 0..1024   -> ...
//     ... = load m1[c]                        v2 = combine add from 0.0 of c in 0..976
//     -> ...                                    ... = ...
//   v2 = combine add from 0.0 of c in 0..976    store m1[c + 1024] = ...
//     ... = load m1[c + 1024]                   -> ...
//     -> ...
//
// It runs behind the passes that bring loops together, which know lanes better than combinations
// that store, and before own.cpp, which looks at where elements lie.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/feed.h"

#include <algorithm>
#include <set>

#include "codegen/effects.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using loops::Index;

// More functions in a row than that are rather a loop of their own: see NOTE: [segments].
constexpr int most_functions = 2;
constexpr std::size_t most_statements = 32;  // more in one body do not fit registers

class Feeder {
 public:
  explicit Feeder(LoopProgram& program) : program_(program) {}

  bool run(Block& block) {
    bool changes = false;
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (!block[i].is_parallel && block[i].kind != Kind::combine)
        for (Block& inner : block[i].blocks) changes |= run(inner);
      if (!is_simple_loop(block[i])) continue;
      std::vector<Taken> taken = takers_of(block, i);
      if (taken.empty()) taken = companions_of(block, i);
      if (taken.empty()) continue;
      const Statement lanes = std::move(block[i]);
      for (const Taken& each : taken) feed(lanes, each, block[each.statement]);
      block.erase(block.begin() + std::ptrdiff_t(i));
      changes = true;
      --i;
    }
    return changes;
  }

 private:
  // A statement of the block that takes in all elements from one on that a loop stores in a memory.
  struct Taken {
    std::size_t statement;
    int memory;
    Index first;  // of the combination: the loop around its blocks, if it is in one
  };

  static bool is_plain(const Statement& s) {
    return s.kind == Kind::compute || s.kind == Kind::load;
  }
  static bool is_simple_loop(const Statement& s) {
    if (s.kind != Kind::repeat || !s.is_parallel || !s.is_apart) return false;
    int functions = 0;
    return std::all_of(s.blocks[0].begin(), s.blocks[0].end(), [&](const Statement& each) {
      if (each.kind == Kind::compute && is_function(*each.primitive)) ++functions;
      return (is_plain(each) || each.kind == Kind::store) && functions <= most_functions;
    });
  }
  // The combination that a statement is: itself, or in the steps of a loop what these store.
  template <class S>
  static S* combination_of(S& s) {
    if (s.kind == Kind::combine) return &s;
    if (!runs_in_any_order(s) || s.is_parallel) return nullptr;
    auto& step = s.blocks[0];
    if (step.size() == 2 && step[0].kind == Kind::combine && step[1].kind == Kind::store)
      return &step[0];
    // One of several results: see combine_turns.h.
    S* all = nullptr;
    for (S& each : step) {
      if (each.kind != Kind::combine ? is_straight(each) : !all && !each.carries.empty()) {
        if (each.kind == Kind::combine) all = &each;
        continue;
      }
      return nullptr;
    }
    return all;
  }

  // Those that take in all that a loop stores in one memory, or none.
  std::vector<Taken> takers_of(const Block& block, std::size_t at) const {
    const Statement& lanes = block[at];
    for (const Statement& store : lanes.blocks[0]) {
      if (store.kind != Kind::store || stride_of(store.place, lanes.value) == 0) continue;
      std::vector<Taken> taken = takers_of(block, at, store);
      if (!taken.empty()) return taken;
    }
    return {};
  }
  std::vector<Taken> takers_of(const Block& block, std::size_t at, const Statement& store) const {
    const Statement& lanes = block[at];
    Effects made;
    made.add(lanes);
    const auto count = std::count(made.writes.begin(), made.writes.end(), store.place.memory);
    if (count != 1) return {};
    std::vector<Taken> taken;
    std::int64_t reached = 0;
    for (std::size_t i = at + 1; i < block.size() && reached < lanes.steps; ++i) {
      Effects effects;
      effects.add(block[i]);
      if (have_common(effects.writes, made.writes) || have_common(effects.writes, made.reads))
        return {};
      if (!have_common(effects.reads, made.writes)) continue;
      const std::optional<std::int64_t> next = end_of(block[i], lanes, store, reached);
      if (!next) return {};
      taken.push_back({i, store.place.memory, first_of(block[i], reached)});
      reached = *next;
    }
    return reached == lanes.steps ? taken : std::vector<Taken>{};
  }
  // Combinations before a loop that together read a row of what it reads, in the same steps, and
  // from which on nothing stands in its way.
  std::vector<Taken> companions_of(const Block& block, std::size_t at) const {
    const Statement& lanes = block[at];
    for (const Statement& load : lanes.blocks[0]) {
      if (load.kind != Kind::load || stride_of(load.place, lanes.value) == 0) continue;
      std::vector<Taken> taken;
      std::int64_t reached = lanes.steps;
      std::size_t functions = num_functions(lanes.blocks[0]);
      for (std::size_t i = at; i-- > 0 && reached > 0 && may_pass(lanes, block[i]);) {
        const Statement* const combine = combination_of(block[i]);
        if (!combine || combine->blocks[0].size() + lanes.blocks[0].size() > most_statements ||
            functions + num_functions(combine->blocks[0]) > std::size_t(most_functions))
          continue;
        const std::int64_t first =
            reached - combine->steps * (combine == &block[i] ? 1 : block[i].steps);
        const Place place = place_from(load, lanes, block[i], *combine, first);
        if (first < 0 || std::none_of(
                             combine->blocks[0].begin(), combine->blocks[0].end(),
                             [&](const Statement& s) {
                               return s.kind == Kind::load && are_one(s.place, place);
                             }))
          continue;
        taken.push_back({i, -1, first_of(block[i], first)});
        reached = first;
      }
      if (reached == 0) return taken;
    }
    return {};
  }
  static std::size_t num_functions(const Block& block) {
    return std::size_t(std::count_if(block.begin(), block.end(), [](const Statement& s) {
      return s.kind == Kind::compute && is_function(*s.primitive);
    }));
  }
  // Whether a loop may run before a statement.
  static bool may_pass(const Statement& loop, const Statement& s) {
    Effects mine, theirs;
    mine.add(loop);
    theirs.add(s);
    return !have_common(mine.reads, theirs.writes) && !have_common(mine.writes, theirs.writes) &&
           !have_common(mine.writes, theirs.reads) && !have_common(mine.used, theirs.defined) &&
           !has_checks(s);
  }
  static Index first_of(const Statement& s, std::int64_t first) {
    if (s.kind == Kind::combine) return {first};
    return {first, {{s.value, combination_of(s)->steps}}};
  }
  // Where an access of lanes goes from one step on, counted by a combination.
  static Place place_from(const Statement& access, const Statement& lanes, const Statement& s,
                          const Statement& combine, std::int64_t first) {
    Place place = access.place;
    const std::int64_t stride = stride_of(place, lanes.value);
    std::erase_if(place.terms, [&](const Place::Term& term) { return term.index == lanes.value; });
    Index index = first_of(s, first);
    index.terms.push_back({combine.counter, 1});
    loops::add_index(place, index, stride);
    return place;
  }

  static bool have_common(const std::vector<int>& a, const std::vector<int>& b) {
    return std::any_of(a.begin(), a.end(),
                       [&](int each) { return std::find(b.begin(), b.end(), each) != b.end(); });
  }

  // Where the elements end that a statement takes in from one on, if it reads no others.
  static std::optional<std::int64_t> end_of(const Statement& s, const Statement& lanes,
                                            const Statement& store, std::int64_t first) {
    const Statement* const combine = combination_of(s);
    if (!combine || !std::all_of(combine->blocks[0].begin(), combine->blocks[0].end(), is_plain))
      return {};
    const Place place = place_from(store, lanes, s, *combine, first);
    bool is_read = false;
    for (const Statement& each : combine->blocks[0]) {
      if (each.kind != Kind::load) continue;
      if (has(lanes, each.place.memory)) {
        if (!are_one(each.place, place)) return {};
        is_read = true;
      }
    }
    const std::int64_t end = first + combine->steps * (combine == &s ? 1 : s.steps);
    return is_read && end <= lanes.steps ? std::optional(end) : std::nullopt;
  }
  static bool has(const Statement& lanes, int memory) {
    return std::any_of(lanes.blocks[0].begin(), lanes.blocks[0].end(), [&](const Statement& s) {
      return s.kind == Kind::store && s.place.memory == memory;
    });
  }
  static void sort(Place& place) {
    std::sort(place.terms.begin(), place.terms.end(),
              [](const Place::Term& x, const Place::Term& y) { return x.index < y.index; });
  }
  static bool are_one(Place a, Place b) {
    sort(a), sort(b);
    return a == b;
  }

  void feed(const Statement& lanes, const Taken& taken, Statement& s) {
    Statement& combine = *combination_of(s);
    Index index = taken.first;
    index.terms.insert(index.terms.begin(), {combine.counter, 1});
    Names names;
    Block body, made = copy_of(program_, lanes.blocks[0], names);
    Value stored = -1;
    for (Statement& each : made) {
      count_by(program_, each, lanes.value, index, body);
      if (each.kind == Kind::store && each.place.memory == taken.memory) stored = each.operands[0];
      body.push_back(std::move(each));
    }
    Names loaded;
    for (Statement& each : body) sort(each.place);
    for (Statement& each : combine.blocks[0]) {
      rename(each, loaded);
      sort(each.place);
      if (each.kind == Kind::load && each.place.memory == taken.memory)
        loaded[each.value] = stored;
      else if (const std::optional<Value> same = known_number(body, each))
        loaded[each.value] = *same;
      else
        body.push_back(std::move(each));
    }
    for (std::size_t i = 1; i < combine.operands.size(); ++i)
      combine.operands[i] = named(loaded, combine.operands[i]);
    for (Statement::Carry& carry : combine.carries) carry.next = named(loaded, carry.next);
    combine.blocks[0] = std::move(body);
  }

  LoopProgram& program_;
};

}  // namespace

bool feed_combinations(LoopProgram& program) { return Feeder(program).run(program.body); }

}  // namespace plait::codegen
