// Every sum stays in a lane of its own, so its terms are added in order, whatever the layout. Where
// the columns of the matrix are contiguous, four rows at a time are added to a block of sums in the
// first-level cache. Where its rows are contiguous, squares of it are transposed in registers. See
// vector_products.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/vector_products.h"

#include <plait/base/math.h>
#include <plait/base/pool.h>

#include <algorithm>

#include "base/spinning.h"
#include "base/transpose_lanes.h"

namespace plait {
namespace {

constexpr std::int64_t widest = 1024;  // sums in the first-level cache
constexpr std::int64_t worth_a_thread = 1 << 16;

template <class T>
using Lanes = Pack<T, sizeof(T) == 4 ? 8 : 4>;
template <class T>
constexpr int width = Lanes<T>::width;

// One vector, and a range of columns of one matrix.
template <class T>
struct Columns {
  const T *lhs, *rhs;
  std::int64_t lhs_stride, row_stride, column_stride, k, n;
  T* out;

  Columns part(std::int64_t first, std::int64_t count) const {
    Columns some = *this;
    some.rhs += first * column_stride;
    some.out += first;
    some.n = count;
    return some;
  }
  T factor(std::int64_t i) const { return lhs[i * lhs_stride]; }
};

template <class T, int rows>
void add_rows(const Columns<T>& c, std::int64_t i, T* sums) {
  Lanes<T> factors[rows];
  const T* terms[rows];
  for (int r = 0; r < rows; ++r) {
    factors[r] = Lanes<T>(c.factor(i + r));
    terms[r] = c.rhs + (i + r) * c.row_stride;
  }
  std::int64_t j = 0;
  for (; j + width<T> <= c.n; j += width<T>) {
    Lanes<T> sum = Lanes<T>::load(sums + j);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) sum = math::fma(factors[r], Lanes<T>::load(terms[r] + j), sum);
    sum.store(sums + j);
  }
  for (; j < c.n; ++j)
    for (int r = 0; r < rows; ++r) sums[j] = std::fma(c.factor(i + r), terms[r][j], sums[j]);
}

// Contiguous columns, at most `widest`.
template <class T>
void multiply_by_rows(const Columns<T>& c) {
  T sums[widest];
  std::fill_n(sums, c.n, T(0));
  std::int64_t i = 0;
  for (; i + 4 <= c.k; i += 4) add_rows<T, 4>(c, i, sums);
  for (; i < c.k; ++i) add_rows<T, 1>(c, i, sums);
  std::copy_n(sums, c.n, c.out);
}

// As many columns as `groups` packs hold; each column is contiguous in itself.
template <class T, int groups>
void multiply_by_columns(const Columns<T>& c) {
  constexpr int W = width<T>;
  Lanes<T> sums[groups];
  for (Lanes<T>& sum : sums) sum = Lanes<T>(T(0));
  std::int64_t i = 0;
  for (; i + W <= c.k; i += W) {
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) {
      const T* const first = c.rhs + g * W * c.column_stride + i;
      Lanes<T> terms[W];
#pragma GCC unroll 8
      for (int r = 0; r < W; ++r) terms[r] = Lanes<T>::load(first + r * c.column_stride);
      transpose_lanes(terms);
#pragma GCC unroll 8
      for (int r = 0; r < W; ++r) sums[g] = math::fma(Lanes<T>(c.factor(i + r)), terms[r], sums[g]);
    }
  }
  for (int g = 0; g < groups; ++g) sums[g].store(c.out + g * W);
  for (; i < c.k; ++i)
    for (std::int64_t j = 0; j < groups * W; ++j)
      c.out[j] = std::fma(c.factor(i), c.rhs[j * c.column_stride + i], c.out[j]);
}

template <class T>
void multiply_plainly(const Columns<T>& c) {
  for (std::int64_t j = 0; j < c.n; ++j) {
    T sum(0);
    for (std::int64_t i = 0; i < c.k; ++i)
      sum = std::fma(c.factor(i), c.rhs[i * c.row_stride + j * c.column_stride], sum);
    c.out[j] = sum;
  }
}

template <class T>
void multiply_columns(const Columns<T>& c) {
  if (c.column_stride == 1) return multiply_by_rows(c);
  if (c.row_stride != 1) return multiply_plainly(c);
  constexpr std::int64_t wide = 2 * width<T>;
  std::int64_t j = 0;
  for (; j + wide <= c.n; j += wide) multiply_by_columns<T, 2>(c.part(j, wide));
  for (; j + width<T> <= c.n; j += width<T>) multiply_by_columns<T, 1>(c.part(j, width<T>));
  multiply_plainly(c.part(j, c.n - j));
}

template <class T>
void multiply_all(const MatrixStack<T>& lhs, const MatrixStack<T>& rhs, std::int64_t batch,
                  std::int64_t k, std::int64_t n, T* out) {
  constexpr std::int64_t line = 64 / sizeof(T);
  // Blocks small enough that all threads have work, in whole cache lines.
  const std::int64_t shared = ((n + num_threads() - 1) / num_threads() + line - 1) / line * line;
  const std::int64_t block = std::clamp(batch > 1 ? n : shared, line, widest);
  const std::int64_t blocks = (n + block - 1) / block;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(block, n) * k);
  parallel_for(batch * blocks,
               std::max<std::int64_t>(1, grain_while_spinning(worth_a_thread) / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const std::int64_t matrix = index / blocks, first = index % blocks * block;
                   const Columns<T> all{lhs.data + matrix * lhs.batch_stride,
                                        rhs.data + matrix * rhs.batch_stride,
                                        lhs.column_stride,
                                        rhs.row_stride,
                                        rhs.column_stride,
                                        k,
                                        n,
                                        out + matrix * n};
                   multiply_columns(all.part(first, std::min(block, n - first)));
                 }
               });
}

}  // namespace

void multiply_vector(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, float* out) {
  multiply_all<float>(lhs, rhs, batch, k, n, out);
}
void multiply_vector(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, double* out) {
  multiply_all<double>(lhs, rhs, batch, k, n, out);
}

}  // namespace plait
