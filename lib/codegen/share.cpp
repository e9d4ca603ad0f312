// See share.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/share.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "codegen/effects.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// --- What steps write ----------------------------------------------------------------------------

// Elements that a step of a loop writes: the sums of an offset, of multiples of the step, of
// multiples of counters in it (digits), and of numbers from outside, which are the same in all.
struct Write {
  std::int64_t offset = 0, by_step = 0;
  struct Digit {
    std::int64_t stride, steps;
    auto operator<=>(const Digit&) const = default;
  };
  std::vector<Digit> digits;
  std::vector<std::pair<Value, std::int64_t>> outside;  // and strides

  std::array<std::int64_t, 2> range() const {
    std::array<std::int64_t, 2> reached{offset, offset};
    for (const Digit& digit : digits)
      reached[digit.stride > 0 ? 1 : 0] += digit.stride * (digit.steps - 1);
    return reached;
  }
};

class Writes {
 public:
  // Nothing where a statement does what cannot be shared, or writes where nobody knows.
  static std::optional<Writes> of(const LoopProgram& program, const Statement& loop) {
    Writes writes(program);
    Effects effects;
    effects.add(loop);
    writes.defined_ = std::move(effects.defined);
    for_each_statement(loop, [&](const Statement& s) {
      writes.own_.insert(writes.own_.end(), s.own.begin(), s.own.end());
    });
    return writes.add(loop.blocks[0], loop.value) ? std::optional(std::move(writes)) : std::nullopt;
  }

  bool are_apart(std::int64_t steps) const {
    return std::all_of(by_memory_.begin(), by_memory_.end(),
                       [&](const auto& entry) { return are_apart(entry.second, steps); });
  }

 private:
  explicit Writes(const LoopProgram& program) : program_(program) {}

  bool add(const Block& block, Value step) {
    return std::all_of(block.begin(), block.end(), [&](const Statement& s) {
      // Where examples run one after the other, what fails is run again for its error.
      if (s.kind == Kind::call || (s.kind == Kind::check && !program_.fails_by_example) ||
          !add_exchanged(s, step))
        return false;
      if (s.kind == Kind::store && !add(s.place, step, {})) return false;
      if (s.kind == Kind::copy) {
        std::vector<Write::Digit> digits;
        for (std::size_t axis = 0; axis < s.shape.size(); ++axis)
          if (s.shape[axis] > 1) digits.push_back({s.strides[axis], s.shape[axis]});
        if (!add(s.place, step, std::move(digits))) return false;
      }
      if (s.kind == Kind::repeat) steps_[s.value] = s.steps;
      return std::all_of(s.blocks.begin(), s.blocks.end(),
                         [&](const Block& inner) { return add(inner, step); });
    });
  }

  // What a step has of memories that change places is all that may be written.
  bool add_exchanged(const Statement& s, Value step) {
    if (s.regions.size() != s.exchanged.size()) return false;
    for (std::size_t i = 0; i < s.regions.size(); ++i) {
      const Statement::Region& region = s.regions[i];
      std::vector<Write::Digit> digits;
      for (std::size_t axis = 0; axis < region.shape.size(); ++axis)
        if (region.shape[axis] > 1) digits.push_back({region.strides[axis], region.shape[axis]});
      for (const int memory : s.exchanged[i]) {
        Place place = region.place;
        place.memory = memory;
        if (!add(place, step, digits)) return false;
      }
    }
    return true;
  }

  bool add(const Place& place, Value step, std::vector<Write::Digit> digits) {
    if (std::find(own_.begin(), own_.end(), place.memory) != own_.end()) return true;
    Write write{place.offset, 0, std::move(digits), {}};
    for (const Place::Term& term : place.terms) {
      if (term.index == step) {
        write.by_step += term.stride;
      } else if (const auto counter = steps_.find(term.index); counter != steps_.end()) {
        if (counter->second > 1) write.digits.push_back({term.stride, counter->second});
      } else if (std::find(defined_.begin(), defined_.end(), term.index) == defined_.end()) {
        write.outside.emplace_back(term.index, term.stride);
      } else if (const std::optional<Range> range = program_.range(term.index)) {
        write.offset += range->low * term.stride;
        if (range->high > range->low)
          write.digits.push_back({term.stride, range->high - range->low + 1});
      } else {
        return false;
      }
    }
    std::sort(write.digits.begin(), write.digits.end());
    std::sort(write.outside.begin(), write.outside.end());
    by_memory_[place.memory].push_back(std::move(write));
    return true;
  }

  static bool are_apart(const std::vector<Write>& writes, std::int64_t steps) {
    const Write& first = writes[0];
    const bool are_alike = std::all_of(writes.begin(), writes.end(), [&](const Write& write) {
      return write.by_step == first.by_step && write.outside == first.outside;
    });
    return first.by_step != 0 && are_alike &&
           (are_blocks(writes) || are_parts(writes, steps) || are_numerals(writes, steps));
  }

  // Whether all of a step lies between two steps.
  static bool are_blocks(const std::vector<Write>& writes) {
    std::array<std::int64_t, 2> reached = writes[0].range();
    for (const Write& write : writes) {
      const auto [low, high] = write.range();
      reached = {std::min(reached[0], low), std::max(reached[1], high)};
    }
    return reached[1] - reached[0] < std::abs(writes[0].by_step);
  }

  // Whether elements are outer * (stride * steps) + step * stride + inner, where inner reaches less
  // than the stride: see belongs_to_step.
  static bool are_parts(const std::vector<Write>& writes, std::int64_t steps) {
    const std::int64_t stride = std::abs(writes[0].by_step), row = stride * steps;
    std::int64_t least = 0, most = 0;
    for (const Write& write : writes) {
      std::int64_t low = (write.offset - writes[0].offset) % row;
      if (2 * std::abs(low) > row) low += low < 0 ? row : -row;
      std::int64_t high = low;
      for (const Write::Digit& digit : write.digits) {
        if (digit.stride % row == 0) continue;
        (digit.stride > 0 ? high : low) += digit.stride * (digit.steps - 1);
      }
      least = std::min(least, low), most = std::max(most, high);
    }
    return most - least < stride;
  }

  // Whether elements are numerals whose digits say the step and the counters: each stride exceeds
  // what those below it reach together. The writes differ in their offsets alone, which are one
  // more digit: between the others where they are evenly apart, else below them or above them.
  static bool are_numerals(const std::vector<Write>& writes, std::int64_t steps) {
    std::vector<Write::Digit> digits{{std::abs(writes[0].by_step), steps}};
    for (const Write::Digit& digit : writes[0].digits)
      digits.push_back({std::abs(digit.stride), digit.steps});
    std::vector<std::int64_t> offsets;
    for (const Write& write : writes) {
      if (write.digits != writes[0].digits) return false;
      offsets.push_back(write.offset);
    }
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    if (const std::optional<Write::Digit> offset = even(offsets)) {
      std::vector<Write::Digit> with_offset = digits;
      with_offset.push_back(*offset);
      if (reach(std::move(with_offset), 0)) return true;
    }
    const std::optional<std::int64_t> all = reach(digits, 0);
    if (!all) return false;
    std::int64_t lowest = 0;
    std::vector<std::int64_t> distances;
    for (const std::int64_t a : offsets)
      for (const std::int64_t b : offsets) {
        distances.push_back(std::abs(a - b));
        if (distances.back() <= *all) lowest = std::max(lowest, distances.back());
      }
    const std::optional<std::int64_t> with_lowest = reach(digits, lowest);
    return with_lowest && std::none_of(distances.begin(), distances.end(), [&](std::int64_t apart) {
             return apart > *all && apart <= *with_lowest;
           });
  }
  // The digit that sorted offsets are, where all are equally far from the next one.
  static std::optional<Write::Digit> even(const std::vector<std::int64_t>& offsets) {
    if (offsets.size() < 2) return {};
    const std::int64_t distance = offsets[1] - offsets[0];
    for (std::size_t i = 2; i < offsets.size(); ++i)
      if (offsets[i] - offsets[i - 1] != distance) return {};
    return Write::Digit{distance, std::int64_t(offsets.size())};
  }
  // What digits reach together, on top of what something below them reaches, or nothing where they
  // overlap.
  static std::optional<std::int64_t> reach(std::vector<Write::Digit> digits, std::int64_t below) {
    std::sort(digits.begin(), digits.end());
    for (const Write::Digit& digit : digits) {
      if (digit.stride <= below) return {};
      below += digit.stride * (digit.steps - 1);
    }
    return below;
  }

  const LoopProgram& program_;
  std::vector<Value> defined_;
  std::vector<int> own_;                 // memories that steps have for themselves
  std::map<Value, std::int64_t> steps_;  // by counter
  std::map<int, std::vector<Write>> by_memory_;
};

// --- Sharing -------------------------------------------------------------------------------------

class Sharer {
 public:
  explicit Sharer(const LoopProgram& program) : program_(program), work_(program) {}

  void run(Block& block) const {
    for (Statement& s : block) {
      if (s.kind != Kind::repeat || !share(s)) run_within(s);
    }
  }

 private:
  // What a step has for itself is the memory of one thread.
  void run_within(Statement& s) const {
    if (s.kind == Kind::combine || s.is_parallel || !s.own.empty()) return;
    for (Block& block : s.blocks) run(block);
  }

  bool share(Statement& loop) const {
    // What a thread should take at least, and what it takes where threads wait for work already:
    // see parallel_for and grain_while_spinning.
    constexpr double usual = 15000, least = 4000;
    constexpr std::int64_t few_steps = 16;
    const double step = std::max(work_.of_step(loop), 0.01);
    if (double(loop.steps) * step < 2 * least || !may_share(program_, loop)) return false;
    if (loop.steps < few_steps) {    // rather the loops in it, which many threads can share
      constexpr double most = 0.75;  // of what a step does
      run_within(loop);
      if (shared_work(loop.blocks[0]) > most * step) return true;
      share_none(loop.blocks[0]);
    }
    if (loop.steps < 2) return false;
    loop.grain = std::max<std::int64_t>(1, std::int64_t(usual / step));
    return true;
  }

  double shared_work(const Block& block) const {
    double work = 0;
    for (const Statement& s : block) {
      double inner = 0;
      for (const Block& each : s.blocks) inner += shared_work(each);
      work += s.grain > 0 ? work_.of(s) : inner * double(std::max<std::int64_t>(s.steps, 1));
    }
    return work;
  }
  static void share_none(Block& block) {
    for (Statement& s : block) {
      s.grain = 0;
      for (Block& inner : s.blocks) share_none(inner);
    }
  }

  const LoopProgram& program_;
  const Work work_;
};

}  // namespace

bool may_share(const LoopProgram& program, const Statement& loop) {
  if (!(loop.is_parallel || loop.is_apart) || !loop.carries.empty() || !loop.exchanged.empty())
    return false;
  const std::optional<Writes> writes = Writes::of(program, loop);
  return writes && writes->are_apart(loop.steps);
}

bool writes_anywhere(const LoopProgram& program, const Statement& loop) {
  bool anywhere = false;
  for_each_statement(loop.blocks[0], [&](const Statement& s) {
    if (s.kind != Kind::compute || program.range(s.value)) return;
    for_each_statement(loop.blocks[0], [&](const Statement& other) {
      for_each_place(other, [&](const Place& place, bool is_write) {
        if (!is_write) return;
        for (const Place::Term& term : place.terms) anywhere = anywhere || term.index == s.value;
      });
    });
  });
  return anywhere;
}

int num_shared(const Block& block) {
  int count = 0;
  for (const Statement& s : block) {
    count += s.grain > 0;
    for (const Block& inner : s.blocks) count += num_shared(inner);
  }
  return count;
}

void share(LoopProgram& program) { Sharer(program).run(program.body); }

}  // namespace plait::codegen
