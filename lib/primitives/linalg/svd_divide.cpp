// bidiagonal_svd by division: an upper bidiagonal matrix without its middle row is two of them. Of
// their decompositions and that row remains a matrix with a first row z and a diagonal beside it,
// whose singular values are roots. Gu and Eisenstat, "A divide-and-conquer algorithm for the
// bidiagonal SVD" (1995).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/linalg/secular.h"
#include "primitives/linalg/svd.h"

namespace plait::matrices {
namespace {

// Blocks of the matrix: their rows begin at `first`, and the singular vectors are blocks of u and v
// there. A block that ends before the last row has a column more than rows. Its v has one more,
// too, and the last column is the vector that the block takes to 0.
class Division {
 public:
  Division(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& u, Eigen::MatrixXd& v)
      : d_(d), e_(e), u_(u), v_(v) {}

  bool solve(std::int64_t first, std::int64_t size) {
    if (size <= smallest) return decompose(first, size);
    const std::int64_t half = size / 2;
    return solve(first, half) && solve(first + half + 1, size - half - 1) &&
           join(first, size, half);
  }
  // Largest first.
  void reverse() {
    d_.reverseInPlace();
    u_ = u_.rowwise().reverse().eval();
    v_ = v_.rowwise().reverse().eval();
  }

 private:
  bool is_wide(std::int64_t first, std::int64_t size) const { return first + size < d_.size(); }

  // A row of zeros makes a block square.
  bool decompose(std::int64_t first, std::int64_t size) {
    const std::int64_t columns = size + is_wide(first, size);
    Eigen::VectorXd d = Eigen::VectorXd::Zero(columns), e = d;
    d.head(size) = d_.segment(first, size);
    e.head(columns - 1) = e_.segment(first, columns - 1);
    Eigen::MatrixXd u = Eigen::MatrixXd::Identity(columns, columns), v = u;
    if (!bidiagonal_by_rotations(d, e, u, v)) return false;
    d_.segment(first, size) = d.head(size);
    u_.block(first, first, size, size) = u.topLeftCorner(size, size);
    v_.block(first, first, columns, columns) = v;
    return true;
  }

  // Column `half` of u is the middle row, that of v the null vector of the upper block.
  bool join(std::int64_t first, std::int64_t size, std::int64_t half) {
    const std::int64_t columns = size + is_wide(first, size), below = half + 1;
    auto u = u_.block(first, first, size, size);
    auto v = v_.block(first, first, columns, columns);
    auto d = d_.segment(first, size);
    const double alpha = d[half], beta = e_[first + half];
    Eigen::VectorXd z(columns);
    z.head(below) = alpha * v.row(half).head(below);
    z.tail(columns - below) = beta * v.row(below).tail(columns - below);
    u(half, half) = 1;
    d[half] = 0;
    Reach of_u(size, half), of_v(size, below);
    if (columns > size) {  // one of the two null vectors is orthogonal to the middle row
      const double length = std::hypot(z[half], z[size]);
      if (length > 0) rotate_columns(v, size, half, z[half] / length, z[size] / length);
      z[half] = length;
      of_v.lower[std::size_t(half)] = 1;
    }
    const double scale = std::max({d.maxCoeff(), std::abs(alpha), std::abs(beta)}),
                 tolerance = 16 * epsilon * scale;
    if (std::abs(z[half]) < tolerance) z[half] = std::copysign(tolerance, z[half]);
    std::vector<std::int64_t> order(std::size_t(size), 0), kept, apart;
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[std::size_t(half)]);
    std::sort(order.begin() + 1, order.end(),
              [&](std::int64_t i, std::int64_t j) { return d[i] != d[j] ? d[i] < d[j] : i < j; });
    // What is too small to change a singular value by more than rounding is left out; of values
    // that are too close, a rotation leaves out one.
    std::int64_t last = half;
    for (const std::int64_t i : order) {
      if (i == half) continue;
      if (std::abs(z[i]) <= tolerance) {
        apart.push_back(i);
        continue;
      }
      const double length = std::hypot(z[last], z[i]), c = z[i] / length, s = z[last] / length;
      if (last == half && d[i] <= tolerance) {  // only columns may turn
        rotate_columns(v, i, half, s, c);
        of_v.merge(i, half);
        z[half] = length;
        v.col(i) *= std::copysign(1.0, s);
        d[i] *= std::abs(s);
        apart.push_back(i);
        continue;
      }
      if (last != half && std::abs((d[i] - d[last]) * c * s) <= tolerance) {
        rotate_columns(u, last, i, c, s);
        rotate_columns(v, last, i, c, s);
        of_u.merge(last, i);
        of_v.merge(last, i);
        const double above = d[last], beside = d[i];
        d[last] = c * c * above + s * s * beside;
        d[i] = s * s * above + c * c * beside;
        z[i] = length;
        apart.push_back(last);
      } else {
        kept.push_back(last);
      }
      last = i;
    }
    (z[last] != 0 ? kept : apart).push_back(last);
    return combine(first, size, half, scale, z, kept, apart, of_u, of_v);
  }

  // Whether a column has elements in the rows above and below.
  struct Reach {
    std::vector<char> upper, lower;
    Reach(std::int64_t size, std::int64_t above)
        : upper(std::size_t(size), 0), lower(std::size_t(size), 0) {
      for (std::int64_t i = 0; i < size; ++i) (i < above ? upper : lower)[std::size_t(i)] = 1;
    }
    void merge(std::int64_t i, std::int64_t j) {
      const auto x = std::size_t(i), y = std::size_t(j);
      upper[x] = upper[y] = char(upper[x] | upper[y]);
      lower[x] = lower[y] = char(lower[x] | lower[y]);
    }
  };

  // With the roots s: v is z / (d^2 - s^2), and u is d v but for its first element, -1.
  bool combine(std::int64_t first, std::int64_t size, std::int64_t half, double scale,
               const Eigen::VectorXd& z, const std::vector<std::int64_t>& kept,
               const std::vector<std::int64_t>& apart, const Reach& of_u, const Reach& of_v) {
    const std::int64_t columns = size + is_wide(first, size), below = half + 1;
    auto u = u_.block(first, first, size, size);
    auto v = v_.block(first, first, columns, columns);
    auto d = d_.segment(first, size);
    std::vector<double> poles, parts;
    for (const std::int64_t i : kept) {
      poles.push_back(d[i] / scale);  // their squares are numbers
      parts.push_back(z[i] / scale);
    }
    const auto count = std::int64_t(kept.size());
    Eigen::VectorXd values;
    Eigen::MatrixXd right;
    if (!secular_columns(Poles(poles, Poles::Of::squares), parts, 1, values, right)) return false;
    values *= scale;
    Eigen::MatrixXd left =
        Eigen::Map<const Eigen::VectorXd>(poles.data(), count).asDiagonal() * right;
    if (count > 0) left.row(0).setConstant(-1);
    left.colwise().normalize();
    right.colwise().normalize();
    Eigen::MatrixXd of_left(size, count), of_right(columns, count);
    join_rows(u, left, kept, of_u.upper, 0, half, of_left);
    if (count > 0) of_left.row(half) = left.row(0);
    join_rows(u, left, kept, of_u.lower, below, size - below, of_left);
    join_rows(v, right, kept, of_v.upper, 0, below, of_right);
    join_rows(v, right, kept, of_v.lower, below, columns - below, of_right);
    place(first, size, values, of_left, of_right, apart);
    return true;
  }

  // The joined vectors and those that were left apart, in order of their values.
  void place(std::int64_t first, std::int64_t size, const Eigen::VectorXd& values,
             const Eigen::MatrixXd& left, const Eigen::MatrixXd& right,
             const std::vector<std::int64_t>& apart) {
    auto u = u_.block(first, first, size, size);
    auto v = v_.block(first, first, right.rows(), size);
    auto d = d_.segment(first, size);
    const std::int64_t count = values.size();
    Eigen::VectorXd all(size);
    all.head(count) = values;
    all.tail(size - count) = d(apart);
    const Eigen::MatrixXd u_apart = u(Eigen::all, apart), v_apart = v(Eigen::all, apart);
    std::vector<std::int64_t> order(std::size_t(size), 0);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return all[i] < all[j]; });
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t from = order[std::size_t(i)];
      d[i] = all[from];
      if (from < count) {
        u.col(i) = left.col(from);
        v.col(i) = right.col(from);
      } else {
        u.col(i) = u_apart.col(from - count);
        v.col(i) = v_apart.col(from - count);
      }
    }
  }

  Eigen::VectorXd &d_, &e_;
  Eigen::MatrixXd &u_, &v_;
};

}  // namespace

bool bidiagonal_svd(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& ub,
                    Eigen::MatrixXd& vb) {
  if (ub.size() == 0 || d.size() <= smallest) return bidiagonal_by_rotations(d, e, ub, vb);
  ub.setZero();
  vb.setZero();
  Division division(d, e, ub, vb);
  if (!division.solve(0, d.size())) return false;
  division.reverse();
  return true;
}

}  // namespace plait::matrices
