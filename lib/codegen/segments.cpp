// See segments.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/segments.h"

#include <algorithm>

#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// Of a chain in a segment, and of all its statements, in instructions: a processor looks a few
// hundred of them ahead, which should take it to the next vector before the chain of this one ends.
constexpr double longest_chain = 60, most_instructions = 300, most_recomputed = 8;
constexpr std::int64_t line = 64, fewest_lines = 8, most_lines = 128;
constexpr std::int64_t bytes_of_block = 1 << 14;  // half of the first-level cache

double instructions_of(const Statement& s) {
  return s.kind == Kind::compute ? codegen::instructions_of(*s.primitive) : 1;
}

// The statements of a loop by segment.
struct Segments {
  std::vector<std::vector<std::size_t>> statements;  // may hold one that others hold as well
  struct Crossing {
    Value value;
    int slot;
    std::size_t from;  // segment
  };
  std::vector<Crossing> crossings;
  std::vector<DType> slots;
  std::int64_t bytes = 0;  // of all slots, for one step
};

class Cutter {
 public:
  Cutter(const LoopProgram& program, const Statement& loop)
      : program_(program), block_(loop.blocks[0]) {
    for (std::size_t i = 0; i < block_.size(); ++i)
      if (block_[i].value >= 0) defined_by_[block_[i].value] = i;
    for (const Statement& s : block_) {
      if (s.kind == Kind::store) written_.push_back(s.place.memory);
      if (s.place.memory >= 0) ++accesses_[s.place.memory];
    }
  }

  // Nothing where one segment is all.
  std::optional<Segments> run() {
    cut();
    if (num_segments_ == 1) return {};
    find_recomputed();
    Segments segments;
    for (std::size_t s = 0; s < num_segments_; ++s) {
      std::vector<std::size_t> statements;
      std::vector<bool> is_there(block_.size(), false);
      for (std::size_t i = 0; i < block_.size(); ++i)
        if (segment_[i] == s && !is_recomputed_[i]) add(i, statements, is_there);
      if (!statements.empty()) segments.statements.push_back(std::move(statements));
    }
    if (segments.statements.size() == 1) return {};
    cross(segments);
    return segments;
  }

 private:
  template <class F>
  void for_each_input(std::size_t i, const F& f) const {
    for_each_use(block_[i], [&](Value value) {
      if (const auto found = defined_by_.find(value); found != defined_by_.end()) f(found->second);
    });
  }

  // What a store keeps, if it may as well be kept at once: nothing else goes to its memory.
  std::optional<std::size_t> stored_by(std::size_t i) const {
    const Statement& s = block_[i];
    if (s.kind != Kind::store || accesses_.at(s.place.memory) > 1) return {};
    const auto found = defined_by_.find(s.operands[0]);
    return found == defined_by_.end() ? std::nullopt : std::optional(found->second);
  }

  // In order, a segment as long as it may be.
  void cut() {
    segment_.assign(block_.size(), 0);
    std::vector<double> chain(block_.size(), 0);  // up to a statement, in its segment
    double sum = 0;
    for (std::size_t i = 0; i < block_.size(); ++i) {
      if (const std::optional<std::size_t> stored = stored_by(i)) {
        segment_[i] = segment_[*stored];
        continue;
      }
      const double mine = instructions_of(block_[i]);
      const auto chain_to = [&] {
        double longest = 0;
        for_each_input(i, [&](std::size_t input) {
          if (segment_[input] + 1 == num_segments_) longest = std::max(longest, chain[input]);
        });
        return longest + mine;
      };
      if (sum > 0 && (sum + mine > most_instructions || chain_to() > longest_chain)) {
        ++num_segments_;
        sum = 0;
      }
      sum += mine;
      segment_[i] = num_segments_ - 1;
      chain[i] = chain_to();
    }
  }

  // Loads of what the loop does not write, and light computations from those and from at most one
  // value that crosses cuts anyway.
  void find_recomputed() {
    std::vector<bool> crosses(block_.size(), false);
    for (std::size_t i = 0; i < block_.size(); ++i)
      for_each_input(i, [&](std::size_t input) {
        crosses[input] = crosses[input] || segment_[input] != segment_[i];
      });
    constexpr std::size_t none = std::size_t(-1);
    std::vector<std::size_t> kept(block_.size(), none);  // what has to be there for it
    std::vector<double> instructions(block_.size(), 0);
    is_recomputed_.assign(block_.size(), false);
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const Statement& s = block_[i];
      bool is_short = s.kind == Kind::compute
                          ? is_light(*s.primitive)
                          : s.kind == Kind::load && std::find(written_.begin(), written_.end(),
                                                              s.place.memory) == written_.end();
      instructions[i] = instructions_of(s);
      for_each_input(i, [&](std::size_t input) {
        const bool is_kept = !is_recomputed_[input];
        const std::size_t needed = is_kept ? input : kept[input];
        is_short = is_short && (!is_kept || crosses[input]) &&
                   (kept[i] == none || needed == none || kept[i] == needed);
        if (needed != none) kept[i] = needed;
        if (!is_kept) instructions[i] += instructions[input];
      });
      is_recomputed_[i] = is_short && instructions[i] <= most_recomputed;
    }
  }

  void add(std::size_t i, std::vector<std::size_t>& statements, std::vector<bool>& is_there) const {
    for_each_input(i, [&](std::size_t input) {
      if (is_recomputed_[input] && !is_there[input]) add(input, statements, is_there);
    });
    statements.push_back(i);
    is_there[i] = true;
  }

  // Memory for what a later segment uses, once more when its last one has run.
  void cross(Segments& segments) const {
    const std::size_t none = std::size_t(-1);
    std::vector<std::size_t> from(block_.size(), none), last(block_.size(), none);
    for (std::size_t s = 0; s < segments.statements.size(); ++s) {
      for (const std::size_t i : segments.statements[s]) {
        if (!is_recomputed_[i]) from[i] = s;
        for_each_input(i, [&](std::size_t input) {
          if (!is_recomputed_[input]) last[input] = s;
        });
      }
    }
    std::vector<std::size_t> free_from;  // by slot
    for (std::size_t i = 0; i < block_.size(); ++i) {
      if (from[i] == none || last[i] == none || last[i] <= from[i]) continue;
      const DType dtype = program_.dtypes[std::size_t(block_[i].value)];
      std::size_t slot = 0;
      while (slot < free_from.size() &&
             (free_from[slot] > from[i] || segments.slots[slot] != dtype))
        ++slot;
      if (slot == free_from.size()) {
        free_from.push_back(0);
        segments.slots.push_back(dtype);
        segments.bytes += size_of(dtype);
      }
      // Written while its last reader's segment runs would be too early: vectors ahead are unread.
      free_from[slot] = last[i] + 1;
      segments.crossings.push_back({block_[i].value, int(slot), from[i]});
    }
  }

  const LoopProgram& program_;
  const Block& block_;
  std::unordered_map<Value, std::size_t> defined_by_;
  std::unordered_map<int, int> accesses_;  // by memory
  std::vector<int> written_;               // memories
  std::vector<std::size_t> segment_;       // by statement
  std::size_t num_segments_ = 1;
  std::vector<bool> is_recomputed_;  // by statement: in each segment that uses it
};

// Blocks of a loop, and loops in them.
class Writer {
 public:
  Writer(LoopProgram& program, const Statement& loop, const Segments& segments)
      : program_(program), loop_(loop), segments_(segments) {}

  Block write() {
    std::int64_t widest = 1;
    for (const DType dtype : segments_.slots) widest = std::max(widest, size_of(dtype));
    const std::int64_t together = line / widest;
    const std::int64_t blocks_wanted = 8;  // for several threads
    const std::int64_t most =
        std::clamp(std::min(bytes_of_block / std::max<std::int64_t>(1, segments_.bytes * together),
                            loop_.steps / (together * blocks_wanted)),
                   fewest_lines, most_lines);
    block_ = std::min(together * size_of_blocks(loop_.steps / together, most), loop_.steps);
    for (const DType dtype : segments_.slots) {
      memories_.push_back(int(program_.memories.size()));
      program_.memories.push_back({Memory::Space::frame, 0, dtype, block_});
    }
    const std::int64_t whole = loop_.steps / block_, rest = loop_.steps % block_;
    Block blocks;
    blocks.push_back(write_blocks(0, whole, block_));
    if (rest > 0) blocks.push_back(write_blocks(whole * block_, 1, rest));
    return blocks;
  }

 private:
  // At most as many lines, such that they leave the least behind the last whole block.
  static std::int64_t size_of_blocks(std::int64_t lines, std::int64_t most) {
    std::int64_t best = most;
    for (std::int64_t size = most; size >= std::max(fewest_lines, most / 2); --size)
      if (lines % size < lines % best) best = size;
    return best;
  }

  Statement write_blocks(std::int64_t first, std::int64_t count, std::int64_t steps) {
    Statement blocks = counting(program_, count, loop_.source);
    blocks.is_apart = true;
    blocks.own = memories_;
    for (std::size_t s = 0; s < segments_.statements.size(); ++s)
      blocks.blocks[0].push_back(write_segment(s, first, blocks.value, steps));
    return blocks;
  }

  Statement write_segment(std::size_t segment, std::int64_t first, Value block,
                          std::int64_t steps) {
    Statement loop = counting(program_, steps, loop_.source);
    loop.is_parallel = true;
    Block& into = loop.blocks[0];
    Names names;
    const loops::Index here{first, {{block, block_}, {loop.value, 1}}};
    for (const Segments::Crossing& crossing : segments_.crossings)
      if (crossing.from < segment && is_used(segment, crossing.value))
        into.push_back(load(crossing, loop.value, names));
    for (const std::size_t i : segments_.statements[segment]) {
      Statement s = loop_.blocks[0][i];
      // The index as a number, where it is one.
      if (std::find(s.operands.begin(), s.operands.end(), loop_.value) != s.operands.end() &&
          !names.count(loop_.value))
        names[loop_.value] = number(program_, here, into);
      const std::int64_t stride = stride_of(s.place, loop_.value);
      std::erase_if(s.place.terms,
                    [&](const Place::Term& term) { return term.index == loop_.value; });
      rename(s, names);
      loops::add_index(s.place, here, stride);
      if (s.value >= 0) {
        const Value mine = define(program_, program_.dtypes[std::size_t(s.value)]);
        if (const std::optional<Range> range = program_.range(s.value)) program_.know(mine, *range);
        names[s.value] = mine;
        s.value = mine;
      }
      const Value defined = loop_.blocks[0][i].value;
      into.push_back(std::move(s));
      for (const Segments::Crossing& crossing : segments_.crossings)
        if (defined >= 0 && crossing.value == defined && crossing.from == segment)
          into.push_back(store(crossing, names.at(defined), loop.value));
    }
    return loop;
  }

  bool is_used(std::size_t segment, Value value) const {
    return std::any_of(segments_.statements[segment].begin(), segments_.statements[segment].end(),
                       [&](std::size_t i) {
                         bool uses = false;
                         for_each_use(loop_.blocks[0][i],
                                      [&](Value used) { uses = uses || used == value; });
                         return uses;
                       });
  }

  Place place_of(const Segments::Crossing& crossing, Value step) const {
    Place place{memories_[std::size_t(crossing.slot)], 0};
    loops::add_index(place, {0, {{step, 1}}}, 1);
    return place;
  }
  Statement load(const Segments::Crossing& crossing, Value step, Names& names) {
    Statement s;
    s.kind = Kind::load;
    s.place = place_of(crossing, step);
    s.value = define(program_, program_.dtypes[std::size_t(crossing.value)]);
    if (const std::optional<Range> range = program_.range(crossing.value))
      program_.know(s.value, *range);
    names[crossing.value] = s.value;
    return s;
  }
  Statement store(const Segments::Crossing& crossing, Value value, Value step) const {
    Statement s;
    s.kind = Kind::store;
    s.place = place_of(crossing, step);
    s.operands = {value};
    return s;
  }

  LoopProgram& program_;
  const Statement& loop_;
  const Segments& segments_;
  std::int64_t block_ = 0;     // steps
  std::vector<int> memories_;  // by slot
};

void run(LoopProgram& program, Block& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    const Statement& s = block[i];
    if (!runs_in_any_order(s) || !s.is_parallel ||
        !std::all_of(s.blocks[0].begin(), s.blocks[0].end(), is_straight)) {
      for (Block& inner : block[i].blocks) run(program, inner);
      continue;
    }
    std::int64_t widest = 1;
    for (const Statement& each : s.blocks[0])
      if (each.value >= 0)
        widest = std::max(widest, size_of(program.dtypes[std::size_t(each.value)]));
    if (s.steps * widest < 2 * line) continue;  // one step waits for no other one
    const std::optional<Segments> segments = Cutter(program, s).run();
    if (!segments) continue;
    const Statement loop = s;
    Block pieces = Writer(program, loop, *segments).write();
    block.erase(block.begin() + std::ptrdiff_t(i));
    const std::size_t count = pieces.size();
    block.insert(block.begin() + std::ptrdiff_t(i), std::make_move_iterator(pieces.begin()),
                 std::make_move_iterator(pieces.end()));
    i += count - 1;
  }
}

}  // namespace

void cut_chains(LoopProgram& program) { run(program, program.body); }

}  // namespace plait::codegen
