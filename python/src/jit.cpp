// JitFunction: the callable that jit returns, a heap type called by vectorcall.
//
// A call is matched against the entry used last, then against the others; nothing is allocated for
// a signature on the way. With no trace around and concrete inputs the executable runs directly,
// else the jaxpr is applied as one `call` equation. The GIL is let go of where the work is worth
// it.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

#include <plait/transforms.h>

#include <structmember.h>

#include <algorithm>

namespace plait::python {
namespace {

struct JitObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  JitState* state;
  PyObject *dict, *weak_references;
};
PyTypeObject* jit_type;
JitState& state_of(PyObject* object) { return *reinterpret_cast<JitObject*>(object)->state; }

// --- Matching
// --------------------------------------------------------------------------------------

// Whether a leaf has this key; its array is added when it is one.
bool match_leaf(const LeafKey& key, PyObject* leaf, Arrays& arrays) {
  if (is_array(leaf)) {
    const Array& array = array_of(leaf);
    if (!key.aval || !(*key.aval == array.aval())) return false;
    arrays.push_back(array);
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
  Array array = to_array(leaf, {"jit"});
  if (!(array.aval() == *key.aval)) return false;
  arrays.push_back(std::move(array));
  return true;
}

bool match_arguments(const JitEntry& entry, const JitCall& call, Arrays& arrays) {
  if (entry.num_positional != call.num_positional || entry.names.size() != call.names.size())
    return false;
  for (std::size_t i = 0; i < call.names.size(); ++i)
    if (entry.names[i].ptr() != call.names[i] &&
        PyUnicode_Compare(entry.names[i].ptr(), call.names[i]) != 0)
      return false;
  arrays.clear();
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
          !match_leaf(entry.leaves[leaf++], value, arrays))
        return false;
      continue;
    }
    leaves.clear();
    if (!flatten_as(key.structure, value, leaves, keep)) return false;
    for (PyObject* object : leaves)
      if (!match_leaf(entry.leaves[leaf++], object, arrays)) return false;
  }
  return true;
}

// Adds the captured arrays as they are now; false when the entry no longer fits.
bool match_captured(const JitEntry& entry, Arrays& arrays) {
  for (const Guard& guard : entry.guards) {
    const py::object now = guard.path.read();
    if (!now || !same_static(guard.value.ptr(), now.ptr())) return false;
  }
  for (const Captured& item : entry.captured) {
    if (item.paths.empty()) {
      arrays.push_back(item.value);
      continue;
    }
    const py::object now = item.paths[0].read();
    if (!now) return false;
    for (std::size_t i = 1; i < item.paths.size(); ++i)
      if (item.paths[i].read().ptr() != now.ptr()) return false;
    if (!(item.from_numpy ? is_numpy_array(now.ptr()) : is_array(now.ptr()))) return false;
    Array array = to_array(now.ptr());
    if (!(array.aval() == item.value.aval())) return false;
    arrays.push_back(std::move(array));
  }
  return true;
}

// --- Running
// ---------------------------------------------------------------------------------------

PyObject* give(const JitEntry& entry, Arrays results) {
  if (entry.outputs.kind() == TreeDef::Kind::leaf) return wrap(std::move(results[0]));
  std::vector<py::object> leaves;
  leaves.reserve(results.size());
  for (Array& result : results) leaves.push_back(to_python(std::move(result)));
  return unflatten(entry.outputs, leaves).release().ptr();
}

PyObject* run(const JitState& state, JitEntry& entry, const Arrays& arrays) {
  const bool direct =
      !Trace::current() && std::all_of(arrays.begin(), arrays.end(),
                                       [](const Array& array) { return array.is_concrete(); });
  if (!direct || !entry.jaxpr->sizes.empty())
    return give(entry, flat::call(entry.jaxpr, arrays, {{"name", state.name}}));
  if (!entry.executable) {
    std::shared_ptr<const Executable> made;
    {
      py::gil_scoped_release released;
      made = compile(entry.jaxpr);
    }
    entry.executable = std::move(made);
  }
  std::vector<Buffer> inputs;
  inputs.reserve(arrays.size());
  for (const Array& array : arrays)
    inputs.push_back(static_cast<const ConcreteNode*>(array.node())->buffer);
  std::vector<Buffer> outputs;
  if (entry.releases_gil) {
    const std::shared_ptr<const Executable> executable = entry.executable;
    py::gil_scoped_release released;
    outputs = executable->run(inputs);
  } else {
    outputs = entry.executable->run(inputs);
  }
  Arrays results;
  results.reserve(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(Array(std::move(outputs[i]), entry.output_avals[i].weak));
  return give(entry, std::move(results));
}

JitCall to_call(PyObject* const* values, std::size_t flags, PyObject* keywords) {
  JitCall call;
  call.num_positional = PyVectorcall_NARGS(flags);
  const std::size_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  call.values.assign(values, values + call.num_positional + named);
  if (named == 0) return call;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < named; ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return PyUnicode_Compare(PyTuple_GET_ITEM(keywords, a), PyTuple_GET_ITEM(keywords, b)) < 0;
  });
  for (std::size_t i = 0; i < named; ++i) {
    call.names.push_back(PyTuple_GET_ITEM(keywords, order[i]));
    call.values[call.num_positional + i] = values[call.num_positional + order[i]];
  }
  return call;
}

// The entry for a call, traced when there is none; arrays are its inputs and captured arrays.
std::shared_ptr<JitEntry> find_entry(JitState& state, const JitCall& call, Arrays& arrays) {
  constexpr std::size_t limit = 256;
  auto fits = [&](const JitEntry& entry) {
    return match_arguments(entry, call, arrays) && match_captured(entry, arrays);
  };
  if (state.last && fits(*state.last)) {
    ++state.hits;
    ++state.last->hits;
    return state.last;
  }
  for (std::size_t i = 0; i < state.entries.size(); ++i) {
    const std::shared_ptr<JitEntry> entry = state.entries[i];
    if (entry == state.last || !fits(*entry)) continue;
    ++state.hits;
    ++entry->hits;
    return state.last = entry;
  }
  ++state.misses;
  state.last_miss = explain_miss(state, call);
  bool keeps = false;
  std::shared_ptr<JitEntry> entry = make_entry(state, call, keeps);
  arrays.clear();
  if (!match_arguments(*entry, call, arrays))
    throw InternalError("jit: the entry just made does not fit its call");
  for (const Captured& item : entry->captured) arrays.push_back(item.value);
  if (keeps) {
    if (state.entries.size() >= limit) state.entries.erase(state.entries.begin());
    state.entries.push_back(entry);
    state.last = entry;
  }
  return entry;
}

PyObject* call(PyObject* self, PyObject* const* values, std::size_t flags, PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    if (!state.function)
      throw InternalError("a jitted function was called after the garbage collector took it apart");
    Arrays arrays;
    const std::shared_ptr<JitEntry> entry =
        find_entry(state, to_call(values, flags, keywords), arrays);
    return run(state, *entry, arrays);
  });
}

// --- The type
// --------------------------------------------------------------------------------------

int traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dict);
  if (!self->state) return 0;
  Py_VISIT(self->state->function.ptr());
  for (const auto& entry : self->state->entries)
    if (int result = entry->visit(visit, arg)) return result;
  return 0;
}

int clear(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_CLEAR(self->dict);
  // What an entry lets go of may call back into this object.
  JitState* state = std::exchange(self->state, new JitState);
  delete state;
  return 0;
}

void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* self = reinterpret_cast<JitObject*>(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  Py_CLEAR(self->dict);
  delete std::exchange(self->state, nullptr);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<jitted %s, %zd traces>", state_of(self).name.c_str(),
                              Py_ssize_t(state_of(self).entries.size()));
}

// What f.cache shows.
struct CacheView {
  std::vector<std::string> entries;
  std::vector<std::int64_t> entry_hits;
  std::vector<std::string> frozen;
  std::int64_t hits, misses;
  std::string last_miss;
};

PyObject* get_cache(PyObject* self, void*) {
  return guarded([&] {
    const JitState& state = state_of(self);
    CacheView view{{}, {}, {}, state.hits, state.misses, state.last_miss};
    for (const auto& entry : state.entries) {
      view.entries.push_back(entry->to_string());
      view.entry_hits.push_back(entry->hits);
      for (const Captured& item : entry->captured)
        if (item.paths.empty()) view.frozen.push_back(item.value.aval().to_string());
    }
    return py::cast(std::move(view)).release().ptr();
  });
}

PyObject* get_jaxpr(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const JitState& state = state_of(self);
    if (!state.last)
      throw ValueError("jit: `" + state.name + "` was not called yet, so there is no jaxpr",
                       "call it, or use make_jaxpr(f)(*args)");
    return jaxpr_object(state.last->jaxpr).release().ptr();
  });
}

PyObject* clear_cache(PyObject* self, PyObject*) {
  JitState& state = state_of(self);
  const auto entries = std::move(state.entries);
  const auto last = std::move(state.last);
  state.entries.clear();
  state.last = nullptr;
  Py_RETURN_NONE;
}

PyObject* explain(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    Arrays arrays;
    const auto entry = find_entry(state, to_call(values, std::size_t(count), keywords), arrays);
    return py::str(compile(entry->jaxpr)->explain()).release().ptr();
  });
}

PyGetSetDef getset[] = {
    {"cache", get_cache, nullptr,
     "The traces that there are, how often they were used, and why the last call made a new one.",
     nullptr},
    {"jaxpr", get_jaxpr, nullptr, "The jaxpr of the last call.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"clear_cache", clear_cache, METH_NOARGS, "clear_cache()\n--\n\nForgets every trace."},
    {"explain", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&explain)),
     METH_FASTCALL | METH_KEYWORDS,
     "explain(*args, **kwargs)\n--\n\nWhere each equation runs for these arguments."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(JitObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(JitObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(JitObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void add_jit(py::module_& module) {
  PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A function that is traced once per signature and then runs "
                                    "compiled. Made by plait.jit.")},
      {Py_tp_dealloc, slot(dealloc)},
      {Py_tp_traverse, slot(traverse)},
      {Py_tp_clear, slot(clear)},
      {Py_tp_repr, slot(repr)},
      {Py_tp_call, slot(PyVectorcall_Call)},
      {Py_tp_descr_get, slot(bind_method)},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {0, nullptr},
  };
  PyType_Spec spec{"plait.JitFunction", sizeof(JitObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                       Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  jit_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!jit_type) throw py::error_already_set();
  module.attr("JitFunction") = borrowed(reinterpret_cast<PyObject*>(jit_type));
  module.def("make_jit", [](py::object function, const std::string& name,
                            std::vector<std::int64_t> static_argnums, py::tuple static_argnames,
                            std::vector<std::string> parameters) {
    PyObject* object = jit_type->tp_alloc(jit_type, 0);
    if (!object) throw py::error_already_set();
    auto* self = reinterpret_cast<JitObject*>(object);
    self->vectorcall = call;
    self->state = new JitState;
    self->state->function = std::move(function);
    self->state->name = name;
    self->state->static_argnums = std::move(static_argnums);
    for (py::handle item : static_argnames)
      self->state->static_argnames.push_back(borrowed(item.ptr()));
    self->state->parameters = std::move(parameters);
    return py::reinterpret_steal<py::object>(object);
  });
  py::class_<CacheView>(module, "JitCache", "What a jitted function has kept.")
      .def_readonly("entries", &CacheView::entries)
      .def_readonly("frozen", &CacheView::frozen)
      .def_readonly("hits", &CacheView::hits)
      .def_readonly("misses", &CacheView::misses)
      .def_readonly("last_miss", &CacheView::last_miss)
      .def("__len__", [](const CacheView& view) { return view.entries.size(); })
      .def("__repr__", [](const CacheView& view) {
        std::string text = std::to_string(view.entries.size()) + " traces, " +
                           std::to_string(view.hits) + " hits, " + std::to_string(view.misses) +
                           " misses";
        for (std::size_t i = 0; i < view.entries.size(); ++i)
          text += "\n  " + view.entries[i] + ": " + std::to_string(view.entry_hits[i]) + " hits";
        for (const std::string& array : view.frozen)
          text += "\n  frozen: a captured array " + array + " that no name leads to";
        if (!view.last_miss.empty()) text += "\n  last miss: " + view.last_miss;
        return text;
      });
}

}  // namespace plait::python
