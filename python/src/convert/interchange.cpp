// Exchange of arrays with other libraries: the buffer protocol, __array__, and DLPack in both
// directions without copies.
//
// Exported memory is read-only. Memory that DLPack imports is shared: its owner must not write to
// it. On a device, the library that takes memory names a stream, and the one that gives it orders
// this stream behind its own work (plait/base/exchange.h).
// SPDX-License-Identifier: Apache-2.0
#include "array/array.h"
#include "base/buffer_error.h"

#include <plait/base/driver.h>
#include <plait/base/exchange.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>
#include <plait/transforms/jvp_interpreter.h>

namespace plait::python {
namespace {

// The C structures of DLPack (github.com/dmlc/dlpack), versions 0 and 1.
struct DLDevice {
  std::int32_t device_type, device_id;
  bool operator==(const DLDevice&) const = default;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* owner;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* owner;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
constexpr std::int32_t cpu_device = 1, cuda_host_device = 3, rocm_host_device = 11;
constexpr std::uint64_t read_only_flag = 1, copied_flag = 2;
constexpr std::int64_t legacy_stream = 1, no_stream = -1;
enum Code : std::uint8_t {
  int_code = 0,
  uint_code = 1,
  float_code = 2,
  bfloat_code = 4,
  complex_code = 5,
  bool_code = 6
};

DLDataType type_code(DType dtype) {
  Code code = float_code;
  if (dtype == DType::bool_)
    code = bool_code;
  else if (dtype == DType::bfloat16)
    code = bfloat_code;
  else if (is_signed_integer(dtype))
    code = int_code;
  else if (is_unsigned_integer(dtype))
    code = uint_code;
  else if (is_complex(dtype))
    code = complex_code;
  return {code, std::uint8_t(size_of(dtype) * 8), 1};
}

std::optional<DType> dtype_of_code(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (int i = 0; i < num_computing_dtypes; ++i) {
    const DLDataType here = type_code(DType(i));
    if (here.code == type.code && here.bits == type.bits) return DType(i);
  }
  return std::nullopt;
}

// --- Devices by their numbers --------------------------------------------------------------------

DLDevice number_of(Device device) {
  const Driver* driver = driver_of(device.kind);
  return {driver ? driver->dlpack_type() : cpu_device, device.index};
}

// The device that plait has under these numbers. Host memory that a device copies is the host's.
std::optional<Device> device_of_number(DLDevice number) {
  for (const std::int32_t host : {cpu_device, cuda_host_device, rocm_host_device})
    if (number.device_type == host) return Device{};
  for (const Device device : devices())
    if (number_of(device) == number) return device;
  return std::nullopt;
}

// "cuda:0", also where plait has no such device.
std::string device_text(DLDevice number) {
  if (const std::optional<Device> device = device_of_number(number)) return device->to_string();
  const auto index = ":" + std::to_string(number.device_id);
  switch (number.device_type) {
    case 2:
      return "cuda" + index;
    case 8:
      return "metal" + index;
    case 10:
      return "rocm" + index;
    case 13:
      return "managed memory of cuda" + index;
    default:
      return "a device of DLPack's kind " + std::to_string(number.device_type) + ", number " +
             std::to_string(number.device_id);
  }
}

std::string names_of_devices() {
  std::string names;
  for (const Device device : devices()) names += (names.empty() ? "" : ", ") + device.to_string();
  return names;
}

std::optional<DLDevice> to_number(py::handle object) {
  if (!PyTuple_Check(object.ptr()) || PyTuple_GET_SIZE(object.ptr()) != 2) return std::nullopt;
  // Enumerations of other libraries are integers.
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(object.ptr(), 0));
  const long id = PyLong_AsLong(PyTuple_GET_ITEM(object.ptr(), 1));
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  return DLDevice{std::int32_t(type), std::int32_t(id)};
}

// --- Tensors -------------------------------------------------------------------------------------

// stream: that which the other library reads the memory on, where it is on a device.
template <class Managed>
struct Export {
  ~Export() {
    if (stream) note_foreign_read(buffer.storage(), *stream);
  }
  Buffer buffer;
  std::optional<std::int64_t> stream;
  Sizes64 shape, strides;
  Managed managed;
};

template <class Managed>
Managed* make_export(const Buffer& buffer, std::optional<std::int64_t> stream, bool copied) {
  auto* made = new Export<Managed>{buffer, stream, buffer.shape(), buffer.strides(), {}};
  made->managed.tensor = {buffer.placed().data,
                          number_of(buffer.device()),
                          std::int32_t(made->shape.size()),
                          type_code(buffer.dtype()),
                          made->shape.begin(),
                          made->strides.begin(),
                          0};
  made->managed.owner = made;
  made->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->owner); };
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    made->managed.major = 1;
    made->managed.minor = 0;
    made->managed.flags = copied ? copied_flag : read_only_flag;
  }
  return &made->managed;
}

template <class Managed>
void destroy_capsule(PyObject* capsule) {
  constexpr const char* name =
      std::is_same_v<Managed, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
  if (!PyCapsule_IsValid(capsule, name)) return;  // taken over
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

// Refuses invalid tensors before their memory is read.
void check_layout(const DLTensor& tensor, std::int64_t itemsize) {
  auto fail = [](const std::string& what) {
    throw ValueError("from_dlpack: " + what, "report this to the library that made the tensor");
  };
  if (tensor.ndim < 0 || tensor.ndim > 64)
    fail("a tensor of " + std::to_string(tensor.ndim) + " axes");
  if (tensor.ndim > 0 && !tensor.shape) fail("a tensor without sizes");
  std::int64_t bytes = itemsize;
  bool overflows = false, empty = false;
  for (int i = 0; i < tensor.ndim; ++i) {
    const std::int64_t size = tensor.shape[i];
    if (size < 0) fail("axis " + std::to_string(i) + " has size " + std::to_string(size));
    empty |= size == 0;
    overflows |= size > 0 && __builtin_mul_overflow(bytes, size, &bytes);
    std::int64_t reach = 0;
    overflows |= tensor.strides && (__builtin_mul_overflow(tensor.strides[i], size, &reach) ||
                                    __builtin_mul_overflow(reach, itemsize, &reach));
  }
  if (overflows) fail("a tensor whose elements do not fit into memory");
  if (!empty && !tensor.data) fail("a tensor without memory");
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  if (!empty && address % std::uintptr_t(std::min<std::int64_t>(itemsize, 8)) != 0)
    throw ValueError("from_dlpack: the memory is not aligned to its elements",
                     "copy the array first");
}

template <class Managed>
Array take_over(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>)
    if (managed->major != 1)
      throw BackendError("from_dlpack: the tensor follows DLPack " + std::to_string(managed->major),
                         "make it with DLPack 1 or older");
  const DLTensor& tensor = managed->tensor;
  const std::optional<Device> device = device_of_number(tensor.device);
  if (!device)
    throw BufferError("from_dlpack: the memory is on " + device_text(tensor.device) +
                          ", which plait does not have here",
                      "copy it to the host first; the devices are: " + names_of_devices());
  const std::optional<DType> dtype = dtype_of_code(tensor.dtype);
  if (!dtype)
    throw DtypeError("from_dlpack: elements of code " + std::to_string(tensor.dtype.code) +
                         " and " + std::to_string(tensor.dtype.bits) + " bits",
                     "convert them first");
  View view{static_cast<char*>(tensor.data) + tensor.byte_offset, *dtype, {}, {}};
  check_layout(tensor, size_of(*dtype));
  for (int i = 0; i < tensor.ndim; ++i) view.shape.push_back(tensor.shape[i]);
  if (tensor.strides)
    for (int i = 0; i < tensor.ndim; ++i) view.strides.push_back(tensor.strides[i]);
  else
    view.strides = dense_strides(view.shape);
  PyCapsule_SetName(capsule, used);
  const std::size_t bytes = num_elements(view.shape) * size_of(*dtype);
  auto release = [managed] {
    if (!managed->deleter || !Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    managed->deleter(managed);
    PyGILState_Release(state);
  };
  if (device->is_host()) return Array(Buffer(Storage::foreign(view.data, bytes, release), view));
  return Array(
      Buffer(lent_storage(view.data, bytes, Stream::current(*device), std::move(release)), view));
}

// The named arguments of a METH_FASTCALL|METH_KEYWORDS method.
template <class Visit>
void each_keyword(PyObject* const* arguments, Py_ssize_t count, PyObject* names, Visit&& visit) {
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    visit(utf8_of(PyTuple_GET_ITEM(names, i)), arguments[count + i]);
}

const char* format_of(DType dtype) {
  static constexpr const char* formats[] = {"?", "b", "h",     "i", "q", "B",  "H", "I",
                                            "Q", "e", nullptr, "f", "d", "Zf", "Zd"};
  return formats[int(dtype)];
}

bool is_of_running_trace(const Array& array) {
  for (const Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (trace->owns(array)) return true;
  return false;
}

// The array that another library asks for. TracerError if it is traced, or if the library would
// lose its derivative.
void require_form(const Array& array) {
  if (is_stored(array.dtype()))
    throw BufferError("an array of dtype " + std::string(name_of(array.dtype())) +
                          " has no form that other libraries read",
                      array.dtype() == DType::key
                          ? "take the words of keys with random.key_data"
                          : "take numpy.asarray(x), or its bits with lax.bitcast_convert_type");
}

const Array& exported(PyObject* self) {
  const Array& array = read_by_python(array_of(self));
  if (carries_tangent(array))
    throw TracerError("an array of type " + array.aval().to_string() +
                          ", whose derivative is being taken, was given to NumPy or another "
                          "library, which would lose the derivative",
                      "use the function of plait.numpy, host_call with a rule, or "
                      "plait.stop_gradient(x) where the value alone is meant");
  if (!array.is_concrete() && !array.known_buffer()) {
    try {
      array.buffer();
    } catch (const TracerError& error) {
      if (!is_of_running_trace(array)) throw;  // the error says why
      throw TracerError("a traced array was given to NumPy or another library: " + error.problem(),
                        "use the function of plait.numpy, plait.host_call, or plait.script on the "
                        "function; or keep this code outside");
    }
  }
  return array;
}

struct BufferExport {
  Buffer buffer;
  Py_ssize_t shape[64], strides[64];
};

}  // namespace

namespace {

// NumPy asks for a buffer first, drops whatever this raises, and goes on with __array__. What has
// interrupted the wait for an array, KeyboardInterrupt say, is raised there again.
struct Interruption {
  PyObject* array = nullptr;  // only compared
  py::object raised;
};
Interruption& interruption() {
  static Interruption& last = *new Interruption;
  return last;
}
void note_interruption(PyObject* array) {
  if (PyErr_ExceptionMatches(PyExc_BufferError)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  interruption() = {array, py::reinterpret_borrow<py::object>(value)};
  PyErr_Restore(type, value, trace);
}

}  // namespace

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  interruption() = {};
  if (flags & PyBUF_WRITABLE) {
    PyErr_SetString(PyExc_BufferError, "plait arrays are read-only");
    return -1;
  }
  const int result = guarded_int([&]() -> int {
    const Array& array = exported(self);
    if (is_stored(array.dtype())) {  // NumPy asks __array__ then
      PyErr_SetString(PyExc_BufferError, "the buffer protocol has no format for such elements");
      return -1;
    }
    auto made = std::make_unique<BufferExport>();
    if (array.ndim() > int(std::size(made->shape))) {
      PyErr_SetString(PyExc_BufferError, "an array of more than 64 axes");
      return -1;
    }
    made->buffer = host_buffer_of(array);
    const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    const bool contiguous = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    if (!strided || contiguous) made->buffer = made->buffer.dense();
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && array.ndim() > 1) {
      PyErr_SetString(PyExc_BufferError, "the array is not in Fortran order");
      return -1;
    }
    const Buffer& buffer = made->buffer;
    const char* format = format_of(buffer.dtype());
    if ((flags & PyBUF_FORMAT) && !format) {
      PyErr_SetString(PyExc_BufferError, "the buffer protocol has no format for bfloat16");
      return -1;
    }
    const std::int64_t size = size_of(buffer.dtype());
    for (std::size_t i = 0; i < buffer.shape().size(); ++i) {
      made->shape[i] = buffer.shape()[i];
      made->strides[i] = buffer.strides()[i] * size;
    }
    view->buf = buffer.view().data;  // readonly
    view->len = buffer.bytes();
    view->itemsize = size;
    view->readonly = 1;
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
    view->ndim = int(buffer.shape().size());
    view->shape = (flags & PyBUF_ND) ? made->shape : nullptr;
    view->strides = strided ? made->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = made.release();
    view->obj = Py_NewRef(self);
    return 0;
  });
  if (result < 0) note_interruption(self);
  return result;
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<BufferExport*>(view->internal);
}

PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Interruption interrupted = std::exchange(interruption(), {});
    if (interrupted.array == self) {
      PyErr_SetObject(PyExceptionInstance_Class(interrupted.raised.ptr()),
                      interrupted.raised.ptr());
      return nullptr;
    }
    py::object dtype = count > 0 ? borrowed(arguments[0]) : py::none(), copy = py::none();
    each_keyword(arguments, count, names, [&](const std::string& name, PyObject* value) {
      (name == "dtype" ? dtype : copy) = borrowed(value);
    });
    py::object array = to_numpy(exported(self));
    if (!dtype.is_none() &&
        !py::object(array.attr("dtype")).equal(py::module_::import("numpy").attr("dtype")(dtype))) {
      if (copy.is(py::bool_(false)))
        throw ValueError("__array__: a conversion of dtype needs a copy", "leave out copy=False");
      array = array.attr("astype")(dtype);
    } else if (copy.is(py::bool_(true))) {
      array = array.attr("copy")();
    }
    return array.release().ptr();
  });
}

namespace {

// What __dlpack__ is asked for.
struct Wanted {
  bool versioned = false;
  std::optional<bool> copy;
  std::optional<DLDevice> device;
  std::optional<std::int64_t> stream;
};

Wanted to_wanted(PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  Wanted wanted;
  each_keyword(arguments, count, names, [&](const std::string& name, PyObject* value) {
    if (value == Py_None) return;
    if (name == "max_version") {
      if (!PyTuple_Check(value))
        throw DtypeError("__dlpack__: max_version is " + text_of(value),
                         "give a pair of numbers, such as (1, 0)");
      wanted.versioned = borrowed(value) >= py::make_tuple(1);
    } else if (name == "copy") {
      wanted.copy = value == Py_True;
    } else if (name == "dl_device") {
      wanted.device = to_number(value);
      if (!wanted.device)
        throw DtypeError("__dlpack__: dl_device is " + text_of(value),
                         "give DLPack's kind and number of a device, such as (1, 0)");
    } else if (name == "stream") {
      wanted.stream = PyLong_AsLongLong(value);
      if (PyErr_Occurred()) throw py::error_already_set();
    }
  });
  return wanted;
}

// The memory for it, on the array's device or on the host.
Buffer exported_buffer(const Array& array, const Wanted& wanted, bool& copied) {
  const Buffer buffer = array.buffer();
  const Device here = buffer.device();
  if (!wanted.device || *wanted.device == number_of(here)) {
    copied = wanted.copy.value_or(false);
    return copied ? buffer.copy() : buffer;
  }
  const std::string what = "__dlpack__: the memory is on " + here.to_string() + ", and ";
  if (wanted.device->device_type != cpu_device)
    throw BufferError(what + "it is wanted on " + device_text(*wanted.device),
                      "put it there first, by device_put; or ask for the host, (1, 0)");
  if (wanted.copy == false)
    throw BufferError(what + "it is wanted on the host without a copy", "leave out copy=False");
  copied = true;
  return host_buffer_of(array);
}

}  // namespace

PyObject* to_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Wanted wanted = to_wanted(arguments, count, names);
    const Array& array = exported(self);
    require_form(array);
    if (wanted.stream && device_of(array).is_host())
      throw ValueError("__dlpack__: memory of the CPU has no stream", "leave stream out");
    if (wanted.stream == 0)
      throw ValueError("__dlpack__: stream=0 may mean two streams",
                       "give 1, the legacy default stream, or 2, that of the thread");
    bool copied = false;
    const Buffer buffer = exported_buffer(array, wanted, copied);
    std::optional<std::int64_t> stream;
    if (!buffer.device().is_host() && wanted.stream != no_stream) {
      stream = wanted.stream.value_or(legacy_stream);  // as the standard has it
      without_gil([&] { let_foreign_read(buffer, *stream); });
    }
    if (wanted.versioned)
      return PyCapsule_New(make_export<DLManagedTensorVersioned>(buffer, stream, copied),
                           "dltensor_versioned", destroy_capsule<DLManagedTensorVersioned>);
    return PyCapsule_New(make_export<DLManagedTensor>(buffer, stream, copied), "dltensor",
                         destroy_capsule<DLManagedTensor>);
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] {
    const DLDevice number = number_of(device_of(read_by_python(array_of(self))));
    return Py_BuildValue("(ii)", number.device_type, number.device_id);
  });
}

namespace {

Device to_device(py::handle object) {
  if (const std::optional<DLDevice> number = to_number(object)) {
    if (const std::optional<Device> device = device_of_number(*number)) return *device;
    throw BackendError("from_dlpack: there is no device " + device_text(*number),
                       "the devices are: " + names_of_devices());
  }
  return Device::named(utf8_of(py::str(object).ptr()));
}

// The capsule of another library's array. Where plait does not have its device, and the host is
// wanted, the library is asked for a copy there.
py::object ask(const py::object& object, std::optional<Device> wanted) {
  std::optional<DLDevice> number;
  if (py::hasattr(object, "__dlpack_device__"))
    number = to_number(object.attr("__dlpack_device__")());
  const std::optional<Device> device =
      number ? device_of_number(*number) : std::optional<Device>(Device{});
  py::dict old, arguments;
  if (device && !device->is_host())
    if (const auto stream = foreign_number(Stream::current(*device))) old["stream"] = *stream;
  arguments = old.attr("copy")();
  arguments["max_version"] = py::make_tuple(1, 0);
  if (!device) {
    if (!wanted || !wanted->is_host())
      throw BufferError(
          "from_dlpack: the array is on " + device_text(*number) +
              ", which plait does not have here",
          "give device=\"cpu\" for a copy on the host; the devices are: " + names_of_devices());
    arguments["dl_device"] = py::make_tuple(int(cpu_device), 0);
  }
  const py::object method = object.attr("__dlpack__");
  try {
    return method(**arguments);
  } catch (py::error_already_set& error) {
    if (!device || !error.matches(PyExc_TypeError)) throw;
    return method(**old);  // of DLPack 0
  }
}

Array take(const py::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned"))
    return take_over<DLManagedTensorVersioned>(capsule.ptr(), "dltensor_versioned",
                                               "used_dltensor_versioned");
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor"))
    return take_over<DLManagedTensor>(capsule.ptr(), "dltensor", "used_dltensor");
  throw DtypeError("from_dlpack: the capsule was used before, or holds no tensor",
                   "a capsule can be taken over once");
}

py::object from_dlpack(py::object object, py::object device, py::object copy) {
  std::optional<Device> wanted;
  if (!device.is_none()) wanted = to_device(device);
  const bool is_own = is_array(object.ptr());
  if (!is_own && !PyCapsule_CheckExact(object.ptr()) && !py::hasattr(object, "__dlpack__"))
    throw DtypeError("from_dlpack: " + text_of(object.ptr()) + " of type " +
                         type_name_of(object.ptr()) + " has no __dlpack__",
                     "pass an array of a library that has DLPack");
  if (is_own && !wanted && !copy.is(py::bool_(true))) return object;
  const Array array = is_own
                          ? exported(object.ptr())
                          : take(PyCapsule_CheckExact(object.ptr()) ? object : ask(object, wanted));
  const Buffer buffer = array.buffer();
  if (wanted && *wanted != buffer.device()) {
    if (copy.is(py::bool_(false)))
      throw ValueError("from_dlpack: the array is on " + buffer.device().to_string() +
                           ", and is wanted on " + wanted->to_string() + " without a copy",
                       "leave out copy=False");
    return to_python(Array(without_gil([&] { return buffer.on(*wanted); })));
  }
  return to_python(copy.is(py::bool_(true)) ? make_concrete(array.aval(), buffer.copy()) : array);
}

}  // namespace

void add_interchange(py::module_& module) {
  module.def("carries_tangent", [](py::object object) {
    return is_array(object.ptr()) && carries_tangent(array_of(object.ptr()));
  });
  module.def(
      "from_dlpack", from_dlpack,
      "An array that shares the memory of another library's array, which must not be written to "
      "from then on.\n\n"
      "It stays on its device; plait's work there comes after what the library has given the "
      "device\nto do. device: where it is wanted instead, by a copy: \"cpu\". copy: True always "
      "copies, False\nnever. BufferError for a device that plait does not have.",
      py::arg("x"), py::kw_only(), py::arg("device") = py::none(), py::arg("copy") = py::none());
}

}  // namespace plait::python
