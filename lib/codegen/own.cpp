// Large memory of the frame of which each step of a loop uses a part that no other one uses becomes
// memory that each step has for itself. It is as large as one part, so that it stays in the nearest
// cache from step to step, and each thread has its own. Lanes are cut into pieces, whose steps are
// few lanes:
//
//   memory m1: float64[1000000] frame        memory m1: float64[160] frame
//   parallel for e in 0..100000              apart for b in 0..6250 with its own m1
//     for t in 0..10                           parallel for l in 0..16
//       store m1[t * 100000 + e] = ...           for t in 0..10
//     for t in 0..10                               store m1[t * 16 + l] = ...
//       ... = load m1[t * 100000 + e]            for t in 0..10
//                                                  ... = load m1[t * 16 + l]
//
// It is the last pass before share.cpp, since it fixes where a step finds what it has made.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/own.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "codegen/cut.h"
#include "codegen/lanes.h"
#include "codegen/part.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t fewest_bytes = 1 << 18;    // of a memory, else it stays in a cache anyway
constexpr std::int64_t most_bytes = 1 << 20;      // of what a step has for itself
constexpr std::int64_t bytes_of_lanes = 1 << 14;  // that stay in the nearest cache
constexpr std::int64_t most_bytes_of_lanes = 1 << 16, most_steps_of_a_piece = 64;

int num_accesses(const Block& block, int memory) {
  int count = 0;
  for_each_statement(block, [&](const Statement& s) {
    for_each_place(s, [&](const Place& place, bool) { count += place.memory == memory; });
  });
  return count;
}

// How the elements of a memory lie: outer * (stride * steps) + step * stride + inner.
class Layout {
 public:
  // Nothing where steps cannot have their own.
  static std::optional<Layout> of(const LoopProgram& program, const Statement& loop, int memory) {
    const std::optional<std::int64_t> stride = stride_of_parts(loop, memory);
    if (!stride || !Part(program, loop, memory, *stride).is_all_that_steps_use()) return {};
    Layout layout(loop, *stride);
    bool is_known = true;
    std::optional<std::int64_t> first;
    for_each_statement(loop.blocks[0], [&](const Statement& s) {
      for_each_definition(s, [&](Value value) { layout.inside_.insert(value); });
      for (const auto& pair : s.exchanged)
        is_known = is_known && pair[0] != memory && pair[1] != memory;
    });
    std::optional<std::map<Value, std::int64_t>> outside;
    for_each_statement(loop.blocks[0], [&](const Statement& s) {
      const auto visit = [&](const Place& place, const Sizes64& shape, const Sizes64& strides) {
        if (place.memory != memory || !is_known) return;
        std::int64_t low = layout.outer(place.offset), high = low;
        if (!first) first = layout.low_ = layout.high_ = low;
        layout.common_ = std::gcd(layout.common_, low - *first);
        const auto add = [&](std::int64_t by, Range range) {
          low += std::min(by * range.low, by * range.high);
          high += std::max(by * range.low, by * range.high);
          layout.common_ = std::gcd(layout.common_, by);
        };
        std::map<Value, std::int64_t> from_outside;
        for (const Place::Term& term : place.terms) {
          if (term.index == loop.value) continue;
          const bool is_outer = term.stride % layout.row_ == 0;
          if (!layout.inside_.count(term.index)) {
            is_known = is_known && is_outer;
            from_outside[term.index] += term.stride;
          } else if (is_outer) {
            const std::optional<Range> range = program.range(term.index);
            is_known = is_known && range;
            if (range) add(term.stride / layout.row_, *range);
          }
        }
        for (std::size_t axis = 0; axis < shape.size(); ++axis)
          if (strides[axis] % layout.row_ == 0)
            add(strides[axis] / layout.row_, {0, shape[axis] - 1});
        if (!outside) outside = from_outside;
        is_known = is_known && *outside == from_outside;
        layout.low_ = std::min(layout.low_, low), layout.high_ = std::max(layout.high_, high);
      };
      visit(s.place, s.shape, s.strides);
      visit(s.source_place, s.shape, s.source_strides);
    });
    if (!is_known || !first) return {};
    layout.common_ = std::max<std::int64_t>(layout.common_, 1);
    return layout;
  }

  // Elements that a step uses.
  std::int64_t size() const { return ((high_ - low_) / common_ + 1) * stride_; }

  // Goes to the memory of a step, or of the first of so many steps that are lanes, side by side.
  void place(Statement& s, int memory, std::int64_t lanes) const {
    const auto move = [&](Place& place, Sizes64& strides) {
      if (place.memory != memory) return;
      const std::int64_t outer_of_first = outer(place.offset);
      Place own{memory, ((outer_of_first - low_) / common_ * stride_ +
                         (place.offset - outer_of_first * row_)) *
                            lanes};
      for (const Place::Term& term : place.terms)
        if (inside_.count(term.index))
          loops::add_index(own, {0, {{term.index, 1}}}, moved(term.stride) * lanes);
      place = std::move(own);
      for (std::int64_t& each : strides) each = moved(each) * lanes;
    };
    move(s.place, s.strides);
    move(s.source_place, s.source_strides);
    for (Block& block : s.blocks)
      for (Statement& inner : block) place(inner, memory, lanes);
  }

 private:
  Layout(const Statement& loop, std::int64_t stride) : stride_(stride), row_(stride * loop.steps) {}

  std::int64_t outer(std::int64_t offset) const { return offset / row_ - (offset % row_ < 0); }
  std::int64_t moved(std::int64_t stride) const {
    return stride % row_ == 0 ? stride / row_ / common_ * stride_ : stride;
  }

  std::int64_t stride_, row_;
  std::int64_t low_ = 0, high_ = 0, common_ = 0;  // of outer
  std::set<Value> inside_;                        // what the loop defines
};

class Owner {
 public:
  explicit Owner(LoopProgram& program) : program_(program) {}

  // around: the loop around them whose steps are apart, if any.
  void run(Block& block, Statement* around = nullptr) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i].is_parallel && runs_in_any_order(block[i])) {
        i += give_to_lanes(block, i);
      } else if (runs_in_any_order(block[i])) {
        run(block[i].blocks[0], &block[i]);
        give(block[i], block[i]);
      } else if (around && block[i].kind == Kind::repeat && block[i].carries.empty() &&
                 block[i].exchanged.empty()) {
        give(block[i], *around);  // one after the other, they have the same
      }
    }
  }

 private:
  // Those that a loop alone uses.
  std::map<int, Layout> layouts_of(const Statement& loop) const {
    std::map<int, Layout> layouts;
    for (std::size_t i = 0; i < program_.memories.size(); ++i) {
      const Memory& memory = program_.memories[i];
      const int here = int(i);
      if (memory.space != Memory::Space::frame || bytes_of(here, memory.size) < fewest_bytes)
        continue;
      const int used = num_accesses({loop}, here);
      if (used == 0 || used != num_accesses(program_.body, here)) continue;
      if (std::optional<Layout> layout = Layout::of(program_, loop, here))
        layouts.emplace(here, std::move(*layout));
    }
    return layouts;
  }
  std::int64_t bytes_of(int memory, std::int64_t elements) const {
    return elements * size_of(program_.memories[std::size_t(memory)].dtype);
  }
  std::int64_t bytes_of(const std::map<int, Layout>& layouts) const {
    std::int64_t bytes = 0;
    for (const auto& [memory, layout] : layouts) bytes += bytes_of(memory, layout.size());
    return bytes;
  }

  void give(Statement& loop, Statement& owner) {
    const std::map<int, Layout> layouts = layouts_of(loop);
    if (bytes_of(layouts) > most_bytes) return;
    for (const auto& [memory, layout] : layouts) {
      layout.place(loop, memory, 1);
      program_.memories[std::size_t(memory)].size = layout.size();
      owner.own.push_back(memory);
    }
  }

  // How many statements are there more than before.
  std::size_t give_to_lanes(Block& block, std::size_t at) {
    const Statement loop = block[at];
    const std::map<int, Layout> layouts = layouts_of(loop);
    constexpr int widest_vector = 64;
    std::int64_t steps = num_lanes(program_, loop, widest_vector);
    const std::int64_t bytes = bytes_of(layouts);
    if (layouts.empty() || bytes * steps > most_bytes_of_lanes || loop.steps < 2 * steps) return 0;
    while (2 * steps <= most_steps_of_a_piece && 2 * steps * bytes <= bytes_of_lanes) steps *= 2;
    std::vector<Statement> pieces;
    const std::int64_t whole = loop.steps / steps, rest = loop.steps % steps;
    for (const auto& [first, outer, inner] : {std::array{std::int64_t(0), whole, steps},
                                              std::array{whole * steps, std::int64_t(1), rest}}) {
      if (inner == 0 || outer == 0) continue;
      Statement own = loop;
      for (const auto& [memory, layout] : layouts) layout.place(own, memory, steps);
      // Lanes are side by side, wherever the piece begins.
      std::optional<Statement> piece = cut(program_, own, first, outer, inner);
      if (!piece) return 0;
      const Value lane = piece->blocks[0][0].value;
      add_lane(piece->blocks[0][0].blocks[0], layouts, lane);
      for (const auto& [memory, layout] : layouts) piece->own.push_back(memory);
      pieces.push_back(std::move(*piece));
    }
    for (const auto& [memory, layout] : layouts)
      program_.memories[std::size_t(memory)].size = layout.size() * steps;
    block.erase(block.begin() + std::ptrdiff_t(at));
    block.insert(block.begin() + std::ptrdiff_t(at), pieces.begin(), pieces.end());
    return pieces.size() - 1;
  }
  static void add_lane(Block& block, const std::map<int, Layout>& layouts, Value lane) {
    for (Statement& s : block) {
      for_each_place(s, [&](Place& place, bool) {
        if (layouts.count(place.memory)) loops::add_index(place, {0, {{lane, 1}}}, 1);
      });
      for (Block& inner : s.blocks) add_lane(inner, layouts, lane);
    }
  }

  LoopProgram& program_;
};

}  // namespace

void give_steps_their_own(LoopProgram& program) { Owner(program).run(program.body); }

std::vector<int> memories_of_steps(const LoopProgram& program) {
  std::set<int> memories;
  for_each_statement(program.body,
                     [&](const Statement& s) { memories.insert(s.own.begin(), s.own.end()); });
  return {memories.begin(), memories.end()};
}

}  // namespace plait::codegen
