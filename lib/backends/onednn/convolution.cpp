// conv as Convolution, ConvTranspose or ConvolutionBackwardWeights. A transposed convolution
// reaches us as a convolution again, and is recognised by its shape:
//
//   holes in lhs            the gradient by data of a strided convolution: ConvTranspose with the
//   kernel
//                           turned around
//   a kernel larger than    the gradient by weights, where the cotangent is the kernel: strides and
//   the result              dilations have changed places, and batch and features of lhs
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>

#include "graph.h"

namespace plait::onednn {
namespace {

using Sizes = std::vector<std::int64_t>;
enum class Form { forward, transposed, weights };

// An equation's parameters as numbers; axes of views by role: batch, feature, spatial ... (of the
// kernel: out, in, spatial ...).
struct Convolution {
  std::vector<int> lhs_spec, rhs_spec, out_spec;
  Sizes strides, low, high, lhs_dilation, rhs_dilation;
  std::int64_t groups;
  bool has_batch_groups;
  Sizes lhs, rhs, out;  // sizes by role

  Convolution(const Params& params, const Aval& lhs_aval, const Aval& rhs_aval,
              const Aval& out_aval)
      : lhs_spec(params.ints("lhs_spec")),
        rhs_spec(params.ints("rhs_spec")),
        out_spec(params.ints("out_spec")),
        strides(list(params, "window_strides")),
        low(list(params, "padding_low")),
        high(list(params, "padding_high")),
        lhs_dilation(list(params, "lhs_dilation")),
        rhs_dilation(list(params, "rhs_dilation")),
        groups(params.integer("feature_group_count")),
        has_batch_groups(params.integer("batch_group_count") != 1),
        lhs(by_role(lhs_aval, lhs_spec)),
        rhs(by_role(rhs_aval, rhs_spec)),
        out(by_role(out_aval, out_spec)) {}

  std::size_t num_spatial() const { return strides.size(); }
  bool has_holes() const {
    return std::any_of(lhs_dilation.begin(), lhs_dilation.end(),
                       [](std::int64_t d) { return d != 1; });
  }
  std::int64_t product(const Sizes& sizes) const {
    std::int64_t total = 1;
    for (std::size_t i = 2; i < sizes.size(); ++i) total *= sizes[i];
    return total;
  }
  std::int64_t work() const { return out[0] * out[1] * product(out) * product(rhs) * rhs[1]; }
  Form form() const {
    if (has_holes()) return Form::transposed;
    return product(rhs) > product(out) ? Form::weights : Form::forward;
  }

 private:
  static Sizes list(const Params& params, std::string_view name) {
    Sizes sizes;
    for (Dim dim : params.get<Shape>(name)) sizes.push_back(dim.constant());
    return sizes;
  }
  static Sizes by_role(const Aval& aval, const std::vector<int>& spec) {
    Sizes sizes;
    for (int axis : spec) sizes.push_back(aval.shape[axis].constant());
    return sizes;
  }
};

// Padding of the operation in this form; nothing when it has none.
struct Padding {
  Sizes begin, end, output;
};
std::optional<Padding> padding_of(const Convolution& c) {
  Padding padding;
  for (std::size_t i = 0; i < c.num_spatial(); ++i) {
    std::int64_t begin = c.low[i], end = c.high[i], output = 0;
    if (c.form() == Form::transposed) {
      const std::int64_t reach = c.rhs_dilation[i] * (c.rhs[i + 2] - 1);
      if (c.strides[i] != 1) return std::nullopt;
      begin = reach - begin;
      end = reach - end;
      if (end < 0) output = -end, end = 0;
      if (output >= std::max(c.lhs_dilation[i], std::int64_t(1)) && output > 0) return std::nullopt;
    } else if (c.form() == Form::weights) {
      // The convolution that this is the gradient of: the result is its kernel, rhs its result.
      const std::int64_t kernel = c.strides[i] * (c.out[i + 2] - 1) + 1, stride = c.rhs_dilation[i];
      end = std::max<std::int64_t>(0, (c.rhs[i + 2] - 1) * stride + kernel - c.lhs[i + 2] - begin);
      if (begin < 0 || (c.lhs[i + 2] + begin + end - kernel) / stride + 1 != c.rhs[i + 2])
        return std::nullopt;
    }
    if (begin < 0 || end < 0) return std::nullopt;
    padding.begin.push_back(begin);
    padding.end.push_back(end);
    padding.output.push_back(output);
  }
  return padding;
}

// A view with its axes in the order of the operation's roles; copied where oneDNN cannot walk it.
TensorSpec spec_of(const View& view, const std::vector<int>& axes, std::vector<Buffer>& copies,
                   void*& memory) {
  View moved{view.data, view.dtype, {}, {}};
  for (int axis : axes)
    moved.shape.push_back(view.shape[axis]), moved.strides.push_back(view.strides[axis]);
  memory = view.data;
  // Whole tensors in any order of axes; no windows, no broadcasts.
  Sizes order(axes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int64_t(i);
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return moved.strides[a] > moved.strides[b]; });
  std::int64_t dense = 1;
  bool is_whole = true;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int64_t axis = order[i];
    if (moved.shape[axis] == 1) continue;
    is_whole &= moved.strides[axis] == dense;
    dense *= moved.shape[axis];
  }
  if (!is_whole) {
    copies.push_back(Buffer::copy_of(moved));
    memory = copies.back().data();
    moved = copies.back().view();
  }
  return {view.dtype,
          {moved.shape.begin(), moved.shape.end()},
          {moved.strides.begin(), moved.strides.end()}};
}

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const Jaxpr& group, Convolution convolution)
      : equation_(group->equations[0]),
        eval_(rule<Eval>(*equation_.primitive)),
        c_(std::move(convolution)),
        form_(c_.form()),
        padding_(*padding_of(c_)),
        epilogues_(group) {}

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream&) const override {
    const View both[2] = {inputs[equation_.inputs[0].var().id],
                          inputs[equation_.inputs[1].var().id]};
    std::vector<Buffer> copies;
    copies.reserve(3);
    std::vector<void*> memory(2);
    std::vector<int> lhs_axes = c_.lhs_spec, rhs_axes = c_.rhs_spec, out_axes = c_.out_spec;
    View kernel = both[1];
    if (form_ == Form::transposed) kernel = turned(kernel, copies);
    if (form_ == Form::weights) {  // features of lhs were examples, and so on
      std::swap(lhs_axes[0], lhs_axes[1]);
      std::swap(rhs_axes[0], rhs_axes[1]);
      std::swap(out_axes[0], out_axes[1]);
    }
    std::vector<TensorSpec> specs;
    specs.push_back(spec_of(both[0], lhs_axes, copies, memory[0]));
    specs.push_back(spec_of(kernel, rhs_axes, copies, memory[1]));
    TensorSpec out{outputs[0].dtype, {}, {}};
    for (int axis : out_axes)
      out.dims.push_back(outputs[0].shape[axis]), out.strides.push_back(outputs[0].strides[axis]);
    epilogues_.add_operands(inputs, 1, outputs[0].rank(), specs, memory, copies);
    const std::shared_ptr<const Compiled> compiled =
        cache_.find_or_make(specs, [&] { return Compiled::make(specs, out, c_.work(), build()); });
    if (compiled) return compiled->run(memory, outputs[0].data);
    eval_(both, outputs, equation_.params);
    epilogues_.evaluate(inputs, outputs[0]);
  }

  std::string note() const override {
    return form_ == Form::forward      ? "forward"
           : form_ == Form::transposed ? "data gradient"
                                       : "weight gradient";
  }

 private:
  // The kernel with its spatial axes reversed.
  View turned(const View& view, std::vector<Buffer>& copies) const {
    View reversed = view;
    char* start = view.as<char>();
    for (std::size_t i = 2; i < c_.rhs_spec.size(); ++i) {
      const int axis = c_.rhs_spec[i];
      start += (view.shape[axis] - 1) * view.strides[axis] * size_of(view.dtype);
      reversed.strides[axis] = -view.strides[axis];
    }
    reversed.data = start;
    copies.push_back(Buffer::copy_of(reversed));
    return copies.back().view();
  }

  Compiled::Build build() const {
    return
        [this](dnnl::graph::graph& graph, std::span<const Tensor> sources, const Tensor& output) {
          graph.add_op(operation(sources, epilogues_.product(output), output.get_dims()));
          epilogues_.add_operations(graph, sources.subspan(2), output);
        };
  }

  dnnl::graph::op operation(std::span<const Tensor> sources, const Tensor& result,
                            const Dims& out_dims) const {
    using Op = dnnl::graph::op;
    const Op::kind kind = form_ == Form::forward      ? Op::kind::Convolution
                          : form_ == Form::transposed ? Op::kind::ConvTranspose
                                                      : Op::kind::ConvolutionBackwardWeights;
    Op op(0, kind, {sources[0], sources[1]}, {result}, "conv");
    const bool swapped = form_ == Form::weights;
    op.set_attr<Dims>(Op::attr::strides, form_ == Form::transposed ? c_.lhs_dilation
                                         : swapped                 ? c_.rhs_dilation
                                                                   : c_.strides);
    op.set_attr<Dims>(Op::attr::dilations, swapped ? c_.strides : c_.rhs_dilation);
    op.set_attr<Dims>(Op::attr::pads_begin, padding_.begin);
    op.set_attr<Dims>(Op::attr::pads_end, padding_.end);
    op.set_attr<std::int64_t>(Op::attr::groups, c_.groups);
    op.set_attr<std::string>(Op::attr::data_format, "NCX");
    op.set_attr<std::string>(Op::attr::weights_format, "OIX");
    if (form_ == Form::transposed) op.set_attr<Dims>(Op::attr::output_padding, padding_.output);
    if (swapped) op.set_attr<Dims>(Op::attr::weights_shape, out_dims);
    return op;
  }

  const Equation equation_;
  const Eval::Rule& eval_;
  const Convolution c_;
  const Form form_;
  const Padding padding_;
  const Epilogues epilogues_;
  const CompiledCache<Compiled> cache_;
};

}  // namespace

Support supports_convolution(const Equation& equation, std::span<const Aval> inputs,
                             std::span<const Aval> outputs) {
  const DType dtype = inputs[0].dtype;
  if (!has_type(dtype)) return Support::no("no " + std::string(name_of(dtype)) + " here");
  if (outputs[0].dtype != dtype)
    return Support::no("a result of another dtype, " + std::string(name_of(outputs[0].dtype)));
  const Convolution c(equation.params, inputs[0], inputs[1], outputs[0]);
  if (c.num_spatial() < 1 || c.num_spatial() > 3)
    return Support::no(std::to_string(c.num_spatial()) + " spatial dimensions");
  const std::int64_t work = c.work();
  if (work == 0 || inputs[0].shape.num_elements() == Dim(0))
    return Support::no("nothing to compute");
  if (work <= small_work) return Support::no("small: " + std::to_string(work) + " products");
  if (c.has_batch_groups) return Support::no("groups of the batch");
  if (c.groups != 1 && c.form() != Form::forward)
    return Support::no("the gradient of a grouped convolution");
  if (!padding_of(c)) return Support::no("its padding");
  return Support::yes();
}

std::unique_ptr<Kernel> make_convolution(const Jaxpr& group) {
  const Equation& equation = group->equations[0];
  return std::make_unique<ConvolutionKernel>(
      group, Convolution(equation.params, group->aval(equation.inputs[0]),
                         group->aval(equation.inputs[1]), group->avals[equation.outputs[0].id]));
}

}  // namespace plait::onednn
