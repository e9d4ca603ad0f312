// Files of arrays, which verbs read and write: .npz, .npy and .safetensors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/safetensors.h"

namespace plait::tool {

// The arrays of a file; that of an .npy file has no name. FileError where it cannot be read,
// ValueError where it is damaged, holds what is no array of numbers, or is of another kind.
std::vector<NamedArray> read_arrays(const std::string& path);

// Usage for a name that ends in none of the three, or in .npy where there is not one array.
void check_arrays_path(const std::string& path, std::size_t num_arrays);
// Whole or not at all: what was there stays until the new file is complete. FileError.
void write_arrays(const std::string& path, std::vector<NamedArray> arrays);

}  // namespace plait::tool
