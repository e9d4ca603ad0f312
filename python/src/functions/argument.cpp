// Python values as arguments of the catalogue's functions, and results back.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

namespace plait::python {
namespace {

// Whether a function takes its arrays as they are, or, if there are more than two, as two tuples.
enum class Takes { arrays, halves };

// A Python function of arrays, which returns one array or a sequence of them, as a C++ function.
Function to_function_of_arrays(py::object callable, std::string what, Takes takes) {
  return [shared = share(std::move(callable)), what = std::move(what),
          takes](std::span<const Array> x) {
    py::gil_scoped_acquire gil;
    const py::object function = borrowed(static_cast<PyObject*>(shared.get()));
    const std::size_t half = x.size() / 2;
    const py::object result = takes == Takes::halves && half > 1
                                  ? function(py::tuple(from_arrays(x.first(half))),
                                             py::tuple(from_arrays(x.subspan(half))))
                                  : function(*py::tuple(from_arrays(x)));
    if (!PyTuple_Check(result.ptr()) && !PyList_Check(result.ptr()))
      return Arrays{to_array(result.ptr(), {what})};
    Arrays outputs;
    for (py::handle item : result) outputs.push_back(to_array(item.ptr(), {what}));
    return outputs;
  };
}

// A C++ function of arrays as a Python function.
py::object from_function_of_arrays(const Function& function) {
  return py::cpp_function([function](const py::args& arguments) -> py::object {
    Arrays inputs;
    for (py::handle argument : arguments) inputs.push_back(to_array(argument.ptr()));
    const Arrays outputs = function(inputs);
    if (outputs.size() == 1) return to_python(outputs[0]);
    return py::tuple(from_arrays(outputs));
  });
}

Argument any_argument(PyObject* object, const FunctionInfo& info, std::size_t index,
                      int depth = 0) {
  if (object == Py_None) return {};
  if (is_array(object)) return array_of(object);
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow > 0 && info.parameters[index].type.starts_with("number"))
      return to_array(object, {info.name, info.parameters[index].name});  // it may fit uint64
    if (overflow)
      throw ValueError(info.name + ": argument '" + info.parameters[index].name + "' is " +
                           text_of(object) + ", which does not fit 64 bits",
                       "use a smaller integer");
    return std::int64_t(value);
  }
  if (PyUnicode_Check(object)) return utf8_of(object);
  if (is_numpy_scalar(object) || is_numpy_array(object)) {
    const Array array = to_array(object, {info.name, info.parameters[index].name});
    if (array.ndim() == 0 && array.dtype() == DType::bool_) return array.item<bool>();
    if (array.ndim() == 0 && is_integer(array.dtype())) return array.item<std::int64_t>();
    if (array.ndim() == 0 && is_floating(array.dtype()) && PyFloat_Check(object))
      return array.item<double>();
    return array;
  }
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyComplex_Check(object))
    return complex128(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  if ((PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) && depth < 64) {
    const py::object sequence = owned(PySequence_Fast(object, ""));
    Argument::List list;
    list.reserve(std::size_t(PySequence_Fast_GET_SIZE(sequence.ptr())));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i)
      list.push_back(
          any_argument(PySequence_Fast_GET_ITEM(sequence.ptr(), i), info, index, depth + 1));
    return list;
  }
  if (const FunctionInfo* function = function_of(object)) return function->name;
  if (PyType_Check(object) || is_numpy_dtype(object))
    return to_dtype(object, {info.name, info.parameters[index].name});
  if (PyDict_Check(object)) return to_tree(object, {info.name, info.parameters[index].name});
  if (PyIndex_Check(object)) {
    const py::object number = owned(PyNumber_Index(object));
    return any_argument(number.ptr(), info, index, depth + 1);
  }
  if (is_array_like(object)) return to_array(object, {info.name, info.parameters[index].name});
  const std::string& type = info.parameters[index].type;
  if (type.find("sparse array") != std::string::npos &&
      PyObject_HasAttrString(object, "__plait_argument__")) {
    const py::object parts = borrowed(object).attr("__plait_argument__");
    return any_argument(parts.ptr(), info, index, depth + 1);
  }
  if (PyCallable_Check(object) && type.find("function") != std::string::npos)
    return to_function_of_arrays(
        borrowed(object), Role{info.name, info.parameters[index].name}.to_string(), Takes::arrays);
  if (PySequence_Check(object) && !PyBytes_Check(object) && depth < 64) {  // a user's own class
    const py::object list = owned(PySequence_List(object));
    return any_argument(list.ptr(), info, index, depth + 1);
  }
  throw DtypeError(info.name + ": argument '" + info.parameters[index].name + "' is " +
                       text_of(object) + " of type " + type_name_of(object),
                   "call it as " + info.signature);
}

}  // namespace

Argument to_argument(PyObject* object, const FunctionInfo& info, std::size_t index) {
  const Parameter& parameter = info.parameters[index];
  const Role role{info.name, parameter.name};
  switch (parameter.kind) {
    case ParameterKind::array:
      if (is_array(object)) return array_of(object);
      if (object == Py_None) return {};
      return to_array(object, role);
    case ParameterKind::arrays: {
      if (object == Py_None) return {};
      if (PyUnicode_Check(object) || PyDict_Check(object)) throw_no_array(object, role);
      PyObject* fast = PySequence_Fast(object, "");
      if (!fast) {
        PyErr_Clear();
        throw DtypeError(
            role.to_string() + " is " + text_of(object) + " and should be a sequence of arrays",
            "call it as " + info.signature);
      }
      const py::object sequence = py::reinterpret_steal<py::object>(fast);
      Argument::List list;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i)
        list.push_back(to_array(PySequence_Fast_GET_ITEM(fast, i), role));
      return list;
    }
    case ParameterKind::tree:
      return to_tree(object, role);
    case ParameterKind::dtype:
      if (object == Py_None) return {};
      return to_dtype(object, role);
    case ParameterKind::function:
      if (!PyCallable_Check(object))
        throw DtypeError(role.to_string() + " is " + text_of(object) + " and should be a function",
                         "call it as " + info.signature);
      return to_function_of_arrays(borrowed(object), role.to_string(),
                                   info.parameters[index].type.ends_with("two tuples of them")
                                       ? Takes::halves
                                       : Takes::arrays);
    default:
      return any_argument(object, info, index);
  }
}

py::object from_argument(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> py::object {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return py::none();
        else if constexpr (std::is_same_v<T, Array>)
          return to_python(value);
        else if constexpr (std::is_same_v<T, DType>)
          return dtype_object(value);
        else if constexpr (std::is_same_v<T, Dim>)
          return dim_object(value);
        else if constexpr (std::is_same_v<T, Tree<Array>>)
          return from_tree(value);
        else if constexpr (std::is_same_v<T, complex128>)
          return owned(PyComplex_FromDoubles(value.real(), value.imag()));
        else if constexpr (std::is_same_v<T, Argument::List>) {
          py::tuple result(value.size());
          for (std::size_t i = 0; i < value.size(); ++i) result[i] = from_argument(value[i]);
          return result;
        } else if constexpr (std::is_same_v<T, Function>)
          return from_function_of_arrays(value);
        else
          return py::cast(value);
      },
      argument.value);
}

}  // namespace plait::python
