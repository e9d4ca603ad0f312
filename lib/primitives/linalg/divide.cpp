// tridiagonal_eigen by division: the two halves of a tridiagonal matrix are decomposed, and joined
// by the eigenvectors of a diagonal matrix plus one of rank one. Cuppen, "A divide and conquer
// method for the symmetric tridiagonal eigenproblem" (1981); Gu and Eisenstat, "A stable and
// efficient algorithm for the rank-one modification of the symmetric eigenproblem" (1994).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/linalg/secular.h"
#include "primitives/linalg/tridiagonal.h"

namespace plait::matrices {
namespace {

// A block of the matrix, whose eigenvectors are a block of q.
class Division {
 public:
  Division(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& q) : d_(d), e_(e), q_(q) {}

  bool solve(std::int64_t first, std::int64_t size) {
    if (size <= smallest) {
      Eigen::VectorXd d = d_.segment(first, size), e = Eigen::VectorXd::Zero(size);
      e.head(size - 1) = e_.segment(first, size - 1);
      Eigen::MatrixXd q = Eigen::MatrixXd::Identity(size, size);
      if (!tridiagonal_by_rotations(d, e, q)) return false;
      d_.segment(first, size) = d;
      q_.block(first, first, size, size) = q;
      return true;
    }
    const std::int64_t half = size / 2, middle = first + half;
    const double beside = e_[middle - 1], rho = std::abs(beside);
    d_[middle - 1] -= rho;
    d_[middle] -= rho;
    return solve(first, half) && solve(middle, size - half) &&
           join(first, size, half, rho, std::copysign(1.0, beside));
  }

 private:
  bool join(std::int64_t first, std::int64_t size, std::int64_t half, double rho, double sign) {
    auto q = q_.block(first, first, size, size);
    auto d = d_.segment(first, size);
    Eigen::VectorXd z(size);
    z.head(half) = q.row(half - 1).head(half);
    z.tail(size - half) = sign * q.row(half).tail(size - half);
    std::vector<std::int64_t> order(static_cast<std::size_t>(size)), kept, apart;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return d[i] < d[j]; });
    // Whether a column has elements in the upper and in the lower rows.
    std::vector<char> upper(static_cast<std::size_t>(size)), lower(upper);
    for (std::int64_t i = 0; i < size; ++i)
      (i < half ? upper : lower)[static_cast<std::size_t>(i)] = 1;
    // What is too small to change an eigenvalue by rounding is left out; of poles that are too
    // close, a rotation leaves out one.
    const double tolerance =
        16 * epsilon * std::max(d.cwiseAbs().maxCoeff(), rho * z.cwiseAbs().maxCoeff());
    std::int64_t last = -1;
    for (const std::int64_t i : order) {
      if (rho * std::abs(z[i]) <= tolerance) {
        apart.push_back(i);
        continue;
      }
      if (last >= 0) {
        const double length = std::hypot(z[last], z[i]), c = z[i] / length, s = z[last] / length;
        if (std::abs((d[i] - d[last]) * c * s) <= tolerance) {
          rotate_columns(q, last, i, c, s);
          const double above = d[last], below = d[i];
          d[last] = c * c * above + s * s * below;
          d[i] = s * s * above + c * c * below;
          z[i] = length;
          const auto x = static_cast<std::size_t>(last), y = static_cast<std::size_t>(i);
          upper[x] = upper[y] = char(upper[x] | upper[y]);
          lower[x] = lower[y] = char(lower[x] | lower[y]);
          apart.push_back(last);
          last = i;
          continue;
        }
        kept.push_back(last);
      }
      last = i;
    }
    if (last >= 0) kept.push_back(last);
    std::vector<double> poles, parts;
    for (const std::int64_t i : kept) {
      poles.push_back(d[i]);
      parts.push_back(z[i]);
    }
    Eigen::VectorXd values;
    Eigen::MatrixXd vectors;
    if (!secular_columns(Poles(poles, Poles::Of::numbers), parts, rho, values, vectors))
      return false;
    vectors.colwise().normalize();
    Eigen::MatrixXd joined(size, values.size());
    join_rows(q, vectors, kept, upper, 0, half, joined);
    join_rows(q, vectors, kept, lower, half, size - half, joined);
    place(first, size, values, joined, apart);
    return true;
  }

  // The joined vectors and those that were left apart, in order of their values.
  void place(std::int64_t first, std::int64_t size, const Eigen::VectorXd& values,
             const Eigen::MatrixXd& joined, const std::vector<std::int64_t>& apart) {
    auto q = q_.block(first, first, size, size);
    auto d = d_.segment(first, size);
    const std::int64_t count = values.size();
    Eigen::VectorXd all(size);
    Eigen::MatrixXd columns(size, size);
    all.head(count) = values;
    columns.leftCols(count) = joined;
    for (std::int64_t i = count; i < size; ++i) {
      all[i] = d[apart[static_cast<std::size_t>(i - count)]];
      columns.col(i) = q.col(apart[static_cast<std::size_t>(i - count)]);
    }
    std::vector<std::int64_t> order(static_cast<std::size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return all[i] < all[j]; });
    for (std::int64_t i = 0; i < size; ++i) {
      d[i] = all[order[static_cast<std::size_t>(i)]];
      q.col(i) = columns.col(order[static_cast<std::size_t>(i)]);
    }
  }

  Eigen::VectorXd &d_, &e_;
  Eigen::MatrixXd& q_;
};

}  // namespace

bool tridiagonal_eigen(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& q) {
  if (q.size() == 0) return tridiagonal_values(d, e);
  if (d.size() <= smallest) return tridiagonal_by_rotations(d, e, q);
  q.setZero();
  return Division(d, e, q).solve(0, d.size());
}

}  // namespace plait::matrices
