// Values of Python as arrays, dtypes and sizes, and back.
//
// NOTE: [copies] A plait array never changes, so a NumPy array is copied unless nobody can write to
// its memory: it and every array that it is a view of are read-only, or its memory is a plait
// array's own. Memory is shared on request through DLPack.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/ops.h>

#include <algorithm>

#include "ops/functions.h"

namespace plait::python {

thread_local Conversions* conversions = nullptr;

namespace {

PyObject *ndarray_type, *generic_type, *dtype_type, *numpy_module;
PyObject* dtype_objects[num_dtypes];

py::object numpy() { return borrowed(numpy_module); }

std::string prefix(const Role& role) {
  const std::string text = role.to_string();
  return text.empty() ? "" : text + ": ";
}

// --- NumPy arrays --------------------------------------------------------------------------------

std::optional<DType> dtype_from_format(const char* format, Py_ssize_t size) {
  if (!format) return DType::uint8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  const char code = *format;
  if (code == '?') return DType::bool_;
  if (code == 'e') return DType::float16;
  if (code == 'f' || code == 'd') return code == 'f' ? DType::float32 : DType::float64;
  if (code == 'Z' && (format[1] == 'f' || format[1] == 'd'))
    return format[1] == 'f' ? DType::complex64 : DType::complex128;
  if (format[1] != '\0') return std::nullopt;
  static constexpr DType signed_types[] = {DType::int8, DType::int16, DType::int32, DType::int64};
  static constexpr DType unsigned_types[] = {DType::uint8, DType::uint16, DType::uint32,
                                             DType::uint64};
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
    bool aligned =
        reinterpret_cast<std::uintptr_t>(buffer.buf) % std::min<std::int64_t>(buffer.itemsize, 8) ==
        0;
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

// --- Lists ---------------------------------------------------------------------------------------

struct Contents {
  bool has_arrays = false, has_numpy = false, only_numbers = true;
};

void look_inside(PyObject* list, Contents& contents, int depth) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  PyObject** items = PySequence_Fast_ITEMS(list);
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = items[i];
    if (PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item) ||
        PyComplex_CheckExact(item))
      continue;
    if ((PyList_Check(item) || PyTuple_Check(item)) && depth < 64)
      look_inside(item, contents, depth + 1);
    else if (is_array(item) || is_size(item))
      contents.has_arrays = true;
    else
      contents.has_numpy = true;
  }
}

Array from_list(PyObject* list, const Role& role) {
  Contents contents;
  look_inside(list, contents, 0);
  if (contents.has_arrays) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
    Arrays parts;
    for (Py_ssize_t i = 0; i < size; ++i)
      parts.push_back(to_array(PySequence_Fast_GET_ITEM(list, i), role));
    promote_dtypes(parts, "array");
    const Shape first = parts[0].shape();
    for (Array& part : parts) {
      if (!(part.shape() == first))
        throw ShapeError(prefix(role) + "a list holds arrays of shapes (" + first.to_string() +
                             ") and (" + part.shape().to_string() + ")",
                         "give arrays of one shape");
      Shape shape{1};
      for (Dim dim : part.shape()) shape.push_back(dim);
      part = lax::reshape(part, shape);
    }
    return lax::concatenate(parts, 0);
  }
  // "O" alone would make the elements of a tuple the arguments.
  PyObject* made = PyObject_CallMethod(numpy_module, "array", "(O)", list);
  if (!made) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError))
      throw py::error_already_set();
    PyErr_Clear();
    throw ShapeError(
        prefix(role) + "a nested list does not have the shape of an array: " + text_of(list),
        "make all rows equally long");
  }
  const py::object array = py::reinterpret_steal<py::object>(made);
  const Array result = from_numpy(made, role);
  // Numbers of Python alone are weak, as the numbers are; an empty list holds the default float.
  if (PySequence_Fast_GET_SIZE(list) == 0) return lax::convert_element_type(result, default_float);
  if (contents.has_numpy || result.dtype() == DType::bool_) return result;
  return Array(result.buffer(), true);
}

Array from_range(PyObject* range, const Role& role) {
  auto number = [&](const char* name) {
    return to_dim(owned(PyObject_GetAttrString(range, name)).ptr(), role);
  };
  const Dim start = number("start"), step = number("step");
  const Py_ssize_t size = PyObject_Length(range);
  if (size < 0) {
    PyErr_Clear();
    throw ShapeError(prefix(role) + text_of(range) + " has too many numbers",
                     "give a shorter range");
  }
  const Array counted = lax::iota(DType::int64, Shape{size}, 0);
  return lax::convert_element_type(Operand(counted) * Array(step) + Array(start), DType::int64,
                                   true);
}

// What NumPy refuses too: integers of Python that a dtype cannot hold.
void require_all_fit(const Array& numbers, DType dtype, const char* function) {
  if (!numbers.aval().weak || !numbers.is_concrete()) return;
  const Buffer buffer = numbers.buffer().dense();
  if (buffer.dtype() != DType::int64 && buffer.dtype() != DType::uint64) return;
  const auto* values = static_cast<const std::int64_t*>(buffer.data());
  const std::int64_t count = num_elements(buffer.shape());
  for (std::int64_t i = 0; i < count; ++i)
    functions::require_fits(Array::literal(Literal{buffer.dtype(), true, values[i], 0, 0}), dtype,
                            function);
}

std::optional<Array> from_scalar(PyObject* object) {
  if (PyFloat_CheckExact(object)) return Array(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return Array(object == Py_True);
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (!overflow) return Array(std::int64_t(value));
    const unsigned long long bits = overflow > 0 ? PyLong_AsUnsignedLongLong(object) : 0;
    if (overflow < 0 || PyErr_Occurred()) {
      PyErr_Clear();
      throw ValueError("the integer " + text_of(object) + " does not fit 64 bits", "use a float");
    }
    return Array::literal(Literal{DType::uint64, true, std::int64_t(bits), 0, 0});
  }
  if (PyComplex_CheckExact(object))
    return Array(complex128(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  return std::nullopt;
}

}  // namespace

void throw_no_array(PyObject* object, const Role& role, const std::string& why) {
  throw DtypeError(prefix(role) + text_of(object) + " of type " + type_name_of(object) +
                       " is no array of numbers" + why,
                   "pass an array, a number, or a nested list of numbers");
}

std::string Role::to_string() const {
  std::string text(function);
  if (!parameter.empty())
    text += (text.empty() ? "" : ": ") + ("argument '" + std::string(parameter) + "'");
  return text;
}

bool is_numpy_array(PyObject* object) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(ndarray_type));
}
bool is_numpy_dtype(PyObject* object) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(dtype_type));
}
bool is_numpy_scalar(PyObject* object) {
  return PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(generic_type));
}

bool is_array_like(PyObject* object) {
  return is_array(object) || PyFloat_Check(object) || PyLong_Check(object) ||
         PyComplex_Check(object) || is_numpy_array(object) || is_numpy_scalar(object) ||
         as_dim(object).has_value() ||
         (!PyType_Check(object) && (PyObject_HasAttrString(object, "__array__") ||
                                    PyObject_HasAttrString(object, "__dlpack__")));
}

Array to_array(PyObject* object, const Role& role) {
  if (is_array(object)) return array_of(object);
  if (std::optional<Array> scalar = from_scalar(object)) return *scalar;
  if (is_numpy_array(object)) {
    Array array = from_numpy(object, role);
    if (conversions) conversions->made.emplace_back(array, borrowed(object));
    return array;
  }
  if (is_numpy_scalar(object))
    return from_numpy(owned(PyObject_CallMethod(numpy_module, "asarray", "(O)", object)).ptr(),
                      role);
  if (std::optional<Dim> dim = as_dim(object)) return Array(*dim);
  if (PyList_Check(object) || PyTuple_Check(object)) return from_list(object, role);
  if (PyFloat_Check(object)) return Array(PyFloat_AsDouble(object));
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyType_Check(object) ||
      object == Py_None || PyDict_Check(object))
    throw_no_array(object, role);
  if (PyRange_Check(object)) return from_range(object, role);
  if (PyObject_HasAttrString(object, "__array__") || PyObject_CheckBuffer(object)) {
    const py::object array = owned(PyObject_CallMethod(numpy_module, "asarray", "(O)", object));
    return from_numpy(array.ptr(), role);
  }
  throw_no_array(object, role);
}

std::optional<Array> to_operand(PyObject* object) {
  if (is_array(object)) return array_of(object);
  if (std::optional<Array> scalar = from_scalar(object)) return scalar;
  if (is_numpy_array(object) || is_numpy_scalar(object) || PyFloat_Check(object) ||
      PyLong_Check(object) || is_size(object) || PyList_CheckExact(object) ||
      PyTuple_CheckExact(object))
    return to_array(object);
  return std::nullopt;
}

py::object to_numpy(const Array& array) {
  const Buffer buffer = array.buffer().dense();
  py::tuple shape(buffer.shape().size());
  for (std::size_t i = 0; i < buffer.shape().size(); ++i) shape[i] = buffer.shape()[i];
  if (buffer.shape().size() > 64)
    throw ShapeError(
        "an array of " + std::to_string(buffer.shape().size()) + " axes for NumPy, which has 64",
        "reshape it first");
  const py::object holder = to_python(Array(buffer));
  return numpy().attr("ndarray")(shape, dtype_object(buffer.dtype()), holder);
}

// --- Dtypes --------------------------------------------------------------------------------------

py::object dtype_object(DType dtype) {
  PyObject*& cached = dtype_objects[int(dtype)];
  if (!cached) {
    py::object made = dtype == DType::bfloat16
                          ? numpy().attr("dtype")(py::module_::import("ml_dtypes").attr("bfloat16"))
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
    name = utf8_of(object);
    if (name == "float") return default_float;
    if (name == "int") return default_int;
    if (name == "complex") return default_complex;
    if (name == "bool_") name = "bool";
  }
  std::optional<DType> found = dtype_from_name(name);
  if (!found && object != Py_None) {
    if (PyObject* made = PyObject_CallMethod(numpy_module, "dtype", "(O)", object)) {
      const py::object dtype = py::reinterpret_steal<py::object>(made);
      found = dtype_from_name(std::string(py::str(dtype.attr("name"))));
    } else {
      PyErr_Clear();
    }
  }
  if (!found)
    throw DtypeError(prefix(role) + text_of(object) + " is no dtype that plait has",
                     "use bool, int8 ... int64, uint8 ... uint64, float16, bfloat16, float32, "
                     "float64, complex64 or complex128");
  return *found;
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
  module.def(
      "to_array",
      [](py::object object, const std::string& what) {
        return to_python(to_array(object.ptr(), {what}));
      },
      py::arg("object"), py::arg("what") = "");
  module.def("is_array_like", [](py::object object) { return is_array_like(object.ptr()); });
  module.def(
      "aval_of",
      [](py::object object, const std::string& what) {
        return aval_object(to_aval(object.ptr(), {what}));
      },
      py::arg("object"), py::arg("what") = "");
  module.def(
      "asarray",
      [](py::object a, py::object dtype, py::object copy) {
        if (copy.is(py::bool_(false)) && is_numpy_array(a.ptr()) && !is_frozen(a.ptr()))
          throw ValueError("asarray: copy=False of a NumPy array that can be written to",
                           "make it read-only, or share its memory with from_dlpack");
        Array array = to_array(a.ptr(), {"asarray"});
        if (dtype.is_none()) return to_python(array);
        const DType target = to_dtype(dtype.ptr(), {"asarray", "dtype"});
        if (is_complex(array.dtype()) && !is_complex(target))
          throw DtypeError("asarray: complex values do not become " + std::string(name_of(target)),
                           "take .real first");
        if (!is_array(a.ptr()) && is_integer(target)) require_all_fit(array, target, "asarray");
        return to_python(lax::convert_element_type(array, target));
      },
      py::arg("a"), py::arg("dtype") = py::none(), py::arg("copy") = py::none());
  module.def("promote_types", [](py::object a, py::object b) {
    return dtype_object(promote_types(to_dtype(a.ptr()), to_dtype(b.ptr())));
  });
  module.def("result_type", [](py::args values) {
    std::optional<WeakDType> result;
    for (py::handle value : values) {
      const bool is_dtype =
          PyType_Check(value.ptr()) || PyUnicode_Check(value.ptr()) || is_numpy_dtype(value.ptr());
      const WeakDType here =
          is_dtype ? WeakDType{to_dtype(value.ptr()), false} : to_aval(value.ptr()).type();
      result = result ? promote_weak(*result, here) : here;
    }
    if (!result) throw ValueError("result_type of nothing", "pass arrays or dtypes");
    return dtype_object(result->dtype);
  });
  module.def("as_dtype", [](py::object object) { return dtype_object(to_dtype(object.ptr())); });
}

}  // namespace plait::python
