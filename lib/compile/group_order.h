// Groups of equations with acyclic dependences, which may merge as long as they remain acyclic. See
// group_order.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plait::compile_passes {

class GroupOrder {
 public:
  // Adds a group, last in order, that reads from these groups.
  int add(std::span<const int> producers);
  // The group that a group was merged into, or itself.
  int find(int group) const;
  // Merges a group with one that reads from it, under the producer's number. Returns false, and
  // changes nothing, if the consumer also depends on the producer through a third group, or if the
  // search for one takes too long.
  bool merge(int producer, int consumer) { return merge(producer, consumer, true); }
  // Merges two independent groups. Returns the one whose number remains, or -1 if one depends on
  // the other or the search takes too long.
  int merge_apart(int a, int b);
  // The groups that it reads from, after merging, without itself.
  std::vector<int> producers(int group) const;
  bool is_merged(int group) const { return nodes_[group].parent >= 0; }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::vector<int> producers, consumers;  // may contain merged groups
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
