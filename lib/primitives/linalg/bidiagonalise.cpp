// See bidiagonalise.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/bidiagonalise.h"

#include <plait/base/pack.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cmath>

namespace plait::matrices {
namespace {

template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

// The reflection H = I - tau w w^H with H x = (beta, 0, ...), where w begins with 1: x becomes w.
// What is too small to be squared, beside elements of the matrix of at most 1, is 0.
template <class T, class Column>
T reflect(Column x, double& beta) {
  constexpr double least = 0x1p-900;
  const T first = x[0];
  const double beside = x.tail(x.size() - 1).squaredNorm(), square = std::norm(first) + beside;
  x[0] = 1;
  if (square < least || (beside == 0 && std::imag(first) == 0)) {
    x.tail(x.size() - 1).setZero();
    beta = square < least ? 0 : std::real(first);
    return 0;
  }
  beta = -std::copysign(std::sqrt(square), std::real(first));
  x.tail(x.size() - 1) /= first - beta;
  return Eigen::numext::conj((beta - first) / beta);
}

// One pass over the columns of a behind `first`, in the rows from it on: subtracts u y^T + x v^H,
// finds the products of the result with `left`, of which the next y is made, so that row `first` of
// the reflected matrix is known, and adds the columns, times this row, to the first column of
// `sums`. The other columns are sums of parts, which threads run.
template <class T>
struct Pass {
  Matrix<T>& a;
  const Vector<T>&u, &x, &v, &left;
  T tau;
  Vector<T>&y, &row;  // y is of the pass before, and becomes the next one
  Matrix<T>& sums;

  static constexpr std::int64_t most_parts = 8;

  void run(std::int64_t first) {
    constexpr std::int64_t worth_a_thread = 1 << 16;  // elements
    const std::int64_t rest = a.cols() - first - 1, rows = a.rows() - first,
                       parts =
                           std::clamp<std::int64_t>(rest * rows / worth_a_thread, 1, most_parts),
                       width = (rest / parts + group) / group * group;
    sums.block(first, 0, rows, parts).setZero();
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part)
        run_part(first, std::min(rest, part * width), std::min(rest, (part + 1) * width), part);
    });
    for (std::int64_t part = 1; part < parts; ++part)
      sums.col(0).tail(rows) += sums.col(part).tail(rows);
  }

 private:
  using V = Pack<double, 4>;
  static constexpr int group = 4;  // columns that are read together

  void run_part(std::int64_t first, std::int64_t begin, std::int64_t end, std::int64_t part) {
    std::int64_t j = first + 1 + begin;
    const std::int64_t last = first + 1 + end;
    if constexpr (std::is_same_v<T, double>)
      for (; j + group <= last; j += group) columns(first, j, &sums(0, part));
    for (; j < last; ++j) column(first, j, part);
  }

  void column(std::int64_t first, std::int64_t j, std::int64_t part) {
    const std::int64_t rest = a.rows() - first;
    auto values = a.col(j).tail(rest);
    values -= u.tail(rest) * y[j] + x.tail(rest) * Eigen::numext::conj(v[j]);
    y[j] = tau * left.tail(rest).dot(values);
    row[j] = Eigen::numext::conj(values[0] - y[j]);
    sums.col(part).tail(rest) += values * row[j];
  }

  void columns(std::int64_t first, std::int64_t j, double* sums_of_part) {
    const std::int64_t m = a.rows();
    double* column[group];
    double of_y[group], of_v[group], totals[group], of_row[group];
    V sum[group];
    for (int k = 0; k < group; ++k) {
      column[k] = &a(0, j + k);
      of_y[k] = y[j + k];
      of_v[k] = v[j + k];
      sum[k] = V(0.0);
    }
    std::int64_t i = first;
    for (; i + V::width <= m; i += V::width) {
      const V of_u = V::load(&u[i]), of_x = V::load(&x[i]), of_left = V::load(&left[i]);
#pragma GCC unroll 4
      for (int k = 0; k < group; ++k) {
        V value = V::load(column[k] + i);
        value = math::fma(of_u, V(-of_y[k]), math::fma(of_x, V(-of_v[k]), value));
        value.store(column[k] + i);
        sum[k] = math::fma(value, of_left, sum[k]);
      }
    }
    for (int k = 0; k < group; ++k)
      totals[k] = (sum[k].v[0] + sum[k].v[1]) + (sum[k].v[2] + sum[k].v[3]);
    for (; i < m; ++i)
      for (int k = 0; k < group; ++k)
        totals[k] += (column[k][i] -= u[i] * of_y[k] + x[i] * of_v[k]) * left[i];
    for (int k = 0; k < group; ++k) {
      y[j + k] = tau * totals[k];
      row[j + k] = of_row[k] = column[k][first] - y[j + k];
    }
    for (i = first; i + V::width <= m; i += V::width) {
      V total = V::load(sums_of_part + i);
#pragma GCC unroll 4
      for (int k = 0; k < group; ++k)
        total = math::fma(V::load(column[k] + i), V(of_row[k]), total);
      total.store(sums_of_part + i);
    }
    for (; i < m; ++i)
      for (int k = 0; k < group; ++k) sums_of_part[i] += column[k][i] * of_row[k];
  }
};

}  // namespace

// The reflections of a column and of the row behind it are applied together, as A - u y^T - x v^H,
// in the pass that finds the next two, which reads and writes memory once: y = tau A^T conj(u), and
// x = tau' (A v - u y^T v). With r^H the row and v = (r - beta e_1) / (r_1 - beta), A v follows
// from A r: Howell et al., "Cache efficient bidiagonalization using BLAS 2.5 operators" (2008).
template <class T>
void bidiagonalise(Matrix<T>& a, Eigen::VectorXd& d, Eigen::VectorXd& e,
                   Reflections<T>& reflections) {
  const std::int64_t m = a.rows(), n = a.cols();
  d.resize(n);
  e.setZero(n);
  reflections.right.setZero(n, n);
  reflections.left_taus.setZero(n);
  reflections.right_taus.setZero(n);
  Vector<T> u = Vector<T>::Zero(m), x = u, left = u, v = Vector<T>::Zero(n), y = v, row = v;
  Matrix<T> sums(m, Pass<T>::most_parts);
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t rows = m - k, rest = n - k - 1;
    a.col(k).tail(rows) -= u.tail(rows) * y[k] + x.tail(rows) * Eigen::numext::conj(v[k]);
    left.tail(rows) = a.col(k).tail(rows);
    const T tau = reflect<T>(left.tail(rows), d[k]);
    reflections.left_taus[k] = Eigen::numext::conj(tau);
    a.col(k).tail(rows) = left.tail(rows);
    if (rest == 0) break;
    Pass<T>{a, u, x, v, left, tau, y, row, sums}.run(k);
    u.swap(left);
    const T first = row[k + 1];
    const T of_row = Eigen::numext::conj(reflect<T>(row.tail(rest), e[k]));
    v.setZero();
    v.tail(rest) = row.tail(rest);
    reflections.right.col(k).tail(rest) = v.tail(rest);
    reflections.right_taus[k] = of_row;
    x.setZero();
    if (of_row == T(0)) continue;
    x.tail(rows) =
        (sums.col(0).tail(rows) - e[k] * a.col(k + 1).tail(rows)) * (of_row / (first - e[k]));
    x.tail(rows) -= u.tail(rows) * (of_row * (y.tail(rest).transpose() * v.tail(rest)).value());
  }
}

template void bidiagonalise(Matrix<double>&, Eigen::VectorXd&, Eigen::VectorXd&,
                            Reflections<double>&);
template void bidiagonalise(Matrix<complex128>&, Eigen::VectorXd&, Eigen::VectorXd&,
                            Reflections<complex128>&);

}  // namespace plait::matrices
