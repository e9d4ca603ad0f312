// See layout.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/layout.h"

#include <numeric>

namespace plait::cuda {
namespace {

struct Range {
  std::int64_t size = 1, stride = 1;
};

// Axes as one, where their strides allow it.
std::optional<Range> merged(const Sizes64& shape, const Sizes64& strides,
                            const std::vector<int>& axes) {
  Range range;
  bool is_first = true;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t size = shape[std::size_t(axes[i])], stride = strides[std::size_t(axes[i])];
    if (size == 1) continue;
    if (is_first)
      range.stride = stride;
    else if (stride != range.stride * range.size)
      return std::nullopt;
    is_first = false;
    range.size *= size;
  }
  return range;
}

std::int64_t product_of(const Sizes64& shape, const std::vector<int>& axes) {
  std::int64_t product = 1;
  for (const int axis : axes) product *= shape[std::size_t(axis)];
  return product;
}

std::vector<int> axes_from(int first, int count) {
  std::vector<int> axes(std::size_t(count), 0);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

}  // namespace

ProductAxes::ProductAxes(const Params& params, const Sizes64& lhs_strides, int rhs_rank) {
  const DotAxes axes(params);
  lhs = {axes.lhs_batch, free_axes(int(lhs_strides.size()), axes.lhs_contract, axes.lhs_batch), {}};
  rhs = {axes.rhs_batch, free_axes(rhs_rank, axes.rhs_contract, axes.rhs_batch), {}};
  std::vector<int> order = axes_from(0, int(axes.lhs_contract.size()));
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return lhs_strides[std::size_t(axes.lhs_contract[std::size_t(a)])] >
           lhs_strides[std::size_t(axes.lhs_contract[std::size_t(b)])];
  });
  for (const int i : order) {
    lhs.contract.push_back(axes.lhs_contract[std::size_t(i)]);
    rhs.contract.push_back(axes.rhs_contract[std::size_t(i)]);
  }
}

MatrixSizes sizes_of(const Sizes64& shape, const OperandAxes& axes) {
  return {product_of(shape, axes.batch), product_of(shape, axes.free),
          product_of(shape, axes.contract)};
}

std::optional<MatrixLayout> layout_of(const Sizes64& shape, const Sizes64& strides,
                                      const OperandAxes& axes) {
  const std::optional<Range> batch = merged(shape, strides, axes.batch);
  std::optional<Range> free = merged(shape, strides, axes.free),
                       contract = merged(shape, strides, axes.contract);
  if (!batch || !free || !contract) return std::nullopt;
  // Strides of axes of size 1 mean nothing; these are those of dense memory.
  if (contract->size == 1) contract->stride = free->size == 1 || free->stride != 1 ? 1 : free->size;
  if (free->size == 1) free->stride = contract->stride == 1 ? contract->size : 1;
  MatrixLayout layout;
  layout.contract_is_inner = contract->stride == 1 && free->stride >= contract->size;
  if (!layout.contract_is_inner && !(free->stride == 1 && contract->stride >= free->size))
    return std::nullopt;
  layout.leading = layout.contract_is_inner ? free->stride : contract->stride;
  layout.batch_stride = batch->size == 1 ? 0 : batch->stride;
  if (layout.batch_stride < 0) return std::nullopt;
  return layout;
}

View copied_view(const View& operand, const OperandAxes& axes) {
  View moved{operand.data, operand.dtype, {}, {}};
  for (const std::vector<int>* group : {&axes.batch, &axes.free, &axes.contract})
    for (const int axis : *group) {
      moved.shape.push_back(operand.shape[std::size_t(axis)]);
      moved.strides.push_back(operand.strides[std::size_t(axis)]);
    }
  return moved;
}

MatrixLayout copied_layout(const MatrixSizes& sizes) {
  return {true, sizes.contract, sizes.batch == 1 ? 0 : sizes.free * sizes.contract};
}

std::optional<MatrixLayout> rows_of(const Sizes64& shape, const Sizes64& strides, int num_batch,
                                    int num_rows) {
  const int rank = int(shape.size());
  const OperandAxes axes{axes_from(0, num_batch), axes_from(num_batch, num_rows),
                         axes_from(num_batch + num_rows, rank - num_batch - num_rows)};
  const std::optional<MatrixLayout> layout = layout_of(shape, strides, axes);
  return layout && layout->contract_is_inner ? layout : std::nullopt;
}

bool is_repeated_row(const Sizes64& shape, const Sizes64& strides, int num_columns) {
  const int first = int(shape.size()) - num_columns;
  for (int axis = 0; axis < first; ++axis)
    if (shape[std::size_t(axis)] > 1 && strides[std::size_t(axis)] != 0) return false;
  const std::optional<Range> columns = merged(shape, strides, axes_from(first, num_columns));
  return columns && (columns->size == 1 || columns->stride == 1);
}

}  // namespace plait::cuda
