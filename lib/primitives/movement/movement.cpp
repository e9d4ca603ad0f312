// Primitives that reinterpret memory, and those without array operands: reshape, transpose,
// broadcast_in_dim, iota, and sizes as numbers.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/axis.h"

#include <plait/base/pool.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/put.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>
#include <plait/trace/concrete.h>
#include <plait/trace/multiples.h>
#include <plait/trace/varying.h>

#include "primitives/cost.h"
#include "primitives/indexing/indexing.h"
#include "primitives/last_params.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using Values = Sample::Input::Values;

const Sample::Input& matrix = *new const Sample::Input{{{2, 3}, DType::float64}};

// Strides that give view's elements in row-major order under another shape, if there are any: runs
// of dimensions that are contiguous in the view are regrouped, others must match one to one.
std::optional<Sizes64> reshaped_strides(const View& view, const Sizes64& shape) {
  Sizes64 sizes, strides;  // the view without dimensions of size 1, contiguous neighbours merged
  for (int i = 0; i < view.rank(); ++i) {
    if (view.shape[i] == 1) continue;
    if (!sizes.empty() && strides.back() == view.strides[i] * view.shape[i]) {
      sizes.back() *= view.shape[i];
      strides.back() = view.strides[i];
    } else {
      sizes.push_back(view.shape[i]);
      strides.push_back(view.strides[i]);
    }
  }
  Sizes64 result(shape.size(), 0);
  std::size_t group = 0;
  std::int64_t left = sizes.empty() ? 1 : sizes[0];
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    while (group < sizes.size() && left == 1) left = ++group < sizes.size() ? sizes[group] : 1;
    if (group == sizes.size() || left % shape[i] != 0) return std::nullopt;
    left /= shape[i];
    result[i] = left * strides[group];
  }
  return result;
}

// Runs of the operand's and of the result's axes that hold the same elements.
struct Group {
  Shape from, to;
};
std::vector<Group> groups_of(const Shape& from, const Shape& to) {
  std::vector<Group> groups;
  int i = 0, j = 0;
  auto part = [](const Shape& shape, int begin, int end) {
    return Shape(shape.begin() + begin, shape.begin() + end);
  };
  while (i < from.rank() || j < to.rank()) {
    bool found = false;
    for (int length = 1; !found && length <= from.rank() - i + to.rank() - j; ++length)
      for (int taken = std::min(length, from.rank() - i);
           !found && taken >= 0 && length - taken <= to.rank() - j; --taken) {
        const Group group{part(from, i, i + taken), part(to, j, j + length - taken)};
        if (!(group.from.num_elements() == group.to.num_elements())) continue;
        groups.push_back(group);
        i += taken, j += length - taken;
        found = true;
      }
    if (!found) return {{from, to}};  // zero sizes hide the boundaries between axes
  }
  return groups;
}

// True when only the first axis, ignoring those of size 1, is ragged.
bool is_prefix(const Shape& shape, const Shape& bounds) {
  bool is_first = true;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!is_first && !(shape[i] == bounds[i])) return false;
    is_first &= shape[i] == Dim(1);
  }
  return true;
}

// Strides of a row-major array, in elements.
Shape row_major(const Shape& shape) {
  Shape strides(shape.size(), Dim(1));
  for (int i = shape.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

// For each position of a group's padded result, in row-major order, the position of its element in
// the padded operand: from positions to real indices, to the real linear index, and back on the
// operand's side.
Array relinearised(const Group& group, const SizeValues& sizes) {
  const Shape to = indexing::bounds_of(group.to, sizes),
              from = indexing::bounds_of(group.from, sizes);
  const Shape padded_to = row_major(to), real_to = row_major(group.to),
              padded_from = row_major(from), real_from = row_major(group.from);
  const Array position = lax::iota(DType::int32, {to.num_elements()}, 0);
  auto coordinate = [&](const Array& linear, Dim stride, Dim size, bool is_first) {
    const Array whole = stride == Dim(1) ? linear : lax::div(linear, sizes.value(stride));
    return is_first ? whole : lax::rem(whole, sizes.value(size));
  };
  auto sum_of = [&](const Array& linear, const Shape& read, const Shape& shape,
                    const Shape& strides) {
    Array sum = Array::literal(0, DType::int32);
    for (int i = 0; i < shape.rank(); ++i) {
      const Array at = coordinate(linear, read[i], shape[i], i == 0);
      sum = lax::add(sum, lax::mul(at, sizes.value(strides[i])));
    }
    return sum;
  };
  const Array real = sum_of(position, padded_to, to, real_to);
  return sum_of(real, real_from, group.from, padded_from);
}

// Where real elements are in order and padding comes last, the reshape applies directly. Other
// groups of axes are gathered.
Arrays mask_reshape(std::span<const Masked> inputs, std::span<const Aval> outputs, const Params&,
                    const SizeValues& sizes) {
  const std::vector<Group> groups = groups_of(inputs[0].aval.shape, outputs[0].shape);
  Shape flat;
  std::vector<std::size_t> gathered;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Shape from = indexing::bounds_of(groups[i].from, sizes),
                to = indexing::bounds_of(groups[i].to, sizes);
    flat.push_back(from.num_elements());
    const bool direct = is_prefix(groups[i].from, from) && is_prefix(groups[i].to, to) &&
                        from.num_elements() == to.num_elements();
    if (!direct) gathered.push_back(i);
  }
  Array x = inputs[0].padded;
  if (!gathered.empty()) x = lax::reshape(x, flat);
  for (std::size_t i : gathered) x = indexing::taken(x, int(i), relinearised(groups[i], sizes));
  return {lax::reshape(x, indexing::bounds_of(outputs[0].shape, sizes))};
}

}  // namespace

constinit const Primitive reshape_p{"reshape"};
static const auto reshape_def =
    define(reshape_p, "The elements in row-major order under another shape of as many elements.")
        .family(movement())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Shape& shape = params.get<Shape>("shape");
          if (!(shape.num_elements() == inputs[0].shape.num_elements())) {
            ask_equal(inputs[0].shape.num_elements(), shape.num_elements());
            throw ShapeError("reshape: an array of shape (" + inputs[0].shape.to_string() +
                                 ") has " + inputs[0].shape.num_elements().to_string() +
                                 " elements, and the shape (" + shape.to_string() + ") holds " +
                                 shape.num_elements().to_string(),
                             inputs[0].shape.is_constant()
                                 ? "give a shape with as many elements"
                                 : "give a shape with as many elements, or declare what makes "
                                   "them as many: constraints=[\"n % 8 == 0\"]");
          }
          return std::vector<Aval>{{shape, inputs[0].dtype, inputs[0].weak}};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          return inputs[0].shape == params.get<Shape>("shape");
        })
        .rule<Alias>(
            [](const View& input, const Sizes64& shape, const Params&) -> std::optional<View> {
              if (num_elements(shape) == 0 || input.is_dense())
                return View{input.data, input.dtype, shape, dense_strides(shape)};
              std::optional<Sizes64> strides = reshaped_strides(input, shape);
              if (!strides) return std::nullopt;
              return View{input.data, input.dtype, shape, *strides};
            })
        .rule<Put>([](const Array& x, const Array& value, std::size_t, const Params&) {
          return lax::reshape(value, x.shape());
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("reshape", {w.operand(0), w.dims("shape")});
        })
        .rule<Jvp>(linear_through(reshape_p))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params&) -> Tangents {
          return {lax::reshape(cotangents[0].array(), inputs[0].aval().shape)};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          Shape shape{size};
          for (Dim dim : params.get<Shape>("shape")) shape.push_back(dim);
          return {{lax::reshape(batch_to_front(inputs[0], size), shape), 0}};
        })
        .rule<Separate>([](const Separate::Along& along, const Params&) {
          auto before = [](const Shape& shape, int axis) {
            Dim count = 1;
            for (int i = 0; i < axis; ++i) count = count * shape[i];
            return count;
          };
          return along.from[0] && along.to[0] &&
                 before(along.inputs[0].shape, *along.from[0]) ==
                     before(along.outputs[0].shape, *along.to[0]);
        })
        .rule<Mask>(mask_reshape)
        .rule<Samples>([] {
          return std::vector<Sample>{{{matrix}, {{"shape", Shape{3, 2}}}},
                                     {{matrix}, {{"shape", Shape{6}}}},
                                     {{matrix}, {{"shape", Shape{1, 6, 1}}}}};
        });
// A known dense array under another shape; nullopt where bind must handle it.
static Array view_as(const Array& operand, const Shape& shape) {
  if (!operand.is_valid() || !operand.node()->is_plain() || Trace::current()) return {};
  if (!operand.aval().varying.empty()) return {};
  const Buffer& buffer = static_cast<const ConcreteNode*>(operand.node())->buffer;
  std::int64_t count = 1;
  for (Dim size : shape) {
    if (!size.is_constant() || size.constant() < 0 ||
        __builtin_mul_overflow(count, size.constant(), &count))
      return {};
  }
  if (count != buffer.placed().size() || !buffer.placed().is_dense()) return {};
  const Sizes64 sizes = shape.to_sizes();
  return make_concrete(Aval{shape, operand.dtype(), operand.aval().weak},
                       buffer.view_as(sizes, dense_strides(sizes), 0));
}

Array lax::reshape(Operand operand, const Shape& new_sizes) {
  if (Array view = view_as(operand, new_sizes); view.is_valid()) return view;
  return bind(reshape_p, {operand}, {{"shape", new_sizes}});
}

static std::vector<int> inverse_of(const std::vector<int>& permutation) {
  std::vector<int> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = int(i);
  return inverse;
}

constinit const Primitive transpose_p{"transpose"};
static const auto transpose_def =
    define(transpose_p,
           "Axes in another order: axis i of the result is axis permutation[i] of the operand.")
        .family(movement())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::vector<int> permutation = params.ints("permutation");
          std::vector<int> sorted = permutation;
          std::sort(sorted.begin(), sorted.end());
          for (std::size_t i = 0; i < sorted.size(); ++i)
            if (sorted[i] != int(i) || int(sorted.size()) != inputs[0].rank())
              throw ShapeError("transpose: (" + params.get<Shape>("permutation").to_string() +
                                   ") does not permute the " + std::to_string(inputs[0].rank()) +
                                   " axes of an array of shape (" + inputs[0].shape.to_string() +
                                   ")",
                               "name each axis once");
          Aval aval = inputs[0];
          for (std::size_t i = 0; i < permutation.size(); ++i)
            aval.shape[i] = inputs[0].shape[permutation[i]];
          return std::vector<Aval>{aval};
        })
        .rule<Identity>([](std::span<const Aval>, const Params& params) {
          const std::vector<int> permutation = params.ints("permutation");
          for (std::size_t i = 0; i < permutation.size(); ++i)
            if (permutation[i] != int(i)) return false;
          return true;
        })
        .rule<Alias>([](const View& input, const Sizes64& shape,
                        const Params& params) -> std::optional<View> {
          Sizes64 strides;
          for (int axis : params.ints("permutation")) strides.push_back(input.strides[axis]);
          return View{input.data, input.dtype, shape, strides};
        })
        .rule<Put>([](const Array&, const Array& value, std::size_t, const Params& params) {
          return lax::transpose(value, inverse_of(params.ints("permutation")));
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("transpose", {w.operand(0), w.ints("permutation")});
        })
        .rule<Jvp>(linear_through(transpose_p))
        .rule<Transpose>([](auto cotangents, auto, const Params& params) -> Tangents {
          return {lax::transpose(cotangents[0].array(), inverse_of(params.ints("permutation")))};
        })
        .rule<Batch>(
            [](Dim, std::span<const Batched> inputs, const Params& params) -> std::vector<Batched> {
              std::vector<int> permutation{*inputs[0].dim};
              for (int axis : params.ints("permutation"))
                permutation.push_back(axis < *inputs[0].dim ? axis : axis + 1);
              return {{lax::transpose(inputs[0].array, permutation), 0}};
            })
        .rule<Separate>(separate::always)
        .rule<Mask>(
            [](std::span<const Masked> inputs, auto, const Params& params, const SizeValues&) {
              return Arrays(bind(transpose_p, {inputs[0].padded}, params));
            })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{matrix}, {{"permutation", Shape{1, 0}}}},
              {{{{{2, 3, 4}, DType::float64}}}, {{"permutation", Shape{2, 0, 1}}}}};
        });
Array lax::transpose(Operand operand, std::span<const int> permutation) {
  return bind(transpose_p, {operand}, {{"permutation", to_shape(permutation)}});
}

constinit const Primitive broadcast_in_dim_p{"broadcast_in_dim"};
static const auto broadcast_in_dim_def =
    define(broadcast_in_dim_p,
           "Repeats along new axes and axes of size 1: axis i of the operand is axis dims[i] of "
           "shape.")
        .family(movement())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Shape& shape = params.get<Shape>("shape");
          const std::vector<int> dims = params.ints("dims");
          bool good = int(dims.size()) == inputs[0].rank();
          for (std::size_t i = 0; good && i < dims.size(); ++i)
            good = dims[i] >= 0 && dims[i] < shape.rank() && (i == 0 || dims[i - 1] < dims[i]) &&
                   (inputs[0].shape[i] == shape[dims[i]] || inputs[0].shape[i] == Dim(1));
          if (!good)
            throw ShapeError("broadcast_in_dim: an array of shape (" + inputs[0].shape.to_string() +
                                 ") does not broadcast to (" + shape.to_string() +
                                 ") with its axes at (" + params.get<Shape>("dims").to_string() +
                                 ")",
                             "name one axis of the result for each axis of the operand, in order, "
                             "of equal size unless the operand's is 1");
          for (Dim dim : shape)
            if (less_equal(0, dim) == false)
              throw ShapeError(
                  "broadcast_in_dim: the shape (" + shape.to_string() + ") has a negative size",
                  "give sizes >= 0");
          return std::vector<Aval>{{shape, inputs[0].dtype, inputs[0].weak}};
        })
        .rule<Identity>([](std::span<const Aval> inputs, const Params& params) {
          return inputs[0].shape == params.get<Shape>("shape");
        })
        .rule<Alias>([](const View& input, const Sizes64& shape,
                        const Params& params) -> std::optional<View> {
          Sizes64 strides(shape.size(), 0);
          const std::vector<int> dims = params.ints("dims");
          for (std::size_t i = 0; i < dims.size(); ++i)
            if (input.shape[i] != 1) strides[dims[i]] = input.strides[i];
          return View{input.data, input.dtype, shape, strides};
        })
        .rule<Put>([](const Array& x, const Array& value, std::size_t, const Params&) {
          if (!(value.shape().num_elements() == x.shape().num_elements()))
            throw ValueError("a view of shape (" + value.shape().to_string() +
                                 ") shows elements of an array of shape (" + x.shape().to_string() +
                                 ") more than once, and is written to",
                             "write to the array, or to a copy of the view");
          return lax::reshape(value, x.shape());  // new axes have size 1
        })
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call("broadcast_in_dim", {w.operand(0), w.dims("shape"), w.ints("dims")});
        })
        .rule<Jvp>(linear_through(broadcast_in_dim_p))
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          const std::vector<int> dims = params.ints("dims");
          const Shape &shape = params.get<Shape>("shape"), &from = inputs[0].aval().shape;
          std::vector<int> axes;
          for (int axis = 0; axis < shape.rank(); ++axis) {
            const auto at = std::find(dims.begin(), dims.end(), axis);
            if (at == dims.end() || !(from[at - dims.begin()] == shape[axis])) axes.push_back(axis);
          }
          return {lax::reshape(lax::reduce_sum(cotangents[0].array(), axes), from)};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          Shape shape{size};
          for (Dim dim : params.get<Shape>("shape")) shape.push_back(dim);
          std::vector<int> dims{0};
          for (int dim : params.ints("dims")) dims.push_back(dim + 1);
          return {{lax::broadcast_in_dim(batch_to_front(inputs[0], size), shape, dims), 0}};
        })
        .rule<Separate>(separate::always)
        .rule<Mask>([](std::span<const Masked> inputs, auto outputs, const Params& params,
                       const SizeValues& sizes) {
          Shape shape;
          for (Dim dim : outputs[0].shape) shape.push_back(sizes.bound(dim));
          return Arrays(bind(broadcast_in_dim_p, {inputs[0].padded}, params.with("shape", shape)));
        })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{matrix}, {{"shape", Shape{4, 2, 3}}, {"dims", Shape{1, 2}}}},
              {{{{{1, 3}, DType::float64}}}, {{"shape", Shape{2, 3}}, {"dims", Shape{0, 1}}}},
              {{{{{}, DType::float64}}}, {{"shape", Shape{2, 2}}, {"dims", Shape{}}}}};
        });
Array lax::broadcast_in_dim(Operand operand, const Shape& shape,
                            std::span<const int> broadcast_dimensions) {
  return bind(broadcast_in_dim_p, {operand},
              {{"shape", shape}, {"dims", to_shape(broadcast_dimensions)}});
}

constinit const Primitive iota_p{"iota"};
static const auto iota_def =
    define(iota_p, "0, 1, 2, ... along one axis, the same along the others.")
        .rule<Abstract>([](std::span<const Aval>, const Params& params) {
          const Aval aval{params.get<Shape>("shape"), params.get<DType>("dtype")};
          require_dtype("iota", aval, numbers);
          for (Dim dim : aval.shape)
            if (less_equal(0, dim) == false)
              throw ShapeError(
                  "iota: the shape (" + aval.shape.to_string() + ") has a negative size",
                  "give sizes >= 0");
          equation_axis(params.integer("axis"), aval.rank(), "iota");
          return std::vector<Aval>{aval};
        })
        .rule<Eval>([](std::span<const View>, std::span<const View> outputs, const Params& params) {
          const View& out = outputs[0];
          const int axis = int(params.integer("axis"));
          std::int64_t inner = 1;
          for (int i = axis + 1; i < out.rank(); ++i) inner *= out.shape[i];
          const std::int64_t size = out.shape[axis],
                             outer = inner * size == 0 ? 0 : out.size() / (inner * size);
          visit_dtype(out.dtype, [&](auto element) {
            using T = decltype(element);
            const auto number = [](std::int64_t i) {
              if constexpr (is_complex_v<T>)
                return T(typename T::value_type(i));
              else
                return T(detail::Compute<T>(i));
            };
            const std::int64_t grain =
                std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, inner));
            parallel_for(outer * size, grain, [&](std::int64_t begin, std::int64_t end) {
              T* dst = out.as<T>() + begin * inner;
              for (std::int64_t at = begin; at < end;) {
                const std::int64_t first = at % size, count = std::min(size - first, end - at);
                if (inner == 1)  // a loop of its own, which the compiler vectorises
                  for (std::int64_t i = 0; i < count; ++i) dst[i] = number(first + i);
                else
                  for (std::int64_t i = 0; i < count; ++i)
                    std::fill_n(dst + i * inner, inner, number(first + i));
                dst += count * inner;
                at += count;
              }
            });
          });
        })
        .rule<Emit>([](loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor>) -> loops::Tensors {
          const DType dtype = equation.params.get<DType>("dtype");
          if (is_complex(dtype)) w.refuse("`iota` of " + std::string(name_of(dtype)));
          const auto axis = std::size_t(equation.params.integer("axis"));
          return {w.computed(
              {equation.params.get<Shape>("shape"), dtype},
              {[&w, axis, dtype, source = equation.source](std::span<const loops::Index> indices) {
                return w.compute(cast_p, {{"dtype", dtype}, {"weak", false}},
                                 {w.number(indices[axis])}, source);
              }})};
        })
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          return w.call(w.is_python() ? "broadcasted_iota" : "iota",
                        {w.dtype("dtype"), w.dims("shape"), w.dim("axis")});
        })
        .rule<PictureGroup>(PictureGroup::other)
        .rule<Speculate>({})
        .rule<Motion>(Motion::layout)
        .rule<Jvp>(zero_derivative())
        .rule<Batch>(
            [](Dim, std::span<const Batched>, const Params& params) -> std::vector<Batched> {
              return {{Array(bind(iota_p, {}, params)), std::nullopt}};
            })
        .rule<Mask>([](auto, auto outputs, const Params& params, const SizeValues& sizes) {
          Shape shape;
          for (Dim dim : outputs[0].shape) shape.push_back(sizes.bound(dim));
          return Arrays(bind(iota_p, {}, params.with("shape", shape)));
        })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{}, {{"dtype", DType::int32}, {"shape", Shape{2, 3}}, {"axis", Dim(1)}}}};
        });
Array lax::iota(DType dtype, const Shape& shape, int dimension) {
  const int axis = normalize_axis(dimension, shape.rank(), "iota");
  const Params params =
      last_params([&] { return Params{{"dtype", dtype}, {"shape", shape}, {"axis", Dim(axis)}}; },
                  dtype, shape, axis);
  return bind(iota_p, {}, params);
}

constinit const Primitive dim_as_value_p{"dim_as_value"};
static const auto dim_as_value_def =
    define(dim_as_value_p, "A size as a number: a weak int64 scalar.")
        .rule<Abstract>([](std::span<const Aval>, const Params&) {
          return std::vector<Aval>{{{}, DType::int64, true}};
        })
        .rule<Fold>([](std::span<const Literal>,
                       const Params& params) -> std::optional<std::vector<Literal>> {
          const Dim dim = params.get<Dim>("dim");
          if (!dim.is_constant()) return std::nullopt;
          return std::vector<Literal>{{DType::int64, true, dim.constant(), 0, 0}};
        })
        .rule<Eval>([](std::span<const View>, std::span<const View> outputs, const Params& params) {
          *outputs[0].as<std::int64_t>() = params.get<Dim>("dim").constant();
        })
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .rule<Speculate>({})
        .refuse<Motion>("where programs are compiled its size is a number")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>(
            [](Dim, std::span<const Batched>, const Params& params) -> std::vector<Batched> {
              return {{Array(bind(dim_as_value_p, {}, params)), std::nullopt}};
            })
        .rule<Mask>([](auto, auto, const Params& params, const SizeValues& sizes) {
          return Arrays{
              lax::convert_element_type(sizes.value(params.get<Dim>("dim")), DType::int64, true)};
        })
        .rule<Samples>([] { return std::vector<Sample>{{{}, {{"dim", Dim(3)}}}}; });
Array lax::dim_as_value(Dim dim) {
  if (dim.is_constant()) return Array(dim.constant());
  return bind(dim_as_value_p, {}, {{"dim", dim}});
}
Array::Array(Dim size) : Array(lax::dim_as_value(size)) {}

Array lax::full(const Shape& shape, double value, DType dtype) {
  return broadcast_to(Array::literal(value, dtype), shape);
}
Array lax::zeros_like(const Aval& aval) {
  if (!aval.varying.empty()) {
    Aval invariant = aval;
    invariant.varying = {};
    return make_varying(zeros_like(invariant), aval.varying);
  }
  if (aval.stack > 0)
    return bind(empty_stack_p, {},
                {{"shape", aval.shape}, {"dtype", aval.dtype}, {"depth", Dim(aval.stack)}});
  return broadcast_to(Array::literal(Literal{aval.dtype, aval.weak, 0, 0, 0}), aval.shape);
}

Array broadcast_to(const Array& array, const Shape& shape) {
  if (array.shape() == shape) return array;
  std::vector<int> dims;
  for (int i = 0; i < array.ndim(); ++i) dims.push_back(shape.rank() - array.ndim() + i);
  return lax::broadcast_in_dim(array, shape, dims);
}

}  // namespace plait
