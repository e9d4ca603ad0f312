// Caches the traces of functions that eager calls run as one program. See one_program.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/one_program.h"

#include <plait/primitives/primitives.h>
#include <plait/transforms/transforms.h>

#include <algorithm>
#include <mutex>

namespace plait::functions {
namespace {

// Of less work, compilation costs more than it saves, unless the call is repeated.
constexpr std::int64_t large = 16384;

struct Entry {
  std::string name;
  Params attributes;
  std::vector<Aval> avals;
  int num_calls = 0;
  std::optional<Params> call = {};  // of the equation that runs it
  DefaultDTypes around = DefaultDTypes::current();

  bool is_for(std::string_view other, const Params& others, std::span<const Array> inputs) const {
    return name == other && around == DefaultDTypes::current() && attributes == others &&
           std::equal(avals.begin(), avals.end(), inputs.begin(), inputs.end(),
                      [](const Aval& aval, const Array& input) { return aval == input.aval(); });
  }
};

// The most recently used programs, of all threads, and calls that may become programs.
class Programs {
 public:
  // The program, if there is one, and how often it was asked for.
  struct Found {
    std::optional<Params> call;
    int num_calls = 0;
  };
  Found find(std::string_view name, const Params& attributes, std::span<const Array> inputs) {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(name, attributes, inputs);
    return {entry.call, ++entry.num_calls};
  }
  void add(std::string_view name, const Params& attributes, std::span<const Array> inputs,
           const Params& call) {
    const std::lock_guard lock(mutex_);
    entry_of(name, attributes, inputs).call = call;
  }

 private:
  Entry& entry_of(std::string_view name, const Params& attributes, std::span<const Array> inputs) {
    constexpr std::size_t limit = 64;
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.is_for(name, attributes, inputs);
    });
    if (found != entries_.end()) {
      std::rotate(entries_.begin(), found, found + 1);
      return entries_.front();
    }
    if (entries_.size() == limit) entries_.pop_back();
    const auto avals = avals_of(inputs);
    return *entries_.insert(entries_.begin(),
                            Entry{std::string(name), attributes, {avals.begin(), avals.end()}});
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

Programs& programs() {
  static Programs& kept = *new Programs;
  return kept;
}

}  // namespace

Array in_one_program(std::string_view name, std::span<const Array> inputs, const Params& attributes,
                     Dim work, const Function& body) {
  constexpr int often = 5;
  const bool is_eager = !Trace::current() && work.is_constant() &&
                        std::all_of(inputs.begin(), inputs.end(), [](const Array& input) {
                          return input.is_valid() && input.node()->is_plain();
                        });
  if (!is_eager) return body(inputs)[0];
  const auto [known, num_calls] = programs().find(name, attributes, inputs);
  if (known) return bind(call_p, inputs, *known);
  if (work.constant() < large && num_calls < often) return body(inputs)[0];
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced traced = make_jaxpr(body, avals, name);
  if (!traced.captured.empty())
    throw InternalError(std::string(name) + " uses an array that is not among its inputs");
  const Params call{{"body", traced.jaxpr}, {"name", std::string(name)}};
  programs().add(name, attributes, inputs, call);
  return bind(call_p, inputs, call);
}

namespace {
Dim work_of(std::span<const Array> inputs) {
  Dim work = 1;
  for (const Array& input : inputs)
    if (input.ndim() > 0) work = maximum(work, input.shape().num_elements());
  return work;
}
}  // namespace

Array in_one_program(std::string_view name, std::span<const Array> inputs, const Function& body) {
  return in_one_program(name, inputs, {}, work_of(inputs), body);
}

Array few_in_one_program(std::string_view name, std::span<const Array> inputs,
                         const Function& body) {
  const Dim work = work_of(inputs);
  if (less_equal(large, work) != false) return body(inputs)[0];
  return in_one_program(name, inputs, {}, work, body);
}

}  // namespace plait::functions
