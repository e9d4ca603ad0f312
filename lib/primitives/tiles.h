// Matrices in tiles of rows, with what multiplies, factors and solves them. Each element is a sum
// in the order of its terms, one fused multiply-add per real product, whatever the number of
// columns and threads. Sums stay in registers; complex numbers are split into their parts, so that
// they multiply without shuffles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/base/pack.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <utility>
#include <vector>

namespace plait::tiles {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// A matrix in memory; strides in elements.
template <class T>
struct Strided {
  T* first;
  std::int64_t row_stride, column_stride;
  T& operator()(std::int64_t i, std::int64_t j) const {
    return first[i * row_stride + j * column_stride];
  }
  Strided transposed() const { return {first, column_stride, row_stride}; }
  // The last of `rows` rows first.
  Strided rows_reversed(std::int64_t rows) const {
    return {rows > 0 ? first + (rows - 1) * row_stride : first, -row_stride, column_stride};
  }
  Strided columns_from(std::int64_t j) const {
    return {first + j * column_stride, row_stride,
            column_stride};  // first is null where it is empty
  }
};

// A matrix of which each tile has `height` rows. A column of a tile is two packs: the real and the
// imaginary parts of its elements, or the first and the second half of them where they are real.
template <class T>
class Tiles {
 public:
  using Real = typename RealOf<T>::type;
  using V = Pack<Real, 32 / sizeof(Real)>;
  static constexpr bool is_complex = !std::is_same_v<T, Real>;
  static constexpr int width = V::width, slot = 2 * width, height = is_complex ? width : slot;
  static constexpr int group = 4;  // columns that are computed together

  // Zeros, of whole groups of columns.
  Tiles(std::int64_t rows, std::int64_t columns)
      : columns_((columns + group - 1) / group * group),
        memory_(Buffer::empty(dtype_of<Real>(), {(rows + height - 1) / height, columns_, slot})),
        first_(static_cast<Real*>(memory_.mutable_data())) {
    std::fill_n(first_, num_elements(memory_.shape()), Real(0));
  }

  std::int64_t columns() const { return columns_; }
  Real* at(std::int64_t tile, std::int64_t column) {
    return first_ + (tile * columns_ + column) * slot;
  }
  const Real* at(std::int64_t tile, std::int64_t column) const {
    return first_ + (tile * columns_ + column) * slot;
  }
  // The first part of an element; a complex one's second is `width` numbers behind.
  Real* place(std::int64_t row, std::int64_t column) {
    return at(row / height, column) + row % height;
  }
  const Real* place(std::int64_t row, std::int64_t column) const {
    return at(row / height, column) + row % height;
  }

  static T read(const Real* place) {
    if constexpr (is_complex)
      return T(place[0], place[width]);
    else
      return *place;
  }
  static void write(T value, Real* place) {
    if constexpr (is_complex) {
      place[0] = value.real();
      place[width] = value.imag();
    } else {
      *place = value;
    }
  }
  T get(std::int64_t row, std::int64_t column) const { return read(place(row, column)); }
  void set(std::int64_t row, std::int64_t column, T value) { write(value, place(row, column)); }

  // Columns [begin, end) of these rows become element(i, j).
  template <class Element>
  void fill(std::int64_t rows, std::int64_t begin, std::int64_t end, const Element& element) {
    for (std::int64_t i = 0; i < rows; i += height)
      for (std::int64_t j = begin; j < end; ++j) {
        Real* const to = at(i / height, j);
        for (std::int64_t lane = 0; lane < std::min<std::int64_t>(height, rows - i); ++lane)
          write(element(i + lane, j), to + lane);
      }
  }
  // The lower triangle of n rows becomes element(i, j).
  template <class Element>
  void fill_lower(std::int64_t n, const Element& element) {
    for (std::int64_t i = 0; i < n; i += height)
      for (std::int64_t j = 0; j < std::min<std::int64_t>(i + height, n); ++j)
        for (std::int64_t lane = std::max<std::int64_t>(0, j - i);
             lane < std::min<std::int64_t>(height, n - i); ++lane)
          write(element(i + lane, j), at(i / height, j) + lane);
  }
  // take(i, j, element) for these rows and columns.
  template <class Take>
  void for_elements(std::int64_t rows, std::int64_t columns, const Take& take) const {
    for (std::int64_t i = 0; i < rows; i += height)
      for (std::int64_t j = 0; j < columns; ++j) {
        const Real* const from = at(i / height, j);
        for (std::int64_t lane = 0; lane < std::min<std::int64_t>(height, rows - i); ++lane)
          take(i + lane, j, read(from + lane));
      }
  }

 private:
  std::int64_t columns_;
  Buffer memory_;
  Real* first_;
};

// A number in all lanes.
template <class T>
struct Factor {
  using V = typename Tiles<T>::V;
  V real, imaginary;
  static Factor load(const typename Tiles<T>::Real* place) {
    if constexpr (Tiles<T>::is_complex)
      return {V(*place), V(place[V::width])};
    else
      return {V(*place), V()};
  }
  static Factor of(T x) { return {V(std::real(x)), V(std::imag(x))}; }
};

// A column of a tile.
template <class T>
struct Column {
  using Real = typename Tiles<T>::Real;
  using V = typename Tiles<T>::V;
  static constexpr bool is_complex = Tiles<T>::is_complex;
  V first, second;

  static Column load(const Real* src) { return {V::load(src), V::load(src + V::width)}; }
  static Column of(const Factor<T>& x) { return {x.real, is_complex ? x.imaginary : x.real}; }
  void store(Real* dst) const {
    first.store(dst);
    second.store(dst + V::width);
  }
  Column operator-() const { return {-first, -second}; }
  [[gnu::always_inline]] Column plus(const Column& l, const Factor<T>& x) const {
    if constexpr (is_complex)
      return {math::fma(l.first, x.real, math::fma(-l.second, x.imaginary, first)),
              math::fma(l.first, x.imaginary, math::fma(l.second, x.real, second))};
    else
      return {math::fma(l.first, x.real, first), math::fma(l.second, x.real, second)};
  }
  [[gnu::always_inline]] Column times(const Factor<T>& x) const {
    if constexpr (is_complex)
      return {math::fma(first, x.real, -(second * x.imaginary)),
              math::fma(first, x.imaginary, second * x.real)};
    else
      return {first * x.real, second * x.real};
  }
  // The rows of a tile after `row`; those up to it from `other`.
  [[gnu::always_inline]] Column after(std::int64_t row, const Column& other) const {
    using Integers = Pack<IntegerOf<Real>, V::width>;
    Integers lanes;
    for (int lane = 0; lane < V::width; ++lane) lanes.v[lane] = lane;
    const auto select_after = [&](std::int64_t last, V x, V y) {
      return math::select(lanes > Integers(IntegerOf<Real>(last)), x, y);
    };
    return {select_after(row, first, other.first),
            select_after(is_complex ? row : row - V::width, second, other.second)};
  }
  // One row in all lanes.
  template <int row>
  [[gnu::always_inline]] Factor<T> spread() const {
    const auto spread_lane = [](const V& pack) {
      return [&]<int... lane>(std::integer_sequence<int, lane...>) {
        return V(__builtin_shufflevector(pack.v, pack.v, (lane * 0 + row % V::width)...));
      }(std::make_integer_sequence<int, V::width>());
    };
    if constexpr (is_complex)
      return {spread_lane(first), spread_lane(second)};
    else
      return {spread_lane(row < V::width ? first : second), V()};
  }
};

// Adds to a group of columns of `sums`, in a tile of rows, the products of columns [begin, end) of
// l in that tile with these rows of x, or subtracts them. begin is the first row of a tile. The
// sums are arrays of this function, so that they stay in registers.
template <bool subtracts, class T>
void add_products(const Tiles<T>& l, std::int64_t tile, std::int64_t begin, std::int64_t end,
                  const Tiles<T>& x, Tiles<T>& sums, std::int64_t column) {
  using V = typename Tiles<T>::V;
  constexpr int group = Tiles<T>::group, height = Tiles<T>::height, slot = Tiles<T>::slot;
  V first[group], second[group];
#pragma GCC unroll 4
  for (int j = 0; j < group; ++j) {
    first[j] = V::load(sums.at(tile, column + j));
    second[j] = V::load(sums.at(tile, column + j) + V::width);
  }
  const typename Tiles<T>::Real* factors = l.at(tile, begin);
  for (std::int64_t k = begin; k < end; k += height) {
    const typename Tiles<T>::Real* known = x.at(k / height, column);
    const auto* const last = known + std::min<std::int64_t>(height, end - k);
    for (; known < last; ++known, factors += slot) {
      const Column<T> term = Column<T>::load(factors), factor = subtracts ? -term : term;
#pragma GCC unroll 4
      for (int j = 0; j < group; ++j) {
        const Column<T> sum =
            Column<T>{first[j], second[j]}.plus(factor, Factor<T>::load(known + j * slot));
        first[j] = sum.first;
        second[j] = sum.second;
      }
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < group; ++j) {
    first[j].store(sums.at(tile, column + j));
    second[j].store(sums.at(tile, column + j) + V::width);
  }
}

// The first `rows` unknowns of a tile of l x = b, for a group of columns, and what they take from
// the rows after them in it. inverses: of l's diagonal, as one column, or null where that is 1.
template <class T>
void solve_in_tile(const Tiles<T>& l, std::int64_t tile, std::int64_t rows,
                   const Tiles<T>* inverses, Tiles<T>& x, std::int64_t column) {
  constexpr int height = Tiles<T>::height;
  for (int j = 0; j < Tiles<T>::group; ++j) {
    Column<T> sums = Column<T>::load(x.at(tile, column + j));
    const auto solve_row = [&]<int row>() __attribute__((always_inline)) {
      if (row >= rows) return;
      Factor<T> known = sums.template spread<row>();
      if (inverses) {
        const Column<T> solved =
            Column<T>::of(known).times(Factor<T>::load(inverses->at(tile, 0) + row));
        known = {solved.first, solved.second};
      }
      const Column<T> others = Column<T>::of(known).after(row - 1, sums);
      const Column<T> factor = -Column<T>::load(l.at(tile, tile * height + row));
      sums = sums.plus(factor, known).after(row, others);
    };
    [&]<int... row>(std::integer_sequence<int, row...>) __attribute__((always_inline)) {
      (solve_row.template operator()<row>(), ...);
    }(std::make_integer_sequence<int, height>());
    sums.store(x.at(tile, column + j));
  }
}

// l x = b for the lower triangle of l, of n rows, in place.
template <class T>
void solve_lower(const Tiles<T>& l, std::int64_t n, const Tiles<T>* inverses, Tiles<T>& x) {
  constexpr std::int64_t height = Tiles<T>::height;
  for (std::int64_t tile = 0; tile * height < n; ++tile)
    for (std::int64_t j = 0; j < x.columns(); j += Tiles<T>::group) {
      add_products<true>(l, tile, 0, tile * height, x, x, j);
      solve_in_tile(l, tile, std::min(height, n - tile * height), inverses, x, j);
    }
}

// The factors of P A = L U, of m rows and n columns, by partial pivoting. The pivot has the largest
// sum of its parts' sizes, as in LAPACK.
template <class T>
class PivotedFactors {
  using Real = typename Tiles<T>::Real;
  static constexpr std::int64_t height = Tiles<T>::height;

 public:
  PivotedFactors(std::int64_t m, std::int64_t n)
      : m_(m), n_(n), a_(m, n), pivots_(std::size_t(std::min(m, n))), order_(std::size_t(m)) {}

  // L below the diagonal, U on it and above.
  const Tiles<T>& matrix() const { return a_; }
  // The row that each was exchanged with, and the original place of each.
  const std::vector<std::int32_t>& pivots() const { return pivots_; }
  const std::vector<std::int32_t>& order() const { return order_; }

  // Left-looking: a group of columns is read when all columns before it are known.
  void factor(const Strided<const T>& x) {
    for (std::int64_t i = 0; i < m_; ++i) order_[std::size_t(i)] = std::int32_t(i);
    const auto k = std::int64_t(pivots_.size());
    for (std::int64_t first = 0; first < n_; first += Tiles<T>::group) {
      const std::int64_t end = std::min<std::int64_t>(first + Tiles<T>::group, n_);
      a_.fill(m_, first, end,
              [&](std::int64_t i, std::int64_t j) { return x(order_[std::size_t(i)], j); });
      const std::int64_t known = std::min(first, k);
      for (std::int64_t tile = 0; tile * height < m_; ++tile) {
        add_products<true>(a_, tile, 0, std::min(tile * height, known), a_, a_, first);
        if (tile * height < known)
          solve_in_tile<T>(a_, tile, std::min(height, known - tile * height), nullptr, a_, first);
      }
      for (std::int64_t j = first; j < std::min(end, k); ++j) eliminate(j, end);
    }
  }

 private:
  static Real size_of(const T& x) {
    return Tiles<T>::is_complex ? std::abs(std::real(x)) + std::abs(std::imag(x)) : std::abs(x);
  }

  // Of the first columns.
  void exchange(std::int64_t row, std::int64_t other, std::int64_t columns) {
    std::swap(order_[std::size_t(row)], order_[std::size_t(other)]);
    Real *x = a_.place(row, 0), *y = a_.place(other, 0);
    for (std::int64_t j = 0; j < columns; ++j, x += Tiles<T>::slot, y += Tiles<T>::slot) {
      std::swap(x[0], y[0]);
      if constexpr (Tiles<T>::is_complex) std::swap(x[Tiles<T>::width], y[Tiles<T>::width]);
    }
  }

  // Chooses the pivot of column j; subtracts its multiples from the columns after it, up to `end`.
  void eliminate(std::int64_t j, std::int64_t end) {
    std::int64_t pivot = j;
    Real largest = size_of(a_.get(j, j));
    for (std::int64_t i = j + 1; i < m_; ++i)
      if (const Real size = size_of(a_.get(i, j)); size > largest) {
        largest = size;
        pivot = i;
      }
    pivots_[std::size_t(j)] = std::int32_t(pivot);
    if (pivot != j) exchange(j, pivot, end);
    if (largest == 0) return;  // a column of zeros has nothing to eliminate
    scale(j);
    for (std::int64_t tile = j / height; tile * height < m_; ++tile) {
      const Column<T> l = -Column<T>::load(a_.at(tile, j));
      for (std::int64_t k = j + 1; k < end; ++k) {
        const Column<T> x = Column<T>::load(a_.at(tile, k));
        const Factor<T> factor = Factor<T>::load(a_.place(j, k));
        x.plus(l, factor).after(j - tile * height, x).store(a_.at(tile, k));
      }
    }
  }

  // Divides column j, below the diagonal, by the pivot: by its inverse unless that overflows.
  void scale(std::int64_t j) {
    const T pivot = a_.get(j, j), inverse = T(1) / pivot;
    if (!std::isfinite(size_of(inverse))) {
      for (std::int64_t i = j + 1; i < m_; ++i) a_.set(i, j, a_.get(i, j) / pivot);
      return;
    }
    for (std::int64_t tile = j / height; tile * height < m_; ++tile) {
      const Column<T> l = Column<T>::load(a_.at(tile, j));
      l.times(Factor<T>::of(inverse)).after(j - tile * height, l).store(a_.at(tile, j));
    }
  }

  std::int64_t m_, n_;
  Tiles<T> a_;
  std::vector<std::int32_t> pivots_, order_;
};

}  // namespace plait::tiles
