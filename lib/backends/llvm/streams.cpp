// See streams.h.
// SPDX-License-Identifier: Apache-2.0
#include "streams.h"

#include "embedded.h"

#include <unistd.h>

#include <algorithm>

namespace plait::llvm {

bool outgrows_caches(std::int64_t bytes) {
  static const std::int64_t limit = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 8 << 20);
  return bytes > limit && !is_for_elsewhere();
}

StreamingCode::StreamingCode(std::string description, std::vector<bool> streams, Write write)
    : description_(std::move(description)),
      streams_(std::move(streams)),
      write_(std::move(write)),
      code_(make(streams_)) {}

std::shared_ptr<const Code> StreamingCode::make(const std::vector<bool>& streams) const {
  std::string text = description_ + "\nstreams ";
  for (bool streams_past : streams) text += streams_past ? '1' : '0';
  return make_code(text, [&] { return write_(streams); });
}

const Code& StreamingCode::code_for(std::span<const View> inputs,
                                    std::span<const View> outputs) const {
  bool fits = true;
  for (std::size_t o = 0; o < outputs.size(); ++o)
    fits &= !streams_[o] || (reinterpret_cast<std::uintptr_t>(outputs[o].data) % 64 == 0 &&
                             std::none_of(inputs.begin(), inputs.end(), [&](const View& input) {
                               return input.data == outputs[o].data;
                             }));
  if (fits) return *code_;
  std::call_once(once_, [&] { plain_ = make(std::vector<bool>(streams_.size(), false)); });
  return *plain_;
}

}  // namespace plait::llvm
