// The numbers of examples: which example of the batch each row is, where kernels gather some of
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace plait {

// While it lives, row i of what this thread computes belongs to example rows[i], or to example i
// where rows is null. An example is numbered along several batch axes of these sizes. Scopes nest:
// an outer one gives the meaning of the first of those axes.
class ExampleScope {
 public:
  ExampleScope(const std::vector<std::int32_t>* rows, std::span<const std::int64_t> sizes);
  ~ExampleScope();
  ExampleScope(const ExampleScope&) = delete;

  // The indices of the example at this place along the batch axes of the user.
  static std::vector<std::int64_t> numbers_of(std::span<const std::int64_t> place);

 private:
  friend class SavedExamples;
  const std::vector<std::int32_t>* rows_;
  std::span<const std::int64_t> sizes_;
  const ExampleScope* outer_;
};

// The scopes of a thread, for when they are gone: of work that is done later.
class SavedExamples {
 public:
  static SavedExamples of_this_thread();

 private:
  friend class ExamplesAgain;
  struct Scope {
    bool has_rows;
    std::vector<std::int32_t> rows;
    std::vector<std::int64_t> sizes;
  };
  std::vector<Scope> scopes_;  // the innermost first
};

// While it lives, saved scopes are those of this thread.
class ExamplesAgain {
 public:
  explicit ExamplesAgain(const SavedExamples& saved);
  ~ExamplesAgain();
  ExamplesAgain(const ExamplesAgain&) = delete;
  ExamplesAgain& operator=(const ExamplesAgain&) = delete;

 private:
  const ExampleScope* const here_;
  std::vector<std::unique_ptr<ExampleScope>> scopes_;  // the innermost last
};

}  // namespace plait
