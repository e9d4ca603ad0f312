// The store of traces under jit: what is found, what makes room, and which of racing traces stays.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/transforms/trace_store.h>

#include <memory>
#include <vector>

using plait::TraceStore;

namespace {

struct Mutexless {
  void lock() {}
  void unlock() {}
};
using Store = TraceStore<const int, Mutexless>;

auto is(int wanted) {
  return [wanted](int entry) { return entry == wanted; };
}
Store::Pointer add(Store& store, int entry) {
  return store.add(std::make_shared<const int>(entry), is(entry));
}

}  // namespace

TEST_CASE("of traces of one signature that race, the first stays") {
  Store store;
  CHECK_FALSE(store.find(is(1)));
  const Store::Pointer first = add(store, 1);
  CHECK(add(store, 1) == first);
  CHECK(store.find(is(1)) == first);
  CHECK(store.entries().size() == 1);
}

TEST_CASE("the entry used last is compared first, and the oldest makes room") {
  Store store;
  for (int i = 0; i < int(Store::limit); ++i) add(store, i);
  CHECK(*store.find(is(3)) == 3);
  std::vector<int> compared;
  store.find([&](int entry) {
    compared.push_back(entry);
    return entry == 0;
  });
  CHECK(compared == std::vector{3, 0});
  CHECK(*store.last() == 0);
  add(store, -1);
  CHECK(store.entries().size() == Store::limit);
  CHECK(*store.entries().front() == 1);
  CHECK(*store.entries().back() == -1);
}

TEST_CASE("comparing may change the store") {
  Store store;
  add(store, 1);
  add(store, 2);
  const Store::Pointer found = store.find([&](int entry) {
    store.clear();
    return entry == 2;
  });
  CHECK(*found == 2);
  CHECK(store.entries().empty());
  CHECK_FALSE(store.find([](int) { return false; }));
}
