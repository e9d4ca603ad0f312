// Files of arrays, which verbs read and write: .npz, .npy and .safetensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/safetensors.h"

namespace plait::tool {

// The arrays of a file; that of an .npy file has no name. FileError where it cannot be read,
// ValueError where it is damaged, is of another kind, or holds something other than arrays of
// numbers.
std::vector<NamedArray> read_arrays(const std::string& path);

// Usage error for a name without one of these endings, or for .npy with other than one array.
void check_arrays_path(const std::string& path, std::size_t num_arrays);
// Atomic: an existing file stays until the new one is complete. FileError.
void write_arrays(const std::string& path, std::vector<NamedArray> arrays);

}  // namespace plait::tool
