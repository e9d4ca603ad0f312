// See attention_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/attention_graph.h"

namespace plait::cuda {
namespace {

using FourSizes = std::array<std::int64_t, 4>;

constexpr std::int64_t most_attention_workspace = std::int64_t{1} << 29;

// Numbers of tensors in memory; what lies between operations has the ones behind.
enum AttentionNumber : std::int64_t {
  q_number = 1,
  scale_number = 5,
  excluded_number,
  free_number
};

FourSizes dense_strides_of(const FourSizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}
int type_in_memory(DType dtype) {
  return dtype == DType::float16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

class AttentionDescriber {
 public:
  explicit AttentionDescriber(const AttentionGraph& graph)
      : graph_(graph),
        pairs_{graph.batch, graph.heads, graph.queries, graph.keys},
        rows_{graph.batch, graph.heads, graph.queries, 1} {}

  Operations run() {
    made_.most_workspace = most_attention_workspace;
    made_.action = "start attention";
    const int type = type_in_memory(graph_.dtype);
    const cudnnBackendDescriptor_t q = operand(0), v = operand(2);
    // The engines take the transposed k.
    FourSizes sizes = graph_.sizes_of(1), strides = graph_.strides[1];
    std::swap(sizes[2], sizes[3]);
    std::swap(strides[2], strides[3]);
    const cudnnBackendDescriptor_t k = tensor(q_number + 1, type, sizes, strides);
    cudnnBackendDescriptor_t scores = between(pairs_, CUDNN_DATA_FLOAT);
    multiply(q, k, scores);
    scores = computed(CUDNN_POINTWISE_MUL, scores, number(scale_number));
    if (graph_.is_causal) scores = without_later_keys(scores);
    const cudnnBackendDescriptor_t largest = reduced(CUDNN_REDUCE_TENSOR_MAX, scores);
    const cudnnBackendDescriptor_t shifted = computed(CUDNN_POINTWISE_SUB, scores, largest);
    const cudnnBackendDescriptor_t powers = computed(CUDNN_POINTWISE_EXP, shifted, nullptr);
    const cudnnBackendDescriptor_t sums = reduced(CUDNN_REDUCE_TENSOR_ADD, powers);
    // Nobody reads the logarithm of the sums of a row, but without it the engines do not recognise
    // the graph.
    const cudnnBackendDescriptor_t logarithms = between(rows_, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_LOG, sums, nullptr, nullptr, logarithms);
    pointwise(CUDNN_POINTWISE_ADD, largest, logarithms, nullptr, between(rows_, CUDNN_DATA_FLOAT));
    const cudnnBackendDescriptor_t weights = between(pairs_, type);
    pointwise(CUDNN_POINTWISE_DIV, powers, sums, nullptr, weights);
    const FourSizes result = graph_.sizes_of(3);
    multiply(weights, v, tensor(q_number + 3, type, result, dense_strides_of(result)));
    return std::move(made_);
  }

 private:
  Descriptor plain(std::int64_t name, int type, const FourSizes& sizes, const FourSizes& strides,
                   std::int64_t alignment) const {
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.number(CUDNN_ATTR_TENSOR_UNIQUE_ID, name);
    made.choice(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    made.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    made.numbers(CUDNN_ATTR_TENSOR_STRIDES, strides);
    made.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
    return made;
  }
  cudnnBackendDescriptor_t tensor(std::int64_t name, int type, const FourSizes& sizes,
                                  const FourSizes& strides) {
    return made_.keep(std::move(plain(name, type, sizes, strides, attention_alignment).finalize()));
  }
  cudnnBackendDescriptor_t operand(int index) {
    return tensor(q_number + index, type_in_memory(graph_.dtype), graph_.sizes_of(index),
                  graph_.strides[std::size_t(index)]);
  }
  cudnnBackendDescriptor_t number(std::int64_t name) {
    Descriptor made = plain(name, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, sizeof(float));
    made.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    return made_.keep(std::move(made.finalize()));
  }
  cudnnBackendDescriptor_t between(const FourSizes& sizes, int type) {
    Descriptor made = plain(next_++, type, sizes, dense_strides_of(sizes), attention_alignment);
    made.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return made_.keep(std::move(made.finalize()));
  }
  void keep_operation(Descriptor operation) {
    made_.operations.push_back(made_.keep(std::move(operation.finalize())));
  }

  void multiply(cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                cudnnBackendDescriptor_t c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.choice(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_DESC, made_.keep(std::move(how.finalize())));
    keep_operation(std::move(operation));
  }
  cudnnBackendDescriptor_t reduced(int reduction, cudnnBackendDescriptor_t x) {
    const cudnnBackendDescriptor_t y = between(rows_, CUDNN_DATA_FLOAT);
    Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.choice(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, reduction);
    how.choice(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    Descriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    operation.object(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    operation.object(CUDNN_ATTR_OPERATION_REDUCTION_DESC, made_.keep(std::move(how.finalize())));
    keep_operation(std::move(operation));
    return y;
  }
  // mask: of what is selected; axis: along which places are counted.
  void pointwise(int mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                 cudnnBackendDescriptor_t mask, cudnnBackendDescriptor_t y,
                 std::optional<std::int64_t> axis = {}) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.choice(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    how.choice(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (axis) how.number(CUDNN_ATTR_POINTWISE_AXIS, *axis);
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                     made_.keep(std::move(how.finalize())));
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) operation.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (mask) operation.object(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, mask);
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    keep_operation(std::move(operation));
  }
  cudnnBackendDescriptor_t computed(int mode, cudnnBackendDescriptor_t x,
                                    cudnnBackendDescriptor_t b) {
    const cudnnBackendDescriptor_t y = between(pairs_, CUDNN_DATA_FLOAT);
    pointwise(mode, x, b, nullptr, y);
    return y;
  }
  cudnnBackendDescriptor_t without_later_keys(cudnnBackendDescriptor_t scores) {
    const cudnnBackendDescriptor_t row = between(pairs_, CUDNN_DATA_INT32);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, row, 2);
    const cudnnBackendDescriptor_t column = between(pairs_, CUDNN_DATA_INT32);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, column, 3);
    const cudnnBackendDescriptor_t is_no_later = between(pairs_, CUDNN_DATA_BOOLEAN);
    pointwise(CUDNN_POINTWISE_CMP_GE, row, column, nullptr, is_no_later);
    const cudnnBackendDescriptor_t selected = between(pairs_, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, number(excluded_number), is_no_later,
              selected);
    return selected;
  }

  const AttentionGraph& graph_;
  const FourSizes pairs_, rows_;
  std::int64_t next_ = free_number;
  Operations made_;
};

std::string text_of_sizes(const FourSizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace

std::array<std::int64_t, 4> AttentionGraph::sizes_of(int operand) const {
  return {batch, heads, operand == 0 || operand == 3 ? queries : keys,
          operand < 2 ? depth : value_depth};
}

std::string AttentionGraph::to_string() const {
  std::string text = "attention " + std::string(name_of(dtype)) + " " + text_of_sizes(sizes_of(0)) +
                     " by " + text_of_sizes(sizes_of(1));
  if (value_depth != depth) text += " of depth " + std::to_string(value_depth);
  for (int i = 0; i < 3; ++i)
    if (strides[std::size_t(i)] != dense_strides_of(sizes_of(i)))
      text += std::string(" strided ") + "qkv"[i];
  return text + (is_causal ? " causal" : "");
}

std::vector<TensorMemory> numbered(const AttentionGraph& graph, const AttentionMemory& memory) {
  std::vector<TensorMemory> all;
  for (std::size_t i = 0; i < memory.tensors.size(); ++i)
    all.push_back({q_number + std::int64_t(i), memory.tensors[i]});
  all.push_back({scale_number, memory.scale});
  if (graph.is_causal) all.push_back({excluded_number, memory.excluded});
  return all;
}

Operations describe(const AttentionGraph& graph) { return AttentionDescriber(graph).run(); }

}  // namespace plait::cuda
