// Stacks: as many elements of equal size as a loop makes, in memory that grows without moving. What
// lies in an array's place for one is a handle.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <memory>
#include <vector>

namespace plait {

class Stack {
 public:
  // Null stands for a stack of zeros. Whoever reads behind the end of a stack reads zeros.
  using Handle = std::shared_ptr<Stack>;

  // Elements of so many bytes; or handles of stacks, which must be so many bytes then.
  Stack(std::int64_t element_bytes, bool of_stacks)
      : bytes_((element_bytes + 63) / 64 * 64), of_stacks_(of_stacks) {}
  ~Stack();
  Stack(const Stack&) = delete;

  std::int64_t size() const { return size_; }
  void* at(std::int64_t index) const;
  void* push();  // the new element: uninitialised memory, or a null handle

 private:
  std::int64_t bytes_, size_ = 0;
  bool of_stacks_;
  std::vector<Storage> chunks_;  // of first_chunk, 2 * first_chunk, 4 * first_chunk ... elements
};

// Memory for a handle, null at first, that is released with it.
Storage allocate_handle();

}  // namespace plait
