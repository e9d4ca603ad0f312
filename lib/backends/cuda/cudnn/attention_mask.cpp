// See attention_mask.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/attention_mask.h"

#include <plait/primitives/primitives.h>
#include <plait/trace/trace.h>

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernel.h"

namespace plait::cuda {
namespace {

// All 16-bit floats of such an exponent have it, and times log2(e) it is finite.
const double excluded = -std::ldexp(1.0, 100);

// The mask's shape, with 1 for axes along which it is repeated. Leading axes but the heads are
// repeated together.
Sizes64 narrow_shape(const Sizes64& shape, const Sizes64& strides) {
  Sizes64 narrow = shape;
  const std::size_t rank = shape.size();
  const auto is_repeated = [&](std::size_t axis) { return shape[axis] == 1 || strides[axis] == 0; };
  for (const std::size_t axis : {rank - 3, rank - 2})
    if (is_repeated(axis)) narrow[axis] = 1;
  bool are_repeated = true;
  for (std::size_t axis = 0; axis + 3 < rank; ++axis) are_repeated &= is_repeated(axis);
  if (are_repeated) std::fill_n(narrow.begin(), rank - 3, 1);
  return narrow;
}

View narrow_view(const View& mask) {
  return {mask.data, mask.dtype, narrow_shape(mask.shape, mask.strides), mask.strides};
}

Shape shape_of(const Sizes64& sizes) {
  Shape shape;
  for (const std::int64_t size : sizes) shape.push_back(Dim(size));
  return shape;
}

Array number(double value, const Array& like) {
  return lax::full(like.shape(), value, like.dtype());
}

std::unique_ptr<Kernel> kernel_of(const Function& function, std::span<const View> inputs,
                                  Device device) {
  std::vector<Aval> avals;
  std::vector<Sizes64> strides;
  for (const View& input : inputs) {
    avals.push_back({shape_of(input.shape), input.dtype});
    strides.push_back(input.strides);
  }
  return make_program_kernel(make_jaxpr(function, avals).jaxpr, strides, device);
}

// What is known of rows, for each element of an array whose leading axes they are. Sizes of 1 are
// repeated.
Array for_each(const Array& rows, const Array& array) {
  Shape kept;
  std::vector<int> dims;
  for (int axis = 0; axis < rows.ndim(); ++axis)
    if (!(rows.shape(axis) == Dim(1))) kept.push_back(rows.shape(axis)), dims.push_back(axis);
  return lax::broadcast_in_dim(lax::reshape(rows, kept), array.shape(), dims);
}

}  // namespace

FourSizes bias_of(const Sizes64& shape, const Sizes64& strides) {
  const Sizes64 narrow = narrow_shape(shape, strides);
  const std::size_t rank = narrow.size();
  FourSizes four{1, narrow[rank - 3], narrow[rank - 2], narrow[rank - 1]};
  for (std::size_t axis = 0; axis + 3 < rank; ++axis) four[0] *= narrow[axis];
  return four;
}

AttentionMask::Made AttentionMask::make(DType dtype, const Sizes64& shape) {
  Made made{{nullptr, dtype, shape, dense_strides(shape)}, 0};
  made.at = frame_.add(num_elements(shape) * std::int64_t(size_of(dtype)));
  return made;
}

AttentionMask::AttentionMask(const AttentionGraph& graph, const View& mask, const View& q,
                             Device device)
    : is_gradient_(graph.part == AttentionPart::gradient), narrow_(narrow_view(mask)) {
  const DType dtype = graph.dtype_of(AttentionTensor::bias);
  bias_ = make(dtype, narrow_.shape);
  const auto bias = [dtype](const Array& allowed) {
    const Array zeros = lax::full(allowed.shape(), 0, dtype);
    return lax::select(allowed, zeros, number(excluded, zeros));
  };
  if (!is_gradient_) {
    const Function make_bias = [&](std::span<const Array> in) { return Arrays{bias(in[0])}; };
    before_ = kernel_of(make_bias, {&narrow_, 1}, device);
    before_at_ = frame_.add(before_->scratch_bytes());
    return;
  }
  Sizes64 rows = narrow_.shape, of_statistics = q.shape;
  rows.back() = 1, of_statistics.pop_back();
  has_pairs_ = make(DType::bool_, rows);
  q_ = make(q.dtype, q.shape);
  statistics_ = make(DType::float32, of_statistics);
  of_q_ = make(q.dtype, q.shape);
  const double log_keys = std::log(double(graph.keys));
  const Function make_operands = [&](std::span<const Array> in) {
    const Array &allowed = in[0], &queries = in[1], &logarithms = in[2];
    const int last[] = {allowed.ndim() - 1};
    const Array any = lax::reduce_or(allowed, last), column = lax::reshape(any, shape_of(rows));
    return Arrays{bias(lax::bitwise_or(allowed, lax::bitwise_not(for_each(column, allowed)))),
                  column, lax::select(for_each(column, queries), queries, number(0, queries)),
                  lax::select(for_each(any, logarithms), logarithms, number(log_keys, logarithms))};
  };
  const View operands[] = {narrow_, q, statistics_.view};
  before_ = kernel_of(make_operands, operands, device);
  before_at_ = frame_.add(before_->scratch_bytes());
  const Function clear_rows = [&](std::span<const Array> in) {
    return Arrays{lax::select(for_each(in[0], in[1]), in[1], number(0, in[1]))};
  };
  const View results[] = {has_pairs_.view, of_q_.view};
  behind_ = kernel_of(clear_rows, results, device);
  behind_at_ = frame_.add(behind_->scratch_bytes());
}

void AttentionMask::before(const View& mask, const View& q, AttentionMemory& memory, char* scratch,
                           const Launch& launch) const {
  const auto at = [&](AttentionTensor tensor) -> const void*& {
    return memory.tensors[std::size_t(tensor)];
  };
  std::vector<View> inputs{narrow_}, outputs{bias_.in(scratch)};
  inputs[0].data = mask.data;
  if (is_gradient_) {
    View statistics = statistics_.view;
    statistics.data = const_cast<void*>(at(AttentionTensor::statistics));
    inputs.insert(inputs.end(), {q, statistics});
    outputs.insert(outputs.end(),
                   {has_pairs_.in(scratch), q_.in(scratch), statistics_.in(scratch)});
    at(AttentionTensor::q) = outputs[2].data;
    at(AttentionTensor::statistics) = outputs[3].data;
    at(AttentionTensor::of_q) = scratch + of_q_.at;
  }
  at(AttentionTensor::bias) = outputs[0].data;
  before_->enqueue(inputs, outputs, scratch + before_at_, launch);
}

void AttentionMask::behind(const void* of_q, char* scratch, const Launch& launch) const {
  if (!is_gradient_ || !of_q) return;
  const View inputs[] = {has_pairs_.in(scratch), of_q_.in(scratch)};
  View output = of_q_.view;
  output.data = const_cast<void*>(of_q);
  behind_->enqueue(inputs, {&output, 1}, scratch + behind_at_, launch);
}

}  // namespace plait::cuda
