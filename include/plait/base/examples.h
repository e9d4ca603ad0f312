// Numbers of examples: which of a batch a row is, where kernels bring some of them together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plait {

// While it lives, row i of what this thread computes is that of example rows[i], or i where rows
// is null; an example is counted by several axes of these sizes. Scopes nest: an outer one says
// what the first of those axes is.
class ExampleScope {
 public:
  ExampleScope(const std::vector<std::int32_t>* rows, std::span<const std::int64_t> sizes);
  ~ExampleScope();
  ExampleScope(const ExampleScope&) = delete;

  // The numbers of the example at this place: along the axes of the user's batches.
  static std::vector<std::int64_t> numbers_of(std::span<const std::int64_t> place);

 private:
  const std::vector<std::int32_t>* rows_;
  std::span<const std::int64_t> sizes_;
  const ExampleScope* outer_;
};

}  // namespace plait
