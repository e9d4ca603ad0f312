// jit: a function becomes one `call`, traced once per signature, that every transform sees through and
// that runs as one compiled executable.
// SPDX-License-Identifier: Apache-2.0
#include <plait/transforms.h>

namespace plait {

Arrays flat::Jit::operator()(std::span<const Array> inputs) const {
  std::vector<Aval> avals;
  avals.reserve(inputs.size());
  for (const Array& input : inputs) avals.push_back(input.aval());
  const std::shared_ptr<const Traced> traced = state_->lookup(avals, [&] {
    TransformScope scope("jit", state_->name);
    return make_jaxpr(state_->function, avals, "jit");
  });
  if (traced->captured.empty()) return call(traced->jaxpr, inputs, {{"name", state_->name}});
  Arrays arguments(inputs.begin(), inputs.end());
  arguments.insert(arguments.end(), traced->captured.begin(), traced->captured.end());
  return call(traced->jaxpr, arguments, {{"name", state_->name}});
}

std::shared_ptr<const Traced> flat::Jit::State::lookup(const std::vector<Aval>& avals, const std::function<Traced()>& trace) {
  constexpr std::size_t limit = 256;
  {
    std::lock_guard lock(mutex);
    for (auto& [key, traced] : entries)
      if (key == avals) return traced;
  }
  // No lock is held while user code runs; the first of racing traces wins.
  auto made = std::make_shared<const Traced>(trace());
  for (const Array& array : made->captured)
    if (!array.is_concrete()) return made;  // an outer tracer: good for this call only
  std::lock_guard lock(mutex);
  for (auto& [key, traced] : entries)
    if (key == avals) return traced;
  if (entries.size() == limit) entries.erase(entries.begin());
  entries.emplace_back(avals, made);
  return made;
}

}  // namespace plait
