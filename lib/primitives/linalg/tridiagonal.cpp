// See tridiagonal.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/tridiagonal.h"

#include <plait/base/pack.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/linalg/rotations.h"

namespace plait::matrices {
namespace {

using V = Pack<double, 4>;
constexpr int group = 4;  // columns that are read together

// One pass over the lower triangle of a, from column and row `first` on: subtracts p q^T + q p^T
// and finds the product of the result with x, which the first column of y becomes. The other
// columns are those of parts, which threads run.
class Pass {
 public:
  static constexpr std::int64_t most_parts = 8;
  Pass(Eigen::MatrixXd& a, const double* p, const double* q, const double* x, Eigen::MatrixXd& y)
      : a_(a), p_(p), q_(q), x_(x), y_(y) {}

  void run(std::int64_t first) {
    constexpr std::int64_t worth_a_thread = 1 << 16;  // elements
    const std::int64_t rest = a_.rows() - first,
                       parts = std::clamp<std::int64_t>(rest * rest / 2 / worth_a_thread, 1,
                                                        most_parts);
    // The first columns are the longest: of the area before column `place`, parts are alike.
    const auto begin_of = [&](std::int64_t part) {
      const double left = 1 - double(part) / double(parts);
      const auto place = std::int64_t(double(rest) * (1 - std::sqrt(left)));
      return part == parts ? rest : place / group * group;
    };
    y_.block(first, 0, rest, parts).setZero();
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        std::int64_t j = first + begin_of(part);
        const std::int64_t last = first + begin_of(part + 1);
        double* const y = &y_(0, part);
        for (; j + group <= last; j += group) columns<group>(j, y);
        for (; j < last; ++j) columns<1>(j, y);
      }
    });
    for (std::int64_t part = 1; part < parts; ++part)
      y_.col(0).tail(rest) += y_.col(part).tail(rest);
  }

 private:
  template <int count>
  void columns(std::int64_t j, double* y_of_part) {
    const std::int64_t n = a_.rows();
    double* column[count];
    double of_p[count], of_q[count], of_x[count], sums[count];
    for (int k = 0; k < count; ++k) {
      column[k] = &a_(0, j + k);
      of_p[k] = p_[j + k];
      of_q[k] = q_[j + k];
      of_x[k] = x_[j + k];
      sums[k] = 0;
    }
    const auto element = [&](std::int64_t i, int k) {
      return column[k][i] -= p_[i] * of_q[k] + q_[i] * of_p[k];
    };
    for (int k = 0; k < count; ++k) {  // the triangle on the diagonal
      sums[k] += element(j + k, k) * of_x[k];
      for (int i = k + 1; i < count; ++i) {
        const double value = element(j + i, k);
        sums[k] += value * x_[j + i];
        sums[i] += value * of_x[k];
      }
    }
    V totals[count];
    for (int k = 0; k < count; ++k) totals[k] = V(0.0);
    std::int64_t i = j + count;
    for (; i + V::width <= n; i += V::width) {
      const V p = V::load(p_ + i), q = V::load(q_ + i), x = V::load(x_ + i);
      V y = V::load(y_of_part + i);
#pragma GCC unroll 4
      for (int k = 0; k < count; ++k) {
        V value = V::load(column[k] + i);
        value = math::fma(p, V(-of_q[k]), math::fma(q, V(-of_p[k]), value));
        value.store(column[k] + i);
        y = math::fma(value, V(of_x[k]), y);
        totals[k] = math::fma(value, x, totals[k]);
      }
      y.store(y_of_part + i);
    }
    for (; i < n; ++i)
      for (int k = 0; k < count; ++k) {
        const double value = element(i, k);
        y_of_part[i] += value * of_x[k];
        sums[k] += value * x_[i];
      }
    for (int k = 0; k < count; ++k)
      y_of_part[j + k] +=
          sums[k] + ((totals[k].v[0] + totals[k].v[1]) + (totals[k].v[2] + totals[k].v[3]));
  }

  Eigen::MatrixXd& a_;
  const double *p_, *q_, *x_;
  Eigen::MatrixXd& y_;
};

// An implicit QR step with Wilkinson's shift on the block lo .. hi: Golub and Van Loan, "Matrix
// Computations", algorithm 8.3.2.
void step(Eigen::VectorXd& d, Eigen::VectorXd& e, std::int64_t lo, std::int64_t hi,
          Rotations& rotations) {
  const double half = (d[hi - 1] - d[hi]) / 2, beside = e[hi - 1];
  const double divisor = half + std::copysign(Givens(half, beside).r, half);
  const double shift =
      divisor != 0 ? d[hi] - beside * (beside / divisor) : d[hi] - std::abs(beside);
  double x = d[lo] - shift, z = e[lo];
  for (std::int64_t k = lo; k < hi; ++k) {
    const Givens rotation(x, z);
    const double c = rotation.c, s = rotation.s;
    if (k > lo) e[k - 1] = rotation.r;
    const double above = d[k], below = d[k + 1], side = e[k];
    const double moved = s * (below - above) + 2 * c * side;
    d[k] = above + s * moved;
    d[k + 1] = below - s * moved;
    e[k] = c * moved - side;
    x = e[k];
    if (k + 1 < hi) {
      z = s * e[k + 1];
      e[k + 1] *= c;
    }
    rotations.add(k, k + 1, c, s);
  }
}

}  // namespace

// H_k is applied from both sides as A - v w^T - w v^T for w = tau A v - (tau^2 v^T A v / 2) v. It
// reaches the columns after the next in the pass that finds the next w, which reads and writes
// memory once.
void tridiagonalise(Eigen::MatrixXd& a, Eigen::VectorXd& d, Eigen::VectorXd& e,
                    Eigen::VectorXd& taus) {
  const std::int64_t n = a.rows();
  d.resize(n);
  e.setZero(std::max<std::int64_t>(n, 1));
  taus.setZero(std::max<std::int64_t>(n - 1, 0));
  Eigen::VectorXd v = Eigen::VectorXd::Zero(n), w = v, next = v;
  Eigen::MatrixXd products(n, Pass::most_parts);
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t rest = n - k - 1;
    a.col(k).tail(rest + 1) -= v.tail(rest + 1) * w[k] + w.tail(rest + 1) * v[k];
    d[k] = a(k, k);
    if (rest == 0) break;
    auto column = a.col(k).tail(rest);
    const double beside = column.tail(rest - 1).squaredNorm(), first = column[0];
    double tau = 0;
    next.setZero();
    next[k + 1] = 1;
    e[k] = first;
    if (beside > 0) {
      const double beta = -std::copysign(std::sqrt(first * first + beside), first);
      tau = (beta - first) / beta;
      column.tail(rest - 1) /= first - beta;
      next.tail(rest - 1) = column.tail(rest - 1);
      e[k] = beta;
    }
    taus[k] = tau;
    Pass(a, v.data(), w.data(), next.data(), products).run(k + 1);
    v.swap(next);
    w.setZero();
    w.tail(rest) = tau * products.col(0).tail(rest);
    w.tail(rest) -= tau / 2 * w.tail(rest).dot(v.tail(rest)) * v.tail(rest);
  }
}

// Steps without square roots, of Pal, Walker and Kahan, on the squares of what is beside the
// diagonal: Parlett, "The Symmetric Eigenvalue Problem", section 8.15.
bool tridiagonal_values(Eigen::VectorXd& d, Eigen::VectorXd& e) {
  const std::int64_t n = d.size();
  const double size = n == 0 ? 0 : std::max(d.cwiseAbs().maxCoeff(), e.cwiseAbs().maxCoeff());
  if (!(size > 0) || !std::isfinite(size)) return size == 0;
  d /= size;
  e = (e / size).cwiseAbs2();
  const auto is_split = [&](std::int64_t i) {
    const double sum = 0x1p-53 * (std::abs(d[i]) + std::abs(d[i + 1]));
    return e[i] <= sum * sum;
  };
  std::int64_t hi = n - 1;
  for (std::int64_t steps = 0; hi > 0; ++steps) {
    if (steps > 40 * n) return false;
    if (is_split(hi - 1)) {
      --hi;
      continue;
    }
    std::int64_t lo = hi - 1;
    while (lo > 0 && !is_split(lo - 1)) --lo;
    const double beside = std::sqrt(e[hi - 1]), half = (d[hi - 1] - d[hi]) / (2 * beside);
    const double shift = d[hi] - beside / (half + std::copysign(std::hypot(half, 1.0), half));
    double c = 1, s = 0, gamma = d[lo] - shift, square = gamma * gamma;
    for (std::int64_t i = lo; i < hi; ++i) {
      const double b = e[i], r = square + b, before = c, gamma_before = gamma, next = d[i + 1];
      if (i > lo) e[i - 1] = s * r;
      c = square / r;
      s = b / r;
      gamma = c * (next - shift) - s * gamma_before;
      d[i] = gamma_before + (next - gamma);
      square = c != 0 ? gamma * gamma / c : before * b;
    }
    e[hi - 1] = s * square;
    d[hi] = shift + gamma;
  }
  d *= size;
  std::sort(d.begin(), d.end());
  return true;
}

bool tridiagonal_by_rotations(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& q) {
  const std::int64_t n = d.size();
  Rotations rotations(q);
  std::int64_t hi = n - 1;
  for (std::int64_t steps = 0; hi > 0; ++steps) {
    if (steps > 40 * n) return false;
    for (std::int64_t i = 0; i < hi; ++i)
      if (std::abs(e[i]) <= 0x1p-53 * (std::abs(d[i]) + std::abs(d[i + 1]))) e[i] = 0;
    while (hi > 0 && e[hi - 1] == 0) --hi;
    if (hi == 0) break;
    std::int64_t lo = hi - 1;
    while (lo > 0 && e[lo - 1] != 0) --lo;
    step(d, e, lo, hi, rotations);
  }
  rotations.apply();
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t i, std::int64_t j) { return d[i] < d[j]; });
  d = Eigen::VectorXd(d(order));
  if (q.size() > 0) q = Eigen::MatrixXd(q(Eigen::all, order));
  return true;
}

}  // namespace plait::matrices
