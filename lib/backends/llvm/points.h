// Values of a group as functions of a place: what a loop computes of an element, whatever
// movement, broadcasting and short sums lie between it and memory.
//
// pull says of an element which others it is made of, down to loads. Equal elements are one node,
// and a node is computed in the outermost loop that has what it depends on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "primitives.h"

namespace plait::llvm {

// Where an element lies along an axis: constant + the sum of counters times steps, + a computed
// one.
struct Index {
  std::vector<std::int64_t> steps;  // by counter
  std::int64_t constant = 0;
  int computed = -1;       // a node of int64
  std::int64_t scale = 1;  // of that
  friend auto operator<=>(const Index&, const Index&) = default;
  friend bool operator==(const Index&, const Index&) = default;
  Index times(std::int64_t factor) const;
  Index plus(std::int64_t more) const;
};
using Indices = std::vector<Index>;  // by axis

// Whether an equation is a function of places; reductions are where they are so short that their
// elements are written out.
bool is_pointwise(const JaxprData& program, const Equation& equation);
bool is_written_out(const JaxprData& program, const Equation& reduction);

class Points {
 public:
  // What the generated loops say of the place where they are.
  struct Place {
    std::vector<Value> counters;  // of the lanes' counter: that of the first lane
    int count = 0;                // lanes that exist
  };
  // levels: by counter, the loop that counts it: 0 is none, num_levels the vectors' loop, whose
  // counter is lane_counter. strides: by input, in elements.
  Points(const JaxprData& data, std::vector<int> levels, int num_levels, int lane_counter,
         std::vector<Sizes64> strides);

  Index counter(int which) const;
  Index fixed(std::int64_t constant) const;
  // The node of an element; mask is a node that says of lanes whether memory may be read, or -1.
  int pull(const Atom& atom, const Indices& place, int mask = -1);

  void set_memory(std::vector<Value> memory) { memory_ = std::move(memory); }
  // Emits the nodes of a loop, in order. values has one register for each node.
  void emit(int level, const Place& place, std::vector<Register>& values) const;
  int size() const { return int(nodes_.size()); }
  double weight(int level) const;  // roughly the instructions of a loop's nodes

 private:
  struct Emission {
    const Place& place;
    const std::vector<Register>& values;
  };
  using Emit = std::function<Register(const Emission&)>;
  struct Node {
    int level;
    double weight;
    Emit emit;
  };

  int add(int level, double weight, Emit emit);
  int level_of(const Index& index) const;
  int level_of(int node) const { return node < 0 ? 0 : nodes_[node].level; }
  bool varies(int node) const { return level_of(node) == num_levels_; }

  int pull_equation(const Equation& equation, const Indices& place, int mask);
  int pull_elementwise(const Equation& equation, const Indices& place, int mask);
  int pull_load(int var, const Indices& place, int mask);
  int pull_iota(const Equation& equation, const Indices& place);
  int pull_pad(const Equation& equation, const Indices& place, int mask);
  int pull_concatenate(const Equation& equation, const Indices& place, int mask);
  int pull_short_reduction(const Equation& equation, const Indices& place, int mask);
  int pull_random_bits(const Equation& equation, const Indices& place, int mask);
  int pull_scatter(const Equation& equation, const Indices& place, int mask);
  int pull_gather(const Equation& equation, const Indices& place, int mask);
  int pull_dynamic_slice(const Equation& equation, const Indices& place, int mask);

  int within(const Index& index, std::int64_t begin, std::int64_t end);
  int both(int a, int b);
  int choose(int mask, int yes, int no);
  int clamped(int node, std::int64_t last);
  int to_index(int node, DType dtype);
  Index moved(const Index& index, int node);  // by a computed one
  Index sum(const Index& a, const Index& b);

  Value scalar_of(const Index& index, const Place& place) const;  // of the first lane; no computed
  Value lanes_of(const Index& index, const Emission& emission) const;        // int64
  Value short_lanes_of(const Index& index, const Emission& emission) const;  // int32
  // computed: nodes of the offset, and what they are multiplied by.
  Register load(int var, const Index& offset,
                const std::vector<std::pair<int, std::int64_t>>& computed, int mask,
                const Emission& emission) const;

  const JaxprData& data_;
  const std::vector<int> levels_;
  const int num_levels_, lane_;
  const std::vector<Sizes64> strides_;
  std::vector<const Equation*> definition_;  // by var
  std::vector<Node> nodes_;
  std::map<std::tuple<int, Indices, int>, int> pulled_;
  std::map<std::tuple<Index, std::int64_t, std::int64_t>, int> ranges_;
  std::map<std::pair<int, int>, int> conjunctions_;
  std::vector<Value> memory_;
};

}  // namespace plait::llvm
