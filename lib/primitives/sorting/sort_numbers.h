// Rows of numbers sorted by keys in vectors (vector_sort.h), with the results of a stable sort: of
// numbers that are equal and differ in their bits, the first one comes first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "primitives/scratch.h"
#include "primitives/sorting/radix_sort.h"
#include "primitives/sorting/vector_sort.h"

namespace plait {

// Whether rows of n numbers of this type are sorted in vectors; fewer are inserted.
template <class T>
bool sorts_in_vectors(std::int64_t n) {
  constexpr bool has_keys = (std::is_integral_v<T> && sizeof(T) >= 4) || std::is_same_v<T, float> ||
                            std::is_same_v<T, double>;
  return has_keys && n >= 8 && has_vector_sort();
}

template <class T>
constexpr KeysOf keys_of(bool descending) {
  using Numbers = KeysOf::Numbers;
  return {!std::is_integral_v<T>  ? Numbers::floating
          : std::is_unsigned_v<T> ? Numbers::without_sign
                                  : Numbers::with_sign,
          descending};
}

// The zeros and the NaNs of a row, in their order, where they differ in their bits.
template <class T>
class UnlikeEquals {
 public:
  using Key = UnsignedOf<sizeof(T)>;
  UnlikeEquals(const T* row, std::int64_t n, Key flip) : flip_(flip) {
    if constexpr (std::is_floating_point_v<T>) {
      if (!have_unlike_equals(row, n)) return;
      for (std::int64_t i = 0; i < n; ++i)
        if (row[i] == 0)
          zeros_.push_back(row[i]);
        else if (row[i] != row[i])
          nans_.push_back(row[i]);
    }
  }
  bool empty() const { return zeros_.empty() && nans_.empty(); }

  // From which places on they lie among sorted keys.
  struct Places {
    std::int64_t zeros = 0, nans = 0;
  };
  Places places(const Key* sorted, std::int64_t n) const {
    Places places;
    if (!zeros_.empty()) places.zeros = std::lower_bound(sorted, sorted + n, zero()) - sorted;
    if (!nans_.empty()) places.nans = std::lower_bound(sorted, sorted + n, nan()) - sorted;
    return places;
  }
  void put(const Places& places, T* sorted) const {
    std::ranges::copy(zeros_, sorted + places.zeros);
    std::ranges::copy(nans_, sorted + places.nans);
  }
  // The number of a key, at a place after sorting; keys are all of them, in any order.
  T at(Key key, std::int64_t place, const Key* keys, std::int64_t n) const {
    const bool is_zero = !zeros_.empty() && key == zero(), is_nan = !nans_.empty() && key == nan();
    if (!is_zero && !is_nan) return number_of_key<T>(Key(key ^ flip_));
    const auto before = std::count_if(keys, keys + n, [=](Key other) { return other < key; });
    return (is_zero ? zeros_ : nans_)[std::size_t(place - before)];
  }

 private:
  Key zero() const { return Key(order_key(T(0)) ^ flip_); }
  Key nan() const { return Key(~flip_); }

  Key flip_;
  std::vector<T> zeros_, nans_;
};

template <class T>
UnsignedOf<sizeof(T)> flip_of(bool descending) {
  using Key = UnsignedOf<sizeof(T)>;
  return descending ? Key(~Key(0)) : Key(0);
}

// Sorts a row, which may be dst. Call where sorts_in_vectors holds.
template <class T>
void sort_in_vectors(const T* src, T* dst, std::int64_t n, bool descending, Threads threads) {
  using Key = UnsignedOf<sizeof(T)>;
  const KeysOf of = keys_of<T>(descending);
  const UnlikeEquals<T> unlike(src, n, flip_of<T>(descending));
  Key* const keys = reinterpret_cast<Key*>(dst);
  const std::int64_t grain = threads == Threads::all ? 1 << 16 : n;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    write_keys(src + begin, {keys + begin, std::size_t(end - begin)}, of);
  });
  vector_sort({keys, std::size_t(n)}, threads);
  const auto places = unlike.places(keys, n);
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    write_numbers({keys + begin, std::size_t(end - begin)}, dst + begin, of);
  });
  unlike.put(places, dst);
}

// Sorts words whose lower halves are places in a row, by the keys there, then by place: keys that
// agree in the part that the upper half has room for, from the first bit in which any differ, are
// sorted again.
template <class Key>
void order_in_vectors(const Key* keys, std::span<std::uint64_t> words, Threads threads) {
  Key all = Key(~Key(0)), any = 0;
  for (const std::uint64_t word : words) {
    const Key key = keys[std::uint32_t(word)];
    all &= key;
    any |= key;
  }
  const int shift = std::max(0, int(std::bit_width(Key(all ^ any))) - 32);
  for (std::uint64_t& word : words) {
    const std::uint64_t place = std::uint32_t(word);
    word = std::uint64_t(std::uint32_t(keys[place] >> shift)) << 32 | place;
  }
  vector_sort(words, threads);
  if (shift == 0) return;
  const auto comes_before = [keys](std::uint64_t a, std::uint64_t b) {
    const std::uint32_t i = std::uint32_t(a), j = std::uint32_t(b);
    return keys[i] < keys[j] || (keys[i] == keys[j] && i < j);
  };
  for (std::size_t first = 0, last; first < words.size(); first = last) {
    for (last = first + 1; last < words.size() && words[last] >> 32 == words[first] >> 32;) ++last;
    const std::span<std::uint64_t> equal = words.subspan(first, last - first);
    if (equal.size() > 16)
      order_in_vectors(keys, equal, Threads::one);
    else if (equal.size() > 1)
      std::ranges::sort(equal, comes_before);
  }
}

// Sorts a row and moves values along.
template <class T, class Value>
void sort_pairs_in_vectors(const T* row, const Value* values, T* sorted, Value* sorted_values,
                           std::int64_t n, bool descending, Threads threads) {
  using Key = UnsignedOf<sizeof(T)>;
  const Scratch<Key> keys(n);
  const Scratch<std::uint64_t> words(n);
  const std::int64_t grain = threads == Threads::all ? 16384 : n;
  bool are_places = true;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    write_keys(row + begin, {keys.get() + begin, std::size_t(end - begin)}, keys_of<T>(descending));
    for (std::int64_t i = begin; i < end; ++i) words.get()[i] = std::uint64_t(i);
  });
  for (std::int64_t i = 0; i < n && are_places; ++i) are_places = values[i] == Value(i);
  order_in_vectors(keys.get(), {words.get(), std::size_t(n)}, threads);
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint32_t place = std::uint32_t(words.get()[i]);
      sorted[i] = row[place];
      sorted_values[i] = are_places ? Value(place) : values[place];
    }
  });
}

}  // namespace plait
