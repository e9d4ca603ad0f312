// The eigenvalues of real symmetric matrices: reduction to a tridiagonal matrix, and its
// decomposition.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Core>

namespace plait::matrices {

// Reduces the symmetric matrix whose lower triangle is that of a to one with diagonal d and e
// beside it, by reflections H_k = I - tau_k v_k v_k^T: v_k lies below element k + 1 of column k,
// which is 1.
void tridiagonalise(Eigen::MatrixXd& a, Eigen::VectorXd& d, Eigen::VectorXd& e,
                    Eigen::VectorXd& taus);

// T = q diag(w) q^T for the matrix T with diagonal d and e beside it: d becomes w, least first, and
// q, an identity, the eigenvectors; it is skipped where it is empty. False when an iteration does
// not converge.
bool tridiagonal_eigen(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& q);
// The same of eigenvalues alone: e is used up.
bool tridiagonal_values(Eigen::VectorXd& d, Eigen::VectorXd& e);
// With eigenvectors by QR steps, which need twice the time where there are many rows.
bool tridiagonal_by_rotations(Eigen::VectorXd& d, Eigen::VectorXd& e, Eigen::MatrixXd& q);

}  // namespace plait::matrices
