// plait::ops: reductions of segments, which rows name by a number, under JAX's names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

namespace plait::ops {

// Row s of the result combines the rows of data whose segment_ids are s. Ids outside are dropped.
// num_segments is the largest id and one more by default, and must be given where ids are not
// known. Segments without rows hold 0, 1, or the least or largest number of the dtype.
Array segment_sum(Operand data, Operand segment_ids, std::optional<Dim> num_segments = {},
                  bool indices_are_sorted = false, bool unique_indices = false);
Array segment_prod(Operand data, Operand segment_ids, std::optional<Dim> num_segments = {},
                   bool indices_are_sorted = false, bool unique_indices = false);
Array segment_max(Operand data, Operand segment_ids, std::optional<Dim> num_segments = {},
                  bool indices_are_sorted = false, bool unique_indices = false);
Array segment_min(Operand data, Operand segment_ids, std::optional<Dim> num_segments = {},
                  bool indices_are_sorted = false, bool unique_indices = false);

}  // namespace plait::ops
