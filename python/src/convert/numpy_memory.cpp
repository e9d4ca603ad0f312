// Memory of NumPy arrays. See numpy_memory.h.
//
// The fields are read by the layout of NumPy's ABI, which is the same in NumPy 1 and 2. The buffer
// protocol takes ten times as long.
// SPDX-License-Identifier: Apache-2.0
#include "numpy_memory.h"

#include <plait/trace/concrete.h>

#include <algorithm>

namespace plait::python {
namespace {

struct NumpyArray {
  PyObject_HEAD char* data;
  int ndim;
  Py_ssize_t *shape, *strides;
  PyObject *base, *dtype;
  int flags;
};
constexpr int row_major = 0x1, aligned = 0x100;

const NumpyArray& fields_of(PyObject* array) { return *reinterpret_cast<NumpyArray*>(array); }

// NumPy has one dtype object for each of these in native byte order.
std::optional<DType> known_dtype(PyObject* dtype) {
  for (int i = 0; i < num_computing_dtypes; ++i)
    if (DType(i) != DType::bfloat16 && dtype_object(DType(i)).ptr() == dtype) return DType(i);
  return std::nullopt;
}

// Copying fewer bytes than this is faster than sharing them.
constexpr std::size_t least_bytes = 1 << 10;

View view_of(const NumpyArray& fields, DType dtype) {
  View view{fields.data, dtype, {}, {}};
  for (int i = 0; i < fields.ndim; ++i) view.shape.push_back(fields.shape[i]);
  view.strides = dense_strides(view.shape);
  return view;
}

Array borrowing(PyObject* array, const View& view, std::size_t bytes) {
  auto release = [array] {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(array);
    PyGILState_Release(state);
  };
  Py_INCREF(array);
  return Array(Buffer(Storage::foreign(view.data, bytes, release), view));
}

const Storage* storage_of(const Array& array) {
  if (!array.is_valid() || !array.node()->is_plain()) return nullptr;
  return &static_cast<const ConcreteNode*>(array.node())->buffer.storage();
}

}  // namespace

std::optional<Aval> aval_of_numpy(PyObject* array) {
  const NumpyArray& fields = fields_of(array);
  const std::optional<DType> dtype = known_dtype(fields.dtype);
  if (!dtype) return std::nullopt;
  Aval aval;
  aval.dtype = *dtype;
  for (int i = 0; i < fields.ndim; ++i) aval.shape.push_back(fields.shape[i]);
  return aval;
}

std::optional<Array> BorrowedMemory::read(PyObject* array) {
  const NumpyArray& fields = fields_of(array);
  const std::optional<DType> dtype = known_dtype(fields.dtype);
  if (!dtype || (fields.flags & row_major) == 0 || (fields.flags & aligned) == 0)
    return std::nullopt;
  const View view = view_of(fields, *dtype);
  const std::size_t bytes = num_elements(view.shape) * size_of(*dtype);
  if (bytes < least_bytes) return Array(Buffer::copy_of(view));
  starts_.push_back(fields.data);
  return borrowing(array, view, bytes);
}

bool BorrowedMemory::is_borrowed(const Array& array) const {
  const Storage* storage = storage_of(array);
  return storage && storage->is_foreign() &&
         std::find(starts_.begin(), starts_.end(), storage->data()) != starts_.end();
}

void BorrowedMemory::copy_all(Arrays& arrays) const {
  if (empty()) return;
  for (Array& array : arrays)
    if (is_borrowed(array)) {
      const Aval aval = array.aval();
      array = make_concrete(aval, Buffer::copy_of(array.buffer().view()));
    }
}

}  // namespace plait::python
