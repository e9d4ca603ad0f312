// Functions of the catalogue as Python callables: one builtin object per function, called by
// vectorcall.
//
// A function that is also a method of Array has another object, of a second type, which binds its
// first argument as Python's own functions do.
// SPDX-License-Identifier: Apache-2.0
#include "array/views.h"

#include <plait/primitives/primitives.h>

#include <structmember.h>

#include <map>

namespace plait::python {
namespace {

struct BuiltinObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const FunctionInfo* info;
  std::vector<PyObject*>* names;  // of parameters, interned
  int num_positional;             // parameters that may be given by position
  int variadic;                   // index of the *parameter, or -1
  bool collects;                  // as a method: x.reshape(2, 3) is x.reshape((2, 3))
  bool second_first;              // as a method: x.compress(c) is compress(c, x)
  const char* of_functions;       // where(p, f, g, *xs) and pad(a, n, f): Python's "module.name"
  Gives gives;
  PyObject* result;  // the named tuple type of several results, or null
  PyObject* dict;
};
PyTypeObject *builtin_type, *method_type;

bool is_builtin(PyObject* object) {
  return Py_TYPE(object) == builtin_type || Py_TYPE(object) == method_type;
}

bool is_function(PyObject* object) {
  return PyCallable_Check(object) && Py_TYPE(object) != array_type;
}

[[noreturn]] void throw_call(const FunctionInfo& info, const std::string& what) {
  throw DtypeError(info.name + ": " + what, "call it as " + info.signature);
}

int find_parameter(const BuiltinObject& self, PyObject* name) {
  const auto& names = *self.names;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return int(i);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (PyUnicode_Compare(names[i], name) == 0) return int(i);
  return -1;
}

// "; did you mean 'axis'?"
template <class Iterator>
std::string suggestion(PyObject* name, Iterator begin, Iterator end) {
  py::list names;
  for (; begin != end; ++begin) names.append(borrowed(*begin));
  return py::str(py::module_::import("plait._names").attr("suggestion")(borrowed(name), names));
}

PyObject* call(PyObject* callable, PyObject* const* values, std::size_t flags, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const auto& self = *reinterpret_cast<BuiltinObject*>(callable);
    const FunctionInfo& info = *self.info;
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const std::size_t size = info.parameters.size();
    Source::forget_line();
    if (self.of_functions && count > 2 && (is_function(values[1]) || is_function(values[2]))) {
      const std::string path = self.of_functions;
      const std::size_t dot = path.rfind('.');
      const py::object function =
          py::module_::import(path.substr(0, dot).c_str()).attr(path.substr(dot + 1).c_str());
      return PyObject_Vectorcall(function.ptr(), values, std::size_t(count), keywords);
    }
    std::vector<Argument> arguments(size);
    std::uint64_t given = 0;
    Py_ssize_t next = 0;
    py::object first;  // the first argument, if the result is views of it
    auto keep_first = [&](Py_ssize_t index, PyObject* value) {
      if (index == 0 && self.gives != Gives::values) first = borrowed(value);
    };
    if (self.collects && count > 2) {
      keep_first(0, values[0]);
      arguments[0] = to_argument(values[0], info, 0);
      py::tuple rest(count - 1);
      for (Py_ssize_t i = 1; i < count; ++i) rest[i - 1] = borrowed(values[i]);
      arguments[1] = to_argument(rest.ptr(), info, 1);
      given = 3;
      next = count;
    }
    const Py_ssize_t limit = self.variadic >= 0 ? self.variadic : self.num_positional;
    for (; next < count && next < limit; ++next) {
      const Py_ssize_t index = self.second_first && next < 2 ? 1 - next : next;
      keep_first(index, values[next]);
      arguments[index] = to_argument(values[next], info, index);
      given |= std::uint64_t(1) << index;
    }
    if (self.variadic >= 0 && !(given >> self.variadic & 1)) {
      py::tuple rest(std::max<Py_ssize_t>(0, count - next));
      for (Py_ssize_t i = next; i < count; ++i) rest[i - next] = borrowed(values[i]);
      keep_first(self.variadic, rest.ptr());
      arguments[self.variadic] = to_argument(rest.ptr(), info, self.variadic);
      given |= std::uint64_t(1) << self.variadic;
    } else if (next < count) {
      throw_call(info, "takes " + std::to_string(limit) + " positional arguments, and " +
                           std::to_string(count) + " were given");
    }
    if (keywords) {
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i) {
        PyObject* name = PyTuple_GET_ITEM(keywords, i);
        const int index = find_parameter(self, name);
        if (index < 0)
          throw_call(info, "there is no argument '" + utf8_of(name) + "'" +
                               suggestion(name, self.names->begin(), self.names->end()));
        if (given >> index & 1)
          throw_call(info, "argument '" + info.parameters[index].name + "' was given twice");
        keep_first(index, values[count + i]);
        arguments[index] = to_argument(values[count + i], info, index);
        given |= std::uint64_t(1) << index;
      }
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (given >> i & 1) continue;
      if (!info.parameters[i].fallback)
        throw_call(info, "argument '" + info.parameters[i].name + "' is missing");
      arguments[i] = *info.parameters[i].fallback;
    }
    const Argument result = info.call(arguments);
    if (first)
      return give_views(info, self.gives, first.ptr(), std::move(arguments), result)
          .release()
          .ptr();
    if (const Array* array = std::get_if<Array>(&result.value)) return wrap(*array);
    const py::object plain = from_argument(result);
    if (self.result && PyTuple_Check(plain.ptr()))
      return borrowed(self.result).attr("_make")(plain).release().ptr();
    return py::object(plain).release().ptr();
  });
}

PyObject* make(const FunctionInfo& info, PyTypeObject* type, const std::string& name) {
  BuiltinObject* self = PyObject_GC_New(BuiltinObject, type);
  if (!self) throw py::error_already_set();
  self->vectorcall = call;
  self->info = &info;
  self->names = new std::vector<PyObject*>;
  self->num_positional = 0;
  self->variadic = -1;
  self->collects = type == method_type && (info.name == "reshape" || info.name == "transpose");
  self->second_first = type == method_type && info.name == "compress";
  self->of_functions = info.module != "numpy" ? nullptr
                       : info.name == "where" ? "plait._where.where_functions"
                       : info.name == "pad"   ? "plait.numpy._along_axes.pad_by_function"
                                              : nullptr;
  self->gives = name == "flatten" ? Gives::values : given_by(info);  // the method flatten copies
  self->result = self->dict = nullptr;
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter& parameter = info.parameters[i];
    self->names->push_back(PyUnicode_InternFromString(parameter.name.c_str()));
    if (parameter.variadic)
      self->variadic = int(i);
    else if (!parameter.keyword_only)
      self->num_positional = int(i) + 1;
  }
  PyObject_GC_Track(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<BuiltinObject*>(object)->dict);
  Py_VISIT(reinterpret_cast<BuiltinObject*>(object)->result);
  Py_VISIT(Py_TYPE(object));
  return 0;
}
int clear(PyObject* object) {
  Py_CLEAR(reinterpret_cast<BuiltinObject*>(object)->dict);
  Py_CLEAR(reinterpret_cast<BuiltinObject*>(object)->result);
  return 0;
}
void dealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  auto* self = reinterpret_cast<BuiltinObject*>(object);
  clear(object);
  for (PyObject* name : *self->names) Py_DECREF(name);
  delete self->names;
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

const FunctionInfo& info_of(PyObject* self) {
  return *reinterpret_cast<BuiltinObject*>(self)->info;
}

PyObject* bind_method(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<function plait.%s.%s>", info_of(self).module.c_str(),
                              info_of(self).name.c_str());
}
PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(info_of(self).name.c_str());
}
PyObject* get_module(PyObject* self, void*) {
  return PyUnicode_FromFormat("plait.%s", info_of(self).module.c_str());
}
// What holds for every function of a module.
const char* note_of(const std::string& module) {
  if (module.starts_with("numpy") || module.starts_with("scipy"))
    return "Arrays may be NumPy arrays, numbers or lists of numbers. Several of them are promoted "
           "to "
           "one dtype, and their shapes broadcast; DtypeError or ShapeError where they cannot be.";
  if (module == "lax")
    return "Operands have one dtype and one shape, or are scalars; numbers take the dtype of the "
           "other operand. DtypeError or ShapeError otherwise.";
  if (module.starts_with("random"))
    return "A key is uint32[2]; equal keys give equal numbers. Threefry, bit for bit as in JAX.";
  if (module == "optim")
    return "Trees have one structure, or TreeError; leaves that are not floats stay as they are.";
  return "";
}

// A function's documentation: its signature, its own text, its parameters.
std::string page_of(const FunctionInfo& info) {
  std::string page = info.signature + "\n\n" + info.doc + "\n\nParameters:\n";
  for (const Parameter& parameter : info.parameters)
    page += "  " + parameter.name + ": " +
            (parameter.accepted ? "accepted for programs written for NumPy or JAX; says nothing"
                                : parameter.type) +
            "\n";
  page += "Gives: " + info.result_type + "\n";
  const std::string note = note_of(info.module);
  return note.empty() ? page : page + "\n" + note + "\n";
}

PyObject* get_doc(PyObject* self, void*) {
  return PyUnicode_FromString(page_of(info_of(self)).c_str());
}
PyObject* get_text_signature(PyObject* self, void*) {
  const std::string& signature = info_of(self).signature;
  return PyUnicode_FromString(signature.substr(signature.find('(')).c_str());
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] {
    return py::module_::import("plait._signature")
        .attr("signature_of")(borrowed(self))
        .release()
        .ptr();
  });
}
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const py::object find = py::module_::import("plait._plait").attr("find_function");
    return py::make_tuple(find, py::make_tuple(info_of(self).module, info_of(self).name))
        .release()
        .ptr();
  });
}

PyGetSetDef getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_name, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", get_text_signature, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BuiltinObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(BuiltinObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

PyTypeObject* make_type(const char* name, bool binds) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, slot(dealloc)},
      {Py_tp_traverse, slot(traverse)},
      {Py_tp_clear, slot(clear)},
      {Py_tp_repr, slot(repr)},
      {Py_tp_call, slot(PyVectorcall_Call)},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
  };
  if (binds) slots.push_back({Py_tp_descr_get, slot(bind_method)});
  slots.push_back({0, nullptr});
  unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                   Py_TPFLAGS_DISALLOW_INSTANTIATION;
  if (binds) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Spec spec{name, sizeof(BuiltinObject), 0, flags, slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

py::object builtin_of(const FunctionInfo& info) {
  static auto* made = new std::map<const FunctionInfo*, PyObject*>;
  PyObject*& object = (*made)[&info];
  if (!object) object = make(info, builtin_type, info.name);
  return borrowed(object);
}

}  // namespace

const FunctionInfo* function_of(PyObject* object) {
  return is_builtin(object) ? &info_of(object) : nullptr;
}

void add_builtin(py::module_& module) {
  builtin_type = make_type("plait.builtin", false);
  method_type = make_type("plait.builtin_method", true);
  module.attr("builtin") = borrowed(reinterpret_cast<PyObject*>(builtin_type));
  module.def("catalogue", [](const std::string& name) {
    py::dict result;
    for (const FunctionInfo* info : all_functions())
      if (info->module == name) result[py::str(info->name)] = builtin_of(*info);
    return result;
  });
  module.def("find_function", [](const std::string& owner, const std::string& name) -> py::object {
    const FunctionInfo* info = find_function(owner, name);
    if (!info)
      throw ValueError("there is no function " + owner + "." + name,
                       "see dir(plait." + owner + ")");
    return builtin_of(*info);
  });
  module.def("name_results", [](py::object function, py::object result) {
    if (!is_builtin(function.ptr())) throw InternalError("name_results: no function of plait");
    auto* self = reinterpret_cast<BuiltinObject*>(function.ptr());
    Py_XSETREF(self->result, Py_NewRef(result.ptr()));
  });
  module.def("conv_dimension_numbers",
             [](const std::string& lhs, const std::string& rhs, const std::string& out) {
               const lax::ConvDimensions numbers = lax::conv_dimension_numbers(lhs, rhs, out);
               return py::make_tuple(py::tuple(py::cast(numbers.lhs_spec)),
                                     py::tuple(py::cast(numbers.rhs_spec)),
                                     py::tuple(py::cast(numbers.out_spec)));
             });
  module.def("catalogue_info", [] {
    py::list result;
    for (const FunctionInfo* info : all_functions()) {
      py::list parameters;
      for (const Parameter& parameter : info->parameters)
        parameters.append(py::make_tuple(parameter.name, parameter.type, parameter.keyword_only,
                                         parameter.variadic, parameter.fallback_text,
                                         parameter.accepted));
      result.append(py::make_tuple(info->module, info->name, info->signature, info->doc,
                                   info->result_type, parameters));
    }
    return result;
  });
  // Adds the functions of numpy that are also methods of Array to its type.
  module.def("add_methods", [](const std::map<std::string, std::string>& methods) {
    for (const auto& [method, function] : methods) {
      const FunctionInfo* info = find_function("numpy", function);
      if (!info) continue;
      const py::object object = py::reinterpret_steal<py::object>(make(*info, method_type, method));
      if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(array_type), method.c_str(),
                                 object.ptr()) < 0)
        throw py::error_already_set();
    }
  });
}

}  // namespace plait::python
