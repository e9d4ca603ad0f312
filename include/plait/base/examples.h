// The numbers of examples: which example of the batch each row is, where kernels gather some of
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  friend class SavedScopes;
  const std::vector<std::int32_t>* rows_;
  std::span<const std::int64_t> sizes_;
  const ExampleScope* outer_;
};

// The scopes of a thread, for when they are gone: of work that is done later. Those of examples,
// and what errors name: the line and the transforms.
class SavedScopes {
 public:
  static SavedScopes of_this_thread();

 private:
  friend class ScopesAgain;
  struct Scope {
    bool has_rows;
    std::vector<std::int32_t> rows;
    std::vector<std::int64_t> sizes;
  };
  std::vector<Scope> examples_;  // the innermost first
  std::string transforms_;
  Source line_;
};

// While it lives, saved scopes are those of this thread.
class ScopesAgain {
 public:
  explicit ScopesAgain(const SavedScopes& saved);  // which must outlive it
  ~ScopesAgain();
  ScopesAgain(const ScopesAgain&) = delete;
  ScopesAgain& operator=(const ScopesAgain&) = delete;

 private:
  const ExampleScope* const examples_here_;
  const std::string* const transforms_here_;
  const SourceScope line_;
  std::vector<std::unique_ptr<ExampleScope>> examples_;  // the innermost last
};

}  // namespace plait
