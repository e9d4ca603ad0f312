// The type of a value in a program. See aval.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/communicator.h>
#include <plait/base/stack.h>
#include <plait/ir/aval.h>

namespace plait {

std::string Aval::to_string() const {
  std::string text =
      std::string(short_name_of(dtype)) + "[" + shape.to_string() + "]" + (weak ? "*" : "");
  for (int i = 0; i < stack; ++i) text = "stack[" + text + "]";
  if (!varying.empty()) text += "{" + varying.to_string() + "}";
  return text;
}

Aval in_memory(const Aval& aval) {
  if (aval.stack == 0) {
    Aval memory{aval.shape, carrier_of(aval.dtype), aval.weak};
    if (!aval.varying.empty() && !are_places_ranks())
      memory.shape.insert(0, Dim(aval.varying.num_places()));
    return memory;
  }
  return {{std::int64_t(sizeof(Stack::Handle))}, DType::uint8};
}

std::size_t Aval::hash() const {
  return shape.hash() * 31 + static_cast<std::size_t>(dtype) * 2 + (weak ? 1 : 0) + stack * 64u +
         varying.bits() * 0x9e3779b9u;
}

}  // namespace plait
