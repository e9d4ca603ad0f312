// Groups that merge: whatever is merged, no group depends on itself; and what has no third between
// it merges.
// SPDX-License-Identifier: Apache-2.0
#include "compile/group_order.h"

#include <doctest/doctest.h>

#include <random>

using plait::compile_passes::GroupOrder;

namespace {

// Whether the merged groups have a topological order.
bool is_acyclic(const GroupOrder& order) {
  std::vector<int> waiting(order.size(), 0), ready;
  std::vector<std::vector<int>> consumers(order.size());
  std::size_t groups = 0, done = 0;
  for (int g = 0; g < int(order.size()); ++g) {
    if (order.is_merged(g)) continue;
    ++groups;
    for (int producer : order.producers(g)) {
      ++waiting[g];
      consumers[producer].push_back(g);
    }
    if (waiting[g] == 0) ready.push_back(g);
  }
  while (!ready.empty()) {
    const int g = ready.back();
    ready.pop_back();
    ++done;
    for (int consumer : consumers[g])
      if (--waiting[consumer] == 0) ready.push_back(consumer);
  }
  return done == groups;
}

// Whether `from` reads from `to`, or, but for that, through a third group.
bool reads(const GroupOrder& order, int from, int to, bool through_third = false) {
  std::vector<int> stack, seen;
  for (int producer : order.producers(from))
    if (producer != to || !through_third) stack.push_back(producer);
  while (!stack.empty()) {
    const int g = stack.back();
    stack.pop_back();
    if (g == to) return true;
    if (std::find(seen.begin(), seen.end(), g) != seen.end()) continue;
    seen.push_back(g);
    for (int producer : order.producers(g)) stack.push_back(producer);
  }
  return false;
}

// Fewer than so many groups before g.
std::vector<int> random_producers(std::mt19937& random, int g, int most) {
  std::vector<int> producers;
  for (int i = 0; g > 0 && i < int(random() % most); ++i) producers.push_back(int(random() % g));
  return producers;
}

}  // namespace

TEST_CASE("random merges never close a cycle, and succeed where none would arise") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    GroupOrder order;
    const int size = 5 + int(random() % 40);
    for (int g = 0; g < size; ++g) {
      const std::vector<int> producers = random_producers(random, g, 4);
      order.add(producers);
      for (int producer : producers) {
        const int a = order.find(producer), b = order.find(g);
        if (a == b || random() % 3 == 0) continue;
        const bool expected = !reads(order, b, a, true);
        CAPTURE(seed);
        CHECK(order.merge(a, b) == expected);
        CHECK(is_acyclic(order));
      }
    }
  }
}

TEST_CASE("groups that are apart merge unless one leads to the other") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    GroupOrder order;
    const int size = 5 + int(random() % 40);
    for (int g = 0; g < size; ++g) {
      order.add(random_producers(random, g, 3));
    }
    for (int i = 0; i < 60; ++i) {
      const int a = order.find(int(random() % size)), b = order.find(int(random() % size));
      if (a == b) continue;
      const bool expected = !reads(order, a, b) && !reads(order, b, a);
      CAPTURE(seed);
      const int merged = order.merge_apart(a, b);
      CHECK((merged >= 0) == expected);
      if (expected) CHECK((order.find(a) == merged && order.find(b) == merged));
      CHECK(is_acyclic(order));
    }
  }
}

TEST_CASE("a group read long after it was made merges with its reader") {
  GroupOrder order;
  const int early = order.add({});
  int last = order.add({});
  for (int i = 0; i < 1000; ++i) last = order.add(std::vector<int>{last});
  CHECK(order.merge(early, order.add(std::vector<int>{early, last})));
  CHECK(is_acyclic(order));
}
