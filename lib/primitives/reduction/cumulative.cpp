// Cumulative reductions along an axis: cumreduce, and the linear recurrence of its derivative.
//
// NOTE: [cumulation order] An axis is cut into blocks, from where the scan starts. Elements within
// a block are combined sequentially, and so are the totals of blocks. A result is the total of the
// previous blocks combined with the prefix of its own block. So the result at a position depends
// only on the elements before it, whatever the threads, rows and layout. An axis of one block gives
// NumPy's bits, and the blocks of one long row are independent except for their totals.
//
// Loop programs on a GPU have blocks of 4, 8 or 16 elements, by the shape alone, and the totals of
// blocks are cumulated in the same way, in blocks of their own. So an axis of at most 16 elements,
// 4 in large arrays, has the CPU's bits, and so have extremes, and products and recurrences of many
// columns, which are combined one after the other. Others have sums of a tree, which lose less. The
// factors of a recurrence are multiplied beforehand: where they overflow, so does the result, or it
// is NaN.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>

#include <limits>
#include <numeric>

#include "order.h"
#include "primitives/cost.h"
#include "primitives/elementwise/wrapping.h"
#include "primitives/reduction/reduce.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

namespace plait {
namespace {

using Values = Sample::Input::Values;

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    return T(wrapping(a) + wrapping(b));
  }
};
struct Product {
  template <class T>
  static T combine(T a, T b) {
    return product(a, b);
  }
};
struct Maximum {  // NaN wins
  template <class T>
  static T combine(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  static T combine(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// The accumulator type of T: float32 for 16-bit floats; integers wrap.
template <class Op, class T>
auto accumulator() {
  constexpr bool wraps =
      std::is_integral_v<T> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>);
  if constexpr (wraps)
    return std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>();
  else
    return detail::Compute<T>();
}

// Columns accumulated together: enough to fill vector registers, few enough for the first-level
// cache.
constexpr std::int64_t tile = 256;
constexpr std::int64_t rows_at_once = 4;  // rows whose additions overlap

// Calls body(outer, first column, columns) over all tiles, in parallel.
template <class Body>
void for_tiles(const AxisLoops& loops, const Body& body) {
  const std::int64_t tiles = (loops.inner + tile - 1) / tile;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 32768 / (loops.size * std::min(loops.inner, tile)));
  parallel_for(loops.outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = i % tiles * tile;
      body(i / tiles, first, std::min(tile, loops.inner - first));
    }
  });
}

// Elements of a block, see NOTE: [cumulation order]. Not a power of two, because blocks that are
// read together would map to the same lines of the first-level cache. Minimum and maximum do not
// depend on the order, and a sequential loop is fastest for them: they rarely change, so that
// branches are predicted well.
template <class Op>
constexpr std::int64_t block = std::is_same_v<Op, Maximum> || std::is_same_v<Op, Minimum>
                                   ? std::numeric_limits<std::int64_t>::max()
                                   : 1008;

// Many rows, several at a time.
template <class Op, class A, class T>
void cumulate_rows(const T* x, T* out, std::int64_t rows, std::int64_t n, bool reverse) {
  const std::int64_t start = reverse ? n - 1 : 0, step = reverse ? -1 : 1;
  const std::int64_t groups = (rows + rows_at_once - 1) / rows_at_once;
  auto run = [&](const T* src, T* dst, auto count) {
    A before[count] = {}, total[count];  // of the previous blocks, and of this one so far
    for (std::int64_t first = 0; first < n; first += block<Op>) {
      const std::int64_t size = std::min(n - first, block<Op>);
      for (int r = 0; r < count; ++r) {
        if (first > 0) before[r] = first == block<Op> ? total[r] : Op::combine(before[r], total[r]);
        total[r] = A(src[r * n]);
        dst[r * n] = T(first == 0 ? total[r] : Op::combine(before[r], total[r]));
      }
      src += step, dst += step;
      for (std::int64_t i = 1; i < size; ++i, src += step, dst += step)
        for (int r = 0; r < count; ++r) {
          total[r] = Op::combine(total[r], A(src[r * n]));
          dst[r * n] = T(first == 0 ? total[r] : Op::combine(before[r], total[r]));
        }
    }
  };
  auto run_rows = [&](std::int64_t row, auto count) {
    run(x + row * n + start, out + row * n + start, count);
  };
  parallel_for(groups, std::max<std::int64_t>(1, 32768 / (rows_at_once * n)),
               [&](std::int64_t begin, std::int64_t end) {
                 std::int64_t row = begin * rows_at_once;
                 const std::int64_t last = std::min(rows, end * rows_at_once);
                 for (; row + rows_at_once <= last; row += rows_at_once)
                   run_rows(row, std::integral_constant<int, rows_at_once>());
                 for (; row < last; ++row) run_rows(row, std::integral_constant<int, 1>());
               });
}

// Consecutive blocks, all at once, so that their chains of additions overlap. Unrolled by a fold,
// so that the totals stay in registers.
template <class Op, class A, class T, int step, std::int64_t... c>
struct Blocks {
  static constexpr std::int64_t size = block<Op>;

  static void find_totals(const T* x, A* totals) {
    A total[]{A(x[c * size * step])...};
    for (std::int64_t i = 1; i < size; ++i)
      ((total[c] = Op::combine(total[c], A(x[(c * size + i) * step]))), ...);
    ((totals[c] = total[c]), ...);
  }
  // before: the total of the blocks before each.
  static void cumulate(const T* x, T* out, const A* before, std::int64_t count) {
    A total[]{A(x[c * size * step])...};
    const A base[]{before[c]...};
    ((out[c * size * step] = T(Op::combine(base[c], total[c]))), ...);
    for (std::int64_t i = 1; i < count; ++i)
      ((total[c] = Op::combine(total[c], A(x[(c * size + i) * step])),
        out[(c * size + i) * step] = T(Op::combine(base[c], total[c]))),
       ...);
  }
};

// A row of several blocks, shared by threads: first the totals of blocks, then the results.
template <class Op, class A, int step, class T>
void cumulate_long_row(const T* x, T* out, std::int64_t n) {
  using Eight = Blocks<Op, A, T, step, 0, 1, 2, 3, 4, 5, 6, 7>;
  using One = Blocks<Op, A, T, step, 0>;
  constexpr std::int64_t size = block<Op>, grain = 16;
  const std::int64_t whole = n / size, rest = n % size;
  const Storage memory = Storage::allocate(std::size_t(whole + 1) * sizeof(A));
  A* const before = static_cast<A*>(memory.data());  // element b: the total before block b > 0
  parallel_for(whole, grain, [&](std::int64_t b, std::int64_t end) {
    for (; b + 8 <= end; b += 8) Eight::find_totals(x + b * size * step, before + b + 1);
    for (; b < end; ++b) One::find_totals(x + b * size * step, before + b + 1);
  });
  for (std::int64_t b = 2; b <= whole; ++b) before[b] = Op::combine(before[b - 1], before[b]);
  A total = A(x[0]);  // the first block has no predecessor
  out[0] = T(total);
  for (std::int64_t i = 1; i < size; ++i)
    out[i * step] = T(total = Op::combine(total, A(x[i * step])));
  parallel_for(whole - 1, grain, [&](std::int64_t b, std::int64_t end) {
    for (++b, ++end; b + 8 <= end; b += 8)
      Eight::cumulate(x + b * size * step, out + b * size * step, before + b, size);
    for (; b < end; ++b)
      One::cumulate(x + b * size * step, out + b * size * step, before + b, size);
  });
  if (rest > 0)
    One::cumulate(x + whole * size * step, out + whole * size * step, before + whole, rest);
}

template <class Op, class T>
void cumulate(const T* x, T* out, const AxisLoops& loops, bool reverse) {
  using A = decltype(accumulator<Op, T>());
  const std::int64_t n = loops.size;
  if (loops.inner == 1) {
    if constexpr (block<Op> < std::numeric_limits<std::int64_t>::max())
      if (n > 8 * block<Op> && loops.outer < 2 * rows_at_once) {
        for (std::int64_t row = 0; row < loops.outer; ++row)
          if (reverse)
            cumulate_long_row<Op, A, -1>(x + (row + 1) * n - 1, out + (row + 1) * n - 1, n);
          else
            cumulate_long_row<Op, A, 1>(x + row * n, out + row * n, n);
        return;
      }
    return cumulate_rows<Op, A>(x, out, loops.outer, n, reverse);
  }
  for_tiles(loops, [&](std::int64_t outer, std::int64_t first, std::int64_t width) {
    A before[tile], total[tile];  // of the previous blocks, and of this one so far
    const std::int64_t base = outer * n * loops.inner + first;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = base + (reverse ? n - 1 - i : i) * loops.inner;
      if (i > 0 && i % block<Op> == 0)
        for (std::int64_t j = 0; j < width; ++j)
          before[j] = i == block<Op> ? total[j] : Op::combine(before[j], total[j]);
      if (i % block<Op> == 0)
        for (std::int64_t j = 0; j < width; ++j) total[j] = A(x[at + j]);
      else
        for (std::int64_t j = 0; j < width; ++j) total[j] = Op::combine(total[j], A(x[at + j]));
      if (i < block<Op>)
        for (std::int64_t j = 0; j < width; ++j) out[at + j] = T(total[j]);
      else
        for (std::int64_t j = 0; j < width; ++j) out[at + j] = T(Op::combine(before[j], total[j]));
    }
  });
}

template <class Op, DTypes types>
void cumulate_with(const View& input, const View& output, int axis, bool reverse) {
  if (num_elements(output.shape) == 0) return;
  const Buffer dense = input.is_dense() ? Buffer({}, input) : Buffer::copy_of(input);
  visit_dtype(input.dtype, [&](auto element) {
    using E = decltype(element);
    constexpr bool compares = std::is_same_v<Op, Maximum> || std::is_same_v<Op, Minimum>;
    using T = std::conditional_t<compares, E, typename UnsignedOf<E>::type>;
    if constexpr (types.has(dtype_of<E>()))
      cumulate<Op>(static_cast<const T*>(dense.data()), output.as<T>(),
                   AxisLoops(output.shape, axis), reverse);
  });
}

DTypes types_of(const std::string& kind) {
  if (kind == "sum" || kind == "prod") return numbers;
  if (kind == "max" || kind == "min") return real_numbers | boolean;
  throw ValueError("cumreduce: there is no kind '" + kind + "'", "choose sum, prod, max or min");
}

Array cumreduce(const char* kind, const Array& operand, int axis, bool reverse) {
  const int normal = normalize_axis(axis, operand.ndim(), std::string("cum") + kind);
  return bind(cumreduce_p, {operand},
              {{"kind", std::string(kind)}, {"axis", Dim(normal)}, {"reverse", reverse}});
}

// --- In loop programs ----------------------------------------------------------------------------

// Arrays of at most this many elements are written out: beyond, the kernel costs less than numbers
// one by one.
constexpr std::int64_t most_written = 32;

// Runs along an axis of arrays of one shape. combine gives a result from the one before it, which
// the first has not, and the elements of the operands there.
using Combine =
    std::function<loops::Value(std::optional<loops::Value> before, const loops::Values& elements)>;
loops::Tensor emit_running(loops::Writer& w, std::span<const loops::Tensor> operands,
                           const Params& params, const Combine& combine) {
  const Aval& aval = operands[0].aval;
  const std::int64_t size = aval.shape.num_elements().constant();
  const AxisLoops loops(aval.shape.to_sizes(), int(params.integer("axis")));
  const Sizes64 strides = dense_strides(aval.shape.to_sizes());
  loops::Tensors arrays;
  for (const loops::Tensor& operand : operands)
    arrays.push_back(operand.formula ? w.in_memory(operand) : operand);
  const auto elements_at = [&](std::int64_t place) {
    loops::Indices at;
    for (std::size_t axis = 0; axis < strides.size(); ++axis)
      at.push_back({place / strides[axis] % aval.shape[int(axis)].constant()});
    loops::Values elements;
    for (const loops::Tensor& array : arrays) elements.push_back(w.element(array, at));
    return elements;
  };
  loops::Values results((std::size_t(size)));
  for (std::int64_t row = 0; row < size / loops.size; ++row) {
    std::optional<loops::Value> before;
    for (std::int64_t i = 0; i < loops.size; ++i) {
      const std::int64_t along = params.flag("reverse") ? loops.size - 1 - i : i;
      const std::int64_t place =
          (row / loops.inner * loops.size + along) * loops.inner + row % loops.inner;
      before = results[std::size_t(place)] = combine(before, elements_at(place));
    }
  }
  if (size <= loops::few) return {aval, results};
  const loops::Tensor made = w.make(aval);
  for (std::int64_t element = 0; element < size; ++element) {
    loops::Place place = made.place;
    place.offset += element;
    w.store(place, results[std::size_t(element)]);
  }
  return made;
}

void require_written(loops::Writer& w, const Equation& equation, const Aval& aval) {
  const std::string name = "`" + std::string(equation.primitive->name()) + "`";
  if (aval.shape.num_elements().constant() > most_written) w.refuse(name + " of many elements");
  if (aval.dtype == DType::float16 || aval.dtype == DType::bfloat16)  // kept in float32
    w.refuse(name + " of " + std::string(name_of(aval.dtype)));
  w.require_room(4.0 * double(most_written));
}

// The same where no kernel does it better: arrays in memory, in the dtype of the accumulator.
bool is_written(const loops::Writer& w, const Aval& aval) {
  return w.has_kernels() ||
         (aval.shape.num_elements().constant() <= most_written && aval.dtype != DType::float16 &&
          aval.dtype != DType::bfloat16 && !is_complex(aval.dtype));
}
DType wide_of(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}
// The index along an axis of the i-th element that a scan meets.
loops::Index met(const loops::Index& i, std::int64_t size, bool reverse) {
  return reverse ? written::sum_of({size - 1}, written::times(i, -1)) : i;
}

// Rows by one thread each. next gives what the scan carries, from that of the element before, and
// the elements of the operands.
loops::Tensor emit_in_turn(
    loops::Writer& w, const Equation& equation, std::span<const loops::Tensor> inputs,
    const std::function<written::Number(written::Number, const written::Numbers&)>& next,
    const std::function<written::Number(const written::Numbers&)>& first) {
  const Aval& aval = inputs[0].aval;
  const auto axis = std::size_t(equation.params.integer("axis"));
  const std::int64_t size = aval.shape[int(axis)].constant();
  const bool reverse = equation.params.flag("reverse");
  const DType wide = wide_of(aval.dtype);
  loops::Tensors operands;
  for (const loops::Tensor& input : inputs) operands.push_back(w.in_memory(input));
  const loops::Tensor result = written::make(aval.shape, aval.dtype);
  Shape rows = aval.shape;
  rows[int(axis)] = 1;
  written::for_all(rows, [&](const loops::Indices& row) {
    const auto elements_at = [&](const loops::Index& i) {
      loops::Indices at = row;
      at[axis] = met(i, size, reverse);
      written::Numbers elements;
      for (const loops::Tensor& operand : operands)
        elements.push_back(written::cast(written::get(operand, at), wide));
      return elements;
    };
    const auto put = [&](const loops::Index& i, written::Number number) {
      loops::Indices at = row;
      at[axis] = met(i, size, reverse);
      written::put(result, at, number);
    };
    const written::Number begin = first(elements_at({0}));
    put({0}, begin);
    written::repeated(size - 1, {begin}, [&](const loops::Index& step, const auto& carried) {
      const loops::Index i = written::sum_of(step, {1});
      const written::Number now = next(carried[0], elements_at(i));
      put(i, now);
      return written::Numbers{now};
    });
  });
  return result;
}

// What is combined at once along a long axis, see NOTE: [cumulation order].
struct Tree {
  // How the numbers of a stretch and those of the next one make those of both. The last number is
  // the result.
  std::function<written::Numbers(const written::Numbers&, const written::Numbers&)> both;
  // Whether what comes before a block is taken in with its first element, not behind the others.
  bool takes_before_first = false;
};

class TreeScan {
 public:
  TreeScan(const Tree& tree, std::size_t axis, DType wide)
      : tree_(tree), axis_(axis), wide_(wide) {}

  // Of arrays in memory: the numbers of each element.
  void run(const loops::Tensors& arrays, bool reverse, const loops::Tensor& result) const {
    const Level level(*this, arrays, reverse);
    std::optional<loops::Tensor> before;  // by block but the first: of all elements before it
    if (level.blocks > 1) {
      Shape shape = result.aval.shape;
      shape[int(axis_)] = level.blocks - 1;
      loops::Tensors totals;
      for (std::size_t i = 0; i < arrays.size(); ++i) totals.push_back(written::make(shape, wide_));
      written::for_all(shape, [&](const loops::Indices& at) {
        const std::vector<written::Numbers> elements = level.of_block(at, at[axis_], level.block);
        const written::Numbers total = std::accumulate(
            elements.begin() + 1, elements.end(), elements[0],
            [&](const auto& earlier, const auto& later) { return tree_.both(earlier, later); });
        for (std::size_t i = 0; i < totals.size(); ++i) written::put(totals[i], at, total[i]);
      });
      before = written::make(shape, wide_);
      run(totals, false, *before);
    }
    if (level.is_by_element)
      write_elements(level, before, result);
    else
      write_blocks(level, before, result);
  }

 private:
  // Neighbouring threads write neighbouring elements: of a large array that is contiguous along
  // the axis a thread makes one element, and reads those before it in the block as well. Elsewhere
  // it makes a block.
  struct Level {
    Level(const TreeScan& scan, const loops::Tensors& arrays, bool reverse)
        : scan(scan), arrays(arrays), reverse(reverse) {
      const AxisLoops loops(arrays[0].aval.shape.to_sizes(), int(scan.axis_));
      const std::int64_t elements = loops.outer * loops.size * loops.inner;
      size = loops.size;
      is_by_element = loops.inner < 8 && elements > large;
      block = elements <= large ? 16 : is_by_element && elements > 16 * large ? 4 : 8;
      blocks = (size + block - 1) / block;
    }
    static constexpr std::int64_t large = std::int64_t(1) << 19;

    written::Numbers element(loops::Indices at, const loops::Index& along) const {
      at[scan.axis_] = met(along, size, reverse);
      written::Numbers numbers;
      for (const loops::Tensor& array : arrays)
        numbers.push_back(written::cast(written::get(array, at), scan.wide_));
      return numbers;
    }
    std::vector<written::Numbers> of_block(const loops::Indices& at, const loops::Index& number,
                                           std::int64_t count) const {
      std::vector<written::Numbers> elements;
      for (std::int64_t i = 0; i < count; ++i)
        elements.push_back(element(at, written::sum_of(written::times(number, block), {i})));
      return elements;
    }

    const TreeScan& scan;
    const loops::Tensors& arrays;
    const bool reverse;
    std::int64_t size, block, blocks;
    bool is_by_element;
  };

  // What comes before a block, which is not the first if `is_later`.
  struct Before {
    written::Number is_later;
    written::Number result;
  };
  Before before_block(const loops::Tensor& before, loops::Indices at, written::Number block) const {
    using namespace written;  // NOLINT
    const std::int64_t count = before.aval.shape[int(axis_)].constant();
    at[axis_] = index_below(maximum(block - integer(1), integer(0)), count);
    return {block > integer(0), get(before, at)};
  }
  written::Numbers behind(const std::optional<Before>& before, const written::Numbers& own) const {
    if (!before) return own;
    written::Numbers earlier = own;  // only the last one counts
    earlier.back() = before->result;
    return chosen(before->is_later, tree_.both(earlier, own), own);
  }
  static written::Numbers chosen(written::Number truth, const written::Numbers& x,
                                 const written::Numbers& y) {
    written::Numbers numbers;
    for (std::size_t i = 0; i < x.size(); ++i)
      numbers.push_back(written::select(truth, x[i], y[i]));
    return numbers;
  }
  void put(const Level& level, const loops::Tensor& result, loops::Indices at,
           const loops::Index& along, const written::Numbers& numbers) const {
    at[axis_] = met(along, level.size, level.reverse);
    written::put(result, at, numbers.back());
  }

  void write_blocks(const Level& level, const std::optional<loops::Tensor>& before,
                    const loops::Tensor& result) const {
    const auto write = [&](const loops::Indices& at, const loops::Index& number,
                           std::int64_t count) {
      const std::vector<written::Numbers> elements = level.of_block(at, number, count);
      std::optional<Before> earlier;
      if (before) earlier = before_block(*before, at, written::number_of(number));
      std::vector<written::Numbers> results;
      written::Numbers total;
      for (const written::Numbers& own : elements) {
        total = !results.empty()           ? tree_.both(total, own)
                : tree_.takes_before_first ? behind(earlier, own)
                                           : own;
        results.push_back(tree_.takes_before_first ? total : behind(earlier, total));
      }
      for (std::int64_t i = 0; i < count; ++i)
        put(level, result, at, written::sum_of(written::times(number, level.block), {i}),
            results[std::size_t(i)]);
    };
    const std::int64_t whole = level.size / level.block, rest = level.size % level.block;
    Shape shape = result.aval.shape;
    shape[int(axis_)] = whole;
    if (whole > 0)
      written::for_all(shape, [&](const auto& at) { write(at, at[axis_], level.block); });
    shape[int(axis_)] = 1;
    if (rest > 0) written::for_all(shape, [&](const auto& at) { write(at, {whole}, rest); });
  }

  void write_elements(const Level& level, const std::optional<loops::Tensor>& before,
                      const loops::Tensor& result) const {
    const std::int64_t block = level.block, size = level.size;
    written::for_all(result.aval.shape, [&](const loops::Indices& at) {
      using namespace written;  // NOLINT
      const Number place = number_of(at[axis_]), within = place & integer(block - 1),
                   first = place & integer(-block);
      const bool are_whole = size % block == 0;
      std::optional<Before> earlier;
      if (before) earlier = before_block(*before, at, place / integer(block));
      Numbers total;
      for (std::int64_t i = 0; i < std::min(block, size); ++i) {
        // Where there is no such element, this one, which is not taken in.
        const Index along =
            are_whole ? sum_of(index_below(first, size - block + 1), {i})
                      : index_below(i == 0 ? first : minimum(first + integer(i), place), size);
        const Numbers own = level.element(at, along);
        if (i > 0)
          total = chosen(integer(i) <= within, tree_.both(total, own), total);
        else
          total = tree_.takes_before_first ? behind(earlier, own) : own;
      }
      put(level, result, at, at[axis_], tree_.takes_before_first ? total : behind(earlier, total));
    });
  }

  const Tree& tree_;
  const std::size_t axis_;
  const DType wide_;
};

loops::Tensors emit_tree(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs, const Tree& tree) {
  const Aval& aval = inputs[0].aval;
  loops::Tensors arrays;
  for (const loops::Tensor& input : inputs) arrays.push_back(w.in_memory(input));
  const loops::Tensor result = written::make(aval.shape, aval.dtype);
  TreeScan(tree, std::size_t(equation.params.integer("axis")), wide_of(aval.dtype))
      .run(arrays, equation.params.flag("reverse"), result);
  return {result};
}

// Whether there are so many columns, which neighbouring threads read side by side, that a thread
// for each keeps a GPU busy.
bool has_many_columns(const Equation& equation, const Aval& aval) {
  const AxisLoops loops(aval.shape.to_sizes(), int(equation.params.integer("axis")));
  return loops.inner >= 8 && loops.outer * loops.inner >= (1 << 15);
}

written::Number both_of(const std::string& kind, written::Number earlier, written::Number later) {
  if (kind == "sum") return earlier + later;
  if (kind == "prod") return earlier * later;
  // Of equal zeros the later one is the extreme.
  return kind == "max" ? written::maximum(later, earlier) : written::minimum(later, earlier);
}

loops::Tensors emit_cumulation(loops::Writer& w, const Equation& equation,
                               std::span<const loops::Tensor> inputs) {
  const std::string& kind = equation.params.text("kind");
  const Primitive& by = kind == "sum"    ? add_p
                        : kind == "prod" ? mul_p
                        : kind == "max"  ? max_p
                                         : min_p;
  if (!is_written(w, inputs[0].aval)) {
    const written::Writing writing(w, equation.source);
    if (kind == "prod" && has_many_columns(equation, inputs[0].aval))
      return {emit_in_turn(
          w, equation, inputs,
          [](written::Number before, const auto& elements) { return before * elements[0]; },
          [](const auto& elements) { return elements[0]; })};
    return emit_tree(w, equation, inputs, {[&](const auto& earlier, const auto& later) {
                       return written::Numbers{both_of(kind, earlier[0], later[0])};
                     }});
  }
  require_written(w, equation, inputs[0].aval);
  return {emit_running(w, inputs, equation.params,
                       [&](std::optional<loops::Value> before, const loops::Values& elements) {
                         if (!before) return elements[0];
                         // Of equal zeros the later one is the extreme.
                         return w.compute(by, {}, {elements[0], *before}, equation.source);
                       })};
}

loops::Tensors emit_recurrence(loops::Writer& w, const Equation& equation,
                               std::span<const loops::Tensor> inputs) {
  if (!is_written(w, inputs[0].aval)) {
    const written::Writing writing(w, equation.source);
    if (has_many_columns(equation, inputs[0].aval))
      return {emit_in_turn(
          w, equation, inputs,
          [](written::Number before, const auto& elements) {
            return elements[0] * before + elements[1];
          },
          [](const auto& elements) { return elements[1]; })};
    // A stretch turns what comes before it, h, into a h + b.
    const Tree tree{[](const auto& earlier, const auto& later) {
                      return written::Numbers{earlier[0] * later[0],
                                              later[0] * earlier[1] + later[1]};
                    },
                    true};
    return emit_tree(w, equation, inputs, tree);
  }
  require_written(w, equation, inputs[0].aval);
  if (is_complex(inputs[0].aval.dtype)) w.refuse("`recurrence` of complex numbers");
  return {emit_running(w, inputs, equation.params,
                       [&](std::optional<loops::Value> before, const loops::Values& elements) {
                         if (!before) return elements[1];
                         const loops::Value grown =
                             w.compute(mul_p, {}, {elements[0], *before}, equation.source);
                         return w.compute(add_p, {}, {grown, elements[1]}, equation.source);
                       })};
}

// The predecessor of each element in the direction of the scan; fill for the first.
Array previous(const Array& x, int axis, bool reverse, double fill) {
  Shape low(x.ndim(), 0), high(x.ndim(), 0), interior(x.ndim(), 0);
  (reverse ? high : low)[axis] = 1;
  (reverse ? low : high)[axis] = -1;
  return bind(pad_p, {x, Array::literal(fill, x.dtype())},
              {{"low", low}, {"high", high}, {"interior", interior}});
}

}  // namespace

constinit const Primitive cumreduce_p{"cumreduce"};
static const auto cumreduce_def =
    define(cumreduce_p,
           "Running reductions along an axis: kind sum, prod, max or min (NaN wins); from the end "
           "when "
           "reverse. Integers wrap.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          require_dtype("cum" + kind, inputs[0], types_of(kind));
          checked_axis(params, inputs[0], "cum" + kind);
          return std::vector<Aval>{inputs[0]};
        })
        .rule<Emit>(emit_cumulation)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs,
                       const Params& params) {
          const std::string& kind = params.text("kind");
          const int axis = int(params.integer("axis"));
          const bool reverse = params.flag("reverse");
          if (kind == "sum")
            cumulate_with<Sum, numbers>(inputs[0], outputs[0], axis, reverse);
          else if (kind == "prod")
            cumulate_with<Product, numbers>(inputs[0], outputs[0], axis, reverse);
          else if (kind == "max")
            cumulate_with<Maximum, real_numbers | boolean>(inputs[0], outputs[0], axis, reverse);
          else
            cumulate_with<Minimum, real_numbers | boolean>(inputs[0], outputs[0], axis, reverse);
        })
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("cum" + w.params().text("kind"),
                        {w.operand(0), w.dim("axis"), w.flag("reverse")});
        })
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          const std::string& kind = params.text("kind");
          const int axis = int(params.integer("axis"));
          const bool reverse = params.flag("reverse");
          const Array &x = primals[0], &y = outputs[0], &t = tangents[0].array();
          if (kind == "sum") return {Array(bind(cumreduce_p, {t}, params))};
          if (kind == "prod")  // y_i = x_i y_(i-1), so dy_i = x_i dy_(i-1) + y_(i-1) dx_i
            return {lax::linear_recurrence(x, lax::mul(previous(y, axis, reverse, 1), t), axis,
                                           reverse)};
          // The tangent of the latest element that equals the current extreme, or NaN.
          const Array sets = lax::bitwise_or(lax::eq(x, y), lax::ne(x, x));
          const Array position = lax::iota(DType::int32, x.shape(), axis);
          const Array other = reverse ? broadcast_to(highest_of(DType::int32), x.shape())
                                      : lax::zeros_like(position.aval());
          const Array candidates = lax::select(sets, position, other);
          const Array latest =
              reverse ? lax::cummin(candidates, axis, true) : lax::cummax(candidates, axis);
          return {take_along(t, latest, axis)};
        })
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {Array(bind(cumreduce_p, {cotangents[0].array()},
                             params.with("reverse", !params.flag("reverse"))))};
        })
        .rule<Batch>(
            [](Dim, std::span<const Batched> inputs, const Params& params) -> std::vector<Batched> {
              const int dim = *inputs[0].dim, axis = batched_axis(int(params.integer("axis")), dim);
              return {{Array(bind(cumreduce_p, {inputs[0].array}, params.with("axis", Dim(axis)))),
                       dim}};
            })
        .rule<Separate>(separate::beside_axis)
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          // Padding comes last: only a scan from the end reads it, and needs the identity there.
          if (!params.flag("reverse")) return Arrays(bind(cumreduce_p, {inputs[0].padded}, params));
          const std::string& kind = params.text("kind");
          const int axis = int(params.integer("axis"));
          const DType dtype = inputs[0].aval.dtype;
          const Array identity = kind == "sum"
                                     ? Array::literal(is_inexact(dtype) ? -0.0 : 0.0, dtype)
                                 : kind == "prod" ? Array::literal(1, dtype)
                                 : kind == "max"  ? lowest_of(dtype)
                                                  : highest_of(dtype);
          return Arrays(bind(cumreduce_p,
                             {fill_padding(inputs[0], identity, sizes, std::span(&axis, 1))},
                             params));
        })
        .rule<Samples>([] {
          std::vector<Sample> samples;
          const Sample::Input x{{{2, 3, 4}, DType::float64}, Values::distinct};
          for (const char* kind : {"sum", "prod", "max", "min"})
            for (int axis = 0; axis < 3; ++axis)
              for (bool reverse : {false, true})
                samples.push_back(
                    {{x},
                     {{"kind", std::string(kind)}, {"axis", Dim(axis)}, {"reverse", reverse}}});
          samples.push_back({{{{{0, 2}, DType::float64}}},
                             {{"kind", std::string("sum")}, {"axis", Dim(0)}, {"reverse", false}}});
          return samples;
        });
Array lax::cumsum(Operand operand, int axis, bool reverse) {
  return cumreduce("sum", operand, axis, reverse);
}
Array lax::cumprod(Operand operand, int axis, bool reverse) {
  return cumreduce("prod", operand, axis, reverse);
}
Array lax::cummax(Operand operand, int axis, bool reverse) {
  return cumreduce("max", operand, axis, reverse);
}
Array lax::cummin(Operand operand, int axis, bool reverse) {
  return cumreduce("min", operand, axis, reverse);
}

namespace {

template <class T>
void recur(const T* a, const T* b, T* out, const AxisLoops& loops, bool reverse) {
  using A = detail::Compute<T>;
  for_tiles(loops, [&](std::int64_t outer, std::int64_t first, std::int64_t width) {
    A h[tile];
    const std::int64_t base = outer * loops.size * loops.inner + first;
    for (std::int64_t i = 0; i < loops.size; ++i) {
      const std::int64_t at = base + (reverse ? loops.size - 1 - i : i) * loops.inner;
      if (i == 0)
        for (std::int64_t j = 0; j < width; ++j) h[j] = A(b[at + j]);
      else
        for (std::int64_t j = 0; j < width; ++j) h[j] = product(A(a[at + j]), h[j]) + A(b[at + j]);
      for (std::int64_t j = 0; j < width; ++j) out[at + j] = T(h[j]);
    }
  });
}

}  // namespace

constinit const Primitive recurrence_p{"recurrence"};
static const auto recurrence_def =
    define(recurrence_p,
           "h_i = a_i h_(i-1) + b_i along an axis, with h_0 = b_0; from the end of the axis when "
           "reverse.")
        .operands(2)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          for (const Aval& input : inputs) require_dtype("linear_recurrence", input, inexact);
          if (inputs[0].dtype != inputs[1].dtype)
            throw DtypeError("linear_recurrence: operands have dtypes " +
                                 std::string(name_of(inputs[0].dtype)) + " and " +
                                 std::string(name_of(inputs[1].dtype)),
                             "convert one with astype");
          if (!(inputs[0].shape == inputs[1].shape))
            throw ShapeError("linear_recurrence: operands have shapes (" +
                                 inputs[0].shape.to_string() + ") and (" +
                                 inputs[1].shape.to_string() + ")",
                             "give operands of one shape");
          checked_axis(params, inputs[0], "linear_recurrence");
          return std::vector<Aval>{
              {inputs[0].shape, inputs[0].dtype, inputs[0].weak && inputs[1].weak}};
        })
        .rule<Emit>(emit_recurrence)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs,
                       const Params& params) {
          if (num_elements(outputs[0].shape) == 0) return;
          const Buffer a =
              inputs[0].is_dense() ? Buffer({}, inputs[0]) : Buffer::copy_of(inputs[0]);
          const Buffer b =
              inputs[1].is_dense() ? Buffer({}, inputs[1]) : Buffer::copy_of(inputs[1]);
          visit_dtype(outputs[0].dtype, [&](auto element) {
            using T = decltype(element);
            if constexpr (inexact.has(dtype_of<T>()))
              recur(static_cast<const T*>(a.data()), static_cast<const T*>(b.data()),
                    outputs[0].as<T>(), AxisLoops(outputs[0].shape, int(params.integer("axis"))),
                    params.flag("reverse"));
          });
        })
        .rule<Cost>(cost::for_each_operand(2))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("linear_recurrence",
                        {w.operand(0), w.operand(1), w.dim("axis"), w.flag("reverse")});
        })
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          // dh_i = a_i dh_(i-1) + (da_i h_(i-1) + db_i): the recurrence itself
          Tangent forcing = tangents[1];
          if (!tangents[0].is_zero()) {
            const Array before =
                previous(outputs[0], int(params.integer("axis")), params.flag("reverse"), 0);
            forcing = add_tangents(Array(lax::mul(tangents[0].array(), before)), forcing);
          }
          return {Array(bind(recurrence_p, {primals[0], forcing.array()}, params))};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          // Linear in b: g_i = ct_i + a_(i+1) g_(i+1), the recurrence in the opposite direction.
          const bool reverse = params.flag("reverse");
          const Array factors =
              previous(inputs[0].known(), int(params.integer("axis")), !reverse, 0);
          return {Tangent(inputs[0].aval()),
                  Array(bind(recurrence_p, {factors, cotangents[0].array()},
                             params.with("reverse", !reverse)))};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          const bool aligned = inputs[0].dim && inputs[0].dim == inputs[1].dim;
          const int dim = aligned ? *inputs[0].dim : 0;
          const Array a = aligned ? inputs[0].array : batch_to_front(inputs[0], size);
          const Array b = aligned ? inputs[1].array : batch_to_front(inputs[1], size);
          const int axis = batched_axis(int(params.integer("axis")), dim);
          return {{Array(bind(recurrence_p, {a, b}, params.with("axis", Dim(axis)))), dim}};
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          const int axis = int(params.integer("axis"));
          const Dim size = inputs[0].aval.shape[axis];
          if (!params.flag("reverse") || size.is_constant())
            return Arrays(bind(recurrence_p, {inputs[0].padded, inputs[1].padded}, params));
          // From the end: zero up to the last real element, so that its factor has no effect.
          const Array& factors = inputs[0].padded;
          const Array zero = Array::literal(0, factors.dtype());
          const Array last = lax::sub(sizes.value(size), Array::literal(1, DType::int32));
          const Array is_used = lax::lt(lax::iota(DType::int32, {factors.shape(axis)}, 0), last);
          const Array used = lax::broadcast_in_dim(is_used, factors.shape(), std::span(&axis, 1));
          const Array a = lax::select(used, factors, zero);
          const Array b = fill_padding(inputs[1], zero, sizes, std::span(&axis, 1));
          return Arrays(bind(recurrence_p, {a, b}, params));
        })
        .rule<Samples>([] {
          const Sample::Input x{{{3, 4}, DType::float64}};
          std::vector<Sample> samples;
          for (int axis : {0, 1})
            for (bool reverse : {false, true})
              samples.push_back({{x, x}, {{"axis", Dim(axis)}, {"reverse", reverse}}});
          return samples;
        });
Array lax::linear_recurrence(Operand a, Operand b, int axis, bool reverse) {
  const int normal = normalize_axis(axis, b.ndim(), "linear_recurrence");
  return bind(recurrence_p, {a, b}, {{"axis", Dim(normal)}, {"reverse", reverse}});
}

}  // namespace plait
