// Matrices of any size in loop programs whose steps many threads share: what the rules Emit of the
// decompositions have in common.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/written.h"

namespace plait {

// One matrix of a stack, in memory. Where columns lie side by side, at(i, j) is element (j, i) of
// the array.
struct MatrixIn {
  const loops::Tensor& stack;
  const loops::Indices& batch;
  bool by_columns = false;

  written::Number operator()(const loops::Index& i, const loops::Index& j) const {
    return written::get(stack, place(i, j));
  }
  void put(const loops::Index& i, const loops::Index& j, written::Number number) const {
    written::put(stack, place(i, j), number);
  }

 private:
  loops::Indices place(const loops::Index& i, const loops::Index& j) const {
    loops::Indices at = batch;
    at.push_back(by_columns ? j : i);
    at.push_back(by_columns ? i : j);
    return at;
  }
};
// One vector of a stack.
struct VectorIn {
  const loops::Tensor& stack;
  const loops::Indices& batch;

  written::Number operator()(const loops::Index& i) const { return written::get(stack, place(i)); }
  void put(const loops::Index& i, written::Number number) const {
    written::put(stack, place(i), number);
  }

 private:
  loops::Indices place(const loops::Index& i) const {
    loops::Indices at = batch;
    at.push_back(i);
    return at;
  }
};

// A stack of matrices of these sizes, with the batch axes of another one; of vectors for one size.
inline Shape batch_of(const Aval& matrices) {
  return Shape(matrices.shape.begin(), matrices.shape.end() - 2);
}
inline loops::Tensor make_stack(const Shape& batch, std::initializer_list<std::int64_t> sizes,
                                DType dtype) {
  Shape shape = batch;
  for (const std::int64_t size : sizes) shape.push_back(size);
  return written::make(shape, dtype);
}
inline std::int64_t num_rows(const Aval& matrices) {
  return matrices.shape[matrices.rank() - 2].constant();
}
inline std::int64_t num_columns(const Aval& matrices) {
  return matrices.shape[matrices.rank() - 1].constant();
}

// f(i, j) for all elements of a matrix, in any order.
inline void for_elements(std::int64_t rows, std::int64_t columns,
                         const std::function<void(const loops::Index&, const loops::Index&)>& f) {
  written::for_all(rows, [&](const loops::Index& i) {
    written::for_all(columns, [&](const loops::Index& j) { f(i, j); });
  });
}

// The rules of matrices that are not small, or complex.
loops::Tensors emit_any_lu(const loops::Tensor& x);
loops::Tensor emit_any_det(const loops::Tensor& x);
loops::Tensor emit_any_cholesky(const loops::Tensor& x);
loops::Tensor emit_any_triangular_solve(const loops::Tensor& a, const loops::Tensor& b,
                                        const Params& params);

loops::Tensors emit_qr(loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs);
loops::Tensors emit_eigh(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs);
loops::Tensors emit_svd(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs);
loops::Tensors emit_pinv(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs);
loops::Tensors emit_tridiagonal_solve(loops::Writer& w, const Equation& equation,
                                      std::span<const loops::Tensor> inputs);
loops::Tensors emit_cholesky_update(loops::Writer& w, const Equation& equation,
                                    std::span<const loops::Tensor> inputs);
loops::Tensors emit_pivoted_order(loops::Writer& w, const Equation& equation,
                                  std::span<const loops::Tensor> inputs);
loops::Tensors emit_triangular_sylvester(loops::Writer& w, const Equation& equation,
                                         std::span<const loops::Tensor> inputs);
loops::Tensors emit_polar(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs);
loops::Tensors emit_schur(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs);
loops::Tensors emit_sqrtm(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs);
loops::Tensors emit_eig(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs);

}  // namespace plait
