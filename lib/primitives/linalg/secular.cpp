// See secular.h. Gu and Eisenstat, "A stable and efficient algorithm for the rank-one modification
// of the symmetric eigenproblem" (1994).
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/secular.h"

#include <plait/base/pack.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plait::matrices {
namespace {

class Secular {
  using V = Pack<double, 4>;

 public:
  Secular(const Poles& poles, const std::vector<double>& z, double rho)
      : poles_(poles), squares_(z.size()) {
    for (std::size_t i = 0; i < z.size(); ++i) squares_[i] = rho * z[i] * z[i];
  }

  // gaps becomes poles - root, each exact relative to itself; false where nothing converges.
  bool root(std::int64_t k, double& value, double* gaps) const {
    const std::int64_t n = poles_.size();
    const bool is_last = k + 1 == n;
    const double width = is_last ? std::accumulate(squares_.begin(), squares_.end(), 0.0)
                                 : poles_.difference(k + 1, k);
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
    value = poles_.beside(origin, place);
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
    for (std::int64_t i = 0; i < poles_.size(); ++i) gaps[i] = poles_.difference(i, origin);
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
    add(k + 1, poles_.size(), place, gaps, result.phi, result.of_phi);
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

  const Poles& poles_;
  std::vector<double> squares_;
};

}  // namespace

bool secular_columns(const Poles& poles, const std::vector<double>& z, double rho,
                     Eigen::VectorXd& values, Eigen::MatrixXd& columns) {
  const std::int64_t count = poles.size(),
                     grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, count));
  const Secular secular(poles, z, rho);
  values.resize(count);
  columns.resize(count, count);
  std::vector<char> found(z.size(), 0);
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k)
      found[std::size_t(k)] = secular.root(k, values[k], &columns(0, k));
  });
  if (std::find(found.begin(), found.end(), 0) != found.end()) return false;
  Eigen::VectorXd exact = Eigen::VectorXd::Ones(count);
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t i = 0; i < count; ++i)
      exact[i] *= i == k ? columns(i, k) : columns(i, k) / poles.difference(i, k);
  for (std::int64_t i = 0; i < count; ++i)
    exact[i] = std::copysign(std::sqrt(std::abs(exact[i])), z[std::size_t(i)]);
  for (std::int64_t k = 0; k < count; ++k) columns.col(k) = exact.cwiseQuotient(columns.col(k));
  return true;
}

void multiply_columns(const Eigen::MatrixXd& left, const Eigen::MatrixXd& right,
                      Eigen::Ref<Eigen::MatrixXd> out) {
  const std::int64_t work = std::max<std::int64_t>(1, left.size());
  parallel_for(right.cols(), std::max<std::int64_t>(32, 500'000 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 out.middleCols(begin, end - begin).noalias() =
                     left * right.middleCols(begin, end - begin);
               });
}

void join_rows(const Eigen::Ref<const Eigen::MatrixXd>& q, const Eigen::MatrixXd& vectors,
               const std::vector<std::int64_t>& kept, const std::vector<char>& reaches,
               std::int64_t row, std::int64_t rows, Eigen::MatrixXd& joined) {
  std::vector<std::int64_t> places, columns;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!reaches[std::size_t(kept[i])]) continue;
    places.push_back(std::int64_t(i));
    columns.push_back(kept[i]);
  }
  const Eigen::MatrixXd left = q.middleRows(row, rows)(Eigen::all, columns),
                        right = vectors(places, Eigen::all);
  multiply_columns(left, right, joined.middleRows(row, rows));
}

void rotate_columns(Eigen::Ref<Eigen::MatrixXd> q, std::int64_t i, std::int64_t j, double c,
                    double s) {
  for (std::int64_t row = 0; row < q.rows(); ++row) {
    const double x = q(row, i), y = q(row, j);
    q(row, i) = c * x - s * y;
    q(row, j) = s * x + c * y;
  }
}

}  // namespace plait::matrices
