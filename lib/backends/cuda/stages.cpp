// See stages.h.
// SPDX-License-Identifier: Apache-2.0
#include "stages.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "accesses.h"
#include "codegen/copy_loops.h"
#include "codegen/effects.h"
#include "codegen/walk.h"
#include "sorts.h"

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
// Loops that follow each other, all of fewer steps, are left to one block of a cooperative stage:
// its threads meet sooner than blocks do.
constexpr std::int64_t narrow = 2048;
// Rows of fewer elements find room beside each other in the caches.
constexpr std::int64_t fewest_of_row = 256;
// The bytes of a step's rows: several blocks share the memory of a processor.
constexpr std::int64_t most_of_rows = 24 << 10;
// Blocks run fewer examples one after the other, all together, if their steps are wide.
constexpr std::int64_t few_examples = 64;

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
  if (s.kind == Kind::call) width.steps = Sorting(s).rows * Sorting(s).size;
  if (codegen::runs_in_any_order(s) || s.kind == Kind::combine) width.steps *= s.steps;
  if (s.kind == Kind::combine)
    codegen::for_each_statement(
        s.blocks[0], [&](const Statement& each) { width.is_deep |= each.kind == s.kind; });
  return width;
}

bool is_in_order(const Statement& s) {
  return s.kind == Kind::loop || (s.kind == Kind::repeat && !codegen::runs_in_any_order(s));
}

// Whether loops in order have steps that are so wide.
bool has_wide_turns(const Block& block, std::int64_t wide) {
  return std::any_of(block.begin(), block.end(), [&](const Statement& s) {
    return (is_in_order(s) && width_of(s).steps >= wide) ||
           std::any_of(s.blocks.begin(), s.blocks.end(),
                       [&](const Block& inner) { return has_wide_turns(inner, wide); });
  });
}

class Staging {
 public:
  Staging(LoopProgram program, std::int64_t fewest_of_cooperative)
      : program_(std::move(program)), wide_(fewest_of_cooperative) {
    Block body = std::move(program_.body);
    program_.body.clear();
    spread_checks(body);
    distribute({}, std::move(body));
    for (Stage& stage : stages_) {
      stage.is_cooperative = stage.grid.empty() && cuda::width_of(stage.body).steps >= wide_;
      if (stage.is_cooperative) divide_among_blocks(stage.body);
    }
    for (Stage& stage : stages_) {
      std::vector<Stage::Axis> around = stage.grid;
      give_room(stage.body, around);
    }
    count_users();
    for (Stage& stage : stages_) find_rows(stage);
  }
  Staged take() {
    for (const Stage& stage : stages_)
      program_.body.insert(program_.body.end(), stage.body.begin(), stage.body.end());
    return {std::move(program_), std::move(stages_), wide_};
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
      const bool is_short = is_open && product(grid) * width_of(s).steps < few,
                 is_in_turn = grid.empty() && is_run_together(s, wide_);
      if (codegen::runs_in_any_order(s) && !is_short && !is_in_turn) {
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
  // Where a statement says which numbers others know by it.
  template <class S>
  static auto definitions_of(S& s) {
    std::vector<decltype(&s.value)> values;
    if (s.kind == Kind::branch || s.kind == Kind::repeat || s.kind == Kind::loop)
      for (auto& carry : s.carries)
        values.push_back(s.kind == Kind::branch ? &carry.value : &carry.last);
    else if (s.value >= 0)
      values.push_back(&s.value);
    if (s.kind == Kind::combine)
      for (auto& carry : s.carries) values.push_back(&carry.last);
    return values;
  }
  static std::vector<Value> defined_by(const Statement& s) {
    std::vector<Value> values;
    for (const Value* value : definitions_of(s)) values.push_back(*value);
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

  // --- Cooperative stages ------------------------------------------------------------------------

  // Of statements that blocks run together, what one block does as well is left to one.
  void divide_among_blocks(Block& block) {
    spread_combinations({}, block);
    const std::int64_t few_for_blocks = std::min(narrow, wide_ / 4);
    Block divided;
    Block loops;  // that follow each other, for one block
    const auto leave_loops = [&] {
      if (loops.size() > 1) loops = {by_one_block(std::move(loops))};
      divided.insert(divided.end(), std::make_move_iterator(loops.begin()),
                     std::make_move_iterator(loops.end()));
      loops.clear();
    };
    for (Statement& s : block) {
      const bool is_loop = s.kind == Kind::copy || codegen::runs_in_any_order(s),
                 is_narrow = width_of(s).steps < few_for_blocks && !is_straight(s);
      if (is_loop && is_narrow) {
        loops.push_back(std::move(s));
        continue;
      }
      leave_loops();
      if (!is_loop && stores(s) && (is_narrow || s.kind == Kind::combine)) {
        leave_to_one_block(std::move(s), divided);
        continue;
      }
      if (is_run_together(s, wide_))
        for (Block& inner : s.blocks) divide_among_blocks(inner);
      divided.push_back(std::move(s));
    }
    leave_loops();
    block = std::move(divided);
  }
  static bool stores(const Statement& s) {
    Effects effects;
    effects.add(s);
    return !effects.writes.empty();
  }
  Statement by_one_block(Block block) {
    Statement loop = codegen::counting(program_, 1, block[0].source);
    loop.is_apart = true;
    loop.blocks[0] = std::move(block);
    return loop;
  }
  // A statement that defines numbers: others find them in memory.
  void leave_to_one_block(Statement s, Block& block) {
    Block own, behind;
    for (Value* value : definitions_of(s)) {
      const DType dtype = program_.dtypes[std::size_t(*value)];
      Statement load;
      load.kind = Kind::load;
      load.value = *value;
      load.place.memory = add_memory(dtype, 1);
      behind.push_back(load);
      *value = codegen::define(program_, dtype);
      Statement store;
      store.kind = Kind::store;
      store.operands = {*value};
      store.place = load.place;
      own.push_back(store);
    }
    own.insert(own.begin(), std::move(s));
    block.push_back(by_one_block(std::move(own)));
    block.insert(block.end(), behind.begin(), behind.end());
  }

  // --- Sorts -------------------------------------------------------------------------------------

  // The memory that sorts need meanwhile: each step that may run beside others has its own.
  void give_room(Block& block, std::vector<Stage::Axis>& around) {
    for (Statement& s : block) {
      const std::int64_t bytes = s.kind == Kind::call ? Sorting(s).room_bytes() : 0;
      if (bytes > 0) {
        s.place = place_of(around, add_memory(DType::uint8, bytes * product(around)));
        for (Place::Term& term : s.place.terms) term.stride *= bytes;
      }
      const bool is_shared = codegen::runs_in_any_order(s);
      if (is_shared) around.push_back({s.value, s.steps});
      for (Block& inner : s.blocks) give_room(inner, around);
      if (is_shared) around.pop_back();
    }
  }

  // --- Rows --------------------------------------------------------------------------------------

  void find_rows(Stage& stage) {
    if (stage.grid.empty() || stage.is_cooperative ||
        cuda::width_of(stage.body).steps < fewest_of_row)
      return;
    std::map<int, std::vector<Region>> reads, writes;
    for (const Statement& s : stage.body) {
      const Accesses accesses(s);
      for (const Region& region : accesses.reads) reads[region.memory].push_back(region);
      for (const Region& region : accesses.writes) writes[region.memory].push_back(region);
    }
    std::int64_t bytes = 0;
    const auto add = [&](std::optional<Row> row) {
      if (!row) return;
      const Memory& memory = program_.memories[std::size_t(row->memory)];
      const std::int64_t more = row->size * size_of(memory.dtype);
      if (bytes + more > most_of_rows) return;
      bytes += more;
      stage.rows.push_back(std::move(*row));
    };
    for (const auto& [memory, regions] : writes) {
      std::vector<Region> all = regions;
      all.insert(all.end(), reads[memory].begin(), reads[memory].end());
      if (is_own(memory)) add(row_of(stage, all, true));
    }
    for (const auto& [memory, regions] : reads)
      if (!writes.contains(memory)) add(row_of(stage, regions, false));
  }
  void count_users() {
    num_users_.assign(program_.memories.size(), 0);
    for (const Stage& stage : stages_) {
      Effects effects;
      for (const Statement& s : stage.body) effects.add(s);
      std::set<int> used(effects.reads.begin(), effects.reads.end());
      used.insert(effects.writes.begin(), effects.writes.end());
      for (const int memory : used) ++num_users_[std::size_t(memory)];
    }
  }
  // Whether only one stage sees a memory, and nobody else.
  bool is_own(int memory) const {
    return program_.memories[std::size_t(memory)].space == Memory::Space::frame &&
           num_users_[std::size_t(memory)] == 1;
  }
  // What holds all regions of a memory, if it is the step's own; else those that follow the grid's
  // counters alone, if several of them are long: the text finds all of these in the row.
  static std::optional<Row> row_of(const Stage& stage, const std::vector<Region>& regions,
                                   bool is_own) {
    constexpr std::int64_t anywhere = std::numeric_limits<std::int64_t>::max();
    const auto follows = [&](const Region& region) {
      return region.high != anywhere &&
             std::all_of(region.terms.begin(), region.terms.end(), [&](const Place::Term& term) {
               return std::any_of(stage.grid.begin(), stage.grid.end(),
                                  [&](const auto& axis) { return axis.counter == term.index; });
             });
    };
    const auto is_long = [](const Region& region) {
      return region.high - region.low + 1 >= fewest_of_row;
    };
    const auto first = std::find_if(regions.begin(), regions.end(), [&](const Region& region) {
      return follows(region) && (is_own || is_long(region));
    });
    if (first == regions.end()) return {};
    Row row{first->memory, first->terms, first->low, 0, is_own};
    std::int64_t high = first->high;
    int count = 0;
    for (const Region& region : regions) {
      if (!follows(region) || region.terms != row.terms) {
        if (is_own) return {};
        continue;
      }
      row.low = std::min(row.low, region.low);
      high = std::max(high, region.high);
      count += is_long(region);
    }
    if (high - row.low >= most_of_rows || (!is_own && count < 2)) return {};
    row.size = high - row.low + 1;
    return row;
  }

  // Loops that only check run in any order: of failures the one that comes first counts, whichever
  // is found first.
  static void spread_checks(Block& block) {
    for (Statement& s : block) {
      for (Block& inner : s.blocks) spread_checks(inner);
      s.is_apart |= codegen::only_checks(s);
    }
  }

  // Combinations of long terms: the terms are a loop before, whose steps are a grid.
  void spread_combinations(const std::vector<Stage::Axis>& grid, Block& body) {
    if (product(grid) >= enough) return;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i].kind != Kind::combine || body[i].operands.size() != 2 || !body[i].carries.empty())
        continue;
      if (const Width width = width_of(body[i]);
          !width.is_deep || width.steps < std::min(enough, wide_))
        continue;
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
  const std::int64_t wide_;
  std::vector<Stage> stages_;
  std::vector<int> num_users_;            // stages, by memory
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

Staged stages_of(LoopProgram program, std::int64_t fewest_of_cooperative) {
  return Staging(std::move(program), fewest_of_cooperative).take();
}

bool is_run_together(const Statement& s, std::int64_t wide) {
  if (s.kind == Kind::branch || is_in_order(s)) return true;
  return codegen::runs_in_any_order(s) && s.steps < few_examples &&
         has_wide_turns(s.blocks[0], wide);
}

}  // namespace plait::cuda
