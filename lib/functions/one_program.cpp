// Caches the traces of functions that eager calls run as one program. See one_program.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/one_program.h"

#include <plait/primitives/primitives.h>
#include <plait/transforms/transforms.h>

#include <algorithm>
#include <mutex>

namespace plait::functions {
namespace {

struct Entry {
  std::string name;
  Params attributes;
  std::vector<Aval> avals;
  Params call;  // of the equation that runs it
  DefaultDTypes around = DefaultDTypes::current();

  bool is_for(std::string_view other, const Params& others, std::span<const Array> inputs) const {
    return name == other && around == DefaultDTypes::current() && attributes == others &&
           std::equal(avals.begin(), avals.end(), inputs.begin(), inputs.end(),
                      [](const Aval& aval, const Array& input) { return aval == input.aval(); });
  }
};

// The most recently used programs, of all threads.
class Programs {
 public:
  std::optional<Params> find(std::string_view name, const Params& attributes,
                             std::span<const Array> inputs) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.is_for(name, attributes, inputs);
    });
    if (found == entries_.end()) return std::nullopt;
    std::rotate(entries_.begin(), found, found + 1);
    return entries_.front().call;
  }
  void add(Entry entry) {
    constexpr std::size_t limit = 32;
    const std::lock_guard lock(mutex_);
    if (entries_.size() == limit) entries_.pop_back();
    entries_.insert(entries_.begin(), std::move(entry));
  }

 private:
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
  constexpr std::int64_t large = 16384;  // below, compilation costs more than it saves
  const bool is_eager = !Trace::current() && work.is_constant() && work.constant() >= large &&
                        std::all_of(inputs.begin(), inputs.end(), [](const Array& input) {
                          return input.is_valid() && input.node()->is_plain();
                        });
  if (!is_eager) return body(inputs)[0];
  if (const auto call = programs().find(name, attributes, inputs))
    return bind(call_p, inputs, *call);
  const std::vector<Aval> avals = avals_of(inputs);
  const Traced traced = make_jaxpr(body, avals, name);
  if (!traced.captured.empty())
    throw InternalError(std::string(name) + " uses an array that is not among its inputs");
  Entry entry{
      std::string(name), attributes, avals, {{"body", traced.jaxpr}, {"name", std::string(name)}}};
  const Params call = entry.call;
  programs().add(std::move(entry));
  return bind(call_p, inputs, call);
}

}  // namespace plait::functions
