// Copies of strided views, element by element against a loop over indices.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/buffer.h>

#include <cstring>
#include <random>
#include <vector>

using namespace plait;

namespace {

// Bytes that differ between the copy of a view of these strides and what a plain loop copies; and
// those around the copy that were written.
int wrong_bytes(DType dtype, const Sizes64& shape, const Sizes64& strides) {
  const std::int64_t size = size_of(dtype);
  std::int64_t reach = 1, count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    reach += (shape[i] - 1) * strides[i];
    count *= shape[i];
  }
  std::mt19937 random(1);
  std::vector<unsigned char> from(std::size_t(reach * size));
  for (unsigned char& byte : from) byte = static_cast<unsigned char>(random());
  constexpr std::int64_t margin = 64;
  std::vector<unsigned char> to(std::size_t(count * size + 2 * margin), 0xa5), expected = to;
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t rest = k, at = 0;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i])
      at += rest % shape[i] * strides[i];
    std::memcpy(&expected[std::size_t(margin + k * size)], &from[std::size_t(at * size)],
                std::size_t(size));
  }
  copy_elements(View{from.data(), dtype, shape, strides},
                View{to.data() + margin, dtype, shape, dense_strides(shape)});
  int wrong = 0;
  for (std::size_t i = 0; i < to.size(); ++i) wrong += to[i] != expected[i];
  return wrong;
}

}  // namespace

TEST_CASE("short rows are copied, repeated and filled as long ones are") {
  for (DType dtype :
       {DType::int8, DType::float16, DType::float32, DType::float64, DType::complex128})
    for (std::int64_t n = 1; n < 70; ++n) {
      CAPTURE(name_of(dtype));
      CAPTURE(n);
      CHECK(wrong_bytes(dtype, {7, n}, {n + 3, 1}) == 0);        // rows of a wider array
      CHECK(wrong_bytes(dtype, {7, n}, {0, 1}) == 0);            // one row, repeated
      CHECK(wrong_bytes(dtype, {900, n}, {0, 2}) == 0);          // and a strided one, often
      CHECK(wrong_bytes(dtype, {7, n}, {1, 0}) == 0);            // each element, repeated
      CHECK(wrong_bytes(dtype, {7, n}, {3, 0}) == 0);            // the same of a column
      CHECK(wrong_bytes(dtype, {37, n}, {1, 37}) == 0);          // transposed
      CHECK(wrong_bytes(dtype, {2, 9, n}, {n * 9, 1, 9}) == 0);  // several such
      CHECK(wrong_bytes(dtype, {3, 5, n}, {n, 3 * n, 1}) == 0);  // rows in another order
    }
}

TEST_CASE("large copies are divided among threads") {
  CHECK(wrong_bytes(DType::float32, {300, 200, 10}, {200, 1, 0}) == 0);
  CHECK(wrong_bytes(DType::float32, {300, 200, 10}, {10, 3000, 1}) == 0);
  CHECK(wrong_bytes(DType::float32, {300, 2000}, {1, 300}) == 0);
}
