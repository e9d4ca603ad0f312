// Calls of jitted functions: matching a call with entries, and running an entry's program.
//
// A call is matched with the entries of a TraceStore, the most recently used first, without
// allocating for its signature. Outside of traces, concrete inputs run the executable directly.
// Otherwise the jaxpr is applied as one `call` equation. The GIL is released where the work is
// worth it.
// SPDX-License-Identifier: Apache-2.0
#include "array/views.h"
#include "jit.h"

#include <plait/primitives/primitives.h>
#include <plait/trace/accepts.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>
#include <plait/trace/donated.h>
#include <plait/trace/wait.h>
#include <plait/transforms/tape_nodes.h>
#include <plait/transforms/transforms.h>

#include <algorithm>

namespace plait::python {

namespace {

// A program that is traced or recorded keeps its inputs; one that runs directly only reads them.
bool may_borrow() { return !Trace::current() && !conversions; }

// Whether a leaf matches this key. If it is an array, it is added to the inputs.
bool match_leaf(const LeafKey& key, PyObject* leaf, bool donates, JitInputs& inputs) {
  if (is_array(leaf)) {
    const Array& array = array_of(leaf);
    if (!key.aval || !accepts(*key.aval, array.aval())) return false;
    inputs.arrays.push_back(array);
    if (donates) inputs.owners.push_back(key.is_donated ? borrowed(leaf) : py::object());
    return true;
  }
  if (!key.aval) return !is_array_like(leaf) && same_static(key.value.ptr(), leaf);
  if (PyFloat_CheckExact(leaf)) {
    if (key.aval->dtype != DType::float64 || !key.aval->weak || key.aval->rank() != 0) return false;
  } else if (PyLong_CheckExact(leaf)) {
    if (key.aval->dtype != DType::int64 || !key.aval->weak || key.aval->rank() != 0) return false;
  } else if (!is_array_like(leaf)) {
    return false;
  }
  std::optional<Array> array;
  if (is_numpy_array(leaf) && may_borrow()) array = inputs.borrowed.read(leaf);
  if (!array) array = to_array(leaf, {"jit"});
  if (!accepts(*key.aval, array->aval())) return false;
  if (inputs.are_placed && array->is_concrete()) set_free(std::span(&*array, 1));
  inputs.arrays.push_back(std::move(*array));
  if (donates) inputs.owners.emplace_back();
  return true;
}

bool match_arguments(const JitEntry& entry, const JitCall& call, JitInputs& inputs) {
  if (entry.num_positional != call.num_positional || entry.names.size() != call.names.size())
    return false;
  for (std::size_t i = 0; i < call.names.size(); ++i)
    if (entry.names[i].ptr() != call.names[i] &&
        PyUnicode_Compare(entry.names[i].ptr(), call.names[i]) != 0)
      return false;
  inputs.arrays.clear();
  inputs.arrays.reserve(entry.leaves.size() + entry.captures.arrays.size());
  inputs.owners.clear();
  inputs.borrowed.clear();
  const bool donates = !entry.donated.empty();
  if (donates) inputs.owners.reserve(entry.leaves.size());
  std::size_t leaf = 0;
  std::vector<PyObject*> leaves;
  std::vector<py::object> keep;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const ArgumentKey& key = entry.arguments[i];
    PyObject* value = call.values[i];
    if (key.is_static) {
      if (!same_static(key.value.ptr(), value)) return false;
      continue;
    }
    if (is_array(value)) {
      if (key.structure.kind() != TreeDef::Kind::leaf ||
          !match_leaf(entry.leaves[leaf++], value, donates, inputs))
        return false;
      continue;
    }
    leaves.clear();
    leaves.reserve(std::size_t(key.structure.num_leaves()));
    if (!flatten_as(key.structure, value, leaves, keep)) return false;
    for (PyObject* object : leaves)
      if (!match_leaf(entry.leaves[leaf++], object, donates, inputs)) return false;
  }
  return true;
}

// Adds the captured arrays of a new entry, and drops the references to those that later calls read
// again from the user's objects.
void take_captured(JitEntry& entry, Arrays& arrays) {
  for (Captured& item : entry.captures.arrays) {
    arrays.push_back(item.value);
    if (!item.places.empty()) item.value = Array();
  }
}

PyObject* to_result(const JitEntry& entry, Arrays results) {
  if (entry.outputs.kind() == TreeDef::Kind::leaf) return wrap(std::move(results[0]));
  return unflatten_arrays(entry.outputs, std::move(results)).release().ptr();
}

const Buffer& buffer_of(const Array& array) {
  return static_cast<const ConcreteNode*>(array.node())->buffer;
}

void make_executable(const JitState& state, const JitEntry& entry, Instance& instance) {
  instance.executable = without_gil([&] { return compile_for(state, entry, instance); });
  instance.releases_gil |= instance.executable->moves_values();  // it waits for devices
  // Where the GIL is released, the call takes much longer than allocating its outputs.
  instance.keeps_outputs = instance.device.is_host() && !instance.releases_gil &&
                           SpareOutputs::can_keep(instance.executable->outputs());
}

// Takes donated arrays from their Python objects, which cannot be used afterwards. Views of them
// keep their values.
void take_donated(const JitState& state, const JitInputs& inputs) {
  if (inputs.owners.empty()) return;
  const SourceScope line(Source::current());  // of the DonatedNode that replaces each
  for (const py::object& owner : inputs.owners)
    if (owner && array_of(owner.ptr()).is_concrete()) {
      auto* handle = reinterpret_cast<ArrayObject*>(owner.ptr());
      show_views(handle);
      if (handle->view) forget_view(handle);
      donate(handle->array, state.name);
    }
}

// The buffers of donated arrays to which something else still refers: another object, a captured
// array, NumPy. This second reference keeps the executable from overwriting them.
std::vector<Buffer> shared_donations(const JitInputs& inputs) {
  std::vector<Buffer> shared;
  for (std::size_t i = 0; i < inputs.owners.size(); ++i)
    if (inputs.owners[i] && !DonatedNode::is_unique(*inputs.arrays[i].node()))
      shared.push_back(buffer_of(inputs.arrays[i]));
  return shared;
}

void give_program(Instance& instance, const Jaxpr& program) {
  instance.jaxpr = program;
  instance.releases_gil = is_worth_releasing_gil(program);
  instance.calls_host = holds_callable(program);
}

Arrays run_into_kept(const JitState& state, const JitInputs& inputs, Instance& instance,
                     const Executable& executable, std::span<const Buffer* const> buffers) {
  Arrays results = instance.outputs.take(executable.outputs());
  take_donated(state, inputs);
  std::vector<const Buffer*> outputs;
  outputs.reserve(results.size());
  for (const Array& result : results) outputs.push_back(&buffer_of(result));
  executable.run_into(buffers, outputs);
  return results;
}

Arrays run_executable(const JitState& state, const JitInputs& inputs, const Instance& instance,
                      const Executable& executable, std::span<const Buffer* const> buffers) {
  take_donated(state, inputs);
  const std::vector<Buffer> shared = shared_donations(inputs);
  const std::vector<Aval>& avals = executable.outputs();
  std::vector<Buffer> outputs(avals.size());
  if (instance.releases_gil) {
    // Who asks for memory of a device: without the GIL, the line is not known.
    const SourceScope line(instance.device.is_host() ? Source() : Source::current());
    without_gil([&] { executable.run(buffers, outputs); });
  } else {
    executable.run(buffers, outputs);
  }
  Arrays results;
  results.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(make_concrete(avals[i], std::move(outputs[i])));
  return results;
}

void move_all(Arrays& arrays, Device device) {
  for (Array& array : arrays)
    if (array.aval().stack == 0 && buffer_of(array).device() != device)
      array = make_concrete(array.aval(), buffer_of(array).on(device));
}

// Puts the inputs of a call on jit's device, but for arguments that were put on another.
Device place(const JitState& state, const JitEntry& entry, Arrays& arrays) {
  const std::size_t num_arguments =
      arrays.size() - std::min(arrays.size(), entry.captures.arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Array& array = arrays[i];
    const std::optional<Buffer> known = array.known_buffer();
    if (array.aval().stack > 0 || (known && known->device() == *state.device)) continue;
    const bool may_move = !known || known->is_free() ||
                          (known->device().is_host() && (i >= num_arguments || array.ndim() == 0));
    if (!may_move)
      throw BackendError(
          state.name + ": " + state.input_name(entry, i) + ", " + array.aval().to_string() +
              ", lies on " + known->device().to_string() + ", and jit was given device=\"" +
              state.device->to_string() + "\"",
          "move it: device_put(x, \"" + state.device->to_string() + "\"), or leave out device");
    array = device_put(array, *state.device);
  }
  return *state.device;
}

// Whether all inputs lie on one device by name, where jit runs: then nothing moves. Of stacks, only
// the handles are known here.
bool are_settled(const JitState& state, const Arrays& arrays) {
  const Device device = state.device ? *state.device : buffer_of(arrays[0]).device();
  return std::all_of(arrays.begin(), arrays.end(), [&](const Array& array) {
    const Buffer& buffer = buffer_of(array);
    return buffer.device() == device && !buffer.is_free() && array.aval().stack == 0;
  });
}

}  // namespace

// What may move: arrays of numbers alone, numbers, and arrays of the host that the function uses
// without taking them as arguments.
Device settle(const JitState& state, const JitEntry& entry, Arrays& arrays) {
  if (state.device) return place(state, entry, arrays);
  if (!std::all_of(arrays.begin(), arrays.end(),
                   [](const Array& array) { return array.is_concrete(); }))
    return {};
  const std::size_t num_arguments =
      arrays.size() - std::min(arrays.size(), entry.captures.arrays.size());
  Arrays bound;  // what decides
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (i < num_arguments || !device_of(arrays[i]).is_host()) bound.push_back(arrays[i]);
  const Device device = common_device(state.name, bound);
  move_all(arrays, device);
  return device;
}

std::shared_ptr<Instance> find_instance(const JitState& state, JitEntry& entry,
                                        const Arrays& arrays, Device device) {
  auto& instances = entry.instances;
  if (entry.jaxpr->sizes.empty()) {
    for (const std::shared_ptr<Instance>& instance : instances)
      if (instance->device == device) return instance;
    auto made = std::make_shared<Instance>();
    made->device = device;
    give_program(*made, entry.jaxpr);
    instances.push_back(made);
    return made;
  }
  for (auto place = instances.begin(); place != instances.end(); ++place)
    if ((*place)->device == device &&
        std::equal(arrays.begin(), arrays.end(), (*place)->avals.begin(),
                   [](const Array& array, const Aval& aval) { return array.aval() == aval; })) {
      std::rotate(instances.begin(), place, place + 1);
      return instances[0];
    }
  TransformScope scope("jit", state.name);
  ArgumentNames names([&](std::size_t input) { return state.input_name(entry, input); });
  auto made = std::make_shared<Instance>();
  made->device = device;
  made->avals = avals_of(arrays);
  made->sized = entry.sized->instance_for(made->avals);
  give_program(*made, made->sized->program);
  if (instances.size() >= state.options.executables) instances.pop_back();
  instances.insert(instances.begin(), made);
  return made;
}

std::shared_ptr<const Executable> compile_for(const JitState& state, const JitEntry& entry,
                                              const Instance& instance) {
  std::optional<Waiting> waiting;
  if (state.waits) waiting.emplace();
  // Padded inputs are copies, so nothing is donated.
  const bool is_padded = instance.sized && !instance.sized->padded.empty();
  return compile(instance.jaxpr, {.donate = is_padded ? std::vector<bool>() : entry.donated,
                                  .device = instance.device});
}

PyObject* run_entry(const JitState& state, JitEntry& entry, JitInputs& inputs) {
  const bool direct = !Trace::current() && !(may_record() && is_recorded(inputs.arrays)) &&
                      std::all_of(inputs.arrays.begin(), inputs.arrays.end(),
                                  [](const Array& array) { return array.is_concrete(); });
  Whereabouts where;
  for (std::size_t i = 0; direct && i < inputs.arrays.size(); ++i)
    where.add(buffer_of(inputs.arrays[i]));
  const bool settles = state.device || (direct && !where.are_plain());
  const Device device = !settles ? Device()
                        : direct && !inputs.arrays.empty() && are_settled(state, inputs.arrays)
                            ? buffer_of(inputs.arrays[0]).device()
                            : settle(state, entry, inputs.arrays);
  const std::shared_ptr<Instance> instance = find_instance(state, entry, inputs.arrays, device);
  // A trace, the tape or a host function may keep its inputs longer than the call.
  if (!direct || instance->calls_host) inputs.borrowed.copy_all(inputs.arrays);
  const bool is_padded = instance->sized && !instance->sized->padded.empty();
  Arrays padded;
  if (is_padded) padded = entry.sized->pad(*instance->sized, inputs.arrays);
  if (direct && is_padded) move_all(padded, device);  // the sizes are numbers
  const Arrays& arrays = is_padded ? padded : inputs.arrays;
  auto cut = [&](Arrays results) {
    if (is_padded) results = entry.sized->cut(*instance->sized, std::move(results));
    return cut_to_sizes(entry.data_sized.get(), std::move(results), state.name);
  };
  if (!direct) return to_result(entry, cut(flat::call(instance->jaxpr, arrays, state.name)));
  if (!instance->executable) make_executable(state, entry, *instance);
  const std::shared_ptr<const Executable> executable = instance->executable;
  std::vector<const Buffer*> buffers;
  buffers.reserve(arrays.size());
  for (const Array& array : arrays) buffers.push_back(&buffer_of(array));
  Arrays results = instance->keeps_outputs
                       ? run_into_kept(state, inputs, *instance, *executable, buffers)
                       : run_executable(state, inputs, *instance, *executable, buffers);
  inputs.borrowed.copy_all(results);
  if (where.are_free() && !state.device) set_free(results);
  return to_result(entry, cut(std::move(results)));
}

std::shared_ptr<JitEntry> find_entry(JitState& state, const JitCall& call, JitInputs& inputs) {
  inputs.are_placed = state.device.has_value();
  auto matches = [&](const JitEntry& entry) {
    return match_arguments(entry, call, inputs) &&
           entry.captures.match(inputs.arrays, may_borrow() ? &inputs.borrowed : nullptr);
  };
  if (const auto entry = state.traces.find(matches)) {
    ++state.hits;
    ++entry->hits;
    return entry;
  }
  ++state.misses;
  state.last_miss = explain_miss(state, call);
  bool keeps = false;
  const std::shared_ptr<JitEntry> made = make_entry(state, call, keeps);
  JitInputs own;
  own.are_placed = inputs.are_placed;
  if (!match_arguments(*made, call, own))
    throw InternalError("jit: the entry just made does not fit its call");
  const std::shared_ptr<JitEntry> entry = keeps ? state.traces.add(made, matches) : made;
  if (entry == made) {
    take_captured(*made, own.arrays);
    inputs = std::move(own);
  }
  return entry;
}

}  // namespace plait::python
