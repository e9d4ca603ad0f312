// Named arrays as bytes: the safetensors format (a length, a JSON header, data), read and written.
// Source of the format: the safetensors project's README, version 0.4 and later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <map>
#include <string>
#include <vector>

namespace plait {

struct NamedArray {
  std::string name;
  Buffer array;
};

// The bytes of a file up to the data, and the arrays' dense memory that follows, in order.
std::string safetensors_header(const std::vector<NamedArray>& arrays);

// Arrays that lie in memory which `owner` keeps. ValueError, which begins with `where`, says at
// which byte the bytes are no safetensors.
std::vector<NamedArray> read_safetensors(const char* bytes, std::size_t size, const Storage& owner,
                                         const std::string& where);

}  // namespace plait
