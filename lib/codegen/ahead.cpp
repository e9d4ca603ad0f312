// Loops whose steps go through rows of large memory several times ask for the rows of the next
// step.
//
// NOTE: [rows ahead] A pass over a row that computes leaves the memory idle, and the first pass of
// the next row waits for it. So later passes ask for the next row, each for some of the memories,
// those with more work for more: a third of a softmax's time. What is ahead must stay in the
// second-level cache, with the row.
//
// It is the last pass: what it adds is advice to those who write the loops down.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/ahead.h"

#include <algorithm>
#include <map>

#include "codegen/effects.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t fewest_bytes = 1 << 20;  // of memory that no nearer cache holds
constexpr std::int64_t most_ahead = 1 << 19;    // bytes of two steps
constexpr std::int64_t fewest_steps = 8, fewest_elements = 16;  // of a row

class Asker {
 public:
  explicit Asker(LoopProgram& program) : program_(program), work_(program) {}

  void run(Block& block) {
    for (Statement& s : block) {
      if (s.kind != Kind::repeat || s.is_parallel) continue;
      if (s.carries.empty() && s.exchanged.empty() && s.steps >= fewest_steps &&
          goes_through_rows(s))
        ask_in(s);
      for (Block& inner : s.blocks) run(inner);
    }
  }

 private:
  std::int64_t bytes_of(int memory, std::int64_t elements) const {
    return elements * size_of(program_.memories[std::size_t(memory)].dtype);
  }

  // A memory of which each step goes through a row of its own.
  struct Row {
    std::int64_t stride = 0;
    bool is_known = true;
  };

  void ask_in(Statement& loop) {
    Block& block = loop.blocks[0];
    find_passes(block);
    const std::map<int, Row> rows = rows_of(loop);
    std::int64_t bytes = 0;
    for (const int memory : loop.own)
      bytes += bytes_of(memory, program_.memories[std::size_t(memory)].size);
    for (const auto& [memory, row] : rows) bytes += 2 * bytes_of(memory, row.stride);
    if (bytes > most_ahead) return;
    std::map<int, double> work;  // by pass, but the first one
    for (std::size_t i = 0; i < block.size(); ++i)
      if (passes_[i] > 0 && !block[i].blocks.empty()) work[passes_[i]] += computing(block[i]);
    if (work.empty()) return;
    std::map<int, int> shares;  // by pass: of the memories that it asks for
    const auto weight = [&](const std::pair<const int, double>& pass) {
      return pass.second / (1 + shares[pass.first]);
    };
    for (const auto& [memory, row] : rows) {
      if (!row.is_known) continue;
      const auto busiest =
          std::max_element(work.begin(), work.end(),
                           [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
      ++shares[busiest->first];
      std::vector<Place> asked;
      for (std::size_t i = 0; i < block.size(); ++i)
        if (passes_[i] == busiest->first) ask(block[i], loop.value, memory, row.stride, asked);
    }
  }
  // What it computes, while memory is idle.
  double computing(const Statement& s) const {
    if (s.kind == Kind::compute) return work_.of(s);
    double sum = 0;
    for (const Block& inner : s.blocks)
      for (const Statement& each : inner) sum += computing(each);
    return sum * double(std::max<std::int64_t>(s.steps, 1));
  }
  // Of the row of the next step what lies where a pass is in its own.
  static void ask(Statement& pass, Value step, int memory, std::int64_t stride,
                  std::vector<Place>& asked) {
    if (!pass.is_parallel && pass.kind != Kind::combine) {
      for (Block& block : pass.blocks)
        for (Statement& inner : block) ask(inner, step, memory, stride, asked);
      return;
    }
    const Value counter = pass.is_parallel ? pass.value : pass.counter;
    for (const Statement& s : pass.blocks[0]) {
      if (stride_of(s.place, counter) != 1) continue;
      Place place{memory, s.place.offset + stride};
      bool is_known = true;
      for (const Place::Term& term : s.place.terms) {
        if (term.index == counter || term.index == step) continue;
        is_known = is_known && !is_defined_in(pass, term.index);
        place.terms.push_back(term);
      }
      if (!is_known) continue;
      place.terms.push_back({step, stride});
      if (std::find(asked.begin(), asked.end(), place) != asked.end()) return;
      asked.push_back(place);
      pass.soon.push_back(std::move(place));
      return;
    }
  }
  static bool is_defined_in(const Statement& pass, Value value) {
    return std::any_of(pass.blocks[0].begin(), pass.blocks[0].end(),
                       [&](const Statement& s) { return s.value == value; });
  }

  std::map<int, Row> rows_of(const Statement& loop) const {
    std::map<int, Row> rows;
    for_each_statement(loop.blocks[0], [&](const Statement& s) {
      const std::int64_t stride = stride_of(s.place, loop.value);
      if (s.kind != Kind::load || stride <= fewest_elements || !is_large(s.place.memory)) return;
      Row& row = rows[s.place.memory];
      row.is_known = row.is_known && (row.stride == 0 || row.stride == stride);
      row.stride = stride;
    });
    return rows;
  }
  bool is_large(int memory) const {
    const Memory& each = program_.memories[std::size_t(memory)];
    return bytes_of(memory, each.size) >= fewest_bytes;
  }

  // Which pass each statement of a step belongs to: it is behind those that make what it needs.
  void find_passes(const Block& block) {
    passes_.assign(block.size(), 0);
    std::map<Value, int> ready;  // by value: the first pass that may use it
    std::map<int, int> ready_memory;
    for (std::size_t i = 0; i < block.size(); ++i) {
      Effects effects;
      effects.add(block[i]);
      int pass = 0;
      for (const Value value : effects.used)
        if (const auto found = ready.find(value); found != ready.end())
          pass = std::max(pass, found->second);
      for (const int memory : effects.reads)
        if (const auto found = ready_memory.find(memory); found != ready_memory.end())
          pass = std::max(pass, found->second);
      passes_[i] = pass;
      const int next = block[i].blocks.empty() ? pass : pass + 1;
      if (block[i].value >= 0) ready[block[i].value] = next;
      for (const int memory : effects.writes) {
        int& of_memory = ready_memory[memory];
        of_memory = std::max(of_memory, next);
      }
    }
  }

  LoopProgram& program_;
  const Work work_;
  std::vector<int> passes_;  // by statement of the step in hand
};

}  // namespace

void ask_ahead(LoopProgram& program) { Asker(program).run(program.body); }

}  // namespace plait::codegen
