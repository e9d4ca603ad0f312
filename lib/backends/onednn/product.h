// A product of matrices by oneDNN's primitive instead of its Graph: the Graph copies the right
// operand to a layout of its own at every call, which takes as long as the product of a small
// batch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "graph.h"

namespace plait::onednn {

// Compiled for given shapes and strides. Immutable; run from many threads at once.
class Product {
 public:
  // operands: both matrices as [batch, rows, columns], then those of the epilogues. Null when
  // oneDNN only has its reference implementation; the log gives the reason.
  static std::shared_ptr<const Product> make(std::span<const TensorSpec> operands,
                                             const TensorSpec& output, const Epilogues& epilogues);
  // Whether it includes the epilogues: not where oneDNN would then compute the product differently.
  bool has_epilogues() const { return has_epilogues_; }
  void run(std::span<void* const> operands, void* output) const;

  // The same product with a right operand in the layout that oneDNN chooses, with the same bits.
  // Null where no layout is faster, or there are epilogues.
  std::shared_ptr<const Product> packed() const;
  // For a packed product: the memory of its right operand, and its packing from the original
  // layout.
  std::size_t packed_bytes() const { return arguments_[1].desc.get_size(); }
  void pack(void* from, void* to) const;
  Product() = default;
  ~Product() { delete spare_.load(); }
  Product(const Product&) = delete;

 private:
  using Memory = dnnl::memory;
  // The argument list of one call at a time, which points at its memory.
  struct Call {
    std::vector<Memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  std::unique_ptr<Call> take_call() const;
  dnnl::matmul primitive_;
  struct Padding {  // of rows in memory, by zeros
    std::int64_t rows = 0, row_bytes = 0, used_bytes = 0;
  };
  struct Argument {
    int number;  // the number in the primitive
    Memory::desc desc;
    Memory::desc copied_as = {};  // where it is not read in place
    dnnl::reorder copy = {};
    Padding padding = {};  // of the copy
  };
  static Argument matrix(int number, const TensorSpec& spec, bool is_batched);
  static Argument tiled(int number, const TensorSpec& spec, bool is_batched);
  std::vector<Argument> arguments_;
  Memory::desc output_, scratchpad_, unpacked_;
  dnnl::reorder pack_;
  int max_threads_ = 1;
  bool has_epilogues_ = true;
  mutable std::atomic<Call*> spare_{nullptr};
};

}  // namespace plait::onednn
