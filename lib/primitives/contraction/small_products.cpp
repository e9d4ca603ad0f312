// Tiles of the result stay in eight packs: an element of lhs in all lanes times a row of rhs. Where
// the columns of rhs are not contiguous, they are copied, or, where there are many of them, the
// operands swap roles. See small_products.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/small_products.h"

#include <plait/base/math.h>
#include <plait/base/pool.h>

#include <algorithm>

namespace plait {
namespace {

constexpr std::int64_t longest_sum = 32, most_packs = 4, row_chunk = 256;

template <class T>
using Lanes8 = Pack<T, sizeof(T) == 4 ? 8 : 4>;
template <class T>
constexpr std::int64_t width = Lanes8<T>::width;

// The destination of a tile's results.
template <class T>
struct Target {
  T* data;
  std::int64_t row_stride, column_stride;
};

template <class T, int rows, int packs>
[[gnu::always_inline]] inline void store_tile(const Lanes8<T> (&sums)[rows][packs],
                                              const Target<T>& out, std::int64_t columns) {
  if (out.column_stride == 1 && columns == packs * width<T>) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int p = 0; p < packs; ++p)
        sums[r][p].store(out.data + r * out.row_stride + p * width<T>);
    return;
  }
  for (int r = 0; r < rows; ++r)
    for (int p = 0; p < packs; ++p) {
      T* const to = out.data + r * out.row_stride + p * width<T> * out.column_stride;
      const std::int64_t count = std::clamp<std::int64_t>(columns - p * width<T>, 0, width<T>);
      if (out.column_stride == 1 && count == width<T>) {
        sums[r][p].store(to);
      } else {
        for (std::int64_t j = 0; j < count; ++j) to[j * out.column_stride] = sums[r][p][int(j)];
      }
    }
}

// The rows from `lhs` on times `packs` packs of columns: rhs has k rows of them, row_stride apart.
template <class T, int rows, int packs>
void multiply_tile(const T* lhs, std::int64_t lhs_row, std::int64_t lhs_column, const T* rhs,
                   std::int64_t rhs_row, std::int64_t k, const Target<T>& out,
                   std::int64_t columns) {
  // Unrolled, so that the sums are registers.
  Lanes8<T> sums[rows][packs];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) sums[r][p] = Lanes8<T>(T(0));
  for (std::int64_t i = 0; i < k; ++i) {
    Lanes8<T> terms[packs];
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) terms[p] = Lanes8<T>::load(rhs + i * rhs_row + p * width<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Lanes8<T> factor(lhs[r * lhs_row + i * lhs_column]);
#pragma GCC unroll 4
      for (int p = 0; p < packs; ++p) sums[r][p] = math::fma(factor, terms[p], sums[r][p]);
    }
  }
  store_tile<T, rows, packs>(sums, out, columns);
}

template <class T, int packs>
void multiply_rows(const MatrixStack<T>& lhs, std::int64_t begin, std::int64_t end, const T* rhs,
                   std::int64_t rhs_row, std::int64_t k, Target<T> out, std::int64_t columns) {
  constexpr int tile = 8 / packs;
  auto run = [&]<int rows>(std::int64_t row) {
    multiply_tile<T, rows, packs>(
        lhs.data + row * lhs.row_stride, lhs.row_stride, lhs.column_stride, rhs, rhs_row, k,
        {out.data + row * out.row_stride, out.row_stride, out.column_stride}, columns);
  };
  std::int64_t row = begin;
  for (; row + tile <= end; row += tile) run.template operator()<tile>(row);
  for (; row < end; ++row) run.template operator()<1>(row);
}

// Rows [begin, end) of one product. Columns are taken by up to four packs.
template <class T>
void multiply_matrix(const MatrixStack<T>& lhs, const MatrixStack<T>& rhs, std::int64_t begin,
                     std::int64_t end, std::int64_t k, std::int64_t n, const Target<T>& out) {
  T copy[longest_sum * most_packs * width<T>];
  for (std::int64_t first = 0; first < n; first += most_packs * width<T>) {
    const std::int64_t columns = std::min(most_packs * width<T>, n - first);
    const std::int64_t needed = (columns + width<T> - 1) / width<T>,
                       packs = needed == 3 ? most_packs : needed;
    const T* terms = rhs.data + first * rhs.column_stride;
    std::int64_t stride = rhs.row_stride;
    if (rhs.column_stride != 1 || columns != packs * width<T>) {
      stride = packs * width<T>;
      for (std::int64_t i = 0; i < k; ++i)
        for (std::int64_t j = 0; j < stride; ++j)
          copy[i * stride + j] =
              j < columns ? terms[i * rhs.row_stride + j * rhs.column_stride] : T(0);
      terms = copy;
    }
    const Target<T> to{out.data + first * out.column_stride, out.row_stride, out.column_stride};
    if (packs == 1)
      multiply_rows<T, 1>(lhs, begin, end, terms, stride, k, to, columns);
    else if (packs == 2)
      multiply_rows<T, 2>(lhs, begin, end, terms, stride, k, to, columns);
    else
      multiply_rows<T, 4>(lhs, begin, end, terms, stride, k, to, columns);
  }
}

template <class T>
void multiply_all(MatrixStack<T> lhs, MatrixStack<T> rhs, std::int64_t batch, std::int64_t m,
                  std::int64_t k, std::int64_t n, T* out) {
  const std::int64_t size = m * n;
  Target<T> target{out, n, 1};
  if (rhs.column_stride != 1 && n > m && n > longest_sum) {
    std::swap(lhs, rhs);
    std::swap(lhs.row_stride, lhs.column_stride);
    std::swap(rhs.row_stride, rhs.column_stride);
    std::swap(m, n);
    target = {out, 1, m};
  }
  const std::int64_t chunks = (m + row_chunk - 1) / row_chunk;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(m, row_chunk) * n * k);
  parallel_for(batch * chunks, std::max<std::int64_t>(1, 131072 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const std::int64_t matrix = index / chunks, first = index % chunks * row_chunk;
                   MatrixStack<T> a = lhs, b = rhs;
                   a.data += matrix * lhs.batch_stride;
                   b.data += matrix * rhs.batch_stride;
                   Target<T> to = target;
                   to.data += matrix * size;
                   multiply_matrix<T>(a, b, first, std::min(m, first + row_chunk), k, n, to);
                 }
               });
}

}  // namespace

void multiply_small(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                    std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                    float* out) {
  multiply_all<float>(lhs, rhs, batch, m, k, n, out);
}
void multiply_small(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                    std::int64_t batch, std::int64_t m, std::int64_t k, std::int64_t n,
                    double* out) {
  multiply_all<double>(lhs, rhs, batch, m, k, n, out);
}

}  // namespace plait
