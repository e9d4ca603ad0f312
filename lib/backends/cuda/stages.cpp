// See stages.h.
// SPDX-License-Identifier: Apache-2.0
#include "stages.h"

#include <algorithm>
#include <map>
#include <set>

#include "codegen/copy_loops.h"
#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::cuda {

using codegen::Block;
using codegen::Effects;
using codegen::LoopProgram;
using codegen::Memory;
using codegen::Place;
using codegen::Statement;
using codegen::Value;
using Kind = Statement::Kind;

namespace {

// Steps in any order that keep a GPU busy. A constant: the order of sums depends on shapes alone.
constexpr std::int64_t enough = 4096;
// So few elements are not worth a launch of their own.
constexpr std::int64_t few = 256;

std::int64_t product(const std::vector<Stage::Axis>& grid) {
  std::int64_t steps = 1;
  for (const Stage::Axis& axis : grid) steps *= axis.steps;
  return steps;
}

bool is_number(const Statement& s) { return s.kind == Kind::compute || s.kind == Kind::load; }

Width width_of(const Statement& s) {
  Width width;
  for (const Block& block : s.blocks) {
    const Width inner = cuda::width_of(block);
    width.steps = std::max(width.steps, inner.steps);
    width.is_deep |= inner.is_deep;
  }
  if (s.kind == Kind::copy) width.steps = num_elements(s.shape);
  if (codegen::runs_in_any_order(s) || s.kind == Kind::combine) width.steps *= s.steps;
  if (s.kind == Kind::combine)
    codegen::for_each_statement(
        s.blocks[0], [&](const Statement& each) { width.is_deep |= each.kind == s.kind; });
  return width;
}

class Staging {
 public:
  explicit Staging(LoopProgram program) : program_(std::move(program)) {
    Block body = std::move(program_.body);
    program_.body.clear();
    distribute({}, std::move(body));
  }
  Staged take() {
    for (const Stage& stage : stages_)
      program_.body.insert(program_.body.end(), stage.body.begin(), stage.body.end());
    return {std::move(program_), std::move(stages_)};
  }

 private:
  // What a stage may compute again, or where it finds what another one has computed.
  struct Number {
    Statement statement;
    std::vector<Stage::Axis> grid;  // in whose steps it is defined
  };

  // The memory that statements from the i-th on write.
  static std::set<int> written_from(const Block& block, std::size_t i) {
    Effects effects;
    for (; i < block.size(); ++i) effects.add(block[i]);
    return {effects.writes.begin(), effects.writes.end()};
  }

  void distribute(const std::vector<Stage::Axis>& grid, Block body) {
    spread_combinations(grid, body);
    bool is_open = false;  // whether the last stage is one of statements in turn, of this grid
    for (std::size_t i = 0; i < body.size(); ++i) {
      Statement& s = body[i];
      if (s.kind == Kind::copy) s = codegen::loop_of(program_, s);
      if (is_number(s)) {
        const bool may_wait =
            s.kind == Kind::compute || !written_from(body, i + 1).contains(s.place.memory);
        if (may_wait) {
          numbers_[s.value] = {s, grid};
          continue;
        }
      }
      const bool is_short = is_open && product(grid) * width_of(s).steps < few;
      if (codegen::runs_in_any_order(s) && !is_short) {
        is_open = false;
        std::vector<Stage::Axis> inner = grid;
        inner.push_back({s.value, s.steps});
        if (is_divided(inner, s.blocks[0])) {
          distribute(inner, std::move(s.blocks[0]));
        } else {
          stages_.push_back({inner, {}});
          for (Statement& each : s.blocks[0]) add(std::move(each));
        }
        continue;
      }
      if (!is_open) stages_.push_back({grid, {}});
      is_open = true;
      add(std::move(s));
    }
  }

  // Whether the steps of a loop are divided into stages: a nest goes on in its only loop; others
  // where the grid alone is too small.
  static bool is_divided(const std::vector<Stage::Axis>& grid, const Block& body) {
    const auto others =
        std::count_if(body.begin(), body.end(), [](const Statement& s) { return !is_number(s); });
    if (others == 1 && codegen::runs_in_any_order(body.back())) return true;
    const bool has_wide = std::any_of(body.begin(), body.end(), [](const Statement& s) {
      return s.kind != Kind::loop && width_of(s).steps >= enough;
    });
    return has_wide && product(grid) < enough;
  }

  // A statement of the last stage, behind the numbers that it uses.
  void add(Statement s) {
    Stage& stage = stages_.back();
    std::set<Value> inside;
    Effects effects;
    effects.add(s);
    inside.insert(effects.defined.begin(), effects.defined.end());
    for (const Value value : effects.used)
      if (!inside.contains(value)) bring(value);
    for (const Value value : defined_by(s)) here_[value] = stages_.size();
    stage.body.push_back(std::move(s));
    for (const Value value : defined_by(stage.body.back())) made_in_[value] = stages_.size() - 1;
  }
  static std::vector<Value> defined_by(const Statement& s) {
    std::vector<Value> values;
    if (s.kind == Kind::branch || s.kind == Kind::repeat || s.kind == Kind::loop)
      for (const Statement::Carry& carry : s.carries)
        values.push_back(s.kind == Kind::branch ? carry.value : carry.last);
    else if (s.value >= 0)
      values.push_back(s.value);
    return values;
  }

  // Makes a number known in the last stage.
  void bring(Value value) {
    if (const auto found = here_.find(value);
        found != here_.end() && found->second == stages_.size())
      return;
    Stage& stage = stages_.back();
    if (const auto found = numbers_.find(value); found != numbers_.end()) {
      const Statement statement = found->second.statement;
      Effects effects;
      effects.add(statement);
      for (const Value used : effects.used) bring(used);
      stage.body.push_back(statement);
    } else if (const auto made = made_in_.find(value); made != made_in_.end()) {
      stages_.back().body.push_back(loaded(value, made->second));
    } else {
      return;  // a literal, or a counter of the grid
    }
    here_[value] = stages_.size();
  }

  // A load of what another stage has made of each of its steps.
  Statement loaded(Value value, std::size_t made_in) {
    auto [found, is_new] = waiting_.try_emplace(value);
    if (is_new) {
      const std::vector<Stage::Axis>& grid = stages_[made_in].grid;
      const DType dtype = program_.dtypes[std::size_t(value)];
      found->second = place_of(grid, add_memory(dtype, product(grid)));
      Block& body = stages_[made_in].body;
      const auto behind = std::find_if(body.begin(), body.end(), [&](const Statement& s) {
        const std::vector<Value> values = defined_by(s);
        return std::find(values.begin(), values.end(), value) != values.end();
      });
      Statement store;
      store.kind = Kind::store;
      store.operands = {value};
      store.place = found->second;
      body.insert(behind + 1, std::move(store));
    }
    Statement load;
    load.kind = Kind::load;
    load.value = value;
    load.place = found->second;
    return load;
  }

  int add_memory(DType dtype, std::int64_t size) {
    program_.memories.push_back({Memory::Space::frame, 0, dtype, size});
    return int(program_.memories.size()) - 1;
  }
  static Place place_of(const std::vector<Stage::Axis>& grid, int memory) {
    Place place{memory};
    std::int64_t stride = 1;
    for (auto axis = grid.rbegin(); axis != grid.rend(); ++axis) {
      place.terms.push_back({axis->counter, stride});
      stride *= axis->steps;
    }
    return place;
  }

  // Combinations of long terms: the terms are a loop before, whose steps are a grid.
  void spread_combinations(const std::vector<Stage::Axis>& grid, Block& body) {
    if (product(grid) >= enough) return;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i].kind != Kind::combine || body[i].operands.size() != 2) continue;
      if (const Width width = width_of(body[i]); !width.is_deep || width.steps < enough) continue;
      Statement terms;
      terms.kind = Kind::repeat;
      terms.is_apart = true;
      terms.source = body[i].source;
      terms.steps = body[i].steps;
      terms.value = body[i].counter;
      terms.blocks = std::move(body[i].blocks);
      const Value term = body[i].operands[1];
      std::vector<Stage::Axis> inner = grid;
      inner.push_back({terms.value, terms.steps});
      const int memory = add_memory(program_.dtypes[std::size_t(term)], product(inner));
      Statement store;
      store.kind = Kind::store;
      store.operands = {term};
      store.place = place_of(inner, memory);
      terms.blocks[0].push_back(store);

      Statement load;
      load.kind = Kind::load;
      load.value = codegen::define(program_, program_.dtypes[std::size_t(term)]);
      load.place = store.place;
      const Value counter = codegen::counter_of(program_, body[i].steps);
      for (Place::Term& index : load.place.terms)
        if (index.index == body[i].counter) index.index = counter;
      body[i].counter = counter;
      body[i].operands[1] = load.value;
      body[i].blocks = {{load}};
      body.insert(body.begin() + std::ptrdiff_t(i), std::move(terms));
      ++i;
    }
  }

  LoopProgram program_;
  std::vector<Stage> stages_;
  std::map<Value, Number> numbers_;       // that any stage may compute
  std::map<Value, std::size_t> made_in_;  // by what only one stage computes: which
  std::map<Value, Place> waiting_;        // of those: where others find them
  std::map<Value, std::size_t> here_;     // 1 + the last stage that knows it
};

}  // namespace

Width width_of(const Block& block) {
  Width width;
  for (const Statement& s : block) {
    const Width one = width_of(s);
    width.steps = std::max(width.steps, one.steps);
    width.is_deep |= one.is_deep;
  }
  return width;
}

std::int64_t Stage::steps() const { return product(grid); }

Staged stages_of(LoopProgram program) { return Staging(std::move(program)).take(); }

}  // namespace plait::cuda
