// The UCI handwritten digits, as data.py writes them: 8x8 images and labels. Lessons 7 and 9 and
// the demo are about what they do with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

struct Digits {
  std::int32_t count;
  plait::Buffer images, labels;  // float32 [count, 64], of [0, 1], row by row; int32 [count]
  const float* image(std::int64_t i) const {
    return static_cast<const float*>(images.data()) + i * 64;
  }
  std::int32_t label(std::int64_t i) const {
    return static_cast<const std::int32_t*>(labels.data())[i];
  }
};

inline Digits load_digits(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::int32_t n = 0;
  if (!file.read(reinterpret_cast<char*>(&n), sizeof n)) {
    std::fprintf(stderr, "%s cannot be read; `./dev demo` writes it\n", path);
    std::exit(1);
  }
  Digits digits{n, plait::Buffer::empty(plait::DType::float32, {n, 64}),
                plait::Buffer::empty(plait::DType::int32, {n})};
  file.read(static_cast<char*>(digits.images.mutable_data()), digits.images.bytes());
  file.read(static_cast<char*>(digits.labels.mutable_data()), digits.labels.bytes());
  return digits;
}
