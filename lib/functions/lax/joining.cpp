// plait.lax: repeated, joined and picked arrays, and a wall before the optimiser. See
// lax_numbers.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax_numbers.h>
#include <plait/transforms/transforms.h>

#include "functions/lax/arguments.h"

namespace plait {
using namespace functions;  // NOLINT

Array lax::broadcast_to_rank(Operand x, int rank) {
  if (rank < x.ndim())
    throw ValueError("broadcast_to_rank: an array of " + std::to_string(x.ndim()) + " axes to " +
                         std::to_string(rank),
                     "give at least as many");
  Shape shape(rank - x.ndim(), 1);
  for (Dim dim : x.shape()) shape.push_back(dim);
  return reshape(x, shape);
}
Array lax::broadcast_like(Operand arr, Operand like_arr) {
  return plait::broadcast_to(arr, like_arr.shape());
}
Array lax::empty(const Shape& shape, DType dtype) { return numpy::zeros(shape, dtype); }
Array lax::tile(Operand operand, const Shape& reps) {
  if (int(reps.size()) != operand.ndim())
    throw ShapeError("tile: " + std::to_string(reps.size()) + " repetitions of an array of " +
                         std::to_string(operand.ndim()) + " axes",
                     "give one for each axis");
  return numpy::tile(operand, reps);
}
Array lax::stack(Operands operands, int axis) { return numpy::stack(operands, axis); }
std::vector<Array> lax::unstack(Operand x, int axis) { return numpy::unstack(x, axis); }

Array lax::index_take(Operand src, Operands idxs, const std::vector<int>& axes) {
  if (idxs.empty() || idxs.size() != axes.size())
    throw ValueError("index_take: " + std::to_string(idxs.size()) + " index arrays for " +
                         std::to_string(axes.size()) + " axes",
                     "give one for each axis");
  IndexDimensions dims;
  Shape window = src.shape();
  for (int axis : axes) {
    dims.axes.push_back(normalize_axis(axis, src.ndim(), "index_take"));
    window[dims.axes.back()] = 1;
  }
  dims.collapse = dims.axes;
  std::sort(dims.collapse.begin(), dims.collapse.end());
  const Array rows = numpy::stack(idxs, -1);
  return gather(src, rows, dims, window, GatherScatterMode::clip);
}

Array lax::scatter_sub(Operand operand, Operand scatter_indices, Operand updates,
                       const ScatterDimensionNumbers& dimension_numbers,
                       const ScatterOptions& options) {
  return scatter_add(operand, scatter_indices, neg(updates), dimension_numbers, options);
}

namespace {

// A function of a scalar, of every element.
Array mapped(const Function& function, const Array& x) {
  const Dim count = x.shape().num_elements();
  if (count == Dim(0)) return x;
  flat::VmapOptions lanes;
  lanes.in_dims = {0};
  lanes.out_dims = [](std::size_t outputs) { return std::vector<std::optional<int>>(outputs, 0); };
  lanes.size = count;
  const Function one = [&](std::span<const Array> scalar) -> Arrays {
    const Arrays results = function(scalar);
    if (results.size() != 1 || results[0].ndim() != 0)
      throw ShapeError("scatter_apply: the function does not give a scalar for a scalar",
                       "give a function of one element");
    return {yielded(results[0], x.dtype(), x.aval().weak, "scatter_apply")};
  };
  const Arrays flat{lax::reshape(x, {count})};
  return lax::reshape(flat::vmap(one, flat, lanes)[0], x.shape());
}

}  // namespace

Array lax::scatter_apply(Operand operand, Operand scatter_indices, const Function& func,
                         const ScatterDimensionNumbers& dimension_numbers,
                         const Shape& update_shape, const ScatterOptions& options) {
  const Array none = full(operand.shape(), 0, DType::int32);
  const Array hits = scatter_add(none, scatter_indices, full(update_shape, 1, DType::int32),
                                 dimension_numbers, options);
  auto applied = [&](const Array& x, const Array& left) {
    return select(gt(left, none), mapped(func, x), x);
  };
  if (options.unique_indices || operand.shape().num_elements() == Dim(0))
    return applied(operand, hits);
  std::vector<int> axes;
  for (int axis = 0; axis < operand.ndim(); ++axis) axes.push_back(axis);
  const Arrays init{operand, hits};
  return flat::while_loop(
      [&](std::span<const Array> x) {
        return Arrays{gt(reduce_max(x[1], axes), constant(0, x[1]))};
      },
      [&](std::span<const Array> x) {
        return Arrays{applied(x[0], x[1]), sub(x[1], constant(1, x[1]))};
      },
      init, {}, "scatter_apply")[0];
}

Arrays lax::optimization_barrier(Operands operand) {
  return operand.empty() ? Arrays() : Arrays(bind(barrier_p, operand));
}

namespace {

Tree<Array> optimization_barrier_of(Tree<Array> operand) {
  operand.leaves = lax::optimization_barrier(operand.leaves);
  return operand;
}
Array scatter_sub_of(Operand operand, Operand scatter_indices, Operand updates,
                     const Argument& dimension_numbers, bool indices_are_sorted,
                     bool unique_indices, const std::optional<std::string>& mode) {
  return lax::scatter_sub(operand, scatter_indices, updates,
                          scatter_dimensions_of(dimension_numbers),
                          {mode_of(mode, "scatter_sub"), unique_indices, indices_are_sorted});
}

Array scatter_apply_of(Operand operand, Operand scatter_indices, const Function& func,
                       const Argument& dimension_numbers, const Shape& update_shape,
                       bool indices_are_sorted, bool unique_indices,
                       const std::optional<std::string>& mode) {
  return lax::scatter_apply(operand, scatter_indices, func,
                            scatter_dimensions_of(dimension_numbers), update_shape,
                            {mode_of(mode, "scatter_apply"), unique_indices, indices_are_sorted});
}

[[maybe_unused]] const FunctionInfo* const joining_catalogue[] = {
    function("lax", "broadcast_to_rank(x, rank)", "x with axes of size 1 in front, rank in all.",
             &lax::broadcast_to_rank),
    function("lax", "broadcast_like(arr, like_arr)", "arr broadcast to the shape of another array.",
             &lax::broadcast_like),
    function("lax", "empty(shape, dtype)", "zeros of a shape and dtype.", &lax::empty),
    function("lax", "tile(operand, reps)", "operand repeated so often along each axis.",
             &lax::tile),
    function("lax", "stack(operands, axis=0)", "Arrays of one shape along a new axis.",
             &lax::stack),
    function("lax", "unstack(x, axis=0)", "The rows of x along an axis, without that axis.",
             &lax::unstack),
    function("lax", "index_take(src, idxs, axes)",
             "src at idxs[i] along axes[i]; the axes of the indices come first. Indices outside "
             "take the nearest element.",
             &lax::index_take),
    function("lax",
             "scatter_sub(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that subtracts updates from the elements; places that are named twice lose "
             "both.",
             &scatter_sub_of),
    function("lax",
             "scatter_apply(operand, scatter_indices, func, dimension_numbers, *, "
             "update_shape=(), indices_are_sorted=False, unique_indices=False, mode=None)",
             "operand with func, a function of one element, of the elements in the windows of a "
             "scatter with updates of update_shape: twice of those that are named twice, and so "
             "on. With unique_indices=True it has a gradient.",
             &scatter_apply_of),
    function("lax", "optimization_barrier(operand)",
             "A tree of arrays as it is, of which nothing is computed before all of it: behind a "
             "wall that merging and reordering of equations do not pass.",
             &optimization_barrier_of),
};

}  // namespace
}  // namespace plait
