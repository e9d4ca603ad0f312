// The data of an object made by plait compile, as bytes: programs, constants and machine code.
// Written on the compiling machine, read in place by deployed.cpp.
//
// A bundle is a list of items: 8 bytes of length, then the bytes, padded so that every item begins
// at a multiple of 64. In order:
//
//   format           "plait bundle 1"
//   count            of entries; for each:
//     name, program  the jaxpr's text, decomposed as far as its sizes allow
//     inputs, outputs  names of the arguments' and the result's leaves, one a line
//     bounds         of its named sizes, in order, one a line
//     count, arrays  of constants, in the order of the jaxpr's last inputs
//   count            of kernels; for each: key (16 bytes), object file
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace plait::deployed {

inline constexpr std::string_view bundle_format = "plait bundle 1";
inline constexpr std::size_t alignment = 64;

class BundleWriter {
 public:
  void add(std::string_view piece) {
    const std::uint64_t size = piece.size();
    bytes_.resize((bytes_.size() + 8 + alignment - 1) / alignment * alignment);
    std::memcpy(bytes_.data() + bytes_.size() - 8, &size, 8);
    bytes_ += piece;
  }
  void add_count(std::size_t count) { add(std::to_string(count)); }
  void add_lines(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    add(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The bytes come from the writer, linked into the same object, so only the end is checked.
class BundleReader {
 public:
  BundleReader(const void* bytes, std::size_t size)
      : begin_(static_cast<const char*>(bytes)), size_(size) {}
  std::string_view next() {
    at_ = (at_ + 8 + alignment - 1) / alignment * alignment;
    std::uint64_t length = 0;
    if (at_ > size_) return {};
    std::memcpy(&length, begin_ + at_ - 8, 8);
    if (length > size_ - at_) return {};
    const std::string_view piece(begin_ + at_, length);
    at_ += length;
    return piece;
  }
  std::size_t next_count() {
    std::size_t count = 0;
    for (char digit : next()) count = 10 * count + std::size_t(digit - '0');
    return count;
  }
  std::vector<std::string> next_lines() {
    std::vector<std::string> lines;
    const std::string_view text = next();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

 private:
  const char* const begin_;
  const std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace plait::deployed
