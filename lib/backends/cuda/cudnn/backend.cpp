// The cudnn backend: convolutions and their gradients on CUDA devices, by cuDNN where it is
// installed, with the equations behind them that it computes too; and attention in 16-bit floats,
// with its gradient.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/backend.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/cudnn/attention.h"
#include "backends/cuda/cudnn/kernel.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kernel.h"
#include "codegen/lower.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Products of a small convolution, in all; below, a loop runs as fast as the library starts.
constexpr std::int64_t small_convolution = 1 << 14;

constexpr std::int64_t most_elements = std::numeric_limits<std::int32_t>::max();

std::int64_t elements_of(const LongSizes& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) product *= size;
  return product;
}
std::int64_t work_of(const ConvolutionGraph& graph) {
  return elements_of(graph.of(Place::result)) * elements_of(graph.of(Place::kernel)) /
         graph.of(Place::kernel)[0];
}

bool runs_as_loops(const Equation& equation, std::span<const Aval> inputs, Device device) {
  const Jaxpr group = codegen::program_of(equation, inputs);
  return lowered(group, compile_passes::dense_inputs(group), device).staged != nullptr;
}

class CudnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool runs_on(Device device) const override { return is_cuda(device); }
  bool runs_eagerly() const override { return false; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    if (attention_part_of(equation)) return supports_attention(equation, inputs, outputs, device);
    if (!(*equation.primitive == conv_p)) return Support::no();
    for (const Atom& atom : equation.inputs)
      if (!atom.is_var()) return Support::no("a scalar operand");
    if (!cudnn_type(inputs[0].dtype))
      return Support::no("no convolution of " + std::string(name_of(inputs[0].dtype)));
    if (inputs[0].dtype != outputs[0].dtype)
      return Support::no("a result of another dtype, " + std::string(name_of(outputs[0].dtype)));
    const int num_spatial = outputs[0].rank() - 2;
    if (num_spatial < 1 || num_spatial > 3)
      return Support::no(std::to_string(num_spatial) + " spatial dimensions");
    for (const Aval* aval : {&inputs[0], &inputs[1], &outputs[0]}) {
      const std::int64_t size = aval->shape.num_elements().constant();
      if (size == 0) return Support::no("nothing to compute");
      if (size > most_elements) return Support::no("more than 2^31 elements");
    }
    const std::vector<ConvolutionGraph> graphs = dense_graphs(equation.params, inputs, outputs[0]);
    if (graphs.empty()) return Support::no("its padding, or holes in lhs with strides or groups");
    if (const std::int64_t work = work_of(graphs[0]);
        work < small_convolution && runs_as_loops(equation, inputs, device))
      return Support::no("small: " + std::to_string(work) + " products");
    if (!cudnn_api()) return Support::no(why_no_cudnn());
    std::string reason;
    for (const ConvolutionGraph& graph : graphs) {
      const PlanOrReason found = plan_for(device, graph);
      if (found.plan) return Support::yes();
      reason = found.reason;
    }
    return Support::no(reason);
  }

  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    if (more.size() != 1) return false;
    const int convolution = *std::min_element(group.begin(), group.end());
    const Equation& equation = program->equations[std::size_t(convolution)];
    if (!(*equation.primitive == conv_p)) return false;
    const Aval operands[] = {program->aval(equation.inputs[0]), program->aval(equation.inputs[1])};
    const std::vector<ConvolutionGraph> graphs =
        dense_graphs(equation.params, operands, program->aval(equation.outputs[0]));
    if (graphs.empty() || graphs[0].direction != Direction::forward) return false;
    const std::vector<int> behind = convolution_epilogue(*program, uses, convolution).equations;
    return std::find(behind.begin(), behind.end(), more[0]) != behind.end();
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return attention_part_of(group->equations[0]) ? make_attention_kernel(group, target)
                                                  : make_convolution_kernel(group, target);
  }
};

}  // namespace

std::unique_ptr<Backend> make_cudnn_backend() { return std::make_unique<CudnnBackend>(); }

}  // namespace plait::cuda
