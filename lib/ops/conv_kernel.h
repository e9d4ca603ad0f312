// The reference kernel of conv. See conv_kernel.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <vector>

namespace plait {

// A convolution over memory of any layout: sizes, and strides in elements.
struct ConvLoops {
  struct Axis {
    std::int64_t size, count, window;  // of lhs, of the result, of the kernel
    std::int64_t stride, low, base_dilation, window_dilation;
    std::int64_t lhs_stride, rhs_stride, out_stride;
  };
  std::int64_t groups = 1, batch = 1, features = 1,
               out_features = 1;  // the last three within a group
  std::int64_t lhs_group_stride, lhs_batch_stride, lhs_feature_stride;
  std::int64_t rhs_group_stride, rhs_feature_stride, rhs_out_stride;
  std::int64_t out_group_stride, out_batch_stride, out_feature_stride;
  std::vector<Axis> axes;  // spatial; at least one
};

// float, double, complex64, complex128 or uint64 throughout.
void convolve(const ConvLoops& loops, DType dtype, const void* lhs, const void* rhs, void* out);

}  // namespace plait
