// See safetensors.h. Headers are bounded, offsets are checked against the data and each other, and
// overflowing numbers are refused, so that no file causes an access outside its bytes.
// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <plait/base/error.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace plait {
namespace {

using Json = nlohmann::json;
constexpr std::size_t longest_header = 100'000'000;  // the limit of the format's own reader
constexpr int max_rank = 64;

struct Name {
  DType dtype;
  const char* text;
};
constexpr Name names[] = {{DType::bool_, "BOOL"},         {DType::int8, "I8"},
                          {DType::int16, "I16"},          {DType::int32, "I32"},
                          {DType::int64, "I64"},          {DType::uint8, "U8"},
                          {DType::uint16, "U16"},         {DType::uint32, "U32"},
                          {DType::uint64, "U64"},         {DType::float16, "F16"},
                          {DType::bfloat16, "BF16"},      {DType::float32, "F32"},
                          {DType::float64, "F64"},        {DType::complex64, "C64"},
                          {DType::complex128, "C128"},    {DType::float8_e4m3fn, "F8_E4M3"},
                          {DType::float8_e5m2, "F8_E5M2"}};

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw ValueError(where + ": " + what, "the file is damaged, or was not written as safetensors");
}

class HeaderReader {
 public:
  HeaderReader(std::size_t data_size, const std::string& where)
      : data_size_(data_size), where_(where) {}

  std::vector<ArrayPlace> read(std::string_view text) const {
    std::vector<ArrayPlace> places;
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    const Json header = parse(text);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const ArrayPlace& place = places.emplace_back(place_of(name, entry));
      ranges.emplace_back(place.first, place.last);
    }
    std::sort(ranges.begin(), ranges.end());
    std::size_t end = 0;
    for (const auto& [first, last] : ranges) {
      if (first != end)
        fail(where_, "its data has a gap or an overlap at byte " + std::to_string(first));
      end = last;
    }
    if (end != data_size_)
      fail(where_, "its data has " + std::to_string(data_size_) + " bytes, and its arrays " +
                       std::to_string(end));
    return places;
  }

 private:
  // Checks depth and duplicates: a header is an object of flat objects, and names are unique.
  Json parse(std::string_view text) const {
    std::vector<std::string> keys;
    const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth > 4) fail(where_, "its header is nested too deeply");
      if (depth == 1 && event == Json::parse_event_t::key) keys.push_back(value.get<std::string>());
      return true;
    };
    const Json header = Json::parse(text.begin(), text.end(), check, false);
    if (!header.is_object()) fail(where_, "its header is no JSON object");
    std::sort(keys.begin(), keys.end());
    if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end())
      fail(where_, "the name '" + *twice + "' occurs twice");
    return header;
  }

  static std::optional<std::uint64_t> natural(const Json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    return value.get<std::uint64_t>();
  }

  ArrayPlace place_of(const std::string& name, const Json& entry) const {
    const std::string place = where_ + ", array '" + name + "'";
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets") || !entry["dtype"].is_string() ||
        !entry["shape"].is_array() || !entry["data_offsets"].is_array() ||
        entry["data_offsets"].size() != 2 || entry["shape"].size() > std::size_t(max_rank))
      fail(place, "needs a dtype, a shape and two data_offsets");
    const std::string text = entry["dtype"].get<std::string>();
    const auto known = std::find_if(std::begin(names), std::end(names),
                                    [&](const Name& n) { return text == n.text; });
    if (known == std::end(names)) fail(place, "has the dtype '" + text + "', which plait has not");
    // reach: the product of the nonzero sizes, from which strides are computed.
    std::uint64_t reach = std::uint64_t(size_of(known->dtype));
    bool is_empty = false;
    Sizes64 shape;
    for (const Json& dim : entry["shape"]) {
      const auto size = natural(dim);
      if (!size || __builtin_mul_overflow(reach, std::max<std::uint64_t>(1, *size), &reach) ||
          reach > std::uint64_t(1) << 62)
        fail(place, "has a shape that is no shape of an array");
      is_empty |= *size == 0;
      shape.push_back(std::int64_t(*size));
    }
    const std::uint64_t bytes = is_empty ? 0 : reach;
    const auto first = natural(entry["data_offsets"][0]), last = natural(entry["data_offsets"][1]);
    if (!first || !last || *first > *last || *last > data_size_ || *last - *first != bytes)
      fail(place, "has data_offsets that do not fit its shape or the data");
    return {name, known->dtype, shape, std::size_t(*first), std::size_t(*last)};
  }

  const std::size_t data_size_;
  const std::string& where_;
};

}  // namespace

std::string safetensors_header(const std::vector<NamedArray>& arrays) {
  Json header = Json::object();
  std::uint64_t offset = 0;
  for (const NamedArray& named : arrays) {
    const auto known = std::find_if(std::begin(names), std::end(names), [&](const Name& name) {
      return name.dtype == named.array.dtype();
    });
    const std::uint64_t end = offset + std::uint64_t(named.array.bytes());
    Json shape = Json::array();
    for (std::int64_t size : named.array.shape()) shape.push_back(std::uint64_t(size));
    header[named.name] = {
        {"dtype", known->text}, {"shape", std::move(shape)}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((64 - (text.size() + 8) % 64) % 64, ' ');  // aligns the data
  const std::uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text;
}

std::size_t safetensors_data(std::string_view begin, std::size_t size, const std::string& where) {
  if (begin.size() < 8)
    fail(where, "it ends at byte " + std::to_string(size) + ", before its header");
  std::uint64_t length = 0;
  std::memcpy(&length, begin.data(), 8);
  if (length > longest_header || length > size - 8)
    fail(where, "its header of " + std::to_string(length) + " bytes does not fit " +
                    std::to_string(size) + " bytes");
  return std::size_t(length) + 8;
}

std::vector<ArrayPlace> safetensors_places(std::string_view head, std::size_t size,
                                           const std::string& where) {
  return HeaderReader(size - head.size(), where).read(head.substr(8));
}

Buffer array_at(const ArrayPlace& place, const char* data, const Storage& owner) {
  const DType dtype = carrier_of(place.dtype);
  View view{const_cast<char*>(data + place.first), dtype, place.shape, dense_strides(place.shape)};
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  const bool is_bool = place.dtype == DType::bool_;
  if ((is_aligned && !is_bool) || place.first == place.last) return Buffer(owner, std::move(view));
  Buffer copy = Buffer::empty(dtype, place.shape);
  if (is_bool)  // C++ allows only 0 and 1
    std::transform(data + place.first, data + place.last, static_cast<char*>(copy.mutable_data()),
                   [](char byte) { return char(byte != 0); });
  else
    std::memcpy(copy.mutable_data(), data + place.first, place.last - place.first);
  return copy;
}

std::vector<NamedArray> read_safetensors(const char* bytes, std::size_t size, const Storage& owner,
                                         const std::string& where) {
  const std::size_t data = safetensors_data({bytes, std::min<std::size_t>(size, 8)}, size, where);
  std::vector<NamedArray> arrays;
  for (const ArrayPlace& place : safetensors_places({bytes, data}, size, where))
    arrays.push_back({place.name, array_at(place, bytes + data, owner)});
  return arrays;
}

}  // namespace plait
