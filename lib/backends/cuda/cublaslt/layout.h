// Operands of dot_general as batches of matrices that cuBLASLt reads where they lie.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <compare>
#include <optional>

#include "primitives/contraction/dot.h"

namespace plait::cuda {

// The axes of one operand, by what they are in a product. Contracted axes are listed in the same
// order for both operands.
struct OperandAxes {
  std::vector<int> batch, free, contract;
};
struct ProductAxes {
  OperandAxes lhs, rhs;
  // Contracted axes are in the order in which they lie in lhs: a sum has no order of its own here.
  ProductAxes(const Params& params, const Sizes64& lhs_strides, int rhs_rank);
};

// How many matrices [free, contract] there are, and how large they are.
struct MatrixSizes {
  std::int64_t batch = 1, free = 1, contract = 1;
};
MatrixSizes sizes_of(const Sizes64& shape, const OperandAxes& axes);

// Where the elements are: of a matrix and of the next one, in elements. Either free or contracted
// axes are those along which neighbours lie.
struct MatrixLayout {
  bool contract_is_inner = true;
  std::int64_t leading = 1;       // from one run of inner elements to the next
  std::int64_t batch_stride = 0;  // 0: all matrices are one
  auto operator<=>(const MatrixLayout&) const = default;
};
// Absent where the axes do not merge: then a copy is read.
std::optional<MatrixLayout> layout_of(const Sizes64& shape, const Sizes64& strides,
                                      const OperandAxes& axes);

// A dense copy [batch, free, contract], with all axes apart, and its layout.
View copied_view(const View& operand, const OperandAxes& axes);  // what is copied, in this order
MatrixLayout copied_layout(const MatrixSizes& sizes);

// Memory as [batch, rows, columns], rows apart by leading, for what is added to a product.
std::optional<MatrixLayout> rows_of(const Sizes64& shape, const Sizes64& strides, int num_batch,
                                    int num_rows);
// Whether a value is the same in all rows, which are a run of numbers: a bias.
bool is_repeated_row(const Sizes64& shape, const Sizes64& strides, int num_columns);

}  // namespace plait::cuda
