// A convolution, or its gradient with respect to images or kernels, by oneDNN's primitives. Images
// are channels-last, and kernels have the layout that oneDNN prefers; other layouts are reordered
// on the way in and out. So one kernel serves all layouts, and the bits do not depend on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph.h"

namespace plait::onednn {

// The computed quantity: the results, the images or the kernels of a convolution.
enum class Form { forward, transposed, weights };

// The convolution of which this is a form; lists are by spatial axis.
struct ConvolutionGeometry {
  Form form;
  Dims strides, dilations, begin, end;
};

// Compiled for given shapes and strides. Immutable; run from many threads at once.
class ConvolutionPrimitive {
 public:
  // Images are [batch, group, feature, spatial ...], kernels [group, out feature, in feature,
  // spatial ...]. operands: both of the form, then those of the epilogues. Null when oneDNN only
  // has its reference implementation; the log gives the reason.
  static std::shared_ptr<const ConvolutionPrimitive> make(const ConvolutionGeometry& geometry,
                                                          std::span<const TensorSpec> operands,
                                                          const TensorSpec& output,
                                                          std::int64_t work,
                                                          const Epilogues& epilogues);
  bool has_epilogues() const { return has_epilogues_; }
  void run(std::span<void* const> operands, void* output) const;

 private:
  using Memory = dnnl::memory;
  enum class Role { operand, result };
  struct Move {
    dnnl::reorder reorder;
    Memory::desc from, to;
    void run(void* src, void* dst) const;
  };
  struct Argument {
    int number;                // the number in the primitive
    Memory::desc taken;        // in the primitive's layout
    std::optional<Move> move;  // converts from, or to, the caller's layout where they differ
  };
  static Argument argument(int number, Role role, const Memory::desc& lies,
                           const Memory::desc& moved, const Memory::desc& taken);
  static Argument image(int number, Role role, const TensorSpec& spec);
  static Argument kernel(int number, Role role, const TensorSpec& spec, const Memory::desc& taken);
  void add_forward(const ConvolutionGeometry& geometry, std::span<const TensorSpec> operands,
                   const TensorSpec& output, const Epilogues& epilogues);
  void add_gradient(const ConvolutionGeometry& geometry, std::span<const TensorSpec> operands,
                    const TensorSpec& output);

  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  Argument output_{};
  Memory::desc scratchpad_;
  int max_threads_ = 1;
  bool has_epilogues_ = true;
};

}  // namespace plait::onednn
