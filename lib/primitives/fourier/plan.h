// Discrete Fourier transforms of rows on the CPU: X[k] = sum_j x[j] exp(-2 pi i j k / n).
//
//   rows of up to some thousand numbers   as many side by side as a register has lanes
//   longer ones                           as n1 by n2 matrices: the columns, factors, the rows
//   lengths with a prime above 61         as a convolution of a better length
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pack.h>

#include <functional>
#include <memory>
#include <mutex>

#include "primitives/fourier/butterflies.h"

namespace plait::fourier {

// A row: the parts of number j are re[j * stride] and im[j * stride]. Without im they are zeros, or
// dropped.
template <class T>
struct Row {
  T *re = nullptr, *im = nullptr;
  std::int64_t stride = 1;
};

template <class T>
class Plan {
 public:
  static std::shared_ptr<const Plan> of(std::int64_t n);  // kept for later calls, the latest ones
  explicit Plan(std::int64_t n);

  // Transforms rows, and multiplies by a scale. A row is read before it is written.
  using From = std::function<Row<const T>(std::int64_t row)>;
  using To = std::function<Row<T>(std::int64_t row)>;
  void transform(std::int64_t rows, const From& from, const To& to, T scale) const;

  // exp(-pi i k / n) for k up to n / 2: factors of a real signal of 2 n points.
  const std::vector<std::complex<T>>& half_turns() const;

 private:
  static constexpr int lanes = 32 / int(sizeof(T));
  using V = Pack<T, lanes>;

  void side_by_side(std::int64_t count, const Row<const T>* from, const Row<T>* to, T scale) const;
  void one(const Row<const T>& from, const Row<T>& to, T scale) const;
  void short_row(const Row<const T>& from, const Row<T>& to, T scale) const;
  void as_matrix(const Row<const T>& from, const Row<T>& to, T scale) const;
  void as_convolution(const Row<const T>& from, const Row<T>& to, T scale) const;
  void make_passes();
  void make_matrix();
  void make_convolution();

  const std::int64_t n_;
  std::vector<Pass<T>> passes_;
  // As a matrix: transforms of its columns and rows, and the factors w^(j k), w = exp(-2 pi i / n),
  // of row k and columns j = lanes * block + lane: in two parts, by block * k and by lane * k.
  std::shared_ptr<const Plan> columns_, rows_;
  std::vector<std::complex<T>> of_blocks_;
  std::vector<T> of_lanes_re_, of_lanes_im_;
  // As a convolution: its transform, the chirp, and the chirp's transform.
  std::shared_ptr<const Plan> convolution_;
  std::vector<std::complex<T>> chirp_, filter_;

  mutable std::once_flag has_half_turns_;
  mutable std::vector<std::complex<T>> half_turns_;
};

}  // namespace plait::fourier
