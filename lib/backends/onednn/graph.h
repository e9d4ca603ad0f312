// oneDNN, as this backend uses it: a partition of its Graph, compiled for given shapes and strides
// and run on memory of ours; and what primitives share with that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pool.h>
#include <plait/compile/backend.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_graph.hpp>

#include "base/before_exit.h"

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
dnnl::memory::data_type element_of(DType dtype);
const dnnl::engine& engine();
dnnl::stream& stream();  // of this thread
dnnl::reorder reorder_of(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
// Within oneDNN, on so many threads.
struct Entered {
  explicit Entered(int max_threads) : pool(max_threads) {}
  LibraryUse use;
  PoolScope pool;
};
[[noreturn]] void throw_failed(const dnnl::error& error);  // while a kernel runs

// A compiled partition. Immutable; run from many threads at once.
class Compiled {
 public:
  // build makes the operations from the tensors of inputs and output, which have ids 0, 1, ...
  using Build = std::function<void(dnnl::graph::graph& graph, std::span<const Tensor> inputs,
                                   const Tensor& output)>;
  // Nothing when oneDNN does not support it; why is then in the log. work: products, which tell
  // whether waking threads is worth it.
  static std::shared_ptr<const Compiled> make(std::span<const TensorSpec> inputs,
                                              const TensorSpec& output, std::int64_t work,
                                              const Build& build);
  void run(std::span<void* const> inputs, void* output) const;

 private:
  dnnl::graph::compiled_partition partition_;
  std::vector<Tensor> inputs_;
  Tensor output_;
  int max_threads_ = 1;
};

// What was compiled for the layouts that a kernel has met. Inputs of programs are dense and the
// rest is planned, so there are few.
template <class T>
class CompiledCache {
 public:
  template <class Make>
  std::shared_ptr<const T> find_or_make(const std::vector<TensorSpec>& specs, Make&& make) const {
    constexpr std::size_t limit = 16;
    {
      const std::lock_guard lock(mutex_);
      for (const Entry& entry : entries_)
        if (entry.specs == specs) return entry.compiled;
    }
    std::shared_ptr<const T> made = make();
    const std::lock_guard lock(mutex_);
    if (entries_.size() == limit) entries_.erase(entries_.begin());
    entries_.push_back({specs, made});
    return made;
  }

 private:
  struct Entry {
    std::vector<TensorSpec> specs;
    std::shared_ptr<const T> compiled;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Entry> entries_;
};

// Elementwise equations behind a product, in its kernel: additions, subtractions, multiplications
// and divisions of float32 by a scalar, or by a vector along the last group of axes (a bias). These
// give the bits that the equation alone gives, and keep NaN.
struct Epilogue {
  dnnl::algorithm algorithm;
  int input = -1;  // of the group, when it is not a number
  float number = 0;
  const Equation* equation = nullptr;
};
bool joins_product(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                   std::span<const int> more);

// The epilogues of a group whose first equation is a product; their operands as tensors, added to
// those of the product; and what they do where oneDNN has no kernel for the whole.
class Epilogues {
 public:
  explicit Epilogues(const Jaxpr& group);
  bool empty() const { return list_.empty(); }
  // place: the axis, in tensors of this rank, along which a vector lies.
  void add_operands(std::span<const View> inputs, int place, int rank,
                    std::vector<TensorSpec>& specs, std::vector<void*>& memory,
                    std::vector<Buffer>& copies) const;
  // As a primitive of the product does them.
  dnnl::post_ops post_operations(std::span<const dnnl::memory::desc> operands) const;
  void evaluate(std::span<const View> inputs, const View& output) const;

 private:
  Jaxpr group_;                    // keeps the equations
  std::vector<int> feature_axes_;  // of the output, along which a vector lies
  std::vector<Epilogue> list_;
};

// Kernels of equations and their epilogues, after supports() and joins() have said yes.
std::unique_ptr<Kernel> make_matmul(const Jaxpr& group);
std::unique_ptr<Kernel> make_convolution(const Jaxpr& group);
Support supports_matmul(const Equation& equation, std::span<const Aval> inputs,
                        std::span<const Aval> outputs);
Support supports_convolution(const Equation& equation, std::span<const Aval> inputs,
                             std::span<const Aval> outputs);
// Whether oneDNN runs epilogues behind it: not behind its gradients.
bool has_post_operations(const Jaxpr& program, const Equation& convolution);
std::unique_ptr<Kernel> make_composite(const Equation& equation, const Jaxpr& group);
Support supports_composite(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs);

// Products that Eigen computes sooner than a primitive is entered, and those that one thread
// computes sooner than another wakes.
inline constexpr std::int64_t small_work = 32 * 32 * 32, narrow_work = 128 * 128 * 128;

}  // namespace plait::onednn
