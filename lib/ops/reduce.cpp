// reduce: sums, products, extremes and logic over axes.
//
// NOTE: [reduction order] The order of additions depends on the operand's shape and axes alone,
// never on strides, threads or fusion, so that every way of running a program gives the same bits:
// rows in blocks of `block` elements, each by eight interleaved accumulators, partial sums combined
// pairwise.
// SPDX-License-Identifier: Apache-2.0
#include "ops/axis.h"

#include <plait/base/pool.h>
#include <plait/families.h>
#include <plait/ops.h>

#include <cmath>

namespace plait {
namespace {

constexpr std::int64_t block = 1024;    // elements of a row reduced together
constexpr std::int64_t row_block = 64;  // rows of a column reduction accumulated together

// A bool as a number of its own type: std::vector<bool> is no array.
struct Bool {
  bool value;
  Bool() = default;
  explicit Bool(bool value) : value(value) {}
  friend bool operator>(Bool a, Bool b) { return a.value > b.value; }
  friend bool operator<(Bool a, Bool b) { return a.value < b.value; }
  friend bool operator!=(Bool a, Bool b) { return a.value != b.value; }
  friend bool operator&(Bool a, Bool b) { return a.value && b.value; }
  friend bool operator|(Bool a, Bool b) { return a.value || b.value; }
};

struct Sum {
  template <class T>
  static T identity() {
    return T(0);
  }
  template <class T>
  static T combine(T a, T b) {
    return T(a + b);
  }
};
struct Product {
  template <class T>
  static T identity() {
    return T(1);
  }
  template <class T>
  static T combine(T a, T b) {
    return T(a * b);
  }
};
struct Maximum {
  template <class T>
  static T identity() {
    if constexpr (std::is_same_v<T, Bool>)
      return Bool(false);
    else
      return std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                  : std::numeric_limits<T>::lowest();
  }
  template <class T>
  static T combine(T a, T b) {
    return a > b || a != a ? a : b;
  }  // NaN wins
};
struct Minimum {
  template <class T>
  static T identity() {
    if constexpr (std::is_same_v<T, Bool>)
      return Bool(true);
    else
      return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::max();
  }
  template <class T>
  static T combine(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct And {
  template <class T>
  static T identity() {
    if constexpr (std::is_same_v<T, Bool>)
      return Bool(true);
    else
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

// One block of a row: eight accumulators, then a fixed tree.
template <class Op, class T, class A>
A reduce_block(const T* x, std::int64_t n) {
  A lanes[8];
  for (A& lane : lanes) lane = Op::template identity<A>();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane) lanes[lane] = Op::combine(lanes[lane], A(x[i + lane]));
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] = Op::combine(lanes[lane], A(x[i]));
  for (int width = 4; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane)
      lanes[lane] = Op::combine(lanes[lane], lanes[lane + width]);
  return lanes[0];
}

template <class Op, class A>
A combine_pairwise(const A* x, std::int64_t n) {
  if (n == 1) return x[0];
  const std::int64_t half = n / 2;
  return Op::combine(combine_pairwise<Op>(x, half), combine_pairwise<Op>(x + half, n - half));
}

template <class Op, class T, class A>
A reduce_row(const T* x, std::int64_t n) {
  if (n <= block) return reduce_block<Op, T, A>(x, n);
  std::vector<A> partials((n + block - 1) / block);
  for (std::size_t b = 0; b < partials.size(); ++b)
    partials[b] =
        reduce_block<Op, T, A>(x + b * block, std::min(block, n - std::int64_t(b) * block));
  return combine_pairwise<Op>(partials.data(), partials.size());
}

// Rows of n elements each to one number: the reduced axes are last.
template <class Op, class T, class A>
void reduce_rows(const T* x, T* out, std::int64_t rows, std::int64_t n) {
  if (rows == 1 && n > 16 * block) {  // one long row: its blocks in parallel, the same tree
    std::vector<A> partials((n + block - 1) / block);
    parallel_for(partials.size(), 128, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b)
        partials[b] = reduce_block<Op, T, A>(x + b * block, std::min(block, n - b * block));
    });
    *out = T(combine_pairwise<Op>(partials.data(), partials.size()));
    return;
  }
  parallel_for(rows, std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(n, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row)
                   out[row] = T(reduce_row<Op, T, A>(x + row * n, n));
               });
}

// n rows of `columns` elements to one row: the reduced axes are first. Blocks of rows are added up
// in order, and the blocks pairwise.
template <class Op, class T, class A>
void reduce_columns(const T* x, T* out, std::int64_t n, std::int64_t columns) {
  constexpr std::int64_t tile = 256;
  const std::int64_t tiles = (columns + tile - 1) / tile;
  parallel_for(tiles, std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(n * tile, 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 const std::int64_t blocks =
                     std::max<std::int64_t>(1, (n + row_block - 1) / row_block);
                 std::vector<A> partials(blocks * tile), scratch(blocks);
                 for (std::int64_t t = begin; t < end; ++t) {
                   const std::int64_t first = t * tile, width = std::min(tile, columns - first);
                   for (std::int64_t b = 0; b < blocks; ++b) {
                     A* partial = partials.data() + b * tile;
                     std::fill_n(partial, width, Op::template identity<A>());
                     for (std::int64_t i = b * row_block; i < std::min(n, (b + 1) * row_block); ++i)
                       for (std::int64_t j = 0; j < width; ++j)
                         partial[j] = Op::combine(partial[j], A(x[i * columns + first + j]));
                   }
                   for (std::int64_t j = 0; j < width; ++j) {
                     for (std::int64_t b = 0; b < blocks; ++b) scratch[b] = partials[b * tile + j];
                     out[first + j] = T(combine_pairwise<Op>(scratch.data(), blocks));
                   }
                 }
               });
}

template <class Op, class T>
void reduce_typed(const View& input, const View& output, const std::vector<char>& reduced) {
  using A = detail::Compute<T>;
  // Axes of size 1 belong to either side; what is left is reduced-first, reduced-last, or mixed.
  const int rank = input.rank();
  bool last = true, first = true;
  for (int i = 0; i + 1 < rank; ++i) {
    last &= !(reduced[i] && !reduced[i + 1]);
    first &= !(!reduced[i] && reduced[i + 1]);
  }
  std::int64_t n = 1, kept = 1;
  for (int i = 0; i < rank; ++i) (reduced[i] ? n : kept) *= input.shape[i];
  if (kept == 0) return;
  if (!last && !first) {
    View moved{input.data, input.dtype, {}, {}};
    for (char want : {0, 1})
      for (int i = 0; i < rank; ++i)
        if (reduced[i] == want)
          moved.shape.push_back(input.shape[i]), moved.strides.push_back(input.strides[i]);
    const Buffer dense = Buffer::copy_of(moved);
    return reduce_rows<Op, T, A>(static_cast<const T*>(dense.data()), output.as<T>(), kept, n);
  }
  Buffer copy;
  const T* x = input.as<T>();
  if (!input.is_dense()) {
    copy = Buffer::copy_of(input);
    x = static_cast<const T*>(copy.data());
  }
  if (last)
    reduce_rows<Op, T, A>(x, output.as<T>(), kept, n);
  else
    reduce_columns<Op, T, A>(x, output.as<T>(), n, kept);
}

template <class Op, DTypes types>
void reduce_with(const View& input, const View& output, const std::vector<char>& reduced) {
  visit_dtype(input.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, bool> && types.has(DType::bool_))
      reduce_typed<Op, Bool>(input, output, reduced);
    else if constexpr (types.has(dtype_of<T>()))
      reduce_typed<Op, T>(input, output, reduced);
  });
}

DTypes types_of(const std::string& kind) {
  if (kind == "sum" || kind == "prod") return numbers;
  if (kind == "max" || kind == "min") return real_numbers | boolean;
  if (kind == "and" || kind == "or") return integers | boolean;
  throw ValueError("reduce: there is no kind '" + kind + "'",
                   "choose sum, prod, max, min, and, or");
}

// The value that changes nothing, as a literal.
Array identity_of(const std::string& kind, DType dtype) {
  Literal literal{dtype, false, 0, 0, 0};
  if (kind == "prod") return Array::literal(1, dtype);
  if (kind == "and") literal.integer = dtype == DType::bool_ ? 1 : -1;
  if (kind == "max" || kind == "min") {
    const bool largest = kind == "min";
    if (is_inexact(dtype))
      literal.real = largest ? INFINITY : -INFINITY;
    else
      visit_dtype(dtype, [&](auto element) {
        using T = decltype(element);
        if constexpr (std::is_integral_v<T>)
          literal.integer = std::int64_t(largest ? std::numeric_limits<T>::max()
                                                 : std::numeric_limits<T>::lowest());
      });
  }
  return Array::literal(cast(literal, dtype, false));
}

Array reduce(const char* kind, const Array& operand, std::span<const int> axes) {
  if (axes.empty()) return operand;
  std::vector<int> sorted(axes.begin(), axes.end());
  for (int& axis : sorted)
    axis = normalize_axis(axis, operand.ndim(), std::string("reduce_") + kind);
  std::sort(sorted.begin(), sorted.end());
  return bind(reduce_p, {operand}, {{"kind", std::string(kind)}, {"axes", to_shape(sorted)}});
}

std::vector<int> unreduced_axes(int rank, const std::vector<int>& axes) {
  std::vector<int> kept;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(i);
  return kept;
}

// The derivative of a product by each factor is the product of those before it and those after it,
// which is exact where a factor is zero.
Array product_tangent(const Array& x, const Array& t) {  // over axis 0
  const Array one = Array::literal(1, x.dtype());
  auto others = [&](bool reverse) {
    const Array running = bind(
        cumreduce_p, {x}, {{"kind", std::string("prod")}, {"axis", Dim(0)}, {"reverse", reverse}});
    std::vector<lax::Padding> padding(x.ndim());
    padding[0] = reverse ? lax::Padding{-1, 1, 0} : lax::Padding{1, -1, 0};
    return lax::pad(running, one, padding);
  };
  const Array before = others(false), after = others(true);
  return lax::reduce_sum(lax::mul(t, lax::mul(before, after)), std::vector<int>{0});
}

}  // namespace

constinit const Primitive reduce_p{"reduce"};
static const auto reduce_def =
    define(reduce_p,
           "Combines the elements along axes: kind sum, prod, max, min (NaN wins), and, or. An "
           "empty axis gives the "
           "kind's identity.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          require_dtype("reduce_" + kind, inputs[0], types_of(kind));
          Aval aval{{}, inputs[0].dtype, inputs[0].weak};
          const std::vector<int> axes = params.ints("axes");
          for (std::size_t i = 0; i < axes.size(); ++i) {
            equation_axis(axes[i], inputs[0].rank(), "reduce_" + kind);
            if (i && axes[i] <= axes[i - 1])
              throw ShapeError("reduce_" + kind + ": axes (" +
                                   params.get<Shape>("axes").to_string() + ") are not increasing",
                               "name each axis once");
          }
          for (int axis : unreduced_axes(inputs[0].rank(), axes))
            aval.shape.push_back(inputs[0].shape[axis]);
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval>, const Params& params) {
          return params.get<Shape>("axes").empty();
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              std::vector<char> reduced(inputs[0].rank(), 0);
              for (int axis : params.ints("axes")) reduced[axis] = 1;
              const std::string& kind = params.text("kind");
              if (kind == "sum")
                reduce_with<Sum, numbers>(inputs[0], outputs[0], reduced);
              else if (kind == "prod")
                reduce_with<Product, numbers>(inputs[0], outputs[0], reduced);
              else if (kind == "max")
                reduce_with<Maximum, real_numbers | boolean>(inputs[0], outputs[0], reduced);
              else if (kind == "min")
                reduce_with<Minimum, real_numbers | boolean>(inputs[0], outputs[0], reduced);
              else if (kind == "and")
                reduce_with<And, integers | boolean>(inputs[0], outputs[0], reduced);
              else
                reduce_with<Or, integers | boolean>(inputs[0], outputs[0], reduced);
            })
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          const std::string& kind = params.text("kind");
          const std::vector<int> axes = params.ints("axes");
          const Array &x = primals[0], &t = tangents[0].array();
          if (kind == "sum") return {Array(bind(reduce_p, {t}, params))};
          if (kind == "prod") {
            std::vector<int> order = axes;
            Dim n = 1;
            for (int axis : axes) n = n * x.shape(axis);
            Shape folded{n};
            for (int axis : unreduced_axes(x.ndim(), axes)) {
              order.push_back(axis);
              folded.push_back(x.shape(axis));
            }
            if (n == Dim(0)) return {Tangent(outputs[0].aval())};
            return {product_tangent(lax::reshape(lax::transpose(x, order), folded),
                                    lax::reshape(lax::transpose(t, order), folded))};
          }
          if (kind == "max" || kind == "min") {  // winners share the tangent equally
            const std::vector<int> kept = unreduced_axes(x.ndim(), axes);
            const Array winners = lax::convert_element_type(
                lax::eq(x, lax::broadcast_in_dim(outputs[0], x.shape(), kept)), x.dtype());
            return {Array(lax::reduce_sum(t * winners, axes) / lax::reduce_sum(winners, axes))};
          }
          return {Tangent(outputs[0].aval())};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          const Shape& shape = inputs[0].aval().shape;
          return {lax::broadcast_in_dim(cotangents[0].array(), shape,
                                        unreduced_axes(shape.rank(), params.ints("axes")))};
        })
        .rule<Batch>(
            [](Dim, std::span<const Batched> inputs, const Params& params) -> std::vector<Batched> {
              const int dim = *inputs[0].dim;
              Shape axes;
              int before = 0;
              for (int axis : params.ints("axes")) {
                axes.push_back(axis < dim ? axis : axis + 1);
                before += axis < dim;
              }
              return {{Array(bind(reduce_p, {inputs[0].array}, params.with("axes", axes))),
                       dim - before}};
            })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          const std::vector<int> axes = params.ints("axes");
          const Array filled = fill_padding(
              inputs[0], identity_of(params.text("kind"), inputs[0].aval.dtype), sizes, axes);
          return Arrays(bind(reduce_p, {filled}, params));
        })
        .rule<Samples>([] {
          std::vector<Sample> samples;
          const Sample::Input x{{{2, 3, 4}, DType::float64}, Sample::Input::Values::distinct};
          const Sample::Input b{{{2, 3}, DType::bool_}, Sample::Input::Values::boolean};
          for (const char* kind : {"sum", "prod", "max", "min"})
            for (const Shape& axes : {Shape{0}, Shape{2}, Shape{1}, Shape{0, 2}, Shape{0, 1, 2}})
              samples.push_back({{x}, {{"kind", std::string(kind)}, {"axes", axes}}});
          for (const char* kind : {"and", "or"})
            samples.push_back({{b}, {{"kind", std::string(kind)}, {"axes", Shape{1}}}});
          return samples;
        });
Array lax::reduce_sum(Operand operand, std::span<const int> axes) {
  return reduce("sum", operand, axes);
}
Array lax::reduce_prod(Operand operand, std::span<const int> axes) {
  return reduce("prod", operand, axes);
}
Array lax::reduce_max(Operand operand, std::span<const int> axes) {
  return reduce("max", operand, axes);
}
Array lax::reduce_min(Operand operand, std::span<const int> axes) {
  return reduce("min", operand, axes);
}
Array lax::reduce_and(Operand operand, std::span<const int> axes) {
  return reduce("and", operand, axes);
}
Array lax::reduce_or(Operand operand, std::span<const int> axes) {
  return reduce("or", operand, axes);
}

}  // namespace plait
