// tridiagonal_eigen by division: the two halves of a tridiagonal matrix are decomposed, and joined
// by the eigenvectors of a diagonal matrix plus one of rank one. Cuppen, "A divide and conquer
// method for the symmetric tridiagonal eigenproblem" (1981); Gu and Eisenstat, "A stable and
// efficient algorithm for the rank-one modification of the symmetric eigenproblem" (1994).
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pack.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/linalg/tridiagonal.h"

namespace plait::matrices {
namespace {

constexpr double epsilon = 0x1p-53;
constexpr std::int64_t smallest = 32;  // rows that are divided

// diag(poles) + rho z z^T for ascending poles, rho > 0 and no z that is 0. Root k lies between pole
// k and the next one.
class RankOne {
  using V = Pack<double, 4>;

 public:
  RankOne(const std::vector<double>& poles, const std::vector<double>& z, double rho)
      : poles_(poles), squares_(z.size()) {
    for (std::size_t i = 0; i < z.size(); ++i) squares_[i] = rho * z[i] * z[i];
  }

  // gaps becomes poles - root, each exact relative to itself; false where nothing converges.
  bool root(std::int64_t k, double& value, double* gaps) const {
    const auto n = std::int64_t(poles_.size());
    const bool is_last = k + 1 == n;
    const double width = is_last ? std::accumulate(squares_.begin(), squares_.end(), 0.0)
                                 : poles_[at(k + 1)] - poles_[at(k)];
    // Places are relative to the nearer pole, so that they do not cancel.
    shift(k, gaps);
    double place = width / 2, low = 0, high = width;
    std::int64_t origin = k;
    if (!is_last && sums(k, place, gaps).total() <= 0) {
      origin = k + 1;
      shift(origin, gaps);
      place = -width / 2;
      low = -width / 2;
      high = 0;
    } else if (!is_last) {
      high = width / 2;
    }
    for (int steps = 0; steps < 100; ++steps) {
      const Sums at_place = sums(k, place, gaps);
      const double total = at_place.total();
      const double bound = epsilon * (8 * (at_place.phi - at_place.psi) + 1 +
                                      std::abs(place) * (at_place.of_psi + at_place.of_phi));
      if (std::abs(total) <= bound) break;
      (total < 0 ? low : high) = place;
      const double next =
          place + change(at_place, gaps[k] - place, is_last ? 0 : gaps[k + 1] - place, is_last);
      const double before = place;
      place = next > low && next < high ? next : (low + high) / 2;
      if (place == before || !(low < high)) break;
      if (steps == 99) return false;
    }
    value = poles_[at(origin)] + place;
    for (std::int64_t i = 0; i < n; ++i) gaps[i] -= place;
    return true;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  // psi sums the poles up to k, phi those behind it; of_psi and of_phi are their derivatives.
  struct Sums {
    double psi, phi, of_psi, of_phi;
    double total() const { return 1 + psi + phi; }
  };

  void shift(std::int64_t origin, double* gaps) const {
    for (std::size_t i = 0; i < poles_.size(); ++i) gaps[i] = poles_[i] - poles_[at(origin)];
  }
  void add(std::int64_t begin, std::int64_t end, double place, const double* gaps, double& sum,
           double& slope) const {
    V total(0.0), of_total(0.0);
    std::int64_t i = begin;
    for (; i + V::width <= end; i += V::width) {
      const V inverse = V(1.0) / (V::load(gaps + i) - V(place));
      const V term = V::load(squares_.data() + i) * inverse;
      total = total + term;
      of_total = math::fma(term, inverse, of_total);
    }
    sum = (total.v[0] + total.v[1]) + (total.v[2] + total.v[3]);
    slope = (of_total.v[0] + of_total.v[1]) + (of_total.v[2] + of_total.v[3]);
    for (; i < end; ++i) {
      const double inverse = 1 / (gaps[i] - place), term = squares_[at(i)] * inverse;
      sum += term;
      slope += term * inverse;
    }
  }
  Sums sums(std::int64_t k, double place, const double* gaps) const {
    Sums result;
    add(0, k + 1, place, gaps, result.psi, result.of_psi);
    add(k + 1, std::int64_t(poles_.size()), place, gaps, result.phi, result.of_phi);
    return result;
  }
  // To the root of the function with the two poles beside it that has these values and slopes: Li,
  // "Solving secular equations stably and efficiently" (1993).
  static double change(const Sums& sums, double left, double right, bool is_last) {
    const double total = sums.total();
    if (is_last) {
      const double rest = total - left * sums.of_psi;
      return left + left * left * sums.of_psi / rest;
    }
    const double slope = sums.of_psi + sums.of_phi;
    const double a = (left + right) * total - left * right * slope, b = left * right * total,
                 c = total - left * sums.of_psi - right * sums.of_phi;
    const double root = std::sqrt(std::max(0.0, a * a - 4 * b * c));
    return a <= 0 ? (a - root) / (2 * c) : 2 * b / (a + root);
  }

  const std::vector<double>& poles_;
  std::vector<double> squares_;
};

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
          const Eigen::VectorXd before = q.col(last);
          q.col(last) = c * before - s * q.col(i);
          q.col(i) = s * before + c * q.col(i).eval();
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
    const auto count = std::int64_t(kept.size());
    std::vector<double> poles, parts;
    for (const std::int64_t i : kept) {
      poles.push_back(d[i]);
      parts.push_back(z[i]);
    }
    Eigen::VectorXd values(count);
    Eigen::MatrixXd vectors(count, count);
    if (!vectors_of(poles, parts, rho, values, vectors)) return false;
    // The halves of the vectors, each from the columns that reach it.
    Eigen::MatrixXd joined(size, count);
    const auto multiply = [&](const std::vector<char>& reaches, std::int64_t row,
                              std::int64_t rows) {
      std::vector<std::int64_t> places, columns;
      for (std::int64_t i = 0; i < count; ++i)
        if (reaches[static_cast<std::size_t>(kept[static_cast<std::size_t>(i)])]) {
          places.push_back(i);
          columns.push_back(kept[static_cast<std::size_t>(i)]);
        }
      const Eigen::MatrixXd left = q.middleRows(row, rows)(Eigen::all, columns),
                            right = vectors(places, Eigen::all);
      joined.middleRows(row, rows).noalias() = left * right;
    };
    multiply(upper, 0, half);
    multiply(lower, half, size - half);
    place(first, size, values, joined, apart);
    return true;
  }

  // With the roots known, z is found anew for which they are exact, so that vectors are orthogonal.
  static bool vectors_of(const std::vector<double>& poles, const std::vector<double>& parts,
                         double rho, Eigen::VectorXd& values, Eigen::MatrixXd& gaps) {
    const auto count = std::int64_t(poles.size());
    const RankOne matrix(poles, parts, rho);
    std::vector<char> found(poles.size(), 0);
    parallel_for(count, std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, count)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t k = begin; k < end; ++k)
                     found[static_cast<std::size_t>(k)] = matrix.root(k, values[k], &gaps(0, k));
                 });
    if (std::find(found.begin(), found.end(), 0) != found.end()) return false;
    Eigen::VectorXd squares = Eigen::VectorXd::Ones(count);
    for (std::int64_t k = 0; k < count; ++k) {
      const double pole = poles[static_cast<std::size_t>(k)];
      for (std::int64_t i = 0; i < count; ++i)
        squares[i] *=
            i == k ? gaps(i, k) : gaps(i, k) / (poles[static_cast<std::size_t>(i)] - pole);
    }
    for (std::int64_t i = 0; i < count; ++i)
      squares[i] =
          std::copysign(std::sqrt(std::abs(squares[i])), parts[static_cast<std::size_t>(i)]);
    for (std::int64_t k = 0; k < count; ++k) {
      gaps.col(k) = squares.cwiseQuotient(gaps.col(k));
      gaps.col(k) /= gaps.col(k).norm();
    }
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
