// Entries of jitted functions: tracing a call, finding what it captured, and explaining why a call
// needs a new entry.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

#include <plait/trace/accepts.h>
#include <plait/trace/devices.h>
#include <plait/trace/sizes.h>

#include <algorithm>

namespace plait::python {

namespace {

// Whether an argument of a call is among argnums and argnames, as jit takes them.
bool is_listed(const JitCall& call, std::size_t index, const std::vector<std::int64_t>& numbers,
               const std::vector<py::object>& names) {
  if (index < call.num_positional) {
    for (std::int64_t number : numbers)
      if (number == std::int64_t(index) ||
          number + std::int64_t(call.num_positional) == std::int64_t(index))
        return true;
    return false;
  }
  for (const py::object& name : names)
    if (PyUnicode_Compare(name.ptr(), call.names[index - call.num_positional]) == 0) return true;
  return false;
}

}  // namespace

bool JitState::is_static(const JitCall& call, std::size_t index) const {
  return is_listed(call, index, static_argnums, static_argnames);
}

bool JitState::is_donated(const JitCall& call, std::size_t index) const {
  return is_listed(call, index, donate_argnums, donate_argnames);
}

py::object JitState::spec_of(const JitCall& call, std::size_t index) const {
  if (!specs) return py::none();
  std::size_t position = index;
  if (index >= call.num_positional) {
    const std::string name = py::str(borrowed(call.names[index - call.num_positional]));
    position = std::find(parameters.begin(), parameters.end(), name) - parameters.begin();
  }
  const auto list = py::reinterpret_borrow<py::tuple>(specs);
  return position < list.size() ? py::object(list[position]) : py::none();
}

std::string JitState::argument_name(const JitCall& call, std::size_t index) const {
  if (index >= call.num_positional) return utf8_of(call.names[index - call.num_positional]);
  return index < parameters.size() ? parameters[index] : "argument " + std::to_string(index);
}

std::string JitState::input_name(const JitEntry& entry, std::size_t input) const {
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const TreeDef& structure = entry.arguments[i].structure;
    if (entry.arguments[i].is_static) continue;
    for (int k = 0; k < structure.num_leaves(); ++k, ++leaf) {
      if (!entry.leaves[leaf].aval || input-- > 0) continue;
      const std::string name = i >= entry.num_positional
                                   ? std::string(py::str(entry.names[i - entry.num_positional]))
                               : i < parameters.size() ? parameters[i]
                                                       : std::to_string(i);
      return "argument " + name + structure.path(k);
    }
  }
  return "a captured array";
}

std::string JitEntry::to_string() const {
  std::string text;
  std::size_t leaf = 0;
  auto leaf_text = [&] {
    const LeafKey& key = leaves[leaf++];
    return key.aval ? key.aval->to_string() : text_of(key.value.ptr());
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i) text += ", ";
    if (i >= num_positional) text += utf8_of(names[i - num_positional].ptr()) + "=";
    if (arguments[i].is_static) {
      text += text_of(arguments[i].value.ptr());
      continue;
    }
    const int count = arguments[i].structure.num_leaves();
    if (arguments[i].structure.kind() == TreeDef::Kind::leaf) {
      text += leaf_text();
    } else {
      text += arguments[i].structure.to_string() + " of ";
      for (int k = 0; k < count; ++k) text += (k ? " " : "") + leaf_text();
    }
  }
  return "(" + text + ")";
}

int JitEntry::visit(visitproc visit, void* arg) const {
  for (const ArgumentKey& argument : arguments) Py_VISIT(argument.value.ptr());
  for (const LeafKey& leaf : leaves) Py_VISIT(leaf.value.ptr());
  return captures.visit(visit, arg);
}

namespace {

// Arguments that belong to the signature, with their names: the arrays that they lead to are
// captured.
py::list objects_of(const JitState& state, const JitCall& call, const JitEntry& entry) {
  py::list objects;
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const ArgumentKey& key = entry.arguments[i];
    const std::string name = state.argument_name(call, i);
    if (key.is_static) objects.append(py::make_tuple(name, key.value));
    for (int k = 0; !key.is_static && k < key.structure.num_leaves(); ++k, ++leaf)
      if (!entry.leaves[leaf].aval)
        objects.append(py::make_tuple(name + key.structure.path(k), entry.leaves[leaf].value));
  }
  return objects;
}

// Asks plait._captures where the captured arrays can be found again, and what else the code reads.
void find_captured(const py::object& function, const py::list& objects, const Arrays& captured,
                   const Conversions& made, Captures& captures) {
  py::list wanted, converted;
  for (const Array& array : captured) {
    const auto* numpy = [&]() -> const py::object* {
      for (const auto& [converted, object] : made.made)
        if (converted.is_same(array)) return &object;
      return nullptr;
    }();
    wanted.append(py::make_tuple(reinterpret_cast<std::uintptr_t>(array.node()),
                                 numpy ? *numpy : py::object(py::none())));
    captures.arrays.push_back({array.aval(), array, numpy != nullptr});
  }
  for (const auto& [array, object] : made.made) converted.append(py::make_tuple(object, false));
  for (const Array& array : made.read) converted.append(py::make_tuple(to_python(array), true));
  const py::object found =
      py::module_::import("plait._captures").attr("find")(function, wanted, objects, converted);
  std::size_t i = 0;
  for (py::handle paths : found[py::int_(0)]) {
    for (py::handle path : paths) captures.add_path(captures.arrays[i], path);
    ++i;
  }
  for (py::handle guard : found[py::int_(1)]) captures.add_guard(guard);
  captures.close();
}

// One leaf of an argument: an array, or part of the key.
LeafKey key_of(const JitState& state, const JitCall& call, std::size_t index,
               const TreeDef& structure, int number, const py::object& leaf) {
  if (is_array_like(leaf.ptr()))
    return {to_array(leaf.ptr(), {"jit"}).aval(), {}, state.is_donated(call, index)};
  if (PyObject_Hash(leaf.ptr()) != -1) return {std::nullopt, leaf, false};
  PyErr_Clear();
  throw TreeError("jit: argument '" + state.argument_name(call, index) + structure.path(number) +
                      "' is " + text_of(leaf.ptr()) + " of type " + type_name_of(leaf.ptr()) +
                      ", which is neither an array nor hashable",
                  "pass arrays and numbers, or hashable values, which become part of the key; "
                  "register containers with plait.tree.register_pytree_node");
}

// Flattens the arguments of a call into the entry. leaves: those of all arguments.
void add_arguments(const JitState& state, const JitCall& call, JitEntry& entry,
                   std::vector<py::object>& leaves) {
  entry.num_positional = call.num_positional;
  for (PyObject* name : call.names) entry.names.push_back(borrowed(name));
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    PyObject* value = call.values[i];
    if (state.is_static(call, i)) {
      if (PyObject_Hash(value) == -1) {
        PyErr_Clear();
        throw DtypeError(
            "jit: static argument '" + state.argument_name(call, i) + "' is " + text_of(value) +
                " of type " + type_name_of(value) + ", which has no hash",
            "pass something hashable, such as a tuple instead of a list, or do not mark it static");
      }
      entry.arguments.push_back({true, borrowed(value), {}});
      continue;
    }
    const std::size_t first = leaves.size();
    entry.arguments.push_back({false, {}, flatten(value, leaves)});
    for (std::size_t k = first; k < leaves.size(); ++k)
      entry.leaves.push_back(
          key_of(state, call, i, entry.arguments.back().structure, int(k - first), leaves[k]));
  }
}

// The spec of each array of a call.
std::vector<Spec> specs_of(const JitState& state, const JitCall& call, const JitEntry& entry) {
  const std::size_t count = py::len(state.specs);
  if (call.num_positional > count)
    throw ValueError("jit: sizes has " + std::to_string(count) + (count == 1 ? " spec" : " specs") +
                         ", and `" + state.name + "` was called with " +
                         std::to_string(call.num_positional) + " arguments",
                     "give one spec for each argument; None takes all from the call");
  std::vector<Spec> specs;
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    if (entry.arguments[i].is_static) continue;
    std::vector<py::object> given;
    const py::object is_leaf = py::cpp_function([](py::object object) { return object.is_none(); });
    const TreeDef def = flatten(state.spec_of(call, i).ptr(), given, is_leaf.ptr());
    for (int number : broadcast_prefix(def, entry.arguments[i].structure, "jit: sizes"))
      if (entry.leaves[leaf++].aval) specs.push_back(to_spec(given[number].ptr()));
  }
  return specs;
}

// Checks the arrays of a call against specs: numbers in specs, and sizes that share a name.
void check_sizes(const JitState& state, const JitEntry& entry, std::span<const Spec> specs,
                 const Constraints& constraints, std::span<const Aval> avals) {
  ArgumentNames names([&](std::size_t input) { return state.input_name(entry, input); });
  std::vector<Dim> sizes;
  std::vector<Aval> formal;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Spec spec = specs[i].substitute(constraints.multiples());
    spec.collect_sizes(sizes);
    formal.push_back(spec.resolve(avals[i], "jit: " + ArgumentNames::of(i) + ": "));
  }
  solve_sizes(sizes, formal, avals, "jit");
}

// Calls the function with tracers in place of the entry's arrays. structure: that of the outputs.
Arrays call_function(const JitState& state, const JitEntry& entry, std::vector<py::object> leaves,
                     std::span<const Array> tracers, TreeDef& structure) {
  std::size_t next = 0, at = 0;
  for (std::size_t k = 0; k < leaves.size(); ++k)
    if (entry.leaves[k].aval) {
      leaves[k] = to_python(tracers[next++]);
      reinterpret_cast<ArrayObject*>(leaves[k].ptr())->is_argument = true;
    }
  py::tuple arguments(entry.num_positional);
  py::dict keywords;
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    const ArgumentKey& key = entry.arguments[i];
    py::object value = key.value;
    if (!key.is_static) {
      const std::size_t count = key.structure.num_leaves();
      value = unflatten(key.structure, {leaves.data() + at, count});
      at += count;
    }
    if (i < entry.num_positional)
      arguments[i] = value;
    else
      keywords[entry.names[i - entry.num_positional]] = value;
  }
  leaves.clear();
  const py::object result =
      owned(PyObject_Call(state.function.ptr(), arguments.ptr(), keywords.ptr()));
  std::vector<py::object> outputs;
  structure = flatten(result.ptr(), outputs);
  Arrays arrays;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    PyObject* output = outputs[k].ptr();
    const std::string path = structure.path(int(k));
    if (!is_array_like(output))
      throw TreeError("jit: the output" + (path.empty() ? "" : " at " + path) + " is " +
                          text_of(output) + " of type " + type_name_of(output) +
                          ", which is no array",
                      "return arrays, numbers, and trees of them");
    arrays.push_back(to_array(output, {"jit"}));
  }
  return arrays;
}

// The same. TracerError if the function leaves values of the trace behind.
Arrays call_traced(const JitState& state, const JitCall& call, const JitEntry& entry,
                   const std::vector<py::object>& leaves, std::span<const Array> tracers,
                   TreeDef& structure) {
  const LivingArrays living;
  Arrays arrays = call_function(state, entry, leaves, tracers, structure);
  if (living.count() != 0) check_nothing_left(state.function, objects_of(state, call, entry));
  return arrays;
}

}  // namespace

std::shared_ptr<JitEntry> make_entry(JitState& state, const JitCall& call, bool& keeps) {
  auto entry = std::make_shared<JitEntry>();
  std::vector<py::object> leaves;
  TransformScope scope("jit", state.name);
  const DeviceScope device(state.device.value_or(DeviceScope::current()));
  add_arguments(state, call, *entry, leaves);
  std::vector<Aval> avals;
  for (const LeafKey& leaf : entry->leaves)
    if (leaf.aval) avals.push_back(*leaf.aval);
  std::vector<Spec> specs;
  const Constraints constraints(state.options.constraints);
  if (state.specs) {
    specs = specs_of(state, call, *entry);
    check_sizes(state, *entry, specs, constraints, avals);
  }
  const Function function = [&](std::span<const Array> tracers) {
    return call_traced(state, call, *entry, leaves, tracers, entry->outputs);
  };
  Conversions made;
  Conversions* const outer = std::exchange(conversions, &made);
  struct Restore {
    Conversions* outer;
    const Conversions& made;
    ~Restore() {
      conversions = outer;  // the outer program captures what this one does
      if (!outer) return;
      outer->made.insert(outer->made.end(), made.made.begin(), made.made.end());
      outer->read.insert(outer->read.end(), made.read.begin(), made.read.end());
    }
  } restore{outer, made};
  const std::vector<std::optional<Aval>> actual(avals.begin(), avals.end());
  const DataSizedScope from_data;
  const Traced traced = state.specs ? trace_with_specs(function, specs, actual, "jit", constraints)
                                    : make_jaxpr(function, avals, "jit");
  entry->jaxpr = traced.jaxpr;
  entry->data_sized = from_data.outputs();
  if (!traced.jaxpr->sizes.empty() || state.specs)
    entry->sized = std::make_shared<SizedProgram>(traced.jaxpr, state.options, state.name);
  std::size_t input = 0;
  bool donates = false;
  for (LeafKey& leaf : entry->leaves) {
    if (!leaf.aval) continue;
    leaf.aval = traced.jaxpr->input_avals()[input++];
    entry->donated.push_back(leaf.is_donated);
    donates |= leaf.is_donated;
  }
  if (!donates) entry->donated.clear();
  keeps = true;
  for (const Array& array : traced.captured) keeps &= array.is_concrete();
  if (keeps)
    find_captured(state.function, objects_of(state, call, *entry), traced.captured, made,
                  entry->captures);
  else
    for (const Array& array : traced.captured)
      entry->captures.arrays.push_back({array.aval(), array});
  return entry;
}

std::string explain_miss(const JitState& state, const JitCall& call) {
  const std::shared_ptr<JitEntry> kept = state.traces.last();  // comparing runs user code
  if (!kept) return "the first call";
  if (const char* change = state.traces.changed_around())
    return std::string(change) + " around the call";
  const JitEntry& last = *kept;
  if (call.num_positional != last.num_positional)
    return std::to_string(call.num_positional) + " positional arguments where the last call had " +
           std::to_string(last.num_positional);
  if (call.names.size() != last.names.size()) return "other keyword arguments than the last call's";
  std::size_t leaf = 0;
  for (std::size_t i = 0; i < call.values.size(); ++i) {
    const ArgumentKey& key = last.arguments[i];
    const std::string name = state.argument_name(call, i);
    if (key.is_static) {
      if (!same_static(key.value.ptr(), call.values[i]))
        return "static argument " + name + " is " + text_of(call.values[i]) +
               " where the last call had " + text_of(key.value.ptr());
      continue;
    }
    std::vector<py::object> leaves;
    const TreeDef structure = flatten(call.values[i], leaves);
    if (!(structure == key.structure))
      return name + " has the structure " + structure.to_string() + " where the last call had " +
             key.structure.to_string();
    for (std::size_t k = 0; k < leaves.size(); ++k, ++leaf) {
      const LeafKey& before = last.leaves[leaf];
      const std::string place = name + structure.path(int(k));
      if (!before.aval || !is_array_like(leaves[k].ptr())) {
        if (before.aval || !same_static(before.value.ptr(), leaves[k].ptr()))
          return place + " is " + text_of(leaves[k].ptr()) + " where the last call had " +
                 (before.aval ? before.aval->to_string() : text_of(before.value.ptr()));
        continue;
      }
      const Aval now = to_array(leaves[k].ptr()).aval();
      if (!accepts(*before.aval, now))
        return place + " is " + now.to_string() + " where the last call had " +
               before.aval->to_string();
    }
  }
  const std::string reason = last.captures.explain_miss();
  return reason.empty() ? "names that led to one captured array lead to several" : reason;
}

}  // namespace plait::python
