// Properties, methods and subscripts of Array. Methods that are also functions of numpy come from
// the catalogue (builtin.cpp); the others are here.
// SPDX-License-Identifier: Apache-2.0
#include "array.h"
#include "convert/lists.h"

#include <plait/base/stored.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>
#include <plait/trace/donated.h>
#include <plait/transforms/tape.h>

#include <cstring>

namespace plait::python {
namespace {

// --- Subscripts ----------------------------------------------------------------------------------

std::optional<Dim> range_end(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  return to_dim(object, {"slice"});
}

void add_subscript(Subscripts& subscripts, PyObject* key) {
  if (key == Py_None)
    subscripts.emplace_back(NewAxis{});
  else if (key == Py_Ellipsis)
    subscripts.emplace_back(Ellipsis{});
  else if (PyBool_Check(key))
    subscripts.emplace_back(Array(key == Py_True));
  else if (std::optional<Dim> dim = as_dim(key))
    subscripts.emplace_back(*dim);
  else if (PySlice_Check(key)) {
    auto* slice = reinterpret_cast<PySliceObject*>(key);
    subscripts.emplace_back(
        Range{range_end(slice->start), range_end(slice->stop), range_end(slice->step)});
  } else if (is_array(key) || is_numpy_array(key) || is_numpy_scalar(key) || PyList_Check(key) ||
             PyTuple_Check(key)) {
    Array array = to_index(key);
    if (array.ndim() == 0 && is_integer(array.dtype()) && array.is_concrete())
      subscripts.emplace_back(Dim(array.item<std::int64_t>()));
    else if (is_floating(array.dtype()) && array.shape().num_elements() == Dim(0))
      subscripts.emplace_back(lax::convert_element_type(array, DType::int32));
    else
      subscripts.emplace_back(std::move(array));
  } else if (PyIndex_Check(key)) {
    subscripts.emplace_back(to_dim(key));
  } else {
    throw DtypeError("an array was indexed with " + text_of(key) + " of type " + type_name_of(key),
                     "index with integers, slices, None, ..., and arrays of integers or booleans");
  }
}

}  // namespace

Subscripts to_subscripts(PyObject* key) {
  Subscripts subscripts;
  if (PyTuple_Check(key))
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      add_subscript(subscripts, PyTuple_GET_ITEM(key, i));
  else
    add_subscript(subscripts, key);
  return subscripts;
}

namespace {

// --- Text ----------------------------------------------------------------------------------------

std::string trace_text(const Array& array) {
  for (Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (trace->owns(array)) return " in " + std::string(trace->name());
  return ", whose trace has ended";
}

bool is_donated(const Array& array) {
  return dynamic_cast<const DonatedNode*>(array.node()) != nullptr;
}

std::string traced_text(const Array& array) {
  if (const auto* donated = dynamic_cast<const DonatedNode*>(array.node()))
    return "Array<" + array.aval().to_string() + ", donated to " + donated->function + ">";
  return "Traced<" + array.aval().to_string() + trace_text(array) + ">";
}

std::string values_text(const Array& array, const char* before, const char* separator) {
  if (array.dtype() == DType::key)
    return "keys of words " + values_text(Array(array.numbers()), before, separator);
  const py::module_ numpy = py::module_::import("numpy");
  return py::str(numpy.attr("array2string")(to_numpy(array), py::arg("separator") = separator,
                                            py::arg("prefix") = before));
}

// --- Properties ----------------------------------------------------------------------------------

template <py::object (*read)(const Array&)>
PyObject* property(PyObject* self, void*) {
  return guarded([&] { return read(array_of(self)).release().ptr(); });
}

py::object shape_of(const Array& array) { return shape_object(array.shape()); }
py::object dtype_of_array(const Array& array) { return dtype_object(array.dtype()); }
py::object ndim_of(const Array& array) { return py::int_(array.ndim()); }
py::object size_of_array(const Array& array) { return dim_object(array.shape().num_elements()); }
py::object nbytes_of(const Array& array) {
  return dim_object(array.shape().num_elements() * Dim(size_of(array.dtype())));
}
py::object itemsize_of(const Array& array) { return py::int_(size_of(array.dtype())); }
py::object weak_of(const Array& array) { return py::bool_(array.aval().weak); }
py::object aval_of(const Array& array) { return aval_object(array.aval()); }
py::object device_of_array(const Array& array) { return device_object(device_of(array)); }

// The views that properties return.
enum class Viewed { reversed, matrix_transposed, real, imag };

Array transposed(const Array& array, int axes) {
  std::vector<int> permutation;
  for (int i = 0; i < array.ndim() - axes; ++i) permutation.push_back(i);
  for (int i = 0; i < axes; ++i) permutation.push_back(array.ndim() - 1 - i);
  return lax::transpose(array, permutation);
}

Array viewed(const Array& array, Viewed how) {
  switch (how) {
    case Viewed::reversed:
      return transposed(array, array.ndim());
    case Viewed::matrix_transposed:
      if (array.ndim() < 2)
        throw ShapeError("mT of an array of rank " + std::to_string(array.ndim()),
                         "only arrays of matrices have a matrix transpose");
      return transposed(array, 2);
    case Viewed::real:
      return is_complex(array.dtype()) ? lax::real(array) : array;
    default:
      return is_complex(array.dtype()) ? lax::imag(array) : lax::zeros_like(array.aval());
  }
}

template <Viewed how>
PyObject* view_property(PyObject* self, void*) {
  return guarded([&] {
    static constexpr const char* functions[] = {"transpose", "matrix_transpose", "real", "imag"};
    static const auto call = std::make_shared<const ViewCall>(
        ViewCall{find_function("numpy", functions[int(how)]), {Argument()}});
    const Array& array = array_of(self);
    const bool is_new = how == Viewed::imag && !is_complex(array.dtype());
    return wrap_view(reinterpret_cast<ArrayObject*>(self), {{}, call}, viewed(array, how),
                     is_new ? "imag of real numbers" : nullptr);
  });
}

template <Viewed how>
int set_view(PyObject* self, PyObject* value, void*) {
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "parts of an array cannot be deleted");
    return -1;
  }
  PyObject* view = view_property<how>(self, nullptr);
  if (!view) return -1;
  const py::object keep = py::reinterpret_steal<py::object>(view);
  return set_all(view, value);
}

// --- x.at ----------------------------------------------------------------------------------------

struct At {
  Array array;
};
struct AtIndex {
  Array array;
  Subscripts subscripts;
};

SubscriptOptions options_of(const std::optional<std::string>& mode,
                            std::optional<double> fill_value, bool unique, bool sorted) {
  SubscriptOptions options{std::nullopt, fill_value, unique, sorted};
  if (!mode) return options;
  if (*mode == "raise")
    options.mode = lax::GatherScatterMode::check;
  else if (*mode == "clip")
    options.mode = lax::GatherScatterMode::clip;
  else if (*mode == "fill" || *mode == "drop")
    options.mode = lax::GatherScatterMode::fill;
  else if (*mode == "promise" || *mode == "promise_in_bounds")
    options.mode = lax::GatherScatterMode::promise;
  else
    throw ValueError("x.at[...]: mode is '" + *mode + "'",
                     "choose 'raise', 'fill', 'drop', 'clip' or 'promise'");
  return options;
}

Array ones_like(const Array& array) {
  const Literal one{DType::int64, false, 1, 0, 0};
  return broadcast_to(Array::literal(cast(one, array.dtype(), array.aval().weak)), array.shape());
}

void add_at(py::module_& module) {
  py::class_<At>(module, "At", "x.at: places of an array, for updates that give a new array.")
      .def("__getitem__",
           [](const At& at, py::object key) { return AtIndex{at.array, to_subscripts(key.ptr())}; })
      .def("__call__", [](const At&, py::args index, py::kwargs) -> py::object {
        const std::string text = index.size() == 1 ? text_of(py::object(index[0]).ptr()) : "...";
        throw DtypeError("x.at(" + text + "): x.at takes an index in brackets",
                         "write x.at[" + text + "].set(value)");
      });
  py::class_<AtIndex> type(
      module, "AtIndex",
      "x.at[index]: set, add, multiply, ... give the array with those elements changed.");
  using Mode = std::optional<std::string>;
  auto method = [&](const char* name, auto body, const char* doc) {
    type.def(
        name,
        [body](const AtIndex& at, py::object values, std::optional<std::string> mode, bool unique,
               bool sorted, py::object) {
          return to_python(body(at, to_array(values.ptr(), {"x.at[...]"}),
                                options_of(mode, {}, unique, sorted)));
        },
        doc, py::arg("values"), py::kw_only(), py::arg("mode") = Mode(),
        py::arg("unique_indices") = false, py::arg("indices_are_sorted") = false,
        py::arg("wrap_negative_indices") = true);
  };
  auto simple = [&](const char* name, UpdateKind kind, const char* doc) {
    method(
        name,
        [kind](const AtIndex& at, const Array& values, const SubscriptOptions& options) {
          return update_item(at.array, at.subscripts, values, kind, options);
        },
        doc);
  };
  simple("set", UpdateKind::set, "x with x[index] = values.");
  simple("add", UpdateKind::add,
         "x with x[index] += values; places that are named twice take both.");
  simple("multiply", UpdateKind::multiply, "x with x[index] *= values.");
  simple("mul", UpdateKind::multiply, "x with x[index] *= values.");
  simple("min", UpdateKind::min, "x with x[index] = minimum(x[index], values).");
  simple("max", UpdateKind::max, "x with x[index] = maximum(x[index], values).");
  method(
      "subtract",
      [](const AtIndex& at, const Array& values, const SubscriptOptions& options) {
        return update_item(at.array, at.subscripts, -Operand(values), UpdateKind::add, options);
      },
      "x with x[index] -= values.");
  method(
      "divide",
      [](const AtIndex& at, const Array& values, const SubscriptOptions& options) {
        if (!is_inexact(at.array.dtype()))
          throw DtypeError("x.at[...].divide of dtype " + std::string(name_of(at.array.dtype())),
                           "convert x with .astype(float) first");
        return Operand(at.array) / update_item(ones_like(at.array), at.subscripts, values,
                                               UpdateKind::multiply, options);
      },
      "x with x[index] /= values.");
  method(
      "power",
      [](const AtIndex& at, const Array& values, const SubscriptOptions& options) {
        const Array exponents =
            update_item(ones_like(at.array), at.subscripts, values, UpdateKind::multiply, options);
        return lax::pow(at.array, exponents);
      },
      "x with x[index] **= values.");
  type.def(
      "get",
      [](const AtIndex& at, std::optional<std::string> mode, std::optional<double> fill_value,
         bool unique, bool sorted, py::object) {
        return to_python(
            getitem(at.array, at.subscripts, options_of(mode, fill_value, unique, sorted)));
      },
      "x[index], with a say about indices outside.", py::kw_only(), py::arg("mode") = Mode(),
      py::arg("fill_value") = std::optional<double>(), py::arg("unique_indices") = false,
      py::arg("indices_are_sorted") = false, py::arg("wrap_negative_indices") = true);
  type.def(
      "apply",
      [](const AtIndex& at, py::object function) {
        const py::object now = to_python(getitem(at.array, at.subscripts));
        return to_python(update_item(at.array, at.subscripts,
                                     to_array(function(now).ptr(), {"x.at[...].apply"}),
                                     UpdateKind::set));
      },
      "x with x[index] = function(x[index]).", py::arg("func"));
}

PyObject* get_at(PyObject* self, void*) {
  return guarded([&] { return py::cast(At{array_of(self)}).release().ptr(); });
}

// --- Methods -------------------------------------------------------------------------------------

PyObject* item(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Array array = read_by_python(array_of(self));
    if (count > 0) {
      const bool spread = count == 1 && PyTuple_Check(arguments[0]);
      Subscripts subscripts;
      if (spread)
        subscripts = to_subscripts(arguments[0]);
      else
        for (Py_ssize_t i = 0; i < count; ++i) add_subscript(subscripts, arguments[i]);
      // A single integer indexes the flattened array.
      if (!spread && count == 1 && array.ndim() != 1)
        array = lax::reshape(array, {array.shape().num_elements()});
      array = getitem(array, subscripts);
    }
    if (is_complex(array.dtype())) {
      const complex128 value = array.item<complex128>();
      return PyComplex_FromDoubles(value.real(), value.imag());
    }
    if (is_inexact(array.dtype()) || is_float8(array.dtype()))
      return PyFloat_FromDouble(array.item<double>());
    if (array.dtype() == DType::bool_) return PyBool_FromLong(array.item<bool>());
    if (array.dtype() == DType::uint64)
      return PyLong_FromUnsignedLongLong(std::uint64_t(array.item<std::int64_t>()));
    return PyLong_FromLongLong(array.item<std::int64_t>());
  });
}

PyObject* to_complex(PyObject* self, PyObject*) {
  return guarded([&] {
    const complex128 value = read_by_python(array_of(self)).item<complex128>();
    return PyComplex_FromDoubles(value.real(), value.imag());
  });
}

PyObject* tolist(PyObject* self, PyObject*) {
  return guarded(
      [&] { return to_numpy(read_by_python(array_of(self))).attr("tolist")().release().ptr(); });
}

PyObject* block(PyObject* self, PyObject*) {
  return guarded([&] {
    const Array& array = array_of(self);
    if (!plait::device_of(array).is_host())
      without_gil([&] { block_until_ready(std::span(&array, 1)); });
    return Py_NewRef(self);
  });
}

PyObject* to_device(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    PyObject* wanted = count > 0 ? arguments[0] : nullptr;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      const std::string name = utf8_of(PyTuple_GET_ITEM(names, i));
      if (name == "device")
        wanted = arguments[count + i];
      else if (name != "stream")
        throw DtypeError("to_device: there is no argument '" + name + "'",
                         "call it as to_device(device, stream=None)");
      else if (arguments[count + i] != Py_None)
        throw ValueError("to_device: argument 'stream' is given",
                         "leave it out: copies are in the order of plait's own stream");
    }
    if (!wanted)
      throw DtypeError("to_device: argument 'device' is missing", "call it as to_device('cpu')");
    const Device device = Device::named(std::string(py::str(borrowed(wanted))));
    Array moved = device_put(array_of(self), device);
    return moved.is_same(array_of(self)) ? Py_NewRef(self) : wrap(std::move(moved));
  });
}

PyObject* namespace_of(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const bool given = count > 0 || (names && PyTuple_GET_SIZE(names) > 0);
    if (given && arguments[0] != Py_None) {
      const std::string version = py::str(borrowed(arguments[0]));
      if (version != "2021.12" && version != "2022.12" && version != "2023.12" &&
          version != "2024.12" && version != "2025.12")
        throw ValueError("__array_namespace__: there is no version " + version +
                             " of the array-API standard here",
                         "ask for '2025.12', or for none");
    }
    return py::module_::import("plait.numpy").release().ptr();
  });
}

PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const Array& array = array_of(self);
    const py::object rebuild = py::module_::import("plait._plait").attr("rebuild_array");
    const Buffer buffer = host_buffer_of(array).dense();
    const py::bytes data(static_cast<const char*>(buffer.data()), buffer.bytes());
    py::tuple shape(buffer.shape().size());
    for (std::size_t i = 0; i < buffer.shape().size(); ++i) shape[i] = buffer.shape()[i];
    return py::make_tuple(rebuild, py::make_tuple(data, std::string(name_of(array.dtype())), shape,
                                                  array.aval().weak))
        .release()
        .ptr();
  });
}

PyObject* format(PyObject* self, PyObject* specification) {
  return guarded([&]() -> PyObject* {
    const Array& array = array_of(self);
    if (PyUnicode_GetLength(specification) == 0) return text(self);
    if (array.ndim() != 0)
      throw DtypeError("format of an array of type " + array.aval().to_string(),
                       "format one element, such as x.item()");
    const py::object number = owned(item(self, nullptr, 0));
    return PyObject_Format(number.ptr(), specification);
  });
}

PyObject* astype(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* dtype = count > 0 ? arguments[0] : nullptr;
    std::optional<Device> device;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
      const std::string name = utf8_of(PyTuple_GET_ITEM(names, i));
      if (name == "dtype")
        dtype = arguments[count + i];
      else if (name == "device")
        device = Device::named(std::string(py::str(borrowed(arguments[count + i]))));
      else if (name != "copy")
        throw DtypeError("astype: there is no argument '" + name + "'",
                         "call it as astype(dtype, copy=True)");
    }
    if (!dtype)
      throw DtypeError("astype: argument 'dtype' is missing",
                       "call it as astype(dtype, copy=True)");
    const DType target = to_dtype(dtype, {"astype"});
    Array array = array_of(self);
    if (is_complex(array.dtype()) && !is_complex(target)) array = lax::real(array);
    array = lax::convert_element_type(array, target);
    return wrap(device ? device_put(array, *device) : array);
  });
}

// __array_ufunc__ and __array_function__ are Python.
PyObject* by_protocol(const char* name, PyObject* self, PyObject* arguments, PyObject* names) {
  return guarded([&] {
    const py::object body = py::module_::import("plait._protocols").attr(name);
    const py::object first = py::make_tuple(borrowed(self));
    const py::object all = owned(PySequence_Concat(first.ptr(), arguments));
    return PyObject_Call(body.ptr(), all.ptr(), names);
  });
}
PyObject* array_ufunc(PyObject* self, PyObject* arguments, PyObject* names) {
  return by_protocol("array_ufunc", self, arguments, names);
}
PyObject* array_function(PyObject* self, PyObject* arguments, PyObject* names) {
  return by_protocol("array_function", self, arguments, names);
}

template <class F>
PyCFunction function(F* body) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(body));
}

}  // namespace

PyGetSetDef array_getset[] = {
    {"shape", property<shape_of>, nullptr,
     "Sizes of the axes: integers, or plait.Size where named.", nullptr},
    {"dtype", property<dtype_of_array>, nullptr, "The NumPy dtype of the elements.", nullptr},
    {"ndim", property<ndim_of>, nullptr, "How many axes there are.", nullptr},
    {"size", property<size_of_array>, nullptr, "How many elements there are.", nullptr},
    {"nbytes", property<nbytes_of>, nullptr, "Bytes of all elements.", nullptr},
    {"itemsize", property<itemsize_of>, nullptr, "Bytes of one element.", nullptr},
    {"weak_type", property<weak_of>, nullptr,
     "Whether the dtype came from Python numbers alone and yields to others.", nullptr},
    {"aval", property<aval_of>, nullptr, "Shape and dtype, as a ShapeDtypeStruct.", nullptr},
    {"T", view_property<Viewed::reversed>, nullptr, "A view with the axes reversed.", nullptr},
    {"mT", view_property<Viewed::matrix_transposed>, nullptr,
     "A view with the last two axes exchanged.", nullptr},
    {"real", view_property<Viewed::real>, set_view<Viewed::real>, "A view of the real part.",
     nullptr},
    {"imag", view_property<Viewed::imag>, set_view<Viewed::imag>,
     "A view of the imaginary part; of real numbers zeros, which cannot be written to.", nullptr},
    {"device", property<device_of_array>, nullptr, "Where the memory is: \"cpu:0\".", nullptr},
    {"grad", grad_attribute, set_grad_attribute,
     "Of a variable: the sum of the gradients of every backward, or None before the first.",
     nullptr},
    {"requires_grad", requires_grad_attribute, nullptr,
     "Whether the array is on the tape: a variable, or made of one.", nullptr},
    {"at", get_at, nullptr, "x.at[index].set(v) and others: the array with elements changed.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* is_deleted(PyObject* self, PyObject*) {
  return guarded([&] { return PyBool_FromLong(is_donated(array_of(self))); });
}

PyMethodDef array_methods[] = {
    {"item", function(item), METH_FASTCALL,
     "item(*index)\n--\n\nThe only element, or that at an index (one integer counts all elements "
     "in a "
     "row), as a Python number."},
    {"tolist", tolist, METH_NOARGS, "tolist()\n--\n\nNested lists of Python numbers."},
    {"astype", function(astype), METH_FASTCALL | METH_KEYWORDS,
     "astype(dtype, copy=True)\n--\n\nThe array with elements converted."},
    {"copy", copy, METH_NOARGS,
     "copy()\n--\n\nThe same value under a handle of its own: writing to one leaves the other."},
    {"to_device", function(to_device), METH_FASTCALL | METH_KEYWORDS,
     "to_device(device, *, stream=None)\n--\n\nThe array on a device: itself, or a copy."},
    {"block_until_ready", block, METH_NOARGS,
     "block_until_ready()\n--\n\nThe array, once it is computed; on the CPU it is."},
    {"is_deleted", is_deleted, METH_NOARGS,
     "is_deleted()\n--\n\nWhether the array was donated to a jitted function."},
    {"backward", function(backward_method), METH_VARARGS | METH_KEYWORDS,
     "backward(cotangent=None, retain_graph=False, create_graph=False)\n--\n\nAdds the derivative "
     "of the array, times the cotangent, to the grad of every variable it was made of.\n\n"
     "retain_graph keeps what another backward needs, create_graph records the gradients too.\n"
     "ShapeError without a cotangent where the array is no scalar, or for one that does not fit;\n"
     "ValueError where no variable leads to the array, or an earlier backward freed the tape."},
    {"detach", detach_method, METH_NOARGS,
     "detach()\n--\n\nThe same value off the tape: no gradient flows through it. It cannot be "
     "written to,\nand keeps its value when the array is."},
    {"register_hook", register_hook_method, METH_O,
     "register_hook(hook)\n--\n\nCalls hook(gradient) in each backward, when all of the gradient "
     "by this array is known.\n\nWhat it returns, if not None, replaces the gradient. The result "
     "has remove(). A hook that\nrefers to the array keeps it alive until it is removed."},
    {"__copy__", copy, METH_NOARGS, nullptr},
    {"__deepcopy__", deepcopy, METH_O, nullptr},
    {"__complex__", to_complex, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__format__", format, METH_O, nullptr},
    {"__array__", function(array_method), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__array_ufunc__", function(array_ufunc), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_function__", function(array_function), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__array_namespace__", function(namespace_of), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack__", function(to_dlpack), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyObject* repr(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Array& array = array_of(self);
    if (!array.is_concrete()) return py::str(traced_text(array)).release().ptr();
    std::string text = "Array(" + values_text(array, "Array(", ", ") +
                       ", dtype=" + std::string(name_of(array.dtype()));
    if (array.shape().num_elements() == Dim(0))
      text += ", shape=(" + array.shape().to_string() + ")";
    if (array.aval().weak) text += ", weak_type=True";
    if (requires_grad(array)) text += ", requires_grad=True";
    return py::str(text + ")").release().ptr();
  });
}

PyObject* text(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Array& array = array_of(self);
    if (is_donated(array) || !array.known_buffer())
      return py::str(traced_text(array)).release().ptr();
    return py::str(values_text(array, "", " ")).release().ptr();
  });
}

std::optional<Array> element_at(const Array& array, std::span<const std::int64_t> indices) {
  if (int(indices.size()) != array.ndim() || !array.node()->is_plain() || Trace::current() ||
      !array.aval().varying.empty())
    return std::nullopt;
  const Buffer& buffer = static_cast<const ConcreteNode*>(array.node())->buffer;
  if (buffer.where() & Buffer::apart_bit) return std::nullopt;
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    const std::int64_t size = buffer.shape()[axis],
                       index = indices[axis] < 0 ? indices[axis] + size : indices[axis];
    if (index < 0 || index >= size) return std::nullopt;
    place += index * buffer.strides()[axis];
  }
  Buffer element = Buffer::empty(buffer.dtype(), {});
  element.set_free(buffer.is_free());
  const std::size_t bytes = size_of(buffer.dtype());
  std::memcpy(element.mutable_data(),
              static_cast<const char*>(buffer.placed().data) + place * std::int64_t(bytes), bytes);
  return make_concrete({{}, array.dtype(), array.aval().weak}, std::move(element));
}

namespace {

// The same for the contents of brackets: nothing where they are no integers alone.
std::optional<Array> element_by(const Array& array, PyObject* key) {
  PyObject* const* entries = &key;
  Py_ssize_t count = 1;
  if (PyTuple_CheckExact(key)) {
    count = PyTuple_GET_SIZE(key);
    entries = reinterpret_cast<PyTupleObject*>(key)->ob_item;
  }
  if (count != array.ndim()) return std::nullopt;
  Sizes64 indices;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!PyLong_CheckExact(entries[i])) return std::nullopt;
    int overflow = 0;
    indices.push_back(PyLong_AsLongLongAndOverflow(entries[i], &overflow));
    if (overflow) return std::nullopt;
  }
  return element_at(array, std::span<const std::int64_t>(indices.begin(), indices.end()));
}

}  // namespace

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&] {
    Source::forget_line();
    if (std::optional<Array> element = element_by(array_of(self), key))
      return wrap(*std::move(element));
    Subscripts subscripts = to_subscripts(key);
    Array array = getitem(array_of(self), subscripts);
    return wrap_item(self, std::move(subscripts), std::move(array));
  });
}

void add_access(py::module_& module) {
  add_at(module);
  PyObject* type = reinterpret_cast<PyObject*>(array_type);
  // For libraries that ask it whose result an operation is; NumPy asks __array_ufunc__.
  if (PyObject_SetAttrString(type, "__array_priority__", py::int_(100).ptr()) < 0)
    throw py::error_already_set();
  module.def("rebuild_array",
             [](py::buffer data, const std::string& dtype, py::tuple shape, bool weak) {
               Sizes64 sizes;
               for (py::handle dim : shape) sizes.push_back(dim.cast<std::int64_t>());
               const DType type = dtype_from_name(dtype).value();
               Buffer buffer = Buffer::empty(carrier_of(type), sizes);
               const py::buffer_info bytes = data.request();
               if (bytes.ndim != 1 || bytes.itemsize != 1 || bytes.size != buffer.bytes())
                 throw ValueError("a pickled array is damaged", "");
               if (bytes.size > 0) std::memcpy(buffer.mutable_data(), bytes.ptr, bytes.size);
               const Aval aval{Shape::of(sizes), type, weak};
               return to_python(make_concrete(aval, std::move(buffer)));
             });
  module.def("node_of", [](py::object array) {
    return reinterpret_cast<std::uintptr_t>(array_of(array.ptr()).node());
  });
}

}  // namespace plait::python
