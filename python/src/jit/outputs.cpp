// Reuse of small outputs. See outputs.h.
// SPDX-License-Identifier: Apache-2.0
#include "outputs.h"

#include <plait/trace/concrete.h>
#include <plait/trace/donated.h>

#include <algorithm>

namespace plait::python {
namespace {

constexpr std::size_t most_outputs = 256;
constexpr std::int64_t most_bytes = 16 << 10, most_bytes_of_one = 1 << 10;

// Whether nothing else refers to an array or its memory.
bool is_spare(const Array& array) {
  return array.is_valid() && array.node()->is_plain() && DonatedNode::is_unique(*array.node()) &&
         static_cast<const ConcreteNode*>(array.node())->buffer.storage().is_unique();
}

}  // namespace

bool SpareOutputs::can_keep(std::span<const Aval> avals) {
  if (avals.size() > most_outputs) return false;
  std::int64_t bytes = 0;
  for (const Aval& aval : avals) {
    if (aval.stack > 0) return false;
    const std::int64_t own = num_elements(aval.shape.to_sizes()) * size_of(aval.dtype);
    if (own > most_bytes_of_one) return false;
    bytes += own;
  }
  return bytes <= most_bytes;
}

Arrays SpareOutputs::take(std::span<const Aval> avals) {
  if (avals.empty()) return {};
  // Prefers the first set, which is more likely to be in the CPU's cache.
  const bool is_first = sets_[0].empty() || is_spare(sets_[0].front());
  Arrays& set = sets_[is_first ? 0 : 1];
  set.resize(avals.size());
  for (std::size_t i = 0; i < avals.size(); ++i)
    if (!is_spare(set[i])) {
      const Aval memory = in_memory(avals[i]);
      set[i] = make_concrete(avals[i], Buffer::empty(memory.dtype, memory.shape.to_sizes()));
    }
  return set;
}

}  // namespace plait::python
