// Attention of the stand-in of cuDNN: softmax(scale q k^T) v as engines recognise it, operation by
// operation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cuda/device/plait/base/dtype.h"
#include "program.h"

namespace standin {

// An operation between tensors.
struct Operation {
  explicit Operation(const Object& object) : kind(object.kind) {
    const auto tensor = [&](int attribute, std::optional<Tensor>& place) {
      if (const Object* found = object.object(attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
        place.emplace(*found);
    };
    if (kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      tensor(CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
      tensor(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
      tensor(CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    } else if (kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      tensor(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
      tensor(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
      if (const Object* how = object.object(CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                                            CUDNN_BACKEND_REDUCTION_DESCRIPTOR))
        mode = how->one<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
    } else if (kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
      tensor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
      tensor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
      tensor(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask);
      tensor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
      if (const Object* how = object.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                            CUDNN_BACKEND_POINTWISE_DESCRIPTOR)) {
        mode = how->one<int>(CUDNN_ATTR_POINTWISE_MODE);
        if (how->has(CUDNN_ATTR_POINTWISE_AXIS))
          axis = how->one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
      }
    }
  }
  int kind, mode = -1;
  std::int64_t axis = -1;
  std::optional<Tensor> x, b, mask, y;

  bool is_complete() const {
    if (!x || !y || x->sizes.size() != 4 || y->sizes.size() != 4) return false;
    const bool is_product = kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    return is_product ? b && b->sizes.size() == 4 && b->sizes[2] == x->sizes[3] : mode >= 0;
  }
};

class AttentionProgram final : public Program {
 public:
  // operations: alive, and finalized.
  explicit AttentionProgram(const std::vector<Object*>& objects) {
    for (const Object* object : objects) operations_.emplace_back(*object);
  }

  cudnnStatus_t check() const override {
    for (const Operation& operation : operations_)
      if (!operation.is_complete()) return bad("an operation of attention");
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<Tensor> in_memory() const override {
    std::vector<Tensor> all;
    for (const Operation& operation : operations_)
      for (const std::optional<Tensor>* tensor :
           {&operation.x, &operation.b, &operation.mask, &operation.y})
        if (*tensor && !(*tensor)->is_virtual) all.push_back(**tensor);
    return all;
  }
  const Tensor& written() const override { return *operations_.back().y; }
  // As cuDNN: 16-bit floats, vectors of whole 16 bytes, and the logarithm of the sums of rows.
  std::vector<int> engines(int mode) const override {
    const Tensor &q = *operations_[0].x, &v = *operations_.back().b;
    const bool is_16_bit = q.type == CUDNN_DATA_HALF || q.type == CUDNN_DATA_BFLOAT16;
    const bool has_logarithm = std::ranges::any_of(
        operations_, [](const Operation& each) { return each.mode == CUDNN_POINTWISE_LOG; });
    const bool is_taken = is_16_bit && has_logarithm && q.sizes[3] % 8 == 0 &&
                          v.sizes[3] % 8 == 0 && q.sizes[3] <= 256 && q.strides[3] == 1;
    if (!is_taken || mode == CUDNN_HEUR_MODE_FALLBACK) return {};
    return {in_any_order, of_attention};
  }
  std::vector<int> notes(int engine) const override {
    if (engine == in_any_order) return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  }
  std::int64_t workspace(int) const override { return 0; }
  std::string text() const override {
    const bool is_causal = std::ranges::any_of(
        operations_, [](const Operation& each) { return each.mode == CUDNN_POINTWISE_CMP_GE; });
    return "attention " + joined(operations_[0].x->sizes) + " by " +
           std::to_string(operations_[0].b->sizes[3]) + (is_causal ? " causal" : "");
  }

  void run(int engine, const std::map<std::int64_t, void*>& memory) const override {
    std::map<std::int64_t, std::vector<float>> values;
    for (const Operation& operation : operations_) {
      const auto read = [&](const std::optional<Tensor>& tensor) {
        if (!tensor) return std::vector<float>{};
        const auto at = values.find(tensor->number);
        return at != values.end() ? at->second : loaded(*tensor, memory.at(tensor->number));
      };
      values[operation.y->number] =
          computed(operation, read(operation.x), read(operation.b), read(operation.mask));
    }
    std::vector<float>& result = values.at(written().number);
    if (engine == in_any_order) std::ranges::fill(result, std::numeric_limits<float>::quiet_NaN());
    store(written(), result, memory.at(written().number));
  }

 private:
  static std::size_t place(const Tensor& tensor, const std::array<std::int64_t, 4>& at) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < 4; ++i)
      place = place * tensor.sizes[i] + (tensor.sizes[i] == 1 ? 0 : at[i]);
    return std::size_t(place);
  }
  static void each_element(const Tensor& tensor, const auto& f) {
    std::array<std::int64_t, 4> at{};
    for (at[0] = 0; at[0] < tensor.sizes[0]; ++at[0])
      for (at[1] = 0; at[1] < tensor.sizes[1]; ++at[1])
        for (at[2] = 0; at[2] < tensor.sizes[2]; ++at[2])
          for (at[3] = 0; at[3] < tensor.sizes[3]; ++at[3]) f(at);
  }
  static std::int64_t offset(const Tensor& tensor, const std::array<std::int64_t, 4>& at) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < 4; ++i) offset += at[i] * tensor.strides[i];
    return offset;
  }
  static std::vector<float> loaded(const Tensor& tensor, const void* memory) {
    std::vector<float> values(std::size_t(tensor.count()));
    each_element(tensor, [&](const auto& at) {
      const std::int64_t from = offset(tensor, at);
      values[place(tensor, at)] = tensor.type == CUDNN_DATA_FLOAT
                                      ? static_cast<const float*>(memory)[from]
                                  : tensor.type == CUDNN_DATA_HALF
                                      ? float(static_cast<const plait::float16*>(memory)[from])
                                      : float(static_cast<const plait::bfloat16*>(memory)[from]);
    });
    return values;
  }
  static void store(const Tensor& tensor, const std::vector<float>& values, void* memory) {
    each_element(tensor, [&](const auto& at) {
      const float value = values[place(tensor, at)];
      const std::int64_t to = offset(tensor, at);
      if (tensor.type == CUDNN_DATA_HALF)
        static_cast<plait::float16*>(memory)[to] = plait::float16(value);
      else
        static_cast<plait::bfloat16*>(memory)[to] = plait::bfloat16(value);
    });
  }

  static std::vector<float> computed(const Operation& operation, const std::vector<float>& x,
                                     const std::vector<float>& b, const std::vector<float>& mask) {
    const Tensor &from = *operation.x, &y = *operation.y;
    std::vector<float> result(std::size_t(y.count()));
    if (operation.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      each_element(y, [&](const auto& at) {
        float sum = 0;
        for (std::int64_t i = 0; i < from.sizes[3]; ++i)
          sum += x[place(from, {at[0], at[1], at[2], i})] *
                 b[place(*operation.b, {at[0], at[1], i, at[3]})];
        result[place(y, at)] = sum;
      });
    } else if (operation.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
      const bool is_sum = operation.mode == CUDNN_REDUCE_TENSOR_ADD;
      std::ranges::fill(result, is_sum ? 0 : -std::numeric_limits<float>::infinity());
      each_element(from, [&](const auto& at) {
        float& reduced = result[place(y, at)];
        const float value = x[place(from, at)];
        reduced = is_sum ? reduced + value : std::isnan(value) || value > reduced ? value : reduced;
      });
    } else {
      each_element(y, [&](const auto& at) {
        const float left = x[place(from, at)], right = operation.b ? b[place(*operation.b, at)] : 0,
                    chosen = operation.mask ? mask[place(*operation.mask, at)] : 0;
        result[place(y, at)] = pointwise(operation, left, right, chosen, at);
      });
    }
    return result;
  }
  static float pointwise(const Operation& operation, float x, float b, float mask,
                         const std::array<std::int64_t, 4>& at) {
    switch (operation.mode) {
      case CUDNN_POINTWISE_ADD:
        return x + b;
      case CUDNN_POINTWISE_SUB:
        return x - b;
      case CUDNN_POINTWISE_MUL:
        return x * b;
      case CUDNN_POINTWISE_DIV:
        return operation.y->type == CUDNN_DATA_HALF ? float(plait::float16(x / b))
                                                    : float(plait::bfloat16(x / b));
      case CUDNN_POINTWISE_EXP:
        return std::exp(x);
      case CUDNN_POINTWISE_LOG:
        return std::log(x);
      case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
      case CUDNN_POINTWISE_GEN_INDEX:
        return float(at[std::size_t(operation.axis)]);
      case CUDNN_POINTWISE_BINARY_SELECT:
        return mask != 0 ? x : b;
      default:
        return std::numeric_limits<float>::quiet_NaN();
    }
  }

  std::vector<Operation> operations_;
};

}  // namespace standin
