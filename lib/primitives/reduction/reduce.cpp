// reduce: sums, products, extremes and logic over axes. Its kernel is in reduce_eval.cpp.
//
// NOTE: [reduction order] The order of additions depends on the operand's shape and axes alone,
// never on strides, threads or fusion, so that every way of running a program gives the same bits.
// Reduced axes are taken from the last to the first. Each is a stage, whose partial results the
// next one reduces; an axis shorter than 256 elements joins its reduced neighbour. A stage by rows,
// where few elements follow the axis, sums blocks of 1024 elements, each with eight interleaved
// accumulators. A stage by columns sums blocks of 64 rows in order. The partial results of blocks
// are combined pairwise. Products of vectors add their terms in the order of a stage by rows. GPUs
// have more accumulators for a block: see NOTE: [order of long combinations].
// SPDX-License-Identifier: Apache-2.0
#include "primitives/reduction/reduce.h"

#include "primitives/axis.h"
#include "primitives/cost.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>

#include <bit>
#include <cmath>

namespace plait {
namespace {

constexpr std::int64_t longest_joined = 256;  // of a stage that also covers the axis before it

DTypes types_of(const std::string& kind) {
  if (kind == "sum" || kind == "prod") return numbers;
  if (kind == "max" || kind == "min") return real_numbers | boolean;
  if (kind == "and" || kind == "or") return integers | boolean;
  throw ValueError("reduce: there is no kind '" + kind + "'",
                   "choose sum, prod, max, min, and, or");
}

}  // namespace

Literal identity_of(const std::string& kind, DType dtype) {
  Literal literal{dtype, false, 0, 0, 0};
  if (kind == "prod") return cast(Literal{DType::int64, false, 1, 0, 0}, dtype, false);
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
  return cast(literal, dtype, false);
}

namespace {

Array reduce(const char* kind, const Array& operand, std::span<const int> axes) {
  if (axes.empty()) return operand;
  std::vector<int> sorted(axes.begin(), axes.end());
  for (int& axis : sorted)
    if (axis < 0 || axis >= operand.ndim())
      axis = normalize_axis(axis, operand.ndim(), std::string("reduce_") + kind);
  std::sort(sorted.begin(), sorted.end());
  const std::string_view name = kind;
  const Params params =
      last_params([&] { return Params{{"kind", std::string(name)}, {"axes", to_shape(sorted)}}; },
                  name, sorted);
  return bind(reduce_p, {operand}, params);
}

std::vector<int> unreduced_axes(int rank, const std::vector<int>& axes) {
  std::vector<int> kept;
  for (int i = 0; i < rank; ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) kept.push_back(i);
  return kept;
}

// --- In loop programs ----------------------------------------------------------------------------

}  // namespace

const Primitive& combining(const std::string& kind) {
  if (kind == "sum") return add_p;
  if (kind == "prod") return mul_p;
  if (kind == "max") return max_p;
  if (kind == "min") return min_p;
  return kind == "and" ? and_p : or_p;
}

namespace {

// Few elements, in the order of one block.
loops::Value combine_few(loops::Writer& w, const Primitive& by, loops::Value identity,
                         const loops::Values& elements, bool in_order, Source source) {
  const auto join = [&](loops::Value a, loops::Value b) {
    return w.compute(by, {}, {a, b}, source);
  };
  loops::Values sums(in_order ? 1 : 8, identity);
  for (std::size_t i = 0; i < elements.size(); ++i)
    sums[i % sums.size()] = join(sums[i % sums.size()], elements[i]);
  for (std::size_t width = sums.size() / 2; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i) sums[i] = join(sums[i], sums[i + width]);
  return sums[0];
}

}  // namespace

loops::Value emit_pairwise(loops::Writer& w, const Primitive& by,
                           std::span<const loops::Value> blocks, Source source) {
  if (blocks.size() == 1) return blocks[0];
  const std::size_t half = blocks.size() / 2;
  const loops::Value a = emit_pairwise(w, by, blocks.first(half), source);
  return w.compute(by, {}, {a, emit_pairwise(w, by, blocks.subspan(half), source)}, source);
}

namespace {

// Numbers along an axis, of which there are no fewer than leaves, as that many that are left once
// the smallest halves are combined: one or two numbers each, as halving again and again makes them.
loops::Formula leaves_of(loops::Writer& w, const Primitive& by, Source source,
                         const loops::Tensor& numbers, int axis, std::int64_t leaves) {
  loops::Formula formula;
  formula.reads = w.reads_of(numbers);
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  const std::int64_t size = numbers.aval.shape[axis].constant();
  const auto at = [&w, numbers, axis](std::span<const loops::Index> indices, loops::Index index) {
    loops::Indices of_one(indices.begin(), indices.end());
    of_one[std::size_t(axis)] = std::move(index);
    return w.element(numbers, of_one);
  };
  if (size == 2 * leaves) {
    formula.element = [&w, &by, source, at, axis](std::span<const loops::Index> indices) {
      loops::Index first = indices[std::size_t(axis)];
      first.offset *= 2;
      for (loops::Place::Term& term : first.terms) term.stride *= 2;
      const loops::Value a = at(indices, first);
      ++first.offset;
      return w.compute(by, {}, {a, at(indices, first)}, source);
    };
    return formula;
  }
  formula.element = [&w, &by, source, at, axis, size,
                     leaves](std::span<const loops::Index> indices) {
    // The bits of the index say, from the highest one on, which half of a half it is in: the second
    // of n is ceil(n / 2) long, and begins behind floor(n / 2).
    const auto compute = [&](const Primitive& p, loops::Value a, loops::Value b) {
      return w.compute(p, {}, {a, b}, source);
    };
    const loops::Value index = w.number(indices[std::size_t(axis)]);
    loops::Value first = w.integer(0), above = w.integer(size), none = w.integer(0);
    for (std::int64_t bit = leaves / 2; bit > 0; bit /= 2) {
      const loops::Value is_second =
          compute(rem_p, compute(div_p, index, w.integer(bit)), w.integer(2));
      const loops::Value half = compute(div_p, above, w.integer(2));
      first = compute(add_p, first, compute(mul_p, is_second, half));
      above = compute(div_p, compute(add_p, above, is_second), w.integer(2));
    }
    const loops::Value is_pair = compute(sub_p, above, w.integer(1));
    const loops::Value a = at(indices, {0, {{first, 1}}}),
                       b = at(indices, {0, {{compute(add_p, first, is_pair), 1}}});
    const loops::Value is_one =
        w.compute(cmp_p, {{"direction", std::string("eq")}}, {is_pair, none}, source);
    return w.compute(select_p, {}, {is_one, a, compute(by, a, b)}, source);
  };
  return formula;
}

// The numbers of blocks along an axis, combined by halves: level by level, the last ones at once.
loops::Tensor emit_halves(loops::Writer& w, const Primitive& by, Source source,
                          const loops::Tensor& blocks, int axis) {
  constexpr std::int64_t most_at_once = 16;
  loops::Tensor numbers = blocks;
  while (numbers.aval.shape[axis].constant() > most_at_once) {
    const std::int64_t size = numbers.aval.shape[axis].constant();
    auto leaves = std::int64_t(std::bit_floor(std::uint64_t(size)));
    if (leaves == size) leaves /= 2;
    Aval aval = numbers.aval;
    aval.shape[axis] = leaves;
    numbers = w.in_memory(w.computed(aval, leaves_of(w, by, source, numbers, axis, leaves)));
  }
  Aval result = numbers.aval;
  result.shape[axis] = 1;
  loops::Formula formula;
  formula.reads = w.reads_of(numbers);
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  const std::int64_t size = numbers.aval.shape[axis].constant();
  formula.work = double(size);
  formula.element = [&w, &by, source, numbers, axis, size](std::span<const loops::Index> indices) {
    loops::Indices at(indices.begin(), indices.end());
    loops::Values elements;
    for (std::int64_t i = 0; i < size; ++i) {
      at[std::size_t(axis)] = {i};
      elements.push_back(w.element(numbers, at));
    }
    return emit_pairwise(w, by, elements, source);
  };
  return w.computed(result, std::move(formula));
}

// In another dtype.
loops::Tensor emit_cast(loops::Writer& w, const loops::Tensor& tensor, DType dtype, Source source) {
  loops::Formula formula;
  formula.reads = w.reads_of(tensor);
  formula.work = 1;
  formula.is_by_reads = tensor.is_in_memory();
  if (tensor.formula) {
    formula.work += tensor.formula->work;
    formula.is_by_reads = tensor.formula->is_by_reads;
  }
  formula.element = [&w, tensor, source, params = Params{{"dtype", dtype}, {"weak", false}}](
                        std::span<const loops::Index> indices) {
    return w.compute(cast_p, params, {w.element(tensor, indices)}, source);
  };
  Aval aval = tensor.aval;
  aval.dtype = dtype;
  return w.computed(aval, std::move(formula));
}

// One stage over some neighbouring axes, which stay with the size 1.
loops::Tensor emit_stage(loops::Writer& w, const std::string& kind, Source source,
                         const loops::Tensor& operand, std::span<const int> axes,
                         const ReductionStage& stage) {
  constexpr std::int64_t few_blocks = 8, most_unrolled = 16, most_jumps = 8, large = 1 << 13;
  constexpr double most_statements = 256;  // of blocks that are written one by one
  const Primitive& by = combining(kind);
  const DType dtype = operand.aval.dtype;
  const bool in_order = !stage.is_by_rows();
  const loops::Value identity = w.literal(identity_of(kind, dtype));
  Aval result = operand.aval;
  for (int axis : axes) result.shape[axis] = 1;
  const int axis = axes.back();
  if (!operand.is_in_memory() && !operand.formula) {  // few: each result from every n-th element
    loops::Tensor list{result};
    const auto size = std::int64_t(operand.elements.size());
    for (std::int64_t i = 0; i < size / stage.n; ++i) {
      const std::int64_t first = i / stage.inner * stage.inner * stage.n + i % stage.inner;
      loops::Values terms;
      for (std::int64_t r = 0; r < stage.n; ++r)
        terms.push_back(operand.elements[std::size_t(first + r * stage.inner)]);
      list.elements.push_back(combine_few(w, by, identity, terms, in_order, source));
    }
    return list;
  }
  const loops::Tensor x = loops::merged(w, operand, axes);
  loops::Formula formula;
  formula.reads = w.reads_of(x);
  // A loop over large memory rather goes through its rows than jumps from each one to the next.
  const bool is_large =
      (in_order || stage.inner == 1) && stage.outer * stage.n * stage.inner > large;
  if (stage.n <= (is_large ? most_jumps : most_unrolled)) {
    for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
    formula.work = double(stage.n) * (1 + (x.formula ? x.formula->work : 0));
    formula.element = [&w, &by, x, axis, identity, in_order, source,
                       n = stage.n](std::span<const loops::Index> indices) {
      loops::Indices at(indices.begin(), indices.end());
      loops::Values terms;
      for (std::int64_t r = 0; r < n; ++r) {
        at[std::size_t(axis)] = {r};
        terms.push_back(w.element(x, at));
      }
      return combine_few(w, by, identity, terms, in_order, source);
    };
    return w.computed(result, std::move(formula));
  }
  const auto combine_block = [&](std::span<const loops::Index> indices, const loops::Index& first,
                                 std::int64_t count) {
    return w.combine(
        by, identity, count, in_order,
        [&](const loops::Index& r) {
          loops::Indices at(indices.begin(), indices.end());
          at[std::size_t(axis)] = {r.offset + first.offset, r.terms};
          for (const loops::Place::Term& term : first.terms)
            at[std::size_t(axis)].terms.push_back(term);
          return loops::Values{w.element(x, at)};
        },
        source);
  };
  const std::int64_t block = stage.block(), rest = stage.n % block, blocks = stage.num_blocks();
  const double statements = double(blocks) * (1 + (x.formula ? x.formula->work : 0));
  if (blocks <= few_blocks && statements <= most_statements) {
    formula.element = [&](std::span<const loops::Index> indices) {
      loops::Values numbers;
      for (std::int64_t first = 0; first < stage.n; first += block)
        numbers.push_back(combine_block(indices, {first}, std::min(block, stage.n - first)));
      return emit_pairwise(w, by, numbers, source);
    };
    return w.combined(result, formula, in_order);
  }
  // The blocks are an axis of their own, over which threads may share the work.
  Aval partial = result;
  partial.shape[axis] = blocks;
  const loops::Tensor numbers = w.make(partial);
  const auto numbers_from = [&](std::int64_t first, std::int64_t count) {
    loops::Tensor part = numbers;
    part.aval.shape[axis] = count;
    loops::add_index(part.place, {first}, part.strides[std::size_t(axis)]);
    return part;
  };
  for (loops::Formula::Read& read : formula.reads)
    if (!read.is_anywhere) read.strides[std::size_t(axis)] *= block;
  formula.element = [&](std::span<const loops::Index> indices) {
    loops::Index first = indices[std::size_t(axis)];
    first.offset *= block;
    for (loops::Place::Term& term : first.terms) term.stride *= block;
    return combine_block(indices, first, block);
  };
  w.combine_into(numbers_from(0, stage.n / block), formula, in_order);
  if (rest > 0) {
    formula.element = [&](std::span<const loops::Index> indices) {
      return combine_block(indices, {stage.n - rest}, rest);
    };
    w.combine_into(numbers_from(blocks - 1, 1), formula, in_order);
  }
  return emit_halves(w, by, source, numbers, axis);
}

}  // namespace

loops::Tensor emit_reduction(loops::Writer& w, const std::string& kind,
                             const loops::Tensor& operand, std::span<const int> axes,
                             Source source) {
  const DType dtype = operand.aval.dtype;
  if (dtype == DType::float16 || dtype == DType::bfloat16) {
    const loops::Tensor wide = emit_cast(w, operand, DType::float32, source);
    return emit_cast(w, emit_reduction(w, kind, wide, axes, source), dtype, source);
  }
  const Sizes64 shape = operand.aval.shape.to_sizes();
  const ReductionStages stages = reduction_stages(shape, axes);
  loops::Tensor x = operand;
  if (stages[0].n == 1) {  // of single elements, which the identity is added to
    loops::Formula formula;
    formula.reads = w.reads_of(x);
    formula.work = x.formula ? x.formula->work + 1 : 1;
    formula.element =
        [&w, x = operand, by = &combining(kind), source,
         identity = w.literal(identity_of(kind, dtype))](std::span<const loops::Index> indices) {
          return w.compute(*by, {}, {identity, w.element(x, indices)}, source);
        };
    x = w.in_memory(w.computed(x.aval, std::move(formula)));
  }
  // The axes of each stage, as reduction_stages chooses them: from the last one on.
  std::size_t next = 0;
  std::vector<int> group;
  std::int64_t grouped = 1;
  for (int axis = int(shape.size()); axis-- > 0;) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) continue;
    if (shape[std::size_t(axis)] == 1) continue;
    group.insert(group.begin(), axis);
    grouped *= shape[std::size_t(axis)];
    if (grouped < stages[next].n) continue;
    x = emit_stage(w, kind, source, x, group, stages[next++]);
    group.clear(), grouped = 1;
  }
  loops::Tensor result = x;
  for (std::size_t i = axes.size(); i-- > 0;) {
    result.aval.shape.erase(axes[i]);
    if (x.is_in_memory()) result.strides.erase(std::size_t(axes[i]));
  }
  if (!x.formula) return result;
  loops::Formula formula;
  formula.work = x.formula->work;
  formula.reads = x.formula->reads;
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  formula.element = [&w, x, removed = std::vector<int>(axes.begin(), axes.end())](
                        std::span<const loops::Index> indices) {
    loops::Indices at(indices.begin(), indices.end());
    for (int axis : removed) at.insert(at.begin() + axis, loops::Index{0});
    return w.element(x, at);
  };
  return w.computed(result.aval, std::move(formula));
}

namespace {

// The derivative of a product with respect to each factor is the product of those before it and
// those after it, which is exact where a factor is zero.
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

ReductionStages reduction_stages(const Sizes64& shape, std::span<const int> axes) {
  ReductionStages stages;
  std::int64_t inner = 1;  // kept
  bool is_open = false, is_empty = false;
  for (int axis = int(shape.size()); axis-- > 0;) {
    const std::int64_t size = shape[axis];
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), axis);
    is_empty |= is_reduced && size == 0;
    if (size == 1) continue;
    if (!is_reduced)
      inner *= size;
    else if (is_open && stages.back().n < longest_joined)
      stages.back().n *= size;
    else
      stages.push_back({1, size, inner});
    is_open = is_reduced;
  }
  if (is_empty) return {ReductionStage{inner, 0, 1}};
  if (stages.empty()) return {ReductionStage{inner, 1, 1}};
  std::int64_t outer = num_elements(shape);
  std::int64_t reduced = 1;
  for (ReductionStage& stage : stages) {
    reduced *= stage.n;
    stage.outer = outer == 0 ? 0 : outer / (reduced * stage.inner);
  }
  return stages;
}

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
              const AxisList axes = axis_list(params, "axes");
              eval_reduce(inputs[0], outputs[0], params.text("kind"), axes);
            })
        .rule<Emit>([](loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs) -> loops::Tensors {
          return {emit_reduction(w, equation.params.text("kind"), inputs[0],
                                 equation.params.ints("axes"), equation.source)};
        })
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          const std::vector<int> axes = w.params().ints("axes");
          if (axes.empty() || !std::is_sorted(axes.begin(), axes.end())) return {};
          return w.call("reduce_" + w.params().text("kind"), {w.operand(0), w.ints("axes")});
        })
        .rule<PictureGroup>(PictureGroup::reduction)
        .rule<Speculate>({})
        .rule<Motion>(Motion::moves)
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
          if (kind == "max" || kind == "min") {  // equal extremes share the tangent
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
        .rule<Separate>([](const Separate::Along& along, const Params& params) {
          return along.to[0] || params.text("kind") == "sum";
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          const std::vector<int> axes = params.ints("axes");
          const Array filled = fill_padding(
              inputs[0], Array::literal(identity_of(params.text("kind"), inputs[0].aval.dtype)),
              sizes, axes);
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
