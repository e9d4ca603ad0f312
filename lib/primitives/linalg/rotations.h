// Rotations of pairs of columns, collected while an iteration finds them and then applied together:
// a strip of rows stays in the first-level cache for all of them, and strips are independent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include <cmath>
#include <cstdint>
#include <vector>

namespace plait::matrices {

class Rotations {
 public:
  // Of the columns of a matrix, which stays where it is; of none where it is empty.
  explicit Rotations(Eigen::MatrixXd& matrix)
      : first_(matrix.data()), rows_(matrix.rows()), columns_(matrix.cols()) {}
  // Columns i and j become c i + s j and c j - s i.
  void add(std::int64_t i, std::int64_t j, double c, double s) {
    if (rows_ * columns_ == 0) return;
    list_.push_back({c, s, std::int32_t(i), std::int32_t(j)});
    if (list_.size() >= most) apply();
  }
  // Applies what has been added. Must run before the matrix is read.
  void apply();

 private:
  static constexpr std::size_t most = 1 << 15;
  struct Rotation {
    double c, s;
    std::int32_t i, j;
  };
  void run(double* near) const;  // on a strip of rows, in order
  double* first_;
  std::int64_t rows_, columns_;
  std::vector<Rotation> list_;
};

// The rotation with c a + s b = r and c b - s a = 0.
struct Givens {
  double c = 1, s = 0, r = 0;
  Givens(double a, double b) {
    const double square = a * a + b * b;
    r = square > 0x1p-900 && square < 0x1p900 ? std::sqrt(square) : std::hypot(a, b);
    if (r == 0) return;
    c = a / r;
    s = b / r;
  }
};

}  // namespace plait::matrices
