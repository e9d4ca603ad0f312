// Arrays as NumPy writes them (.npy, and the members of .npz): a header, which is text, and data.
// Source of the format: NumPy's documentation of numpy.lib.format, versions 1.0 to 3.0.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <string>
#include <string_view>

namespace plait {

// The bytes before the data of a dense array. bfloat16, which NumPy does not know, is written as
// two bytes without a meaning ("V2"), as NumPy does with arrays of ml_dtypes.
std::string npy_header(const Buffer& array);

// An array that lies in memory which `owner` keeps: in row-major or column-major order, of either
// byte order. ValueError, which begins with `where`, for what is damaged, and for arrays of
// objects, text, dates and records, none of which is read.
Buffer read_npy(std::string_view bytes, const Storage& owner, const std::string& where);

}  // namespace plait
