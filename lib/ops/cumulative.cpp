// Running reductions along an axis: cumreduce, and the linear recurrence that differentiates it.
//
// Elements are combined one after the other from the start of the axis, as NumPy does, so that the
// result at a position depends only on what comes before it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include "order.h"

namespace plait {
namespace {

using Values = Sample::Input::Values;

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    return T(a + b);
  }
};
struct Product {
  template <class T>
  static T combine(T a, T b) {
    return T(a * b);
  }
};
struct Maximum {  // NaN stays
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

// What T accumulates in: 16-bit floats in float32, integers wrapping.
template <class Op, class T>
auto accumulator() {
  constexpr bool wraps =
      std::is_integral_v<T> && (std::is_same_v<Op, Sum> || std::is_same_v<Op, Product>);
  if constexpr (wraps)
    return std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>();
  else
    return detail::Compute<T>();
}

// Columns accumulated together: enough for the vector units, few enough for the first-level cache.
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

template <class Op, class T>
void cumulate(const T* x, T* out, const AxisLoops& loops, bool reverse) {
  using A = decltype(accumulator<Op, T>());
  const std::int64_t n = loops.size, step = reverse ? -1 : 1;
  if (loops.inner == 1) {
    const std::int64_t start = reverse ? n - 1 : 0,
                       groups = (loops.outer + rows_at_once - 1) / rows_at_once;
    parallel_for(groups, std::max<std::int64_t>(1, 32768 / (rows_at_once * n)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin * rows_at_once;
                        row < std::min(loops.outer, end * rows_at_once);) {
                     const std::int64_t at = row * n + start;
                     if (row + rows_at_once <= loops.outer) {
                       A total[rows_at_once];
                       for (int r = 0; r < rows_at_once; ++r)
                         out[at + r * n] = T(total[r] = A(x[at + r * n]));
                       for (std::int64_t i = 1, k = at + step; i < n; ++i, k += step)
                         for (int r = 0; r < rows_at_once; ++r)
                           out[k + r * n] = T(total[r] = Op::combine(total[r], A(x[k + r * n])));
                       row += rows_at_once;
                     } else {
                       A total = A(x[at]);
                       out[at] = T(total);
                       for (std::int64_t i = 1, k = at + step; i < n; ++i, k += step)
                         out[k] = T(total = Op::combine(total, A(x[k])));
                       ++row;
                     }
                   }
                 });
    return;
  }
  for_tiles(loops, [&](std::int64_t outer, std::int64_t first, std::int64_t width) {
    A total[tile];
    const std::int64_t base = outer * n * loops.inner + first;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = base + (reverse ? n - 1 - i : i) * loops.inner;
      if (i == 0)
        for (std::int64_t j = 0; j < width; ++j) total[j] = A(x[at + j]);
      else
        for (std::int64_t j = 0; j < width; ++j) total[j] = Op::combine(total[j], A(x[at + j]));
      for (std::int64_t j = 0; j < width; ++j) out[at + j] = T(total[j]);
    }
  });
}

template <class Op, DTypes types>
void cumulate_with(const View& input, const View& output, int axis, bool reverse) {
  if (num_elements(output.shape) == 0) return;
  const Buffer dense = input.is_dense() ? Buffer({}, input) : Buffer::copy_of(input);
  visit_dtype(input.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (types.has(dtype_of<T>()))
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

// Each element's neighbour before it in the direction of the scan; fill for the first.
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
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          const std::string& kind = params.text("kind");
          const int axis = int(params.integer("axis"));
          const bool reverse = params.flag("reverse");
          const Array &x = primals[0], &y = outputs[0], &t = tangents[0].array();
          if (kind == "sum") return {Array(bind(cumreduce_p, {t}, params))};
          if (kind == "prod")  // y_i = x_i y_(i-1), so dy_i = x_i dy_(i-1) + y_(i-1) dx_i
            return {lax::linear_recurrence(x, lax::mul(previous(y, axis, reverse, 1), t), axis,
                                           reverse)};
          // The tangent of the latest element that is the extreme so far, or NaN.
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
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          // Padding comes last: only a scan from the end meets it, and must find the identity.
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
        for (std::int64_t j = 0; j < width; ++j) h[j] = A(a[at + j]) * h[j] + A(b[at + j]);
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
          // Linear in b: g_i = ct_i + a_(i+1) g_(i+1), the recurrence from the other end.
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
          // From the end: zero up to the last real element, whose factor has nothing to multiply.
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
