// Where the bytes that loops read and write come from. A loop finds in a cache what it went through
// before, if all that it goes through in between fits there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "codegen/machine.h"
#include "codegen/program.h"

namespace plait::codegen {

// Steps of a loop of unknown length, where a number is needed.
inline constexpr double usual_steps = 16;

class Traffic {
 public:
  // The program, or some of its statements as if they were all.
  Traffic(const LoopProgram& program, const Block& block, const Machine& machine);

  // Nanoseconds, each time that it runs, for the bytes of a load, store, copy or call that no first
  // cache holds.
  double time_of(const Statement& access) const;
  // Of a load whose address is not foreseen, nanoseconds until its number is there.
  double latency_of(int memory) const;

  // An index as a sum of counters and of what is computed or loaded.
  loops::Index form_of(Value value) const;
  loops::Index form_of(const Place& place) const;
  // The loop that a number of a form counts the steps of, or nullptr; and by how much in each.
  const Statement* counted_by(Value value) const;
  std::int64_t growth_of(Value value) const;
  // Whether the address of an access is none that a loop counts.
  bool is_computed(const Place& place) const;

 private:
  struct Loop {
    const Statement* statement;
    double steps;
    std::vector<int> path;  // from the outermost loop to this one
    // That it goes through, and that a step of it does.
    double bytes = 0, step_bytes = 0;
  };
  struct Dim {
    double steps;
    std::int64_t stride;
  };
  struct Access {
    const Statement* statement;
    int memory, loop;
    bool is_write;
    std::vector<Dim> dims;  // the loops around it, then the dims of what it moves
    int num_computed = 0;   // of these loops, from the outermost on: it may be anywhere
    int lanes_of = -1;      // of these loops, the one whose steps are lanes around inner loops
  };

  void visit(const Block& block, int loop);
  void visit_loop(const Statement& s, int loop);
  void define(Value value, int loop) { loops_of_[std::size_t(value)] = loop; }
  void find_form(const Statement& s);
  std::int64_t growth_of(const Statement::Carry& carry, const Block& block) const;
  void add_access(const Statement& s, const Place& place, int loop, bool is_write,
                  const std::vector<Dim>& moved);
  void add_call(const Statement& s, int loop);
  // The loops around what is in a loop, from the outermost on.
  std::span<const int> around(int loop) const {
    return loop < 0 ? std::span<const int>() : loops_[std::size_t(loop)].path;
  }
  double bytes_of(int memory) const;
  // held: how much of a cache they take, where lines of the same sets displace each other.
  enum class Bytes { moved, held };
  double bytes_of(const Access& access, std::size_t first, Bytes which = Bytes::moved) const;
  double lanes_of(const Access& access) const;
  void find_bytes_of_loops();
  bool is_repeated(std::size_t access) const;
  double time_of(const Access& access) const;
  bool is_scattered(const Access& access) const;
  double bytes_beyond(const Access& access, double cache) const;

  const LoopProgram& program_;
  const Machine& machine_;
  std::vector<Loop> loops_;
  std::vector<int> loops_of_;  // by value: in which loop it is defined; -1 outside
  std::unordered_map<Value, loops::Index> forms_;
  std::unordered_map<Value, std::int64_t> literals_;
  struct Counter {
    int loop;
    std::int64_t growth;
  };
  std::unordered_map<Value, Counter> counters_;
  std::vector<Access> accesses_;
  std::unordered_map<const Statement*, double> times_;
  double bytes_ = 0;  // of the whole
};

}  // namespace plait::codegen
