// Attention of the stand-in of cuDNN, and its gradient: softmax(scale q k^T) v as engines recognise
// it, operation by operation.
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
    } else if (kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      tensor(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
      tensor(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
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
    if (kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      return b && b->sizes.size() == 4 && b->sizes[2] == x->sizes[3];
    if (kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      return transposed(x->sizes) == y->sizes && transposed(x->strides) == y->strides;
    return mode >= 0;
  }

 private:
  static Numbers transposed(Numbers numbers) {
    std::swap(numbers[2], numbers[3]);
    return numbers;
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
    if (!first_product()) return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a graph without products");
    return CUDNN_STATUS_SUCCESS;
  }
  // Operations may share a tensor, which is described once.
  std::vector<Tensor> in_memory() const override {
    std::vector<Tensor> all;
    for (const Operation& operation : operations_)
      for (const std::optional<Tensor>* tensor :
           {&operation.x, &operation.b, &operation.mask, &operation.y}) {
        if (!*tensor || (*tensor)->is_virtual) continue;
        const bool is_known = std::ranges::any_of(
            all, [&](const Tensor& each) { return each.described_by == (*tensor)->described_by; });
        if (!is_known) all.push_back(**tensor);
      }
    return all;
  }
  std::vector<Tensor> written() const override {
    std::vector<Tensor> all;
    for (const Operation& operation : operations_)
      if (!operation.y->is_virtual) all.push_back(*operation.y);
    return all;
  }
  // As cuDNN: 16-bit floats, vectors of whole 16 bytes, and the logarithm of the sums of rows.
  std::vector<int> engines(int mode) const override {
    if (mode == CUDNN_HEUR_MODE_FALLBACK || !are_known()) return {};
    const bool has_logarithm = std::ranges::any_of(
        operations_, [](const Operation& each) { return each.mode == CUDNN_POINTWISE_LOG; });
    if (is_gradient()) return {in_any_order, of_gradient};
    return has_logarithm ? std::vector{in_any_order, of_attention} : std::vector<int>{};
  }
  std::vector<int> notes(int engine) const override {
    if (engine == in_any_order) return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  }
  // A gradient keeps that of scores.
  std::int64_t workspace(int) const override {
    return is_gradient() ? 2 * first_product()->y->count() : 0;
  }
  std::string text() const override {
    const Operation& scores = *first_product();
    std::string text =
        "attention " + joined(scores.x->sizes) + " by " + std::to_string(scores.b->sizes[3]);
    if (const Tensor* added = bias()) text += " plus " + joined(added->sizes);
    if (is_gradient())
      text += " gradient";
    else if (written().size() > 1)
      text += " with statistics";
    const bool is_causal = std::ranges::any_of(
        operations_, [](const Operation& each) { return each.mode == CUDNN_POINTWISE_CMP_GE; });
    return text + (is_causal ? " causal" : "");
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
          rounded(*operation.y,
                  computed(operation, read(operation.x), read(operation.b), read(operation.mask)));
    }
    for (const Tensor& tensor : written()) {
      std::vector<float>& result = values.at(tensor.number);
      if (engine == in_any_order)
        std::ranges::fill(result, std::numeric_limits<float>::quiet_NaN());
      store(tensor, result, memory.at(tensor.number));
    }
  }

 private:
  // A gradient begins with the products of result and cotangent.
  bool is_gradient() const {
    return operations_[0].kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
  }
  const Operation* first_product() const {
    for (const Operation& operation : operations_)
      if (operation.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) return &operation;
    return nullptr;
  }
  // 16-bit operands of products, whose vectors fill 16 bytes.
  bool are_known() const {
    const int type = first_product()->x->type;
    const std::int64_t most = is_gradient() ? 128 : 256;
    const auto is_taken = [&](const Tensor& tensor) {
      if (tensor.is_virtual) return true;
      const std::size_t inner = tensor.strides[3] == 1 ? 3 : 2;  // k is described transposed
      return (type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16) && tensor.type == type &&
             tensor.strides[inner] == 1 && tensor.sizes[inner] % 8 == 0 &&
             tensor.sizes[inner] <= most;
    };
    return std::ranges::all_of(operations_, [&](const Operation& operation) {
      return operation.kind != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR ||
             (is_taken(*operation.x) && is_taken(*operation.b) && is_taken(*operation.y));
    });
  }
  // What is added to scores.
  const Tensor* bias() const {
    for (const Operation& operation : operations_)
      if (operation.mode == CUDNN_POINTWISE_ADD && operation.b && !operation.b->is_virtual &&
          operation.kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        return &*operation.b;
    return nullptr;
  }

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
      if (tensor.type == CUDNN_DATA_FLOAT)
        static_cast<float*>(memory)[to] = value;
      else if (tensor.type == CUDNN_DATA_HALF)
        static_cast<plait::float16*>(memory)[to] = plait::float16(value);
      else
        static_cast<plait::bfloat16*>(memory)[to] = plait::bfloat16(value);
    });
  }

  // To the type of a tensor, between operations too.
  static std::vector<float> rounded(const Tensor& tensor, std::vector<float> values) {
    if (tensor.type == CUDNN_DATA_HALF)
      for (float& value : values) value = float(plait::float16(value));
    if (tensor.type == CUDNN_DATA_BFLOAT16)
      for (float& value : values) value = float(plait::bfloat16(value));
    return values;
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
    } else if (operation.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      each_element(y, [&](const auto& at) {
        result[place(y, at)] = x[place(from, {at[0], at[1], at[3], at[2]})];
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
        return x / b;
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
