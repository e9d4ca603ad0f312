// What a graph of the stand-in of cuDNN computes, and the engines that it has for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "objects.h"

namespace standin {

inline std::atomic<bool> is_fused{true}, are_proposed{true};  // see ../libcudnn.h

// Engines by number.
inline constexpr int exact_fallback = 1, of_attention = 2, with_tf32 = 7, with_winograd = 8,
                     in_any_order = 9, never_a_plan = 10, exact = 11, of_gradient = 12,
                     first_planted = 100;

// How many microseconds engines from first_planted on take longer than they do; see ../libcudnn.h.
inline std::mutex planting;
inline std::vector<int> planted;
inline std::vector<int> planted_engines() {
  const std::lock_guard lock(planting);
  return planted;
}

struct Program {
  virtual ~Program() = default;
  // Whether the operations are such a program.
  virtual cudnnStatus_t check() const = 0;
  virtual std::vector<Tensor> in_memory() const = 0;
  virtual std::vector<Tensor> written() const = 0;
  virtual std::vector<int> engines(int mode) const = 0;
  virtual std::vector<int> notes(int engine) const = 0;
  virtual std::int64_t workspace(int engine) const = 0;
  virtual std::string text() const = 0;
  // memory: of tensors, by number.
  virtual void run(int engine, const std::map<std::int64_t, void*>& memory) const = 0;
};

inline std::string joined(const Numbers& numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : "x") + std::to_string(number);
  return text;
}

}  // namespace standin
