// The oneDNN backend: a module that is loaded at run time and registers itself. It claims matrix
// products and convolutions with their gradients and epilogues, average pooling, layer_norm and
// attention: products and convolutions as primitives, and the rest through the Graph API.
//
// It does not claim, although oneDNN has them: exp, log, relu, max, min, clip and gelu, which do
// not propagate NaN there; softmax and max pooling, for the same reason; products so small that
// entering a primitive takes longer than Eigen.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/transforms/composites.h>

#include <algorithm>

#include "graph.h"

namespace plait {
namespace {

// What it has kernels for, by primitive; without `make`, why it takes none.
struct Offer {
  const Primitive* primitive;
  Support (*supports)(const Equation& equation, std::span<const Aval> inputs,
                      std::span<const Aval> outputs);
  std::unique_ptr<Kernel> (*make)(const Jaxpr& group);
};
Support supports_window(const Equation& equation, std::span<const Aval>, std::span<const Aval>) {
  return equation.params.text("kind") == "max" ? Support::no("its max pooling drops NaN")
                                               : Support::no();
}
const Offer offers[] = {
    {&dot_general_p, onednn::supports_matmul, onednn::make_matmul},
    {&conv_p, onednn::supports_convolution, onednn::make_convolution},
    {&composite_p, onednn::supports_composite, onednn::make_composite},
    {&reduce_window_p, supports_window, nullptr},
};
const Offer* find_offer(const Primitive& primitive) {
  const auto* found = std::ranges::find_if(
      offers, [&](const Offer& offer) { return *offer.primitive == primitive; });
  return found == std::end(offers) ? nullptr : found;
}

class OneDnnBackend final : public Backend {
 public:
  std::string_view name() const override { return "onednn"; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device) const override {
    const Offer* offer = find_offer(*equation.primitive);
    return offer ? offer->supports(equation, inputs, outputs) : Support::no();
  }

  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    return onednn::joins_product(program, uses, group, more);
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target&) const override {
    return find_offer(*group->equations[0].primitive)->make(group);
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
