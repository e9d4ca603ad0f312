// conv as a convolution of cuDNN or one of its gradients. The transpose of a convolution is a
// convolution again in plait, which is recognised by its shape:
//
//   holes in lhs            the gradient with respect to images, with the kernel reversed. So is
//   one
//                           without holes whose kernel is read in reverse
//   a kernel larger than    the gradient with respect to kernels, where the cotangent is the
//   kernel: the result, or groups   strides and dilations have changed places, and so have batch
//   and of the batch            features of lhs
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/ir/jaxpr.h>

#include "backends/cuda/cudnn/convolution_graph.h"

namespace plait::cuda {

// Where a tensor lies in the memory of an operand or the result. Its first two dimensions, batch
// and channels or the channels of a kernel, are an axis each, or part of one, or two of them.
struct ConvolutionTensor {
  enum class Part : std::uint8_t { all, groups, of_a_group };  // an axis [groups, rest], split
  struct Axis {
    int number;
    Part part = Part::all;
  };
  int array = 0;  // 0: lhs, 1: rhs, 2: the result
  std::vector<Axis> first, second;
  std::vector<int> spatial;
  std::int64_t groups = 1;
  bool is_reversed = false;  // along spatial axes

  // With an axis for each part.
  View view_of(const View& array) const;
  LongSizes sizes_of(const View& array) const;
  // The same axes in packed memory.
  View packed(const View& array, Layout layout, void* data) const;
  bool is_packed(const View& array, Layout layout) const;
};

// An equation as one convolution of the library.
struct ConvolutionForm {
  ConvolutionGraph graph;  // but for its layout
  std::array<ConvolutionTensor, 3> tensors;
  const ConvolutionTensor& of(Place place) const { return tensors[std::size_t(place)]; }
};

// Of an equation, by its operands and its result without memory. All forms that it has, the best
// one first; none where cuDNN has no such convolution: negative padding, or holes in lhs with
// strides or groups of the batch.
std::vector<ConvolutionForm> forms_of(const Params& params, const std::array<View, 3>& arrays);

// The layout that the first of its tensors has which has only one.
Layout layout_of(const ConvolutionForm& form, const std::array<View, 3>& arrays);

}  // namespace plait::cuda
