// Evaluating conv: dtypes and layouts, before the kernel (conv_kernel.cpp) runs.
// SPDX-License-Identifier: Apache-2.0
#include "conv.h"

namespace plait {
namespace {

View cast_view(const View& view, DType dtype, Buffer& keep) {
  if (view.dtype == dtype) return view;
  keep = Buffer::empty(dtype, view.shape);
  eval_pointwise(cast_p, std::span(&view, 1), std::span(&keep.view(), 1),
                 {{"dtype", dtype}, {"weak", false}});
  return keep.view();
}

}  // namespace

DType compute_dtype(DType a, DType b) {
  if (category_of(a) == Category::integer) return DType::uint64;
  const DType wide = size_of(a) > size_of(b) ? a : b;
  return wide == DType::float16 || wide == DType::bfloat16 ? DType::float32 : wide;
}

namespace {

ConvLoops loops_of(const Conv& conv, const View& lhs, const View& rhs, const View& out) {
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  const std::int64_t feature_groups = conv.feature_groups.constant(),
                     batch_groups = conv.batch_groups.constant();
  ConvLoops loops;
  loops.groups = std::max(feature_groups, batch_groups);
  loops.batch = lhs.shape[lhs_spec[0]] / batch_groups;
  loops.features = rhs.shape[rhs_spec[1]];
  loops.out_features = rhs.shape[rhs_spec[0]] / loops.groups;
  loops.lhs_batch_stride = lhs.strides[lhs_spec[0]];
  loops.lhs_feature_stride = lhs.strides[lhs_spec[1]];
  loops.lhs_group_stride = batch_groups > 1 ? loops.batch * loops.lhs_batch_stride
                                            : loops.features * loops.lhs_feature_stride;
  loops.rhs_out_stride = rhs.strides[rhs_spec[0]];
  loops.rhs_feature_stride = rhs.strides[rhs_spec[1]];
  loops.rhs_group_stride = loops.out_features * loops.rhs_out_stride;
  loops.out_batch_stride = out.strides[out_spec[0]];
  loops.out_feature_stride = out.strides[out_spec[1]];
  loops.out_group_stride = loops.out_features * loops.out_feature_stride;
  const Windows& w = conv.windows;
  for (std::size_t i = 0; i + 2 < lhs_spec.size(); ++i) {
    const int at = int(i) + 2, l = lhs_spec[at], r = rhs_spec[at], o = out_spec[at];
    loops.axes.push_back({lhs.shape[l], out.shape[o], rhs.shape[r], w.strides[i].constant(),
                          w.low[i].constant(), w.base_dilation[i].constant(),
                          w.window_dilation[i].constant(), lhs.strides[l], rhs.strides[r],
                          out.strides[o]});
  }
  if (loops.axes.empty()) loops.axes.push_back({1, 1, 1, 1, 0, 1, 1, 1, 1, 1});  // a matrix product
  return loops;
}

View permuted(const View& view, const std::vector<int>& order) {
  View moved{view.data, view.dtype, {}, {}};
  for (int axis : order)
    moved.shape.push_back(view.shape[axis]), moved.strides.push_back(view.strides[axis]);
  return moved;
}
// A dense array whose dimensions lie in memory in the order of spec, viewed in logical order.
View in_order_of(const Buffer& dense, const std::vector<int>& spec) {
  std::vector<int> back(spec.size());
  for (std::size_t i = 0; i < spec.size(); ++i) back[spec[i]] = int(i);
  return permuted(dense.view(), back);
}

}  // namespace

void eval_conv(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  const Conv conv(params);
  const View& out = outputs[0];
  if (num_elements(out.shape) == 0) return;
  const DType dtype = compute_dtype(inputs[0].dtype, out.dtype);
  Buffer keep[4];
  View lhs = cast_view(inputs[0], dtype, keep[0]), target = out;
  const View rhs = cast_view(inputs[1], dtype, keep[1]);
  // Groups of few features that are interleaved in memory: each would read the whole image, so they
  // are copied apart.
  const auto& [lhs_spec, rhs_spec, out_spec] = conv.dimensions;
  constexpr std::int64_t few = 8;
  const std::int64_t groups = conv.groups().constant();
  if (groups > 1 && rhs.shape[rhs_spec[1]] < few && lhs.strides[lhs_spec[1]] == 1) {
    keep[2] = Buffer::copy_of(permuted(lhs, lhs_spec));
    lhs = in_order_of(keep[2], lhs_spec);
  }
  const bool apart =
      groups > 1 && rhs.shape[rhs_spec[0]] / groups < few && out.strides[out_spec[1]] == 1;
  if (apart || dtype != out.dtype) {
    keep[3] = Buffer::empty(dtype, apart ? permuted(out, out_spec).shape : out.shape);
    target = apart ? in_order_of(keep[3], out_spec) : keep[3].view();
  }
  convolve(loops_of(conv, lhs, rhs, target), dtype, lhs.data, rhs.data, target.data);
  if (dtype != out.dtype)
    eval_pointwise(cast_p, std::span(&target, 1), outputs, {{"dtype", out.dtype}, {"weak", false}});
  else if (target.data != out.data)
    copy_elements(target, out);
}

}  // namespace plait
