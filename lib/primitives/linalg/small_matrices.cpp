// See small_matrices.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/small_matrices.h"

#include <plait/base/math.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <limits>

#include "base/transpose_lanes.h"
#include "primitives/linalg/small_factors.h"

namespace plait {
namespace {

template <class T>
constexpr int lanes = sizeof(T) == 4 ? 8 : 4;
constexpr std::int64_t most = small::largest;
template <class T>
using LanePack = Pack<T, lanes<T>>;
// A matrix in each lane, row-major.
template <class T>
using Tile = LanePack<T>[most * most];
using small::Elements;

// The matrices of a view, by index.
template <class T>
class Matrices {
 public:
  explicit Matrices(const View& view)
      : data_(view.as<T>()),
        rows(view.shape[view.rank() - 2]),
        columns(view.shape[view.rank() - 1]),
        row_stride(view.strides[view.rank() - 2]),
        column_stride(view.strides[view.rank() - 1]) {
    for (int axis = 0; axis < view.rank() - 2; ++axis) {
      const std::int64_t size = view.shape[axis], stride = view.strides[axis];
      count_ *= size;
      // Neighbouring axes that are contiguous merge: `at` divides by all but the first.
      if (!shape_.empty() && strides_.back() == size * stride) {
        shape_.back() *= size;
        strides_.back() = stride;
      } else if (size != 1) {
        shape_.push_back(size);
        strides_.push_back(stride);
      }
    }
  }
  std::int64_t count() const { return count_; }
  T* at(std::int64_t number) const {
    if (shape_.empty()) return data_;
    std::int64_t offset = 0;
    for (std::size_t axis = shape_.size(); axis-- > 1; number /= shape_[axis])
      offset += number % shape_[axis] * strides_[axis];
    return data_ + offset + number * strides_[0];
  }

 private:
  T* const data_;
  std::int64_t count_ = 1;
  Sizes64 shape_, strides_;

 public:
  const std::int64_t rows, columns, row_stride, column_stride;
};

// Reads and writes `count` matrices from index `first` on; the other lanes repeat the last one. In
// a tile their elements are in memory order: along rows, or along columns where only those are
// contiguous.
template <class T>
class Block {
 public:
  Block(const Matrices<T>& matrices, std::int64_t first, std::int64_t count)
      : by_columns_(matrices.column_stride != 1 && matrices.row_stride == 1), count_(count) {
    runs_ = by_columns_ ? matrices.columns : matrices.rows;
    length_ = by_columns_ ? matrices.rows : matrices.columns;
    run_stride_ = by_columns_ ? matrices.column_stride : matrices.row_stride;
    stride_ = by_columns_ ? matrices.row_stride : matrices.column_stride;
    for (int lane = 0; lane < lanes<T>; ++lane)
      memory_[lane] = matrices.at(first + std::min<std::int64_t>(lane, count - 1));
  }
  Elements<LanePack<T>> elements(Tile<T>& tile) const {
    return by_columns_ ? Elements<LanePack<T>>{tile, 1, length_}
                       : Elements<LanePack<T>>{tile, length_, 1};
  }
  Elements<LanePack<T>> load(Tile<T>& tile) const {
    for_runs([&](std::int64_t offset, std::int64_t at, std::int64_t length) {
      std::int64_t i = 0;
      if (stride_ == 1)
        for (; i + lanes<T> <= length; i += lanes<T>) {
          LanePack<T> rows[lanes<T>];
#pragma GCC unroll 8
          for (int lane = 0; lane < lanes<T>; ++lane)
            rows[lane] = LanePack<T>::load(memory_[lane] + offset + i);
          transpose_lanes(rows);
#pragma GCC unroll 8
          for (int lane = 0; lane < lanes<T>; ++lane) tile[at + i + lane] = rows[lane];
        }
      for (; i < length; ++i)
#pragma GCC unroll 8
        for (int lane = 0; lane < lanes<T>; ++lane)
          tile[at + i].v[lane] = memory_[lane][offset + i * stride_];
    });
    return elements(tile);
  }
  void store(const Tile<T>& tile) const {
    for_runs([&](std::int64_t offset, std::int64_t at, std::int64_t length) {
      std::int64_t i = 0;
      if (stride_ == 1 && count_ == lanes<T>)
        for (; i + lanes<T> <= length; i += lanes<T>) {
          LanePack<T> rows[lanes<T>];
#pragma GCC unroll 8
          for (int lane = 0; lane < lanes<T>; ++lane) rows[lane] = tile[at + i + lane];
          transpose_lanes(rows);
#pragma GCC unroll 8
          for (int lane = 0; lane < lanes<T>; ++lane) rows[lane].store(memory_[lane] + offset + i);
        }
      for (; i < length; ++i)
        for (int lane = 0; lane < count_; ++lane)
          memory_[lane][offset + i * stride_] = tile[at + i][lane];
    });
  }

 private:
  // body(offset in a matrix, place in a tile, elements)
  template <class Body>
  void for_runs(const Body& body) const {
    if (run_stride_ == length_ * stride_) return body(0, 0, runs_ * length_);
    for (std::int64_t run = 0; run < runs_; ++run) body(run * run_stride_, run * length_, length_);
  }

  T* memory_[lanes<T>];
  const bool by_columns_;
  const std::int64_t count_;
  std::int64_t runs_, length_, run_stride_, stride_;
};

// Calls body(first, count) for blocks of matrices, in parallel; work is the cost of one matrix.
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

}  // namespace

template <class T>
void small_cholesky(const View& matrices, const View& out) {
  const Matrices<T> from(matrices), to(out);
  const std::int64_t n = from.rows;
  for_blocks<T>(from.count(), double(n * n * n), [&](std::int64_t first, std::int64_t count) {
    Tile<T> a, l;
    small::cholesky<T>(Block<T>(from, first, count).load(a), l, n);
    Block<T>(to, first, count).store(l);
  });
}

template <class T>
void small_triangular_solve(const View& a, const View& b, const View& out,
                            const SmallSystem& system) {
  const Matrices<T> triangles(a), sides(b), results(out);
  const std::int64_t n = triangles.rows, m = system.left ? sides.columns : sides.rows;
  // In the layout of l x = b.
  auto turned = [&](Elements<LanePack<T>> elements, bool transposed) {
    if (transposed) elements = elements.transposed();
    return system.reversed ? elements.rows_reversed(n) : elements;
  };
  for_blocks<T>(triangles.count(), double(n * n * m), [&](std::int64_t first, std::int64_t count) {
    Tile<T> triangle, side, result;
    const Block<T> to(results, first, count);
    Elements<LanePack<T>> l =
        turned(Block<T>(triangles, first, count).load(triangle), system.turned);
    if (system.reversed) l = l.transposed().rows_reversed(n).transposed();
    small::System<T, LanePack<T>>{l,
                                  turned(Block<T>(sides, first, count).load(side), !system.left),
                                  turned(to.elements(result), !system.left),
                                  n,
                                  m,
                                  system.unit}
        .solve();
    to.store(result);
  });
}

template <class T>
void small_lu(const View& matrices, const View& out, const View& pivots, const View& order) {
  const Matrices<T> from(matrices), to(out);
  const std::int64_t m = from.rows, n = from.columns, k = std::min(m, n);
  for_blocks<T>(from.count(), double(m * n * k), [&](std::int64_t first, std::int64_t count) {
    Tile<T> tile;
    LanePack<T> rows[most], places[most];
    const Block<T> block(from, first, count);
    const Elements<LanePack<T>> a = block.load(tile);
    small::lu<T>(a, rows, places, m, n);
    for (std::int64_t lane = 0; lane < count; ++lane) {
      T* const x = to.at(first + lane);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) x[i * n + j] = a(i, j)[int(lane)];
      for (std::int64_t i = 0; i < k; ++i)
        pivots.as<std::int32_t>()[(first + lane) * k + i] = std::int32_t(rows[i][int(lane)]);
      for (std::int64_t i = 0; i < m; ++i)
        order.as<std::int32_t>()[(first + lane) * m + i] = std::int32_t(places[i][int(lane)]);
    }
  });
}

template <class T>
void small_det(const View& matrices, const View& out) {
  const Matrices<T> from(matrices);
  const std::int64_t n = from.rows;
  for_blocks<T>(from.count(), double(n * n * n), [&](std::int64_t first, std::int64_t count) {
    Tile<T> tile;
    const LanePack<T> product = small::det<T>(Block<T>(from, first, count).load(tile), n);
    product.store(out.as<T>() + first, int(count));
  });
}

template void small_det<float>(const View&, const View&);
template void small_det<double>(const View&, const View&);
template void small_lu<float>(const View&, const View&, const View&, const View&);
template void small_lu<double>(const View&, const View&, const View&, const View&);
template void small_cholesky<float>(const View&, const View&);
template void small_cholesky<double>(const View&, const View&);
template void small_triangular_solve<float>(const View&, const View&, const View&,
                                            const SmallSystem&);
template void small_triangular_solve<double>(const View&, const View&, const View&,
                                             const SmallSystem&);

}  // namespace plait
