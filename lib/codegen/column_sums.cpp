// Combinations over the rows that a loop before them goes through anyway take in each row as soon
// as that has been gone through: it is in the nearest cache then, and memory is read once.
//
//   apart for r in 0..512                       apart for b in 0..8
//     ... row r ...                               parallel for j in 0..768
//   apart for b in 0..8                             store m9[b * 768 + j] = 0.0
//     parallel for j in 0..768                    for i in 0..64
//       v1 = combine add in order from 0.0          ... row b * 64 + i ...
//           of i in 0..64                           parallel for j in 0..768
//         v2 = load m0[b * 49152 + i * 768 + j]       v1 = load m9[b * 768 + j]
//         -> v2                                       v2 = load m0[b * 49152 + i * 768 + j]
//       store m9[b * 768 + j] = v1                    store m9[b * 768 + j] = add v1 v2
//
// Each number takes in its terms in their order. It runs behind the passes that make loops over
// rows, and before columns.cpp, which has another way for columns that are summed alone, and
// own.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/column_sums.h"

#include <algorithm>
#include <set>

#include "codegen/effects.h"
#include "codegen/part.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using loops::Index;

constexpr std::int64_t fewest_blocks = 4, small = 1 << 14;  // fewer blocks leave threads idle

bool is_plain(const Statement& s) { return s.kind == Kind::compute || s.kind == Kind::load; }

template <class T>
bool have_common(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const T& each) { return std::find(b.begin(), b.end(), each) != b.end(); });
}

// One sum of each column: of `length` rows at a time, of which the last ones may be fewer.
struct Sum {
  const Statement* lanes;    // over the columns
  const Statement* combine;  // the first rows of each
  Value block = -1;          // the counter of the loop around, if there is one
  Place numbers;             // of the first block, in the first lane
};

class Summer {
 public:
  explicit Summer(LoopProgram& program) : program_(program) {}

  bool run(Block& block) {
    bool changes = false;
    for (std::size_t i = 0; i < block.size(); ++i) {
      bool joins = false;
      for (std::size_t rows = i; !joins && rows-- > 0;)
        joins = is_of_rows(block[rows]) && join(block, rows, i);
      for (std::size_t rows = i + 1; !joins && rows < block.size(); ++rows)
        joins = is_of_rows(block[rows]) && join(block, rows, i);
      changes |= joins;
    }
    return changes;
  }

 private:
  static bool is_of_rows(const Statement& s) {
    return runs_in_any_order(s) && !s.is_parallel && goes_through_rows(s) &&
           std::any_of(s.blocks[0].begin(), s.blocks[0].end(), [](const Statement& each) {
             return each.kind == Kind::combine || !each.blocks.empty();
           });
  }

  // What sums columns from a statement on: it, and another one behind it that has the last rows.
  struct Sums {
    std::vector<Sum> sums;
    std::int64_t columns = 0, length = 0, rows = 0;  // of a block; all
    bool has_rest = false;                           // in the statement behind it
    bool is_kept = false;                            // it goes on from the numbers
  };

  // Whether the rows' loop sums the columns now. What was at `at` is gone, or loads the sums.
  bool join(Block& block, std::size_t rows, std::size_t at) {
    const std::size_t defined = program_.dtypes.size(), memories = program_.memories.size();
    const std::optional<Sums> sums = sums_of(block, at);
    if (sums && sums->rows == block[rows].steps && may_join(block, rows, at, *sums)) {
      replace(block, rows, at, *sums);
      return true;
    }
    program_.dtypes.resize(defined);
    if (program_.ranges.size() > defined) program_.ranges.resize(defined);
    program_.memories.resize(memories);
    return false;
  }

  // One loop for both, where the first one of them was.
  void replace(Block& block, std::size_t rows, std::size_t at, const Sums& sums) {
    Block joined = joined_of(block[rows], sums);
    const bool has_two = joined.size() == 2;
    if (sums.is_kept) {
      load_sums(block[at], sums);
      if (at < rows) joined.push_back(std::move(block[at]));  // what goes on from them follows
    }
    std::vector<std::size_t> gone{rows};
    if (!sums.is_kept || at < rows) gone.push_back(at);
    if (sums.has_rest) gone.push_back(at + 1);
    std::sort(gone.begin(), gone.end());
    for (std::size_t i = gone.size(); i-- > 0;)
      block.erase(block.begin() + std::ptrdiff_t(gone[i]));
    block.insert(block.begin() + std::ptrdiff_t(gone[0]), std::make_move_iterator(joined.begin()),
                 std::make_move_iterator(joined.end()));
    if (has_two) part_memories(block, gone[0]);
  }

  std::optional<Sums> sums_of(const Block& block, std::size_t at) {
    const Statement& s = block[at];
    if (!runs_in_any_order(s)) return {};
    std::optional<Sums> sums = s.is_parallel ? sums_of_lanes(s) : sums_of_blocks(block, at);
    if (sums && sums->rows < fewest_blocks * sums->length && sums->rows * sums->columns > small)
      return {};
    return sums;
  }

  // Lanes with combinations of blocks of rows, which are computed with further.
  std::optional<Sums> sums_of_lanes(const Statement& lanes) {
    std::vector<const Statement*> combines;
    for (const Statement& s : lanes.blocks[0])
      if (s.kind == Kind::combine) combines.push_back(&s);
    if (combines.empty()) return {};
    Sums sums{{}, lanes.steps, combines[0]->steps, 0, false, true};
    for (std::size_t i = 0; i < combines.size();) {
      const std::int64_t first = sums.rows;
      std::size_t blocks = 0;
      sums.rows = 0;
      while (
          i + blocks < combines.size() && sums.rows == std::int64_t(blocks) * sums.length &&
          goes_on(lanes, *combines[i], *combines[i + blocks], std::int64_t(blocks) * sums.length))
        sums.rows += combines[i + blocks++]->steps;
      if (blocks == 0 || (i > 0 && sums.rows != first)) return {};
      sums.sums.push_back({&lanes, combines[i], -1, {}});
      i += blocks;
    }
    const std::int64_t blocks = (sums.rows + sums.length - 1) / sums.length;
    for (Sum& sum : sums.sums) {
      if (!is_sum(lanes, *sum.combine)) return {};
      sum.numbers = {int(program_.memories.size())};
      program_.memories.push_back({Memory::Space::frame, 0,
                                   program_.dtypes[std::size_t(sum.combine->value)],
                                   blocks * sums.columns});
    }
    return sums;
  }

  // Blocks of rows, each with lanes that store their sums; and the last rows, if they are fewer.
  std::optional<Sums> sums_of_blocks(const Block& block, std::size_t at) {
    const Statement& blocks = block[at];
    Sums sums;
    for (const Statement& lanes : blocks.blocks[0]) {
      const Statement *combine = nullptr, *store = nullptr;
      if (!find_sum(lanes, combine, store) || !is_sum(lanes, *combine)) return {};
      if (!sums.sums.empty() && (lanes.steps != sums.columns || combine->steps != sums.length))
        return {};
      sums.columns = lanes.steps, sums.length = combine->steps;
      if (stride_of(store->place, lanes.value) != 1 ||
          stride_of(store->place, blocks.value) != sums.columns || store->place.terms.size() != 2)
        return {};
      sums.sums.push_back(
          {&lanes, combine, blocks.value, {store->place.memory, store->place.offset}});
    }
    if (sums.sums.empty()) return {};
    sums.rows = blocks.steps * sums.length;
    // The rest of one sum.
    if (sums.sums.size() > 1 || at + 1 == block.size()) return sums;
    const Sum& sum = sums.sums[0];
    const Statement *combine = nullptr, *store = nullptr;
    if (!find_sum(block[at + 1], combine, store) || block[at + 1].steps != sums.columns)
      return sums;
    Place place = sum.numbers;
    place.offset += blocks.steps * sums.columns;
    loops::add_index(place, {0, {{block[at + 1].value, 1}}}, 1);
    if (store->place != place || !is_sum(block[at + 1], *combine) ||
        combine->steps >= sums.length || !is_rest(sum, blocks, block[at + 1], *combine))
      return sums;
    sums.rows += combine->steps;
    sums.has_rest = true;
    return sums;
  }
  // Of lanes that only combine, and store that.
  static bool find_sum(const Statement& lanes, const Statement*& combine, const Statement*& store) {
    if (!runs_in_any_order(lanes) || !lanes.is_parallel) return false;
    for (const Statement& s : lanes.blocks[0])
      if (s.kind == Kind::combine && !combine)
        combine = &s;
      else if (s.kind == Kind::store && combine && !store && s.operands[0] == combine->value)
        store = &s;
      else if (!is_plain(s) || combine)
        return false;
    return store != nullptr;
  }
  // In order, of terms for which nothing but places counts rows, and which need of the lanes only
  // what is computed without combinations.
  static bool is_sum(const Statement& lanes, const Statement& combine) {
    bool is_sum = combine.is_in_order;
    const auto counts = [&](Value value) { return value == combine.counter; };
    for (const Statement& s : combine.blocks[0])
      is_sum = is_sum && is_plain(s) && std::none_of(s.operands.begin(), s.operands.end(), counts);
    is_sum = is_sum && std::none_of(combine.operands.begin(), combine.operands.end(), counts);
    for (const Statement& s : lanes.blocks[0])
      if (!is_plain(s) && s.value >= 0)
        for_each_statement(combine, [&](const Statement& each) {
          for_each_use(each, [&](Value value) { is_sum = is_sum && value != s.value; });
        });
    return is_sum;
  }

  // Whether a combination of the same lanes is the same of the rows that lie `by` further.
  static bool goes_on(const Statement& lanes, const Statement& first, const Statement& next,
                      std::int64_t by) {
    return are_alike(first, next, lanes.value, lanes.value, -1, by);
  }
  static bool is_rest(const Sum& sum, const Statement& blocks, const Statement& lanes,
                      const Statement& combine) {
    const Statement& first = *sum.combine;
    return are_alike(first, combine, sum.lanes->value, lanes.value, blocks.value,
                     blocks.steps * first.steps) &&
           sum.lanes->blocks[0].size() == 2 && lanes.blocks[0].size() == 2;
  }
  // around: a counter of blocks that the first one's places have, at its first step.
  static bool are_alike(const Statement& a, const Statement& b, Value lane, Value other_lane,
                        Value around, std::int64_t by) {
    if (*a.primitive != *b.primitive || a.params != b.params || a.operands[0] != b.operands[0] ||
        a.is_in_order != b.is_in_order || a.blocks[0].size() != b.blocks[0].size() ||
        b.steps > a.steps)
      return false;
    Names names{{b.counter, a.counter}, {other_lane, lane}};
    for (std::size_t i = 0; i < a.blocks[0].size(); ++i) {
      const Statement& x = a.blocks[0][i];
      Statement y = b.blocks[0][i];
      rename(y, names);
      names[y.value] = x.value;
      Place place = x.place;
      place.offset += by * stride_of(x.place, a.counter);
      std::erase_if(place.terms, [&](const Place::Term& term) { return term.index == around; });
      if (x.kind != y.kind || x.operands != y.operands || !are_one(place, y.place) ||
          (x.kind == Kind::compute && (*x.primitive != *y.primitive || x.params != y.params)))
        return false;
    }
    Values terms = b.operands;
    for (Value& term : terms) term = named(names, term);
    return terms == a.operands;
  }
  static bool are_one(Place a, Place b) {
    for (Place* place : {&a, &b})
      std::sort(place->terms.begin(), place->terms.end(),
                [](const Place::Term& x, const Place::Term& y) { return x.index < y.index; });
    return a == b;
  }

  // Whether what is between loses nothing, and each row is all that a step of the rows' loop and a
  // term of the sums have in common.
  bool may_join(const Block& block, std::size_t rows, std::size_t at, const Sums& sums) {
    Effects of_rows, of_sums;
    of_rows.add(block[rows]);
    of_sums.add(block[at]);
    if (sums.has_rest) of_sums.add(block[at + 1]);
    if (at < rows && have_common(of_rows.writes, of_sums.reads)) return false;
    // The second one of them moves to the first one.
    const Effects& moved = at < rows ? of_rows : of_sums;
    const std::size_t first = at < rows ? at + 1 + sums.has_rest : rows + 1;
    for (std::size_t i = first; i < std::max(rows, at); ++i) {
      Effects between;
      between.add(block[i]);
      if (have_common(between.writes, moved.reads) || have_common(between.writes, moved.writes) ||
          have_common(between.reads, moved.writes) || have_common(between.defined, moved.used) ||
          has_checks(block[i]))
        return false;
    }
    if (have_common(of_rows.reads, of_sums.writes) || have_common(of_rows.writes, of_sums.writes))
      return false;
    Statement united = block[rows];
    for (const Sum& sum : sums.sums) {
      Block terms;
      write_terms(sum, {0, {{united.value, 1}}}, {}, sum.lanes->value, terms);
      for (Statement& s : terms) united.blocks[0].push_back(std::move(s));
    }
    bool shares_rows = false;
    for (const int memory : std::set<int>(of_sums.reads.begin(), of_sums.reads.end())) {
      const std::optional<std::int64_t> stride = stride_of_parts(block[rows], memory);
      const bool is_row = stride && Part(program_, united, memory, *stride).is_all_that_steps_use();
      shares_rows = shares_rows || is_row;
      if (have_common({memory}, of_rows.writes) && !is_row) return false;
    }
    return shares_rows;
  }

  // The terms of one row, by its number, or by its number within a block.
  Values write_terms(const Sum& sum, const Index& row, const Index& of_block, Value lane,
                     Block& body) {
    Names names{{sum.lanes->value, lane}};
    Block needed;
    for (const Statement& s : sum.lanes->blocks[0]) {
      if (&s == sum.combine) break;
      needed.push_back(s);
    }
    for (Statement& s : copy_of(program_, needed, names)) body.push_back(std::move(s));
    // Rows are counted from the first one on: the loop around counts blocks of as many.
    Block terms = sum.combine->blocks[0];
    for (Statement& s : terms) {
      if (sum.block >= 0) count_by(program_, s, sum.block, of_block, body);
      count_by(program_, s, sum.combine->counter, row, body);
    }
    for (Statement& s : copy_of(program_, terms, names)) body.push_back(std::move(s));
    Values values;
    for (std::size_t i = 1; i < sum.combine->operands.size(); ++i)
      values.push_back(named(names, sum.combine->operands[i]));
    return values;
  }

  // --- Joining -----------------------------------------------------------------------------------

  Block joined_of(const Statement& rows, const Sums& sums) {
    Block joined;
    const std::int64_t whole = sums.rows / sums.length, rest = sums.rows % sums.length;
    if (whole > 0) joined.push_back(blocks_of(rows, sums, 0, whole, sums.length));
    if (rest > 0) joined.push_back(blocks_of(rows, sums, whole, 1, rest));
    return joined;
  }

  // Memory that only two loops use becomes memory of each: what one step has of it alone can then
  // be small, see own.cpp.
  void part_memories(Block& block, std::size_t first) {
    const auto used = [](const Statement& s) {
      Effects effects;
      effects.add(s);
      std::set<int> memories(effects.reads.begin(), effects.reads.end());
      memories.insert(effects.writes.begin(), effects.writes.end());
      return memories;
    };
    std::set<int> common = used(block[first]), elsewhere;
    const std::set<int> second = used(block[first + 1]);
    std::erase_if(common, [&](int memory) {
      return !second.count(memory) ||
             program_.memories[std::size_t(memory)].space != Memory::Space::frame;
    });
    for (std::size_t i = 0; i < block.size(); ++i)
      if (i != first && i != first + 1) elsewhere.merge(used(block[i]));
    const auto use = [&](const auto& self, Statement& s, int memory, int other) -> void {
      for_each_place(s, [&](Place& place, bool) {
        if (place.memory == memory) place.memory = other;
      });
      for (Block& inner : s.blocks)
        for (Statement& each : inner) self(self, each, memory, other);
    };
    for (const int memory : common) {
      if (elsewhere.count(memory)) continue;
      use(use, block[first + 1], memory, int(program_.memories.size()));
      program_.memories.push_back(Memory(program_.memories[std::size_t(memory)]));
    }
  }

  Statement blocks_of(const Statement& rows, const Sums& sums, std::int64_t first,
                      std::int64_t count, std::int64_t length) {
    Statement blocks = counting(program_, count, rows.source),
              steps = counting(program_, length, rows.source);
    blocks.is_apart = true;
    const auto numbers = [&](const Sum& sum, Value lane) {
      Place place = sum.numbers;
      loops::add_index(place, {first, {{blocks.value, 1}}}, sums.columns);
      loops::add_index(place, {0, {{lane, 1}}}, 1);
      return place;
    };
    Statement start = counting(program_, sums.columns, rows.source),
              taking = counting(program_, sums.columns, rows.source);
    for (Statement* lanes : {&start, &taking}) lanes->is_parallel = lanes->is_apart = true;
    for (const Sum& sum : sums.sums)
      start.blocks[0].push_back(
          store(numbers(sum, start.value), sum.combine->operands[0], *sum.combine));
    const Index row{first * sums.length, {{blocks.value, sums.length}, {steps.value, 1}}};
    Names names;
    Block body;
    Block copy = rows.blocks[0];
    count_all_by(copy, rows.value, row, body);
    for (Statement& s : copy_of(program_, copy, names)) body.push_back(std::move(s));
    for (const Sum& sum : sums.sums) {
      // By the loop around, places count blocks themselves.
      const bool has_blocks = sum.block >= 0;
      const Index here = has_blocks ? Index{0, {{steps.value, 1}}} : row;
      Values terms =
          write_terms(sum, here, {first, {{blocks.value, 1}}}, taking.value, taking.blocks[0]);
      Statement load;
      load.kind = Kind::load;
      load.place = numbers(sum, taking.value);
      load.value = define(program_, program_.dtypes[std::size_t(sum.combine->value)]);
      terms.insert(terms.begin(), load.value);
      taking.blocks[0].push_back(std::move(load));
      const Value taken = take_in(program_, *sum.combine, std::move(terms), taking.blocks[0]);
      taking.blocks[0].push_back(store(numbers(sum, taking.value), taken, *sum.combine));
    }
    body.push_back(std::move(taking));
    steps.blocks = {std::move(body)};
    blocks.blocks[0].push_back(std::move(start));
    blocks.blocks[0].push_back(std::move(steps));
    return blocks;
  }
  static Statement store(const Place& place, Value value, const Statement& like) {
    Statement s;
    s.kind = Kind::store;
    s.source = like.source;
    s.place = place;
    s.operands = {value};
    return s;
  }
  void count_all_by(Block& block, Value counter, const Index& index, Block& before) {
    for (Statement& s : block) {
      count_by(program_, s, counter, index, before);
      for (Block& inner : s.blocks) count_all_by(inner, counter, index, before);
    }
  }

  // In the lanes that have gone on from the sums.
  void load_sums(Statement& lanes, const Sums& sums) {
    const std::int64_t blocks = (sums.rows + sums.length - 1) / sums.length;
    std::int64_t number = 0;
    for (Statement& s : lanes.blocks[0]) {
      if (s.kind != Kind::combine) continue;
      Statement load;
      load.kind = Kind::load;
      load.source = s.source;
      load.value = s.value;
      load.place = sums.sums[std::size_t(number / blocks)].numbers;
      loops::add_index(load.place, {number % blocks * sums.columns, {{lanes.value, 1}}}, 1);
      s = std::move(load);
      ++number;
    }
  }

  LoopProgram& program_;
};

}  // namespace

bool sum_columns_with_rows(LoopProgram& program) { return Summer(program).run(program.body); }

}  // namespace plait::codegen
