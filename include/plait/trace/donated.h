// What remains of an array whose memory was donated to a program: its type, and the receiver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/memory.h>
#include <plait/trace/array.h>

namespace plait {

// Belongs to no trace, so every use is an error; see check_usable.
class DonatedNode final : public ArrayNode {
 public:
  DonatedNode(Aval aval, std::string function);
  static void* operator new(std::size_t bytes) { return allocate_object(bytes); }
  static void operator delete(void* pointer, std::size_t bytes) noexcept {
    deallocate_object(pointer, bytes);
  }
  const std::string function;

  // Whether only one Array points to this node.
  static bool is_unique(const ArrayNode& node) { return node.*(&DonatedNode::references_) == 1; }
};

// Takes the array out of its handle, which from then on is donated.
Array donate(Array& handle, const std::string& function);

}  // namespace plait
