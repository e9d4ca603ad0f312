// A memo of results computed from a program, by question, stored with the program.
//
//   struct Transposed {                     // a question: what was asked, with its parameters
//     using Result = TransposedJaxpr;       // the type of the answer
//     Flags linear, nonzero;
//     bool operator==(const Transposed&) const = default;
//   };
//   return jaxpr->memo.get(Transposed{linear, nonzero}, [&] { return ...; });
//
// A walk into bodies asks for their answers through their memos too. Equations share bodies: one
// that is called twice at each of 40 levels is walked once, not 2^40 times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/size_facts.h>

#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <typeindex>
#include <vector>

namespace plait {

// A question without parameters: struct NumEquations : Property<std::size_t> {};
template <class Answer>
struct Property {
  using Result = Answer;
  bool operator==(const Property&) const = default;
};

// Thread-safe. Each type of question keeps its latest 64 answers, independent of other types.
// Neither a question nor an answer may hold the program itself, which would never be freed.
class Memo {
 public:
  // The stored answer to an equal question, or the result of make: a Result, or a shared pointer to
  // one. make runs without the lock held; where threads race, all get the first answer.
  template <class Question, class Make>
  std::shared_ptr<const typename Question::Result> get(const Question& question,
                                                       Make&& make) const {
    using Result = typename Question::Result;
    const Asked asked{typeid(Question), [&](const void* other) {
                        return *static_cast<const Question*>(other) == question;
                      }};
    if (std::shared_ptr<const void> found = find(asked))
      return std::static_pointer_cast<const Result>(std::move(found));
    std::shared_ptr<const Result> made;
    {
      const NoSizeFacts nothing;  // the answer is also given to later callers
      const DefaultDTypesScope neutral{DefaultDTypes{}};
      if constexpr (std::is_convertible_v<decltype(make()), std::shared_ptr<const Result>>)
        made = make();
      else
        made = std::make_shared<const Result>(make());
    }
    return std::static_pointer_cast<const Result>(
        keep(asked, std::make_shared<const Question>(question), std::move(made)));
  }

 private:
  struct Asked {
    std::type_index type;
    std::function<bool(const void*)> equals;
  };
  struct Entry {
    std::type_index type;
    std::shared_ptr<const void> question, answer;
  };
  std::shared_ptr<const void> find(const Asked& asked) const;
  std::shared_ptr<const void> find_locked(const Asked& asked) const;
  // The answer to keep: this one, or that of another thread that came first.
  std::shared_ptr<const void> keep(const Asked& asked, std::shared_ptr<const void> question,
                                   std::shared_ptr<const void> answer) const;

  mutable std::mutex mutex_;
  mutable std::vector<Entry> entries_;  // oldest first
};

}  // namespace plait
