// What the two divisions of a matrix into halves share, of tridiagonal_eigen and bidiagonal_svd:
// the roots of 1 + rho sum_i z_i^2 / (p_i - x), and the vectors z_i / (p_i - x).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace plait::matrices {

inline constexpr double epsilon = 0x1p-53;
inline constexpr std::int64_t smallest = 32;  // of so many rows matrices are not divided any more

// Numbers that ascend, none of them negative where their squares are the poles.
class Poles {
 public:
  enum class Of { numbers, squares };
  Poles(std::vector<double> numbers, Of of) : numbers_(std::move(numbers)), of_(of) {}
  std::int64_t size() const { return std::int64_t(numbers_.size()); }
  // p_i - p_j, exact relative to itself.
  double difference(std::int64_t i, std::int64_t j) const {
    const double difference = at(i) - at(j);
    return of_ == Of::squares ? difference * (at(i) + at(j)) : difference;
  }
  // p_i + place, or its root.
  double beside(std::int64_t i, double place) const {
    return of_ == Of::squares ? std::sqrt(at(i) * at(i) + place) : at(i) + place;
  }

 private:
  double at(std::int64_t i) const { return numbers_[std::size_t(i)]; }
  std::vector<double> numbers_;
  Of of_;
};

// Root k lies between pole k and the next one. Column k becomes z_i / (p_i - root), for the z
// beside the given one for which the roots that were found are exact, so that the columns are
// orthogonal. No z is 0, and rho > 0. False where an iteration does not converge.
bool secular_columns(const Poles& poles, const std::vector<double>& z, double rho,
                     Eigen::VectorXd& values, Eigen::MatrixXd& columns);

// left @ right, by all threads, into out, which is no part of them.
void multiply_columns(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right,
                      Eigen::Ref<Eigen::MatrixXd> out);

// The rows of `joined` from `row` on: the product of the columns of q that reach them with those
// rows of `vectors` that belong to them. kept are the columns of q that `vectors` combines.
void join_rows(const Eigen::Ref<const Eigen::MatrixXd>& q, const Eigen::MatrixXd& vectors,
               const std::vector<std::int64_t>& kept, const std::vector<char>& reaches,
               std::int64_t row, std::int64_t rows, Eigen::MatrixXd& joined);

// Columns i and j of q become c i - s j and s i + c j.
void rotate_columns(Eigen::Ref<Eigen::MatrixXd> q, std::int64_t i, std::int64_t j, double c,
                    double s);

}  // namespace plait::matrices
