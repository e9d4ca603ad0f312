// See npy.h. Headers are bounded, and a dedicated parser reads them without running code; products
// of sizes are checked for overflow, and must match the data.
// SPDX-License-Identifier: Apache-2.0
#include "npy.h"

#include <plait/base/error.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = 1 << 16, header_alignment = 64;
constexpr int max_rank = 64;

struct Name {
  DType dtype;
  const char* text;  // kind and bytes of an element
};
constexpr Name names[] = {
    {DType::bool_, "b1"},   {DType::int8, "i1"},      {DType::int16, "i2"},
    {DType::int32, "i4"},   {DType::int64, "i8"},     {DType::uint8, "u1"},
    {DType::uint16, "u2"},  {DType::uint32, "u4"},    {DType::uint64, "u8"},
    {DType::float16, "f2"}, {DType::bfloat16, "V2"},  {DType::float32, "f4"},
    {DType::float64, "f8"}, {DType::complex64, "c8"}, {DType::complex128, "c16"}};

struct Header {
  DType dtype = DType::float32;
  bool is_swapped = false, is_column_major = false;
  Sizes64 shape;
};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header read() {
    bool has_dtype = false, has_order = false, has_shape = false;
    expect('{');
    while (!accepts('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !has_dtype)
        has_dtype = true, read_dtype();
      else if (key == "fortran_order" && !has_order)
        has_order = true, header_.is_column_major = truth();
      else if (key == "shape" && !has_shape)
        has_shape = true, read_shape();
      else
        fail("its header has the key '" + std::string(key) + "', or has it twice");
      if (accepts('}')) break;
      expect(',');
    }
    skip_spaces();
    if (at_ != text_.size()) fail("its header goes on at byte " + std::to_string(at_));
    if (!has_dtype || !has_order || !has_shape)
      fail("its header has no descr, no fortran_order or no shape");
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(where_ + ": " + what,
                     "the file is damaged, or was not written as numpy.save writes");
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw ValueError(where_ + ": it holds " + what + ", which plait does not read",
                     "save an array of numbers or bools");
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accepts(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accepts(c))
      fail("its header has no `" + std::string(1, c) + "` at byte " + std::to_string(at_));
  }
  bool accepts_word(std::string_view word) {
    skip_spaces();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string_view quoted() {
    const char quote = accepts('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("its header has a name without an end");
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 1;
    return name;
  }
  bool truth() {
    if (accepts_word("True")) return true;
    if (!accepts_word("False")) fail("its fortran_order is neither True nor False");
    return false;
  }

  void read_dtype() {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[') refuse("records");
    std::string_view text = quoted();
    const std::string whole(text);
    char order = '|';
    if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
      order = text[0];
      text.remove_prefix(1);
    }
    if (text.starts_with('O')) refuse("Python objects");
    if (text.starts_with('U') || text.starts_with('S')) refuse("text");
    if (text.starts_with('M') || text.starts_with('m')) refuse("dates");
    const auto known = std::find_if(std::begin(names), std::end(names),
                                    [&](const Name& name) { return text == name.text; });
    if (known == std::end(names)) refuse("elements of the dtype '" + whole + "'");
    header_.dtype = known->dtype;
    header_.is_swapped = order == '>' && size_of(known->dtype) > 1;
  }

  void read_shape() {
    expect('(');
    while (!accepts(')')) {
      skip_spaces();
      std::int64_t size = -1;
      const char* const end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, size);
      if (error != std::errc() || size < 0) fail("its shape is no shape of an array");
      at_ = std::size_t(stop - text_.data());
      accepts('L');  // written by Python 2
      header_.shape.push_back(size);
      if (header_.shape.size() > std::size_t(max_rank))
        fail("its shape has more than " + std::to_string(max_rank) + " axes");
      if (accepts(')')) break;
      expect(',');
    }
  }

  const std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  Header header_;
};

// The offsets of the header's text.
std::pair<std::size_t, std::size_t> header_range(std::string_view bytes, const std::string& where) {
  const auto fail = [&](const std::string& what) {
    throw ValueError(where + ": " + what, "give a file that numpy.save or numpy.savez wrote");
  };
  if (!bytes.starts_with(magic)) fail("it does not begin as an array of NumPy does");
  const int version = bytes.size() > 8 ? int(bytes[6]) : 0;
  if (version < 1 || version > 3)
    fail("it has no version of the format that is known, which are 1 to 3");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::uint32_t length = 0;
  if (bytes.size() >= begin) std::memcpy(&length, bytes.data() + 8, begin - 8);
  if (bytes.size() < begin || length > bytes.size() - begin || length > longest_header)
    fail("its header of " + std::to_string(length) + " bytes does not fit " +
         std::to_string(bytes.size()) + " bytes, or is longer than " +
         std::to_string(longest_header));
  return {begin, begin + length};
}

std::uint64_t bytes_of(const Header& header, const std::string& where) {
  // reach: the product of the nonzero sizes, from which strides are computed.
  std::uint64_t reach = std::uint64_t(size_of(header.dtype));
  bool is_empty = false;
  for (std::int64_t size : header.shape) {
    const std::uint64_t factor = std::uint64_t(std::max<std::int64_t>(size, 1));
    if (__builtin_mul_overflow(reach, factor, &reach) || reach > std::uint64_t(1) << 62)
      throw ValueError(where + ": its shape is larger than any memory", "the file is damaged");
    is_empty |= size == 0;
  }
  return is_empty ? 0 : reach;
}

// A copy, with each number converted to native byte order. A bool becomes 0 or 1, because C++
// allows no other value.
Buffer copy_of(const Header& header, std::string_view data) {
  Buffer copy = Buffer::empty(header.dtype, {std::int64_t(data.size()) / size_of(header.dtype)});
  char* const bytes = static_cast<char*>(copy.mutable_data());
  std::copy(data.begin(), data.end(), bytes);
  if (header.dtype == DType::bool_)
    for (std::size_t i = 0; i < data.size(); ++i) bytes[i] = bytes[i] != 0;
  if (!header.is_swapped) return copy;
  const std::size_t unit = std::size_t(size_of(real_dtype_of(header.dtype)));
  for (std::size_t i = 0; i + unit <= data.size(); i += unit)
    std::reverse(bytes + i, bytes + i + unit);
  return copy;
}

}  // namespace

std::string npy_header(const Buffer& array) {
  const auto known = std::find_if(std::begin(names), std::end(names),
                                  [&](const Name& name) { return name.dtype == array.dtype(); });
  std::string shape;
  for (std::int64_t size : array.shape()) shape += std::to_string(size) + ", ";
  if (array.shape().size() > 1) shape.resize(shape.size() - 2);
  if (array.shape().size() == 1) shape.resize(shape.size() - 1);
  std::string text = std::string("{'descr': '") + (size_of(array.dtype()) == 1 ? "|" : "<") +
                     known->text + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const std::size_t before = magic.size() + 4;
  text.append((header_alignment - (before + text.size() + 1) % header_alignment) % header_alignment,
              ' ');
  text += '\n';
  const std::uint16_t length = std::uint16_t(text.size());
  std::string bytes(magic);
  bytes += {1, 0, char(length & 0xff), char(length >> 8)};
  return bytes + text;
}

Buffer read_npy(std::string_view bytes, const Storage& owner, const std::string& where) {
  const auto [begin, end] = header_range(bytes, where);
  const Header header = HeaderReader(bytes.substr(begin, end - begin), where).read();
  const std::uint64_t wanted = bytes_of(header, where);
  const std::string_view data = bytes.substr(end);
  if (data.size() != wanted)
    throw ValueError(where + ": it has " + std::to_string(data.size()) +
                         " bytes of data, and its shape needs " + std::to_string(wanted),
                     "the file is damaged, or holds more than one array");
  Sizes64 strides = dense_strides(header.shape);
  if (header.is_column_major) {
    std::int64_t stride = 1;
    for (std::size_t axis = 0; axis < header.shape.size(); ++axis) {
      strides[axis] = stride;
      stride *= std::max<std::int64_t>(header.shape[axis], 1);
    }
  }
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(data.data()) % 16 == 0;
  if (is_aligned && !header.is_swapped && header.dtype != DType::bool_)
    return Buffer(owner, {const_cast<char*>(data.data()), header.dtype, header.shape, strides});
  return copy_of(header, data).view_as(header.shape, strides, 0);
}

}  // namespace plait
