// plait.scipy.linalg: functions of general matrices by their Schur form, and Sylvester's equation.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/scipy_matrices.h>
#include <plait/transforms/transforms.h>

#include "functions/functions.h"
#include "primitives/linalg/decompositions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using matrices::rows_of;

Array square_of(std::string_view name, const Array& x) {
  const Array a = to_inexact(x);
  matrices::require_matrices(name, std::span(&a.aval(), 1));
  matrices::require_square(name, a.aval());
  return a;
}

// Matrices whose batches broadcast, with one batch.
void share_batch(Arrays& arrays, std::string_view name) {
  std::vector<Shape> batches;
  for (const Array& x : arrays) batches.emplace_back(x.shape().begin(), x.shape().end() - 2);
  const Shape batch = broadcast_shapes(batches, name);
  for (Array& x : arrays) {
    Shape shape = batch;
    shape.push_back(rows_of(x.aval()));
    shape.push_back(matrices::columns_of(x.aval()));
    x = plait::broadcast_to(x, shape);
  }
}

}  // namespace

namespace scipy::linalg {

Array solve_sylvester(Operand A, Operand B, Operand C) {
  Arrays all{square_of("solve_sylvester", A), square_of("solve_sylvester", B), to_inexact(C)};
  promote_dtypes(all, "solve_sylvester");
  const Array &a = all[0], &b = all[1], &c = all[2];
  if (c.ndim() < 2 || !(rows_of(c.aval()) == rows_of(a.aval())) ||
      !(matrices::columns_of(c.aval()) == rows_of(b.aval())))
    throw ShapeError("solve_sylvester: matrices of shapes (" + A.shape().to_string() + "), (" +
                         B.shape().to_string() + ") and (" + C.shape().to_string() + ") do not fit",
                     "give C as many rows as A and as many columns as B");
  share_batch(all, "solve_sylvester");
  const bool complex = is_complex(all[2].dtype());
  for (Array& x : all) x = matrices::as_complex(x);
  const Array x = matrices::solved_sylvester(all[0], all[1], all[2]);
  return complex ? x : Array(lax::real(x));
}

Array sqrtm(Operand A) { return lax::linalg::sqrtm(square_of("sqrtm", A)); }

// F = func(T) commutes with T: with D = func(diag(T)), the part X above the diagonal solves
// T X - X T = D T - T D. Golub and Van Loan, "Matrix Computations", section 9.1.4.
Array funm(Operand A, const Function& func) {
  const auto [t, z] = lax::linalg::schur(square_of("funm", A), true);
  const Array values = matrices::diagonal_of(t);
  const Arrays results = func(std::span(&values, 1));
  if (results.size() != 1 || !(results[0].shape() == values.shape()))
    throw ShapeError("funm: func does not give one array of the shape of its argument, (" +
                         values.shape().to_string() + ")",
                     "give a function of each eigenvalue");
  const Array f = matrices::as_complex(astype(results[0], t.dtype()));
  const Array rows = matrices::broadcast_product(t, matrices::as_columns(f)),
              columns = matrices::broadcast_product(t, matrices::as_rows(f));
  const Array above = bind(triangular_sylvester_p, {lax::sub(rows, columns), t, lax::neg(t)},
                           {{"part", Dim(1)}})[0];
  const Array diagonal = matrices::broadcast_product(
      plait::broadcast_to(matrices::eye(rows_of(t.aval()), rows_of(t.aval()), t.dtype()),
                          t.shape()),
      matrices::as_rows(f));
  return matrices::matmul(matrices::matmul(z, lax::add(above, diagonal)), matrices::adjoint(z));
}

std::pair<Array, Array> expm_frechet(Operand A, Operand E) {
  Arrays both{square_of("expm_frechet", A), square_of("expm_frechet", E)};
  promote_dtypes(both, "expm_frechet");
  if (!(rows_of(both[0].aval()) == rows_of(both[1].aval())))
    throw ShapeError("expm_frechet: matrices of shapes (" + A.shape().to_string() + ") and (" +
                         E.shape().to_string() + ") do not fit",
                     "give matrices of one size");
  share_batch(both, "expm_frechet");
  const Function exponential = [](std::span<const Array> x) -> Arrays { return {expm(x[0])}; };
  const Tangent direction(both[1]);
  const Differentiated result =
      flat::jvp(exponential, std::span(&both[0], 1), std::span(&direction, 1));
  return {as_weak_as(both[0], result.outputs[0]),
          as_weak_as(both[0], result.tangents[0].instantiate())};
}

namespace {

[[maybe_unused]] const FunctionInfo* const functions_of_matrices[] = {
    function(
        "scipy.linalg", "solve_sylvester(A, B, C, *, method='schur', tol=1e-08!)",
        "The x of A x + x B = C, by the Schur forms of A and B, whatever the method ('schur' or "
        "'eigen'). Infinities or NaN where eigenvalues of A and -B are equal. Derivatives solve "
        "such an equation again.",
        +[](Operand A, Operand B, Operand C, const std::string& method) {
          if (method != "schur" && method != "eigen")
            throw ValueError("solve_sylvester: method is '" + method + "'",
                             "give 'schur' or 'eigen'");
          return solve_sylvester(A, B, C);
        }),
    function("scipy.linalg", "sqrtm(A, blocksize=1!)",
             "The square roots of square matrices whose eigenvalues have real parts that are not "
             "negative, as complex matrices; infinities or NaN where there is none.",
             &sqrtm),
    function(
        "scipy.linalg", "funm(A, func, disp=True)",
        "func of square matrices, as complex matrices: func takes the eigenvalues as an array and "
        "gives one value for each. Terms of equal eigenvalues are left out. Without disp, also "
        "an estimate of the relative error: the 1-norm of what does not commute with A, relative "
        "to that of the result.",
        +[](Operand A, const Function& func, bool disp) {
          const Array result = funm(A, func);
          if (disp) return Argument(result);
          const Array a = matrices::as_complex(to_inexact(A));
          const Array apart = lax::sub(matrices::matmul(a, result), matrices::matmul(result, a));
          const std::vector<int> both{-2, -1};
          const Array error =
              lax::div(numpy::linalg::norm(apart, 1, both), numpy::linalg::norm(result, 1, both));
          return Argument(Argument::List{result, error});
        }),
    function(
        "scipy.linalg", "expm_frechet(A, E, *, method=None!, compute_expm=True)",
        "expm(A) and its derivative in the direction E; the derivative alone unless compute_expm.",
        +[](Operand A, Operand E, bool compute_expm) {
          const auto [result, derivative] = expm_frechet(A, E);
          if (!compute_expm) return Argument(derivative);
          return Argument(Argument::List{result, derivative});
        }),
};

}  // namespace
}  // namespace scipy::linalg
}  // namespace plait
