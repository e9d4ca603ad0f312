// bidiagonal_by_rotations: the singular value decomposition of a bidiagonal matrix, by implicit QR
// steps with Wilkinson's shift: Golub and Van Loan, "Matrix Computations", algorithm 8.6.2. An
// element is negligible relative to its neighbours; a diagonal element, relative to the norm of the
// matrix.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "primitives/linalg/rotations.h"
#include "primitives/linalg/svd.h"

namespace plait::matrices {
namespace {

constexpr double epsilon = 0x1p-52;

struct Bidiagonal {
  Eigen::VectorXd &d, &e;
  Rotations of_u, of_v;

  // d[i] is 0: e[i] moves along row i and out of the block.
  void clear_row(std::int64_t i, std::int64_t hi) {
    double f = e[i];
    e[i] = 0;
    for (std::int64_t j = i + 1; j <= hi && f != 0; ++j) {
      const Givens rotation(d[j], f);
      d[j] = rotation.r;
      f = 0;
      if (j < hi) {
        f = -rotation.s * e[j];
        e[j] *= rotation.c;
      }
      of_u.add(j, i, rotation.c, rotation.s);
    }
  }
  // d[hi] is 0: e[hi - 1] moves up column hi and out of the block.
  void clear_column(std::int64_t lo, std::int64_t hi) {
    double f = e[hi - 1];
    e[hi - 1] = 0;
    for (std::int64_t j = hi; j-- > lo && f != 0;) {
      const Givens rotation(d[j], f);
      d[j] = rotation.r;
      f = 0;
      if (j > lo) {
        f = -rotation.s * e[j - 1];
        e[j - 1] *= rotation.c;
      }
      of_v.add(j, hi, rotation.c, rotation.s);
    }
  }
  // One implicit QR step on the block lo .. hi.
  void step(std::int64_t lo, std::int64_t hi) {
    const double above = hi - 1 > lo ? e[hi - 2] : 0;
    const double a11 = d[hi - 1] * d[hi - 1] + above * above, a12 = d[hi - 1] * e[hi - 1],
                 a22 = d[hi] * d[hi] + e[hi - 1] * e[hi - 1], half = (a11 - a22) / 2;
    const double divisor = half + std::copysign(std::hypot(half, a12), half);
    const double shift = divisor != 0 ? a22 - a12 * a12 / divisor : a22;
    double y = d[lo] * d[lo] - shift, z = d[lo] * e[lo];
    for (std::int64_t j = lo; j < hi; ++j) {
      const Givens right(y, z);
      if (j > lo) e[j - 1] = right.r;
      y = right.c * d[j] + right.s * e[j];
      e[j] = right.c * e[j] - right.s * d[j];
      z = right.s * d[j + 1];
      d[j + 1] *= right.c;
      of_v.add(j, j + 1, right.c, right.s);
      const Givens left(y, z);
      d[j] = left.r;
      y = left.c * e[j] + left.s * d[j + 1];
      d[j + 1] = left.c * d[j + 1] - left.s * e[j];
      e[j] = y;
      if (j + 1 < hi) {
        z = left.s * e[j + 1];
        e[j + 1] *= left.c;
      }
      of_u.add(j, j + 1, left.c, left.s);
    }
  }

  bool iterate() {
    const std::int64_t n = d.size();
    const double norm = std::max(d.cwiseAbs().maxCoeff(), e.cwiseAbs().maxCoeff());
    std::int64_t hi = n - 1;
    for (std::int64_t steps = 0; hi > 0; ++steps) {
      if (steps > 60 * n) return false;
      for (std::int64_t i = 0; i < hi; ++i)
        if (std::abs(e[i]) <= epsilon * (std::abs(d[i]) + std::abs(d[i + 1]))) e[i] = 0;
      while (hi > 0 && e[hi - 1] == 0) --hi;
      if (hi == 0) return true;
      std::int64_t lo = hi - 1;
      while (lo > 0 && e[lo - 1] != 0) --lo;
      std::int64_t zero = hi;
      while (zero >= lo && std::abs(d[zero]) > epsilon * norm) --zero;
      if (zero < lo) {
        step(lo, hi);
        continue;
      }
      d[zero] = 0;
      if (zero == hi)
        clear_column(lo, hi);
      else
        clear_row(zero, hi);
    }
    return true;
  }

  void sort(Eigen::MatrixXd& ub, Eigen::MatrixXd& vb) {
    of_u.apply();
    of_v.apply();
    const std::int64_t n = d.size();
    for (std::int64_t i = 0; i < n; ++i) {
      if (!std::signbit(d[i])) continue;
      d[i] = -d[i];
      if (vb.size() > 0) vb.col(i) = -vb.col(i);
    }
    std::vector<std::int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t i, std::int64_t j) { return d[i] > d[j]; });
    const Eigen::VectorXd values = d;
    const Eigen::MatrixXd left = ub, right = vb;
    for (std::int64_t i = 0; i < n; ++i) {
      d[i] = values[order[i]];
      if (left.size() > 0) ub.col(i) = left.col(order[i]);
      if (right.size() > 0) vb.col(i) = right.col(order[i]);
    }
  }
};

}  // namespace

bool bidiagonal_by_rotations(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& ub,
                             Eigen::MatrixXd& vb) {
  Bidiagonal matrix{d, e, Rotations(ub), Rotations(vb)};
  if (!matrix.iterate()) return false;
  matrix.sort(ub, vb);
  return true;
}

}  // namespace plait::matrices
