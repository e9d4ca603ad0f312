// Rows in order, by blocks of 256 threads that share them: a stable radix sort, digit by digit from
// the lowest on.
//
// A row is cut into tiles, and each block of those that share it takes tiles that follow each
// other. A pass orders the row by one digit:
//
//   each block counts the digits of its tiles
//   they meet; running sums of the counts say where each block's elements of a digit go
//   they meet; each block orders its tiles, one after the other, in shared memory, and writes them
//   from there: neighbours there mostly go to neighbouring places
//
// A row that is no longer than a tile stays in one block, and leaves shared memory in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plait/kernel.h"

#include <bit>
#include <type_traits>

constexpr unsigned threads_of_sort = 256, warps_of_sort = threads_of_sort / 32, most_digits = 256,
                   all_lanes = 0xffffffff;

// How the bits of keys compare: as integers, or as floats, of which NaN is the greatest, and -0.0
// equals 0.0.
enum class KeyKind { without_sign, with_sign, floating };
// Word: an unsigned integer as large as a key. infinity: its bits, of floats.
template <class Word, KeyKind kind, unsigned long infinity, bool is_descending>
struct Order {
  using Key = Word;
  // What compares as the key does, as an integer without a sign.
  static Word rank_of(Word bits) {
    const Word rank = ascending(bits);
    return is_descending ? Word(~rank) : rank;
  }

 private:
  static Word ascending(Word bits) {
    constexpr Word sign = Word(Word(1) << (8 * sizeof(Word) - 1)), all = Word(~Word(0));
    if constexpr (kind == KeyKind::without_sign) return bits;
    if constexpr (kind == KeyKind::with_sign) return Word(bits ^ sign);
    const Word size = Word(bits & Word(~sign));
    Word rank = (bits & sign) != 0 ? Word(~bits) : Word(bits | sign);
    rank = size == 0 ? sign : rank;
    return size > Word(infinity) ? all : rank;
  }
};
// Keys that no values go with.
struct NoValue {};

// Shared memory of a block: elements of a tile, counts of digits by warp, and by digit how far from
// its place in the tile an element goes.
struct SortingRoom {
  InOut<unsigned long> elements;
  InOut<unsigned> counts, distances, sums;
};
// bytes: of the elements of a tile, a multiple of 16.
inline SortingRoom sorting_room(InOut<unsigned long> memory, long bytes) {
  const InOut<unsigned> behind = (InOut<unsigned>)(memory + bytes / 8);
  return {memory, behind, behind + warps_of_sort * most_digits,
          behind + (warps_of_sort + 1) * most_digits};
}

// Of all blocks of a launch, or of one alone, which has no grid.
struct SortingBlocks {
  Grid* grid;
  unsigned rank, count;
};

// The sum of what the threads before this one have.
inline unsigned sum_before(unsigned x, const SortingRoom& room, unsigned& all) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = x;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned before = __shfl_up_sync(all_lanes, sum, distance);
    if (lane >= distance) sum += before;
  }
  if (lane == 31) room.sums[warp] = sum;
  __syncthreads();
  unsigned result = sum - x;
  all = 0;
#pragma unroll
  for (unsigned other = 0; other < warps_of_sort; ++other) {
    const unsigned of_other = room.sums[other];
    if (other < warp) result += of_other;
    all += of_other;
  }
  __syncthreads();
  return result;
}

// The i-th element of a thread in a tile: those of a warp follow each other.
template <int items>
unsigned place_in_tile(int i) {
  return threadIdx.x / 32 * (32 * items) + unsigned(i) * 32 + threadIdx.x % 32;
}

// places: digits of the elements of a tile at first; then their places in the order of these, those
// of a digit in the order in which they were. Thread d learns how many have digit d, and where
// these start.
template <int bits, int items>
void order_tile(unsigned (&places)[items], const SortingRoom& room, unsigned& start,
                unsigned& count) {
  const unsigned lane = threadIdx.x % 32, before = (1u << lane) - 1;
  const InOut<unsigned> own = room.counts + threadIdx.x / 32 * most_digits;
#pragma unroll
  for (unsigned digit = lane; digit < 1u << bits; digit += 32) own[digit] = 0;
  __syncwarp();
#pragma unroll
  for (int i = 0; i < items; ++i) {
    const unsigned digit = places[i];
    unsigned same = all_lanes;  // the lanes with this digit
#pragma unroll
    for (int bit = 0; bit < bits; ++bit) {
      const bool is_set = (digit >> bit & 1) != 0;
      const unsigned set = __ballot_sync(all_lanes, is_set);
      same &= is_set ? set : ~set;
    }
    const unsigned known = own[digit], earlier = std::popcount(same & before);
    places[i] = digit << 16 | (known + earlier);  // both, in one register
    __syncwarp();
    if (earlier == 0) own[digit] = known + std::popcount(same);
    __syncwarp();
  }
  __syncthreads();
  unsigned of_warps[warps_of_sort];
  count = 0;
  const bool has_digit = threadIdx.x < 1u << bits;
#pragma unroll
  for (unsigned warp = 0; warp < warps_of_sort; ++warp) {
    of_warps[warp] = count;
    if (has_digit) count += room.counts[warp * most_digits + threadIdx.x];
  }
  unsigned all;
  start = sum_before(count, room, all);
#pragma unroll
  for (unsigned warp = 0; warp < warps_of_sort; ++warp)
    if (has_digit) room.counts[warp * most_digits + threadIdx.x] = start + of_warps[warp];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < items; ++i) places[i] = (places[i] & 0xffff) + own[places[i] >> 16];
}

// A row of `size` elements in memory, of which others lie in room that passes take turns with.
template <class Order, class Value, int items, int bits>
class RowSort {
 public:
  using Key = typename Order::Key;
  static constexpr bool has_values = !std::is_same_v<Value, NoValue>;
  static constexpr unsigned tile = threads_of_sort * items, digit_mask = (1u << bits) - 1;

  // sorters: those that share the row, which meet in their grid if they are several.
  RowSort(const SortingBlocks& sorters, const SortingRoom& room, unsigned size, int passes)
      : sorters_(sorters), room_(room), size_(size), passes_(passes) {
    const unsigned tiles = (size + tile - 1) / tile;
    first_tile_ = unsigned((unsigned long)tiles * sorters.rank / sorters.count);
    last_tile_ = unsigned((unsigned long)tiles * (sorters.rank + 1) / sorters.count);
  }

  // In turn to `others` and `sorted`, so that the last pass ends there. counts: for 256 digits, one
  // of each sorter and one of all. is_here: whether there is a row: else the sorters only meet.
  void through_memory(InOut<Key> keys, InOut<Key> sorted, InOut<Key> others, InOut<Value> values,
                      InOut<Value> sorted_values, InOut<Value> other_values, InOut<unsigned> counts,
                      bool is_here) {
    for (int pass = 0; pass < passes_; ++pass) {
      const bool ends_sorted = (passes_ - pass) % 2 == 1;
      const InOut<Key> from = pass == 0 ? keys : ends_sorted ? others : sorted;
      const InOut<Value> values_from = pass == 0     ? values
                                       : ends_sorted ? other_values
                                                     : sorted_values;
      shift_ = pass * bits;
      // Of thread d: how many elements have digit d, then where the next one goes.
      unsigned next = is_here ? count_digits(from) : 0;
      if (sorters_.count > 1) {
        next = first_among(next, counts, is_here);
      } else {
        unsigned all;
        next = sum_before(next, room_, all);
      }
      if (is_here)
        for (unsigned at = first_tile_; at < last_tile_; ++at)
          move_tile(from, ends_sorted ? sorted : others, values_from,
                    ends_sorted ? sorted_values : other_values, at * tile, next);
      meet();
    }
  }

  // Of a row that is no longer than a tile.
  void in_block(InOut<Key> keys, InOut<Key> sorted, InOut<Value> values,
                InOut<Value> sorted_values) {
    Key own[items];
    Value own_values[items];
    load(keys, 0, own);
    if constexpr (has_values) load(values, 0, own_values);
    for (int pass = 0; pass < passes_; ++pass) {
      shift_ = pass * bits;
      unsigned places[items], start, count;
      find_digits(own, 0, places);
      order_tile<bits>(places, room_, start, count);
      put(own, places, tile_keys());
      if constexpr (has_values) put(own_values, places, tile_values());
      __syncthreads();
      get(tile_keys(), own);
      if constexpr (has_values) get(tile_values(), own_values);
    }
    store(sorted, own);
    if constexpr (has_values) store(sorted_values, own_values);
  }

 private:
  unsigned digit_of(Key key) const { return unsigned(Order::rank_of(key) >> shift_) & digit_mask; }
  void meet() const {
    if (sorters_.count == 1)
      __syncthreads();
    else
      sync_grid(sorters_.grid);
  }

  template <class T>
  void load(InOut<T> from, unsigned first, T (&own)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const unsigned at = first + place_in_tile<items>(i);
      own[i] = from[at < size_ ? at : size_ - 1];
    }
  }
  template <class T>
  void store(InOut<T> to, const T (&own)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i)
      if (place_in_tile<items>(i) < size_) to[place_in_tile<items>(i)] = own[i];
  }
  // What is behind the row comes last.
  void find_digits(const Key (&own)[items], unsigned first, unsigned (&digits)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i)
      digits[i] = first + place_in_tile<items>(i) < size_ ? digit_of(own[i]) : digit_mask;
  }
  // Shared memory of a tile in order.
  InOut<Key> tile_keys() const { return (InOut<Key>)room_.elements; }
  InOut<Value> tile_values() const { return (InOut<Value>)(tile_keys() + long(tile)); }
  template <class T>
  void put(const T (&own)[items], const unsigned (&places)[items], InOut<T> elements) const {
#pragma unroll
    for (int i = 0; i < items; ++i) elements[places[i]] = own[i];
  }
  template <class T>
  void get(InOut<T> elements, T (&own)[items]) const {
#pragma unroll
    for (int i = 0; i < items; ++i) own[i] = elements[place_in_tile<items>(i)];
  }

  // How many elements of this block's tiles have digit d, for thread d.
  unsigned count_digits(InOut<Key> from) const {
    const InOut<unsigned> own = room_.counts + threadIdx.x / 32 * most_digits;
    for (unsigned digit = threadIdx.x % 32; digit < 1u << bits; digit += 32) own[digit] = 0;
    __syncwarp();
    for (unsigned at = first_tile_; at < last_tile_; ++at) {
      Key keys[items];
      load(from, at * tile, keys);
#pragma unroll
      for (int i = 0; i < items; ++i)
        if (at * tile + place_in_tile<items>(i) < size_) atomicAdd(own + digit_of(keys[i]), 1u);
    }
    __syncthreads();
    unsigned count = 0;
    if (threadIdx.x < 1u << bits)
#pragma unroll
      for (unsigned warp = 0; warp < warps_of_sort; ++warp)
        count += room_.counts[warp * most_digits + threadIdx.x];
    __syncthreads();
    return count;
  }
  // Where this block's first element of digit d goes, for thread d, of which it has `own`.
  unsigned first_among(unsigned own, InOut<unsigned> counts, bool is_here) const {
    const unsigned sorters = sorters_.count;
    const InOut<unsigned> totals = counts + (long)most_digits * sorters;
    if (is_here) counts[(long)threadIdx.x * sorters + sorters_.rank] = own;
    meet();
    unsigned all;
    if (is_here)
      for (unsigned digit = sorters_.rank; digit < 1u << bits; digit += sorters) {
        unsigned sum = 0;
        for (unsigned first = 0; first < sorters; first += threads_of_sort) {
          const unsigned sorter = first + threadIdx.x;
          const InOut<unsigned> count = counts + ((long)digit * sorters + sorter);
          const unsigned x = sorter < sorters ? unsigned(*count) : 0;
          const unsigned before = sum_before(x, room_, all);
          if (sorter < sorters) *count = sum + before;
          sum += all;
        }
        if (threadIdx.x == 0) totals[digit] = sum;
      }
    meet();
    if (!is_here) return 0;
    const bool has_digit = threadIdx.x < 1u << bits;
    const unsigned before = sum_before(has_digit ? unsigned(totals[threadIdx.x]) : 0, room_, all);
    return has_digit ? before + counts[(long)threadIdx.x * sorters + sorters_.rank] : 0;
  }

  // next: of thread d, where the next element of digit d goes.
  void move_tile(InOut<Key> from, InOut<Key> to, InOut<Value> values_from, InOut<Value> values_to,
                 unsigned begin, unsigned& next) const {
    Key own[items];
    unsigned places[items], start, count;
    load(from, begin, own);
    find_digits(own, begin, places);
    order_tile<bits>(places, room_, start, count);
    if (threadIdx.x < 1u << bits) room_.distances[threadIdx.x] = next - start;
    next += count;
    put(own, places, tile_keys());
    if constexpr (has_values) {
      Value own_values[items];
      load(values_from, begin, own_values);
      put(own_values, places, tile_values());
    }
    __syncthreads();
    const unsigned end = size_ - begin < tile ? size_ - begin : tile;
#pragma unroll
    for (int i = 0; i < items; ++i) {
      const unsigned at = unsigned(i) * threads_of_sort + threadIdx.x;
      if (at >= end) continue;
      const Key key = tile_keys()[at];
      const unsigned target = at + room_.distances[digit_of(key)];
      to[target] = key;
      if constexpr (has_values) values_to[target] = tile_values()[at];
    }
    __syncthreads();
  }

  const SortingBlocks sorters_;
  const SortingRoom room_;
  const unsigned size_;
  const int passes_;
  unsigned first_tile_, last_tile_;
  int shift_ = 0;
};

// Rows that follow each other, each by one block.
template <class Order, class Value, int items, int bits>
void sort_short_rows(const SortingBlocks& blocks, InOut<unsigned long> shared, long shared_bytes,
                     InOut<typename Order::Key> keys, InOut<typename Order::Key> sorted,
                     InOut<Value> values, InOut<Value> sorted_values, long rows, long size,
                     int passes) {
  RowSort<Order, Value, items, bits> sort({blocks.grid, 0, 1}, sorting_room(shared, shared_bytes),
                                          unsigned(size), passes);
  __syncthreads();  // others may still use the shared memory
  for (long row = blocks.rank; row < rows; row += blocks.count)
    sort.in_block(keys + row * size, sorted + row * size, values + row * size,
                  sorted_values + row * size);
}

// The same of rows of any length, by all blocks. memory: as many keys and then values, and from
// counts_at on 512 counts for each block; of keys that one pass orders, only these.
template <class Order, class Value, int items, int bits>
void sort_long_rows(const SortingBlocks& blocks, InOut<unsigned long> shared, long shared_bytes,
                    InOut<typename Order::Key> keys, InOut<typename Order::Key> sorted,
                    InOut<Value> values, InOut<Value> sorted_values, InOut<unsigned char> memory,
                    long values_at, long counts_at, long rows, long size, int passes) {
  using Sort = RowSort<Order, Value, items, bits>;
  const long tiles = (size + Sort::tile - 1) / Sort::tile;
  // As many blocks share a row as there are for each.
  long sorters = blocks.count / rows;
  sorters = sorters < 1 ? 1 : sorters < tiles ? sorters : tiles;
  const long groups = blocks.count / sorters, group = blocks.rank / sorters;
  Sort sort({blocks.grid, unsigned(blocks.rank % sorters), unsigned(sorters)},
            sorting_room(shared, shared_bytes), unsigned(size), passes);
  const InOut<typename Order::Key> others = (InOut<typename Order::Key>)memory;
  const InOut<Value> other_values = (InOut<Value>)(memory + values_at);
  const InOut<unsigned> counts =
      (InOut<unsigned>)(memory + counts_at) + group * most_digits * (sorters + 1);
  __syncthreads();
  for (long first = 0; first < rows; first += groups) {
    const bool is_here = group < groups && first + group < rows;
    if (sorters == 1 && !is_here) break;
    const long at = is_here ? (first + group) * size : 0;
    sort.through_memory(keys + at, sorted + at, others + at, values + at, sorted_values + at,
                        other_values + at, counts, is_here);
  }
}
