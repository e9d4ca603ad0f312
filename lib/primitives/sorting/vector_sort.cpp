// Quicksort in vectors of AVX-512. See vector_sort.h.
//
// A partition reads vectors from both ends, and writes what is less than the pivot to the front and
// the rest to the back, each squeezed together by one instruction. Few keys are sorted in
// registers, as a matrix with a column for each lane: the columns by a network, then pairs of
// columns, of pairs of columns and so on merge bitonically, and the matrix is transposed to be
// stored.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/sorting/vector_sort.h"

// GCC 12 takes the undefined vectors in its own header for mistakes (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace plait {
namespace {

#define PLAIT_TARGET __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,popcnt,bmi,bmi2")))
#define PLAIT_INLINE PLAIT_TARGET __attribute__((always_inline)) inline

using Vector = __m512i;

// Keys of 32 or 64 bits, unsigned, as lanes: the names of the intrinsics differ by these numbers.
#define PLAIT_LANES(bits, mask_bits)                                                            \
  struct Lanes##bits {                                                                          \
    using Key = std::uint##bits##_t;                                                            \
    using Mask = __mmask##mask_bits;                                                            \
    static constexpr int count = mask_bits;                                                     \
                                                                                                \
    PLAIT_INLINE static Vector splat(Key x) {                                                   \
      return _mm512_set1_epi##bits(std::int##bits##_t(x));                                      \
    }                                                                                           \
    PLAIT_INLINE static Vector load(const Key* at) { return _mm512_loadu_si512(at); }           \
    PLAIT_INLINE static Vector load(const Key* at, Mask mask, Vector rest) {                    \
      return _mm512_mask_loadu_epi##bits(rest, mask, at);                                       \
    }                                                                                           \
    PLAIT_INLINE static void store(Key* at, Vector v) { _mm512_storeu_si512(at, v); }           \
    PLAIT_INLINE static void store(Key* at, Mask mask, Vector v) {                              \
      _mm512_mask_storeu_epi##bits(at, mask, v);                                                \
    }                                                                                           \
    PLAIT_INLINE static Vector least(Vector a, Vector b) { return _mm512_min_epu##bits(a, b); } \
    PLAIT_INLINE static Vector most(Vector a, Vector b) { return _mm512_max_epu##bits(a, b); }  \
    /* The least of both, but the greatest where mask is set. */                                \
    PLAIT_INLINE static Vector least_or_most(Mask mask, Vector a, Vector b) {                   \
      return _mm512_mask_max_epu##bits(_mm512_min_epu##bits(a, b), mask, a, b);                 \
    }                                                                                           \
    PLAIT_INLINE static Mask less(Vector a, Vector b) {                                         \
      return _mm512_cmplt_epu##bits##_mask(a, b);                                               \
    }                                                                                           \
    PLAIT_INLINE static Vector squeeze(Mask mask, Vector v) {                                   \
      return _mm512_maskz_compress_epi##bits(mask, v);                                          \
    }                                                                                           \
    PLAIT_INLINE static Vector permute(Vector index, Vector v) {                                \
      return _mm512_permutexvar_epi##bits(index, v);                                            \
    }                                                                                           \
    PLAIT_INLINE static Vector permute(Vector a, Vector index, Vector b) {                      \
      return _mm512_permutex2var_epi##bits(a, index, b);                                        \
    }                                                                                           \
    PLAIT_INLINE static Vector signs(Vector v) { return _mm512_srai_epi##bits(v, bits - 1); }   \
    PLAIT_INLINE static Vector half(Vector v) { return _mm512_srli_epi##bits(v, 1); }           \
    PLAIT_INLINE static Vector blend(Mask mask, Vector a, Vector b) {                           \
      return _mm512_mask_blend_epi##bits(mask, a, b);                                           \
    }                                                                                           \
    PLAIT_INLINE static Vector lane_numbers() {                                                 \
      static constexpr Key numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};  \
      return load(numbers);                                                                     \
    }                                                                                           \
  };
PLAIT_LANES(32, 16)
PLAIT_LANES(64, 8)
#undef PLAIT_LANES

template <class L>
constexpr typename L::Mask first_lanes(std::int64_t n) {
  return typename L::Mask((1u << n) - 1);
}
// The lanes whose number has this bit.
template <class L>
constexpr typename L::Mask lanes_with(int bit) {
  unsigned mask = 0;
  for (int lane = 0; lane < L::count; ++lane)
    if (lane & bit) mask |= 1u << lane;
  return typename L::Mask(mask);
}

// --- Few keys, in registers ----------------------------------------------------------------------

// The comparators of Batcher's network for so many rows.
template <int rows>
struct Network {
  static constexpr int most = 80;
  std::array<std::pair<int, int>, most> pairs = {};
  int count = 0;
  constexpr Network() {
    for (int p = 1; p < rows; p *= 2)
      for (int k = p; k >= 1; k /= 2)
        for (int j = k % p; j + k < rows; j += 2 * k)
          for (int i = 0; i < k && i + j + k < rows; ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) pairs[count++] = {i + j, i + j + k};
  }
};
template <int rows>
constexpr Network<rows> network;

template <class L>
PLAIT_INLINE void compare(Vector& a, Vector& b) {
  const Vector low = L::least(a, b);
  b = L::most(a, b);
  a = low;
}

template <class L, int rows, std::size_t... i>
PLAIT_INLINE void sort_columns(Vector (&v)[rows], std::index_sequence<i...>) {
  (compare<L>(v[network<rows>.pairs[i].first], v[network<rows>.pairs[i].second]), ...);
}

// One row of a block of columns with the opposite row of the columns in opposite order.
template <class L, int columns, int rows>
PLAIT_INLINE void compare_opposite(Vector (&v)[rows], int row, Vector opposite) {
  constexpr typename L::Mask upper = lanes_with<L>(columns);
  Vector &a = v[row], &b = v[rows - 1 - row];
  const Vector p = L::permute(opposite, b), q = L::permute(opposite, a);
  a = L::least_or_most(upper, a, p);
  b = L::least_or_most(upper, b, q);
}
template <class L, int columns, int rows, std::size_t... i>
PLAIT_INLINE void compare_opposites(Vector (&v)[rows], std::index_sequence<i...>) {
  const Vector opposite = _mm512_xor_si512(L::lane_numbers(), L::splat(2 * columns - 1));
  (compare_opposite<L, columns>(v, int(i), opposite), ...);
}

template <class L, int distance, int rows, std::size_t... i>
PLAIT_INLINE void compare_lanes(Vector (&v)[rows], std::index_sequence<i...>) {
  constexpr typename L::Mask upper = lanes_with<L>(distance);
  const Vector other = _mm512_xor_si512(L::lane_numbers(), L::splat(distance));
  ((v[i] = L::least_or_most(upper, v[i], L::permute(other, v[i]))), ...);
}
template <class L, int distance, int rows>
PLAIT_INLINE void compare_lanes(Vector (&v)[rows]) {
  if constexpr (distance > 0) {
    compare_lanes<L, distance>(v, std::make_index_sequence<rows>());
    compare_lanes<L, distance / 2>(v);
  }
}

template <class L, int distance, int rows, std::size_t... i>
PLAIT_INLINE void compare_rows(Vector (&v)[rows], std::index_sequence<i...>) {
  constexpr auto row = [](std::size_t pair) {
    return pair / distance * 2 * distance + pair % distance;
  };
  (compare<L>(v[row(i)], v[row(i) + distance]), ...);
}
template <class L, int distance, int rows>
PLAIT_INLINE void compare_rows(Vector (&v)[rows]) {
  if constexpr (distance > 0) {
    compare_rows<L, distance>(v, std::make_index_sequence<rows / 2>());
    compare_rows<L, distance / 2>(v);
  }
}

// Blocks of so many columns, each in order, become blocks of twice as many, and so on to one.
template <class L, int columns, int rows>
PLAIT_INLINE void merge_columns(Vector (&v)[rows]) {
  if constexpr (columns < L::count) {
    compare_opposites<L, columns>(v, std::make_index_sequence<rows / 2>());
    compare_lanes<L, columns / 2>(v);
    compare_rows<L, rows / 2>(v);
    merge_columns<L, 2 * columns>(v);
  }
}

// Interleaves each row of the first half with that of the second: the highest bit of the row's
// number becomes the lowest of the place. After as many times as a row's number has bits, the
// matrix is transposed.
template <class L, int times, int rows, std::size_t... i>
PLAIT_INLINE void interleave(Vector (&v)[rows], Vector low, Vector high,
                             std::index_sequence<i...> all) {
  if constexpr (times > 0) {
    Vector w[rows];
    ((w[2 * i] = L::permute(v[i], low, v[i + rows / 2])), ...);
    ((w[2 * i + 1] = L::permute(v[i], high, v[i + rows / 2])), ...);
    ((v[2 * i] = w[2 * i], v[2 * i + 1] = w[2 * i + 1]), ...);
    interleave<L, times - 1>(v, low, high, all);
  }
}

template <class L, std::size_t... i>
PLAIT_INLINE void load_rows(const typename L::Key* keys, std::int64_t n, Vector* v,
                            std::index_sequence<i...>) {
  using Key = typename L::Key;
  const Vector most = L::splat(std::numeric_limits<Key>::max());
  const auto lanes_at = [n](std::int64_t at) {
    return first_lanes<L>(std::clamp<std::int64_t>(n - at, 0, L::count));
  };
  ((v[i] = L::load(keys + i * L::count, lanes_at(i * L::count), most)), ...);
}
template <class L, std::size_t... i>
PLAIT_INLINE void store_rows(typename L::Key* keys, std::int64_t n, const Vector* v,
                             std::index_sequence<i...>) {
  const auto lanes_at = [n](std::int64_t at) {
    return first_lanes<L>(std::clamp<std::int64_t>(n - at, 0, L::count));
  };
  (L::store(keys + i * L::count, lanes_at(i * L::count), v[i]), ...);
}

template <class L, int rows>
PLAIT_TARGET __attribute__((noinline)) void sort_in_registers(typename L::Key* keys,
                                                              std::int64_t n) {
  constexpr auto all = std::make_index_sequence<rows>();
  Vector v[rows];
  load_rows<L>(keys, n, v, all);
  sort_columns<L>(v, std::make_index_sequence<network<rows>.count>());
  merge_columns<L, 1>(v);
  // Places 0, count, 1, count + 1 … of two rows one behind the other, and the same from the middle.
  const Vector lanes = L::lane_numbers();
  const typename L::Mask odd = lanes_with<L>(1);
  const Vector halves = L::half(lanes),
               first = L::blend(odd, halves, _mm512_or_si512(halves, L::splat(L::count))),
               second = _mm512_or_si512(first, L::splat(L::count / 2));
  interleave<L, std::countr_zero(unsigned(rows))>(v, first, second,
                                                  std::make_index_sequence<rows / 2>());
  store_rows<L>(keys, n, v, all);
}

template <class L>
constexpr std::int64_t few = 16 * L::count;

template <class L>
void sort_few(typename L::Key* keys, std::int64_t n) {
  if (n <= 1) return;
  if (n <= 4 * L::count) return sort_in_registers<L, 4>(keys, n);
  if (n <= 8 * L::count) return sort_in_registers<L, 8>(keys, n);
  sort_in_registers<L, 16>(keys, n);
}

// --- Partition -----------------------------------------------------------------------------------

// Where the next keys go: those less than the pivot from the front on, others from the back on.
template <class L>
struct Sides {
  typename L::Key *low, *high;

  PLAIT_INLINE void put(Vector v, Vector pivot) {
    const typename L::Mask less = L::less(v, pivot);
    const int count = std::popcount(unsigned(less));
    L::store(low, L::squeeze(less, v));
    low += count;
    high -= L::count - count;
    L::store(high, first_lanes<L>(L::count - count), L::squeeze(typename L::Mask(~less), v));
  }
  // Of the first lanes only; writes no others.
  PLAIT_INLINE void put(Vector v, Vector pivot, typename L::Mask lanes) {
    const typename L::Mask less = typename L::Mask(L::less(v, pivot) & lanes),
                           more = typename L::Mask(~less & lanes);
    const int num_less = std::popcount(unsigned(less)), num_more = std::popcount(unsigned(more));
    L::store(low, first_lanes<L>(num_less), L::squeeze(less, v));
    low += num_less;
    high -= num_more;
    L::store(high, first_lanes<L>(num_more), L::squeeze(more, v));
  }
};

// How many keys are less than the pivot; they lie in front afterwards.
template <class L>
PLAIT_TARGET __attribute__((noinline)) std::int64_t partition(typename L::Key* keys, std::int64_t n,
                                                              typename L::Key pivot) {
  using Key = typename L::Key;
  constexpr int vectors = 8;
  constexpr std::int64_t block = vectors * L::count;
  const Vector pivots = L::splat(pivot);
  Key kept[3 * block];  // the first block, the last one, and what is less than a block at the end
  std::int64_t num_kept = 0;
  const auto keep = [&](const Key* from, std::int64_t count) {
    std::copy_n(from, count, kept + num_kept);
    num_kept += count;
  };
  Sides<L> sides{keys, keys + n};
  const Key *begin = keys, *end = keys + n;
  if (n >= 2 * block) {
    keep(begin, block), keep(end - block, block);
    begin += block, end -= block;
    while (end - begin >= block) {
      // Both sides have room for a block once it is read from the side with less of it.
      const Key* from;
      if (begin - sides.low <= sides.high - end) {
        from = begin;
        begin += block;
      } else {
        end -= block;
        from = end;
      }
      Vector v[vectors];
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) v[i] = L::load(from + i * L::count);
#pragma GCC unroll 8
      for (int i = 0; i < vectors; ++i) sides.put(v[i], pivots);
    }
  }
  keep(begin, end - begin);
  for (std::int64_t i = 0; i < num_kept; i += L::count) {
    const typename L::Mask lanes = first_lanes<L>(std::min<std::int64_t>(L::count, num_kept - i));
    sides.put(L::load(kept + i, lanes, pivots), pivots, lanes);
  }
  return sides.low - keys;
}

// About the median, of keys that lie far apart.
template <class L>
typename L::Key pivot_of(const typename L::Key* keys, std::int64_t n) {
  using Key = typename L::Key;
  constexpr std::int64_t most = 4 * L::count;
  const std::int64_t count = n < 4096 ? most / 2 : most;
  Key sample[most];
  const std::int64_t step = n / count;
  for (std::int64_t i = 0; i < count; ++i) sample[i] = keys[i * step + (i * 7919) % step];
  sort_in_registers<L, 4>(sample, count);
  return sample[count / 2];
}

// Keys [begin, first) are no greater than the pivot, keys [second, end) no less, and those between
// equal it.
struct Cut {
  std::int64_t first, second;
};
template <class L>
Cut cut(typename L::Key* keys, std::int64_t n) {
  const typename L::Key pivot = pivot_of<L>(keys, n);
  const std::int64_t less = partition<L>(keys, n, pivot);
  if (less > n / 8) return {less, less};
  // The pivot is among the least, perhaps because many equal it.
  if (pivot == std::numeric_limits<typename L::Key>::max()) return {less, n};
  const std::int64_t equal = partition<L>(keys + less, n - less, pivot + 1);
  return {less, less + equal};
}

int deepest(std::int64_t n) { return 4 + 2 * std::bit_width(std::uint64_t(n)); }

template <class L>
void sort_range(typename L::Key* keys, std::int64_t n, int depth) {
  while (n > few<L>) {
    if (depth-- == 0) return std::sort(keys, keys + n);
    const Cut at = cut<L>(keys, n);
    sort_range<L>(keys, at.first, depth);
    keys += at.second;
    n -= at.second;
  }
  sort_few<L>(keys, n);
}

template <class L>
void sort_all(std::span<typename L::Key> keys, Threads threads) {
  constexpr std::int64_t wide = 1 << 15;  // below, one thread is faster
  const std::int64_t n = std::int64_t(keys.size());
  if (n < wide || threads == Threads::one || num_threads() == 1)
    return sort_range<L>(keys.data(), n, deepest(n));
  using Range = std::span<typename L::Key>;
  std::vector<Range> ranges{keys};
  const std::size_t wanted = 2 * std::size_t(num_threads());
  for (int round = 0; round < 8 && ranges.size() < wanted; ++round) {
    std::vector<std::array<Range, 2>> parts(ranges.size());
    parallel_for(std::int64_t(ranges.size()), 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const Range range = ranges[std::size_t(i)];
        if (std::int64_t(range.size()) < wide) {
          parts[std::size_t(i)] = {range, Range()};
          continue;
        }
        const Cut at = cut<L>(range.data(), std::int64_t(range.size()));
        parts[std::size_t(i)] = {range.first(std::size_t(at.first)),
                                 range.subspan(std::size_t(at.second))};
      }
    });
    ranges.clear();
    for (const auto& pair : parts)
      for (const Range& part : pair)
        if (part.size() > 1) ranges.push_back(part);
  }
  std::ranges::sort(ranges, {}, [](const Range& range) { return -std::int64_t(range.size()); });
  parallel_for(std::int64_t(ranges.size()), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const Range range = ranges[std::size_t(i)];
      sort_range<L>(range.data(), std::int64_t(range.size()), deepest(std::int64_t(range.size())));
    }
  });
}

template <class L>
void select_range(typename L::Key* keys, std::int64_t n, std::int64_t offset,
                  std::span<const std::int64_t> places, int depth) {
  while (!places.empty()) {
    if (n <= few<L>) return sort_few<L>(keys, n);
    if (depth-- == 0) return std::sort(keys, keys + n);
    const Cut at = cut<L>(keys, n);
    const auto middle = std::ranges::lower_bound(places, offset + at.first);
    select_range<L>(keys, at.first, offset, {places.begin(), middle}, depth);
    places = {std::ranges::lower_bound(places, offset + at.second), places.end()};
    keys += at.second;
    offset += at.second;
    n -= at.second;
  }
}

// --- Keys
// ------------------------------------------------------------------------------------------

template <class L>
constexpr typename L::Key sign_bit = typename L::Key(1) << (sizeof(typename L::Key) * 8 - 1);
template <class L>
constexpr typename L::Key infinity =
    sizeof(typename L::Key) == 4 ? typename L::Key(0x7F800000)
                                 : typename L::Key(0x7FF0000000000000);

// function of every vector; the last one may have fewer lanes.
template <class L, class Function>
PLAIT_INLINE void for_vectors(const void* src, void* dst, std::int64_t n, Function function) {
  using Key = typename L::Key;
  const Key* const from = static_cast<const Key*>(src);
  Key* const to = static_cast<Key*>(dst);
  std::int64_t i = 0;
  for (; i + L::count <= n; i += L::count) L::store(to + i, function(L::load(from + i)));
  const typename L::Mask lanes = first_lanes<L>(n - i);
  if (lanes) L::store(to + i, lanes, function(L::load(from + i, lanes, L::splat(0))));
}

struct KeyOfFloat {
  template <class L>
  struct In {
    Vector flip;
    PLAIT_INLINE Vector operator()(Vector bits) const {
      using Key = typename L::Key;
      const Vector sign = L::splat(sign_bit<L>),
                   size = _mm512_and_si512(L::splat(typename L::Key(~sign_bit<L>)), bits);
      Vector key = _mm512_xor_si512(bits, _mm512_or_si512(L::signs(bits), sign));
      key = L::blend(L::less(L::splat(infinity<L>), size), key, L::splat(Key(~Key(0))));
      key = L::blend(L::less(size, L::splat(1)), key, sign);
      return _mm512_xor_si512(key, flip);
    }
  };
};
struct FloatOfKey {
  template <class L>
  struct In {
    Vector flip;
    PLAIT_INLINE Vector operator()(Vector key) const {
      using Key = typename L::Key;
      const Vector ones = L::splat(Key(~Key(0))), sign = L::splat(sign_bit<L>);
      key = _mm512_xor_si512(key, flip);
      const Vector is_negative = _mm512_xor_si512(L::signs(key), ones);
      return _mm512_xor_si512(key, _mm512_or_si512(is_negative, sign));
    }
  };
};
struct Flipped {
  template <class L>
  struct In {
    Vector flip;
    PLAIT_INLINE Vector operator()(Vector v) const { return _mm512_xor_si512(v, flip); }
  };
};

template <class L, class OfFloat>
PLAIT_TARGET void convert(const void* src, void* dst, std::int64_t n, KeysOf of) {
  using Key = typename L::Key;
  const Key flip = of.descending ? Key(~Key(0)) : Key(0);
  if (of.numbers == KeysOf::Numbers::floating)
    for_vectors<L>(src, dst, n, typename OfFloat::template In<L>{L::splat(flip)});
  else if (of.numbers == KeysOf::Numbers::with_sign)
    for_vectors<L>(src, dst, n, typename Flipped::In<L>{L::splat(flip ^ sign_bit<L>)});
  else
    for_vectors<L>(src, dst, n, typename Flipped::In<L>{L::splat(flip)});
}

template <class L>
PLAIT_TARGET bool have_unlike(const void* numbers, std::int64_t n) {
  using Key = typename L::Key;
  const Key* const from = static_cast<const Key*>(numbers);
  const Vector sign = L::splat(sign_bit<L>), most = L::splat(infinity<L>);
  typename L::Mask found = 0;
  for (std::int64_t i = 0; i < n; i += L::count) {
    const typename L::Mask lanes = first_lanes<L>(std::min<std::int64_t>(n - i, L::count));
    const Vector bits = L::load(from + i, lanes, L::splat(0)),
                 size = _mm512_and_si512(L::splat(typename L::Key(~sign_bit<L>)), bits);
    const typename L::Mask is_nan = L::less(most, size),
                           is_negative_zero = L::less(_mm512_xor_si512(bits, sign), L::splat(1));
    found = typename L::Mask(found | is_nan | is_negative_zero);
  }
  return found != 0;
}

bool find_vector_sort() {
  const char* const most = std::getenv("PLAIT_MAX_ISA");
  return !(most && std::string_view(most) == "avx2") && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

}  // namespace

bool has_vector_sort() {
  static const bool has = find_vector_sort();
  return has;
}

void vector_sort(std::span<std::uint32_t> keys, Threads threads) {
  sort_all<Lanes32>(keys, threads);
}
void vector_sort(std::span<std::uint64_t> keys, Threads threads) {
  sort_all<Lanes64>(keys, threads);
}
void vector_select(std::span<std::uint32_t> keys, std::span<const std::int64_t> places) {
  const auto n = std::int64_t(keys.size());
  select_range<Lanes32>(keys.data(), n, 0, places, deepest(n));
}
void vector_select(std::span<std::uint64_t> keys, std::span<const std::int64_t> places) {
  const auto n = std::int64_t(keys.size());
  select_range<Lanes64>(keys.data(), n, 0, places, deepest(n));
}

void write_keys(const void* src, std::span<std::uint32_t> keys, KeysOf of) {
  convert<Lanes32, KeyOfFloat>(src, keys.data(), std::int64_t(keys.size()), of);
}
void write_keys(const void* src, std::span<std::uint64_t> keys, KeysOf of) {
  convert<Lanes64, KeyOfFloat>(src, keys.data(), std::int64_t(keys.size()), of);
}
void write_numbers(std::span<const std::uint32_t> keys, void* dst, KeysOf of) {
  convert<Lanes32, FloatOfKey>(keys.data(), dst, std::int64_t(keys.size()), of);
}
void write_numbers(std::span<const std::uint64_t> keys, void* dst, KeysOf of) {
  convert<Lanes64, FloatOfKey>(keys.data(), dst, std::int64_t(keys.size()), of);
}

bool have_unlike_equals(const float* numbers, std::int64_t n) {
  return have_unlike<Lanes32>(numbers, n);
}
bool have_unlike_equals(const double* numbers, std::int64_t n) {
  return have_unlike<Lanes64>(numbers, n);
}

}  // namespace plait
