// Descriptors of the stand-in of cuDNN: what may be set of them, and tensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/cudnn/api.h"

namespace standin {

using namespace plait::cuda;
using Numbers = std::vector<std::int64_t>;

// What the last failure of this thread said.
inline std::string& said() {
  static thread_local std::string text;
  return text;
}
inline cudnnStatus_t refuse(cudnnStatus_t status, std::string why) {
  said() = std::move(why);
  return status;
}
inline cudnnStatus_t bad(std::string why) { return refuse(CUDNN_STATUS_BAD_PARAM, std::move(why)); }

struct Known {
  int kind, attribute, type;
  bool is_needed;
};
inline constexpr Known known[] = {
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
     CUDNN_TYPE_CHAR, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
     CUDNN_TYPE_NAN_PROPOGATION, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     false},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_ADESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_CDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_ATTR_OPERATION_MATMUL_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, true},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     true},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
};

// The attributes of the three operations, in the order of Direction.
struct ConvolutionNames {
  int kind, image, kernel, result, how, scale, old_scale;
};
inline constexpr ConvolutionNames directions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

inline const ConvolutionNames* names_of(int kind) {
  for (const ConvolutionNames& names : directions)
    if (names.kind == kind) return &names;
  return nullptr;
}

// nullptr: no such attribute.
inline std::optional<Known> find_known(int kind, int attribute) {
  for (const Known& each : known)
    if (each.kind == kind && each.attribute == attribute) return each;
  if (const ConvolutionNames* names = names_of(kind)) {
    for (const int object : {names->image, names->kernel, names->result, names->how})
      if (object == attribute) return Known{kind, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, true};
    for (const int scale : {names->scale, names->old_scale})
      if (scale == attribute) return Known{kind, attribute, CUDNN_TYPE_FLOAT, true};
  }
  return std::nullopt;
}

inline std::size_t bytes_of(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

struct Object;
inline bool is_alive(const Object* object);

struct Object {
  struct Value {
    int type = 0;
    std::int64_t count = 0;
    std::vector<char> bytes;
  };
  explicit Object(int kind) : kind(kind) {}
  const int kind;
  bool is_finalized = false;
  int engine = 0;  // of an engine, a configuration, a plan
  std::int64_t workspace = 0;
  const Object* graph = nullptr;  // of a configuration
  std::map<int, Value> values;

  bool has(int attribute) const { return values.count(attribute) != 0; }
  template <class T>
  std::vector<T> all(int attribute) const {
    const Value& value = values.at(attribute);
    std::vector<T> read(std::size_t(value.count));
    std::memcpy(read.data(), value.bytes.data(), value.bytes.size());
    return read;
  }
  template <class T>
  T one(int attribute) const {
    return all<T>(attribute).at(0);
  }
  // Finalized, of a kind, and there; null otherwise.
  const Object* object(int attribute, int wanted) const {
    if (!has(attribute)) return nullptr;
    const Object* found = one<Object*>(attribute);
    return is_alive(found) && found->is_finalized && found->kind == wanted ? found : nullptr;
  }
};

inline std::mutex& alive_mutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
inline std::set<const Object*>& alive() {
  static std::set<const Object*>& all = *new std::set<const Object*>;
  return all;
}
inline bool is_alive(const Object* object) {
  const std::lock_guard lock(alive_mutex());
  return alive().count(object) != 0;
}

struct Tensor {
  explicit Tensor(const Object& object)
      : described_by(&object),
        number(object.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        alignment(object.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        type(object.one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        is_virtual(object.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        is_by_value(object.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE)),
        sizes(object.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(object.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}
  const Object* described_by;
  std::int64_t number, alignment;
  int type;
  bool is_virtual, is_by_value;
  Numbers sizes, strides;

  // From the first element to behind the last one.
  std::size_t reach() const {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
    return std::size_t(last + 1) * element();
  }
  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }
  std::size_t element() const {
    switch (type) {
      case CUDNN_DATA_DOUBLE:
        return 8;
      case CUDNN_DATA_FLOAT:
      case CUDNN_DATA_INT32:
        return 4;
      case CUDNN_DATA_BOOLEAN:
        return 1;
      default:
        return 2;
    }
  }
  bool is_packed(bool channels_last) const {
    std::int64_t step = 1;
    bool is_so = true;
    const auto check = [&](std::size_t axis) {
      is_so &= strides[axis] == step;
      step *= sizes[axis];
    };
    if (channels_last) check(1);
    for (std::size_t axis = sizes.size(); axis-- > 2;) check(axis);
    if (!channels_last) check(1);
    check(0);
    return is_so;
  }
};

inline cudnnStatus_t check_tensor(const Object& object) {
  const Tensor tensor(object);
  if (tensor.sizes.size() != tensor.strides.size() || tensor.sizes.size() < 3 ||
      tensor.sizes.size() > 5)
    return bad("a tensor's dimensions");
  for (const Numbers* numbers : {&tensor.sizes, &tensor.strides})
    for (const std::int64_t number : *numbers)
      if (number < 1) return bad("a tensor has sizes or strides below 1");
  if (tensor.alignment % std::int64_t(tensor.element()) != 0) return bad("a tensor's alignment");
  for (const int type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                         CUDNN_DATA_INT32, CUDNN_DATA_BOOLEAN})
    if (tensor.type == type) return CUDNN_STATUS_SUCCESS;
  return bad("a tensor's type");
}

}  // namespace standin
