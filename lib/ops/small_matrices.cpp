// See small_matrices.h.
// SPDX-License-Identifier: Apache-2.0
#include "ops/small_matrices.h"

#include <plait/base/math.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <limits>

namespace plait {
namespace {

template <class T>
constexpr int lanes = sizeof(T) == 4 ? 8 : 4;
constexpr std::int64_t most = largest_small_matrix;
template <class T>
using Lane = Pack<T, lanes<T>>;
// A matrix in each lane, row-major.
template <class T>
using Tile = Lane<T>[most * most];

// The matrices of a view, by number.
template <class T>
class Matrices {
 public:
  explicit Matrices(const View& view)
      : data_(view.as<T>()),
        shape_(view.shape.begin(), view.shape.end() - 2),
        strides_(view.strides.begin(), view.strides.end() - 2),
        rows(view.shape[view.rank() - 2]),
        columns(view.shape[view.rank() - 1]),
        row_stride(view.strides[view.rank() - 2]),
        column_stride(view.strides[view.rank() - 1]) {}
  std::int64_t count() const { return num_elements(shape_); }
  T* at(std::int64_t number) const {
    std::int64_t offset = 0;
    for (int axis = int(shape_.size()); axis-- > 0; number /= shape_[axis])
      offset += number % shape_[axis] * strides_[axis];
    return data_ + offset;
  }

 private:
  T* const data_;
  const Sizes64 shape_, strides_;

 public:
  const std::int64_t rows, columns, row_stride, column_stride;
};

// Reads and writes `count` matrices from number `first` on; the other lanes repeat the last one.
template <class T>
class Block {
 public:
  Block(const Matrices<T>& matrices, std::int64_t first, std::int64_t count)
      : row_stride_(matrices.row_stride), column_stride_(matrices.column_stride), count_(count) {
    for (int lane = 0; lane < lanes<T>; ++lane)
      memory_[lane] = matrices.at(first + std::min<std::int64_t>(lane, count - 1));
  }
  Lane<T> load(std::int64_t i, std::int64_t j) const {
    const std::int64_t offset = i * row_stride_ + j * column_stride_;
    Lane<T> value;
#pragma GCC unroll 8
    for (int lane = 0; lane < lanes<T>; ++lane) value.v[lane] = memory_[lane][offset];
    return value;
  }
  void store(const Lane<T>& value, std::int64_t i, std::int64_t j) const {
    const std::int64_t offset = i * row_stride_ + j * column_stride_;
    if (count_ == lanes<T>) {
#pragma GCC unroll 8
      for (int lane = 0; lane < lanes<T>; ++lane) memory_[lane][offset] = value[lane];
    } else {
      for (int lane = 0; lane < count_; ++lane) memory_[lane][offset] = value[lane];
    }
  }

 private:
  T* memory_[lanes<T>];
  const std::int64_t row_stride_, column_stride_, count_;
};

// body(first, count) for blocks of matrices, in parallel; work: of one matrix.
template <class T, class Body>
void for_blocks(std::int64_t count, double work, const Body& body) {
  const std::int64_t blocks = (count + lanes<T> - 1) / lanes<T>;
  const double grain = 65536 / lanes<T> / std::max(1.0, work);
  parallel_for(blocks, std::max<std::int64_t>(1, std::int64_t(grain)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t block = begin; block < end; ++block)
                   body(block * lanes<T>,
                        std::min<std::int64_t>(lanes<T>, count - block * lanes<T>));
               });
}

// L in place of the lower triangle of a, column after column; NaN where there is none.
template <class T>
void factor(Tile<T>& l, std::int64_t n) {
  const Lane<T> nan(std::numeric_limits<T>::quiet_NaN()), largest(std::numeric_limits<T>::max());
  Lane<T> excess(T(0));  // NaN once a pivot was not positive and finite
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      Lane<T> sum = l[i * n + j];
      for (std::int64_t k = 0; k < j; ++k) sum = math::fma(-l[i * n + k], l[j * n + k], sum);
      l[i * n + j] = sum;
    }
    const Lane<T> pivot = l[j * n + j];
    excess = math::select(pivot > Lane<T>(T(0)), math::select(pivot <= largest, excess, nan), nan);
    const Lane<T> root = math::sqrt(pivot);
    l[j * n + j] = root;
    for (std::int64_t i = j + 1; i < n; ++i) l[i * n + j] = l[i * n + j] / root;
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      l[i * n + j] = math::select(excess == excess, l[i * n + j], nan);
}

// X of L X = B, in place of B, which has m columns.
template <class T>
void substitute(const Tile<T>& l, Tile<T>& x, std::int64_t n, std::int64_t m, bool unit) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Lane<T> pivot = l[i * n + i];
    const Lane<T> inverse = Lane<T>(T(1)) / pivot;
    for (std::int64_t c = 0; c < m; ++c) {
      Lane<T> sum = x[i * m + c];
      for (std::int64_t k = 0; k < i; ++k) sum = math::fma(-l[i * n + k], x[k * m + c], sum);
      x[i * m + c] = unit ? sum : m == 1 ? sum / pivot : sum * inverse;
    }
  }
}

}  // namespace

template <class T>
void small_cholesky(const View& matrices, const View& out) {
  const Matrices<T> from(matrices), to(out);
  const std::int64_t n = from.rows;
  for_blocks<T>(from.count(), double(n * n * n), [&](std::int64_t first, std::int64_t count) {
    Tile<T> l;
    const Block<T> read(from, first, count), write(to, first, count);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j <= i; ++j) l[i * n + j] = read.load(i, j);
    factor<T>(l, n);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) write.store(j <= i ? l[i * n + j] : Lane<T>(T(0)), i, j);
  });
}

template <class T>
void small_triangular_solve(const View& a, const View& b, const View& out,
                            const SmallSystem& system) {
  const Matrices<T> triangles(a), sides(b), results(out);
  const std::int64_t n = triangles.rows, m = system.left ? sides.columns : sides.rows;
  auto place = [&](std::int64_t i) { return system.reversed ? n - 1 - i : i; };
  for_blocks<T>(triangles.count(), double(n * n * m), [&](std::int64_t first, std::int64_t count) {
    Tile<T> l, x;
    const Block<T> triangle(triangles, first, count), side(sides, first, count),
        result(results, first, count);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < i + (system.unit ? 0 : 1); ++j)
        l[i * n + j] =
            system.turned ? triangle.load(place(j), place(i)) : triangle.load(place(i), place(j));
    if (system.unit)
      for (std::int64_t i = 0; i < n; ++i) l[i * n + i] = Lane<T>(T(1));
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < m; ++c)
        x[i * m + c] = system.left ? side.load(place(i), c) : side.load(c, place(i));
    substitute<T>(l, x, n, m, system.unit);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < m; ++c)
        system.left ? result.store(x[i * m + c], place(i), c)
                    : result.store(x[i * m + c], c, place(i));
  });
}

template void small_cholesky<float>(const View&, const View&);
template void small_cholesky<double>(const View&, const View&);
template void small_triangular_solve<float>(const View&, const View&, const View&,
                                            const SmallSystem&);
template void small_triangular_solve<double>(const View&, const View&, const View&,
                                             const SmallSystem&);

}  // namespace plait
