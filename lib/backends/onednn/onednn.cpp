// The oneDNN backend: a module that is loaded at run time and registers itself. It claims matrix
// products and convolutions with their gradients and epilogues, average pooling, layer_norm and
// attention: products and convolutions as primitives, and the rest through the Graph API.
//
// What it leaves, although oneDNN has it: exp, log, relu, max, min, clip and gelu, which do not
// keep NaN there; softmax and max pooling, for the same reason; products so small that entering a
// primitive takes longer than Eigen.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>

#include "graph.h"

namespace plait {
namespace {

class OneDnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "onednn"; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs) const override {
    const Primitive& primitive = *equation.primitive;
    if (primitive == dot_general_p) return onednn::supports_matmul(equation, inputs, outputs);
    if (primitive == conv_p) return onednn::supports_convolution(equation, inputs, outputs);
    if (primitive == call_p) return onednn::supports_composite(equation, inputs, outputs);
    if (primitive == reduce_window_p && equation.params.text("kind") == "max")
      return Support::no("its max pooling drops NaN");
    return Support::no();
  }

  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    return onednn::joins_product(program, uses, group, more);
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group) const override {
    const Equation& equation = group->equations[0];
    if (*equation.primitive == dot_general_p) return onednn::make_matmul(group);
    if (*equation.primitive == conv_p) return onednn::make_convolution(group);
    return onednn::make_composite(equation, group);
  }
};

bool register_onednn() {
  const dnnl_version_t* version = dnnl_version();
  if (version->major < 3 || (version->major == 3 && version->minor < 7))
    return report_missing_backend("onednn", "oneDNN " + std::to_string(version->major) + "." +
                                                std::to_string(version->minor) +
                                                " is older than 3.7");
  if (version->cpu_runtime != DNNL_RUNTIME_OMP)
    return report_missing_backend("onednn", "this oneDNN does not run on OpenMP");
  return register_backend(std::make_unique<OneDnnBackend>(), Preference::library);
}

const bool registered = register_onednn();

}  // namespace
}  // namespace plait
