// Shared by conv's rules and kernel: its parsed parameters, and the kernel's interface.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "primitives/reduction/window.h"

namespace plait {

inline lax::ConvDimensions conv_dimensions_of(const Params& params) {
  return {params.ints("lhs_spec"), params.ints("rhs_spec"), params.ints("out_spec")};
}
inline std::vector<int> spatial(const std::vector<int>& spec) {
  return {spec.begin() + 2, spec.end()};
}

// Parsed parameters: dimension numbers, windows over the spatial axes, groups.
struct Conv {
  lax::ConvDimensions dimensions;
  Windows windows;  // window is the kernel's spatial shape
  Dim feature_groups, batch_groups;
  DType dtype;

  Conv(const Params& params, const Shape& rhs) : Conv(params) {
    for (int axis : spatial(dimensions.rhs_spec)) windows.window.push_back(rhs[axis]);
  }
  explicit Conv(const Params& params)
      : dimensions(conv_dimensions_of(params)),
        windows{{},
                params.get<Shape>("window_strides"),
                params.get<Shape>("padding_low"),
                params.get<Shape>("padding_high"),
                params.get<Shape>("lhs_dilation"),
                params.get<Shape>("rhs_dilation")},
        feature_groups(params.get<Dim>("feature_group_count")),
        batch_groups(params.get<Dim>("batch_group_count")),
        dtype(params.get<DType>("dtype")) {}
  Params params() const {
    return {{"window_strides", windows.strides},
            {"padding_low", windows.low},
            {"padding_high", windows.high},
            {"lhs_dilation", windows.base_dilation},
            {"rhs_dilation", windows.window_dilation},
            {"lhs_spec", to_shape(dimensions.lhs_spec)},
            {"rhs_spec", to_shape(dimensions.rhs_spec)},
            {"out_spec", to_shape(dimensions.out_spec)},
            {"feature_group_count", feature_groups},
            {"batch_group_count", batch_groups},
            {"dtype", dtype}};
  }
  Dim groups() const { return feature_groups == Dim(1) ? batch_groups : feature_groups; }
  Array operator()(const Array& lhs, const Array& rhs) const {
    return bind(conv_p, {lhs, rhs}, params());
  }
};

// Integers, real and complex numbers do not convert into one another.
enum class Category { integer, real, complex };
inline Category category_of(DType dtype) {
  return is_complex(dtype)    ? Category::complex
         : is_floating(dtype) ? Category::real
                              : Category::integer;
}

// In which a result is computed: 16-bit floats are multiplied and summed in float32 and rounded
// once; integers wrap.
DType compute_dtype(DType a, DType b);

loops::Tensors emit_conv(loops::Writer& writer, const Equation& equation,
                         std::span<const loops::Tensor> inputs);
void eval_conv(std::span<const View> inputs, std::span<const View> outputs, const Params& params);

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
