// dot_general on the reference: values against sums in float64, and the same bits whatever the
// layout of the operands, for vectors, small matrices and blocked products.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cstring>
#include <random>

using namespace plait;

namespace {

Array matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Buffer buffer = Buffer::empty(DType::float64, {rows, columns});
  for (std::int64_t i = 0; i < rows * columns; ++i)
    buffer.view().as<double>()[i] = normal(generator);
  return Array(buffer);
}

// The same values, with the columns in memory one after another.
Array by_columns(const Array& x) {
  const Buffer columns = Buffer::copy_of(lax::transpose(x, std::vector<int>{1, 0}).buffer().view());
  return lax::transpose(Array(columns), std::vector<int>{1, 0});
}

const double* values(const Array& x) { return x.buffer().view().as<double>(); }

}  // namespace

TEST_CASE("a product of matrices has the same bits in every layout, and the values of its sums") {
  const std::int64_t shapes[][3] = {{1, 40, 30},  {40, 30, 1},  {1, 7, 1},     {3, 5, 4},
                                    {2, 3, 300},  {300, 3, 2},  {17, 9, 20},   {33, 64, 40},
                                    {257, 30, 5}, {513, 40, 8}, {30, 700, 25}, {1, 1, 1}};
  unsigned seed = 1;
  for (const auto& shape : shapes) {
    const std::int64_t m = shape[0], k = shape[1], n = shape[2];
    CAPTURE(m);
    CAPTURE(k);
    CAPTURE(n);
    const Array a = matrix(m, k, seed++), b = matrix(k, n, seed++);
    const lax::DotDimensions matmul{{1}, {0}, {}, {}};
    const Array product = lax::dot_general(a, b, matmul);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) sum += values(a)[i * k + l] * values(b)[l * n + j];
        REQUIRE(std::abs(values(product)[i * n + j] - sum) <= 1e-12 * double(k));
      }
    for (const Array& left : {a, by_columns(a)})
      for (const Array& right : {b, by_columns(b)}) {
        const Array other = lax::dot_general(left, right, matmul);
        CHECK(std::memcmp(values(other), values(product), std::size_t(m * n) * sizeof(double)) ==
              0);
      }
  }
}
