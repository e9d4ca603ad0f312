// JitFunction: the callable that jit returns, a heap type called by vectorcall. jit_call.cpp says
// what a call does.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

#include <plait/trace/devices.h>
#include <plait/trace/wait.h>
#include <plait/transforms/transforms.h>

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
thread_local bool is_disabled = false;  // jitted functions run as plain Python

std::string counted(std::int64_t count, const char* noun, const char* plural) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : plural);
}

JitState& state_of(PyObject* object) { return *reinterpret_cast<JitObject*>(object)->state; }

JitCall to_call(PyObject* const* values, std::size_t flags, PyObject* keywords) {
  JitCall call;
  call.num_positional = PyVectorcall_NARGS(flags);
  const std::size_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  call.values.reserve(call.num_positional + named);
  for (std::size_t i = 0; i < call.num_positional + named; ++i) call.values.push_back(values[i]);
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

// The function itself, with arguments on jit's device.
PyObject* call_plainly(const JitState& state, PyObject* const* values, std::size_t flags,
                       PyObject* keywords) {
  if (!state.device) return PyObject_Vectorcall(state.function.ptr(), values, flags, keywords);
  const DeviceScope scope(*state.device);
  const py::object put = py::module_::import("plait._devices").attr("put_arrays");
  const JitCall given = to_call(values, flags, keywords);
  py::list positional;
  py::dict named;
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    py::object value = borrowed(given.values[i]);
    if (!state.is_static(given, i)) value = put(value, state.device->to_string());
    if (i < given.num_positional)
      positional.append(value);
    else
      named[borrowed(given.names[i - given.num_positional])] = value;
  }
  return PyObject_Call(state.function.ptr(), py::tuple(positional).ptr(), named.ptr());
}

PyObject* call(PyObject* self, PyObject* const* values, std::size_t flags, PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    if (!state.function)
      throw InternalError("a jitted function was called after the garbage collector took it apart");
    if (is_disabled) return call_plainly(state, values, flags, keywords);
    JitInputs inputs;
    const std::shared_ptr<JitEntry> entry =
        find_entry(state, to_call(values, flags, keywords), inputs);
    return run_entry(state, *entry, inputs);
  });
}

// --- The type ------------------------------------------------------------------------------------

int traverse(PyObject* object, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dict);
  if (!self->state) return 0;
  Py_VISIT(self->state->function.ptr());
  for (const auto& entry : self->state->traces.entries())
    if (int result = entry->visit(visit, arg)) return result;
  return 0;
}

int clear(PyObject* object) {
  auto* self = reinterpret_cast<JitObject*>(object);
  Py_CLEAR(self->dict);
  // What an entry releases may call back into this object.
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
  const JitState& state = state_of(self);
  return PyUnicode_FromFormat("<jitted %s, %s>", state.name.c_str(),
                              counted(state.traces.entries().size(), "trace", "s").c_str());
}

// The contents of f.cache.
struct CacheView {
  std::vector<std::string> entries;
  std::vector<std::int64_t> entry_hits;
  std::vector<std::string> captured, frozen;
  std::int64_t hits, misses;
  std::string last_miss;
};

bool contains(const CacheView& view, const std::string& text) {
  return std::find(view.captured.begin(), view.captured.end(), text) != view.captured.end();
}

PyObject* get_cache(PyObject* self, void*) {
  return guarded([&] {
    const JitState& state = state_of(self);
    CacheView view{{}, {}, {}, {}, state.hits, state.misses, state.last_miss};
    for (const auto& entry : state.traces.entries()) {
      view.entries.push_back(entry->to_string());
      view.entry_hits.push_back(entry->hits);
      for (const Captured& item : entry->captures.arrays) {
        const std::string type = item.aval.to_string();
        if (item.places.empty())
          view.frozen.push_back(type);
        else if (const std::string text = item.texts[0] + ": " + type; !contains(view, text))
          view.captured.push_back(text);
      }
    }
    return py::cast(std::move(view)).release().ptr();
  });
}

PyObject* get_jaxpr(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const JitState& state = state_of(self);
    const std::shared_ptr<JitEntry> last = state.traces.last();
    if (!last)
      throw ValueError("jit: `" + state.name + "` was not called yet, so there is no jaxpr",
                       "call it, or use make_jaxpr(f)(*args)");
    return jaxpr_object(last->jaxpr).release().ptr();
  });
}

// f.code: plait.code of the last call.
PyObject* get_code(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    return py::module_::import("plait").attr("code")(borrowed(self)).release().ptr();
  });
}

PyObject* clear_cache(PyObject* self, PyObject*) {
  state_of(self).traces.clear();
  Py_RETURN_NONE;
}

PyObject* explain(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    JitInputs inputs;
    const auto entry = find_entry(state, to_call(values, std::size_t(count), keywords), inputs);
    const auto instance =
        find_instance(state, *entry, inputs.arrays, settle(state, *entry, inputs.arrays));
    const std::string sizes = instance->sized ? entry->sized->describe(*instance->sized) : "";
    return py::str(sizes + compile_for(state, *entry, *instance)->explain()).release().ptr();
  });
}

PyObject* compile_for_call(PyObject* self, PyObject* const* values, Py_ssize_t count,
                           PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    JitState& state = state_of(self);
    JitInputs inputs;
    const auto entry = find_entry(state, to_call(values, std::size_t(count), keywords), inputs);
    const auto instance =
        find_instance(state, *entry, inputs.arrays, settle(state, *entry, inputs.arrays));
    without_gil([&] {
      const Waiting waiting;
      return compile_for(state, *entry, *instance);
    });
    Py_RETURN_NONE;
  });
}

PyObject* jaxpr_for(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    JitInputs inputs;
    const auto entry = find_entry(state, to_call(values, std::size_t(count), keywords), inputs);
    return jaxpr_object(
               find_instance(state, *entry, inputs.arrays, settle(state, *entry, inputs.arrays))
                   ->jaxpr)
        .release()
        .ptr();
  });
}

// Bytes of arguments with captured arrays, of results, of the arena, and at the peak.
PyObject* memory_for(PyObject* self, PyObject* const* values, Py_ssize_t count,
                     PyObject* keywords) {
  return guarded([&] {
    JitState& state = state_of(self);
    JitInputs inputs;
    const auto entry = find_entry(state, to_call(values, std::size_t(count), keywords), inputs);
    const auto instance =
        find_instance(state, *entry, inputs.arrays, settle(state, *entry, inputs.arrays));
    const auto executable = compile_for(state, *entry, *instance);
    auto bytes_of = [](std::span<const Aval> avals) {
      std::int64_t bytes = 0;
      for (const Aval& aval : avals)
        bytes += num_elements(aval.shape.to_sizes()) * size_of(aval.dtype);
      return bytes;
    };
    return py::make_tuple(bytes_of(avals_of(inputs.arrays)), bytes_of(executable->outputs()),
                          executable->arena_bytes(), executable->peak_bytes())
        .release()
        .ptr();
  });
}

// Calls the package's _stages.py for a call that is not run.
template <const char* name>
PyObject* stage(PyObject* self, PyObject* values, PyObject* keywords) {
  return guarded([&] {
    const py::object function = py::module_::import("plait._stages").attr(name);
    const py::tuple all =
        py::make_tuple(borrowed(self)) + py::reinterpret_borrow<py::tuple>(values);
    return owned(PyObject_Call(function.ptr(), all.ptr(), keywords)).release().ptr();
  });
}
constexpr char lower_name[] = "lower", trace_name[] = "trace";

// Pickled and copied by name, as functions are.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }
PyObject* same(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyGetSetDef getset[] = {
    {"cache", get_cache, nullptr,
     "The traces that there are, how often they were used, and why the last call made a new one.",
     nullptr},
    {"jaxpr", get_jaxpr, nullptr, "The jaxpr of the last call.", nullptr},
    {"code", get_code, nullptr, "The program of the last call as Python text; see plait.code.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"clear_cache", clear_cache, METH_NOARGS, "clear_cache()\n--\n\nForgets every trace."},
    {"explain", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&explain)),
     METH_FASTCALL | METH_KEYWORDS,
     "explain(*args, **kwargs)\n--\n\nWhere each equation runs for these arguments."},
    {"compile_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&compile_for_call)),
     METH_FASTCALL | METH_KEYWORDS,
     "compile_for(*args, **kwargs)\n--\n\nCompiles for these arguments now, generated loops too, "
     "and does not run: a later call finds the program at its fastest."},
    {"jaxpr_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&jaxpr_for)),
     METH_FASTCALL | METH_KEYWORDS,
     "jaxpr_for(*args, **kwargs)\n--\n\nThe jaxpr for these arguments; its last inputs are the "
     "arrays that the function captured."},
    {"memory_for", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&memory_for)),
     METH_FASTCALL | METH_KEYWORDS,
     "memory_for(*args, **kwargs)\n--\n\nBytes of the program's inputs, of its results, of its "
     "arena, and the most beside the inputs at any time."},
    {"lower", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&stage<lower_name>)),
     METH_VARARGS | METH_KEYWORDS,
     "lower(*args, **kwargs)\n--\n\nThe program for these arguments, or for their shapes and "
     "dtypes: .as_text(), .cost_analysis() and .compile()."},
    {"trace", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&stage<trace_name>)),
     METH_VARARGS | METH_KEYWORDS,
     "trace(*args, **kwargs)\n--\n\nThe jaxpr for these arguments, or for their shapes and "
     "dtypes: .jaxpr, .out_info and .lower()."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__copy__", same, METH_NOARGS, nullptr},
    {"__deepcopy__", same, METH_O, nullptr},
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
                            std::vector<std::int64_t> donate_argnums, py::tuple donate_argnames,
                            bool wait, py::object device, py::object specs, const py::dict& options,
                            std::vector<std::string> parameters) {
    std::optional<Device> on;
    if (!device.is_none()) on = Device::named(utf8_of(py::str(device).ptr()));
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
    self->state->donate_argnums = std::move(donate_argnums);
    for (py::handle item : donate_argnames)
      self->state->donate_argnames.push_back(borrowed(item.ptr()));
    self->state->waits = wait;
    self->state->device = on;
    if (!specs.is_none()) self->state->specs = std::move(specs);
    self->state->options = {options["constraints"].cast<std::vector<std::string>>(),
                            options["buckets"].cast<Buckets>(),
                            options["bound"].cast<std::map<std::string, std::int64_t>>(),
                            options["executables"].cast<std::size_t>()};
    self->state->parameters = std::move(parameters);
    return py::reinterpret_steal<py::object>(object);
  });
  module.def("set_jit_disabled",
             [](bool disabled) { return std::exchange(is_disabled, disabled); });
  module.def("is_jit_disabled", [] { return is_disabled; });
  py::class_<CacheView>(module, "JitCache", "What a jitted function has kept.")
      .def_readonly("entries", &CacheView::entries)
      .def_readonly("captured", &CacheView::captured)
      .def_readonly("frozen", &CacheView::frozen)
      .def_readonly("hits", &CacheView::hits)
      .def_readonly("misses", &CacheView::misses)
      .def_readonly("last_miss", &CacheView::last_miss)
      .def("__len__", [](const CacheView& view) { return view.entries.size(); })
      .def("__repr__", [](const CacheView& view) {
        std::string text = counted(std::int64_t(view.entries.size()), "trace", "s") + ", " +
                           counted(view.hits, "hit", "s") + ", " +
                           counted(view.misses, "miss", "es");
        for (std::size_t i = 0; i < view.entries.size(); ++i)
          text += "\n  " + view.entries[i] + ": " + counted(view.entry_hits[i], "hit", "s");
        for (const std::string& array : view.captured) text += "\n  read at each call: " + array;
        for (const std::string& array : view.frozen)
          text += "\n  frozen: a captured array " + array + " that no name leads to";
        if (!view.last_miss.empty()) text += "\n  last miss: " + view.last_miss;
        return text;
      });
}

}  // namespace plait::python
