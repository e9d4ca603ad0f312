// Rows of fewer elements than a vector has leave most of it empty: x + b of float[100000, 3] and
// float[3]. Where what is written goes on from one row to the next, a block of many rows is one
// loop, and what does not go on is copied before it, to memory of the block: what is the same for
// all rows once before all blocks.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/short_rows.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t line = 64;  // bytes of a vector
constexpr std::int64_t elements_of_block = 2048, fewest_rows = 32;

class Joiner {
 public:
  // Nothing where a nest of two loops has no short rows, or needs them one by one.
  static std::optional<Joiner> of(LoopProgram& program, const Statement& outer) {
    if (!runs_in_any_order(outer) || outer.is_parallel || !outer.own.empty()) return {};
    const Block& block = outer.blocks[0];
    if (block.empty() || !runs_in_any_order(block.back()) || !block.back().is_parallel) return {};
    Joiner joiner(program, outer);
    if (!std::all_of(joiner.body_.begin(), joiner.body_.end(), is_straight)) return {};
    for (const bool outer_is_short : {true, false}) {
      if (outer_is_short) std::swap(joiner.rows_, joiner.row_);
      if (joiner.are_short()) return joiner;
      if (outer_is_short) std::swap(joiner.rows_, joiner.row_);
    }
    return {};
  }

  Block run() {
    // A multiple of the elements of a vector.
    const std::int64_t count = std::min(
        std::max<std::int64_t>(elements_of_block / row_.steps / fewest_rows, 1) * fewest_rows,
        rows_.steps / fewest_rows * fewest_rows);
    const std::int64_t whole = rows_.steps / count, rest = rows_.steps % count;
    copy_rows(count);
    Block written = std::move(before_);
    written.push_back(write_blocks(0, whole, count));
    if (rest > 0) written.push_back(write_blocks(whole * count, 1, rest));
    return written;
  }

 private:
  // The outer loop over rows, and what a step of it computes, done for each element.
  Joiner(LoopProgram& program, const Statement& outer) : program_(program) {
    const Statement& inner = outer.blocks[0].back();
    rows_ = {outer.value, outer.steps, outer.source};
    row_ = {inner.value, inner.steps, inner.source};
    body_.assign(outer.blocks[0].begin(), outer.blocks[0].end() - 1);
    body_.insert(body_.end(), inner.blocks[0].begin(), inner.blocks[0].end());
  }

  bool are_short() const {
    if (rows_.steps < fewest_rows || row_.steps < 2) return false;
    std::int64_t widest = 1;
    for (const Statement& s : body_) {
      if (s.value >= 0) widest = std::max(widest, size_of(program_.dtypes[std::size_t(s.value)]));
      for (const Value operand : s.operands)
        if (operand == rows_.counter || operand == row_.counter) return false;
      if (s.kind == Kind::store && !goes_on(s.place)) return false;
      // Places by what is computed are not copied.
      for (const Place::Term& term : s.place.terms)
        for (const Statement& other : body_)
          if (other.value == term.index) return false;
    }
    const bool fills_half = (row_.steps & (row_.steps - 1)) == 0 && row_.steps * widest >= line / 2;
    return row_.steps * widest < line && !fills_half;
  }
  bool goes_on(const Place& place) const {
    return stride_of(place, rows_.counter) == stride_of(place, row_.counter) * row_.steps;
  }

  struct Copied {
    Place place;  // that is read
    int memory;
  };

  // Memory for what does not go on, and what fills it if one block of it is all.
  void copy_rows(std::int64_t count) {
    for (const Statement& s : body_) {
      if (s.kind != Kind::load || goes_on(s.place) || find(s.place)) continue;
      const DType dtype = program_.memories[std::size_t(s.place.memory)].dtype;
      const int memory = int(program_.memories.size());
      program_.memories.push_back({Memory::Space::frame, 0, dtype, count * row_.steps});
      copied_.push_back({s.place, memory});
      const std::int64_t by_row = stride_of(s.place, rows_.counter);
      Statement copy;
      copy.kind = Kind::copy;
      copy.source = s.source;
      copy.place = {memory, 0};
      copy.shape = {count, row_.steps};
      copy.strides = {row_.steps, 1};
      copy.source_place = without_steps(s.place);
      copy.source_strides = {by_row, stride_of(s.place, row_.counter)};
      if (by_row == 0) {
        before_.push_back(std::move(copy));
        continue;
      }
      own_.push_back(memory);
      in_blocks_.push_back(std::move(copy));
    }
  }
  const Copied* find(const Place& place) const {
    const auto found = std::find_if(copied_.begin(), copied_.end(),
                                    [&](const Copied& each) { return each.place == place; });
    return found == copied_.end() ? nullptr : &*found;
  }
  Place without_steps(Place place) const {
    std::erase_if(place.terms, [&](const Place::Term& term) {
      return term.index == rows_.counter || term.index == row_.counter;
    });
    return place;
  }

  // So many blocks of `count` rows, from a row on.
  Statement write_blocks(std::int64_t first, std::int64_t blocks, std::int64_t count) {
    Statement outer = counting(program_, blocks, rows_.source),
              inner = counting(program_, count * row_.steps, rows_.source);
    outer.is_apart = inner.is_parallel = true;
    outer.own = own_;
    for (Statement copy : in_blocks_) {
      copy.shape[0] = count;
      loops::add_index(copy.source_place, {first, {{outer.value, count}}}, copy.source_strides[0]);
      outer.blocks[0].push_back(std::move(copy));
    }
    Names names;
    inner.blocks[0] = copy_of(program_, body_, names);
    for (Statement& s : inner.blocks[0]) {
      if (s.place.memory < 0) continue;
      const Copied* const copied = s.kind == Kind::load ? find(s.place) : nullptr;
      const std::int64_t stride = copied ? 1 : stride_of(s.place, row_.counter);
      s.place = copied ? Place{copied->memory, 0} : without_steps(s.place);
      loops::add_index(s.place, {0, {{inner.value, 1}}}, stride);
      if (!copied)
        loops::add_index(s.place, {first * row_.steps, {{outer.value, count * row_.steps}}},
                         stride);
    }
    outer.blocks[0].push_back(std::move(inner));
    return outer;
  }

  struct Loop {
    Value counter;
    std::int64_t steps;
    Source source;
  };

  LoopProgram& program_;
  Loop rows_, row_;
  Block body_;  // of an element
  std::vector<Copied> copied_;
  Block before_, in_blocks_;
  std::vector<int> own_;
};

// around: the innermost loop around a block whose steps threads may share.
void run(LoopProgram& program, Block& block, Statement* around) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::optional<Joiner> joiner = Joiner::of(program, block[i]);
    if (!joiner) {
      const bool is_apart = block[i].kind == Kind::repeat && block[i].is_apart;
      for (Block& inner : block[i].blocks) run(program, inner, is_apart ? &block[i] : around);
      continue;
    }
    Block joined = joiner->run();
    if (around)
      for (const Statement& s : joined)
        if (s.kind == Kind::copy) around->own.push_back(s.place.memory);
    block.erase(block.begin() + std::ptrdiff_t(i));
    const std::size_t count = joined.size();
    block.insert(block.begin() + std::ptrdiff_t(i), std::make_move_iterator(joined.begin()),
                 std::make_move_iterator(joined.end()));
    i += count - 1;
  }
}

}  // namespace

void join_short_rows(LoopProgram& program) { run(program, program.body, nullptr); }

}  // namespace plait::codegen
