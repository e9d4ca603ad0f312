// Entries of jitted functions: tracing a call, finding what it captured, and telling signatures
// apart.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

namespace plait::python {

py::object Path::read() const {
  py::object at = root;
  for (const Step& step : steps) {
    PyObject* next = nullptr;
    if (step.kind == Step::Kind::cell) {
      if (PyCell_Check(at.ptr())) next = Py_XNewRef(PyCell_GET(at.ptr()));
    } else if (step.kind == Step::Kind::item) {
      if (PyDict_CheckExact(at.ptr()))
        next = Py_XNewRef(PyDict_GetItemWithError(at.ptr(), step.key.ptr()));
      else
        next = PyObject_GetItem(at.ptr(), step.key.ptr());
    } else {
      next = PyObject_GetAttr(at.ptr(), step.key.ptr());
    }
    if (!next) {
      PyErr_Clear();
      return {};
    }
    at = py::reinterpret_steal<py::object>(next);
  }
  return at;
}

bool same_static(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  // 0.0 and -0.0 are different constants, and NaN is itself.
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw py::error_already_set();
  return equal == 1;
}

bool JitState::is_static(const JitCall& call, std::size_t index) const {
  if (index < call.num_positional) {
    for (std::int64_t number : static_argnums)
      if (number == std::int64_t(index) ||
          number + std::int64_t(call.num_positional) == std::int64_t(index))
        return true;
    return false;
  }
  for (const py::object& name : static_argnames)
    if (PyUnicode_Compare(name.ptr(), call.names[index - call.num_positional]) == 0) return true;
  return false;
}

std::string JitState::argument_name(const JitCall& call, std::size_t index) const {
  if (index >= call.num_positional)
    return py::str(borrowed(call.names[index - call.num_positional]));
  return index < parameters.size() ? parameters[index] : "argument " + std::to_string(index);
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
    if (i >= num_positional) text += std::string(py::str(names[i - num_positional])) + "=";
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
  auto visit_path = [&](const Path& path) -> int {
    Py_VISIT(path.root.ptr());
    for (const Step& step : path.steps) Py_VISIT(step.key.ptr());
    return 0;
  };
  for (const Captured& item : captured)
    for (const Path& path : item.paths)
      if (int result = visit_path(path)) return result;
  for (const Guard& guard : guards) {
    if (int result = visit_path(guard.path)) return result;
    Py_VISIT(guard.value.ptr());
  }
  return 0;
}

namespace {

Path to_path(py::handle description) {
  const auto parts = py::reinterpret_borrow<py::tuple>(description);
  Path path{parts[0], {}, py::str(parts[2])};
  for (py::handle step : parts[1]) {
    const int kind = step[py::int_(0)].cast<int>();
    path.steps.push_back({Step::Kind(kind), py::object(step[py::int_(1)])});
  }
  return path;
}

// Asks the package's Python side where the captured arrays can be found again, and which scalars
// the code reads.
void find_captured(const py::object& function, const Arrays& captured, const Conversions& made,
                   JitEntry& entry) {
  py::list wanted;
  for (const Array& array : captured) {
    const auto* numpy = [&]() -> const py::object* {
      for (const auto& [converted, object] : made.made)
        if (converted.is_same(array)) return &object;
      return nullptr;
    }();
    wanted.append(py::make_tuple(reinterpret_cast<std::uintptr_t>(array.node()),
                                 numpy ? *numpy : py::object(py::none())));
    entry.captured.push_back({array, numpy != nullptr, {}});
  }
  const py::object found = py::module_::import("plait._captures").attr("find")(function, wanted);
  std::size_t i = 0;
  for (py::handle paths : found[py::int_(0)]) {
    for (py::handle path : paths) entry.captured[i].paths.push_back(to_path(path));
    ++i;
  }
  for (py::handle guard : found[py::int_(1)]) {
    const auto pair = py::reinterpret_borrow<py::tuple>(guard);
    entry.guards.push_back({to_path(pair[0]), pair[1]});
  }
}

}  // namespace

std::shared_ptr<JitEntry> make_entry(JitState& state, const JitCall& call, bool& keeps) {
  auto entry = std::make_shared<JitEntry>();
  entry->num_positional = call.num_positional;
  for (PyObject* name : call.names) entry->names.push_back(borrowed(name));
  std::vector<py::object> leaves;
  std::vector<Aval> avals;
  TransformScope scope("jit", state.name);
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
      entry->arguments.push_back({true, borrowed(value), {}});
      continue;
    }
    const std::size_t first = leaves.size();
    entry->arguments.push_back({false, {}, flatten(value, leaves)});
    for (std::size_t k = first; k < leaves.size(); ++k) {
      PyObject* leaf = leaves[k].ptr();
      if (is_array_like(leaf)) {
        const Array array = to_array(leaf, {"jit"});
        entry->leaves.push_back({array.aval(), {}});
        avals.push_back(array.aval());
      } else if (PyObject_Hash(leaf) == -1) {
        PyErr_Clear();
        throw TreeError("jit: argument '" + state.argument_name(call, i) +
                            entry->arguments.back().structure.path(int(k - first)) + "' is " +
                            text_of(leaf) + " of type " + type_name_of(leaf) +
                            ", which is neither an array nor hashable",
                        "pass arrays and numbers, or hashable values, which become part of the "
                        "key; register containers with "
                        "plait.tree.register_pytree_node");
      } else {
        entry->leaves.push_back({std::nullopt, leaves[k]});
      }
    }
  }
  const Function traced_function = [&](std::span<const Array> tracers) {
    std::vector<py::object> inputs = leaves;
    std::size_t next = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (entry->leaves[k].aval) inputs[k] = to_python(tracers[next++]);
    py::tuple arguments(call.num_positional);
    py::dict keywords;
    std::size_t at = 0;
    for (std::size_t i = 0; i < entry->arguments.size(); ++i) {
      const ArgumentKey& key = entry->arguments[i];
      py::object value = key.value;
      if (!key.is_static) {
        const std::size_t count = key.structure.num_leaves();
        value = unflatten(key.structure, {inputs.data() + at, count});
        at += count;
      }
      if (i < call.num_positional)
        arguments[i] = value;
      else
        keywords[entry->names[i - call.num_positional]] = value;
    }
    const py::object result =
        owned(PyObject_Call(state.function.ptr(), arguments.ptr(), keywords.ptr()));
    std::vector<py::object> outputs;
    entry->outputs = flatten(result.ptr(), outputs);
    Arrays arrays;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!is_array_like(outputs[k].ptr()))
        throw TreeError(
            "jit: the output" +
                (entry->outputs.path(int(k)).empty() ? "" : " at " + entry->outputs.path(int(k))) +
                " is " + text_of(outputs[k].ptr()) + " of type " + type_name_of(outputs[k].ptr()) +
                ", which is no array",
            "return arrays, numbers, and trees of them");
      arrays.push_back(to_array(outputs[k].ptr(), {"jit"}));
    }
    return arrays;
  };
  Conversions made;
  Conversions* const outer = std::exchange(conversions, &made);
  struct Restore {
    Conversions* outer;
    ~Restore() { conversions = outer; }
  } restore{outer};
  const Traced traced = make_jaxpr(traced_function, avals, "jit");
  entry->jaxpr = traced.jaxpr;
  entry->output_avals = traced.jaxpr->output_avals();
  entry->releases_gil = work_of(traced.jaxpr) > 30000;
  keeps = true;
  for (const Array& array : traced.captured) keeps &= array.is_concrete();
  if (keeps)
    find_captured(state.function, traced.captured, made, *entry);
  else
    for (const Array& array : traced.captured) entry->captured.push_back({array, false, {}});
  return entry;
}

std::string explain_miss(const JitState& state, const JitCall& call) {
  if (!state.last) return "the first call";
  const JitEntry& last = *state.last;
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
      if (!(now == *before.aval))
        return place + " is " + now.to_string() + " where the last call had " +
               before.aval->to_string();
    }
  }
  for (const Guard& guard : last.guards) {
    const py::object now = guard.path.read();
    if (!now || !same_static(now.ptr(), guard.value.ptr()))
      return guard.path.text + " is " + (now ? text_of(now.ptr()) : "gone") + " where it was " +
             text_of(guard.value.ptr());
  }
  for (const Captured& item : last.captured)
    for (const Path& path : item.paths) {
      const py::object now = path.read();
      if (!now || !is_array_like(now.ptr())) return "the captured array " + path.text + " is gone";
      if (!(to_array(now.ptr()).aval() == item.value.aval()))
        return "the captured array " + path.text + " is " + to_array(now.ptr()).aval().to_string() +
               " where it was " + item.value.aval().to_string();
    }
  return "names that led to one captured array lead to several";
}

}  // namespace plait::python
