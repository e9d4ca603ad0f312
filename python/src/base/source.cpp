// Lines of Python user code: the innermost frame that is not the plait package's own.
//
// The line is looked up for every recorded equation and every error: a walk over frames and one
// table look-up by (code, instruction).
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/base/source.h>

#include <optional>
#include <unordered_map>

namespace plait::python {
namespace {

// plait's own threads have no Python thread state. After the interpreter has ended,
// PyGILState_Check is true on every thread.
bool holds_gil() { return PyGILState_GetThisThreadState() && PyGILState_Check(); }

std::vector<std::string> package_folders;  // with a trailing slash; links and their targets

struct CodeInfo {
  bool is_ours = false;
  std::unordered_map<int, Source> lines;
  std::unordered_map<int, Source> places;  // by instruction; finding its line is slow
};

// Code objects in the table are kept alive, so that their addresses stay unique.
std::unordered_map<PyObject*, CodeInfo>& code_table() {
  static auto* table = new std::unordered_map<PyObject*, CodeInfo>;
  return *table;
}

CodeInfo& info_of_code(PyCodeObject* code) {
  constexpr std::size_t limit = 8192;
  auto& table = code_table();
  PyObject* const key = reinterpret_cast<PyObject*>(code);
  if (auto found = table.find(key); found != table.end()) return found->second;
  if (table.size() >= limit) {
    std::vector<PyObject*> old;
    for (auto& [object, info] : table) old.push_back(object);
    table.clear();
    for (PyObject* object : old) Py_DECREF(object);
  }
  Py_INCREF(key);
  CodeInfo& info = table[key];
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  for (const std::string& folder : package_folders)
    info.is_ours |= file && std::string_view(file).starts_with(folder);
  return info;
}

Source current_line() {
  if (!holds_gil()) return {};
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  Source result;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    CodeInfo& info = info_of_code(code);
    if (!info.is_ours) {
      Source& place = info.places[PyFrame_GetLasti(frame)];
      if (!place) {
        const int line = PyFrame_GetLineNumber(frame);
        Source& source = info.lines[line];
        const char* file = PyUnicode_AsUTF8(code->co_filename);
        const char* function = PyUnicode_AsUTF8(code->co_name);
        const bool named = function && *function != '<';
        if (file && !source)
          source = Source(file, line, named ? function : "");
        else if (!file)
          PyErr_Clear();
        place = source;
      }
      result = place;
      Py_DECREF(code);
      Py_DECREF(frame);
      return result;
    }
    Py_DECREF(code);
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return result;
}

// An error may be made while a Python exception is set, which looking up the line must not disturb.
Source provide() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  if (!holds_gil()) return {};
  PyErr_Fetch(&type, &value, &traceback);
  const Source source = current_line();
  PyErr_Restore(type, value, traceback);
  return source;
}

// A scope object of C++ as a Python context manager.
template <class Scope, class Value>
struct Entered {
  explicit Entered(Value value) : value(std::move(value)) {}
  void enter() { scope.emplace(value); }
  void leave(const py::args&) { scope.reset(); }
  const Value value;
  std::optional<Scope> scope;
};
using AtLine = Entered<SourceScope, Source>;

}  // namespace

void add_source(py::module_& module) {
  module.def("set_package_folders",
             [](std::vector<std::string> folders) { package_folders = std::move(folders); });
  module.def("current_line", [] { return Source::current().to_string(); });
  py::class_<Source>(
      module, "Source",
      "Where an equation was written, and what transforms made of it since. False where "
      "that is not known.")
      .def_property_readonly("file", [](const Source& s) { return s ? s->file : ""; })
      .def_property_readonly("line", [](const Source& s) { return s ? s->line : 0; })
      .def_property_readonly("function", [](const Source& s) { return s ? s->function : ""; })
      .def_property_readonly(
          "scope", [](const Source& s) { return s ? s->scope : ""; },
          "The named scopes it is in, the outermost first: 'encoder/attention'.")
      .def_property_readonly(
          "transforms", [](const Source& s) { return s ? s->transforms : ""; },
          "Those that rewrote it, the last one first: 'transpose(jvp)'.")
      .def_property_readonly("text", &Source::text, "What the line says.")
      .def("under", &Source::under, py::arg("transform"),
           "The same line, rewritten by a transform of this name.")
      .def("__bool__", [](const Source& source) { return bool(source); })
      .def("__eq__",
           [](const Source& a, py::object b) {
             return py::isinstance<Source>(b) && a == b.cast<Source>();
           })
      .def("__hash__", [](const Source& source) { return py::hash(py::str(source.to_string())); })
      .def("__str__", &Source::to_string)
      .def("__repr__", &Source::to_string);
  py::class_<AtLine>(module, "AtLine",
                     "While it is entered, errors name this line of the user's file.")
      .def(py::init([](const std::string& file, int line, const std::string& function) {
        return std::make_unique<AtLine>(Source(file, line, function));
      }))
      .def(py::init<Source>())
      .def("__enter__", &AtLine::enter)
      .def("__exit__", &AtLine::leave);
  py::class_<Entered<NamedScope, std::string>>(module, "NamedScope",
                                               "While it is entered, equations are in this scope.")
      .def(py::init<std::string>())
      .def("__enter__", &Entered<NamedScope, std::string>::enter)
      .def("__exit__", &Entered<NamedScope, std::string>::leave);
  using Defaults = Entered<DefaultDTypesScope, DefaultDTypes>;
  py::class_<Defaults>(module, "DefaultDTypes",
                       "While it is entered, these are the default dtypes of this thread.")
      .def(py::init([](py::object floating, py::object integer) {
             DefaultDTypes dtypes = DefaultDTypes::current();
             if (!floating.is_none())
               dtypes.floating = to_dtype(floating.ptr(), {"default_dtypes"});
             if (!integer.is_none()) dtypes.integer = to_dtype(integer.ptr(), {"default_dtypes"});
             return std::make_unique<Defaults>(dtypes);
           }),
           py::arg("float"), py::arg("int"))
      .def("__enter__", &Defaults::enter)
      .def("__exit__", &Defaults::leave);
  module.def("default_dtypes", [] {
    const DefaultDTypes now = DefaultDTypes::current();
    return py::make_tuple(dtype_object(now.floating), dtype_object(now.integer));
  });
  Source::set_provider(provide);
}

}  // namespace plait::python
