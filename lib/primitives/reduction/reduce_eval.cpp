// reduce's kernel: blocks of elements, several at a time, in the order of NOTE: [reduction order].
//
// Integers, bools and extremes of numbers that are not NaN have the same bits in any order, so that
// their blocks are combined in the order that is fastest, and rows of bools end where they are
// decided.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <memory>

#include "primitives/elementwise/wrapping.h"
#include "primitives/reduction/reduce.h"

namespace plait {
namespace {

template <class V>
constexpr bool is_pack = !std::is_same_v<ElementOf<V>, V>;

struct Sum {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class V>
  static V combine(V a, V b) {
    if constexpr (is_pack<V>)
      return a + b;
    else
      return V(wrapping(a) + wrapping(b));
  }
};
struct Product {
  template <class T>
  static T identity() {
    return T(1);
  }
  template <class V>
  static V combine(V a, V b) {
    if constexpr (is_pack<V>)
      return a * b;
    else
      return product(a, b);
  }
};
struct Maximum {
  static constexpr bool is_extreme = true;
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                : std::numeric_limits<T>::lowest();
  }
  template <class T>
  static T combine(T a, T b) {
    return bool(int(a >= b) | int(a != a)) ? a : b;
  }  // NaN wins, then the first of equals, as in max
  template <class V>
  static V combine_numbers(V a, V b) {  // the same where neither is NaN
    return math::greater(b, a);
  }
};
struct Minimum {
  static constexpr bool is_extreme = true;
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }
  template <class T>
  static T combine(T a, T b) {
    return bool(int(a <= b) | int(a != a)) ? a : b;
  }
  template <class V>
  static V combine_numbers(V a, V b) {
    return math::lesser(b, a);
  }
};
struct And {
  template <class T>
  static T identity() {
    return T(~T(0));
  }
  template <class T>
  static T combine(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class T>
  static T combine(T a, T b) {
    return T(a | b);
  }
};
// Bools are bytes of 0 and 1: all of them, or any.
struct All : And {
  static constexpr std::uint8_t decided = 0;
  template <class T>
  static T identity() {
    return T(1);
  }
};
struct Any : Or {
  static constexpr std::uint8_t decided = 1;
};

// Of an operation, whether it chooses one of the numbers; whether some value decides it.
template <class Op>
concept Extreme = Op::is_extreme;
template <class Op>
concept Decidable = requires { Op::decided; };

// --- Blocks --------------------------------------------------------------------------------------

// The results of interleaved accumulators, combined by a fixed tree.
template <class Op, class A>
A combine_lanes(A (&lanes)[8]) {
  for (int width = 4; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] = Op::combine(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

// One block of a row: eight accumulators, then a fixed tree.
template <class Op, class T, class A>
A reduce_block(const T* x, std::int64_t n, std::int64_t stride) {
  if constexpr (std::is_integral_v<T>) {
    A result = Op::template identity<A>();
    if (stride == 1)  // a loop of its own, which the compiler vectorises
      for (std::int64_t i = 0; i < n; ++i) result = Op::combine(result, A(x[i]));
    else
      for (std::int64_t i = 0; i < n; ++i) result = Op::combine(result, A(x[i * stride]));
    return result;
  }
  A lanes[8];
  for (A& lane : lanes) lane = Op::template identity<A>();
  std::int64_t i = 0;
  if (stride == 1)
    for (; i + 8 <= n; i += 8)
      for (int lane = 0; lane < 8; ++lane) lanes[lane] = Op::combine(lanes[lane], A(x[i + lane]));
  for (int lane = 0; i < n; ++i, lane = (lane + 1) % 8)
    lanes[lane] = Op::combine(lanes[lane], A(x[i * stride]));
  return combine_lanes<Op>(lanes);
}

// Contiguous blocks of n numbers, `apart` from one to the next, so that no accumulator waits for
// the operation before.
template <class Op, class T, int at_once>
void reduce_in_packs(const T* x, std::int64_t apart, std::int64_t n, T* numbers) {
  constexpr int width = sizeof(T) == 4 ? 8 : 4, packs = 8 / width;
  using V = Pack<T, width>;
  V lanes[at_once][packs];
  for (auto& block : lanes)
    for (V& lane : block) lane = V(Op::template identity<T>());
  MaskOf<V> has_nan = lanes[0][0] != lanes[0][0];
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
#pragma GCC unroll 2
    for (int p = 0; p < packs; ++p)
#pragma GCC unroll 4
      for (int b = 0; b < at_once; ++b) {
        const V term = V::load(x + b * apart + i + p * width);
        if constexpr (Extreme<Op>) {
          lanes[b][p] = Op::combine_numbers(lanes[b][p], term);
          has_nan = has_nan | (term != term);
        } else {
          lanes[b][p] = Op::combine(lanes[b][p], term);
        }
      }
  if (math::any(has_nan)) [[unlikely]] {
    for (int b = 0; b < at_once; ++b) numbers[b] = reduce_block<Op, T, T>(x + b * apart, n, 1);
    return;
  }
  for (int b = 0; b < at_once; ++b) {
    T rest[8];
    for (int p = 0; p < packs; ++p) lanes[b][p].store(rest + p * width);
    for (std::int64_t at = i; at < n; ++at)
      rest[at - i] = Op::combine(rest[at - i], x[b * apart + at]);
    numbers[b] = combine_lanes<Op>(rest);
  }
}

// So many contiguous blocks of equal length.
template <class Op, class T, class A>
void reduce_equal_blocks(const T* x, std::int64_t apart, std::int64_t n, std::int64_t count,
                         A* numbers) {
  std::int64_t b = 0;
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int at_once = 4;
    for (; b + at_once <= count; b += at_once)
      reduce_in_packs<Op, T, at_once>(x + b * apart, apart, n, numbers + b);
    for (; b < count; ++b) reduce_in_packs<Op, T, 1>(x + b * apart, apart, n, numbers + b);
  }
  for (; b < count; ++b) numbers[b] = reduce_block<Op, T, A>(x + b * apart, n, 1);
}

// Blocks [begin, end) of contiguous rows.
template <class Op, class T, class A>
void reduce_row_blocks(const ReductionStage& stage, const T* x, std::int64_t begin,
                       std::int64_t end, A* numbers) {
  const std::int64_t blocks = stage.num_blocks(), size = stage.block();
  if (blocks == 1)
    return reduce_equal_blocks<Op>(x + begin * stage.n, stage.n, stage.n, end - begin,
                                   numbers + begin);
  const std::int64_t whole = stage.n / size;
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t row = i / blocks, block = i % blocks;
    const T* const start = x + row * stage.n + block * size;
    const std::int64_t count = std::min(whole - block, end - i);
    if (count > 0) {
      reduce_equal_blocks<Op>(start, size, size, count, numbers + i);
      i += count;
    } else {
      numbers[i++] = reduce_block<Op, T, A>(start, stage.n - whole * size, 1);
    }
  }
}

// --- Stages --------------------------------------------------------------------------------------

template <class Op, class A>
A combine_pairwise(const A* x, std::int64_t n) {
  if (n == 1) return x[0];
  const std::int64_t half = n / 2;
  return Op::combine(combine_pairwise<Op>(x, half), combine_pairwise<Op>(x + half, n - half));
}

// The same for n rows of `width` columns. scratch holds a row for every halving.
template <class Op, class A>
void combine_rows(const A* x, std::int64_t n, std::int64_t columns, std::int64_t width, A* result,
                  A* scratch) {
  if (n == 1) {
    std::copy_n(x, width, result);
    return;
  }
  const std::int64_t half = n / 2;
  combine_rows<Op>(x, half, columns, width, result, scratch);
  combine_rows<Op>(x + half * columns, n - half, columns, width, scratch, scratch + width);
  for (std::int64_t j = 0; j < width; ++j) result[j] = Op::combine(result[j], scratch[j]);
}

constexpr std::int64_t tile = 256;  // columns
std::int64_t num_tiles(const ReductionStage& stage) { return (stage.inner + tile - 1) / tile; }

// Combines the partial results of blocks, to one each: [outer, inner, blocks] where the stage is by
// rows, else [outer, blocks, inner].
template <class Op, class A, class R>
void combine_blocks(const ReductionStage& stage, const A* numbers, R* out) {
  const std::int64_t blocks = stage.num_blocks();
  if (stage.is_by_rows()) {
    parallel_for(stage.outer * stage.inner, std::max<std::int64_t>(1, 16384 / blocks),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     out[i] = R(combine_pairwise<Op>(numbers + i * blocks, blocks));
                 });
    return;
  }
  const std::int64_t tiles = num_tiles(stage);
  parallel_for(stage.outer * tiles, std::max<std::int64_t>(1, 256 / blocks),
               [&](std::int64_t begin, std::int64_t end) {
                 A result[tile];
                 std::unique_ptr<A[]> scratch(new A[tile * std::bit_width(std::uint64_t(blocks))]);
                 for (std::int64_t t = begin; t < end; ++t) {
                   const std::int64_t first = t % tiles * tile,
                                      width = std::min(tile, stage.inner - first), o = t / tiles;
                   combine_rows<Op>(numbers + o * blocks * stage.inner + first, blocks, stage.inner,
                                    width, result, scratch.get());
                   for (std::int64_t j = 0; j < width; ++j)
                     out[o * stage.inner + first + j] = R(result[j]);
                 }
               });
}

// One block of every column of a tile.
template <class Op, class T, class A>
void reduce_tile(const T* x, std::int64_t n, std::int64_t columns, std::int64_t width, A* result) {
  std::fill_n(result, width, Op::template identity<A>());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < width; ++j)
      result[j] = Op::combine(result[j], A(x[i * columns + j]));
}

template <class Op, class T, class A>
void reduce_blocks(const ReductionStage& stage, const T* x, A* numbers) {
  const std::int64_t blocks = stage.num_blocks(), size = stage.block(), inner = stage.inner;
  if (stage.is_by_rows()) {
    const std::int64_t count = stage.outer * inner * blocks;
    parallel_for(
        count, std::max<std::int64_t>(1, 131072 / std::clamp<std::int64_t>(stage.n, 1, size)),
        [&](std::int64_t begin, std::int64_t end) {
          if (inner == 1) return reduce_row_blocks<Op>(stage, x, begin, end, numbers);
          for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t row = i / blocks, first = i % blocks * size;
            const T* const start = x + (row / inner * stage.n + first) * inner + row % inner;
            numbers[i] = reduce_block<Op, T, A>(start, std::min(size, stage.n - first), inner);
          }
        });
    return;
  }
  const std::int64_t tiles = num_tiles(stage);
  parallel_for(stage.outer * blocks * tiles, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t block = i / tiles, first = i % tiles * tile;
      const std::int64_t row = block % blocks * size;
      reduce_tile<Op, T, A>(x + (block / blocks * stage.n + row) * inner + first,
                            std::min(size, stage.n - row), inner, std::min(tile, inner - first),
                            numbers + block * inner + first);
    }
  });
}

constexpr std::int64_t deciding_step = 512;  // bools that are combined before one looks

// A contiguous row of bools, read no further than to where it is decided.
template <class Op>
std::uint8_t decide_row(const std::uint8_t* row, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += deciding_step)
    if (reduce_block<Op, std::uint8_t, std::uint8_t>(row + i, std::min(deciding_step, n - i), 1) ==
        Op::decided)
      return Op::decided;
  return Op::template identity<std::uint8_t>();
}

template <class Op>
void decide_rows(const ReductionStage& stage, const std::uint8_t* x, std::uint8_t* out) {
  constexpr std::int64_t worth_a_thread = 1 << 18;
  const std::int64_t n = stage.n;
  if (n < worth_a_thread || stage.outer >= num_threads())
    return parallel_for(stage.outer,
                        std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, n)),
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t row = begin; row < end; ++row)
                            out[row] = decide_row<Op>(x + row * n, n);
                        });
  for (std::int64_t row = 0; row < stage.outer; ++row) {
    const std::uint8_t* const start = x + row * n;
    std::atomic<std::uint8_t> result = decide_row<Op>(start, 32 * deciding_step);
    const std::int64_t steps = (n + deciding_step - 1) / deciding_step;
    if (result != Op::decided)
      parallel_for(
          steps, worth_a_thread / deciding_step, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t step = begin; step < end && result != Op::decided; ++step) {
              const std::int64_t first = step * deciding_step;
              if (decide_row<Op>(start + first, std::min(deciding_step, n - first)) == Op::decided)
                result = Op::decided;
            }
          });
    out[row] = result;
  }
}

// Memory for values of a type that has a dtype's size.
template <class A>
Buffer room_for(std::int64_t count) {
  return Buffer::empty(DType::uint8, {count * std::int64_t(sizeof(A))});
}

template <class Op, class T, class A>
void finish_stages(std::span<const ReductionStage> stages, const A* numbers, T* out) {
  const ReductionStage& stage = stages[0];
  if (stages.size() == 1) return combine_blocks<Op>(stage, numbers, out);
  Buffer results = room_for<A>(stage.outer * stage.inner);
  A* const x = static_cast<A*>(results.mutable_data());
  combine_blocks<Op>(stage, numbers, x);
  const ReductionStage& next = stages[1];
  Buffer blocks = room_for<A>(next.outer * next.inner * next.num_blocks());
  reduce_blocks<Op, A, A>(next, x, static_cast<A*>(blocks.mutable_data()));
  finish_stages<Op, T, A>(stages.subspan(1), static_cast<const A*>(blocks.data()), out);
}

template <class Op, class T>
void reduce_typed(const View& input, const View& output, std::span<const int> axes) {
  using A = detail::Compute<T>;
  if (num_elements(output.shape) == 0) return;
  Buffer copy;
  const T* x = input.as<T>();
  if (!input.is_dense()) {
    copy = Buffer::copy_of(input);
    x = static_cast<const T*>(copy.data());
  }
  const ReductionStages stages = reduction_stages(input.shape, axes);
  const ReductionStage& first = stages[0];
  if constexpr (Decidable<Op>)
    if (stages.size() == 1 && first.inner == 1)
      return decide_rows<Op>(first, x, output.as<std::uint8_t>());
  if constexpr (std::is_same_v<T, A>)
    if (stages.size() == 1 && first.num_blocks() == 1)
      return reduce_blocks<Op, T, A>(first, x, output.as<T>());
  Buffer numbers = room_for<A>(first.outer * first.inner * first.num_blocks());
  reduce_blocks<Op, T, A>(first, x, static_cast<A*>(numbers.mutable_data()));
  finish_stages<Op, T, A>(stages, static_cast<const A*>(numbers.data()), output.as<T>());
}

// Calls f<Op, T>() for the operation of a kind and its element type.
template <class F>
void visit_reduction(const std::string& kind, DType dtype, const F& f) {
  if (dtype == DType::bool_) {
    if (kind == "and" || kind == "min") return f.template operator()<All, std::uint8_t>();
    return f.template operator()<Any, std::uint8_t>();
  }
  auto visit = [&]<class Op, DTypes types>() {
    visit_dtype(dtype, [&](auto element) {
      using T = decltype(element);
      using Element = std::conditional_t<Extreme<Op>, T, typename UnsignedOf<T>::type>;
      if constexpr (types.has(dtype_of<T>())) f.template operator()<Op, Element>();
    });
  };
  if (kind == "sum") return visit.template operator()<Sum, numbers>();
  if (kind == "prod") return visit.template operator()<Product, numbers>();
  if (kind == "max") return visit.template operator()<Maximum, real_numbers>();
  if (kind == "min") return visit.template operator()<Minimum, real_numbers>();
  if (kind == "and") return visit.template operator()<And, integers>();
  visit.template operator()<Or, integers>();
}

}  // namespace

void eval_reduce(const View& input, const View& output, const std::string& kind,
                 std::span<const int> axes) {
  visit_reduction(kind, input.dtype,
                  [&]<class Op, class T>() { reduce_typed<Op, T>(input, output, axes); });
}

}  // namespace plait
