// linear_solve: the primitive of linear systems that are given by what their matrix does to
// vectors, and by a way to solve them. Its derivatives follow from the system, not from how it is
// solved. implicit.h has the functions for users.
//
//   matvec           b, captured -> the matrix times b
//   solve            b, captured -> x
//   transpose_solve  the same for the transposed matrix; absent where it is not known
//   symmetric        the matrix is its own transpose
//
// Operands are b, then what the three captured, in this order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

extern const Primitive linear_solve_p;

// The parameters of an equation, and its operands taken apart.
struct LinearSystem {
  Jaxpr matvec, solve, transpose_solve;  // of the sizes of the enclosing program
  bool symmetric = false;
  int num_matvec = 0, num_solve = 0, num_transpose = 0;  // captured arrays of each

  LinearSystem() = default;
  explicit LinearSystem(const Params& params);
  Params to_params() const;
  int num_unknowns() const;
  template <class T>
  std::span<const T> unknowns(std::span<const T> operands) const {
    return operands.first(num_unknowns());
  }
  template <class T>
  std::span<const T> of_matvec(std::span<const T> operands) const {
    return operands.subspan(num_unknowns(), num_matvec);
  }
  template <class T>
  std::span<const T> of_solve(std::span<const T> operands) const {
    return operands.subspan(num_unknowns() + num_matvec, num_solve);
  }
  template <class T>
  std::span<const T> of_transpose(std::span<const T> operands) const {
    return operands.subspan(num_unknowns() + num_matvec + num_solve, num_transpose);
  }
};

// The types of unknowns, which are strong whatever a right-hand side or a guess is.
std::vector<Aval> strong_avals_of(std::span<const Array> unknowns);

// x with matvec(x) = b, found by solve(b); transpose_solve may be empty. What the functions capture
// is differentiated through matvec alone.
Arrays linear_solve(const Function& matvec, std::span<const Array> b, const Function& solve,
                    const Function& transpose_solve, bool symmetric = false);

}  // namespace plait
