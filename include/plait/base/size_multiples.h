// How errors write sizes. Where a user declared, or a trace found, that t % 8 == 0, programs have a
// size t_8 and write 8*t_8; errors write t.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace plait {

struct SizeMultiple {
  std::string part, whole;  // t_8 and t
  std::int64_t factor;      // 8
};

// In its scope, errors made on this thread write these sizes so, in addition to outer scopes.
class SizesInErrors {
 public:
  explicit SizesInErrors(std::span<const SizeMultiple> sizes);
  ~SizesInErrors();
  SizesInErrors(const SizesInErrors&) = delete;

 private:
  std::size_t previous_;
};

// The text as errors write it here: "8*t_8" becomes t, "t_8" becomes t//8.
std::string with_whole_sizes(std::string text);

}  // namespace plait
