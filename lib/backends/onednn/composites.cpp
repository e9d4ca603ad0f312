// Composites that oneDNN has whole: layer_norm over the last axis, and attention without a mask.
//
// Both keep NaN: a row with one is NaN altogether, because sums run over it. SoftMax alone does not, it
// leaves the rest of such a row 0; inside attention the product with v hides that.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/transforms.h>

#include "graph.h"

namespace plait::onednn {
namespace {

using Op = dnnl::graph::op;

TensorSpec dense_spec(const Sizes64& shape) {
  const Sizes64 strides = dense_strides(shape);
  return {DType::float32, {shape.begin(), shape.end()}, {strides.begin(), strides.end()}};
}

// A kernel over dense inputs, some of them numbers among the attributes. Its shapes are fixed, so oneDNN is
// asked when it is made.
class CompositeKernel final : public Kernel {
 public:
  CompositeKernel(const Equation& equation, const Jaxpr& group, std::vector<float> numbers, const Compiled::Build& build)
      : numbers_(std::move(numbers)) {
    std::vector<TensorSpec> specs;
    for (const Atom& atom : equation.inputs) {
      sources_.push_back(atom.var().id);
      specs.push_back(dense_spec(group->aval(atom).shape.to_sizes()));
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i) specs.push_back(dense_spec({1}));
    compiled_ = Compiled::make(specs, dense_spec(group->avals[equation.outputs[0].id].shape.to_sizes()), build);
    if (!compiled_) throw BackendError("oneDNN refused " + equation.params.text("symbol"), "set ONEDNN_VERBOSE=all to see why");
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*, const Stream&) const override {
    std::vector<Buffer> copies;
    std::vector<void*> memory;
    copies.reserve(sources_.size());
    for (int source : sources_) {
      memory.push_back(inputs[source].data);
      if (inputs[source].is_dense()) continue;
      copies.push_back(Buffer::copy_of(inputs[source]));
      memory.back() = copies.back().data();
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
  if (attributes.flag("has_scale") != attributes.flag("has_bias")) return Support::no("scale or bias alone");
  if (inputs[0].rank() < 2 || inputs[0].rank() > 5) return Support::no("rank " + std::to_string(inputs[0].rank()));
  for (const Aval& parameter : inputs.subspan(1))
    if (parameter.rank() != 1) return Support::no("a scale or bias for each example");
  return Support::yes();
}

void build_layer_norm(const Params& attributes, dnnl::graph::graph& graph, std::span<const Tensor> inputs,
                      const Tensor& output) {
  Op op(0, Op::kind::LayerNorm, {inputs.begin(), inputs.end()}, {output}, "layer_norm");
  op.set_attr<bool>(Op::attr::keep_stats, false);
  op.set_attr<bool>(Op::attr::use_affine, inputs.size() > 1);
  op.set_attr<float>(Op::attr::epsilon, float(attributes.get<double>("epsilon")));
  graph.add_op(op);
}

Support supports_attention(std::span<const Aval> inputs) {
  if (inputs.size() != 3) return Support::no("a mask");
  if (inputs[0].rank() != 4) return Support::no("rank " + std::to_string(inputs[0].rank()));
  return Support::yes();
}

// softmax(q k^T scale) v: the partitioner knows these four as one.
void build_attention(dnnl::graph::graph& graph, std::span<const Tensor> inputs, const Tensor& output) {
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

Support supports_composite(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval> outputs) {
  const ParamValue* symbol = equation.params.find("symbol");
  const std::string name = symbol ? std::get<std::string>(*symbol) : "";
  if (name == "softmax" || name == "log_softmax") return Support::no("its softmax drops NaN");
  if (name != "layer_norm" && name != "attention") return Support::no();
  for (const Aval& input : inputs)
    if (input.dtype != DType::float32) return Support::no(std::string(name_of(input.dtype)));
  for (const Atom& atom : equation.inputs)
    if (!atom.is_var()) return Support::no("a scalar operand");
  if (outputs[0].shape.num_elements() == Dim(0)) return Support::no("nothing to compute");
  for (const Aval& input : inputs)
    if (input.shape.num_elements() == Dim(0)) return Support::no("nothing to compute");
  return name == "attention" ? supports_attention(inputs) : supports_layer_norm(equation.params, inputs);
}

std::unique_ptr<Kernel> make_composite(const Equation& equation, const Jaxpr& group) {
  const Params& attributes = equation.params;
  if (equation.params.text("symbol") == "attention")
    return std::make_unique<CompositeKernel>(
        equation, group, std::vector<float>{float(attributes.get<double>("scale"))},
        [](dnnl::graph::graph& graph, std::span<const Tensor> inputs, const Tensor& output) { build_attention(graph, inputs, output); });
  return std::make_unique<CompositeKernel>(
      equation, group, std::vector<float>{},
      [&](dnnl::graph::graph& graph, std::span<const Tensor> inputs, const Tensor& output) {
        build_layer_norm(attributes, graph, inputs, output);
      });
}

}  // namespace plait::onednn
