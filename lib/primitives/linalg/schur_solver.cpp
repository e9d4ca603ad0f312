// Schur's form by Eigen's QR iterations. See schur_solver.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/schur_solver.h"

#include <Eigen/Eigenvalues>

namespace plait::matrices {
namespace {

template <class T>
bool fail(std::int64_t n, Matrix<T>& t, Matrix<T>& z) {
  t.setConstant(n, n, not_a_number<T>());
  z.setConstant(n, n, not_a_number<T>());
  return n == 0;
}

template <class Solver, class T>
bool decompose(const Matrix<T>& x, bool compute_vectors, Matrix<T>& t, Matrix<T>& z) {
  if (x.rows() == 0 || !x.allFinite()) return fail(x.rows(), t, z);
  const Solver solver(x, compute_vectors);
  if (solver.info() != Eigen::Success) return fail(x.rows(), t, z);
  t = solver.matrixT();
  if (compute_vectors) z = solver.matrixU();
  return true;
}

// The larger eigenvalue, in the sense of its imaginary part, of rows i and i + 1, less t(i+1, i+1).
complex128 eigenvalue_of_block(const Matrix<double>& t, std::int64_t i) {
  const double half = (t(i, i) - t(i + 1, i + 1)) / 2, product = t(i, i + 1) * t(i + 1, i);
  const double scale = std::max(std::abs(half), std::sqrt(std::abs(product)));
  if (scale == 0) return 0;
  const double square = half / scale * (half / scale) + product / scale / scale;
  return square < 0 ? complex128(half, scale * std::sqrt(-square))
                    : complex128(half + scale * std::sqrt(square));
}

}  // namespace

bool real_schur(const Matrix<double>& x, bool compute_vectors, Matrix<double>& t,
                Matrix<double>& z) {
  return decompose<Eigen::RealSchur<Matrix<double>>>(x, compute_vectors, t, z);
}

bool complex_schur(const Matrix<complex128>& x, bool compute_vectors, Matrix<complex128>& t,
                   Matrix<complex128>& z, std::vector<int>* pairs) {
  if (pairs) pairs->assign(std::size_t(x.rows()), 0);
  return decompose<Eigen::ComplexSchur<Matrix<complex128>>>(x, compute_vectors, t, z);
}

// A rotation of rows i and i + 1 makes each block of the real form triangular: Golub and Van Loan,
// "Matrix Computations", section 7.4.
bool complex_schur(const Matrix<double>& x, bool compute_vectors, Matrix<complex128>& t,
                   Matrix<complex128>& z, std::vector<int>* pairs) {
  const std::int64_t n = x.rows();
  if (pairs) pairs->assign(std::size_t(n), 0);
  Matrix<double> real_t, real_z;
  if (!real_schur(x, compute_vectors, real_t, real_z)) return fail(n, t, z);
  t = real_t.cast<complex128>();
  if (compute_vectors) z = real_z.cast<complex128>();
  for (std::int64_t i = n - 1; i-- > 0;) {
    if (real_t(i + 1, i) == 0) continue;
    const complex128 shifted = eigenvalue_of_block(real_t, i);
    const double below = real_t(i + 1, i), length = std::hypot(std::abs(shifted), below);
    const complex128 c = shifted / length;
    const double s = below / length;
    const auto rotate = [s](auto&& first, auto&& second, complex128 factor) {
      for (std::int64_t k = 0; k < first.size(); ++k) {
        const complex128 x = first[k], y = second[k];
        first[k] = factor * x + s * y;
        second[k] = std::conj(factor) * y - s * x;
      }
    };
    rotate(t.row(i).tail(n - i), t.row(i + 1).tail(n - i), std::conj(c));
    rotate(t.col(i).head(i + 2), t.col(i + 1).head(i + 2), c);
    if (compute_vectors) rotate(z.col(i), z.col(i + 1), c);
    t(i + 1, i) = 0;
    // The eigenvalues are a conjugate pair, to the bit.
    const double center = real_t(i + 1, i + 1);
    if (shifted.imag() != 0) {
      t(i, i) = center + shifted;
      t(i + 1, i + 1) = std::conj(t(i, i));
      if (pairs) (*pairs)[std::size_t(i)] = 1, (*pairs)[std::size_t(i + 1)] = 2;
    } else {
      t(i, i) = t(i, i).real();
      t(i + 1, i + 1) = t(i + 1, i + 1).real();
    }
  }
  return true;
}

}  // namespace plait::matrices
