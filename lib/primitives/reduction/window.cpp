// reduce_window: sums, products and extremes over windows.
//
// A window of several axes is reduced one axis at a time. Kind argmax (argmin) gives the position
// of the extreme in its window, counted row-major, and -1 for a window of padding alone:
// derivatives of max and min select tangents with it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/reduction/reduce.h"
#include "primitives/spelling.h"
#include "window.h"

#include <numeric>

namespace plait {
namespace {

using Values = Sample::Input::Values;

Params params_of(const std::string& kind, const Windows& w) {
  return {{"kind", kind},
          {"window_dimensions", w.window},
          {"window_strides", w.strides},
          {"padding_low", w.low},
          {"padding_high", w.high},
          {"base_dilation", w.base_dilation},
          {"window_dilation", w.window_dilation}};
}

DTypes types_of(const std::string& kind) {
  if (kind == "sum" || kind == "prod") return numbers;
  if (kind == "max" || kind == "min" || kind == "argmax" || kind == "argmin")
    return real_numbers | boolean;
  throw ValueError("reduce_window: there is no kind '" + kind + "'",
                   "choose sum, prod, max, min, argmax or argmin");
}

// --- Derivatives --------------------------------------------------------------------------------

Array integer(std::int64_t value) {
  return Array::literal(Literal{DType::int32, false, value, 0, 0});
}

// Windows of an operand whose windowed axes are merged into one: [axes without windows ...,
// positions].
struct Flattened {
  std::vector<int> axes, order;  // the windowed axes; the others, then these
  Shape rest;                    // sizes of the others
  Flattened(const Windows& w, const Shape& shape) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (is_trivial(w, i))
        order.push_back(i), rest.push_back(shape[i]);
      else
        axes.push_back(i);
    }
    order.insert(order.end(), axes.begin(), axes.end());
  }
  Array flatten(const Array& x) const {
    Shape merged = rest;
    Dim size = 1;
    for (int axis : axes) size = size * x.shape(axis);
    merged.push_back(size);
    return lax::reshape(lax::transpose(x, order), merged);
  }
  Array unflatten(const Array& x, const Shape& shape) const {
    Shape moved;
    std::vector<int> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      moved.push_back(shape[order[i]]);
      back[order[i]] = int(i);
    }
    return lax::transpose(lax::reshape(x, moved), back);
  }
};

// The index in the operand's merged axes that the window of each result reads at a position: an
// int32, and whether it is an element at all. place has the results' shape, or one more axis at the
// end.
struct Reads {
  Array position, is_element;
};
Reads reads_of(const Windows& w, const Flattened& flat, const Shape& operand, const Array& place) {
  const Array zero = integer(0);
  Reads reads{lax::zeros_like(place.aval()), lax::ge(place, zero)};
  Array rest = lax::max(place, zero);
  Dim stride = 1;
  for (std::size_t i = flat.axes.size(); i-- > 0;) {
    const int axis = flat.axes[i];
    const Array k = lax::rem(rest, index_of(w.window[axis]));
    rest = lax::div(rest, index_of(w.window[axis]));
    const Array window =
        lax::mul(lax::iota(DType::int32, place.shape(), axis), index_of(w.strides[axis]));
    const Array offset =
        lax::sub(lax::mul(k, index_of(w.window_dilation[axis])), index_of(w.low[axis]));
    const Array position = lax::add(window, offset), dilation = index_of(w.base_dilation[axis]);
    const Array element = lax::div(position, dilation);
    const Array inside =
        lax::bitwise_and(lax::ge(position, zero), lax::lt(element, index_of(operand[axis])));
    const Array on_element = lax::eq(lax::rem(position, dilation), zero);
    reads.is_element = lax::bitwise_and(reads.is_element, lax::bitwise_and(inside, on_element));
    reads.position = lax::add(reads.position, lax::mul(element, index_of(stride)));
    stride = stride * operand[axis];
  }
  reads.position = lax::select(reads.is_element, reads.position, zero);
  return reads;
}

// The tangent at the position of the extreme.
Array extreme_tangent(const std::string& kind, const Windows& w, const Array& x, const Array& t,
                      const Shape& out) {
  const Flattened flat(w, x.shape());
  const Array place = bind(reduce_window_p, {x}, params_of("arg" + kind, w));
  const Reads reads = reads_of(w, flat, x.shape(), place);
  const Array picked = take_along(flat.flatten(t), flat.flatten(reads.position), flat.rest.rank());
  return lax::select(reads.is_element, flat.unflatten(picked, out), Array::literal(0, t.dtype()));
}

// Adjacent windows, without padding or holes: an element is in at most one of them.
bool is_tiling(const Windows& w, const Shape& shape) {
  for (int i = 0; i < shape.rank(); ++i)
    if (!w.window[i].is_constant() || !(w.strides[i] == w.window[i]) || !(w.low[i] == Dim(0)) ||
        !w.high[i].is_constant() || w.high[i].constant() > 0 || !(w.base_dilation[i] == Dim(1)) ||
        !(w.window_dilation[i] == Dim(1)))
      return false;
  return true;
}

// The same for tiles: the tangent of each whose position is that of the extreme. In the transpose
// an element compares its own position with that of the extreme, and nothing is scattered.
Array extreme_tangent_of_tiles(const std::string& kind, const Windows& w, const Array& x,
                               const Array& t, const Shape& out) {
  const Array place = bind(reduce_window_p, {x}, params_of("arg" + kind, w));
  Shape start, limit, tiles, window;
  std::vector<int> place_axes, window_axes;
  for (int i = 0; i < out.rank(); ++i) {
    start.push_back(0);
    limit.push_back(out[i] * w.window[i]);
    place_axes.push_back(tiles.rank());
    tiles.push_back(out[i]);
    if (w.window[i] == Dim(1)) continue;
    window_axes.push_back(tiles.rank());
    tiles.push_back(w.window[i]);
    window.push_back(w.window[i]);
  }
  const Array whole = lax::slice(t, start, limit);
  const Array own = lax::reshape(lax::iota(DType::int32, {window.num_elements()}, 0), window);
  const Array chosen = lax::eq(lax::broadcast_in_dim(own, tiles, window_axes),
                               lax::broadcast_in_dim(place, tiles, place_axes));
  return lax::reduce_sum(
      lax::select(chosen, lax::reshape(whole, tiles), lax::full(tiles, 0, t.dtype())), window_axes);
}

// The derivative of a product with respect to each factor is the product of the others: those
// before it times those after it, which is exact where a factor is zero.
Array product_tangent(const Windows& w, const Array& x, const Array& t, const Shape& out) {
  const Flattened flat(w, x.shape());
  Shape patches = out;
  patches.push_back(w.window.num_elements());
  const int last = patches.rank() - 1;
  const Reads reads = reads_of(w, flat, x.shape(), lax::iota(DType::int32, patches, last));
  std::vector<int> order = flat.order;  // patch axes: merged positions are [windows, places]
  order.push_back(last);
  Shape moved, merged = flat.rest;
  Dim size = 1;
  for (int axis : order) {
    moved.push_back(patches[axis]);
    if (moved.rank() > flat.rest.rank()) size = size * patches[axis];
  }
  merged.push_back(size);
  const Array positions = lax::reshape(lax::transpose(reads.position, order), merged);
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[order[i]] = int(i);
  auto patches_of = [&](const Array& array, double fill) {
    const Array picked = take_along(flat.flatten(array), positions, flat.rest.rank());
    return lax::select(reads.is_element, lax::transpose(lax::reshape(picked, moved), back),
                       Array::literal(fill, array.dtype()));
  };
  const Array factors = patches_of(x, 1), tangents = patches_of(t, 0);
  auto others = [&](bool reverse) {
    Shape low(patches.rank(), 0), high(patches.rank(), 0);
    (reverse ? high : low)[last] = 1;
    (reverse ? low : high)[last] = -1;
    const Array shifted =
        bind(pad_p, {factors, Array::literal(1, x.dtype())},
             {{"low", low}, {"high", high}, {"interior", Shape(patches.rank(), 0)}});
    return lax::cumprod(shifted, last, reverse);
  };
  const Array before = others(false), after = others(true);
  return lax::reduce_sum(lax::mul(lax::mul(tangents, before), after), std::vector<int>{last});
}

Arrays mask_reduce_window(std::span<const Masked> inputs, std::span<const Aval> outputs,
                          const Params& params, const SizeValues& sizes) {
  const Windows real = windows_of(params);
  const std::string& kind = params.text("kind");
  for (const Shape* list : {&real.window, &real.strides, &real.window_dilation})
    if (!list->is_constant())
      throw ShapeError(
          "mask: reduce_window_" + kind + " has windows or strides of named sizes: window (" +
              real.window.to_string() + "), strides (" + real.strides.to_string() + ")",
          "reduce over the whole axis, or give windows and strides as integers");
  std::vector<int> axes(inputs[0].aval.rank());
  std::iota(axes.begin(), axes.end(), 0);
  auto reduce = [&](const std::string& with, const Masked& operand, const Array& fill) -> Array {
    Windows w = real;
    const Masked placed = place_under_windows(operand, fill, axes, w, sizes);
    for (int axis : axes)
      w.high[axis] =
          high_for(sizes.bound(outputs[0].shape[axis]), placed.padded.shape(axis), w, axis);
    return bind(reduce_window_p, {placed.padded}, params_of(with, w));
  };
  const Array fill = window_identity(kind, inputs[0].aval.dtype);
  const Array result = reduce(kind, inputs[0], fill);
  if (kind != "argmax" && kind != "argmin") return {result};
  // An extreme equal to the fill value may come from padding: then the position is the first real
  // element.
  const Array extreme = reduce(kind.substr(3), inputs[0], fill), none = integer(0);
  const Aval flags{inputs[0].aval.shape, DType::int32};
  const Masked ones{lax::full(inputs[0].padded.shape(), 1, DType::int32), flags};
  const Array first = lax::select(lax::gt(reduce("max", ones, none), none),
                                  reduce("argmax", ones, none), integer(-1));
  return {lax::select(lax::eq(extreme, fill), first, result)};
}

Array reduce_window(const std::string& kind, const Array& operand, const Shape& window,
                    const Shape& strides, const lax::WindowPadding& padding,
                    const Shape& base_dilation, const Shape& window_dilation) {
  const int rank = operand.ndim();
  Windows w{window, or_ones(strides, rank),       {},
            {},     or_ones(base_dilation, rank), or_ones(window_dilation, rank)};
  resolve_padding("reduce_window_" + kind, padding, operand.shape(), w);
  return bind(reduce_window_p, {operand}, params_of(kind, w));
}

// --- In loop programs ----------------------------------------------------------------------------

// What the windows of one array read.
class WindowReader {
 public:
  WindowReader(loops::Writer& w, const Windows& windows, const loops::Tensor& operand)
      : windows_(windows), x_(w.in_memory(operand)), sizes_(windows.window.to_sizes()) {}

  std::int64_t count() const { return num_elements(sizes_); }
  // The element at a place of a window, counted row-major, in another dtype, and whether there is
  // one.
  struct Element {
    written::Number number;
    std::optional<written::Number> is_element;
  };
  Element element(const loops::Indices& window, const loops::Index& place, DType dtype) const {
    const loops::Indices digits = written::digits_of(place, sizes_);
    loops::Indices at;
    Element element;
    for (int axis = 0; axis < x_.aval.rank(); ++axis) {
      const WindowRead read = read_of(windows_, axis, x_.aval.shape[axis].constant(),
                                      window[std::size_t(axis)], digits[std::size_t(axis)]);
      at.push_back(read.element);
      require_too(element.is_element, read.is_element);
    }
    element.number = written::cast(written::get(x_, at), dtype);
    return element;
  }

 private:
  const Windows& windows_;
  const loops::Tensor x_;
  const Sizes64 sizes_;
};

// The place of the extreme of a window: the first one, unless one is NaN.
written::Number place_of_extreme(const WindowReader& reader, const loops::Indices& window,
                                 DType dtype, bool is_of_least) {
  using namespace written;  // NOLINT
  const Number none = literal(-1, DType::int32), zero = literal(0, DType::int32);
  return repeated(reader.count(), {literal(0, dtype), none},
                  [&](const Index& place, const Numbers& carried) {
                    const auto [x, is_element] = reader.element(window, place, dtype);
                    const Number best = carried[0], at = carried[1];
                    Number wins = is_of_least ? x < best : x > best;
                    if (is_floating(dtype)) wins = wins | (is_nan(x) & !is_nan(best));
                    wins = wins | (at < zero);
                    if (is_element) wins = wins & *is_element;
                    return Numbers{select(wins, x, best),
                                   select(wins, cast(number_of(place), DType::int32), at)};
                  })[1];
}

loops::Tensors emit_reduce_window(loops::Writer& w, const Equation& equation,
                                  std::span<const loops::Tensor> inputs) {
  using namespace written;  // NOLINT
  require_no_kernels(w);
  const Writing writing(w, equation.source);
  const std::string& kind = equation.params.text("kind");
  const DType dtype = inputs[0].aval.dtype,
              wide = dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
  const bool is_place = kind == "argmax" || kind == "argmin";
  const Windows windows = windows_of(equation.params);
  const WindowReader reader(w, windows, inputs[0]);
  Shape shape;
  for (int axis = 0; axis < inputs[0].aval.rank(); ++axis)
    shape.push_back(num_windows(inputs[0].aval.shape[axis], windows, axis));
  const loops::Tensor result = make(shape, is_place ? DType::int32 : dtype);
  const auto reduced = [&](const Indices& window) {
    const Number identity{w.literal(identity_of(kind, wide)), wide};
    if (reader.count() == 0) return identity;
    const auto term = [&](const Index& place) {
      const auto [x, is_element] = reader.element(window, place, wide);
      return is_element ? select(*is_element, x, identity) : x;
    };
    // As the kernel adds up an axis, where one thread has the window.
    constexpr std::int64_t most_in_turn = 15;
    return reader.count() <= most_in_turn
               ? combined_in_turn(combining(kind), identity, reader.count(), term)
               : combined(combining(kind), identity, reader.count(), term);
  };
  for_all(shape, [&](const Indices& window) {
    put(result, window,
        is_place ? place_of_extreme(reader, window, wide, kind == "argmin") : reduced(window));
  });
  return {result};
}

double window_flops(cost::Avals, cost::Avals outputs, const Params& params) {
  return elements_of(outputs[0]) * elements_of(windows_of(params).window);
}

}  // namespace

constinit const Primitive reduce_window_p{"reduce_window"};
static const auto reduce_window_def =
    define(reduce_window_p,
           "Combines the elements under windows: kind sum, prod, max or min (NaN wins), or argmax "
           "and argmin, the place of the "
           "extreme in its window, -1 where there is none. Padding and holes do not count; an "
           "empty window gives the kind's "
           "identity.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          const std::string name = "reduce_window_" + kind;
          require_dtype(name, inputs[0], types_of(kind));
          const Windows w = windows_of(params);
          check_windows(name, w, inputs[0].rank(), inputs[0]);
          Aval aval = inputs[0];
          for (int i = 0; i < aval.rank(); ++i)
            aval.shape[i] = num_windows(inputs[0].shape[i], w, i);
          if (kind == "argmax" || kind == "argmin") aval.dtype = DType::int32, aval.weak = false;
          return std::vector<Aval>{aval};
        })
        .rule<Eval>(eval_reduce_window)
        .rule<Emit>(emit_reduce_window)
        .rule<Cost>(cost::arithmetic(window_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          const std::string& kind = params.text("kind");
          const Array &x = primals[0], &t = tangents[0].array();
          const Windows w = windows_of(params);
          if (kind == "sum") return {Array(bind(reduce_window_p, {t}, params))};
          if (kind == "argmax" || kind == "argmin" || x.shape().num_elements() == Dim(0))
            return {Tangent(outputs[0].aval())};
          if (Flattened(w, x.shape()).axes.empty()) return {t};
          if (kind == "prod") return {product_tangent(w, x, t, outputs[0].shape())};
          return {(is_tiling(w, x.shape()) ? extreme_tangent_of_tiles : extreme_tangent)(
              kind, w, x, t, outputs[0].shape())};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          // Each element sums the cotangents of the windows that read it: windows over them, with
          // strides and dilations exchanged.
          const Array& ct = cotangents[0].array();
          const Shape& shape = inputs[0].aval().shape;
          const Windows w = windows_of(params);
          Windows back{w.window, w.base_dilation, w.low, w.high, w.strides, w.window_dilation};
          for (int i = 0; i < shape.rank(); ++i) {
            back.low[i] = dilated_size(w.window[i], w.window_dilation[i]) - w.low[i] - 1;
            back.high[i] = high_for(shape[i], ct.shape(i), back, i);
          }
          return {Array(bind(reduce_window_p, {ct}, params_of("sum", back)))};
        })
        .rule<Batch>([](Dim, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          const int dim = *inputs[0].dim;
          Windows w = windows_of(params);
          for (Shape* list : {&w.window, &w.strides, &w.base_dilation, &w.window_dilation})
            list->insert(dim, 1);
          for (Shape* list : {&w.low, &w.high}) list->insert(dim, 0);
          return {
              {Array(bind(reduce_window_p, {inputs[0].array}, params_of(params.text("kind"), w))),
               dim}};
        })
        .rule<Mask>(mask_reduce_window)
        .rule<Samples>([] {
          const Sample::Input row{{{7}, DType::float64}, Values::distinct},
              image{{{2, 5, 6}, DType::float64}, Values::distinct};
          std::vector<Sample> samples;
          for (const char* kind : {"sum", "prod", "max", "min", "argmax"}) {
            auto add = [&](const Sample::Input& x, const Windows& w) {
              samples.push_back({{x}, params_of(kind, w)});
            };
            add(row, {{3}, {1}, {1}, {1}, {1}, {1}});
            add(row, {{2}, {2}, {0}, {0}, {1}, {2}});
            add(row, {{3}, {2}, {2}, {1}, {2}, {1}});
            add(image, {{1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}});
            add(image, {{1, 3, 2}, {1, 1, 2}, {0, 1, -1}, {0, 2, 1}, {1, 1, 1}, {1, 1, 2}});
          }
          return samples;
        });
Array lax::reduce_window_sum(Operand operand, const Shape& window_dimensions,
                             const Shape& window_strides, const WindowPadding& padding,
                             const Shape& base_dilation, const Shape& window_dilation) {
  return reduce_window("sum", operand, window_dimensions, window_strides, padding, base_dilation,
                       window_dilation);
}
Array lax::reduce_window_prod(Operand operand, const Shape& window_dimensions,
                              const Shape& window_strides, const WindowPadding& padding,
                              const Shape& base_dilation, const Shape& window_dilation) {
  return reduce_window("prod", operand, window_dimensions, window_strides, padding, base_dilation,
                       window_dilation);
}
Array lax::reduce_window_max(Operand operand, const Shape& window_dimensions,
                             const Shape& window_strides, const WindowPadding& padding,
                             const Shape& base_dilation, const Shape& window_dilation) {
  return reduce_window("max", operand, window_dimensions, window_strides, padding, base_dilation,
                       window_dilation);
}
Array lax::reduce_window_min(Operand operand, const Shape& window_dimensions,
                             const Shape& window_strides, const WindowPadding& padding,
                             const Shape& base_dilation, const Shape& window_dilation) {
  return reduce_window("min", operand, window_dimensions, window_strides, padding, base_dilation,
                       window_dilation);
}

}  // namespace plait
