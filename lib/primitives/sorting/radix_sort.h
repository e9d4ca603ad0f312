// Linear-time sorting: elements map to unsigned integers of the same order, which a radix sort
// orders digit by digit. Stable, so equal elements keep their order whatever their bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace plait {

template <int bytes>
using UnsignedOf = std::conditional_t<
    bytes == 1, std::uint8_t,
    std::conditional_t<bytes == 2, std::uint16_t,
                       std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;

// An unsigned integer that compares as x does: NaN is above every number, -0.0 equals 0.0.
template <class T>
UnsignedOf<sizeof(T)> order_key(T x) {
  using U = UnsignedOf<sizeof(T)>;
  constexpr U sign = U(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return U(x);
  } else if constexpr (std::is_integral_v<T>) {
    return U(U(x) ^ sign);
  } else {
    constexpr U infinity = std::is_same_v<T, float16>    ? U(0x7C00)
                           : std::is_same_v<T, bfloat16> ? U(0x7F80)
                           : sizeof(T) == 4              ? U(0x7F800000)
                                                         : U(0x7FF0000000000000);
    const U bits = std::bit_cast<U>(x), magnitude = U(bits & ~sign);
    if (magnitude > infinity) return U(~U(0));
    if (magnitude == 0) return sign;
    return bits & sign ? U(~bits) : U(bits | sign);
  }
}

// The number of a key; of several, 0.0 and one NaN.
template <class T>
T number_of_key(UnsignedOf<sizeof(T)> key) {
  using U = UnsignedOf<sizeof(T)>;
  constexpr U sign = U(U(1) << (sizeof(T) * 8 - 1));
  if constexpr (std::is_same_v<T, bool>)
    return key != 0;
  else if constexpr (std::is_integral_v<T>)
    return T(std::is_unsigned_v<T> ? key : U(key ^ sign));
  else
    return std::bit_cast<T>(U(key & sign ? key ^ sign : ~key));
}

// An element's key and its original index.
template <class Key>
struct Ranked {
  Key key;
  std::uint32_t index;
  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

// Sorts items by key_of(item), an unsigned integer; scratch holds as many.
template <class Item, class KeyOf>
void radix_sort(Item* items, Item* scratch, std::int64_t count, KeyOf key_of) {
  using Key = decltype(key_of(*items));
  constexpr std::int64_t few = 48;  // below, insertion sort beats setting up buckets
  if (count <= few) {
    Key keys[few];
    for (std::int64_t i = 0; i < count; ++i) {
      const Item item = items[i];
      const Key key = key_of(item);
      std::int64_t j = i;
      for (; j > 0 && key < keys[j - 1]; --j) {
        keys[j] = keys[j - 1];
        items[j] = items[j - 1];
      }
      keys[j] = key;
      items[j] = item;
    }
    return;
  }
  constexpr int digits = sizeof(Key);
  std::uint32_t starts[digits][256] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const Key key = key_of(items[i]);
    for (int d = 0; d < digits; ++d) ++starts[d][key >> (8 * d) & 255];
  }
  Item *src = items, *dst = scratch;
  for (int d = 0; d < digits; ++d) {
    std::uint32_t* start = starts[d];
    // A digit that all keys share is skipped.
    if (start[key_of(src[0]) >> (8 * d) & 255] == count) continue;
    std::uint32_t total = 0;
    for (int bucket = 0; bucket < 256; ++bucket) {
      const std::uint32_t size = start[bucket];
      start[bucket] = total;
      total += size;
    }
    for (std::int64_t i = 0; i < count; ++i) dst[start[key_of(src[i]) >> (8 * d) & 255]++] = src[i];
    std::swap(src, dst);
  }
  if (src != items) std::copy_n(src, count, items);
}

// Below this, one thread is faster, because its buckets stay in cache.
constexpr std::int64_t wide_sort = 1 << 16;

// Sorts one long row on all threads: every thread counts the digits of its slice of the items, then
// places them after equal ones of the slices before. Items go from src to dst through scratch, each
// of count items; src is only read. Digits are wider than for short rows: a pass over memory costs
// more than counters that exceed the first-level cache.
template <class Item, class KeyOf>
void radix_sort_wide(const Item* src, Item* dst, Item* scratch, std::int64_t count, KeyOf key_of) {
  using Key = decltype(key_of(*src));
  constexpr int width = sizeof(Key) == 1 ? 8 : sizeof(Key) == 2 ? 8 : 11;
  constexpr int digits = (int(sizeof(Key)) * 8 + width - 1) / width, buckets = 1 << width;
  const int slices = num_threads();
  auto digit_of = [](Key key, int digit) { return key >> (digit * width) & (buckets - 1); };
  auto for_slices = [&](const auto& body) {  // body(slice, begin, end)
    parallel_for(slices, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        body(i, count * i / slices, count * (i + 1) / slices);
    });
  };
  std::vector<std::uint32_t> counts(std::size_t(slices) * digits * buckets);
  auto counts_of = [&](std::int64_t slice, int digit) {
    return counts.data() + (slice * digits + digit) * buckets;
  };
  for_slices([&](std::int64_t slice, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Key key = key_of(src[i]);
      for (int d = 0; d < digits; ++d) ++counts_of(slice, d)[digit_of(key, d)];
    }
  });
  std::vector<int> passes;  // a digit that all keys share is skipped
  for (int d = 0; d < digits; ++d) {
    std::int64_t shared = 0;
    for (int slice = 0; slice < slices; ++slice)
      shared += counts_of(slice, d)[digit_of(key_of(src[0]), d)];
    if (shared != count) passes.push_back(d);
  }
  if (passes.empty()) return void(std::copy_n(src, count, dst));
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    const int d = passes[pass];
    // The last pass ends in dst.
    Item* const to = (passes.size() - pass) % 2 == 1 ? dst : scratch;
    if (pass > 0 && slices > 1)
      for_slices([&](std::int64_t slice, std::int64_t begin, std::int64_t end) {
        std::uint32_t* const count = counts_of(slice, d);
        std::fill_n(count, buckets, 0);
        for (std::int64_t i = begin; i < end; ++i) ++count[digit_of(key_of(src[i]), d)];
      });
    std::uint32_t total = 0;
    for (int bucket = 0; bucket < buckets; ++bucket)
      for (int slice = 0; slice < slices; ++slice)
        total += std::exchange(counts_of(slice, d)[bucket], total);
    for_slices([&](std::int64_t slice, std::int64_t begin, std::int64_t end) {
      std::uint32_t* const start = counts_of(slice, d);
      for (std::int64_t i = begin; i < end; ++i) to[start[digit_of(key_of(src[i]), d)]++] = src[i];
    });
    src = to;
  }
}

}  // namespace plait
