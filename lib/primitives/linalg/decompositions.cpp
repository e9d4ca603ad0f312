// See decompositions.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/decompositions.h"

#include <plait/primitives/linear_solve.h>
#include <plait/primitives/narrow.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/spelling.h"

namespace plait::matrices {

Family decomposition(const Primitive& primitive) {
  return {"decomposition", [&primitive](Definition& definition) {
            definition.rule<Autocast>(Autocast::full)
                .refuse<Spelling>(spelling::no_function)
                .rule<PictureGroup>(PictureGroup::other)
                .refuse<Speculate>("it may cost more than a branch")
                .refuse<Motion>("loops seldom repeat it")
                .rule<Batch>(batch_matrices(primitive));
          }};
}

Array as_complex(const Array& x) {
  return is_complex(x.dtype()) ? x : Array(lax::complex(x, lax::zeros_like(x.aval())));
}

namespace {

Array column_sums(const Array& x) { return lax::reduce_sum(x, std::vector<int>{x.ndim() - 2}); }

// A column times a factor each.
Array times_columns(const Array& x, const Array& factors) {
  return broadcast_product(x, as_rows(factors));
}

// 1 in the row of each column whose element is real and positive.
Array chosen_places(const Array& columns) {
  const int axis = columns.ndim() - 2;
  const Array size = lax::abs(lax::stop_gradient(columns));
  const Array half =
      lax::mul(lax::reduce_max(size, std::vector<int>{axis}), Array::literal(0.5, size.dtype()));
  const Array is_large = lax::ge(size, broadcast_to(as_rows(half), size.shape()));
  const Array row = lax::iota(DType::int32, size.shape(), axis);
  const Array none =
      lax::full(size.shape(), std::numeric_limits<std::int32_t>::max(), DType::int32);
  const Array first = lax::reduce_min(lax::select(is_large, row, none), std::vector<int>{axis});
  return lax::convert_element_type(lax::eq(row, broadcast_to(as_rows(first), size.shape())),
                                   size.dtype());
}

// The angles by which columns turn: Im(dv_p) / v_p at the chosen elements.
Array turns_of(const Array& columns, const Array& tangent) {
  const Array places = chosen_places(columns);
  const Array element = column_sums(lax::mul(places, lax::real(columns)));
  return lax::div(column_sums(lax::mul(places, lax::imag(tangent))), element);
}

Array imaginary(const Array& x) { return lax::complex(lax::zeros_like(x.aval()), x); }

}  // namespace

Array normalised_tangent(const Array& columns, const Array& tangent) {
  const Array along = column_sums(lax::add(lax::mul(lax::real(columns), lax::real(tangent)),
                                           lax::mul(lax::imag(columns), lax::imag(tangent))));
  const Array multiple = lax::complex(along, turns_of(columns, tangent));
  return lax::sub(tangent, times_columns(columns, multiple));
}

Array phase_tangent(const Array& columns, const Array& tangent) {
  const Array angles = imaginary(turns_of(columns, tangent));
  const Aval& aval = columns.aval();
  const Array diagonal =
      broadcast_to(eye(columns_of(aval), columns_of(aval), aval.dtype), tangent.shape());
  return lax::neg(times_columns(diagonal, angles));
}

Array solved_by_lu(const Array& x, const Array& b) {
  using lax::linalg::triangular_solve;
  const auto [lu, pivots, permutation] = lax::linalg::lu(x);
  const Array y = triangular_solve(lu, take_rows(b, permutation), true, true, false, false, true);
  return triangular_solve(lu, y, true, false);
}

Array solved_sylvester(const Array& a, const Array& b, const Array& c) {
  const auto schur_of = [](const Array& x) {
    return bind(schur_p, {lax::stop_gradient(x)}, {{"complex", true}, {"compute_vectors", true}});
  };
  const Arrays left = schur_of(a), right = schur_of(b);
  const Array &t = left[0], &u = left[1], &s = right[0], &v = right[1];
  const Params all{{"part", Dim(0)}};
  const Function matvec = [&](std::span<const Array> x) -> Arrays {
    return {lax::add(matmul(a, x[0]), matmul(x[0], b))};
  };
  // U^H A U = T and V^H B V = S: T y + y S = U^H c V.
  const Function solve = [=](std::span<const Array> y) -> Arrays {
    const Array inner = matmul(matmul(adjoint(u), y[0]), v);
    const Array x = bind(triangular_sylvester_p, {inner, t, s}, all)[0];
    return {matmul(matmul(u, x), adjoint(v))};
  };
  // The transpose of a^T y + y b^T = c is S z + z T = V^H c^T U... with y = conj(U) z^T V^T.
  const Function transpose_solve = [=](std::span<const Array> y) -> Arrays {
    const Array inner = matmul(matmul(adjoint(v), transposed(y[0])), u);
    const Array z = bind(triangular_sylvester_p, {inner, s, t}, all)[0];
    return {transposed(matmul(matmul(v, z), adjoint(u)))};
  };
  return linear_solve(matvec, std::span(&c, 1), solve, transpose_solve)[0];
}

}  // namespace plait::matrices
