// A topological order of groups, maintained while they merge (after Pearce and Kelly, A dynamic
// topological sort algorithm for directed acyclic graphs, 2007).
//
// NOTE: [merging groups] Let B read from A. Merging them closes a cycle if and only if B also
// depends on A through a third group, which then lies between them in the order. Two searches can
// rule that out. Forward: if what depends on A does not reach B, it can be moved after B, where A
// joins B. Backward: if what B depends on does not reach A, it can be moved before A, where B joins
// A. One suffices, and one is usually short: weights have few consumers and are made early,
// activations have few producers and are made just before.
// SPDX-License-Identifier: Apache-2.0
#include "group_order.h"

#include <algorithm>

namespace plait::compile_passes {
namespace {

constexpr std::int64_t gap = std::int64_t(1) << 20;
constexpr std::size_t search_limit = 128;  // groups

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

int GroupOrder::add(std::span<const int> producers) {
  const int group = int(nodes_.size());
  Node node;
  node.label = last_ < 0 ? 0 : nodes_[last_].label + gap;
  node.previous = last_;
  for (int producer : producers) {
    const int root = find(producer);
    if (contains(node.producers, root)) continue;
    node.producers.push_back(root);
    nodes_[root].consumers.push_back(group);
  }
  nodes_.push_back(std::move(node));
  (last_ < 0 ? first_ : nodes_[last_].next) = group;
  last_ = group;
  return group;
}

int GroupOrder::find(int group) const {
  while (nodes_[group].parent >= 0) group = nodes_[group].parent;
  return group;
}

std::vector<int> GroupOrder::producers(int group) const {
  std::vector<int> roots;
  for (int producer : nodes_[group].producers)
    if (const int root = find(producer); root != group && !contains(roots, root))
      roots.push_back(root);
  return roots;
}

// Collects the groups strictly between in the order that are reached from `from`. Returns found
// when they reach `to`. Where is_fed, the direct edge between both does not count.
GroupOrder::Search GroupOrder::reach(int from, int to, bool forward, bool is_fed,
                                     std::vector<int>& between) const {
  auto neighbours = [&](int group) -> const std::vector<int>& {
    return forward ? nodes_[group].consumers : nodes_[group].producers;
  };
  auto is_beyond = [&](int group) {
    return forward ? nodes_[group].label > nodes_[to].label
                   : nodes_[group].label < nodes_[to].label;
  };
  between.clear();
  auto visit = [&](int group, bool direct) {
    const int root = find(group);
    if (root == from || is_beyond(root) || (direct && root == to)) return Search::clear;
    if (root == to) return Search::found;
    if (!contains(between, root)) between.push_back(root);
    return between.size() > search_limit ? Search::too_long : Search::clear;
  };
  for (int group : neighbours(from))
    if (const Search result = visit(group, is_fed); result != Search::clear) return result;
  for (std::size_t i = 0; i < between.size(); ++i)
    for (int group : neighbours(between[i]))
      if (const Search result = visit(group, false); result != Search::clear) return result;
  return Search::clear;
}

int GroupOrder::merge_apart(int a, int b) {
  if (nodes_[a].label > nodes_[b].label) std::swap(a, b);
  return merge(a, b, false) ? a : -1;
}

bool GroupOrder::merge(int producer, int consumer, bool is_fed) {
  std::vector<int> between;
  bool behind = true;
  Search search = reach(producer, consumer, true, is_fed, between);
  if (search == Search::too_long) {
    behind = false;
    search = reach(consumer, producer, false, is_fed, between);
  }
  if (search != Search::clear) return false;
  std::sort(between.begin(), between.end(),
            [&](int a, int b) { return nodes_[a].label < nodes_[b].label; });
  if (behind) {
    int place = consumer;
    for (int group : between) {
      unlink(group);
      insert_after(group, place);
      place = group;
    }
    // The merged group takes the consumer's place.
    unlink(producer);
    insert_after(producer, consumer);
  } else {
    for (int group : between) {
      unlink(group);
      insert_after(group, nodes_[producer].previous);
    }
  }
  unlink(consumer);
  Node &a = nodes_[producer], &b = nodes_[consumer];
  b.parent = producer;
  for (int group : b.producers)
    if (const int root = find(group); root != producer && !contains(a.producers, root))
      a.producers.push_back(root);
  for (int group : b.consumers)
    if (const int root = find(group); root != producer) a.consumers.push_back(root);
  std::erase_if(a.consumers, [&](int group) { return find(group) == producer; });
  b.producers.clear();
  b.consumers.clear();
  return true;
}

void GroupOrder::unlink(int group) {
  const Node& node = nodes_[group];
  (node.previous < 0 ? first_ : nodes_[node.previous].next) = node.next;
  (node.next < 0 ? last_ : nodes_[node.next].previous) = node.previous;
}

void GroupOrder::insert_after(int group, int place) {
  Node& node = nodes_[group];
  node.previous = place;
  node.next = place < 0 ? first_ : nodes_[place].next;
  (place < 0 ? first_ : nodes_[place].next) = group;
  (node.next < 0 ? last_ : nodes_[node.next].previous) = group;
  if (node.next < 0) {
    node.label = place < 0 ? 0 : nodes_[place].label + gap;
  } else if (place < 0) {
    node.label = nodes_[node.next].label - gap;
  } else {
    node.label = nodes_[place].label + (nodes_[node.next].label - nodes_[place].label) / 2;
    if (node.label == nodes_[place].label) renumber();
  }
}

void GroupOrder::renumber() {
  std::int64_t label = 0;
  for (int group = first_; group >= 0; group = nodes_[group].next)
    nodes_[group].label = label += gap;
}

}  // namespace plait::compile_passes
