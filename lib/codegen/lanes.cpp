// See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/lanes.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <bit>

#include "codegen/effects.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Finder {
 public:
  explicit Finder(const LoopProgram& program) : lanes_(program.dtypes.size(), false) {
    while (visit(program.body, false)) {
    }
  }
  std::vector<bool> take() { return std::move(lanes_); }

 private:
  bool has(Value value) const { return lanes_[std::size_t(value)]; }
  bool set(Value value, bool lanes) {
    if (!lanes || value < 0 || has(value)) return false;
    return lanes_[std::size_t(value)] = true;
  }

  // Whether it found more. is_inside: of a loop whose steps are lanes.
  bool visit(const Block& block, bool is_inside) {
    bool grows = false;
    for (const Statement& s : block) {
      if (s.kind == Kind::combine) {
        grows |= set(s.counter, !is_inside);
        grows |= visit(s.blocks[0], true);
        grows |= set(s.value, is_inside);
      } else if (s.kind == Kind::compute || s.kind == Kind::load) {
        bool lanes = false;
        for_each_use(s, [&](Value value) { lanes = lanes || has(value); });
        grows |= set(s.value, lanes);
      } else if (s.is_parallel) {
        grows |= set(s.value, true);
        grows |= visit(s.blocks[0], true);
      } else {
        grows |= visit_carries(s);
        for (const Block& inner : s.blocks) grows |= visit(inner, is_inside);
      }
    }
    return grows;
  }

  bool visit_carries(const Statement& s) {
    bool grows = false;
    // Where lanes leave a loop at different steps, what it carries differs.
    const bool diverges = s.kind == Kind::loop && has(s.operands[0]);
    for (const Statement::Carry& carry : s.carries) {
      bool lanes = diverges;
      for (const Value value : {carry.first, carry.next})
        lanes = lanes || (value >= 0 && has(value));
      for (const Value value : carry.nexts) lanes = lanes || has(value);
      grows |= set(carry.value, lanes);
      grows |= set(carry.last, lanes);
    }
    return grows;
  }

  std::vector<bool> lanes_;
};

bool runs_in_lanes(const Block& block, bool may_store, const std::vector<bool>& has_lanes,
                   bool may_check) {
  return std::all_of(block.begin(), block.end(), [&](const Statement& s) {
    const auto run = [&](bool store) {
      return s.exchanged.empty() &&
             std::all_of(s.blocks.begin(), s.blocks.end(), [&](const Block& inner) {
               return runs_in_lanes(inner, store, has_lanes, may_check && s.kind != Kind::combine);
             });
    };
    switch (s.kind) {
      case Kind::compute:
      case Kind::load:
        return true;
      case Kind::combine:
        return run(false);
      case Kind::store:
        return may_store;
      case Kind::repeat:
        return !s.is_parallel && run(may_store);
      case Kind::check:
        return may_check || !has_lanes[std::size_t(s.operands[0])];
      case Kind::branch:
        return !has_lanes[std::size_t(s.operands[0])] && run(may_store);
      case Kind::loop:
        return run(may_store && !has_lanes[std::size_t(s.operands[0])]);
      default:
        return false;
    }
  });
}

// Of the serial loops of a block.
std::size_t most_carries(const Block& block) {
  std::size_t most = 0;
  for_each_statement(block, [&](const Statement& s) {
    if (s.kind == Kind::repeat || s.kind == Kind::loop) most = std::max(most, s.carries.size());
  });
  return most;
}

// Whether more lanes than two registers hold may run serial loops together: not where each accesses
// a line of its own at every step, since those displace each other in the first cache.
bool may_have_many(const Statement& lanes) {
  bool may = true;
  for (const Statement& s : lanes.blocks[0])
    for (const Block& inner : s.blocks)
      for_each_statement(inner, [&](const Statement& each) {
        for_each_place(each, [&](const Place& place, bool) {
          const std::int64_t stride = stride_of(place, lanes.value);
          may = may && -1 <= stride && stride <= 1;
        });
      });
  return may;
}

// Whether lanes of a whole line lie across two for many of the accesses of a step: each takes as
// long as two then, while with lanes of half a line every other one does. Taken of those whose
// place may begin anywhere in a line. Functions wait for arithmetic instead.
bool crosses_lines(const LoopProgram& program, const Statement& loop) {
  constexpr std::int64_t line = 64;
  constexpr std::size_t often = 4;  // one in so many statements
  std::size_t crossing = 0, statements = 0;
  for (const Statement& s : loop.blocks[0]) {
    ++statements;
    if (s.kind == Kind::compute && is_function(*s.primitive)) return false;
    if (s.kind != Kind::load && s.kind != Kind::store) {
      if (s.kind != Kind::compute) return false;
      continue;
    }
    const std::int64_t bytes = size_of(program.memories[std::size_t(s.place.memory)].dtype);
    bool is_in_a_row = false, is_aligned = s.place.offset * bytes % line == 0;
    for (const Place::Term& term : s.place.terms)
      if (term.index == loop.value)
        is_in_a_row = term.stride == 1;
      else
        is_aligned = is_aligned && term.stride * bytes % line == 0;
    crossing += is_in_a_row && !is_aligned;
  }
  return crossing * often > statements;
}

// Short floating-point numbers are computed as long ones.
std::int64_t bytes_in_lanes(DType dtype) {
  return std::max<std::int64_t>(size_of(dtype), is_floating(dtype) ? 4 : 1);
}

bool has_functions(const Statement& combine) {
  return std::any_of(combine.blocks[0].begin(), combine.blocks[0].end(), [](const Statement& s) {
    return s.kind == Kind::compute && is_function(*s.primitive);
  });
}

template <class T>
bool have_common(const std::vector<T>& a, const std::vector<T>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const T& each) { return std::find(b.begin(), b.end(), each) != b.end(); });
}

}  // namespace

std::vector<bool> find_lanes(const LoopProgram& program) { return Finder(program).take(); }

bool runs_in_lanes(const Statement& loop, const std::vector<bool>& has_lanes, bool may_check) {
  return loop.carries.empty() && loop.exchanged.empty() &&
         runs_in_lanes(loop.blocks[0], true, has_lanes, may_check);
}

std::int64_t widest_in_lanes(const LoopProgram& program, const Statement& loop) {
  std::vector<Value> counting{loop.kind == Kind::combine ? loop.counter : loop.value};
  std::vector<Value> differing;
  const auto has = [](const std::vector<Value>& values, Value value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  std::int64_t widest = 1;
  const auto differs = [&](Value value) {
    differing.push_back(value);
    widest = std::max(widest, bytes_in_lanes(program.dtypes[std::size_t(value)]));
  };
  for_each_statement(loop.blocks[0], [&](const Statement& s) {
    int num_counting = 0;
    bool is_differing = !s.blocks.empty();
    for_each_use(s, [&](Value used) {
      num_counting += has(counting, used);
      is_differing = is_differing || has(differing, used);
    });
    for_each_definition(s, [&](Value value) {
      if (value == s.counter || (s.kind == Kind::repeat && value == s.value)) return;
      if (s.kind == Kind::compute && *s.primitive == add_p && num_counting == 1 && !is_differing)
        counting.push_back(value);
      else if (is_differing || num_counting > 0)
        differs(value);
    });
  });
  return widest;
}

int num_lanes_of_combination(const LoopProgram& program, const Statement& combine) {
  constexpr int line = 64, most_vectors = 4;
  const int vector = parts_of_combination * int(widest_in_lanes(program, combine));
  return parts_of_combination * std::clamp(line / vector, 1, most_vectors);
}

// As many as fill a line with the widest elements, or half a line where whole ones lie across two,
// but one register with eight parts of combinations; not many more than steps.
int num_lanes(const LoopProgram& program, const Statement& loop, int vector_bytes) {
  const Block& block = loop.blocks[0];
  std::int64_t widest = widest_in_lanes(program, loop), bytes = 64;
  for_each_statement(block, [&](const Statement& s) {
    if (s.kind == Kind::store)
      widest = std::max(widest, bytes_in_lanes(program.dtypes[std::size_t(s.operands[0])]));
    if (s.kind == Kind::combine && !s.is_in_order) bytes = vector_bytes;
  });
  if (crosses_lines(program, loop)) bytes = std::min<std::int64_t>(bytes, 32);
  // A serial loop waits for the step before it: several registers for a number use the time, as
  // long as all that is carried fits half of those that there are.
  const std::int64_t most_together = may_have_many(loop) ? 4 : 2;
  constexpr std::size_t most_written = 256;
  const std::size_t registers = vector_bytes >= 64 ? 32 : 16, carried = most_carries(block),
                    statements = num_statements(block);
  const auto together = [&] { return std::max<std::int64_t>(1, bytes / vector_bytes); };
  while (carried > 0 && 2 * together() <= most_together &&
         2 * carried * std::size_t(together()) <= registers / 2 &&
         2 * statements * std::size_t(together()) <= most_written)
    bytes *= 2;
  const auto steps = std::bit_ceil(std::uint64_t(std::max<std::int64_t>(loop.steps, 2)));
  return int(std::min({bytes / widest, std::int64_t(most_lanes), std::int64_t(steps)}));
}

std::size_t combines_together(const Block& block, std::size_t first) {
  // What several rows read may lie in one set of the first cache.
  constexpr std::size_t most = 4, most_statements = 16, most_read = 4;
  const Statement& one = block[first];
  const auto is_light = [](const Statement& s) {
    return !has_functions(s) &&
           std::none_of(s.blocks[0].begin(), s.blocks[0].end(),
                        [](const Statement& each) { return each.kind == Kind::combine; });
  };
  if (!is_light(one)) return 1;
  Effects all;
  all.add(one);
  std::size_t statements = one.blocks[0].size(), count = 1;
  std::vector<Place> read;
  const auto add_read = [&](const Statement& s) {
    for (const Statement& each : s.blocks[0]) {
      if (each.place.memory < 0 || stride_of(each.place, s.counter) == 0) continue;
      Place place = each.place;
      for (Place::Term& term : place.terms)
        if (term.index == s.counter) term.index = one.counter;
      if (std::find(read.begin(), read.end(), place) == read.end())
        read.push_back(std::move(place));
    }
    return read.size() <= most_read;
  };
  add_read(one);
  while (count < most && first + count < block.size()) {
    const Statement& s = block[first + count];
    if (s.kind != Kind::combine || s.steps != one.steps || s.is_in_order != one.is_in_order ||
        !is_light(s) || !add_read(s) || (statements += s.blocks[0].size()) > most_statements)
      break;
    Effects effects;
    effects.add(s);
    if (have_common(effects.used, all.defined) || have_common(effects.reads, all.writes) ||
        have_common(effects.writes, all.reads) || have_common(effects.writes, all.writes))
      break;
    all.add(s);
    ++count;
  }
  return count;
}

bool combines_apart(const Statement& loop) {
  if (!loop.is_apart || loop.steps < 2 || !loop.carries.empty() || !loop.own.empty()) return false;
  // What computes functions fills registers, and waits for sums little.
  constexpr int most_combinations = 8;
  constexpr std::int64_t longest_with_functions = 256;
  int combinations = 0;
  return std::all_of(loop.blocks[0].begin(), loop.blocks[0].end(),
                     [&](const Statement& s) {
                       if (s.kind != Kind::combine) return is_straight(s);
                       ++combinations;
                       if (s.steps > longest_with_functions && has_functions(s)) return false;
                       return std::all_of(s.blocks[0].begin(), s.blocks[0].end(), is_straight);
                     }) &&
         0 < combinations && combinations <= most_combinations;
}

}  // namespace plait::codegen
