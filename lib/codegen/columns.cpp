// Lanes that combine columns jump from row to row of memory, where each row is further away than
// anything that is foreseen. Whole rows are taken in instead, some at a time, into numbers that
// stay in the first cache. Each number still takes in its terms in their order.
//
//   parallel for v in 0..1024                      parallel for v in 0..1024
//     v1 = combine add in order from 0.0             store m9[v] = ((0.0 + m0[v]) + ...) + ...
//         of r in 0..64                            for r in 0..15
//       v2 = load m0[v + r * 1024]                   parallel for v in 0..1024
//       -> v2                                          store m9[v] = ((m9[v] + ...) + ...) + ...
//     store m1[v] = v1                             parallel for v in 0..1024
//                                                    store m1[v] = m9[v]
//
// It runs once loops have their places, since it makes several of one, and before threads share
// them.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/columns.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <set>

#include "codegen/lanes.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using loops::Index;

constexpr std::int64_t first_cache = 32 << 10, tile_bytes = 4 << 10;
constexpr std::int64_t shortest_row = 128;  // shorter ones fit registers
constexpr std::int64_t rows_at_once = 4;
constexpr std::size_t most_light = 12;  // statements of a term of which several are written

bool is_plain(const Statement& s) { return s.kind == Kind::compute || s.kind == Kind::load; }
bool are_plain(const Block& block) { return std::all_of(block.begin(), block.end(), is_plain); }

class Columns {
 public:
  explicit Columns(LoopProgram& program) : program_(program) {}

  // outer: the loops around whose steps are apart.
  void run(Block& block, const std::vector<const Statement*>& outer) {
    Block result;
    for (Statement& s : block) {
      if (is_of_columns(s)) {
        for (Statement& each : by_rows(s, outer)) result.push_back(std::move(each));
        continue;
      }
      if (!s.is_parallel && s.kind != Kind::combine) {
        Statement around;  // as long as its blocks are changed
        around.value = s.value, around.steps = s.steps;
        std::vector<const Statement*> inner = outer;
        if (s.is_apart) inner.push_back(&around);
        for (Block& each : s.blocks) run(each, inner);
      }
      result.push_back(std::move(s));
    }
    block = std::move(result);
  }

 private:
  std::int64_t bytes_of(const Place& place) const {
    return size_of(program_.memories[std::size_t(place.memory)].dtype);
  }
  std::int64_t bytes_of(Value value) const { return size_of(program_.dtypes[std::size_t(value)]); }

  // Whether its lanes combine columns of what no first cache holds.
  bool is_of_columns(const Statement& s) const {
    if (s.kind != Kind::repeat || !s.is_parallel || s.steps < shortest_row) return false;
    bool has_stored = false, is_large = false;
    for (const Statement& each : s.blocks[0]) {
      if (each.kind == Kind::store) {
        has_stored = true;
      } else if (each.kind == Kind::combine) {
        if (has_stored || !each.is_in_order || !are_plain(each.blocks[0])) return false;
        is_large = is_large || reads_rows(each, s);
      } else if (!is_plain(each)) {
        return false;
      }
    }
    return is_large;
  }
  bool reads_rows(const Statement& combine, const Statement& lanes) const {
    if (combine.steps < 2 * rows_at_once) return false;
    std::int64_t bytes = 0;
    for (const Statement& s : combine.blocks[0]) {
      if (s.kind != Kind::load || stride_of(s.place, combine.counter) == 0) continue;
      if (std::abs(stride_of(s.place, lanes.value)) != 1) return false;
      bytes += combine.steps * lanes.steps * bytes_of(s.place);
    }
    return bytes > first_cache;
  }

  // Combinations that read the same rows, with what is computed before them.
  struct Group {
    std::vector<const Statement*> combinations;
    std::vector<Place> numbers;  // of the first lane of each
  };
  std::vector<Group> groups_of(const Block& block) const {
    std::vector<Group> groups;
    for (const Statement& s : block) {
      if (s.kind != Kind::combine) continue;
      const auto like = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
        return group.combinations[0]->steps == s.steps && reads_same(*group.combinations[0], s) &&
               !needs(s, group, block);
      });
      if (like == groups.end())
        groups.push_back({{&s}, {}});
      else
        like->combinations.push_back(&s);
    }
    return groups;
  }
  static bool reads_same(const Statement& a, const Statement& b) {
    return std::any_of(a.blocks[0].begin(), a.blocks[0].end(), [&](const Statement& x) {
      return x.kind == Kind::load &&
             std::any_of(b.blocks[0].begin(), b.blocks[0].end(), [&](const Statement& y) {
               return y.kind == Kind::load && renamed(y.place, b.counter, a.counter) == x.place;
             });
    });
  }
  static Place renamed(Place place, Value from, Value to) {
    for (Place::Term& term : place.terms)
      if (term.index == from) term.index = to;
    return place;
  }
  // By statement of a block, whether some of them need it.
  static std::vector<bool> needed_by(const std::vector<const Statement*>& some,
                                     const Block& block) {
    std::set<Value> used;
    std::vector<bool> needed(block.size(), false);
    for (std::size_t i = block.size(); i-- > 0;) {
      const Statement& s = block[i];
      const bool is_one = std::find(some.begin(), some.end(), &s) != some.end();
      needed[i] = !is_one && s.value >= 0 && used.count(s.value) > 0;
      if (is_one || needed[i])
        for_each_statement(s, [&](const Statement& each) {
          for_each_use(each, [&](Value v) { used.insert(v); });
        });
    }
    return needed;
  }
  static bool needs(const Statement& s, const Group& group, const Block& block) {
    const std::vector<bool> needed = needed_by({&s}, block);
    return std::any_of(
        group.combinations.begin(), group.combinations.end(),
        [&](const Statement* other) { return needed[std::size_t(other - &block[0])]; });
  }

  Block by_rows(const Statement& lanes, const std::vector<const Statement*>& outer) {
    std::int64_t bytes = 1;
    for (const Statement& s : lanes.blocks[0])
      if (s.kind == Kind::combine) bytes = std::max(bytes, bytes_of(s.value));
    const std::int64_t most = tile_bytes / bytes;
    if (lanes.steps <= most) return tile(lanes, {}, lanes.steps, outer);
    const std::int64_t count = (lanes.steps + most - 1) / most, unit = most_lanes;
    const std::int64_t size = ((lanes.steps + count - 1) / count + unit - 1) / unit * unit;
    const std::int64_t whole = lanes.steps / size;
    Statement tiles;
    tiles.kind = Kind::repeat;
    tiles.source = lanes.source;
    tiles.is_apart = true;
    tiles.steps = whole;
    tiles.value = counter_of(program_, whole);
    std::vector<const Statement*> around = outer;
    around.push_back(&tiles);
    tiles.blocks.push_back(tile(lanes, {0, {{tiles.value, size}}}, size, around));
    Block result;
    result.push_back(std::move(tiles));
    if (const std::int64_t rest = lanes.steps - whole * size; rest > 0)
      for (Statement& s : tile(lanes, {whole * size}, rest, outer)) result.push_back(std::move(s));
    return result;
  }

  // The lanes from `first` on.
  Block tile(const Statement& lanes, const Index& first, std::int64_t size,
             const std::vector<const Statement*>& outer) {
    const Block& block = lanes.blocks[0];
    std::vector<Group> groups = groups_of(block);
    for (Group& group : groups)
      for (const Statement* combine : group.combinations)
        group.numbers.push_back(make_numbers(*combine, size, outer));
    std::vector<const Statement*> stores;
    for (const Statement& s : block)
      if (s.kind == Kind::store) stores.push_back(&s);
    Block result;
    for (const Group& group : groups) {
      const std::int64_t steps = group.combinations[0]->steps;
      const std::int64_t together = is_light(group) ? rows_at_once : 1;
      const std::int64_t before = steps % together == 0 ? together : steps % together;
      const auto add = [&](std::int64_t count, const Index& row, bool is_first, Block& into) {
        into.push_back(over_lanes(lanes, size, [&](Value lane, Block& body) {
          Names names;
          write_lane(lanes, first, lane, groups, group.combinations, names, body);
          take_in_all(lanes, first, lane, group, count, row, is_first, names, body);
        }));
      };
      add(before, {0}, true, result);
      if (before == steps) continue;
      Statement rows;
      rows.kind = Kind::repeat;
      rows.source = lanes.source;
      rows.steps = (steps - before) / together;
      rows.value = counter_of(program_, rows.steps);
      rows.blocks.emplace_back();
      add(together, {before, {{rows.value, together}}}, false, rows.blocks[0]);
      result.push_back(std::move(rows));
    }
    result.push_back(over_lanes(lanes, size, [&](Value lane, Block& body) {
      Names names;
      write_lane(lanes, first, lane, groups, stores, names, body);
    }));
    return result;
  }

  static Index moved(Index first, Value by) {
    first.terms.push_back({by, 1});
    return first;
  }
  bool is_light(const Group& group) const {
    std::size_t statements = 0;
    for (const Statement* combine : group.combinations)
      for (const Statement& s : combine->blocks[0]) {
        ++statements;
        if (s.kind == Kind::compute && is_function(*s.primitive)) return false;
      }
    return statements <= most_light;
  }

  // Memory for a number in each lane, apart for the steps around.
  Place make_numbers(const Statement& combine, std::int64_t size,
                     const std::vector<const Statement*>& outer) {
    Place place{int(program_.memories.size())};
    std::int64_t count = (size + 15) / 16 * 16;
    for (auto loop = outer.rbegin(); loop != outer.rend(); ++loop) {
      place.terms.push_back({(*loop)->value, count});
      count *= (*loop)->steps;
    }
    program_.memories.push_back(
        {Memory::Space::frame, 0, program_.dtypes[std::size_t(combine.value)], count});
    return place;
  }

  template <class F>
  Statement over_lanes(const Statement& like, std::int64_t size, const F& write_body) {
    Statement loop;
    loop.kind = Kind::repeat;
    loop.source = like.source;
    loop.is_parallel = true;
    loop.is_apart = like.is_apart;
    loop.steps = size;
    loop.value = counter_of(program_, size);
    loop.blocks.emplace_back();
    write_body(loop.value, loop.blocks[0]);
    return loop;
  }
  // The statements of a lane that some need, and those themselves, where they are no combinations.
  // The results of combinations are loaded.
  void write_lane(const Statement& lanes, const Index& first, Value lane,
                  const std::vector<Group>& groups, const std::vector<const Statement*>& some,
                  Names& names, Block& body) {
    const Block& block = lanes.blocks[0];
    const std::vector<bool> needed = needed_by(some, block);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Statement& s = block[i];
      if (s.kind != Kind::combine) {
        if (needed[i] || std::find(some.begin(), some.end(), &s) != some.end())
          write({s}, lanes.value, moved(first, lane), names, body);
        continue;
      }
      if (!needed[i]) continue;
      for (const Group& group : groups)
        for (std::size_t c = 0; c < group.combinations.size(); ++c)
          if (group.combinations[c] == &s) names[s.value] = load_number(group, c, lane, body);
    }
  }
  // Numbers are counted from the first lane of a tile on.
  static Place number_of(const Group& group, std::size_t combination, Value lane) {
    Place place = group.numbers[combination];
    loops::add_index(place, {0, {{lane, 1}}}, 1);
    return place;
  }
  Value load_number(const Group& group, std::size_t combination, Value lane, Block& body) {
    Statement s;
    s.kind = Kind::load;
    s.place = number_of(group, combination, lane);
    s.value =
        define(program_, program_.dtypes[std::size_t(group.combinations[combination]->value)]);
    body.push_back(std::move(s));
    return body.back().value;
  }

  // Takes `count` rows into the numbers of a group.
  void take_in_all(const Statement& lanes, const Index& first, Value lane, const Group& group,
                   std::int64_t count, const Index& row, bool is_first, const Names& outside,
                   Block& body) {
    std::vector<Value> numbers;
    for (std::size_t c = 0; c < group.combinations.size(); ++c) {
      if (is_first) {
        numbers.push_back(named(outside, group.combinations[c]->operands[0]));
        continue;
      }
      numbers.push_back(load_number(group, c, lane, body));
    }
    for (std::int64_t i = 0; i < count; ++i) {
      Index here = row;
      here.offset += i;
      for (std::size_t c = 0; c < group.combinations.size(); ++c) {
        const Statement& combine = *group.combinations[c];
        Names names = outside;
        Block term = combine.blocks[0];
        for (Statement& s : term) set_counter(s, combine.counter, here, body);
        write(term, lanes.value, moved(first, lane), names, body);
        Values terms{numbers[c]};
        for (std::size_t o = 1; o < combine.operands.size(); ++o) {
          const Value operand = combine.operands[o];
          terms.push_back(operand == combine.counter ? number(here, body)
                          : operand == lanes.value   ? number(moved(first, lane), body)
                                                     : named(names, operand));
        }
        numbers[c] = take_in(program_, combine, std::move(terms), body);
      }
    }
    for (std::size_t c = 0; c < group.combinations.size(); ++c) {
      Statement store;
      store.kind = Kind::store;
      store.operands = {numbers[c]};
      store.place = number_of(group, c, lane);
      body.push_back(std::move(store));
    }
  }
  // Copies of statements, for one index of a counter.
  void write(Block block, Value counter, const Index& index, Names& names, Block& body) {
    for (Statement& s : block) set_counter(s, counter, index, body);
    for (Statement& s : copy_of(program_, block, names)) body.push_back(std::move(s));
  }
  void set_counter(Statement& s, Value counter, const Index& index, Block& body) {
    count_by(program_, s, counter, index, body);
  }
  Value number(const Index& index, Block& body) { return codegen::number(program_, index, body); }

  LoopProgram& program_;
};

}  // namespace

void take_in_rows(LoopProgram& program) { Columns(program).run(program.body, {}); }

}  // namespace plait::codegen
