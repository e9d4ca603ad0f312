// eigen_of_hermitian, by Eigen. See eigen_solver.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/eigen_solver.h"

#include <Eigen/Eigenvalues>

namespace plait::matrices {
namespace {

template <class T>
void eigen_typed(const Matrix<T>& x, bool compute_vectors, Eigen::VectorXd& values,
                 Matrix<T>& vectors) {
  const std::int64_t n = x.rows();
  values.setConstant(n, NAN);
  if (compute_vectors) vectors.setConstant(n, n, not_a_number<T>());
  if (n == 0 || !x.allFinite()) return;
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(
      x, compute_vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return;
  values = solver.eigenvalues();
  if (!compute_vectors) return;
  vectors = solver.eigenvectors();
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
