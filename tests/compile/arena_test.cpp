// Places in the arena: nothing that lives at one step overlaps, and little is wasted.
// SPDX-License-Identifier: Apache-2.0
#include "compile/arena.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace plait::compile_passes;

namespace {

constexpr std::int64_t megabyte = 1 << 20;

int overlaps(const std::vector<Lifetime>& all, std::int64_t size) {
  int found = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Lifetime& a = all[i];
    found += a.offset < 0 || a.offset + a.bytes > size || a.offset % 64 != 0;
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& b = all[j];
      if (a.bytes == 0 || b.bytes == 0) continue;  // what has no bytes may lie anywhere
      found += a.begin <= b.end && b.begin <= a.end && a.offset < b.offset + b.bytes &&
               b.offset < a.offset + a.bytes;
    }
  }
  return found;
}

std::int64_t most_at_once(const std::vector<Lifetime>& all, int steps) {
  std::int64_t most = 0;
  for (int step = 0; step < steps; ++step) {
    std::int64_t now = 0;
    for (const Lifetime& one : all)
      if (one.begin <= step && step <= one.end) now += one.bytes;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("what lives at one step does not overlap") {
  std::mt19937 random(1);
  for (const int count : {0, 1, 2, 30, 200, 1500})
    for (const std::int64_t scale : {std::int64_t(64), megabyte}) {
      CAPTURE(count);
      std::vector<Lifetime> all;
      for (int i = 0; i < count; ++i) {
        const int begin = int(random() % 100), length = int(random() % (i % 7 == 0 ? 60 : 5));
        all.push_back({std::int64_t(random() % 1000) * scale / 10, begin, begin + length});
      }
      const std::int64_t size = place_in_arena(all);
      CHECK(overlaps(all, size) == 0);
      CHECK(size >= most_at_once(all, 160));
      if (count == 30 || count == 200) CHECK(size <= most_at_once(all, 160) * 5 / 4);
    }
}

// As the gradients of a language model: long lives of small values between short ones of large
// values keep holes apart, when placed in order of time.
TEST_CASE("large values find room though small ones live long") {
  std::vector<Lifetime> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back({(10 + i) * megabyte, 2 * i, 2 * i + 1});
    all.push_back({megabyte, 2 * i + 1, 100});
  }
  const std::int64_t size = place_in_arena(all);
  CHECK(overlaps(all, size) == 0);
  CHECK(size <= most_at_once(all, 101) + megabyte);
}
