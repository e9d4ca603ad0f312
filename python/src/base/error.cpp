// Converts C++ errors to Python. Every class is a subclass of plait.Error and of the builtin class
// that a Python user would catch. The message is all four parts.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/communicator.h>
#include "bindings.h"

#include "buffer_error.h"

#include <cstring>

namespace plait::python {
namespace {

struct ErrorClasses {
  PyObject *error, *user, *shape, *value, *index, *dtype, *tree, *tracer, *missing_rule, *memory,
      *file, *host, *job, *backend, *buffer, *internal;
};
ErrorClasses classes;

PyObject* add_class(py::module_& module, const char* name, const char* doc,
                    std::initializer_list<PyObject*> bases) {
  py::tuple tuple(bases.size());
  std::size_t i = 0;
  for (PyObject* base : bases) tuple[i++] = borrowed(base);
  const std::string full = std::string("plait.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, tuple.ptr(), nullptr);
  if (!made) throw py::error_already_set();
  module.attr(name) = borrowed(made);
  return made;  // lives as long as the process
}

// Names a transform in errors while the package's Python files check its arguments.
struct Applying {
  Applying(std::string transform, std::string function)
      : transform(std::move(transform)), function(std::move(function)) {}
  const std::string transform, function;
  std::optional<TransformScope> scope;
};

// The Python exception that caused a C++ one; None if Python did not raise it.
py::object cause_of(const std::exception_ptr& cause) {
  try {
    if (cause) std::rethrow_exception(cause);
  } catch (const py::error_already_set& error) {
    if (error.trace()) PyException_SetTraceback(error.value().ptr(), error.trace().ptr());
    return error.value();
  } catch (...) {
  }
  return py::none();
}

PyObject* decoded(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), Py_ssize_t(text.size()), "replace");
}

// Adds the parts of an error as attributes. If that fails, it is raised without them.
void add_parts(PyObject* made, const Error& error) {
  auto add = [made](const char* name, PyObject* value) {
    if (!value || PyObject_SetAttrString(made, name, value) != 0) PyErr_Clear();
    Py_XDECREF(value);
  };
  add("problem", decoded(error.problem()));
  add("fix", decoded(error.fix()));
  try {
    add("source", py::cast(error.source()).release().ptr());
  } catch (const py::error_already_set&) {
  } catch (const py::cast_error&) {
  }
}

template <class E>
[[noreturn]] void raise_as(const std::string& what, const std::string& fix) {
  throw E(what, fix);
}

}  // namespace

void raise_current() noexcept {
  auto set = [](PyObject* type, const std::exception& error) {
    PyObject* text = decoded(error.what());
    PyObject* made = text ? PyObject_CallOneArg(type, text) : nullptr;
    Py_XDECREF(text);
    if (!made) return;
    if (const auto* parts = dynamic_cast<const Error*>(&error)) add_parts(made, *parts);
    PyErr_SetObject(type, made);
    Py_DECREF(made);
  };
  auto set_caused = [&](PyObject* type, const HostError& error) {
    set(type, error);
    const py::object cause = cause_of(error.cause);
    if (cause.is_none()) return;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    if (value) PyException_SetCause(value, cause.inc_ref().ptr());
    PyErr_Restore(kind, value, trace);
  };
  auto out_of_memory = [&] {
    try {
      set(classes.memory, MemoryError("out of memory",
                                      "work on smaller pieces, or drop arrays that "
                                      "are no longer needed"));
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    }
  };
  try {
    throw;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const ShapeError& error) {
    set(classes.shape, error);
  } catch (const ValueError& error) {
    set(classes.value, error);
  } catch (const IndexError& error) {
    set(classes.index, error);
  } catch (const DtypeError& error) {
    set(classes.dtype, error);
  } catch (const TreeError& error) {
    set(classes.tree, error);
  } catch (const TracerError& error) {
    set(classes.tracer, error);
  } catch (const MissingRuleError& error) {
    set(classes.missing_rule, error);
  } catch (const MemoryError& error) {
    set(classes.memory, error);
  } catch (const FileError& error) {
    set(classes.file, error);
  } catch (const HostError& error) {
    set_caused(classes.host, error);
  } catch (const JobError& error) {
    set(classes.job, error);
  } catch (const BufferError& error) {
    set(classes.buffer, error);
  } catch (const BackendError& error) {
    set(classes.backend, error);
  } catch (const InternalError& error) {
    set(classes.internal, error);
  } catch (const Error& error) {
    set(classes.error, error);
  } catch (const std::bad_alloc&) {
    out_of_memory();
  } catch (const std::length_error&) {
    out_of_memory();
  } catch (const py::cast_error& error) {
    set(classes.dtype, DtypeError(std::string("an argument has the wrong type: ") + error.what(),
                                  "see the documentation of the function"));
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(classes.internal, InternalError(error.what()).what());
  } catch (...) {
    PyErr_SetString(classes.internal, InternalError("an unknown C++ exception").what());
  }
}

std::shared_ptr<void> share(py::object object) {
  return std::shared_ptr<void>(object.release().ptr(), [](void* pointer) {
    if (!pointer || !Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(static_cast<PyObject*>(pointer));
    PyGILState_Release(state);
  });
}

std::string utf8_of(PyObject* text) {
  const py::object bytes = owned(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace"));
  return {PyBytes_AS_STRING(bytes.ptr()), std::size_t(PyBytes_GET_SIZE(bytes.ptr()))};
}

void forbid_construction(py::handle type) {
  auto* const made = reinterpret_cast<PyTypeObject*>(type.ptr());
  made->tp_new = [](PyTypeObject* wanted, PyObject*, PyObject*) {
    return guarded([&]() -> PyObject* {
      throw DtypeError(std::string(wanted->tp_name) + " has no constructor",
                       "plait's functions make its values");
    });
  };
  PyType_Modified(made);
}

std::string type_name_of(PyObject* object) {
  const py::handle type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  std::string module;
  if (py::hasattr(type, "__module__")) module = utf8_of(py::str(type.attr("__module__")).ptr());
  const std::string name = utf8_of(py::str(type.attr("__qualname__")).ptr());
  return module.empty() || module == "builtins" ? name : module + "." + name;
}

std::string text_of(PyObject* object) {
  constexpr std::size_t longest = 60;
  PyObject* repr = PyObject_Repr(object);
  if (!repr) {
    PyErr_Clear();
    return "a " + type_name_of(object);
  }
  std::string text = utf8_of(owned(repr).ptr());
  if (const std::size_t newline = text.find('\n'); newline != std::string::npos)
    text = text.substr(0, newline) + "...";
  if (text.size() <= longest) return text;
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // UTF-8
  return text.substr(0, end) + "...";
}

void add_errors(py::module_& module) {
  PyObject* const base = classes.error =
      add_class(module, "Error", "What every error of plait is.", {PyExc_Exception});
  PyObject* const user = classes.user =
      add_class(module, "UserError", "An error that the calling program can mend.", {base});
  classes.shape = add_class(module, "ShapeError", "Shapes, sizes or axes do not fit.",
                            {user, PyExc_ValueError, PyExc_TypeError});
  classes.value =
      add_class(module, "ValueError", "An argument has a wrong value.", {user, PyExc_ValueError});
  classes.index = add_class(module, "IndexError", "An index or axis is out of range.",
                            {user, PyExc_IndexError});
  classes.dtype = add_class(module, "DtypeError", "A dtype does not fit, or a value is no array.",
                            {user, PyExc_TypeError});
  classes.tree = add_class(module, "TreeError", "Structures of nested containers do not fit.",
                           {user, PyExc_ValueError, PyExc_TypeError});
  classes.tracer = add_class(module, "TracerError",
                             "The value of a traced array is needed, or one escaped its trace.",
                             {user, PyExc_TypeError});
  classes.missing_rule =
      add_class(module, "MissingRuleError", "A primitive has no rule for a transform.",
                {user, PyExc_NotImplementedError});
  classes.memory =
      add_class(module, "MemoryError", "Memory cannot be had.", {user, PyExc_MemoryError});
  classes.file = add_class(module, "FileError", "A file cannot be opened, read or written.",
                           {user, PyExc_OSError});
  classes.host = add_class(module, "HostError",
                           "A function that a program calls by host_call raised; what it raised is "
                           "the cause.",
                           {user, PyExc_RuntimeError});
  classes.job = add_class(module, "JobError",
                          "Ranks of a job disagree on what they run, or one of them is gone.",
                          {user, PyExc_RuntimeError});
  PyObject* const backend = classes.backend =
      add_class(module, "BackendError", "A library that plait runs on is missing or fails.",
                {base, PyExc_RuntimeError});
  classes.buffer = add_class(module, "BufferError",
                             "Memory cannot be exchanged with another library as it was asked for.",
                             {backend, PyExc_BufferError});
  classes.internal =
      add_class(module, "InternalError", "A bug in plait.", {base, PyExc_RuntimeError});
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const py::cast_error&) {
      raise_current();
    } catch (const py::builtin_exception&) {
      throw;  // pybind11's own
    } catch (const py::error_already_set&) {
      throw;
    } catch (const std::exception&) {
      raise_current();
    }
  });
  py::class_<Applying>(module, "Applying",
                       "While it is entered, errors say that a transform is applied to a function.")
      .def(py::init<std::string, std::string>())
      .def("__enter__", [](Applying& self) { self.scope.emplace(self.transform, self.function); })
      .def("__exit__", [](Applying& self, const py::args&) { self.scope.reset(); });
  // The package's Python files raise the same errors.
  module.def("fail", [](const std::string& kind, const std::string& what, const std::string& fix) {
    if (kind == "ShapeError") raise_as<ShapeError>(what, fix);
    if (kind == "ValueError") raise_as<ValueError>(what, fix);
    if (kind == "IndexError") raise_as<IndexError>(what, fix);
    if (kind == "DtypeError") raise_as<DtypeError>(what, fix);
    if (kind == "TreeError") raise_as<TreeError>(what, fix);
    if (kind == "TracerError") raise_as<TracerError>(what, fix);
    if (kind == "FileError") raise_as<FileError>(what, fix);
    if (kind == "MissingRuleError") raise_as<MissingRuleError>(what, fix);
    throw InternalError("an error of the unknown kind " + kind + ": " + what);
  });
}

}  // namespace plait::python
