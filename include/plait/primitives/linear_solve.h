// linear_solve: the primitive of linear systems whose matrix is given by its products with vectors,
// and by a solver. Derivatives follow from the system, not from the way it is solved. implicit.h
// has the functions for users.
//
//   matvec           b, captured -> the matrix times b
//   solve            b, captured -> x
//   transpose_solve  the same for the transposed matrix; absent where it is not known
//   symmetric        the matrix is its own transpose
//
// Operands are b, then the captured arrays of the three, in this order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

extern const Primitive linear_solve_p;

// The parameters and operands of an equation, parsed.
struct LinearSystem {
  Jaxpr matvec, solve, transpose_solve;  // with the sizes of the enclosing program
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

// The types of unknowns: strong, even where a right-hand side or an initial guess is weak.
std::vector<Aval> strong_avals_of(std::span<const Array> unknowns);

// The x with matvec(x) = b, found by solve(b); transpose_solve may be empty. Derivatives with
// respect to captured arrays go through matvec alone.
Arrays linear_solve(const Function& matvec, std::span<const Array> b, const Function& solve,
                    const Function& transpose_solve, bool symmetric = false);

}  // namespace plait
