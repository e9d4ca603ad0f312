// Sizes in the text of errors. See size_multiples.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/size_multiples.h>

#include <charconv>
#include <vector>

namespace plait {
namespace {

thread_local std::vector<SizeMultiple> size_multiples;

bool is_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '\'';
}

bool is_name_at(const std::string& text, std::size_t at, const std::string& name) {
  const std::size_t end = at + name.size();
  return (at == 0 || !is_in_name(text[at - 1])) && (end == text.size() || !is_in_name(text[end]));
}

// The start of the digits of "8*" before a name, or of the name itself.
std::size_t start_of_product(const std::string& text, std::size_t name) {
  if (name < 2 || text[name - 1] != '*') return name;
  std::size_t begin = name - 1;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  const bool is_number = begin < name - 1 && (begin == 0 || !is_in_name(text[begin - 1])) &&
                         name - 1 - begin < 18;  // digits of 64 bits
  return is_number ? begin : name;
}

// coefficient * part in terms of the whole size.
std::string in_wholes(std::int64_t coefficient, const SizeMultiple& size, bool follows_product) {
  const auto [part, whole, factor] = size;
  if (coefficient % factor == 0)
    return coefficient == factor ? whole : std::to_string(coefficient / factor) + "*" + whole;
  std::string text = factor % coefficient == 0 ? whole + "//" + std::to_string(factor / coefficient)
                                               : std::to_string(coefficient) + "*" + whole + "//" +
                                                     std::to_string(factor);
  return follows_product ? "(" + text + ")" : text;
}

void speak_of(const SizeMultiple& size, std::string& text) {
  for (std::size_t at = 0; (at = text.find(size.part, at)) != std::string::npos;) {
    if (!is_name_at(text, at, size.part)) {
      at += size.part.size();
      continue;
    }
    const std::size_t begin = start_of_product(text, at);
    std::int64_t coefficient = 1;
    if (begin < at) std::from_chars(text.data() + begin, text.data() + at - 1, coefficient);
    const bool follows_product =
        begin > 0 && (text[begin - 1] == '*' || text[begin - 1] == '/' || text[begin - 1] == '%');
    const std::string words =
        coefficient == 0 ? "0" : in_wholes(coefficient, size, follows_product);
    text.replace(begin, at + size.part.size() - begin, words);
    at = begin + words.size();
  }
}

}  // namespace

SizesInErrors::SizesInErrors(std::span<const SizeMultiple> sizes)
    : previous_(size_multiples.size()) {
  size_multiples.insert(size_multiples.end(), sizes.begin(), sizes.end());
}
SizesInErrors::~SizesInErrors() { size_multiples.resize(previous_); }

std::string with_whole_sizes(std::string text) {
  for (const SizeMultiple& size : size_multiples) speak_of(size, text);
  return text;
}

}  // namespace plait
