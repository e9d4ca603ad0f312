// Arrays in NumPy's file format (.npy, and the members of .npz): a text header, and data. Source of
// the format: NumPy's documentation of numpy.lib.format, versions 1.0 to 3.0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <string>
#include <string_view>

namespace plait {

// The bytes before the data of a dense array. NumPy has no bfloat16: it is written as two opaque
// bytes ("V2"), as NumPy does for arrays of ml_dtypes.
std::string npy_header(const Buffer& array);

// An array in memory that `owner` keeps alive: row-major or column-major, of either byte order.
// ValueError, which begins with `where`, for damaged data, and for arrays of objects, text, dates
// and records, which are not supported.
Buffer read_npy(std::string_view bytes, const Storage& owner, const std::string& where);

}  // namespace plait
