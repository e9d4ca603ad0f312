// eigh: eigenvalues and eigenvectors of Hermitian matrices.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/eigh.h"

#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/emit_matrices.h"

#include "primitives/linalg/eigen_solver.h"
#include "primitives/linalg/matrices.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT

struct EighParams {
  bool lower, vectors;
  explicit EighParams(const Params& params)
      : lower(params.flag("lower")), vectors(params.flag("compute_vectors")) {}
  Params to_params() const { return {{"lower", lower}, {"compute_vectors", vectors}}; }
};

template <class T>
void eigh_kernel(std::span<const View> inputs, std::span<const View> outputs, EighParams kind) {
  using W = Wide<T>;
  using Real = typename Eigen::NumTraits<T>::Real;
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double n3 = std::pow(double(batch.rows()), 3);
  for_matrices(batch.count(), 9 * n3, [&](std::int64_t begin, std::int64_t end) {
    Matrix<W> x, vectors;
    Eigen::VectorXd values;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, n, x);
      if (!kind.lower) x = x.adjoint().eval();
      x.template triangularView<Eigen::StrictlyUpper>().setZero();
      eigen_of_hermitian(x, kind.vectors, values, vectors);
      if (kind.vectors) store<T>(vectors, outputs[0], i);
      store_vector<Real>(values, outputs.back(), i);
    }
  });
}

// With M = V^H dA V: dw = diag(M), and dV = V (F o M) for F_ij = 1 / (w_j - w_i) off the diagonal
// and 0 on it. Giles, "An extended collection of matrix derivative results" (2008), section 3.1.
// For equal eigenvalues the derivatives of eigenvectors do not exist: they are infinite or NaN, as
// in JAX.
Tangents eigh_jvp(const Array& x, const Array& dx, std::span<const Array> outputs,
                  const Params& params) {
  EighParams kind(params);
  const Array da = hermitian_of(dx, kind.lower);
  if (!kind.vectors) {
    kind.vectors = true;
    const Array v = bind(eigh_p, {x}, kind.to_params())[0];
    return {real_diagonal(matmul(adjoint(v), matmul(da, v)))};
  }
  const Array &v = outputs[0], &w = outputs[1];
  const Array inner = matmul(adjoint(v), matmul(da, v));
  const Shape& shape = x.shape();
  const Array eye =
      broadcast_to(matrices::eye(rows_of(x.aval()), rows_of(x.aval()), w.dtype()), shape);
  const Array gaps = lax::sub(broadcast_to(as_rows(w), shape), broadcast_to(as_columns(w), shape));
  const Array f = lax::sub(reciprocal(lax::add(gaps, eye)), eye);
  return {matmul(v, broadcast_product(inner, f)), real_diagonal(inner)};
}

}  // namespace

Arrays eigh_of(const Array& x, bool lower, bool symmetrize, bool vectors) {
  if (!symmetrize) return bind(eigh_p, {x}, {{"lower", lower}, {"compute_vectors", vectors}});
  const Aval aval = x.aval();
  require_matrices("eigh", std::span(&aval, 1));
  require_square("eigh", aval);
  return bind(eigh_p, {symmetrized(x)}, {{"lower", lower}, {"compute_vectors", vectors}});
}

constinit const Primitive eigh_p{"eigh"};
static const auto eigh_def =
    define(eigh_p,
           "Eigenvectors, as columns, and eigenvalues, least first, of stacks of Hermitian "
           "matrices, of which one triangle is read. Of every eigenvector the first element that "
           "is at least half as large as the largest is real and positive.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_matrices("eigh", inputs);
          require_square("eigh", inputs[0]);
          const Aval& x = inputs[0];
          const Aval w = result_of(x, {rows_of(x)}, real_dtype_of(x.dtype));
          if (!EighParams(params).vectors) return std::vector<Aval>{w};
          return std::vector<Aval>{{x.shape, x.dtype}, w};
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                eigh_kernel<decltype(element)>(inputs, outputs, EighParams(params));
              });
            })
        .rule<Emit>(emit_eigh)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params& params) {
          const double cube = x.rows * x.rows * x.rows;
          return params.flag("compute_vectors") ? 9 * cube : 4 * cube / 3;
        }))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(eigh_p, eigh_jvp))
        .rule<Batch>(batch_matrices(eigh_p))
        .rule<Mask>(mask_leading(eigh_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, bool lower, bool vectors) {
            return Sample{{{{shape, DType::float64}}},
                          {{"lower", lower}, {"compute_vectors", vectors}}};
          };
          return std::vector<Sample>{sample({3, 3}, true, true),    sample({3, 3}, false, true),
                                     sample({2, 2, 2}, true, true), sample({3, 3}, true, false),
                                     sample({1, 1}, true, true),    sample({0, 0}, true, true)};
        });
lax::linalg::Eigh lax::linalg::eigh(Operand x, bool lower, bool symmetrize_input) {
  const Arrays outputs = eigh_of(x, lower, symmetrize_input, true);
  return {outputs[0], outputs[1]};
}

}  // namespace plait
