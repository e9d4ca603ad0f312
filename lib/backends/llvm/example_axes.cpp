// One rule per kind of equation. See example_axes.h.
// SPDX-License-Identifier: Apache-2.0
#include "example_axes.h"

#include <plait/primitives/indexing.h>
#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/rules.h>

#include <algorithm>

#include "primitives/contraction/dot.h"

namespace plait::llvm {
namespace {

using Axis = std::optional<int>;

struct Question {
  const Equation& equation;
  std::span<const Aval> inputs, outputs;
  const ExampleAxes& axes;
  std::int64_t size;
  const Params& params() const { return equation.params; }
  Dim extent() const { return Dim(size); }
};

// The one axis of all operands that have one; scalars have none.
Axis shared_axis(const Question& q) {
  int axis = -1;
  for (int mine : q.axes) {
    if (mine < 0) continue;
    if (axis >= 0 && axis != mine) return std::nullopt;
    axis = mine;
  }
  return axis;
}

Dim product(const Shape& shape, int end) {
  Dim size = 1;
  for (int i = 0; i < end; ++i) size = size * shape[i];
  return size;
}

// Examples stay together where as many elements lie before them as before.
Axis reshaped_axis(const Question& q) {
  const Shape &from = q.inputs[0].shape, &to = q.outputs[0].shape;
  for (int axis = 0; axis < to.rank(); ++axis)
    if (to[axis] == q.extent() && product(to, axis) == product(from, q.axes[0])) return axis;
  return std::nullopt;
}

Axis broadcast_axis(const Question& q) {
  const Shape& shape = q.outputs[0].shape;
  const std::vector<int> dims = q.params().ints("dims");
  if (!q.axes.empty() && q.axes[0] >= 0) return dims[q.axes[0]];
  // What is the same for all examples is repeated for each.
  const int axis = example_axis(q.outputs[0], q.size);
  for (std::size_t i = 0; axis >= 0 && i < dims.size(); ++i)
    if (dims[i] == axis && q.inputs[0].shape[i] == shape[axis]) return std::nullopt;
  return axis;
}

Axis reduced_axis(const Question& q) {
  int axis = q.axes[0];
  for (int reduced : q.params().ints("axes")) {
    if (reduced == q.axes[0]) return std::nullopt;
    axis -= reduced < q.axes[0];
  }
  return axis;
}

Axis dot_axis(const Question& q) {
  const DotAxes dot(q.params());
  const int lhs = q.axes[0], rhs = q.axes[1], num_batch = int(dot.lhs_batch.size());
  for (int i = 0; i < num_batch; ++i)
    if (dot.lhs_batch[i] == lhs && dot.rhs_batch[i] == rhs) return i;
  const std::vector<int> lhs_free = free_axes(q.inputs[0].rank(), dot.lhs_contract, dot.lhs_batch),
                         rhs_free = free_axes(q.inputs[1].rank(), dot.rhs_contract, dot.rhs_batch);
  auto place = [](const std::vector<int>& free, int axis) -> int {
    const auto at = std::find(free.begin(), free.end(), axis);
    return at == free.end() ? -1 : int(at - free.begin());
  };
  if (lhs >= 0 && rhs < 0 && place(lhs_free, lhs) >= 0) return num_batch + place(lhs_free, lhs);
  if (rhs >= 0 && lhs < 0 && place(rhs_free, rhs) >= 0)
    return num_batch + int(lhs_free.size()) + place(rhs_free, rhs);
  return std::nullopt;
}

// The axis stays, if the equation takes all of it as it lies.
Axis untouched_axis(const Question& q, int touched) {
  const Axis axis = shared_axis(q);
  if (!axis || *axis == touched) return std::nullopt;
  for (const Aval& output : q.outputs)
    if (!(output.shape[*axis] == q.extent())) return std::nullopt;
  return axis;
}

// That of the matrices of all operands, in front of rows and columns.
Axis matrices_axis(const Question& q) {
  for (std::size_t i = 0; i < q.axes.size(); ++i)
    if (q.axes[i] != q.axes[0] || q.axes[i] < 0 || q.axes[i] >= q.inputs[i].rank() - 2)
      return std::nullopt;
  return q.axes[0];
}

// Rows of indices come first, then what a window keeps of the operand's axes.
int place_behind_rows(const Question& q, int axis) {
  int place = q.inputs[1].rank() - 1 + axis;
  for (int collapsed : q.params().ints("collapse")) place -= collapsed < axis;
  return place;
}

Axis gathered_axis(const Question& q) {
  const int axis = q.axes[0], batch_dims = int(q.params().integer("batch_dims"));
  // Rows of indices come first.
  if (q.axes[1] >= 0) {
    const bool is_shared = axis == q.axes[1] && axis < batch_dims;
    return (axis < 0 && q.axes[1] < q.inputs[1].rank() - 1 && q.axes[1] >= batch_dims) || is_shared
               ? Axis(q.axes[1])
               : std::nullopt;
  }
  if (axis < 0 || batch_dims != 0) return std::nullopt;
  if (!(q.params().get<Shape>("slice_sizes")[axis] == q.extent())) return std::nullopt;
  const std::vector<int> collapsed = q.params().ints("collapse");
  if (std::find(collapsed.begin(), collapsed.end(), axis) != collapsed.end()) return std::nullopt;
  return place_behind_rows(q, axis);
}

// Operand and update, whose windows cover the axis.
Axis updated_axis(const Question& q) {
  const bool is_slice = *q.equation.primitive == dynamic_update_slice_p;
  const int axis = q.axes[0], update = q.axes[is_slice ? 1 : 2];
  if (axis < 0 || update != (is_slice ? axis : place_behind_rows(q, axis))) return std::nullopt;
  return axis;
}

Axis axis_of(const Question& q) {
  const Primitive& primitive = *q.equation.primitive;
  const Params& params = q.params();
  if (primitive == iota_p) return example_axis(q.outputs[0], q.size);
  if (primitive == broadcast_in_dim_p) return broadcast_axis(q);
  if (primitive == random_bits_p && q.axes[0] < 0) return example_axis(q.outputs[0], q.size);
  if (std::all_of(q.axes.begin(), q.axes.end(), [](int axis) { return axis < 0; })) return -1;
  if (Pointwise::table().find(primitive)) {
    const Axis axis = shared_axis(q);
    for (std::size_t i = 0; axis && i < q.axes.size(); ++i)
      if (q.axes[i] < 0 && q.inputs[i].rank() > 0) return std::nullopt;
    return axis;
  }
  if (primitive == reshape_p) return reshaped_axis(q);
  if (primitive == transpose_p) {
    const std::vector<int> order = params.ints("permutation");
    return int(std::find(order.begin(), order.end(), q.axes[0]) - order.begin());
  }
  if (primitive == reduce_p) return reduced_axis(q);
  if (primitive == dot_general_p) return dot_axis(q);
  if (primitive == slice_p || primitive == pad_p || primitive == dynamic_slice_p) {
    if (q.axes[0] < 0) return std::nullopt;
    const bool shifts = primitive == pad_p && !(params.get<Shape>("low")[q.axes[0]] == Dim(0) &&
                                                params.get<Shape>("interior")[q.axes[0]] == Dim(0));
    return shifts ? Axis() : untouched_axis(q, -1);
  }
  if (primitive == concatenate_p || primitive == split_p) {
    if (std::any_of(q.axes.begin(), q.axes.end(), [](int axis) { return axis < 0; }))
      return std::nullopt;
    return untouched_axis(q, int(params.integer("axis")));
  }
  if (primitive == rev_p) {
    const std::vector<int> axes = params.ints("axes");
    if (std::find(axes.begin(), axes.end(), q.axes[0]) != axes.end()) return std::nullopt;
    return q.axes[0];
  }
  if (primitive == gather_p) return gathered_axis(q);
  if (primitive == dynamic_update_slice_p || primitive == scatter_p) return updated_axis(q);
  if (primitive == lu_p || primitive == cholesky_p || primitive == triangular_solve_p)
    return matrices_axis(q);
  // Keys come first, in the result too.
  if (primitive == random_bits_p) return q.axes[0];
  if (primitive == random_fold_p) return q.axes[0] >= 0 ? q.axes[0] : q.axes[1];
  return std::nullopt;
}

}  // namespace

int example_axis(const Aval& aval, std::int64_t size) {
  for (int axis = 0; size > 0 && axis < aval.rank(); ++axis)
    if (aval.shape[axis] == Dim(size)) return axis;
  return -1;
}

std::optional<ExampleAxes> example_axes(const Equation& equation, std::span<const Aval> inputs,
                                        std::span<const Aval> outputs, const ExampleAxes& axes,
                                        std::int64_t size) {
  if (*equation.primitive == barrier_p) return axes;
  const Axis axis = axis_of({equation, inputs, outputs, axes, size});
  if (!axis) return std::nullopt;
  return ExampleAxes(outputs.size(), *axis);
}

}  // namespace plait::llvm
