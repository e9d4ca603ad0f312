// Values of Python as arrays, dtypes and sizes, and back.
//
// NOTE: [copies] A plait array never changes, so a NumPy array is copied unless nobody can write to its
// memory: it and every array that it is a view of are read-only, or its memory is a plait array's own.
// Memory is shared on request through DLPack.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/ops.h>

#include <algorithm>

namespace plait::python {

thread_local Conversions* conversions = nullptr;

namespace {

PyObject *ndarray_type, *generic_type, *dtype_type, *numpy_module;
PyObject* dtype_objects[num_dtypes];
PyObject* size_type = nullptr;

py::object numpy() { return borrowed(numpy_module); }

std::string prefix(const Role& role) {
  const std::string text = role.to_string();
  return text.empty() ? "" : text + ": ";
}

// --- NumPy arrays ----------------------------------------------------------------------------------

std::optional<DType> dtype_from_format(const char* format, Py_ssize_t size) {
  if (!format) return DType::uint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const char code = *format;
  if (code == '?' ) return DType::bool_;
  if (code == 'e') return DType::float16;
  if (code == 'f' || code == 'd') return code == 'f' ? DType::float32 : DType::float64;
  if (code == 'Z' && (format[1] == 'f' || format[1] == 'd')) return format[1] == 'f' ? DType::complex64 : DType::complex128;
  if (format[1] != '\0') return std::nullopt;
  static constexpr DType signed_types[] = {DType::int8, DType::int16, DType::int32, DType::int64};
  static constexpr DType unsigned_types[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  const int log = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : size == 8 ? 3 : -1;
  if (log < 0) return std::nullopt;
  if (std::string_view("bhilqn").find(code) != std::string_view::npos) return signed_types[log];
  if (std::string_view("BHILQNc").find(code) != std::string_view::npos) return unsigned_types[log];
  return std::nullopt;
}

// Whether nobody can write to the memory of a NumPy array.
bool is_frozen(PyObject* array) {
  py::object base = borrowed(array);
  for (int depth = 0; depth < 32; ++depth) {
    if (is_array(base.ptr())) return true;
    if (PyBytes_Check(base.ptr())) return true;
    if (PyMemoryView_Check(base.ptr())) {
      base = base.attr("obj");
      continue;
    }
    if (!is_numpy_array(base.ptr())) return false;
    if (base.attr("flags").attr("writeable").cast<bool>()) return false;
    base = base.attr("base");
    if (base.is_none()) return true;
  }
  return false;
}

[[noreturn]] void throw_no_array(PyObject* object, const Role& role, const std::string& why = {}) {
  throw DtypeError(prefix(role) + text_of(object) + " of type " + type_name_of(object) + " is no array of numbers" + why,
                   "pass an array, a number, or a nested list of numbers");
}

Array from_numpy(PyObject* object, const Role& role) {
  struct Hold {
    Py_buffer buffer{};
    bool held = false;
    ~Hold() {
      if (held) PyBuffer_Release(&buffer);
    }
  };
  py::object array = borrowed(object);
  std::optional<DType> reinterpreted;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto hold = std::make_unique<Hold>();
    if (PyObject_GetBuffer(array.ptr(), &hold->buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
      PyErr_Clear();
      const std::string name = py::str(array.attr("dtype").attr("name"));
      if (name != "bfloat16") throw_no_array(object, role, ": its dtype is " + name);
      reinterpreted = DType::bfloat16;
      array = array.attr("view")("uint16");
      continue;
    }
    hold->held = true;
    const Py_buffer& buffer = hold->buffer;
    std::optional<DType> dtype = dtype_from_format(buffer.format, buffer.itemsize);
    if (!dtype) {
      const bool swapped = buffer.format && *buffer.format == '>';
      if (!swapped || attempt > 0) {
        if (!is_numpy_array(array.ptr())) throw_no_array(object, role);
        throw_no_array(object, role, ": its dtype is " + std::string(py::str(array.attr("dtype"))));
      }
      array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
      continue;
    }
    if (reinterpreted) dtype = reinterpreted;
    View view{buffer.buf, *dtype, {}, {}};
    bool aligned = reinterpret_cast<std::uintptr_t>(buffer.buf) % std::min<std::int64_t>(buffer.itemsize, 8) == 0;
    for (int axis = 0; axis < buffer.ndim; ++axis) {
      view.shape.push_back(buffer.shape[axis]);
      aligned &= buffer.strides[axis] % buffer.itemsize == 0;
      view.strides.push_back(buffer.strides[axis] / buffer.itemsize);
    }
    if (!aligned) {
      array = array.attr("copy")();
      continue;
    }
    if (is_numpy_array(object) && view.is_dense() && buffer.len >= 4096 && is_frozen(object)) {
      const std::size_t bytes = buffer.len;
      void* const data = buffer.buf;
      std::shared_ptr<Hold> kept = std::move(hold);
      return Array(Buffer(Storage::foreign(data, bytes,
                                           [kept = std::move(kept)]() mutable {
                                             if (!Py_IsInitialized()) return;
                                             const PyGILState_STATE state = PyGILState_Ensure();
                                             kept.reset();
                                             PyGILState_Release(state);
                                           }),
                          view));
    }
    return Array(Buffer::copy_of(view));
  }
  throw_no_array(object, role);
}

// --- Lists -----------------------------------------------------------------------------------------

struct Contents {
  bool has_arrays = false, has_numpy = false, only_numbers = true;
};

void look_inside(PyObject* list, Contents& contents, int depth) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  PyObject** items = PySequence_Fast_ITEMS(list);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = items[i];
    if (PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item) || PyComplex_CheckExact(item)) continue;
    if ((PyList_Check(item) || PyTuple_Check(item)) && depth < 64) look_inside(item, contents, depth + 1);
    else if (is_array(item) || (size_type && Py_TYPE(item) == reinterpret_cast<PyTypeObject*>(size_type))) contents.has_arrays = true;
    else contents.has_numpy = true;
  }
}

Array from_list(PyObject* list, const Role& role) {
  Contents contents;
  look_inside(list, contents, 0);
  if (contents.has_arrays) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
    Arrays parts;
    for (Py_ssize_t i = 0; i < size; ++i) parts.push_back(to_array(PySequence_Fast_GET_ITEM(list, i), role));
    promote_dtypes(parts, "array");
    const Shape first = parts[0].shape();
    for (Array& part : parts) {
      if (!(part.shape() == first))
        throw ShapeError(prefix(role) + "a list holds arrays of shapes (" + first.to_string() + ") and (" + part.shape().to_string() + ")",
                         "give arrays of one shape");
      Shape shape{1};
      for (Dim dim : part.shape()) shape.push_back(dim);
      part = lax::reshape(part, shape);
    }
    return lax::concatenate(parts, 0);
  }
  PyObject* made = PyObject_CallMethod(numpy_module, "array", "O", list);
  if (!made) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
    PyErr_Clear();
    throw ShapeError(prefix(role) + "a nested list does not have the shape of an array: " + text_of(list), "make all rows equally long");
  }
  const py::object array = py::reinterpret_steal<py::object>(made);
  const Array result = from_numpy(made, role);
  // Numbers of Python alone are weak, as the numbers are; an empty list holds the default float.
  if (PySequence_Fast_GET_SIZE(list) == 0) return lax::convert_element_type(result, default_float);
  if (contents.has_numpy || result.dtype() == DType::bool_) return result;
  return Array(result.buffer(), true);
}

std::optional<Array> from_scalar(PyObject* object) {
  if (PyFloat_CheckExact(object)) return Array(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return Array(object == Py_True);
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) throw DtypeError("the integer " + text_of(object) + " does not fit 64 bits", "use a float");
    return Array(std::int64_t(value));
  }
  if (PyComplex_CheckExact(object)) return Array(complex128(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  return std::nullopt;
}

}  // namespace

std::string Role::to_string() const {
  std::string text(function);
  if (!parameter.empty()) text += (text.empty() ? "" : ": ") + ("argument '" + std::string(parameter) + "'");
  return text;
}

bool is_numpy_array(PyObject* object) { return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(ndarray_type)); }
bool is_numpy_scalar(PyObject* object) { return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(generic_type)); }

bool is_array_like(PyObject* object) {
  return is_array(object) || PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) || is_numpy_array(object) ||
         is_numpy_scalar(object) || as_dim(object).has_value() ||
         (!PyType_Check(object) && (PyObject_HasAttrString(object, "__array__") || PyObject_HasAttrString(object, "__dlpack__")));
}

Array to_array(PyObject* object, const Role& role) {
  if (is_array(object)) return array_of(object);
  if (std::optional<Array> scalar = from_scalar(object)) return *scalar;
  if (is_numpy_array(object)) {
    Array array = from_numpy(object, role);
    if (conversions) conversions->made.emplace_back(array, borrowed(object));
    return array;
  }
  if (is_numpy_scalar(object)) return from_numpy(owned(PyObject_CallMethod(numpy_module, "asarray", "O", object)).ptr(), role);
  if (std::optional<Dim> dim = as_dim(object)) return Array(*dim);
  if (PyList_Check(object) || PyTuple_Check(object)) return from_list(object, role);
  if (PyFloat_Check(object)) return Array(PyFloat_AsDouble(object));
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyType_Check(object) || object == Py_None || PyDict_Check(object)) throw_no_array(object, role);
  if (PyRange_Check(object)) return from_list(owned(PySequence_List(object)).ptr(), role);
  if (PyObject_HasAttrString(object, "__array__") || PyObject_CheckBuffer(object)) {
    const py::object array = owned(PyObject_CallMethod(numpy_module, "asarray", "O", object));
    return from_numpy(array.ptr(), role);
  }
  throw_no_array(object, role);
}

std::optional<Array> to_operand(PyObject* object) {
  if (is_array(object)) return array_of(object);
  if (std::optional<Array> scalar = from_scalar(object)) return scalar;
  if (is_numpy_array(object) || is_numpy_scalar(object) || PyFloat_Check(object) || PyLong_Check(object) ||
      (size_type && Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(size_type)))
    return to_array(object);
  return std::nullopt;
}

py::object to_numpy(const Array& array) {
  const Buffer buffer = array.buffer().dense();
  py::tuple shape(buffer.shape().size());
  for (std::size_t i = 0; i < buffer.shape().size(); ++i) shape[i] = buffer.shape()[i];
  const py::object holder = to_python(Array(buffer));
  return numpy().attr("ndarray")(shape, dtype_object(buffer.dtype()), holder);
}

// --- Dtypes ----------------------------------------------------------------------------------------

py::object dtype_object(DType dtype) {
  PyObject*& cached = dtype_objects[int(dtype)];
  if (!cached) {
    py::object made = dtype == DType::bfloat16 ? numpy().attr("dtype")(py::module_::import("ml_dtypes").attr("bfloat16"))
                                               : numpy().attr("dtype")(std::string(name_of(dtype)));
    cached = made.release().ptr();
  }
  return borrowed(cached);
}

DType to_dtype(PyObject* object, const Role& role) {
  if (Py_TYPE(object) != Py_TYPE(Py_None))
    for (int i = 0; i < num_dtypes; ++i)
      if (dtype_objects[i] == object) return DType(i);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return default_float;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return default_int;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return default_complex;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  std::string name;
  if (PyUnicode_Check(object)) {
    name = py::str(borrowed(object));
    if (name == "float") return default_float;
    if (name == "int") return default_int;
    if (name == "complex") return default_complex;
    if (name == "bool_") name = "bool";
  }
  std::optional<DType> found = dtype_from_name(name);
  if (!found && object != Py_None) {
    if (PyObject* made = PyObject_CallMethod(numpy_module, "dtype", "O", object)) {
      const py::object dtype = py::reinterpret_steal<py::object>(made);
      found = dtype_from_name(std::string(py::str(dtype.attr("name"))));
    } else {
      PyErr_Clear();
    }
  }
  if (!found)
    throw DtypeError(prefix(role) + text_of(object) + " is no dtype that plait has",
                     "use bool, int8 ... int64, uint8 ... uint64, float16, bfloat16, float32, float64, complex64 or complex128");
  return *found;
}

// --- Sizes -----------------------------------------------------------------------------------------

std::optional<Dim> as_dim(PyObject* object) {
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || value > (1LL << 61) || value < -(1LL << 61))
      throw ShapeError("the size " + text_of(object) + " does not fit 62 bits", "use a smaller size");
    return Dim(std::int64_t(value));
  }
  if (size_type && Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(size_type)) return py::cast<Dim>(py::handle(object));
  return std::nullopt;
}

Dim to_dim(PyObject* object, const Role& role) {
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  PyObject* index = PyNumber_Index(object);
  if (!index) {
    if (is_array(object)) throw py::error_already_set();
    PyErr_Clear();
    throw DtypeError(prefix(role) + text_of(object) + " of type " + type_name_of(object) + " is no integer", "pass an integer or a size");
  }
  const py::object owner = py::reinterpret_steal<py::object>(index);
  return *as_dim(index);
}

py::object dim_object(Dim dim) {
  if (dim.is_constant()) return owned(PyLong_FromLongLong(dim.constant()));
  return py::cast(dim);
}

py::object shape_object(const Shape& shape) {
  py::tuple result(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) result[i] = dim_object(shape[i]);
  return result;
}

Shape to_shape(PyObject* object) {
  Shape shape;
  if (as_dim(object)) {
    shape.push_back(to_dim(object));
    return shape;
  }
  const py::object sequence = owned(PySequence_Fast(object, "a shape is an integer or a sequence of integers"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i)
    shape.push_back(to_dim(PySequence_Fast_GET_ITEM(sequence.ptr(), i)));
  return shape;
}

namespace {

// A size as a Python value: arithmetic, comparison where the sizes decide it.
void add_size(py::module_& module) {
  py::class_<Dim> type(module, "Size",
                       "The size of an axis that has a name: an expression such as n, 2*n+1 or min(n, 8). It does arithmetic and\n"
                       "stands wherever a size may.");
  size_type = type.ptr();
  auto with = [&type](const char* name, auto operation, bool reflected) {
    type.def(name, [operation, reflected](Dim self, py::object other) -> py::object {
      if (!as_dim(other.ptr())) return borrowed(Py_NotImplemented);
      const Dim right = *as_dim(other.ptr());
      return dim_object(reflected ? operation(right, self) : operation(self, right));
    }, py::is_operator());
  };
  auto both = [&](const std::string& name, auto operation) {
    with(("__" + name + "__").c_str(), operation, false);
    with(("__r" + name + "__").c_str(), operation, true);
  };
  both("add", [](Dim a, Dim b) { return a + b; });
  both("sub", [](Dim a, Dim b) { return a - b; });
  both("mul", [](Dim a, Dim b) { return a * b; });
  both("floordiv", [](Dim a, Dim b) { return floor_divide(a, b); });
  both("mod", [](Dim a, Dim b) { return modulo(a, b); });
  type.def("__truediv__", [](Dim self, py::object other) { return to_python(Operand(Array(self)) / to_array(other.ptr())); });
  type.def("__rtruediv__", [](Dim self, py::object other) { return to_python(Operand(to_array(other.ptr())) / Array(self)); });
  type.def("__pow__", [](Dim self, std::int64_t power) {
    Dim result = 1;
    for (std::int64_t i = 0; i < power; ++i) result = result * self;
    return dim_object(result);
  });
  type.def("__neg__", [](Dim self) { return dim_object(-self); });
  type.def("__eq__", [](Dim self, py::object other) -> py::object {
    std::optional<Dim> right = as_dim(other.ptr());
    if (!right) return borrowed(Py_NotImplemented);
    std::optional<bool> decided = plait::equal(self, *right);
    return py::bool_(decided.value_or(self == *right));
  }, py::is_operator());
  type.def("__hash__", [](Dim self) { return self.hash(); });
  auto ordered = [&type](const char* name, const char* sign, auto decide) {
    type.def(name, [decide, sign](Dim self, py::object other) -> py::object {
      std::optional<Dim> right = as_dim(other.ptr());
      if (!right) return borrowed(Py_NotImplemented);
      if (std::optional<bool> decided = decide(self, *right)) return py::bool_(*decided);
      throw TracerError("whether " + self.to_string() + " " + sign + " " + right->to_string() + " depends on the sizes, which this program leaves open",
                        "use min or max of sizes, where on values, or give the size a number");
    }, py::is_operator());
  };
  ordered("__le__", "<=", [](Dim a, Dim b) { return plait::less_equal(a, b); });
  ordered("__ge__", ">=", [](Dim a, Dim b) { return plait::less_equal(b, a); });
  ordered("__lt__", "<", [](Dim a, Dim b) { return plait::less_equal(a + 1, b); });
  ordered("__gt__", ">", [](Dim a, Dim b) { return plait::less_equal(b + 1, a); });
  auto refuse = [](Dim self) -> py::object {
    throw TracerError("Python needs the size " + self.to_string() + " as an integer, and this program leaves it open",
                      "let the size itself stand in shapes and slices, use it in array arithmetic, or give it a number");
  };
  for (const char* name : {"__index__", "__int__", "__float__", "__bool__"}) type.def(name, refuse);
  type.def("__repr__", &Dim::to_string);
  type.def("__reduce__", [type](Dim self) { return py::make_tuple(type.attr("parse"), py::make_tuple(self.to_string())); });
  type.def_static("parse", [](const std::string& text) { return dim_object(Dim::parse(text)); }, "A size from text such as 'n' or '2*n+1'.");
  module.def("min_size", [](py::object a, py::object b) { return dim_object(minimum(to_dim(a.ptr()), to_dim(b.ptr()))); });
  module.def("max_size", [](py::object a, py::object b) { return dim_object(maximum(to_dim(a.ptr()), to_dim(b.ptr()))); });
}

}  // namespace

// --- Avals -----------------------------------------------------------------------------------------

py::object aval_object(const Aval& aval) { return py::cast(aval); }

Aval to_aval(PyObject* object, const Role& role) {
  if (is_array(object)) return array_of(object).aval();
  if (py::isinstance<Aval>(object)) return py::cast<Aval>(py::handle(object));
  if (!is_array_like(object) && PyObject_HasAttrString(object, "shape") && PyObject_HasAttrString(object, "dtype")) {
    const py::object value = borrowed(object);
    return {to_shape(py::object(value.attr("shape")).ptr()), to_dtype(py::object(value.attr("dtype")).ptr(), role), false};
  }
  return to_array(object, role).aval();
}

// --- Arguments of catalogued functions -------------------------------------------------------------

namespace {

Argument any_argument(PyObject* object, const FunctionInfo& info, std::size_t index, int depth = 0) {
  if (object == Py_None) return {};
  if (is_array(object)) return array_of(object);
  if (PyBool_Check(object)) return object == Py_True;
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow)
      throw ValueError(info.name + ": argument '" + info.parameters[index].name + "' is " + text_of(object) + ", which does not fit 64 bits", "use a smaller integer");
    return std::int64_t(value);
  }
  if (PyUnicode_Check(object)) return std::string(py::str(borrowed(object)));
  if (is_numpy_scalar(object) || is_numpy_array(object)) {
    const Array array = to_array(object, {info.name, info.parameters[index].name});
    if (array.ndim() == 0 && array.dtype() == DType::bool_) return array.item<bool>();
    if (array.ndim() == 0 && is_integer(array.dtype())) return array.item<std::int64_t>();
    if (array.ndim() == 0 && is_floating(array.dtype()) && PyFloat_Check(object)) return array.item<double>();
    return array;
  }
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyComplex_Check(object)) return complex128(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object));
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  if ((PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) && depth < 64) {
    const py::object sequence = owned(PySequence_Fast(object, ""));
    Argument::List list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i)
      list.push_back(any_argument(PySequence_Fast_GET_ITEM(sequence.ptr(), i), info, index, depth + 1));
    return list;
  }
  if (const FunctionInfo* function = function_of(object)) return function->name;
  if (PyType_Check(object) || PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(dtype_type)))
    return to_dtype(object, {info.name, info.parameters[index].name});
  if (PyDict_Check(object)) return to_tree(object, {info.name, info.parameters[index].name});
  if (PyIndex_Check(object)) {
    const py::object number = owned(PyNumber_Index(object));
    return any_argument(number.ptr(), info, index, depth + 1);
  }
  if (is_array_like(object)) return to_array(object, {info.name, info.parameters[index].name});
  throw DtypeError(info.name + ": argument '" + info.parameters[index].name + "' is " + text_of(object) + " of type " + type_name_of(object),
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
        throw DtypeError(role.to_string() + " is " + text_of(object) + " and should be a sequence of arrays", "call it as " + info.signature);
      }
      const py::object sequence = py::reinterpret_steal<py::object>(fast);
      Argument::List list;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); ++i)
        list.push_back(to_array(PySequence_Fast_GET_ITEM(fast, i), role));
      return list;
    }
    case ParameterKind::tree: return to_tree(object, role);
    case ParameterKind::dtype:
      if (object == Py_None) return {};
      return to_dtype(object, role);
    default: return any_argument(object, info, index);
  }
}

py::object from_argument(const Argument& argument) {
  return std::visit(
      [](const auto& value) -> py::object {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) return py::none();
        else if constexpr (std::is_same_v<T, Array>) return to_python(value);
        else if constexpr (std::is_same_v<T, DType>) return dtype_object(value);
        else if constexpr (std::is_same_v<T, Dim>) return dim_object(value);
        else if constexpr (std::is_same_v<T, Tree<Array>>) return from_tree(value);
        else if constexpr (std::is_same_v<T, complex128>) return owned(PyComplex_FromDoubles(value.real(), value.imag()));
        else if constexpr (std::is_same_v<T, Argument::List>) {
          py::tuple result(value.size());
          for (std::size_t i = 0; i < value.size(); ++i) result[i] = from_argument(value[i]);
          return result;
        } else return py::cast(value);
      },
      argument.value);
}

void add_convert(py::module_& module) {
  const py::module_ numpy = py::module_::import("numpy");
  numpy_module = numpy.ptr();
  Py_INCREF(numpy_module);
  ndarray_type = py::object(numpy.attr("ndarray")).release().ptr();
  generic_type = py::object(numpy.attr("generic")).release().ptr();
  dtype_type = py::object(numpy.attr("dtype")).release().ptr();
  for (int i = 0; i < num_dtypes; ++i)
    if (DType(i) != DType::bfloat16) dtype_object(DType(i));
  add_size(module);
  py::class_<Aval>(module, "ShapeDtypeStruct", "The type of an array: shape, dtype, and whether the dtype is weak.")
      .def(py::init([](py::object shape, py::object dtype, bool weak_type) {
             return Aval{to_shape(shape.ptr()), to_dtype(dtype.ptr()), weak_type};
           }),
           py::arg("shape"), py::arg("dtype"), py::kw_only(), py::arg("weak_type") = false)
      .def_property_readonly("shape", [](const Aval& aval) { return shape_object(aval.shape); })
      .def_property_readonly("dtype", [](const Aval& aval) { return dtype_object(aval.dtype); })
      .def_property_readonly("ndim", [](const Aval& aval) { return aval.rank(); })
      .def_property_readonly("size", [](const Aval& aval) { return dim_object(aval.shape.num_elements()); })
      .def_readonly("weak_type", &Aval::weak)
      .def("__eq__", [](const Aval& a, py::object b) { return py::isinstance<Aval>(b) && a == b.cast<Aval>(); })
      .def("__hash__", &Aval::hash)
      .def("__repr__", &Aval::to_string);
  module.def("to_array", [](py::object object, const std::string& what) { return to_python(to_array(object.ptr(), {what})); },
             py::arg("object"), py::arg("what") = "");
  module.def("is_array_like", [](py::object object) { return is_array_like(object.ptr()); });
  module.def("aval_of", [](py::object object, const std::string& what) { return aval_object(to_aval(object.ptr(), {what})); },
             py::arg("object"), py::arg("what") = "");
  module.def("asarray", [](py::object a, py::object dtype, py::object copy) {
    if (copy.is(py::bool_(false)) && is_numpy_array(a.ptr()) && !is_frozen(a.ptr()))
      throw ValueError("asarray: copy=False of a NumPy array that can be written to", "make it read-only, or share its memory with from_dlpack");
    Array array = to_array(a.ptr(), {"asarray"});
    if (dtype.is_none()) return to_python(array);
    const DType target = to_dtype(dtype.ptr(), {"asarray", "dtype"});
    if (is_complex(array.dtype()) && !is_complex(target))
      throw DtypeError("asarray: complex values do not become " + std::string(name_of(target)), "take .real first");
    return to_python(lax::convert_element_type(array, target));
  }, py::arg("a"), py::arg("dtype") = py::none(), py::arg("copy") = py::none());
  module.def("promote_types", [](py::object a, py::object b) { return dtype_object(promote_types(to_dtype(a.ptr()), to_dtype(b.ptr()))); });
  module.def("result_type", [](py::args values) {
    std::optional<WeakDType> result;
    for (py::handle value : values) {
      const bool is_dtype = PyType_Check(value.ptr()) || PyUnicode_Check(value.ptr()) || PyObject_TypeCheck(value.ptr(), reinterpret_cast<PyTypeObject*>(dtype_type));
      const WeakDType here = is_dtype ? WeakDType{to_dtype(value.ptr()), false} : to_aval(value.ptr()).type();
      result = result ? promote_weak(*result, here) : here;
    }
    if (!result) throw ValueError("result_type of nothing", "pass arrays or dtypes");
    return dtype_object(result->dtype);
  });
  module.def("as_dtype", [](py::object object) { return dtype_object(to_dtype(object.ptr())); });
}

}  // namespace plait::python
