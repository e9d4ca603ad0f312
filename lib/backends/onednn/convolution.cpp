// conv as a convolution of oneDNN or one of its gradients. A transposed convolution arrives as a
// convolution again, and is recognised by its shape:
//
//   base dilation of lhs    the gradient with respect to images of a strided convolution, with the
//                           kernel reversed
//   a kernel larger than    the gradient with respect to kernels, where the cotangent is the
//   the result              kernel: strides and dilations have changed places, and so have batch
//                           and features of lhs. Groups are those of the features, which lhs has
//                           in its batch, or those of examples (vmap), which it has in its features
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include <array>

#include "conv_primitive.h"

namespace plait::onednn {
namespace {

using Sizes = std::vector<std::int64_t>;

// The parameters of an equation as numbers; axes of views by role: batch, feature, spatial ... (for
// the kernel: out, in, spatial ...).
struct Convolution {
  std::vector<int> lhs_spec, rhs_spec, out_spec;
  Sizes strides, low, high, lhs_dilation, rhs_dilation;
  std::int64_t groups, batch_groups;
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
        batch_groups(params.integer("batch_group_count")),
        lhs(by_role(lhs_aval, lhs_spec)),
        rhs(by_role(rhs_aval, rhs_spec)),
        out(by_role(out_aval, out_spec)) {}

  std::size_t num_spatial() const { return strides.size(); }
  bool has_holes() const {
    return std::any_of(lhs_dilation.begin(), lhs_dilation.end(),
                       [](std::int64_t d) { return d != 1; });
  }
  // Whether 16-bit kernels, which sum features in pairs, would read a feature outside the group: it
  // is multiplied by zero, which does not cancel NaN and infinities. Kernels with one feature for
  // each result, and kernels of weights, do not.
  bool splits_pairs() const {
    const bool is_depthwise = rhs[1] == 1 && rhs[0] == groups;
    return rhs[1] % 2 == 1 && !is_depthwise && form() != Form::weights;
  }
  std::int64_t product(const Sizes& sizes) const {
    std::int64_t total = 1;
    for (std::size_t i = 2; i < sizes.size(); ++i) total *= sizes[i];
    return total;
  }
  std::int64_t work() const { return out[0] * out[1] * product(out) * product(rhs) * rhs[1]; }
  Form form() const {
    if (has_holes()) return Form::transposed;
    return batch_groups != 1 || product(rhs) > product(out) ? Form::weights : Form::forward;
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

// The padding of the convolution of which this is a form; nullopt when there is none.
struct Padding {
  Sizes begin, end;
};
std::optional<Padding> padding_of(const Convolution& c) {
  Padding padding;
  for (std::size_t i = 0; i < c.num_spatial(); ++i) {
    std::int64_t begin = c.low[i], end = c.high[i];
    if (c.form() == Form::transposed) {
      const std::int64_t reach = c.rhs_dilation[i] * (c.rhs[i + 2] - 1);
      if (c.strides[i] != 1) return std::nullopt;
      begin = reach - begin;
      end = reach - end;
      if (end < 0 && -end < c.lhs_dilation[i]) end = 0;  // elements that no window reads
    } else if (c.form() == Form::weights) {
      // The convolution whose gradient this is: the result is its kernel, rhs its result.
      const std::int64_t kernel = c.strides[i] * (c.out[i + 2] - 1) + 1, stride = c.rhs_dilation[i];
      end = std::max<std::int64_t>(0, (c.rhs[i + 2] - 1) * stride + kernel - c.lhs[i + 2] - begin);
      if (begin < 0 || (c.lhs[i + 2] + begin + end - kernel) / stride + 1 != c.rhs[i + 2])
        return std::nullopt;
    }
    if (begin < 0 || end < 0) return std::nullopt;
    padding.begin.push_back(begin);
    padding.end.push_back(end);
  }
  return padding;
}

// The axes of a view by role, one of them split into [groups, rest]; the first three come in the
// given order, before the spatial ones.
View by_role(const View& view, const std::vector<int>& spec, int grouped, std::int64_t groups,
             std::array<int, 3> order) {
  View roles{view.data, view.dtype, {}, {}};
  auto add = [&](std::int64_t size, std::int64_t stride) {
    roles.shape.push_back(size), roles.strides.push_back(stride);
  };
  for (std::size_t i = 0; i < spec.size(); ++i) {
    const std::int64_t size = view.shape[spec[i]], stride = view.strides[spec[i]];
    if (int(i) == grouped) add(groups, stride * (size / groups));
    add(int(i) == grouped ? size / groups : size, stride);
  }
  View ordered = roles;
  for (int i = 0; i < 3; ++i)
    ordered.shape[i] = roles.shape[order[i]], ordered.strides[i] = roles.strides[order[i]];
  return ordered;
}

// The images and kernels of an equation as [batch, group, feature, spatial ...] and [group, out
// feature, in feature, spatial ...].
struct Operands {
  View lhs, rhs, out;
  Operands(const Convolution& c, const View& l, const View& r, const View& o) {
    const std::int64_t groups = c.groups * c.batch_groups;
    if (c.form() == Form::weights) {
      lhs = c.batch_groups != 1 ? by_role(l, c.lhs_spec, 0, groups, {2, 0, 1})
                                : by_role(l, c.lhs_spec, 1, groups, {2, 1, 0});
      rhs = by_role(r, c.rhs_spec, 0, groups, {2, 0, 1});
      out = by_role(o, c.out_spec, 1, groups, {1, 2, 0});
      return;
    }
    lhs = by_role(l, c.lhs_spec, 1, groups, {0, 1, 2});
    out = by_role(o, c.out_spec, 1, groups, {0, 1, 2});
    if (c.form() == Form::forward) {
      rhs = by_role(r, c.rhs_spec, 0, groups, {0, 1, 2});
      return;
    }
    rhs = by_role(r, c.rhs_spec, 0, groups, {0, 2, 1});
    for (int axis = 3; axis < rhs.rank(); ++axis) {
      rhs.data = rhs.as<char>() + (rhs.shape[axis] - 1) * rhs.strides[axis] * size_of(rhs.dtype);
      rhs.strides[axis] = -rhs.strides[axis];
    }
  }
};

TensorSpec spec_of(const View& view) {
  return {view.dtype,
          {view.shape.begin(), view.shape.end()},
          {view.strides.begin(), view.strides.end()}};
}

// The same for an operand, copied where it has negative or zero strides, which oneDNN does not
// support.
TensorSpec spec_of_operand(View view, std::vector<Buffer>& copies, void*& memory) {
  for (int axis = 0; axis < view.rank(); ++axis)
    if (view.shape[axis] == 1) view.strides[axis] = 1;
  if (std::any_of(view.strides.begin(), view.strides.end(),
                  [](std::int64_t stride) { return stride < 1; })) {
    copies.push_back(Buffer::copy_of(view));
    view = copies.back().view();
  }
  memory = view.data;
  return spec_of(view);
}

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const Jaxpr& group, Convolution convolution)
      : equation_(group->equations[0]),
        eval_(rule<Eval>(*equation_.primitive)),
        c_(std::move(convolution)),
        geometry_(geometry_of(c_)),
        epilogues_(group) {}

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch&) const override {
    const View both[2] = {inputs[equation_.inputs[0].var().id],
                          inputs[equation_.inputs[1].var().id]};
    const Operands views(c_, both[0], both[1], outputs[0]);
    std::vector<Buffer> copies;
    copies.reserve(3);
    std::vector<void*> memory(2);
    std::vector<TensorSpec> specs;
    specs.push_back(spec_of_operand(views.lhs, copies, memory[0]));
    specs.push_back(spec_of_operand(views.rhs, copies, memory[1]));
    epilogues_.add_operands(inputs, 1, outputs[0].rank(), specs, memory, copies);
    const std::shared_ptr<const ConvolutionPrimitive> primitive = cache_.find_or_make(specs, [&] {
      return ConvolutionPrimitive::make(geometry_, specs, spec_of(views.out), c_.work(),
                                        epilogues_);
    });
    if (primitive)
      primitive->run(memory, outputs[0].data);
    else
      eval_(both, outputs, equation_.params);
    if (!primitive || !primitive->has_epilogues()) epilogues_.evaluate(inputs, outputs[0]);
  }

  std::string note() const override {
    return geometry_.form == Form::forward      ? "forward"
           : geometry_.form == Form::transposed ? "data gradient"
                                                : "weight gradient";
  }

 private:
  static ConvolutionGeometry geometry_of(const Convolution& c) {
    const Form form = c.form();
    Padding padding = *padding_of(c);
    Sizes dilations = form == Form::weights ? c.strides : c.rhs_dilation;
    for (std::int64_t& dilation : dilations) --dilation;  // oneDNN counts the elements in between
    return {form,
            form == Form::transposed ? c.lhs_dilation
            : form == Form::weights  ? c.rhs_dilation
                                     : c.strides,
            dilations, padding.begin, padding.end};
  }

  const Equation equation_;
  const Eval::Rule& eval_;
  const Convolution c_;
  const ConvolutionGeometry geometry_;
  const Epilogues epilogues_;
  const CompiledCache<ConvolutionPrimitive> cache_;
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
  if (c.batch_groups != 1 && c.has_holes()) return Support::no("groups of the batch");
  if (!padding_of(c)) return Support::no("its padding");
  if (size_of(dtype) == 2 && c.splits_pairs())
    return Support::no("16 bits of an odd number of features");
  return Support::yes();
}

bool has_post_operations(const Jaxpr& program, const Equation& convolution) {
  return Convolution(convolution.params, program->aval(convolution.inputs[0]),
                     program->aval(convolution.inputs[1]),
                     program->avals[convolution.outputs[0].id])
             .form() == Form::forward;
}

std::unique_ptr<Kernel> make_convolution(const Jaxpr& group) {
  const Equation& equation = group->equations[0];
  return std::make_unique<ConvolutionKernel>(
      group, Convolution(equation.params, group->aval(equation.inputs[0]),
                         group->aval(equation.inputs[1]), group->avals[equation.outputs[0].id]));
}

}  // namespace plait::onednn
