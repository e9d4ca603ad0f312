// Groups of equations that depend on each other without cycles, and that may merge while they stay
// so. See group_order.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plait::compile_passes {

class GroupOrder {
 public:
  // A new group, last in order, that reads what these groups make.
  int add(std::span<const int> producers);
  // The group that a group was merged into, or itself.
  int find(int group) const;
  // Merges a group with one that reads from it; the producer's name stays. False, and nothing
  // changes, when one depends on the other through a third, or when the search for such a third
  // takes too long.
  bool merge(int producer, int consumer) { return merge(producer, consumer, true); }
  // Merges two groups of which neither depends on the other; returns the one whose name stays, or
  // -1 where one does, or the search takes too long.
  int merge_apart(int a, int b);
  // Groups it reads from, after merging, without itself.
  std::vector<int> producers(int group) const;
  bool is_merged(int group) const { return nodes_[group].parent >= 0; }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::vector<int> producers, consumers;  // may name merged groups
    int parent = -1;
    int previous = -1, next = -1;  // in order
    std::int64_t label = 0;        // grows along the order
  };
  enum class Search { found, clear, too_long };
  bool merge(int producer, int consumer, bool is_fed);
  Search reach(int from, int to, bool forward, bool is_fed, std::vector<int>& between) const;
  void unlink(int group);
  void insert_after(int group, int place);  // place -1: first
  void renumber();

  std::vector<Node> nodes_;
  int first_ = -1, last_ = -1;
};

}  // namespace plait::compile_passes
