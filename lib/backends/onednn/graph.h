// oneDNN Graph, as this backend uses it: one operation with its epilogues, compiled for given shapes and
// strides, and run on memory of ours.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_graph.hpp>
#include <plait/compile/backend.h>

namespace plait::onednn {

using Tensor = dnnl::graph::logical_tensor;
using Dims = Tensor::dims;

// Memory as oneDNN sees it: an element type, sizes, strides in elements.
struct TensorSpec {
  DType dtype = DType::float32;
  Dims dims, strides;
  bool operator==(const TensorSpec&) const = default;
};

// f32, bf16, f16: what operations of this backend take; bf16 and f16 where the processor has them.
bool has_type(DType dtype);
Tensor::data_type type_of(DType dtype);

// A compiled partition. Immutable; run from many threads at once.
class Compiled {
 public:
  // build makes the operations from the tensors of inputs and output, which have ids 0, 1, ...
  using Build = std::function<void(dnnl::graph::graph& graph, std::span<const Tensor> inputs, const Tensor& output)>;
  // Nothing when oneDNN does not support it; why is then in the log.
  static std::shared_ptr<const Compiled> make(std::span<const TensorSpec> inputs, const TensorSpec& output, const Build& build);
  void run(std::span<void* const> inputs, void* output) const;

 private:
  dnnl::graph::compiled_partition partition_;
  std::vector<Tensor> inputs_;
  Tensor output_;
};

// What was compiled for the layouts that a kernel has met. Inputs of programs are dense and the rest is
// planned, so there are few.
class CompiledCache {
 public:
  std::shared_ptr<const Compiled> find_or_make(const std::vector<TensorSpec>& specs,
                                               const std::function<std::shared_ptr<const Compiled>()>& make) const;

 private:
  struct Entry {
    std::vector<TensorSpec> specs;
    std::shared_ptr<const Compiled> compiled;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Entry> entries_;
};

// Kernels of single equations, after supports() has said yes.
std::unique_ptr<Kernel> make_matmul(const Equation& equation, const Jaxpr& group);
std::unique_ptr<Kernel> make_convolution(const Equation& equation, const Jaxpr& group);
Support supports_matmul(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval> outputs);
Support supports_convolution(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval> outputs);
std::unique_ptr<Kernel> make_composite(const Equation& equation, const Jaxpr& group);
Support supports_composite(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval> outputs);

// Products that Eigen computes sooner than a graph is entered.
inline constexpr std::int64_t small_work = 32 * 32 * 32;

}  // namespace plait::onednn
