// The parts of the Array type that are not in array.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "views.h"

namespace plait::python {

// access.cpp
extern PyGetSetDef array_getset[];
extern PyMethodDef array_methods[];
PyObject* repr(PyObject* self);
PyObject* text(PyObject* self);
PyObject* get_item(PyObject* self, PyObject* key);
// The element at these places, one for each axis, of numbers in memory of the host: what getitem
// and wrap_item give, in memory of its own. Nothing where a place is out of bounds, or where the
// array is another one.
std::optional<Array> element_at(const Array& array, std::span<const std::int64_t> indices);
Subscripts to_subscripts(PyObject* key);

// inplace.cpp
// x[subscripts]: a view, unless it is a single element or an array selects the elements.
PyObject* wrap_item(PyObject* base, Subscripts subscripts, Array array);
int set_item(PyObject* self, PyObject* key, PyObject* value);
// x.real = v: writes all that a view of x shows.
int set_all(PyObject* view, PyObject* value);
// Whether x op= y writes to x, because it is a variable of the tape or a view of one.
bool is_written_by_operators(PyObject* self);
// Writes the result of x op y to such an x.
PyObject* write_result(PyObject* self, PyObject* result);
PyObject* copy(PyObject* self, PyObject*);
PyObject* deepcopy(PyObject* self, PyObject*);

// tape.cpp
PyObject* grad_attribute(PyObject* self, void*);
int set_grad_attribute(PyObject* self, PyObject* value, void*);
PyObject* requires_grad_attribute(PyObject* self, void*);
PyObject* backward_method(PyObject* self, PyObject* arguments, PyObject* names);
PyObject* detach_method(PyObject* self, PyObject*);
PyObject* register_hook_method(PyObject* self, PyObject* hook);

// interchange.cpp
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* array_method(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                       PyObject* names);  // __array__
PyObject* to_dlpack(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names);
PyObject* dlpack_device(PyObject* self, PyObject*);

}  // namespace plait::python
