// Convolutions as cuDNN knows them: of images by kernels, with results, or the gradient with
// respect to images or kernels of one. All that the choice of an engine depends on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

#include <array>

#include "backends/cuda/cudnn/plan.h"

namespace plait::cuda {

using LongSizes = std::vector<std::int64_t>;

enum class Direction : std::uint8_t { forward, data_gradient, kernel_gradient };
// Packed: NCHW and KCRS, or NHWC and KRSC.
enum class Layout : std::uint8_t { channels_first, channels_last };

// Of addresses: what engines make use of. Others are chosen for memory that is aligned less.
inline constexpr std::int64_t tensor_alignment = 16;
inline constexpr std::int64_t most_workspace_bytes = std::int64_t{1} << 29;

// The three tensors of a convolution. Which of them is written is told by the direction.
enum class Place : std::uint8_t { image, kernel, result };

struct ConvolutionGraph {
  Direction direction = Direction::forward;
  DType dtype = DType::float32;
  Layout layout = Layout::channels_first;
  // [batch, channels, spatial ...]; kernels: [channels of the result, of the image in a group,
  // spatial ...].
  std::array<LongSizes, 3> sizes;
  LongSizes before, after, strides, dilations;  // along spatial axes
  // Of a forward convolution: an array of the result's shape, then a number for each channel are
  // added to it before it is rounded; then relu.
  bool adds_array = false, adds_bias = false, has_relu = false;
  std::int64_t alignment = tensor_alignment, most_workspace = most_workspace_bytes;

  const LongSizes& of(Place place) const { return sizes[std::size_t(place)]; }
  Place written() const;
  auto operator<=>(const ConvolutionGraph&) const = default;
  // "data gradient of bfloat16 NHWC 8x64x56x56 by 128x64x3x3 before 1x1 after 1x1 strides 2x2".
  std::string to_string() const;
};

// Of packed tensors.
LongSizes packed_strides(const LongSizes& sizes, Layout layout);

std::optional<int> cudnn_type(DType dtype);  // absent where the library has none for convolutions

// Memory of a call.
struct ConvolutionMemory {
  std::array<const void*, 3> tensors = {};
  const void *added = nullptr, *bias = nullptr;
};
std::vector<TensorMemory> numbered(const ConvolutionGraph& graph, const ConvolutionMemory& memory);

Operations describe(const ConvolutionGraph& graph);

}  // namespace plait::cuda
