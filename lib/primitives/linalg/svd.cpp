// svd and pinv.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/svd.h"

#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/emit_matrices.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

double work_of(const MatrixBatch& batch) {
  const double rows = double(batch.rows()), columns = double(batch.columns());
  return 20 * rows * columns * std::min(rows, columns);
}

template <class T>
void svd_kernel(std::span<const View> inputs, std::span<const View> outputs, Vectors vectors) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  for_matrices(batch.count(), work_of(batch), [&](std::int64_t begin, std::int64_t end) {
    Matrix<Wide<T>> x;
    Decomposed<Wide<T>> result;
    for (std::int64_t i = begin; i < end; ++i) {
      batch.load<T>(i, sizes.at(0, i, batch.rows()), sizes.at(1, i, batch.columns()), x);
      decompose(x, vectors, result);
      store_vector<typename Eigen::NumTraits<T>::Real>(result.s, outputs[0], i);
      if (vectors == Vectors::none) continue;
      store<T>(result.u, outputs[1], i);
      store<T>(result.v.adjoint(), outputs[2], i);
    }
  });
}

template <class T>
void pinv_kernel(std::span<const View> inputs, const View& out, double rtol) {
  using Real = typename Eigen::NumTraits<T>::Real;
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  for_matrices(batch.count(), work_of(batch), [&](std::int64_t begin, std::int64_t end) {
    Matrix<Wide<T>> x;
    Decomposed<Wide<T>> result;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t m = sizes.at(0, i, batch.rows()), n = sizes.at(1, i, batch.columns());
      batch.load<T>(i, m, n, x);
      decompose(x, Vectors::thin, result);
      const double relative =
          rtol >= 0 ? rtol : 10 * double(std::max(m, n)) * std::numeric_limits<Real>::epsilon();
      const double least = result.s.size() > 0 ? relative * result.s[0] : 0;
      for (double& value : result.s) value = value <= least ? 0 : 1 / value;
      const Matrix<Wide<T>> scaled = result.v * result.s.asDiagonal();
      store<T>(Matrix<Wide<T>>(scaled * result.u.adjoint()), out, i);
    }
  });
}

Params svd_params(bool vectors, bool full) {
  return {{"compute_uv", vectors}, {"full_matrices", full}};
}

// 1 / x, and 0 where x is 0.
Array inverse_or_zero(const Array& x) {
  const Array zero = Array::literal(0, x.dtype()), is_zero = lax::eq(x, zero);
  const Array ones = lax::full(x.shape(), 1, x.dtype()), zeros = lax::zeros_like(x.aval());
  return lax::select(is_zero, zeros, reciprocal(lax::select(is_zero, ones, x)));
}

// With M = U^H dA V: ds = diag(Re M); dU = U (F o (M S + S M^H) + D) and dV = V (F o (S M + M^H
// S)), for F_ij = 1 / (s_j^2 - s_i^2) off the diagonal and D = (M - M^H) / (2 s) on it, which only
// complex matrices have; and what lies outside the spans of U and V:
// dU += (I - U U^H) dA V S^-1, dV += (I - V V^H) dA^H U S^-1. Townsend, "Differentiating the
// singular value decomposition" (2016). Where singular values are equal or 0, F and S^-1 are 0.
Tangents svd_jvp(const Array& x, const Array& dx, std::span<const Array> outputs,
                 const Params& params) {
  Arrays parts(outputs.begin(), outputs.end());
  const bool vectors = params.flag("compute_uv");
  if (!vectors) parts = bind(svd_p, {x}, svd_params(true, false));
  if (vectors && params.flag("full_matrices") && !(rows_of(x.aval()) == columns_of(x.aval())))
    throw MissingRuleError(
        "svd: the columns of a complete u or v beyond the singular values have no derivative; x "
        "has shape (" +
            x.shape().to_string() + ")",
        "use full_matrices=False, or compute_uv=False");
  const Array &s = parts[0], &u = parts[1], &vh = parts[2];
  const Array uh = adjoint(u), v = adjoint(vh), dav = matmul(dx, v), inner = matmul(uh, dav);
  const Array ds = real_diagonal(inner);
  if (!vectors) return {ds};
  const Shape& shape = inner.shape();
  const Array rows = broadcast_to(as_rows(s), shape), columns = broadcast_to(as_columns(s), shape);
  const Array f = inverse_or_zero(lax::mul(lax::add(rows, columns), lax::sub(rows, columns)));
  const Array times_s = broadcast_product(inner, rows), s_times = broadcast_product(inner, columns);
  Array of_u = broadcast_product(lax::add(times_s, adjoint(times_s)), f);
  const Array of_v = broadcast_product(lax::add(s_times, adjoint(s_times)), f);
  const Array inverse = as_rows(inverse_or_zero(s));
  if (is_complex(x.dtype()))
    of_u = lax::add(of_u, broadcast_product(imaginary_diagonal(inner), inverse));
  const Array beside_u = lax::sub(dav, matmul(u, inner));
  const Array dau = matmul(adjoint(dx), u), beside_v = lax::sub(dau, matmul(v, adjoint(inner)));
  const Array du = lax::add(matmul(u, of_u), broadcast_product(beside_u, inverse));
  const Array dv = lax::add(matmul(v, of_v), broadcast_product(beside_v, inverse));
  return {ds, du, adjoint(dv)};
}

// With P = A^+: dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P. Golub and Pereyra, "The
// differentiation of pseudo-inverses and nonlinear least squares problems" (1973).
Tangents pinv_jvp(const Array& a, const Array& da, std::span<const Array> outputs, const Params&) {
  const Array& p = outputs[0];
  const Array ph = adjoint(p), dah = adjoint(da);
  const Array right = matmul(matmul(p, ph), dah), left = matmul(dah, matmul(ph, p));
  Array dp = lax::neg(matmul(p, matmul(da, p)));
  dp = lax::add(dp, lax::sub(right, matmul(matmul(right, a), p)));
  return {lax::add(dp, lax::sub(left, matmul(p, matmul(a, left))))};
}

}  // namespace

constinit const Primitive svd_p{"svd"};
static const auto svd_def =
    define(
        svd_p,
        "x = u diag(s) vh for stacks of matrices; s is real, largest first. Gives s, u and vh, or "
        "s alone. Of every column of u the first element that is at least half as large as the "
        "largest is real and positive.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_matrices("svd", inputs);
          const Aval& x = inputs[0];
          const Dim m = rows_of(x), n = columns_of(x), k = minimum(m, n);
          const bool full = params.flag("full_matrices");
          std::vector<Aval> avals{result_of(x, {k}, real_dtype_of(x.dtype))};
          if (params.flag("compute_uv")) {
            avals.push_back(result_of(x, {m, full ? m : k}));
            avals.push_back(result_of(x, {full ? n : k, n}));
          }
          return avals;
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              const Vectors vectors = !params.flag("compute_uv")     ? Vectors::none
                                      : params.flag("full_matrices") ? Vectors::full
                                                                     : Vectors::thin;
              visit_element(inputs[0].dtype, [&](auto element) {
                svd_kernel<decltype(element)>(inputs, outputs, vectors);
              });
            })
        .rule<Emit>(emit_svd)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params& params) {
          return cost::svd_flops(x, params.flag("compute_uv"), params.flag("full_matrices"));
        }))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(svd_p, svd_jvp))
        .rule<Batch>(batch_matrices(svd_p))
        .rule<Mask>(mask_leading(svd_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, bool vectors) {
            return Sample{{{{shape, DType::float64}, Values::distinct}},
                          svd_params(vectors, false)};
          };
          return std::vector<Sample>{sample({3, 3}, true),     sample({4, 2}, true),
                                     sample({2, 2, 3}, true),  sample({3, 2}, false),
                                     sample({2, 3, 3}, false), sample({0, 0}, true)};
        });
lax::linalg::SVD lax::linalg::svd(Operand x, bool full_matrices) {
  const Arrays outputs = bind(svd_p, {x}, svd_params(true, full_matrices));
  return {outputs[1], outputs[0], outputs[2]};
}

constinit const Primitive pinv_p{"pinv"};
static const auto pinv_def =
    define(pinv_p,
           "The Moore-Penrose inverses of stacks of matrices. Singular values up to rtol times the "
           "largest count as 0; a negative rtol is the default one.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("pinv", inputs);
          return std::vector<Aval>{
              result_of(inputs[0], {columns_of(inputs[0]), rows_of(inputs[0])})};
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                pinv_kernel<decltype(element)>(inputs, outputs[0], params.get<double>("rtol"));
              });
            })
        .rule<Emit>(emit_pinv)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params&) {
          return cost::svd_flops(x, true, false) + 2 * x.rows * x.columns * x.least;
        }))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(pinv_p, pinv_jvp))
        .rule<Batch>(batch_matrices(pinv_p))
        .rule<Mask>(mask_leading(pinv_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape) {
            return Sample{{{{shape, DType::float64}, Values::distinct}}, {{"rtol", -1.0}}};
          };
          return std::vector<Sample>{sample({3, 3}), sample({4, 2}), sample({2, 2, 3}),
                                     sample({0, 0})};
        });

}  // namespace plait
