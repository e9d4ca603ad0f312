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

// Arrays in memory that `owner` keeps alive. ValueError, which begins with `where`, gives the byte
// at which the data is not in safetensors format.
std::vector<NamedArray> read_safetensors(const char* bytes, std::size_t size, const Storage& owner,
                                         const std::string& where);

// The same in steps, for incremental readers. Each step refuses what read_safetensors refuses.
struct ArrayPlace {
  std::string name;
  DType dtype;
  Sizes64 shape;
  std::size_t first, last;  // in the data
};
// The offset of the data, from the first 8 bytes of `size`.
std::size_t safetensors_data(std::string_view begin, std::size_t size, const std::string& where);
// The arrays, from the bytes before the data; together they cover the rest of `size` bytes.
std::vector<ArrayPlace> safetensors_places(std::string_view head, std::size_t size,
                                           const std::string& where);
Buffer array_at(const ArrayPlace& place, const char* data, const Storage& owner);

}  // namespace plait
