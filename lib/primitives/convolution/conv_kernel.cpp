// Convolution as matrix products: kernels [out features, K] times windows [K, pixels], where K runs
// over features and positions in the window, and pixels over the batch and the positions of the
// result.
//
// Windows are gathered block by block into scratch memory that fits the second-level cache. A block
// is filled in runs along one dimension, chosen so that runs are long or contiguous in memory:
// result positions, window positions (the gradient with respect to a kernel, whose window is an
// image), features (channels-last images) or the batch (gradients of those). The blocks depend on
// the shape alone.
// SPDX-License-Identifier: Apache-2.0
#include "conv.h"

#include <plait/base/pack.h>
#include <plait/base/pool.h>

#ifndef EIGEN_DONT_PARALLELIZE
#define EIGEN_DONT_PARALLELIZE
#endif
#include <Eigen/Core>

#include <cstring>
#include <memory>
#include <numeric>

namespace plait {
namespace {

using Axis = ConvLoops::Axis;
enum class Run { result_places, window_places, features, batch };

// A mixed-radix number, whose last digit counts fastest.
struct Counter {
  Sizes64 sizes, digits;
  explicit Counter(Sizes64 sizes) : sizes(std::move(sizes)), digits(this->sizes.size(), 0) {}
  void set(std::int64_t value) {
    for (std::size_t i = sizes.size(); i-- > 0; value /= sizes[i]) digits[i] = value % sizes[i];
  }
  void next() {
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (++digits[i] < sizes[i]) return;
      digits[i] = 0;
    }
  }
};

// Of a run of n elements, those in [begin, end) are read from memory; the others are padding.
template <class T>
struct Piece {
  const T* src;  // the element at begin
  std::int64_t stride, begin, end;
};

template <class T>
void copy_piece(const Piece<T>& piece, T* dst, std::int64_t n) {
  if (piece.begin >= piece.end) {
    std::fill_n(dst, n, T(0));
    return;
  }
  std::fill_n(dst, piece.begin, T(0));
  if (piece.stride == 1)
    std::memcpy(dst + piece.begin, piece.src, (piece.end - piece.begin) * sizeof(T));
  else
    for (std::int64_t i = piece.begin, at = 0; i < piece.end; ++i, at += piece.stride)
      dst[i] = piece.src[at];
  std::fill_n(dst + piece.end, n - piece.end, T(0));
}

// dst += weight * run.
template <class T>
void add_piece(const Piece<T>& piece, T weight, T* dst) {
  std::int64_t i = piece.begin;
  const T* src = piece.src;
  if constexpr (std::is_floating_point_v<T>) {
    using P = Pack<T, 32 / sizeof(T)>;
    if (piece.stride == 1)
      for (; i + P::width <= piece.end; i += P::width, src += P::width)
        math::fma(P(weight), P::load(src), P::load(dst + i)).store(dst + i);
    for (; i < piece.end; ++i, src += piece.stride) dst[i] = math::fma(weight, *src, dst[i]);
  } else {
    for (; i < piece.end; ++i, src += piece.stride) dst[i] += weight * *src;
  }
}

// Every step-th element of an axis, from position first on.
template <class T>
Piece<T> piece_of(const T* lhs, std::int64_t n, std::int64_t first, std::int64_t step,
                  const Axis& axis) {
  std::int64_t begin = std::max<std::int64_t>(0, -first), end = axis.size - first;
  if (step > 1) {
    begin = (begin + step - 1) / step;
    end = end <= 0 ? 0 : (end + step - 1) / step;
  }
  return {lhs + (first + begin * step) * axis.lhs_stride, step * axis.lhs_stride, begin,
          std::min(n, end)};
}

// The matrix of windows, K by pixels: its digits, and the runs that form it.
template <class T>
class WindowMatrix {
 public:
  WindowMatrix(const ConvLoops& loops, Run run) : loops_(loops), run_(run) {
    // The digit along which runs go counts fastest.
    Sizes64 places, window;
    for (const Axis& axis : loops.axes) {
      places.push_back(axis.count);
      window.push_back(axis.window);
    }
    const std::size_t rank = loops.axes.size();
    pixels_ = places;
    pixels_.insert(run == Run::batch ? rank : 0, loops.batch);
    depth_ = window;
    depth_.insert(run == Run::features ? rank : 0, loops.features);
    first_place_ = run == Run::batch ? 0 : 1;
    first_window_ = run == Run::features ? 0 : 1;
  }
  const Sizes64& pixels() const { return pixels_; }
  // Runs go along K: the elements of a pixel are contiguous. Otherwise those of one k are.
  bool depth_is_inner() const { return run_ == Run::window_places || run_ == Run::features; }

  // Calls use(row, column, n, piece) for the runs of a block, where row and column are pixel and k,
  // or k and pixel, counted from the start of the block.
  template <class Use>
  void for_runs(const T* lhs, std::int64_t first_row, std::int64_t rows, std::int64_t first_column,
                std::int64_t columns, const Use& use) const {
    if (rows == 0) return;
    Counter row(depth_is_inner() ? pixels_ : depth_);
    Sizes64 column_digits = depth_is_inner() ? depth_ : pixels_;
    const std::int64_t inner = column_digits.back();
    column_digits.pop_back();
    Counter column(column_digits);
    const Sizes64& place = depth_is_inner() ? row.digits : column.digits;
    const Sizes64& window = depth_is_inner() ? column.digits : row.digits;
    row.set(first_row);
    for (std::int64_t r = 0; r < rows; ++r, row.next()) {
      column.set(first_column / inner);
      std::int64_t at = first_column % inner;
      for (std::int64_t done = 0; done < columns; column.next(), at = 0) {
        const std::int64_t n = std::min(columns - done, inner - at);
        use(r, done, n, run_at(lhs, place, window, at, n));
        done += n;
      }
    }
  }

 private:
  // A run of n elements from `at` on. place and window hold the other digits.
  Piece<T> run_at(const T* lhs, const Sizes64& place, const Sizes64& window, std::int64_t at,
                  std::int64_t n) const {
    const bool spatial = run_ == Run::result_places || run_ == Run::window_places;
    const int rank = int(loops_.axes.size()), checked = spatial ? rank - 1 : rank;
    if (run_ != Run::batch) lhs += place[0] * loops_.lhs_batch_stride;
    if (run_ != Run::features) lhs += window[0] * loops_.lhs_feature_stride;
    for (int i = 0; i < checked; ++i) {
      const Axis& axis = loops_.axes[i];
      const std::int64_t position = place[first_place_ + i] * axis.stride +
                                    window[first_window_ + i] * axis.window_dilation - axis.low;
      if (position < 0 || position >= axis.size) return {lhs, 1, 0, 0};
      lhs += position * axis.lhs_stride;
    }
    const std::int64_t feature = loops_.lhs_feature_stride, batch = loops_.lhs_batch_stride;
    if (run_ == Run::features) return {lhs + at * feature, feature, 0, n};
    if (run_ == Run::batch) return {lhs + at * batch, batch, 0, n};
    const Axis& axis = loops_.axes[rank - 1];
    if (run_ == Run::result_places) {
      const std::int64_t start = window[first_window_ + rank - 1] * axis.window_dilation - axis.low;
      return piece_of(lhs, n, at * axis.stride + start, axis.stride, axis);
    }
    const std::int64_t start = place[first_place_ + rank - 1] * axis.stride - axis.low;
    return piece_of(lhs, n, at * axis.window_dilation + start, axis.window_dilation, axis);
  }

  const ConvLoops& loops_;
  Run run_;
  Sizes64 pixels_, depth_;
  int first_place_, first_window_;
};

Run choose_run(const ConvLoops& loops, bool along_depth) {
  constexpr std::int64_t enough = 8;
  if (along_depth && loops.lhs_feature_stride == 1 && loops.features >= enough)
    return Run::features;
  if (loops.lhs_batch_stride == 1 && loops.batch >= enough) return Run::batch;
  return along_depth && loops.axes.back().window > loops.axes.back().count ? Run::window_places
                                                                           : Run::result_places;
}

// The kernels of every group as matrices [out features, K], with K in the order of the runs.
Buffer kernel_matrices(const ConvLoops& loops, DType dtype, const void* rhs, Run run) {
  View view{const_cast<void*>(rhs),
            dtype,
            {loops.groups, loops.out_features},
            {loops.rhs_group_stride, loops.rhs_out_stride}};
  for (const Axis& axis : loops.axes) {
    view.shape.push_back(axis.window);
    view.strides.push_back(axis.rhs_stride);
  }
  const std::size_t at = run == Run::features ? view.shape.size() : 2;
  view.shape.insert(at, loops.features);
  view.strides.insert(at, loops.rhs_feature_stride);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(rhs) % 64 == 0;
  return view.is_dense() && is_aligned ? Buffer({}, view) : Buffer::copy_of(view);
}

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ColMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

// product += kernels * windows, the latter two in either order. Eigen's sums over few elements
// depend on memory alignment, so all three begin at a cache line, or at an offset that depends on
// the shape alone.
template <class T>
void multiply(const Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>& kernels,
              const T* windows, bool windows_by_column, std::int64_t pixels, T* product,
              bool product_by_column) {
  auto add = [&](auto result, const auto& right) { result.noalias() += kernels * right; };
  auto into = [&](auto result) {
    if (windows_by_column)
      add(result, Eigen::Map<const ColMajor<T>>(windows, kernels.cols(), pixels));
    else
      add(result, Eigen::Map<const RowMajor<T>>(windows, kernels.cols(), pixels));
  };
  if (product_by_column)
    into(Eigen::Map<ColMajor<T>>(product, kernels.rows(), pixels));
  else
    into(Eigen::Map<RowMajor<T>>(product, kernels.rows(), pixels));
}

// The product of the matrices in tiles: all rows of so many pixels, summed over so many k at a
// time.
struct Tiling {
  std::int64_t rows, depth, pixels;  // of the matrices: out features, K, pixels
  std::int64_t deep, wide;           // of a gathered block: at most so many k, and so many pixels

  Tiling(const ConvLoops& loops, std::int64_t pixels, std::int64_t element_size)
      : rows(loops.out_features), depth(loops.features), pixels(pixels) {
    for (const Axis& axis : loops.axes) depth *= axis.window;
    const std::int64_t block = 262144 / element_size;  // elements of a gathered block
    deep = std::clamp<std::int64_t>(depth, 1, 512);
    wide = std::min<std::int64_t>(pixels, std::clamp<std::int64_t>(block / deep, 64, 1024));
  }
  std::int64_t tiles() const { return (pixels + wide - 1) / wide; }
  // How many tiles are worth a thread.
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, 131072 / std::max<std::int64_t>(1, rows * depth * wide));
  }
};

// A convolution without holes in lhs.
template <class T>
class Convolver {
 public:
  Convolver(const ConvLoops& loops, const T* lhs, const void* rhs, T* out)
      : loops_(loops),
        run_(choose_run(loops, has_product)),
        windows_(loops, run_),
        packed_(kernel_matrices(loops, dtype_of<T>(), rhs, run_)),
        tiling_(loops, num_elements(windows_.pixels()), sizeof(T)),
        lhs_(lhs),
        out_(out) {}

  void run() const {
    const std::int64_t tiles = tiling_.tiles();
    parallel_for(loops_.groups * tiles, tiling_.grain(), [&](std::int64_t begin, std::int64_t end) {
      Scratch scratch(tiling_, adds_rows());
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t first = task % tiles * tiling_.wide;
        const Tile tile{task / tiles, first, std::min(tiling_.wide, tiling_.pixels - first)};
        std::fill_n(scratch.product(), tiling_.rows * tile.pixels, T(0));
        if (adds_rows())
          add_rows(tile, scratch.product());
        else if constexpr (has_product)
          add_products(tile, scratch.gathered(), scratch.product());
        find_places(tile, scratch.places.get());
        store(tile, scratch.product(), scratch.places.get());
      }
    });
  }

 private:
  // Matrix products are Eigen's; integers and complex numbers, which are rare, take plain loops
  // instead.
  static constexpr bool has_product = std::is_floating_point_v<T>;

  // Pixels of a group of features, from one on.
  struct Tile {
    std::int64_t group, first, pixels;
  };

  // The memory in which a thread makes one tile after the other.
  struct Scratch {
    Buffer gathered_block, product_block;
    std::unique_ptr<std::int64_t[]> places;  // in the result, of a tile's pixels

    Scratch(const Tiling& tiling, bool adds_rows)
        : gathered_block(Buffer::empty(dtype_of<T>(), {adds_rows ? 0 : tiling.deep * tiling.wide})),
          product_block(Buffer::empty(dtype_of<T>(), {tiling.rows * tiling.wide})),
          places(new std::int64_t[tiling.wide]) {}
    T* gathered() { return static_cast<T*>(gathered_block.mutable_data()); }
    T* product() { return static_cast<T*>(product_block.mutable_data()); }
  };

  // Whether the rows of windows are added up one by one, which is faster with few kernels, too.
  bool adds_rows() const {
    return !has_product || (tiling_.rows < 4 && !windows_.depth_is_inner());
  }
  // Whether a tile is made pixel by pixel: where the features of a pixel are together in the
  // result. Otherwise those of a feature are together.
  bool is_by_pixel() const { return loops_.out_feature_stride == 1 && !adds_rows(); }

  const T* source(const Tile& tile) const { return lhs_ + tile.group * loops_.lhs_group_stride; }
  const T* weights(const Tile& tile) const {
    return static_cast<const T*>(packed_.data()) + tile.group * tiling_.rows * tiling_.depth;
  }

  void add_rows(const Tile& tile, T* product) const {
    const T* weights = this->weights(tile);
    auto add = [&](std::int64_t k, std::int64_t pixel, std::int64_t, const Piece<T>& piece) {
      for (std::int64_t row = 0; row < tiling_.rows; ++row)
        add_piece(piece, weights[row * tiling_.depth + k], product + row * tile.pixels + pixel);
    };
    windows_.for_runs(source(tile), 0, tiling_.depth, tile.first, tile.pixels, add);
  }

  void add_products(const Tile& tile, T* gathered, T* product) const {
    const bool inner = windows_.depth_is_inner();
    for (std::int64_t k = 0; k < tiling_.depth; k += tiling_.deep) {
      const std::int64_t slab = std::min(tiling_.deep, tiling_.depth - k);
      const std::int64_t columns = inner ? slab : tile.pixels;
      auto copy = [&](std::int64_t row, std::int64_t column, std::int64_t count,
                      const Piece<T>& piece) {
        copy_piece(piece, gathered + row * columns + column, count);
      };
      if (inner)
        windows_.for_runs(source(tile), tile.first, tile.pixels, k, slab, copy);
      else
        windows_.for_runs(source(tile), k, slab, tile.first, tile.pixels, copy);
      const Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>> left(
          weights(tile) + k, tiling_.rows, slab, Eigen::OuterStride<>(tiling_.depth));
      multiply<T>(left, gathered, inner, tile.pixels, product, is_by_pixel());
    }
  }

  // Where the pixels of a tile go: their offsets in the result.
  void find_places(const Tile& tile, std::int64_t* places) const {
    Counter pixel(windows_.pixels());
    pixel.set(tile.first);
    const std::size_t batch_digit = run_ == Run::batch ? loops_.axes.size() : 0,
                      first_place = run_ == Run::batch ? 0 : 1;
    for (std::int64_t i = 0; i < tile.pixels; ++i, pixel.next()) {
      places[i] = tile.group * loops_.out_group_stride +
                  pixel.digits[batch_digit] * loops_.out_batch_stride;
      for (std::size_t a = 0; a < loops_.axes.size(); ++a)
        places[i] += pixel.digits[first_place + a] * loops_.axes[a].out_stride;
    }
  }

  void store(const Tile& tile, const T* product, const std::int64_t* places) const {
    const std::int64_t rows = tiling_.rows;
    if (is_by_pixel()) {
      for (std::int64_t i = 0; i < tile.pixels; ++i)
        std::copy_n(product + i * rows, rows, out_ + places[i]);
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* from = product + row * tile.pixels;
      T* to = out_ + row * loops_.out_feature_stride;
      for (std::int64_t i = 0; i < tile.pixels; ++i) to[places[i]] = from[i];
    }
  }

  const ConvLoops& loops_;
  const Run run_;
  const WindowMatrix<T> windows_;
  const Buffer packed_;  // the kernels
  const Tiling tiling_;
  const T* lhs_;
  T* out_;
};

// Base dilation in lhs is 1. Window positions that fall on elements repeat with the dilation: each
// phase is a convolution of its own, of a part of the kernel, for a part of the result.
template <class T>
void convolve_phases(ConvLoops loops, std::size_t at, const T* lhs, const T* rhs, T* out) {
  while (at < loops.axes.size() && loops.axes[at].base_dilation == 1) ++at;
  if (at == loops.axes.size()) return Convolver<T>(loops, lhs, rhs, out).run();
  const Axis axis = loops.axes[at];
  const std::int64_t hole = axis.base_dilation, period = hole / std::gcd(axis.stride, hole),
                     kernel_period = hole / std::gcd(axis.window_dilation, hole);
  for (std::int64_t phase = 0; phase < std::min(period, axis.count); ++phase) {
    const std::int64_t start = phase * axis.stride - axis.low;
    std::int64_t k = 0;
    while (k < kernel_period && (start + k * axis.window_dilation) % hole != 0) ++k;
    const bool meets = k < kernel_period && k < axis.window;
    Axis& part = loops.axes[at];
    part = axis;
    part.count = (axis.count - phase + period - 1) / period;
    part.window = meets ? (axis.window - k + kernel_period - 1) / kernel_period : 0;
    part.low = meets ? -(start + k * axis.window_dilation) / hole : 0;
    part.stride = period * axis.stride / hole;
    part.window_dilation = kernel_period * axis.window_dilation / hole;
    part.base_dilation = 1;
    part.rhs_stride = kernel_period * axis.rhs_stride;
    part.out_stride = period * axis.out_stride;
    convolve_phases(loops, at + 1, lhs, meets ? rhs + k * axis.rhs_stride : rhs,
                    out + phase * axis.out_stride);
  }
}

}  // namespace

void convolve(const ConvLoops& loops, DType dtype, const void* lhs, const void* rhs, void* out) {
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, std::uint64_t> || std::is_same_v<T, complex64> ||
                  std::is_same_v<T, complex128>)
      convolve_phases(loops, 0, static_cast<const T*>(lhs), static_cast<const T*>(rhs),
                      static_cast<T*>(out));
  });
}

}  // namespace plait
