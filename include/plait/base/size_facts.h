// What is known of named sizes while a program is traced: the orders that its user declared. They
// decide comparisons that less_equal and equal could not decide for all sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

namespace plait {

// In its scope, on this thread, left <= right holds for each pair, in addition to outer scopes.
class SizeFacts {
 public:
  explicit SizeFacts(std::span<const std::pair<Dim, Dim>> orders);
  ~SizeFacts();
  SizeFacts(const SizeFacts&) = delete;

 private:
  std::size_t previous_;
};

// In its scope, on this thread, no facts hold, because the result is cached for other callers.
class NoSizeFacts {
 public:
  NoSizeFacts();
  ~NoSizeFacts();
  NoSizeFacts(const NoSizeFacts&) = delete;

 private:
  std::vector<std::pair<Dim, Dim>> kept_;
};

}  // namespace plait
