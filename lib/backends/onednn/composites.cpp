// Composites that oneDNN supports whole: layer_norm over the last axis, attention without a mask,
// and avg_pool.
//
// All propagate NaN: a row with a NaN is all NaN, because sums include it. SoftMax alone would not:
// it leaves the rest of such a row 0, which the product with v hides inside attention.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/transforms/transforms.h>

#include "graph.h"

namespace plait::onednn {
namespace {

using Op = dnnl::graph::op;

TensorSpec dense_spec(const Sizes64& shape) {
  const Sizes64 strides = dense_strides(shape);
  return {DType::float32, {shape.begin(), shape.end()}, {strides.begin(), strides.end()}};
}

// A kernel over dense inputs, some of which are numbers among the attributes. Its shapes are fixed,
// so oneDNN compiles it when it is made.
class CompositeKernel final : public Kernel {
 public:
  using SizesOf = Sizes64 (*)(const Aval& aval, const Params& attributes);
  CompositeKernel(const Equation& equation, const Jaxpr& group, std::vector<float> numbers,
                  const Compiled::Build& build, SizesOf sizes_of)
      : numbers_(std::move(numbers)) {
    std::vector<TensorSpec> specs;
    for (const Atom& atom : equation.inputs) {
      sources_.push_back(atom.var().id);
      specs.push_back(dense_spec(sizes_of(group->aval(atom), equation.params)));
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) specs.push_back(dense_spec({1}));
    const Aval& output = group->avals[equation.outputs[0].id];
    std::int64_t work = 64;  // products per element, or work that takes as long
    for (std::int64_t size : specs[0].dims) work *= size;
    compiled_ = Compiled::make(specs, dense_spec(sizes_of(output, equation.params)), work, build);
    if (!compiled_)
      throw BackendError("oneDNN refused " + equation.params.text("symbol"),
                         "set ONEDNN_VERBOSE=all to see why");
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch&) const override {
    std::vector<Buffer> copies;
    std::vector<void*> memory;
    copies.reserve(sources_.size());
    for (int source : sources_) {
      memory.push_back(inputs[source].data);
      if (inputs[source].is_dense()) continue;
      copies.push_back(Buffer::copy_of(inputs[source]));
      memory.back() = copies.back().mutable_data();
    }
    for (const float& number : numbers_) memory.push_back(const_cast<float*>(&number));
    compiled_->run(memory, outputs[0].data);
  }

 private:
  std::vector<float> numbers_;
  std::vector<int> sources_;
  std::shared_ptr<const Compiled> compiled_;
};

Support supports_layer_norm(const Params& attributes, std::span<const Aval> inputs) {
  const Shape& axes = attributes.get<Shape>("axes");
  if (axes.rank() != 1 || !(axes[0] == Dim(-1))) return Support::no("not over the last axis alone");
  if (attributes.flag("has_scale") != attributes.flag("has_bias"))
    return Support::no("scale or bias alone");
  if (inputs[0].rank() < 2 || inputs[0].rank() > 5)
    return Support::no("rank " + std::to_string(inputs[0].rank()));
  for (const Aval& parameter : inputs.subspan(1))
    if (parameter.rank() != 1) return Support::no("a scale or bias for each example");
  // Measured on [4096, 4096]: 4.7 ms here, 3.3 ms as one generated loop; no slower on smaller
  // sizes.
  constexpr std::int64_t largest = 1 << 22;
  if (inputs[0].shape.num_elements().constant() > largest)
    return Support::no("more than caches hold, which a generated loop reads once");
  return Support::yes();
}

void build_layer_norm(const Params& attributes, dnnl::graph::graph& graph,
                      std::span<const Tensor> inputs, const Tensor& output) {
  Op op(0, Op::kind::LayerNorm, {inputs.begin(), inputs.end()}, {output}, "layer_norm");
  op.set_attr<bool>(Op::attr::keep_stats, false);
  op.set_attr<bool>(Op::attr::use_affine, inputs.size() > 1);
  op.set_attr<float>(Op::attr::epsilon, float(attributes.get<double>("epsilon")));
  graph.add_op(op);
}

Sizes64 own_sizes(const Aval& aval, const Params&) { return aval.shape.to_sizes(); }

// [n, spatial ..., features]: all batch axes merged.
Sizes64 pooled_sizes(const Aval& aval, const Params& attributes) {
  const int num_batch = aval.rank() - 1 - attributes.get<Shape>("window").rank();
  Sizes64 sizes{1};
  for (int i = 0; i < aval.rank(); ++i) {
    const std::int64_t size = aval.shape[i].constant();
    if (i < num_batch)
      sizes[0] *= size;
    else
      sizes.push_back(size);
  }
  return sizes;
}

Support supports_avg_pool(const Params& attributes, std::span<const Aval> inputs) {
  const Shape& window = attributes.get<Shape>("window");
  if (window.rank() < 1 || window.rank() > 3)
    return Support::no(std::to_string(window.rank()) + " spatial dimensions");
  for (const char* side : {"padding_low", "padding_high"}) {
    const Shape& padding = attributes.get<Shape>(side);
    for (int i = 0; i < window.rank(); ++i)
      if (padding[i].constant() < 0 || padding[i].constant() >= window[i].constant())
        return Support::no("its padding");
  }
  if (!(inputs[0].dtype == DType::float32))
    return Support::no(std::string(name_of(inputs[0].dtype)));
  return Support::yes();
}

void build_avg_pool(const Params& attributes, dnnl::graph::graph& graph,
                    std::span<const Tensor> inputs, const Tensor& output) {
  auto list = [&](const char* name) {
    const Sizes64 sizes = attributes.get<Shape>(name).to_sizes();
    return Dims(sizes.begin(), sizes.end());
  };
  Op op(0, Op::kind::AvgPool, {inputs[0]}, {output}, "avg_pool");
  op.set_attr<Dims>(Op::attr::kernel, list("window"));
  op.set_attr<Dims>(Op::attr::strides, list("strides"));
  op.set_attr<Dims>(Op::attr::pads_begin, list("padding_low"));
  op.set_attr<Dims>(Op::attr::pads_end, list("padding_high"));
  op.set_attr<bool>(Op::attr::exclude_pad, !attributes.flag("count_include_pad"));
  op.set_attr<std::string>(Op::attr::data_format, "NXC");
  graph.add_op(op);
}

Support supports_attention(const Params& attributes, std::span<const Aval> inputs) {
  if (inputs.size() != 3 || attributes.has("causal")) return Support::no("a mask");
  for (const Aval& input : inputs) {
    if (input.rank() != 4) return Support::no("rank " + std::to_string(input.rank()));
    for (int axis : {0, 1})
      if (!(input.shape[axis] == inputs[0].shape[axis]))
        return Support::no("operands that several examples share");
  }
  // For a different depth, oneDNN writes wrong values, or past the end of the result.
  if (!(inputs[2].shape[3] == inputs[0].shape[3]))
    return Support::no("values of another depth than keys");
  return Support::yes();
}

// softmax(q k^T scale) v: oneDNN's partitioner fuses these four operations.
void build_attention(dnnl::graph::graph& graph, std::span<const Tensor> inputs,
                     const Tensor& output) {
  const Dims q = inputs[0].get_dims(), k = inputs[1].get_dims(), dims{q[0], q[1], q[2], k[2]};
  auto between = [&](std::size_t id) {
    return Tensor(id, Tensor::data_type::f32, dims, Tensor::layout_type::strided);
  };
  const Tensor scores = between(10), scaled = between(11), weights = between(12);
  Op product(0, Op::kind::MatMul, {inputs[0], inputs[1]}, {scores}, "scores");
  product.set_attr<bool>(Op::attr::transpose_b, true);
  const Op multiply(1, Op::kind::Multiply, {scores, inputs[3]}, {scaled}, "scale");
  Op softmax(2, Op::kind::SoftMax, {scaled}, {weights}, "softmax");
  softmax.set_attr<std::int64_t>(Op::attr::axis, -1);
  const Op mix(3, Op::kind::MatMul, {weights, inputs[2]}, {output}, "mix");
  for (const Op& op : {product, multiply, softmax, mix}) graph.add_op(op);
}

}  // namespace

Support supports_composite(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs) {
  const std::string& name = equation.params.text("symbol");
  if (name == "softmax" || name == "log_softmax") return Support::no("its softmax drops NaN");
  if (name != "layer_norm" && name != "attention" && name != "avg_pool") return Support::no();
  for (const Aval& input : inputs)
    if (input.dtype != DType::float32) return Support::no(std::string(name_of(input.dtype)));
  for (const Atom& atom : equation.inputs)
    if (!atom.is_var()) return Support::no("a scalar operand");
  if (outputs[0].shape.num_elements() == Dim(0)) return Support::no("nothing to compute");
  for (const Aval& input : inputs)
    if (input.shape.num_elements() == Dim(0)) return Support::no("nothing to compute");
  if (name == "attention") return supports_attention(equation.params, inputs);
  return name == "avg_pool" ? supports_avg_pool(equation.params, inputs)
                            : supports_layer_norm(equation.params, inputs);
}

std::unique_ptr<Kernel> make_composite(const Jaxpr& group) {
  const Equation& equation = group->equations[0];
  const Params& attributes = equation.params;
  const std::string& symbol = attributes.text("symbol");
  std::vector<float> numbers;
  if (symbol == "attention") numbers.push_back(float(attributes.get<double>("scale")));
  const Compiled::Build build = [&](dnnl::graph::graph& graph, std::span<const Tensor> inputs,
                                    const Tensor& output) {
    if (symbol == "attention") return build_attention(graph, inputs, output);
    if (symbol == "avg_pool") return build_avg_pool(attributes, graph, inputs, output);
    build_layer_norm(attributes, graph, inputs, output);
  };
  return std::make_unique<CompositeKernel>(equation, group, std::move(numbers), build,
                                           symbol == "avg_pool" ? pooled_sizes : own_sizes);
}

}  // namespace plait::onednn
