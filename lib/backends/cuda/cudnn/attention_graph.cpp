// See attention_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/attention_graph.h"

#include <algorithm>

namespace plait::cuda {
namespace {

constexpr int most_attention_candidates = 2;  // each takes about a second to compile
constexpr std::int64_t most_attention_workspace = std::int64_t{1} << 29;
// Of a gradient, for each pair: what generated loops would keep of it.
constexpr std::int64_t most_bytes_of_a_pair = 8;

// Numbers of tensors: those in memory by AttentionTensor, then numbers of the host, then what lies
// between operations.
enum AttentionNumber : std::int64_t {
  first_number = 1,
  scale_number = first_number + std::int64_t(num_attention_tensors),
  excluded_number,
  one_number,
  free_number
};
std::int64_t number_of(AttentionTensor tensor) { return first_number + std::int64_t(tensor); }

FourSizes dense_strides_of(const FourSizes& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}
FourSizes with_last_swapped(FourSizes sizes) {
  std::swap(sizes[2], sizes[3]);
  return sizes;
}
int type_in_memory(DType dtype) {
  return dtype == DType::float16    ? CUDNN_DATA_HALF
         : dtype == DType::bfloat16 ? CUDNN_DATA_BFLOAT16
                                    : CUDNN_DATA_FLOAT;
}

class AttentionDescriber {
 public:
  explicit AttentionDescriber(const AttentionGraph& graph)
      : graph_(graph),
        type_(type_in_memory(graph.dtype)),
        pairs_{graph.batch, graph.heads, graph.queries, graph.keys},
        rows_{graph.batch, graph.heads, graph.queries, 1} {}

  Operations run() {
    made_.problem = graph_.to_string();
    for (const FourSizes& strides : graph_.strides)
      for (const std::int64_t stride : strides) made_.problem += " " + std::to_string(stride);
    made_.most_candidates = most_attention_candidates;
    made_.most_workspace = most_attention_workspace;
    if (graph_.part == AttentionPart::gradient) {
      made_.most_workspace = std::max(made_.most_workspace, most_bytes_of_a_pair * pairs_[0] *
                                                                pairs_[1] * pairs_[2] * pairs_[3]);
      made_.action = "start the gradient of attention";
      describe_gradient();
    } else {
      made_.action = "start attention";
      describe_forward();
    }
    return std::move(made_);
  }

 private:
  using Made = cudnnBackendDescriptor_t;

  // softmax(scores) v. The engines take the transposed k.
  void describe_forward() {
    const Made q = tensor(AttentionTensor::q), k = transposed(AttentionTensor::k);
    const Made scores = scores_of(q, k, false);
    const Made largest = reduced(CUDNN_REDUCE_TENSOR_MAX, scores, rows_);
    const Made shifted = computed(CUDNN_POINTWISE_SUB, scores, largest);
    const Made powers = computed(CUDNN_POINTWISE_EXP, shifted, nullptr);
    const Made sums = reduced(CUDNN_REDUCE_TENSOR_ADD, powers, rows_);
    // Where nobody reads these logarithms the engines want them all the same: else they do not
    // recognise the graph.
    const Made logarithms = between(rows_, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_LOG, sums, nullptr, nullptr, logarithms);
    pointwise(CUDNN_POINTWISE_ADD, largest, logarithms, nullptr,
              graph_.writes(AttentionTensor::statistics) ? tensor(AttentionTensor::statistics)
                                                         : between(rows_, CUDNN_DATA_FLOAT));
    const Made weights = between(pairs_, type_);
    pointwise(CUDNN_POINTWISE_DIV, powers, sums, nullptr, weights);
    multiply(weights, tensor(AttentionTensor::v), tensor(AttentionTensor::result));
  }

  // With p = exp(scores - statistics), and d the cotangent of the result o:
  //   dv = p^T d,  ds = scale p (d v^T - sum(d o)),  dk = ds^T q,  dq = ds k.
  // dq is written by one product. Engines also take a graph that adds it up piece by piece, in an
  // order that may be any: their notes do not say so.
  void describe_gradient() {
    const FourSizes results = graph_.sizes_of(AttentionTensor::result);
    const Made q = tensor(AttentionTensor::q), k = transposed(AttentionTensor::k),
               v = transposed(AttentionTensor::v), o = tensor(AttentionTensor::result),
               d = tensor(AttentionTensor::cotangent);
    const Made product = between(results, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_MUL, d, o, nullptr, product);
    const Made sums = reduced(CUDNN_REDUCE_TENSOR_ADD, product, rows_);
    const Made weighted = tensor(AttentionTensor::weighted);
    pointwise(CUDNN_POINTWISE_MUL, sums, number(one_number), nullptr, weighted);
    const Made scores = scores_of(q, k, true);
    const Made powers = computed(CUDNN_POINTWISE_EXP, scores, nullptr);
    multiply(reshaped(powers, type_), d, tensor(AttentionTensor::of_v));
    const Made of_weights = between(pairs_, CUDNN_DATA_FLOAT);
    multiply(d, v, of_weights);
    const Made shifted = computed(CUDNN_POINTWISE_SUB, of_weights, weighted);
    const Made unscaled = computed(CUDNN_POINTWISE_MUL, shifted, powers);
    const Made of_scores = computed(CUDNN_POINTWISE_MUL, unscaled, number(scale_number));
    multiply(reshaped(of_scores, type_), q, tensor(AttentionTensor::of_k));
    const Made keys = virtual_tensor(type_, graph_.sizes_of(AttentionTensor::k),
                                     graph_.strides_of(AttentionTensor::k));
    reshape(k, keys);
    multiply(of_scores, keys, tensor(AttentionTensor::of_q));
  }

  // scale q k^T + bias, less the statistics of each row, and what an excluded pair has instead.
  Made scores_of(Made q, Made k, bool less_statistics) {
    const Made products = between(pairs_, CUDNN_DATA_FLOAT);
    multiply(q, k, products);
    Made scores = computed(CUDNN_POINTWISE_MUL, products, number(scale_number));
    if (graph_.bias) scores = computed(CUDNN_POINTWISE_ADD, scores, tensor(AttentionTensor::bias));
    if (less_statistics)
      scores = computed(CUDNN_POINTWISE_SUB, scores, tensor(AttentionTensor::statistics));
    return graph_.is_causal ? without_later_keys(scores) : scores;
  }

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
  Made in_memory(AttentionTensor which, const FourSizes& sizes, const FourSizes& strides) {
    made_.bytes[number_of(which)] = graph_.bytes_of(which);
    return made_.keep(std::move(plain(number_of(which), type_in_memory(graph_.dtype_of(which)),
                                      sizes, strides, attention_alignment)
                                    .finalize()));
  }
  Made tensor(AttentionTensor which) {
    return in_memory(which, graph_.sizes_of(which), graph_.strides_of(which));
  }
  Made transposed(AttentionTensor which) {
    return in_memory(which, with_last_swapped(graph_.sizes_of(which)),
                     with_last_swapped(graph_.strides_of(which)));
  }
  Made number(std::int64_t name) {
    Made& known = numbers_[std::size_t(name - scale_number)];
    if (known) return known;
    Descriptor made = plain(name, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, sizeof(float));
    made.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    made_.bytes[name] = 0;
    return known = made_.keep(std::move(made.finalize()));
  }
  Made virtual_tensor(int type, const FourSizes& sizes, const FourSizes& strides) {
    Descriptor made = plain(next_++, type, sizes, strides, attention_alignment);
    made.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return made_.keep(std::move(made.finalize()));
  }
  Made between(const FourSizes& sizes, int type) {
    return virtual_tensor(type, sizes, dense_strides_of(sizes));
  }
  void keep_operation(Descriptor operation) {
    made_.operations.push_back(made_.keep(std::move(operation.finalize())));
  }

  void multiply(Made a, Made b, Made c) {
    Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.choice(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    Descriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    operation.object(CUDNN_ATTR_OPERATION_MATMUL_DESC, made_.keep(std::move(how.finalize())));
    keep_operation(std::move(operation));
  }
  // Of pairs, to the transposed pairs of a product's left operand.
  Made reshaped(Made x, int type) {
    const FourSizes sizes = with_last_swapped(pairs_);
    const Made y = virtual_tensor(type, sizes, with_last_swapped(dense_strides_of(pairs_)));
    reshape(x, y);
    return y;
  }
  void reshape(Made x, Made y) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    operation.object(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    keep_operation(std::move(operation));
  }
  Made reduced(int reduction, Made x, const FourSizes& sizes) {
    const Made y = between(sizes, CUDNN_DATA_FLOAT);
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
  void pointwise(int mode, Made x, Made b, Made mask, Made y,
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
  Made computed(int mode, Made x, Made b) {
    const Made y = between(pairs_, CUDNN_DATA_FLOAT);
    pointwise(mode, x, b, nullptr, y);
    return y;
  }
  Made without_later_keys(Made scores) {
    const Made row = between(pairs_, CUDNN_DATA_INT32);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, row, 2);
    const Made column = between(pairs_, CUDNN_DATA_INT32);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, nullptr, nullptr, column, 3);
    const Made is_no_later = between(pairs_, CUDNN_DATA_BOOLEAN);
    pointwise(CUDNN_POINTWISE_CMP_GE, row, column, nullptr, is_no_later);
    const Made selected = between(pairs_, CUDNN_DATA_FLOAT);
    pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, number(excluded_number), is_no_later,
              selected);
    return selected;
  }

  const AttentionGraph& graph_;
  const int type_;
  const FourSizes pairs_, rows_;
  std::array<Made, free_number - scale_number> numbers_ = {};
  std::int64_t next_ = free_number;
  Operations made_;
};

std::string text_of_sizes(const FourSizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace

std::string_view name_of(AttentionTensor tensor) {
  static constexpr std::string_view names[num_attention_tensors] = {
      "q",
      "k",
      "v",
      "result",
      "cotangent",
      "statistics",
      "bias",
      "dq",
      "dk",
      "dv",
      "products of result and cotangent"};
  return names[std::size_t(tensor)];
}

DType AttentionGraph::dtype_of(AttentionTensor tensor) const {
  const bool is_wide = tensor == AttentionTensor::statistics ||
                       tensor == AttentionTensor::weighted ||
                       (tensor == AttentionTensor::bias && dtype == DType::float16);
  return is_wide ? DType::float32 : dtype;
}

FourSizes AttentionGraph::sizes_of(AttentionTensor tensor) const {
  switch (tensor) {
    case AttentionTensor::bias:
      return bias.value_or(FourSizes{1, 1, 1, 1});
    case AttentionTensor::q:
    case AttentionTensor::of_q:
      return {batch, heads, queries, depth};
    case AttentionTensor::k:
    case AttentionTensor::of_k:
      return {batch, heads, keys, depth};
    case AttentionTensor::v:
    case AttentionTensor::of_v:
      return {batch, heads, keys, value_depth};
    case AttentionTensor::result:
    case AttentionTensor::cotangent:
      return {batch, heads, queries, value_depth};
    default:
      return {batch, heads, queries, 1};
  }
}

FourSizes AttentionGraph::strides_of(AttentionTensor tensor) const {
  const bool is_strided = std::size_t(tensor) < num_strided_attention_tensors && !writes(tensor);
  return is_strided ? strides[std::size_t(tensor)] : dense_strides_of(sizes_of(tensor));
}

std::int64_t AttentionGraph::bytes_of(AttentionTensor tensor) const {
  const FourSizes sizes = sizes_of(tensor), strides = strides_of(tensor);
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < 4; ++axis) last += (sizes[axis] - 1) * strides[axis];
  return (last + 1) * std::int64_t(size_of(dtype_of(tensor)));
}

bool AttentionGraph::reads(AttentionTensor tensor) const {
  if (tensor == AttentionTensor::bias) return bias.has_value();
  return tensor <= AttentionTensor::v ||
         (part == AttentionPart::gradient && tensor <= AttentionTensor::statistics);
}

bool AttentionGraph::writes(AttentionTensor tensor) const {
  if (part == AttentionPart::gradient) return tensor > AttentionTensor::bias;
  return tensor == AttentionTensor::result ||
         (part == AttentionPart::training && tensor == AttentionTensor::statistics);
}

std::string AttentionGraph::to_string() const {
  std::string text = "attention " + std::string(name_of(dtype)) + " " +
                     text_of_sizes(sizes_of(AttentionTensor::q)) + " by " +
                     text_of_sizes(sizes_of(AttentionTensor::k));
  if (value_depth != depth) text += " of depth " + std::to_string(value_depth);
  for (std::size_t i = 0; i < num_strided_attention_tensors; ++i)
    if (const auto which = AttentionTensor(i);
        reads(which) && strides[i] != dense_strides_of(sizes_of(which)))
      text += " strided " + std::string(name_of(which));
  if (bias) text += " plus " + text_of_sizes(*bias);
  if (part == AttentionPart::training) text += " with statistics";
  if (part == AttentionPart::gradient) text += " gradient";
  return text + (is_causal ? " causal" : "");
}

std::vector<TensorMemory> numbered(const AttentionGraph& graph, const AttentionMemory& memory) {
  std::vector<TensorMemory> all;
  for (std::size_t i = 0; i < num_attention_tensors; ++i)
    if (const auto which = AttentionTensor(i); graph.reads(which) || graph.writes(which))
      all.push_back({number_of(which), memory.tensors[i]});
  all.push_back({scale_number, memory.scale});
  if (graph.is_causal) all.push_back({excluded_number, memory.excluded});
  if (graph.part == AttentionPart::gradient) all.push_back({one_number, memory.one});
  return all;
}

Operations describe(const AttentionGraph& graph) { return AttentionDescriber(graph).run(); }

}  // namespace plait::cuda
