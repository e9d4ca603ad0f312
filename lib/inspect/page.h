// Text that draw and profile write for browsers and other programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plait::inspect {

// Text within HTML or SVG.
std::string html_text(std::string_view text);
// A quoted JSON string, safe inside a <script>; bytes that are not UTF-8 are written as "?".
std::string json_text(std::string_view text);
// The shortest text of a number that reads back as the same; 0 for values that JSON lacks.
std::string json_number(double value);

// Distinct strings, numbered.
class StringTable {
 public:
  int add(const std::string& text);
  std::string json() const;

 private:
  std::map<std::string, int> numbers_;
  std::vector<const std::string*> strings_;
};

// "[1,2,3]" from any range.
template <class Range, class Text>
std::string json_list(const Range& range, Text text) {
  std::string list = "[";
  for (const auto& item : range) {
    if (list.size() > 1) list += ',';
    list += text(item);
  }
  return list + "]";
}

// FileError, which begins with what, where the file cannot be written.
void write_file(const std::string& what, const std::string& path, std::string_view text);

}  // namespace plait::inspect
