// See convolution_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/convolution_graph.h"

#include "backends/cuda/cublaslt/product.h"
#include "backends/cuda/measure.h"

namespace plait::cuda {
namespace {

// Numbers of tensors in a graph; those of the three places come first.
enum Number : std::int64_t { added_number = 4, bias_number, first_between };
std::int64_t number_of(Place place) { return 1 + std::int64_t(place); }

int type_of_sums(DType dtype) {
  return dtype == DType::float64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

// Describes the tensors and operations of a graph, one after the other.
class Describer {
 public:
  explicit Describer(const ConvolutionGraph& graph) : graph_(graph) {}

  Operations run() {
    made_.may_use_tensor_cores = graph_.dtype != DType::float32 || allows_tf32();
    made_.most_workspace = graph_.most_workspace;
    made_.most_candidates = most_candidates;
    made_.problem = graph_.to_string() + " workspace " + std::to_string(graph_.most_workspace) +
                    (made_.may_use_tensor_cores ? "" : " without tensor cores");
    made_.action = "start a convolution";
    int left = graph_.adds_array + graph_.adds_bias + graph_.has_relu;  // steps behind it
    cudnnBackendDescriptor_t last = result(left);
    convolve(last);
    const auto add = [&](std::int64_t number, const LongSizes& sizes) {
      const cudnnBackendDescriptor_t sum = result(--left);
      pointwise(CUDNN_POINTWISE_ADD, last, tensor(number, sizes), sum);
      last = sum;
    };
    if (graph_.adds_array) add(added_number, graph_.of(Place::result));
    if (graph_.adds_bias) {
      LongSizes channels(graph_.of(Place::result).size(), 1);
      channels[1] = graph_.of(Place::result)[1];
      add(bias_number, channels);
    }
    if (graph_.has_relu) pointwise(CUDNN_POINTWISE_RELU_FWD, last, nullptr, result(0));
    return std::move(made_);
  }

 private:
  cudnnBackendDescriptor_t tensor(std::int64_t number, const LongSizes& sizes) {
    std::size_t bytes = size_of(graph_.dtype);
    for (const std::int64_t size : sizes) bytes *= std::size_t(size);
    made_.bytes[number] = bytes;
    return made_.keep(std::move(plain(number, *cudnn_type(graph_.dtype), sizes).finalize()));
  }
  Descriptor plain(std::int64_t number, int type, const LongSizes& sizes) const {
    Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    made.number(CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
    made.choice(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    made.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    made.numbers(CUDNN_ATTR_TENSOR_STRIDES, packed_strides(sizes, graph_.layout));
    made.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, graph_.alignment);
    return made;
  }
  // What is written, or the unrounded sums that so many steps follow.
  cudnnBackendDescriptor_t result(int steps) {
    const Place place = graph_.written();
    if (steps == 0) return tensor(number_of(place), graph_.of(place));
    Descriptor between = plain(first_between + steps, type_of_sums(graph_.dtype), graph_.of(place));
    between.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    return made_.keep(std::move(between.finalize()));
  }
  void keep_operation(Descriptor operation) {
    made_.operations.push_back(made_.keep(std::move(operation.finalize())));
  }

  void convolve(cudnnBackendDescriptor_t written) {
    Descriptor how(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    how.choice(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, type_of_sums(graph_.dtype));
    how.choice(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
               CUDNN_CROSS_CORRELATION);
    how.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t(graph_.strides.size()));
    how.numbers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, graph_.before);
    how.numbers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, graph_.after);
    how.numbers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, graph_.strides);
    how.numbers(CUDNN_ATTR_CONVOLUTION_DILATIONS, graph_.dilations);
    const cudnnBackendDescriptor_t convolution = made_.keep(std::move(how.finalize()));
    struct Names {
      int kind, image, kernel, result, convolution, scale, old_scale;
    };
    static constexpr Names all[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    const Names& names = all[std::size_t(graph_.direction)];
    Descriptor operation(names.kind);
    operation.object(names.convolution, convolution);
    for (const auto& [attribute, place] :
         {std::pair(names.image, Place::image), std::pair(names.kernel, Place::kernel),
          std::pair(names.result, Place::result)})
      operation.object(attribute, place == graph_.written()
                                      ? written
                                      : tensor(number_of(place), graph_.of(place)));
    set_scale(operation, names.scale, 1);
    set_scale(operation, names.old_scale, 0);
    keep_operation(std::move(operation));
  }
  void set_scale(Descriptor& operation, int attribute, double value) const {
    const auto small = float(value);
    if (graph_.dtype == DType::float64)
      operation.set(attribute, CUDNN_TYPE_DOUBLE, 1, &value);
    else
      operation.set(attribute, CUDNN_TYPE_FLOAT, 1, &small);
  }

  void pointwise(int mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                 cudnnBackendDescriptor_t y) {
    Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.choice(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    how.choice(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, type_of_sums(graph_.dtype));
    if (mode == CUDNN_POINTWISE_RELU_FWD)
      how.choice(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION,
                 CUDNN_PROPAGATE_NAN);
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                     made_.keep(std::move(how.finalize())));
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) operation.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    operation.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    keep_operation(std::move(operation));
  }

  const ConvolutionGraph& graph_;
  Operations made_;
};

std::string joined(const LongSizes& sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

}  // namespace

Place ConvolutionGraph::written() const {
  switch (direction) {
    case Direction::data_gradient:
      return Place::image;
    case Direction::kernel_gradient:
      return Place::kernel;
    default:
      return Place::result;
  }
}

std::string ConvolutionGraph::to_string() const {
  static constexpr const char* names[] = {"forward", "data gradient", "kernel gradient"};
  std::string text = std::string(names[std::size_t(direction)]) + " " +
                     std::string(name_of(dtype)) +
                     (layout == Layout::channels_last ? " last " : " first ") +
                     joined(of(Place::image)) + " by " + joined(of(Place::kernel));
  const auto add = [&](const char* name, const LongSizes& sizes, std::int64_t usual) {
    for (const std::int64_t size : sizes)
      if (size != usual) return void(text += std::string(" ") + name + " " + joined(sizes));
  };
  add("strides", strides, 1);
  add("dilations", dilations, 1);
  add("before", before, 0);
  add("after", after, 0);
  if (adds_array) text += " array";
  if (adds_bias) text += " bias";
  if (has_relu) text += " relu";
  if (alignment != tensor_alignment) text += " aligned " + std::to_string(alignment);
  return text;
}

LongSizes packed_strides(const LongSizes& sizes, Layout layout) {
  LongSizes strides(sizes.size());
  std::int64_t step = 1;
  const auto place = [&](std::size_t axis) {
    strides[axis] = step;
    step *= sizes[axis];
  };
  if (layout == Layout::channels_last) place(1);
  for (std::size_t axis = sizes.size(); axis-- > 2;) place(axis);
  if (layout == Layout::channels_first) place(1);
  place(0);
  return strides;
}

std::optional<int> cudnn_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return CUDNN_DATA_FLOAT;
    case DType::float64:
      return CUDNN_DATA_DOUBLE;
    case DType::float16:
      return CUDNN_DATA_HALF;
    case DType::bfloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return std::nullopt;
  }
}

std::vector<TensorMemory> numbered(const ConvolutionGraph& graph, const ConvolutionMemory& memory) {
  std::vector<TensorMemory> all;
  for (const Place place : {Place::image, Place::kernel, Place::result})
    all.push_back({number_of(place), memory.tensors[std::size_t(place)]});
  if (graph.adds_array) all.push_back({added_number, memory.added});
  if (graph.adds_bias) all.push_back({bias_number, memory.bias});
  return all;
}

Operations describe(const ConvolutionGraph& graph) { return Describer(graph).run(); }

}  // namespace plait::cuda
