// The numbers that elements of stored dtypes stand for: see NOTE: [stored dtypes] in dtype.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

namespace plait {

constexpr bool is_float8(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

// How a float8 divides its bits below the sign. Exponents are biased by 2^(exponent - 1) - 1.
struct Float8Layout {
  int exponent, mantissa;
  int largest;     // the code of the largest finite number
  int overflowed;  // the code of what is larger: infinity, or NaN where there is none
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
constexpr Float8Layout float8_layout(DType dtype) {
  return dtype == DType::float8_e5m2 ? Float8Layout{5, 2, 0x7b, 0x7c}
                                     : Float8Layout{4, 3, 0x7e, 0x7f};
}

// The nearest float8, halves to the even one, and back.
std::uint8_t float8_bits(double value, DType dtype);
float float8_value(std::uint8_t bits, DType dtype);

// The elements of such an array as numbers: float32 of float8, int8 or uint8 of int4 and uint4, and
// for keys their words, uint32 along a new last axis. dense lies on the host.
Buffer numbers_of_stored(const Buffer& dense, DType dtype);
// Its two words, as uint32 along a new last axis, for each key, or each key of such words: views of
// the same memory. The last axis is dense.
Buffer words_of_keys(const Buffer& keys);
std::optional<Buffer> keys_of_words(const Buffer& words);  // none where they are not aligned

}  // namespace plait
