// Schur's form in rules Emit, of one matrix of a stack after the other: what schur, sqrtm and eig
// share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/emit_wide.h"

namespace plait {

// x = z t z^H, in the wide dtype. The iterations are those of schur_solver.h, so that eigenvalues
// have the same order. A real t has blocks of two rows; in the complex form of a real matrix, each
// of them is made triangular.
class SchurForm {
 public:
  enum class Vectors : std::uint8_t { none, all };
  SchurForm(const loops::Tensor& x, bool is_complex_form, Vectors vectors);

  // Whether there is a form: the matrix is finite, and the iterations converged.
  written::Number decompose(const loops::Indices& batch) const;

  MatrixIn t(const loops::Indices& batch) const;
  MatrixIn z(const loops::Indices& batch) const;
  // Of each row of a real matrix's complex form, which one of a pair of conjugate eigenvalues it
  // has: 1 or 2, or 0 where it is real.
  VectorIn pairs(const loops::Indices& batch) const;

  std::int64_t size() const { return n_; }
  const Shape& batch_shape() const { return shape_; }
  DType dtype() const { return is_widened_ ? DType::complex128 : wide_; }

 private:
  void reduce(const loops::Indices& batch) const;
  written::Number iterate_complex(const loops::Indices& batch, written::Number may_run) const;
  void chase(const loops::Indices& batch, written::Number first, written::Number last,
             written::Number shift) const;
  written::Number iterate_real(const loops::Indices& batch, written::Number may_run) const;
  void split(const loops::Indices& batch, written::Number last) const;
  void francis(const loops::Indices& batch, written::Number first, written::Number last,
               written::Number count) const;
  void widen(const loops::Indices& batch) const;

  const loops::Tensor x_;
  const std::int64_t n_;
  const Shape shape_;
  const bool has_vectors_;
  const DType wide_, real_;
  const bool is_widened_;
  const loops::Tensor matrices_, vectors_, reflector_;
  loops::Tensor widened_, widened_vectors_, pairs_;
};

}  // namespace plait
