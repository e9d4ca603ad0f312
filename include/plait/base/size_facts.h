// What is known of named sizes while a program is traced: orders that its user declared. They
// decide what less_equal and equal could not say of all sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

namespace plait {

// In its scope, on this thread, left <= right holds for each pair, beside what held before.
class SizeFacts {
 public:
  explicit SizeFacts(std::span<const std::pair<Dim, Dim>> orders);
  ~SizeFacts();
  SizeFacts(const SizeFacts&) = delete;

 private:
  std::size_t previous_;
};

// In its scope, on this thread, nothing is known: what is made there is kept for other callers.
class NoSizeFacts {
 public:
  NoSizeFacts();
  ~NoSizeFacts();
  NoSizeFacts(const NoSizeFacts&) = delete;

 private:
  std::vector<std::pair<Dim, Dim>> kept_;
};

}  // namespace plait
