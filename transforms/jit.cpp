// jit: a function becomes one `call`, traced once per signature, that every transform sees through
// and that runs as one compiled executable.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/trace/run_into.h>
#include <plait/transforms.h>

namespace plait {
namespace {

Arrays concatenated(std::span<const Array> inputs, const Arrays& captured) {
  Arrays arguments(inputs.begin(), inputs.end());
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  return arguments;
}

}  // namespace

Arrays flat::Jit::call(const Entry& entry, std::span<const Array> inputs) {
  const Arrays& captured = entry.traced.captured;
  if (captured.empty()) return bind(call_p, inputs, entry.params);
  return bind(call_p, concatenated(inputs, captured), entry.params);
}

void flat::Jit::run_into(const Entry& entry, std::span<const Array> inputs,
                         std::span<Array> outputs) const {
  const Arrays& captured = entry.traced.captured;
  const Jaxpr program = body_of_call(entry.params);
  if (captured.empty()) return plait::run_into(program, inputs, outputs, state_->name);
  plait::run_into(program, concatenated(inputs, captured), outputs, state_->name);
}

flat::Jit::EntryPointer flat::Jit::State::find(std::span<const Array> inputs) {
  std::lock_guard lock(mutex);
  for (const EntryPointer& entry : entries)
    if (std::equal(inputs.begin(), inputs.end(), entry->avals.begin(), entry->avals.end(),
                   [](const Array& input, const Aval& aval) { return input.aval() == aval; }))
      return entry;
  return nullptr;
}

// No lock is held while user code runs; the first of racing traces wins.
flat::Jit::EntryPointer flat::Jit::State::trace(std::span<const Array> inputs) {
  constexpr std::size_t limit = 256;
  auto made = std::make_shared<Entry>();
  made->avals = avals_of(inputs);
  {
    TransformScope scope("jit", name);
    const auto traced = [&](std::span<const Array> tracers) {
      return function(tracers, made->result);
    };
    made->traced = make_jaxpr(traced, made->avals, "jit");
  }
  const Jaxpr& body = made->traced.jaxpr;
  made->params = {{"body", body}, {"name", name}};
  if (!body->sizes.empty())
    made->params = made->params.with("sizes", Shape(body->sizes.begin(), body->sizes.end()));
  for (const Array& array : made->traced.captured)
    if (!array.is_concrete()) return made;  // an outer tracer: good for this call only
  if (const EntryPointer first = find(inputs)) return first;
  std::lock_guard lock(mutex);
  if (entries.size() == limit) entries.erase(entries.begin());
  entries.push_back(made);
  return made;
}

}  // namespace plait
