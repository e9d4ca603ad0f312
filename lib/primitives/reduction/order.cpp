// argreduce, the positions of extremes, and shared functions of its family (order.h). NaN wins, as
// in NumPy.
// SPDX-License-Identifier: Apache-2.0
#include "order.h"
#include "primitives/axis.h"
#include "primitives/reduction/reduce.h"

#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/spelling.h"

#include <plait/base/pool.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <cmath>
#include <cstring>

namespace plait {

AxisLoops::AxisLoops(const Sizes64& shape, int axis) : size(shape[axis]) {
  for (int i = 0; i < axis; ++i) outer *= shape[i];
  for (int i = axis + 1; i < int(shape.size()); ++i) inner *= shape[i];
}

View with_axis_last(const View& view, int axis) {
  View moved = view;
  moved.shape.erase(axis);
  moved.strides.erase(axis);
  moved.shape.push_back(view.shape[axis]);
  moved.strides.push_back(view.strides[axis]);
  return moved;
}

namespace {

Array extreme_of(DType dtype, bool lowest) {
  Literal literal{dtype, false, 0, 0, 0};
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      literal.integer = static_cast<std::int64_t>(lowest ? Limits::lowest() : Limits::max());
    } else {
      literal.real = lowest ? -INFINITY : INFINITY;
      if (is_complex(dtype)) literal.imaginary = literal.real;
    }
  });
  return Array::literal(literal);
}

}  // namespace

Array lowest_of(DType dtype) { return extreme_of(dtype, true); }
Array highest_of(DType dtype) { return extreme_of(dtype, false); }

Array index_of(Dim dim) {
  if (dim.is_constant()) return Array::literal(Literal{DType::int32, false, dim.constant(), 0, 0});
  return lax::convert_element_type(lax::dim_as_value(dim), DType::int32);
}

Array take_along(const Array& operand, const Array& indices, int axis) {
  const int last = operand.ndim() - 1;
  std::vector<int> to_last, back(last + 1);
  for (int i = 0; i <= last; ++i)
    if (i != axis) to_last.push_back(i);
  to_last.push_back(axis);
  for (int i = 0; i <= last; ++i) back[to_last[i]] = i;
  const Array rows = lax::transpose(operand, to_last), places = lax::transpose(indices, to_last);
  Shape starts = places.shape();
  starts.push_back(1);
  const lax::IndexDimensions dimensions{{last}, {last}, last};
  return lax::transpose(lax::gather(rows, lax::reshape(places, starts), dimensions, {1},
                                    lax::GatherScatterMode::promise),
                        back);
}

int checked_axis(const Params& params, const Aval& operand, std::string_view name) {
  return equation_axis(params.integer("axis"), operand.rank(), name);
}

namespace {

using Values = Sample::Input::Values;

template <bool largest, class T>
bool beats(T x, T y) {
  return largest ? x > y : x < y;
}

// The index of the winner of a contiguous row.
template <bool largest, class T>
std::int64_t winner_of(const T* x, std::int64_t n) {
  using A = detail::Compute<T>;
  A best = A(x[0]);
  std::int64_t index = 0;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    // First the extreme of a block, then its position, if it beats the previous ones.
    constexpr std::int64_t block = 512;
    using P = Pack<T, detail::lanes<T>>;
    if (best != best) return 0;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t end = std::min(n, begin + block);
      P extreme(best);
      auto is_nan = extreme != extreme;
      std::int64_t i = begin;
      for (; i + P::width <= end; i += P::width) {
        const P value = P::load(x + i);
        is_nan = is_nan | (value != value);
        extreme = math::select(largest ? value > extreme : value < extreme, value, extreme);
      }
      T winner = best;
      bool nan = math::any(is_nan);
      for (int lane = 0; lane < P::width; ++lane)
        if (beats<largest>(extreme[lane], winner)) winner = extreme[lane];
      for (; i < end; ++i) {
        nan |= x[i] != x[i];
        if (beats<largest>(x[i], winner)) winner = x[i];
      }
      if (nan) return find_first(x, begin, end, [](auto value) { return value != value; });
      if (!beats<largest>(winner, best)) continue;
      best = winner;
      index =
          find_first(x, begin, end, [=](auto value) { return value == decltype(value)(winner); });
    }
  } else if constexpr (std::is_integral_v<T>) {
    constexpr std::int64_t block = 1024;
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t end = std::min(n, begin + block);
      T winner = best;
      for (std::int64_t i = begin; i < end; ++i)
        winner = beats<largest>(x[i], winner) ? x[i] : winner;
      if (!beats<largest>(winner, best)) continue;
      best = winner;
      index = find_first(x, begin, end, [=](T value) { return value == winner; });
    }
  } else {
    for (std::int64_t i = 1; i < n && best == best; ++i)
      if (const A value = A(x[i]); value != value || beats<largest>(value, best)) {
        best = value;
        index = i;
      }
  }
  return index;
}

// The same of a row that threads share: the winners of its parts, in turn.
template <bool largest, class T>
std::int64_t winner_of_long(const T* x, std::int64_t n) {
  constexpr std::int64_t part = 1 << 16;
  const std::int64_t parts = (n + part - 1) / part;
  std::vector<std::int64_t> winners(static_cast<std::size_t>(parts));
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      winners[std::size_t(i)] =
          i * part + winner_of<largest>(x + i * part, std::min(part, n - i * part));
  });
  using A = detail::Compute<T>;
  std::int64_t index = winners[0];
  for (const std::int64_t other : winners) {
    const A best = A(x[index]), value = A(x[other]);
    if (best == best && (value != value || beats<largest>(value, best))) index = other;
  }
  return index;
}

// The winners of many columns at once: x is n rows of `stride` elements, of which `width` are read.
template <bool largest, class T, class I>
void winners_of_columns(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width,
                        I* out) {
  using A = detail::Compute<T>;
  constexpr std::int64_t tile = 256;
  A best[tile];
  for (std::int64_t first = 0; first < width; first += tile) {
    const std::int64_t count = std::min(tile, width - first);
    I* index = out + first;
    for (std::int64_t j = 0; j < count; ++j) best[j] = A(x[first + j]);
    std::fill_n(index, count, I(0));
    for (std::int64_t i = 1; i < n; ++i) {
      const T* row = x + i * stride + first;
      for (std::int64_t j = 0; j < count; ++j) {
        const A value = A(row[j]);
        const bool wins = (value != value || beats<largest>(value, best[j])) & (best[j] == best[j]);
        best[j] = wins ? value : best[j];
        index[j] = wins ? I(i) : index[j];
      }
    }
  }
}

template <bool largest, class T, class I>
void argreduce_typed(const T* x, I* out, const AxisLoops& loops) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(1, loops.size * loops.inner));
  if (loops.inner == 1 && loops.size >= 1 << 18 && loops.outer < num_threads()) {
    for (std::int64_t o = 0; o < loops.outer; ++o)
      out[o] = I(winner_of_long<largest>(x + o * loops.size, loops.size));
    return;
  }
  parallel_for(loops.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      const T* row = x + o * loops.size * loops.inner;
      if (loops.inner == 1)
        out[o] = I(winner_of<largest>(row, loops.size));
      else
        winners_of_columns<largest>(row, loops.size, loops.inner, loops.inner,
                                    out + o * loops.inner);
    }
  });
}

void argreduce_eval(std::span<const View> inputs, std::span<const View> outputs,
                    const Params& params) {
  const bool largest = params.text("kind") == "max";
  const AxisLoops loops(inputs[0].shape, int(params.integer("axis")));
  const View& out = outputs[0];
  // An empty axis is an error at trace time when its size is known; padding never makes an axis
  // empty.
  if (loops.size == 0) std::memset(out.data, 0, out.size() * size_of(out.dtype));
  if (num_elements(inputs[0].shape) == 0) return;
  Buffer copy;
  const void* data = inputs[0].data;
  if (!inputs[0].is_dense()) {
    copy = Buffer::copy_of(inputs[0]);
    data = copy.data();
  }
  visit_dtype(inputs[0].dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!is_complex_v<T>) {
      auto run = [&](auto* indices) {
        if (largest)
          argreduce_typed<true>(static_cast<const T*>(data), indices, loops);
        else
          argreduce_typed<false>(static_cast<const T*>(data), indices, loops);
      };
      if (out.dtype == DType::int32)
        run(out.as<std::int32_t>());
      else
        run(out.as<std::int64_t>());
    }
  });
}

Array argreduce(const char* kind, const Array& operand, int axis, DType index_dtype) {
  const int normal = normalize_axis(axis, operand.ndim(), std::string("arg") + kind);
  return bind(argreduce_p, {operand},
              {{"kind", std::string(kind)}, {"axis", Dim(normal)}, {"dtype", index_dtype}});
}

// Along a short axis: one after the other, by element of the result.
loops::Tensors emit_few(loops::Writer& w, const Equation& equation, const loops::Tensor& x,
                        int axis) {
  const DType to = equation.params.get<DType>("dtype");
  loops::Formula formula;
  const std::int64_t size = x.aval.shape[axis].constant();
  formula.work = 4 * double(size) * (1 + (x.formula ? x.formula->work : 0));
  formula.reads = w.reads_of(x);
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  formula.element = [&w, x, axis, size, to, source = equation.source,
                     direction = std::string(equation.params.text("kind") == "max" ? "gt" : "lt"),
                     is_float = is_floating(x.aval.dtype)](std::span<const loops::Index> at) {
    const auto compared = [&](const std::string& how, loops::Value a, loops::Value b) {
      return w.compute(cmp_p, {{"direction", how}}, {a, b}, source);
    };
    loops::Indices indices(at.begin(), at.end());
    indices.insert(indices.begin() + axis, loops::Index{0});
    loops::Value best = w.element(x, indices), found = w.integer(0);
    for (std::int64_t i = 1; i < size; ++i) {
      indices[std::size_t(axis)] = {i};
      const loops::Value value = w.element(x, indices);
      loops::Value wins = compared(direction, value, best);
      if (is_float)  // the first NaN
        wins = w.compute(
            or_p, {},
            {wins, w.compute(and_p, {}, {compared("ne", value, value), compared("eq", best, best)},
                             source)},
            source);
      best = w.compute(select_p, {}, {wins, value, best}, source);
      found = w.compute(select_p, {}, {wins, w.integer(i), found}, source);
    }
    return w.compute(cast_p, {{"dtype", to}, {"weak", false}}, {found}, source);
  };
  Aval aval{x.aval.shape, to};
  aval.shape.erase(axis);
  return {w.computed(aval, std::move(formula))};
}

// The least index of those where the extreme is, or where NaNs are.
loops::Tensors emit_argreduce(loops::Writer& w, const Equation& equation,
                              std::span<const loops::Tensor> inputs) {
  const DType dtype = inputs[0].aval.dtype;
  const int axis = int(equation.params.integer("axis"));
  const Source source = equation.source;
  if (inputs[0].aval.shape[axis].constant() <= loops::few)
    return emit_few(w, equation, inputs[0], axis);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const loops::Tensor extreme =
      emit_reduction(w, equation.params.text("kind"), x, std::span(&axis, 1), source);
  const loops::Value none = w.integer(std::numeric_limits<std::int64_t>::max());
  loops::Formula formula;
  formula.reads = w.reads_of(x);
  formula.element = [&w, x, extreme, axis, none, source,
                     is_float = is_floating(dtype)](std::span<const loops::Index> indices) {
    loops::Indices kept(indices.begin(), indices.end());
    kept.erase(kept.begin() + axis);
    const auto compared = [&](const char* direction, loops::Value a, loops::Value b) {
      return w.compute(cmp_p, {{"direction", std::string(direction)}}, {a, b}, source);
    };
    const loops::Value value = w.element(x, indices);
    loops::Value wins = compared("eq", value, w.element(extreme, kept));
    if (is_float) wins = w.compute(or_p, {}, {wins, compared("ne", value, value)}, source);
    return w.compute(select_p, {}, {wins, w.number(indices[std::size_t(axis)]), none}, source);
  };
  const loops::Tensor indices =
      emit_reduction(w, "min", w.computed({x.aval.shape, DType::int64}, std::move(formula)),
                     std::span(&axis, 1), source);
  loops::Formula narrowed;
  narrowed.reads = w.reads_of(indices);
  narrowed.element = [&w, indices, source,
                      to = equation.params.get<DType>("dtype")](std::span<const loops::Index> at) {
    return w.compute(cast_p, {{"dtype", to}, {"weak", false}}, {w.element(indices, at)}, source);
  };
  return {
      w.computed({indices.aval.shape, equation.params.get<DType>("dtype")}, std::move(narrowed))};
}

}  // namespace

constinit const Primitive argreduce_p{"argreduce"};
static const auto argreduce_def =
    define(argreduce_p,
           "The index of the largest (kind max) or smallest (min) element along an axis: the first "
           "of equal ones. NaN wins.")
        .operands(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::string& kind = params.text("kind");
          if (kind != "max" && kind != "min")
            throw ValueError("argreduce: there is no kind '" + kind + "'", "choose max or min");
          const std::string name = "arg" + kind;
          require_dtype(name, inputs[0], real_numbers | boolean);
          const DType dtype = params.get<DType>("dtype");
          if (dtype != DType::int32 && dtype != DType::int64)
            throw DtypeError(name + ": indices cannot have dtype " + std::string(name_of(dtype)),
                             "ask for index_dtype int32 or int64");
          const int axis = checked_axis(params, inputs[0], name);
          const Dim size = inputs[0].shape[axis];
          indexing::require_order(1, size, [&] {
            return ShapeError(name + ": axis " + std::to_string(axis) + " of an array of shape (" +
                                  inputs[0].shape.to_string() + ") has no elements",
                              "reduce an axis with at least one element");
          });
          if (size.is_constant() && dtype == DType::int32 &&
              size.constant() > std::numeric_limits<std::int32_t>::max())
            throw ShapeError(name + ": an axis of " + size.to_string() +
                                 " elements is too long for indices of dtype int32",
                             "ask for index_dtype int64");
          Aval aval{inputs[0].shape, dtype};
          aval.shape.erase(axis);
          return std::vector<Aval>{aval};
        })
        .rule<Eval>(argreduce_eval)
        .rule<Emit>(emit_argreduce)
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("arg" + w.params().text("kind"),
                        {w.operand(0), w.dim("axis"), w.dtype("dtype")});
        })
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>(
            [](Dim, std::span<const Batched> inputs, const Params& params) -> std::vector<Batched> {
              const int dim = *inputs[0].dim, axis = batched_axis(int(params.integer("axis")), dim);
              return {{Array(bind(argreduce_p, {inputs[0].array}, params.with("axis", Dim(axis)))),
                       axis < dim ? dim - 1 : dim}};
            })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          // Padding follows the real elements and never beats one.
          const int axis = int(params.integer("axis"));
          const DType dtype = inputs[0].aval.dtype;
          const Array fill = params.text("kind") == "max" ? lowest_of(dtype) : highest_of(dtype);
          return Arrays(bind(argreduce_p,
                             {fill_padding(inputs[0], fill, sizes, std::span(&axis, 1))}, params));
        })
        .rule<Samples>([] {
          std::vector<Sample> samples;
          const Sample::Input x{{{2, 3, 4}, DType::float64}, Values::distinct};
          for (const char* kind : {"max", "min"})
            for (int axis = 0; axis < 3; ++axis)
              samples.push_back({{x},
                                 {{"kind", std::string(kind)},
                                  {"axis", Dim(axis)},
                                  {"dtype", axis == 1 ? DType::int64 : DType::int32}}});
          samples.push_back(
              {{{{{5}, DType::bool_}, Values::boolean}},
               {{"kind", std::string("max")}, {"axis", Dim(0)}, {"dtype", DType::int32}}});
          return samples;
        });
Array lax::argmax(Operand operand, int axis, std::optional<DType> index_dtype) {
  return argreduce("max", operand, axis, index_dtype.value_or(default_int()));
}
Array lax::argmin(Operand operand, int axis, std::optional<DType> index_dtype) {
  return argreduce("min", operand, axis, index_dtype.value_or(default_int()));
}

}  // namespace plait
