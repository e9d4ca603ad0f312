// Conversions of numbers and lists to arrays for a purpose: a given dtype, or an index.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// to_array with a given dtype. The numbers of a list are converted directly, not through the
// default dtype. ValueError if a Python integer does not fit.
Array to_array_of(PyObject* object, DType dtype, const Role& role = {});
// to_array for an index: lists of integers have 64 bits.
Array to_index(PyObject* object);

}  // namespace plait::python
