// Products of vectors and matrices in every layout: against sums in eight parts, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/vector_products.h"

#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <random>
#include <vector>

#include "../same_bits.h"

using namespace plait;

namespace {

template <class T>
std::vector<T> numbers(std::int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  std::vector<T> found;
  for (std::int64_t i = 0; i < count; ++i) found.push_back(T(normal(random)));
  return found;
}

// The parts of each block of 1024 terms, added to one by halves, as are the blocks.
template <class T>
T summed(std::int64_t begin, std::int64_t end, const auto& add) {
  T parts[8] = {};
  for (std::int64_t i = begin; i < end; ++i) add(i, parts[(i - begin) % 8]);
  return ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
         ((parts[1] + parts[5]) + (parts[3] + parts[7]));
}
template <class T>
T in_blocks(std::int64_t first, std::int64_t last, std::int64_t k, const auto& add) {
  if (last - first == 1) return summed<T>(first * 1024, std::min(k, last * 1024), add);
  const std::int64_t middle = first + (last - first) / 2;
  return in_blocks<T>(first, middle, k, add) + in_blocks<T>(middle, last, k, add);
}

// How many results differ from such sums, for a matrix of these steps along its rows
// and columns and a vector whose elements lie `apart`.
template <class T>
int wrong(std::int64_t batch, std::int64_t k, std::int64_t n, std::int64_t row_step,
          std::int64_t column_step, std::int64_t apart = 1) {
  const std::int64_t matrix = (k - 1) * row_step + (n - 1) * column_step + 1;
  const std::vector<T> a = numbers<T>(batch * k * apart), b = numbers<T>(batch * matrix);
  std::vector<T> out(std::size_t(batch * n), T(-1));
  multiply_vector({a.data(), k * apart, 0, apart}, {b.data(), matrix, row_step, column_step}, batch,
                  k, n, out.data());
  int found = 0;
  for (std::int64_t m = 0; m < batch; ++m)
    for (std::int64_t j = 0; j < n; ++j) {
      const T sum = in_blocks<T>(0, (k + 1023) / 1024, k, [&](std::int64_t i, T& part) {
        part = std::fma(a[std::size_t((m * k + i) * apart)],
                        b[std::size_t(m * matrix + i * row_step + j * column_step)], part);
      });
      found += out[std::size_t(m * n + j)] != sum;
    }
  return found;
}

template <class T>
void check_layouts(std::int64_t batch, std::int64_t k, std::int64_t n) {
  CAPTURE(k);
  CAPTURE(n);
  CHECK(wrong<T>(batch, k, n, n, 1) == 0);         // rows
  CHECK(wrong<T>(batch, k, n, n + 5, 1) == 0);     // rows of a wider matrix
  CHECK(wrong<T>(batch, k, n, 1, k) == 0);         // columns
  CHECK(wrong<T>(batch, k, n, 1, k + 3, 2) == 0);  // columns of a taller one, a strided vector
  CHECK(wrong<T>(batch, k, n, 2, 2 * k) == 0);     // neither
}

}  // namespace

TEST_CASE("a vector by a matrix adds terms in eight parts, in every layout") {
  for (std::int64_t k : {1, 2, 3, 7, 8, 9, 33, 300, 1024, 1030, 3500})
    for (std::int64_t n : {1, 3, 4, 7, 8, 15, 16, 17, 40, 513}) {
      check_layouts<float>(2, k, n);
      check_layouts<double>(1, k, n);
    }
  check_layouts<float>(1, 200, 2600);
  check_layouts<double>(1, 1100, 300);
  check_layouts<double>(40, 20, 30);
}

TEST_CASE("products of vectors have the same bits eagerly, compiled and transposed") {
  const auto by = [](int axis) {
    return [axis](std::span<const Array> in) -> Arrays {
      return {lax::dot_general(in[0], in[1], {{1}, {axis}, {}, {}})};
    };
  };
  for (DType dtype : {DType::float32, DType::float64})
    for (std::int64_t n : {10, 16, 700}) {
      const Array x = random::normal(random::key(1), {Dim(1), Dim(400)}, dtype),
                  w = random::normal(random::key(2), {Dim(400), Dim(n)}, dtype);
      const std::vector<int> swapped{1, 0};
      // numpy::copy would share the memory, and so the layout, of what it copies.
      const Array turned(Buffer::copy_of(lax::transpose(w, swapped).buffer().view()));
      const Arrays rows{x, w}, columns{x, turned};
      const Array expected = by(0)(rows)[0];
      CHECK(same_bits(by(1)(columns)[0], expected));
      CHECK(same_bits(flat::Jit(by(0), "rows")(rows)[0], expected));
      CHECK(same_bits(flat::Jit(by(1), "columns")(columns)[0], expected));
    }
}
