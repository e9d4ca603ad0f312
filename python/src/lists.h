// Numbers and lists of them as arrays where more is known than that an array is wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// to_array in a dtype that is asked for, with all digits of lists. ValueError where an integer of
// Python does not fit.
Array to_array_of(PyObject* object, DType dtype, const Role& role = {});
// to_array of an index: lists of integers have 64 bits.
Array to_index(PyObject* object);

}  // namespace plait::python
