// See strips.h.
// SPDX-License-Identifier: Apache-2.0
#include "strips.h"

#include <algorithm>
#include <map>

#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::cuda {

using codegen::Place;
using codegen::Statement;
using codegen::Value;
using Kind = Statement::Kind;

namespace {

// Turns in which a warp goes through a row, and bytes of each lane: registers are few.
constexpr std::int64_t most_bytes_of_row = 128, most_bytes_of_rows = 640;

std::int64_t bytes_of_lane(const Row& row, DType dtype) {
  return (row.size + parts_of_strip - 1) / parts_of_strip * 4 * size_of(dtype);
}

}  // namespace

bool is_long(const Statement& combine) {
  return combine.kind == Kind::combine && !combine.is_in_order && combine.steps >= fewest_of_strip;
}

bool is_strip(const Statement& s) {
  if (!is_long(s) && !codegen::runs_in_any_order(s)) return false;
  return std::all_of(s.blocks[0].begin(), s.blocks[0].end(), codegen::is_straight);
}

Value counter_of(const Statement& loop) {
  return loop.kind == Kind::combine ? loop.counter : loop.value;
}

std::set<const Statement*> neighbours_of(const Statement& strip) {
  const codegen::Block& body = strip.blocks[0];
  const Value counter = counter_of(strip);
  codegen::Effects effects;
  for (const Statement& s : body) effects.add(s);
  const std::set<int> read(effects.reads.begin(), effects.reads.end()),
      written(effects.writes.begin(), effects.writes.end());
  std::set<Value> inside;
  for (const Statement& s : body) inside.insert(s.value);
  std::set<const Statement*> found;
  for (const Statement& s : body) {
    if (s.kind == Kind::compute || codegen::stride_of(s.place, counter) != 1) continue;
    const bool is_known =
        std::none_of(s.place.terms.begin(), s.place.terms.end(),
                     [&](const Place::Term& term) { return inside.contains(term.index); });
    const bool changes = read.contains(s.place.memory) && written.contains(s.place.memory);
    if (is_known && !changes) found.insert(&s);
  }
  return found;
}

bool begins_at_fours(const Place& place, Value counter) {
  return place.offset % 4 == 0 &&
         std::all_of(place.terms.begin(), place.terms.end(), [&](const Place::Term& term) {
           return term.index == counter || term.stride % 4 == 0;
         });
}

std::optional<RegisterRows> register_rows_of(const codegen::LoopProgram& program,
                                             const Stage& stage) {
  RegisterRows found;
  std::map<int, std::size_t> num_all;  // places, by memory
  codegen::for_each_statement(stage.body, [&](const Statement& s) {
    codegen::for_each_place(s, [&](const Place& place, bool) { ++num_all[place.memory]; });
  });
  const auto is_of_grid = [&](const Place::Term& term) {
    return std::any_of(stage.grid.begin(), stage.grid.end(),
                       [&](const auto& axis) { return axis.counter == term.index; });
  };
  // Whether the steps of a strip go through all elements of a row, one after the other.
  const auto goes_through = [&](const Statement& strip, const Place& place, const Row& row) {
    std::vector<Place::Term> inner, outer;
    for (const Place::Term& term : place.terms) (is_of_grid(term) ? outer : inner).push_back(term);
    return strip.steps == row.size && place.memory == row.memory && place.offset == row.low &&
           outer == row.terms && inner == std::vector<Place::Term>{{counter_of(strip), 1}};
  };
  std::int64_t bytes = 0;
  for (const Row& row : stage.rows) {
    if (!row.is_own && row.terms.empty()) continue;  // of all steps: caches have it
    std::size_t count = 0;
    for (const Statement& s : stage.body) {
      if (!is_strip(s)) continue;
      for (const Statement& each : s.blocks[0])
        if (each.kind != Kind::compute && goes_through(s, each.place, row)) {
          found.places.insert(&each.place);
          ++count;
        }
    }
    const std::int64_t more = bytes_of_lane(row, program.memories[std::size_t(row.memory)].dtype);
    bytes += more;
    if (row.is_own ? count < num_all[row.memory] : count < 2) return {};
    if (more > most_bytes_of_row || bytes > most_bytes_of_rows) return {};
    found.rows.push_back(&row);
  }
  return found;
}

}  // namespace plait::cuda
