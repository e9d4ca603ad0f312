// Stores past the caches: what a kernel writes beyond what the caches hold would only push out what
// they hold, after reading the lines that are about to be overwritten.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "jit.h"

namespace plait::llvm {

// A kernel whose inputs and outputs take so many bytes should not keep its outputs in the caches.
bool outgrows_caches(std::int64_t bytes);

// The code of a kernel, and a second one for callers whose memory is not aligned as the instruction
// wants, or whose results lie where operands do, which have just been read: made when such a caller
// comes.
class StreamingCode {
 public:
  // By output: whether its stores go past the caches.
  using Write = std::function<Object(const std::vector<bool>& streams)>;
  // The description is make_code's, but for the streams.
  StreamingCode(std::string description, std::vector<bool> streams, Write write);
  const Code& code_for(std::span<const View> inputs, std::span<const View> outputs) const;

 private:
  std::shared_ptr<const Code> make(const std::vector<bool>& streams) const;

  std::string description_;
  std::vector<bool> streams_;
  Write write_;
  std::shared_ptr<const Code> code_;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const Code> plain_;
};

}  // namespace plait::llvm
