// This backend's interface to oneDNN: a partition of its Graph, compiled for given shapes and
// strides and run on plait's memory; and code shared with primitives.
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

// Memory in oneDNN's terms: an element type, sizes, strides in elements.
struct TensorSpec {
  DType dtype = DType::float32;
  Dims dims, strides;
  bool operator==(const TensorSpec&) const = default;
};

// f32, bf16, f16: the types of this backend's operations; bf16 and f16 where the processor supports
// them.
bool has_type(DType dtype);
dnnl::memory::data_type element_of(DType dtype);
const dnnl::engine& engine();
dnnl::stream& stream();  // of this thread
dnnl::reorder reorder_of(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
// Entering oneDNN, on at most this many threads.
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
  // Null when oneDNN does not support it; the log gives the reason. work: the number of products,
  // which decides whether waking threads is worthwhile.
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

// The compiled versions for the layouts that a kernel has seen. Inputs of programs are dense and
// the other layouts are planned, so there are few.
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

// Elementwise equations after a product, in its kernel: additions, subtractions, multiplications
// and divisions of float32 by a scalar, or by a vector along the last group of axes (a bias). These
// give the bits of the separate equations, and propagate NaN.
struct Epilogue {
  dnnl::algorithm algorithm;
  int input = -1;  // of the group, unless the operand is a number
  float number = 0;
  const Equation* equation = nullptr;
};
bool joins_product(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                   std::span<const int> more);

// The epilogues of a group whose first equation is a product: their operands as tensors, appended
// to those of the product, and a fallback where oneDNN has no kernel for the whole group.
class Epilogues {
 public:
  explicit Epilogues(const Jaxpr& group);
  bool empty() const { return list_.empty(); }
  // place: the axis, in tensors of this rank, along which a vector lies.
  void add_operands(std::span<const View> inputs, int place, int rank,
                    std::vector<TensorSpec>& specs, std::vector<void*>& memory,
                    std::vector<Buffer>& copies) const;
  // In the form of the product's primitive.
  dnnl::post_ops post_operations(std::span<const dnnl::memory::desc> operands) const;
  void evaluate(std::span<const View> inputs, const View& output) const;

 private:
  Jaxpr group_;                    // owns the equations
  std::vector<int> feature_axes_;  // of the output, along which a vector lies
  std::vector<Epilogue> list_;
};

// Kernels of equations and their epilogues, once supports() and joins() have accepted them.
std::unique_ptr<Kernel> make_matmul(const Jaxpr& group);
std::unique_ptr<Kernel> make_convolution(const Jaxpr& group);
Support supports_matmul(const Equation& equation, std::span<const Aval> inputs,
                        std::span<const Aval> outputs);
Support supports_convolution(const Equation& equation, std::span<const Aval> inputs,
                             std::span<const Aval> outputs);
// Whether oneDNN applies epilogues after it: not after a gradient.
bool has_post_operations(const Jaxpr& program, const Equation& convolution);
std::unique_ptr<Kernel> make_composite(const Jaxpr& group);
Support supports_composite(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs);

// Below small_work, Eigen is faster than entering a primitive; below narrow_work, one thread is
// faster than waking others.
inline constexpr std::int64_t small_work = 32 * 32 * 32, narrow_work = 128 * 128 * 128;

}  // namespace plait::onednn
