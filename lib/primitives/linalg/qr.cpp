// qr, by Householder reflections.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <Eigen/QR>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/emit_matrices.h"
#include "primitives/linalg/matrices.h"
#include "primitives/linalg/qr_scale.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT

// What x is multiplied by; 1 for most matrices. NaN and infinities are not scaled.
template <class W>
double scale_of(const Matrix<W>& x) {
  using Real = typename Eigen::NumTraits<W>::Real;
  double largest = 0;
  const auto* parts = reinterpret_cast<const Real*>(x.data());
  for (std::int64_t i = 0; i < x.size() * std::int64_t(sizeof(W) / sizeof(Real)); ++i) {
    if (!std::isfinite(parts[i])) return 1;
    largest = std::max(largest, std::abs(double(parts[i])));
  }
  double scale = 1;
  for (const auto [limit, factor] : scale_down)
    if (largest > limit) scale = factor;
  for (const auto [limit, factor] : scale_up)
    if (largest > 0 && largest < limit) scale = factor;
  return scale;
}

template <class T>
void qr_kernel(std::span<const View> inputs, std::span<const View> outputs, bool full) {
  using W = Wide<T>;
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double rows = double(batch.rows()), columns = double(batch.columns());
  const double flops = 4 * rows * columns * std::min(rows, columns);
  for_matrices(batch.count(), flops, [&](std::int64_t begin, std::int64_t end) {
    Matrix<W> x, q;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t m = sizes.at(0, i, batch.rows()), n = sizes.at(1, i, batch.columns());
      const std::int64_t k = full ? m : std::min(m, n);
      batch.load<T>(i, m, n, x);
      q.setIdentity(m, k);
      if (m > 0 && n > 0) {
        const double scale = scale_of(x);
        if (scale != 1) x *= scale;
        Eigen::HouseholderQR<Eigen::Ref<Matrix<W>>> qr(x);
        q.applyOnTheLeft(qr.householderQ());
        x.template triangularView<Eigen::StrictlyLower>().setZero();
        if (scale != 1) x *= 1 / scale;
      }
      store<T>(q, outputs[0], i);
      store<T>(x.topRows(k), outputs[1], i);
    }
  });
}

// With k = min(m, n), X1 and R1 the first k columns, and M = Q^H dX1 R1^-1: Q^H dQ = W, the skew
// W = tril(M, -1) - tril(M, -1)^H (and i times M's imaginary diagonal), so that
// dQ = Q (W - M) + dX1 R1^-1 and dR = Q^H dX - W R. Walter and Lehmann, "Algorithmic
// differentiation of linear algebra functions" (2018), section 3.
Tangents qr_jvp(const Array& x, const Array& dx, std::span<const Array> outputs,
                const Params& params) {
  const Array &q = outputs[0], &r = outputs[1];
  const Dim m = rows_of(x.aval()), n = columns_of(x.aval()), k = minimum(m, n);
  if (params.flag("full_matrices") && !less_equal(m, n).value_or(false))
    throw MissingRuleError(
        "qr: the columns of a complete q beyond those of x have no derivative; x has shape (" +
            x.shape().to_string() + ")",
        "use mode='reduced' (full_matrices=False)");
  const Array quotient = lax::linalg::triangular_solve(leading(r, k, k), leading(dx, m, k));
  const Array inner = matmul(adjoint(q), quotient), below = lower(inner, -1);
  Array skew = lax::sub(below, adjoint(below));
  if (is_complex(x.dtype())) skew = lax::add(skew, imaginary_diagonal(inner));
  const Array dq = lax::add(matmul(q, lax::sub(skew, inner)), quotient);
  const Array dr = lax::sub(matmul(adjoint(q), dx), matmul(skew, r));
  return {dq, upper(dr)};
}

double qr_flops(const cost::MatrixSizes& x, const Params& params) {
  const double k = x.least, m = x.rows, q = params.flag("full_matrices") ? m : k;
  return 2 * cost::lu_flops(x, params) + 4 * m * q * k - 2 * (m + q) * k * k + 4 * k * k * k / 3;
}

}  // namespace

constinit const Primitive qr_p{"qr"};
static const auto qr_def =
    define(qr_p,
           "X = Q R for stacks of matrices: orthonormal columns and an upper triangular matrix.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_matrices("qr", inputs);
          const Aval& x = inputs[0];
          const Dim m = rows_of(x), n = columns_of(x);
          const Dim k = params.flag("full_matrices") ? m : minimum(m, n);
          return std::vector<Aval>{result_of(x, {m, k}), result_of(x, {k, n})};
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                qr_kernel<decltype(element)>(inputs, outputs, params.flag("full_matrices"));
              });
            })
        .rule<Emit>(emit_qr)
        .rule<Cost>(cost::of_matrices(qr_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(qr_p, qr_jvp))
        .rule<Batch>(batch_matrices(qr_p))
        .rule<Mask>(mask_leading(qr_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape) {
            return Sample{{{{shape, DType::float64}}}, {{"full_matrices", false}}};
          };
          return std::vector<Sample>{sample({3, 3}), sample({4, 2}), sample({2, 2, 3}),
                                     sample({2, 4}), sample({0, 0})};
        });
lax::linalg::QR lax::linalg::qr(Operand x, bool full_matrices) {
  const Arrays outputs = bind(qr_p, {x}, {{"full_matrices", full_matrices}});
  return {outputs[0], outputs[1]};
}

}  // namespace plait
