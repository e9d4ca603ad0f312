// See page.h.
// SPDX-License-Identifier: Apache-2.0
#include "inspect/page.h"

#include <plait/base/error.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

namespace plait::inspect {
namespace {

// Bytes of the UTF-8 sequence at the start of text; 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2
                             : byte(0) >= 0xe0 && byte(0) < 0xf0 ? 3
                             : byte(0) >= 0xf0 && byte(0) < 0xf5 ? 4
                                                                 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  return length;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
      result += c;
  }
  return result;
}

std::string json_text(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0)
      result += '?';
    else if (c == '"' || c == '\\')
      (result += '\\') += text[0];
    else if (c < 0x20 || c == '<')  // no "</script>"
      ((result += "\\u00") += digits[c >> 4]) += digits[c & 15];
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result + "\"";
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "0";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

int StringTable::add(const std::string& text) {
  const auto [place, is_new] = numbers_.try_emplace(text, int(strings_.size()));
  if (is_new) strings_.push_back(&place->first);
  return place->second;
}

std::string StringTable::json() const {
  return json_list(strings_, [](const std::string* text) { return json_text(*text); });
}

void write_file(const std::string& what, const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), std::streamsize(text.size()));
  file.close();
  if (!file)
    throw FileError(what + ": cannot write " + path +
                        (errno ? std::string(": ") + std::strerror(errno) : std::string()),
                    "give the path of a file in a folder that exists and may be written to");
}

}  // namespace plait::inspect
