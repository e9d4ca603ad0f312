// eigen_of_hermitian: reduction to a tridiagonal matrix, by Eigen for complex matrices, and its
// decomposition by tridiagonal_eigen. See eigen_solver.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/eigen_solver.h"

#include <Eigen/Eigenvalues>

#include "primitives/linalg/tridiagonal.h"

namespace plait::matrices {
namespace {

template <class T>
void eigen_typed(const Matrix<T>& x, bool compute_vectors, Eigen::VectorXd& values,
                 Matrix<T>& vectors) {
  const std::int64_t n = x.rows();
  values.setConstant(n, NAN);
  if (compute_vectors) vectors.setConstant(n, n, not_a_number<T>());
  if (n == 0 || !x.allFinite()) return;
  const double scale = x.cwiseAbs().maxCoeff();  // so that squares neither overflow nor underflow
  Eigen::VectorXd d, e;
  Eigen::MatrixXd columns;
  if (compute_vectors) columns.setIdentity(n, n);
  Matrix<T> reduced = scale > 0 ? Matrix<T>(x / scale) : x;
  Eigen::Matrix<T, Eigen::Dynamic, 1> taus;
  if constexpr (std::is_same_v<T, double>) {
    tridiagonalise(reduced, d, e, taus);
  } else {
    const Eigen::Tridiagonalization<Matrix<T>> reduction(reduced);
    d = reduction.diagonal();
    e.setZero(n);
    e.head(n - 1) = reduction.subDiagonal();
    taus = reduction.householderCoefficients().conjugate();
    reduced = reduction.packedMatrix();
  }
  if (!tridiagonal_eigen(d, e, columns)) return;
  values = d * (scale > 0 ? scale : 1.0);
  if (!compute_vectors) return;
  vectors = columns.template cast<T>();
  if (n > 1) {
    Eigen::Matrix<T, 1, Eigen::Dynamic> workspace;
    Eigen::HouseholderSequence<Matrix<T>, Eigen::Matrix<T, Eigen::Dynamic, 1>>(reduced, taus)
        .setLength(n - 1)
        .setShift(1)
        .applyThisOnTheLeft(vectors, workspace);
  }
  for (std::int64_t column = 0; column < n; ++column)
    vectors.col(column) *= phase_of<T>(vectors.col(column));
}

}  // namespace

void eigen_of_hermitian(const Matrix<double>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<double>& vectors) {
  eigen_typed(x, compute_vectors, values, vectors);
}
void eigen_of_hermitian(const Matrix<complex128>& x, bool compute_vectors, Eigen::VectorXd& values,
                        Matrix<complex128>& vectors) {
  eigen_typed(x, compute_vectors, values, vectors);
}

}  // namespace plait::matrices
