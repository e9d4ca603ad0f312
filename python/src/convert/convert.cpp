// Python values as arrays, dtypes and sizes, and back.
//
// NOTE: [copies] A plait array never changes, so a NumPy array is copied unless nobody can write to
// its memory: it and every array that it is a view of are read-only, or its memory belongs to a
// plait array. Memory is shared on request through DLPack.
// SPDX-License-Identifier: Apache-2.0
#include "lists.h"

#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>

#include <algorithm>
#include <unordered_map>

#include "functions/functions.h"

namespace plait::python {

thread_local Conversions* conversions = nullptr;

namespace {

PyObject *ndarray_type, *generic_type, *dtype_type, *numpy_module;
PyTypeObject* float64_type;
PyObject* dtype_objects[num_dtypes];

py::object numpy() { return borrowed(numpy_module); }

// --- NumPy arrays --------------------------------------------------------------------------------

// NumPy has these by ml_dtypes alone, which few programs need, and keys not at all.
bool is_made_on_demand(DType dtype) { return dtype == DType::bfloat16 || is_stored(dtype); }

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

// An array of numpy.ma whose elements are not all there.
void refuse_masked(PyObject* object, const Role& role) {
  const char* const type = Py_TYPE(object)->tp_name;
  if (std::string_view(type).find("MaskedArray") == std::string_view::npos) return;
  const py::object mask = borrowed(object).attr("mask");
  if (mask.attr("any")().cast<bool>())
    throw ValueError(role.prefix() + "an array of numpy.ma has masked elements",
                     "give x.filled(value), or x.data with x.mask beside it");
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
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(ndarray_type)) refuse_masked(object, role);
  std::optional<DType> reinterpreted;
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto hold = std::make_unique<Hold>();
    if (PyObject_GetBuffer(array.ptr(), &hold->buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
      PyErr_Clear();
      const std::string name = py::str(array.attr("dtype").attr("name"));
      reinterpreted = dtype_from_name(name);
      if (!reinterpreted || !is_made_on_demand(*reinterpreted))
        throw_no_array(object, role, ": its dtype is " + name);
      const DType bits =
          *reinterpreted == DType::bfloat16 ? DType::uint16 : carrier_of(*reinterpreted);
      const bool is_integer = *reinterpreted == DType::int4 || *reinterpreted == DType::uint4;
      array = array.attr(is_integer ? "astype" : "view")(std::string(name_of(bits)));
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
    View view{buffer.buf, carrier_of(*dtype), {}, {}};
    const auto made = [&](Buffer values) {
      const Aval aval{Shape::of(values.shape()), *dtype};
      return make_concrete(aval, std::move(values));
    };
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
      return made(Buffer(Storage::foreign(data, bytes,
                                          [kept = std::move(kept)]() mutable {
                                            if (!Py_IsInitialized()) return;
                                            const PyGILState_STATE state = PyGILState_Ensure();
                                            kept.reset();
                                            PyGILState_Release(state);
                                          }),
                         view));
    }
    return made(Buffer::copy_of(view));
  }
  throw_no_array(object, role);
}

// --- Scalars -------------------------------------------------------------------------------------

// A NumPy scalar is strong, unless its dtype is that of Python numbers: then it is weak, as they
// are. np.float64, which is a Python float too, is treated by its dtype like the others.
Array from_numpy_scalar(PyObject* object, const Role& role) {
  if (Py_TYPE(object) == float64_type) return Array(PyFloat_AS_DOUBLE(object));
  const Array value =
      from_numpy(owned(PyObject_CallMethod(numpy_module, "asarray", "(O)", object)).ptr(), role);
  switch (value.dtype()) {
    case DType::float64:
      return Array(value.item<double>());
    case DType::int64:
      return Array(value.item<std::int64_t>());
    case DType::complex128:
      return Array(value.item<complex128>());
    default:
      return value;
  }
}

// --- Lists ---------------------------------------------------------------------------------------

// The contents of a list. type is the promoted type of its numbers and NumPy arrays; plait arrays
// do not count.
struct Contents {
  bool has_arrays = false, has_fractions = false;
  std::optional<WeakDType> type;

  void add(WeakDType other) { type = type ? promote_weak(*type, other) : other; }
};

WeakDType type_of_item(PyObject* item, const Role& role) {
  if (PyBool_Check(item)) return {DType::bool_, false};
  if (Py_TYPE(item) == float64_type || !is_numpy_scalar(item)) {
    if (PyLong_Check(item)) return {DType::int64, true};
    if (PyFloat_Check(item)) return {DType::float64, true};
    if (PyComplex_Check(item)) return {DType::complex128, true};
  }
  return to_array(item, role).aval().type();
}

void add_contents(PyObject* list, Contents& contents, int depth, const Role& role) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  PyObject** items = PySequence_Fast_ITEMS(list);
  PyTypeObject* last = nullptr;  // most lists hold numbers of one type
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = items[i];
    if (Py_TYPE(item) == last) continue;
    if (PyList_Check(item) || PyTuple_Check(item)) {
      if (depth < 64) add_contents(item, contents, depth + 1, role);  // NumPy refuses deeper lists
      continue;
    }
    contents.has_arrays |= is_array(item) || is_size(item);
    if (contents.has_arrays) return;
    const WeakDType type = type_of_item(item, role);
    contents.add(type);
    contents.has_fractions |= is_inexact(type.dtype);
    if (type.weak || type.dtype == DType::bool_) last = Py_TYPE(item);
  }
}

// Converts concrete numbers outside of all traces, so that no equation is recorded. As in NumPy,
// Python integers that the dtype cannot hold are refused.
Array cast_now(const Array& array, DType dtype, bool weak, const Role& role) {
  TraceScope outside(nullptr);
  return narrowed(Array(array.buffer(), true), dtype, weak, role.to_string());
}

Array listed(PyObject* list, const Role& role);

// Stacks the arrays of a list along a new first axis.
Array stacked(PyObject* list, const Role& role) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  Arrays parts;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, i);
    parts.push_back(PyList_Check(item) || PyTuple_Check(item) ? listed(item, role)
                                                              : to_array(item, role));
  }
  promote_dtypes(parts, "array");
  const Shape first = parts[0].shape();
  for (Array& part : parts) {
    if (!(part.shape() == first))
      throw ShapeError(role.prefix() + "a list holds arrays of shapes (" + first.to_string() +
                           ") and (" + part.shape().to_string() + ")",
                       "give arrays of one shape");
    Shape shape{1};
    for (Dim dim : part.shape()) shape.push_back(dim);
    part = lax::reshape(part, shape);
  }
  return lax::concatenate(parts, 0);
}

// A list in full precision: weak where it holds only numbers and weak arrays.
Array listed(PyObject* list, const Role& role) {
  Contents contents;
  add_contents(list, contents, 0, role);
  if (contents.has_arrays) return stacked(list, role);
  // With "O" alone, the elements of a tuple would become the arguments.
  PyObject* made = PyObject_CallMethod(numpy_module, "array", "(O)", list);
  if (!made) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError))
      throw py::error_already_set();
    PyErr_Clear();
    throw ShapeError(
        role.prefix() + "a nested list does not have the shape of an array: " + text_of(list),
        "make all rows equally long, and no more than 64 deep");
  }
  const py::object array = py::reinterpret_steal<py::object>(made);
  if (!contents.type) return Array(from_numpy(made, role).buffer(), true);  // empty
  // NumPy makes objects or floats of integers that fit none of its integer dtypes.
  const std::string kind = py::str(array.attr("dtype").attr("kind"));
  if (is_integer(contents.type->dtype) && !contents.has_fractions && kind != "i" && kind != "u")
    throw ValueError(role.prefix() + "an integer of " + text_of(list) + " does not fit 64 bits",
                     "use floats");
  const Array result = from_numpy(made, role);
  if (contents.type->weak) return Array(result.buffer(), true);
  return cast_now(result, contents.type->dtype, false, role);
}

// Strong: a list is an array of its own. Its dtype is the default unless an item has a strong one.
Array from_list(PyObject* list, const Role& role, std::optional<DType> dtype) {
  const Array result = listed(list, role);
  const DType target = dtype.value_or(default_dtype(result));
  if (result.aval().type() == WeakDType{target, false}) return result;
  if (!result.aval().weak) return lax::convert_element_type(result, target);
  return result.is_concrete() ? cast_now(result, target, false, role)
                              : narrowed(result, target, false, role.to_string());
}

Array from_range(PyObject* range, const Role& role, DType dtype) {
  auto number = [&](const char* name) {
    return to_dim(owned(PyObject_GetAttrString(range, name)).ptr(), role);
  };
  const Dim start = number("start"), step = number("step");
  const Py_ssize_t size = PyObject_Length(range);
  if (size < 0) {
    PyErr_Clear();
    throw ShapeError(role.prefix() + text_of(range) + " has too many numbers",
                     "give a shorter range");
  }
  TraceScope outside(nullptr);
  const Array counted = lax::iota(DType::int64, Shape{size}, 0);
  const Array numbers = Operand(counted) * Array(step) + Array(start);
  return narrowed(numbers, dtype, false, role.to_string());
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
      throw ValueError("the integer " + text_of(object) + " does not fit 64 bits",
                       "use a smaller integer, or a float");
    }
    return Array::literal(Literal{DType::uint64, true, std::int64_t(bits), 0, 0});
  }
  if (PyComplex_CheckExact(object))
    return Array(complex128(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  return std::nullopt;
}

}  // namespace

namespace {

// How to make numbers of it.
const char* way_to_numbers(PyObject* object) {
  if (is_numpy_array(object)) {
    const std::string kind = py::str(borrowed(object).attr("dtype").attr("kind"));
    if (kind == "M" || kind == "m") return "take its integers first, as in a.astype('int64')";
    if (kind == "V") return "take a field of it, as in a['name']";
    return "convert it first, as in a.astype('float64')";
  }
  if (PyObject_HasAttrString(object, "todense")) return "call its todense first";
  if (PyIter_Check(object)) return "make a list of it first";
  if (PyUnicode_Check(object) || PyType_Check(object)) return nullptr;
  if (PyObject_HasAttrString(object, "__float__")) return "convert it with float first";
  return nullptr;
}

}  // namespace

void throw_no_array(PyObject* object, const Role& role, const std::string& why) {
  const char* const way = way_to_numbers(object);
  throw DtypeError(role.prefix() + text_of(object) + " of type " + type_name_of(object) +
                       " is no array of numbers" + why,
                   way ? way : "pass an array, a number, or a nested list of numbers");
}

std::string Role::to_string() const {
  std::string text(function);
  if (!parameter.empty())
    text += (text.empty() ? "" : ": ") + ("argument '" + std::string(parameter) + "'");
  return text;
}

std::string Role::prefix() const {
  const std::string text = to_string();
  return text.empty() ? text : text + ": ";
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

namespace {

// What comes from Python goes where other operands are.
Array free(Array array) {
  if (array.is_concrete()) set_free(std::span(&array, 1));
  return array;
}

}  // namespace

Array to_array(PyObject* object, const Role& role) {
  if (is_array(object)) return array_of(object);
  if (std::optional<Array> scalar = from_scalar(object)) return *scalar;
  if (is_numpy_array(object)) {
    Array array = free(from_numpy(object, role));
    if (conversions) conversions->made.emplace_back(array, borrowed(object));
    return array;
  }
  if (is_numpy_scalar(object)) return from_numpy_scalar(object, role);
  if (std::optional<Dim> dim = as_dim(object)) return Array(*dim);
  if (PyList_Check(object) || PyTuple_Check(object))
    return free(from_list(object, role, std::nullopt));
  if (PyFloat_Check(object)) return Array(PyFloat_AsDouble(object));
  if (PyUnicode_Check(object) || PyBytes_Check(object) || PyType_Check(object) ||
      object == Py_None || PyDict_Check(object))
    throw_no_array(object, role);
  if (PyRange_Check(object)) return free(from_range(object, role, default_int()));
  if (PyObject_HasAttrString(object, "__array__") || PyObject_CheckBuffer(object)) {
    const py::object array = owned(PyObject_CallMethod(numpy_module, "asarray", "(O)", object));
    return free(from_numpy(array.ptr(), role));
  }
  throw_no_array(object, role);
}

Array to_array_of(PyObject* object, DType dtype, const Role& role) {
  if (PyList_Check(object) || PyTuple_Check(object)) return from_list(object, role, dtype);
  if (PyRange_Check(object)) return from_range(object, role, dtype);
  const Array array = to_array(object, role);
  if (is_complex(array.dtype()) && !is_complex(dtype))
    throw DtypeError(role.prefix() + "complex values do not become " + std::string(name_of(dtype)),
                     "take .real first");
  // Narrowing checks that numbers fit. For an array, the caller asked for the conversion.
  return is_array(object) ? lax::convert_element_type(array, dtype)
                          : yielded(array, dtype, false, role.function);
}

Array to_index(PyObject* object) {
  if (!PyList_Check(object) && !PyTuple_Check(object)) return to_array(object);
  const Array indices = free(listed(object, {}));
  if (!indices.aval().weak || !indices.is_concrete()) return indices;
  return free(Array(indices.buffer()));  // of 64 bits
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
  const Buffer buffer = host_buffer_of(array).dense();
  py::tuple shape(buffer.shape().size());
  for (std::size_t i = 0; i < buffer.shape().size(); ++i) shape[i] = buffer.shape()[i];
  if (buffer.shape().size() > 64)
    throw ShapeError(
        "an array of " + std::to_string(buffer.shape().size()) + " axes for NumPy, which has 64",
        "reshape it first");
  if (array.dtype() == DType::key)
    throw DtypeError("keys of random numbers are no numbers for NumPy",
                     "take their words with random.key_data");
  const py::object holder = to_python(Array(buffer));
  const py::object made = numpy().attr("ndarray")(shape, dtype_object(buffer.dtype()), holder);
  return is_stored(array.dtype()) ? py::object(made.attr("view")(dtype_object(array.dtype())))
                                  : made;
}

// --- Dtypes --------------------------------------------------------------------------------------

py::object dtype_object(DType dtype) {
  PyObject*& cached = dtype_objects[int(dtype)];
  if (!cached) {
    const std::string name(name_of(dtype));
    py::object made =
        dtype == DType::key ? py::module_::import("plait._key_dtype").attr("KEY")
        : is_made_on_demand(dtype)
            ? numpy().attr("dtype")(py::module_::import("ml_dtypes").attr(name.c_str()))
            : numpy().attr("dtype")(name);
    cached = made.release().ptr();
  }
  return borrowed(cached);
}

DType to_dtype(PyObject* object, const Role& role) {
  if (Py_TYPE(object) != Py_TYPE(Py_None))
    for (int i = 0; i < num_dtypes; ++i)
      if (dtype_objects[i] == object) return DType(i);
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return default_float();
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return default_int();
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return default_complex();
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::bool_;
  // Types, such as np.float32, stay what they are, and live as long as they are known here.
  static auto& types = *new std::unordered_map<PyObject*, DType>;
  if (PyType_Check(object))
    if (const auto known = types.find(object); known != types.end()) return known->second;
  std::string name;
  if (PyUnicode_Check(object)) {
    name = utf8_of(object);
    if (name == "float") return default_float();
    if (name == "int") return default_int();
    if (name == "complex") return default_complex();
    if (name == "bool_") name = "bool";
  }
  std::optional<DType> found = dtype_from_name(name);
  if (std::string_view(Py_TYPE(object)->tp_name) == "KeyDType") found = DType::key;
  if (!found && object != Py_None) {
    if (PyObject* made = PyObject_CallMethod(numpy_module, "dtype", "(O)", object)) {
      const py::object dtype = py::reinterpret_steal<py::object>(made);
      found = dtype_from_name(std::string(py::str(dtype.attr("name"))));
    } else {
      PyErr_Clear();
    }
  }
  if (!found)
    throw DtypeError(role.prefix() + text_of(object) + " is no dtype that plait has",
                     "use bool, int8 ... int64, uint8 ... uint64, float16, bfloat16, float32, "
                     "float64, complex64 or complex128; or for storage int4, uint4, "
                     "float8_e4m3fn, float8_e5m2");
  constexpr std::size_t most = 64;
  if (PyType_Check(object) && types.size() < most) {
    Py_INCREF(object);
    types.emplace(object, *found);
  }
  return *found;
}

void add_convert(py::module_& module) {
  const py::module_ numpy = py::module_::import("numpy");
  numpy_module = numpy.ptr();
  Py_INCREF(numpy_module);
  ndarray_type = py::object(numpy.attr("ndarray")).release().ptr();
  generic_type = py::object(numpy.attr("generic")).release().ptr();
  dtype_type = py::object(numpy.attr("dtype")).release().ptr();
  float64_type = reinterpret_cast<PyTypeObject*>(py::object(numpy.attr("float64")).release().ptr());
  for (int i = 0; i < num_dtypes; ++i)
    if (!is_made_on_demand(DType(i))) dtype_object(DType(i));
  // A number of Python as a scalar of this dtype, which wraps what does not fit it: inline in
  // programs, or an array that they capture.
  module.def(
      "scalar",
      [](py::object number, py::object dtype, bool weak, bool is_inline) {
        const std::optional<Array> array = from_scalar(number.ptr());
        if (!array)
          throw DtypeError("scalar: " + text_of(number.ptr()) + " is no number of Python",
                           "use asarray");
        const Array made =
            Array::literal(cast(array->as_literal().value(), to_dtype(dtype.ptr()), weak));
        return to_python(is_inline ? made : make_concrete(made.aval(), made.buffer()));
      },
      py::arg("number"), py::arg("dtype"), py::arg("weak"), py::arg("is_inline") = true);
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
        const Role role{"asarray"};
        const Array made =
            dtype.is_none()
                ? to_array(a.ptr(), role)
                : to_array_of(a.ptr(), to_dtype(dtype.ptr(), {"asarray", "dtype"}), role);
        // It is asked for here, not as an operand that goes where the others are.
        const bool is_here = is_array(a.ptr()) || !made.is_concrete() || made.ndim() == 0;
        return to_python(is_here ? made : moved_to(made, made.buffer().device()));
      },
      py::arg("a"), py::arg("dtype") = py::none(), py::arg("copy") = py::none());
  module.def("check_order", [](const std::string& function, const std::string& order) {
    if (order != "C" && order != "K" && order != "A")
      throw ValueError(function + ": argument 'order' is '" + order + "'",
                       "arrays are in row-major order: leave it out");
  });
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
