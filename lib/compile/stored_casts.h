// Conversions from and to stored dtypes, as arithmetic on their carriers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait::compile_passes {

// What lax::convert_element_type gives of elements of dtype `from`: x has the carrier of a stored
// one, and so has the result. Floats round to the nearest number, halves to the even one; of float8
// what is too large is infinity, or NaN where there is none, and of int4 and uint4 it saturates, as
// integers wrap.
Array convert_carried(const Array& x, DType from, DType to);

}  // namespace plait::compile_passes
