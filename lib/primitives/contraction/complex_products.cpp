// Blocks of rows of lhs in tiles, which the second-level cache holds, times strips of columns of
// rhs, a part of which the first-level cache holds. See complex_products.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/complex_products.h"

#include <plait/base/pool.h>

#include <algorithm>

#include "primitives/tiles.h"

namespace plait {
namespace {

constexpr std::int64_t most_rows = 96, most_columns = 512;  // of a block
constexpr std::int64_t strip = 16, near_terms = 256;
constexpr std::int64_t worth_a_thread = 1 << 16;

// Of one product: matrices in memory.
template <class T>
struct Block {
  tiles::Strided<const T> lhs, rhs;
  tiles::Strided<T> out;
  std::int64_t rows, terms, columns;

  void multiply() const {
    tiles::Tiles<T> factors(rows, terms);
    factors.fill(rows, 0, terms, lhs);
    for (std::int64_t first = 0; first < columns; first += strip)
      multiply_strip(factors, first, std::min(strip, columns - first));
  }

 private:
  void multiply_strip(const tiles::Tiles<T>& factors, std::int64_t first,
                      std::int64_t count) const {
    using Tiles = tiles::Tiles<T>;
    Tiles sides(terms, count), sums(rows, count);
    sides.fill(terms, 0, count, rhs.columns_from(first));
    for (std::int64_t begin = 0; begin < terms; begin += near_terms) {
      const std::int64_t end = std::min(begin + near_terms, terms);
      for (std::int64_t j = 0; j < count; j += Tiles::group)
        for (std::int64_t tile = 0; tile * Tiles::height < rows; ++tile)
          tiles::add_products<false>(factors, tile, begin, end, sides, sums, j);
    }
    const tiles::Strided<T> results = out.columns_from(first);
    sums.for_elements(
        rows, count, [results](std::int64_t i, std::int64_t j, T value) { results(i, j) = value; });
  }
};

// How many blocks of at most `most` there are, of nearly the same size. A multiple of the number of
// threads where they share one product: no sum depends on how many there are.
std::int64_t num_blocks(std::int64_t size, std::int64_t most, std::int64_t multiple) {
  const std::int64_t fewest = (size + most - 1) / most;
  return (fewest + multiple - 1) / multiple * multiple;
}

template <class T>
void multiply_all(const MatrixStack<T>& lhs, const MatrixStack<T>& rhs, std::int64_t batch,
                  std::int64_t m, std::int64_t k, std::int64_t n, T* out) {
  constexpr std::int64_t height = tiles::Tiles<T>::height;
  const bool is_shared = batch == 1 && m >= 2 * height * num_threads();
  const std::int64_t wanted = num_blocks(m, most_rows, is_shared ? num_threads() : 1);
  const std::int64_t rows = ((m + wanted - 1) / wanted + height - 1) / height * height,
                     columns = most_columns, row_blocks = (m + rows - 1) / rows,
                     column_blocks = (n + columns - 1) / columns,
                     blocks = row_blocks * column_blocks;
  const std::int64_t work = std::max<std::int64_t>(1, rows * std::min(n, columns) * k);
  parallel_for(
      batch * blocks, std::max<std::int64_t>(1, worth_a_thread / work),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t index = begin; index < end; ++index) {
          const std::int64_t matrix = index / blocks, i = index % blocks / column_blocks * rows,
                             j = index % column_blocks * columns;
          const Block<T> block{{lhs.data + matrix * lhs.batch_stride + i * lhs.row_stride,
                                lhs.row_stride, lhs.column_stride},
                               {rhs.data + matrix * rhs.batch_stride + j * rhs.column_stride,
                                rhs.row_stride, rhs.column_stride},
                               {out + (matrix * m + i) * n + j, n, 1},
                               std::min(rows, m - i),
                               k,
                               std::min(columns, n - j)};
          block.multiply();
        }
      });
}

}  // namespace

void multiply_complex(const MatrixStack<complex64>& lhs, const MatrixStack<complex64>& rhs,
                      std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                      complex64* out) {
  multiply_all<complex64>(lhs, rhs, batch, m, k, n, out);
}
void multiply_complex(const MatrixStack<complex128>& lhs, const MatrixStack<complex128>& rhs,
                      std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                      complex128* out) {
  multiply_all<complex128>(lhs, rhs, batch, m, k, n, out);
}

}  // namespace plait
