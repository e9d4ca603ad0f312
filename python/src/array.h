// The parts of the Array type that are not in array.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// access.cpp
extern PyGetSetDef array_getset[];
extern PyMethodDef array_methods[];
PyObject* repr(PyObject* self);
PyObject* text(PyObject* self);
PyObject* get_item(PyObject* self, PyObject* key);

// interchange.cpp
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names);  // __array__
PyObject* to_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);
PyObject* dlpack_device(PyObject* self, PyObject*);

}  // namespace plait::python
