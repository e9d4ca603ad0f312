// Validates UTF-8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace plait {

// Strict UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
inline bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return k < text.size() ? text[k] & 0xff : 0; };
    const int first = byte(i), second = byte(i + 1);
    const int length = first < 0x80   ? 1
                       : first < 0xc2 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                                      : 4;
    if (length == 0 || first > 0xf4) return false;
    for (int k = 1; k < length; ++k)
      if ((byte(i + std::size_t(k)) & 0xc0) != 0x80) return false;
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      return false;
    i += std::size_t(length);
  }
  return true;
}

}  // namespace plait
