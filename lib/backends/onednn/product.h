// A product of matrices by oneDNN's primitive, not by its Graph: the Graph copies the right operand
// to a layout of its own at every call, which takes as long as the product of a small batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "graph.h"

namespace plait::onednn {

// Compiled for given shapes and strides. Immutable; run from many threads at once.
class Product {
 public:
  // operands: both matrices as [batch, rows, columns], then what the epilogues add. Nothing when
  // oneDNN has only its reference; why is then in the log.
  static std::shared_ptr<const Product> make(std::span<const TensorSpec> operands,
                                             const TensorSpec& output, const Epilogues& epilogues);
  // Whether it does the epilogues, too: not where oneDNN would compute the product in another way.
  bool has_epilogues() const { return has_epilogues_; }
  void run(std::span<void* const> operands, void* output) const;

  // The same product of a right operand in the layout that oneDNN chooses: nothing where there is
  // none that is faster, or epilogues. Its bits are the same.
  std::shared_ptr<const Product> packed() const;
  // Of a packed product: its right operand's memory, made of the one of the product it came from.
  std::size_t packed_bytes() const { return arguments_[1].desc.get_size(); }
  void pack(void* from, void* to) const;
  Product() = default;
  ~Product() { delete spare_.load(); }
  Product(const Product&) = delete;

 private:
  using Memory = dnnl::memory;
  // What a call at a time points at its memory.
  struct Call {
    std::vector<Memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  std::unique_ptr<Call> take_call() const;
  dnnl::matmul primitive_;
  struct Argument {
    int number;  // the primitive's
    Memory::desc desc;
    Memory::desc copied_as = {};  // where it is not taken as it lies
    dnnl::reorder copy = {};
  };
  static Argument matrix(int number, const TensorSpec& spec, bool is_batched);
  std::vector<Argument> arguments_;
  Memory::desc output_, scratchpad_, unpacked_;
  dnnl::reorder pack_;
  int max_threads_ = 1;
  bool has_epilogues_ = true;
  mutable std::atomic<Call*> spare_{nullptr};
};

}  // namespace plait::onednn
