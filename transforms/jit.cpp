// jit: a function becomes one `call`, traced once per signature. Every transform sees through it,
// and it runs as one compiled executable. Also the primitive call, which applies any function.
//
//   body    the jaxpr; operands and results are those of the body
//   name    shown in text, profiles and pictures; absent: none
//   sizes   values of the body's named sizes, in order
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/concrete.h>
#include <plait/trace/data_sizes.h>
#include <plait/trace/devices.h>
#include <plait/trace/run_into.h>
#include <plait/transforms/api.h>
#include <plait/transforms/applied.h>

#include <algorithm>

namespace plait {
namespace {

Arrays apply_part_of_call(const Params& of, const Jaxpr& part, std::string_view,
                          std::span<const Array> operands) {
  return bind(call_p, operands, with_body(of, part));
}

const Buffer* buffer_of(const Array& array) {
  return array.is_concrete() ? &static_cast<const ConcreteNode*>(array.node())->buffer : nullptr;
}
bool is_apart(const Array& array) {
  const Buffer* buffer = buffer_of(array);
  return buffer && !buffer->device().is_host();
}

// The inputs of a call, and what the function has captured: of that, arrays of the host go where
// the inputs lie.
Arrays with_captured(std::span<const Array> inputs, const Arrays& captured) {
  const auto there = std::find_if(inputs.begin(), inputs.end(), is_apart);
  const bool are_free = std::all_of(inputs.begin(), inputs.end(), [](const Array& input) {
    const Buffer* buffer = buffer_of(input);
    return buffer && buffer->is_free();
  });
  const Device device = there != inputs.end() ? buffer_of(*there)->device()
                        : are_free            ? DeviceScope::current()
                                              : Device{};
  Arrays all = concatenate(inputs, captured);
  if (device.is_host()) return all;
  for (Array& array : std::span(all).subspan(inputs.size()))
    if (array.is_concrete() && array.aval().stack == 0 && !is_apart(array))
      array = moved_to(array, device);
  return all;
}

}  // namespace

constinit const Primitive call_p{"call"};
static const auto call_def =
    define(call_p, "Applies the function that the parameter body holds.")
        .family(applies_body())
        .rule<Linearize>(linearize_body(apply_part_of_call))
        .rule<Transpose>(transpose_body(apply_part_of_call))
        .rule<Batch>(batch_body(call_p, BatchAxis::anywhere))
        .rule<Samples>([] { return std::vector{sample_of_body({{"name", std::string("f")}})}; });

Arrays flat::call(const Jaxpr& body, std::span<const Array> inputs,
                  const std::optional<std::string>& name) {
  const Params named = name ? Params{{"name", *name}} : Params();
  return bind(call_p, inputs, with_body(named, body));
}

Arrays flat::Jit::call(const Entry& entry, std::span<const Array> inputs) {
  const Arrays& captured = entry.traced.captured;
  Arrays results = captured.empty() ? bind(call_p, inputs, entry.params)
                                    : bind(call_p, with_captured(inputs, captured), entry.params);
  return cut_to_sizes(entry.data_sized.get(), std::move(results), "jit");
}

void flat::Jit::run_into(const Entry& entry, std::span<const Array> inputs,
                         std::span<Array> outputs) const {
  if (entry.data_sized)
    throw ShapeError(
        "run_into: a result of `" + state_->name + "` has a size that depends on values",
        "call the function, which makes arrays of the sizes that result");
  const Arrays& captured = entry.traced.captured;
  const Jaxpr program = open_body(entry.params);
  if (captured.empty()) return plait::run_into(program, inputs, outputs, state_->name);
  plait::run_into(program, with_captured(inputs, captured), outputs, state_->name);
}

void detail::JitDevice::enter(const JitOptions& options, std::span<Array> arguments) {
  const Device device = *options.device;
  scope_.emplace(device);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Array& array = arguments[i];
    if (array.aval().stack > 0) continue;
    if (const Buffer* known = buffer_of(array); known && !known->is_free()) {
      const Device home = known->device();
      if (home == device) continue;
      if (!home.is_host() || array.ndim() > 0)
        throw BackendError(
            options.name + ": argument " + std::to_string(i) + ", " + array.aval().to_string() +
                ", lies on " + home.to_string() + ", and jit was given the device " +
                device.to_string(),
            "move it: device_put(x, \"" + device.to_string() + "\"), or leave out the device");
    }
    array = device_put(array, device);
  }
}

flat::Jit::EntryPointer flat::Jit::entry(std::span<const Array> inputs,
                                         std::span<const TreeDef> arguments) const {
  const auto matches = [&](const Entry& entry) {
    return std::equal(inputs.begin(), inputs.end(), entry.avals.begin(), entry.avals.end(),
                      [](const Array& input, const Aval& aval) { return input.aval() == aval; }) &&
           std::equal(arguments.begin(), arguments.end(), entry.arguments.begin(),
                      entry.arguments.end());
  };
  if (EntryPointer found = state_->traces.find(matches)) return found;
  EntryPointer made = state_->trace(inputs, arguments);
  const Arrays& captured = made->traced.captured;
  // A trace that captures tracers of an outer trace is valid for this call only.
  const bool keeps = std::all_of(captured.begin(), captured.end(),
                                 [](const Array& array) { return array.is_concrete(); });
  return keeps ? state_->traces.add(std::move(made), matches) : made;
}

std::shared_ptr<flat::Jit::Entry> flat::Jit::State::trace(
    std::span<const Array> inputs, std::span<const TreeDef> arguments) const {
  auto made = std::make_shared<Entry>();
  made->arguments.assign(arguments.begin(), arguments.end());
  made->avals = avals_of(inputs);
  {
    TransformScope scope("jit", name);
    const auto traced = [&](std::span<const Array> tracers) {
      return function(made->arguments, tracers, made->result);
    };
    const DataSizedScope from_data;
    made->traced = make_jaxpr(traced, made->avals, "jit");
    made->data_sized = from_data.outputs();
  }
  made->params = with_body({{"name", name}}, made->traced.jaxpr);
  return made;
}

}  // namespace plait
