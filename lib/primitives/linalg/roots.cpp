// sqrtm and polar: the square root and the unitary factor of matrices.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Cholesky>
#include <Eigen/QR>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/decompositions.h"
#include "primitives/linalg/emit_matrices.h"
#include "primitives/linalg/schur_solver.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

// The root of an upper triangular matrix, column by column: Bjorck and Hammarling, "A Schur method
// for the square root of a matrix" (1983).
void triangular_root(Matrix<complex128>& t) {
  for (std::int64_t j = 0; j < t.cols(); ++j) {
    t(j, j) = std::sqrt(t(j, j));
    for (std::int64_t i = j; i-- > 0;) {
      const complex128 above = t(i, j);
      const complex128 rest = above - complex128(t.row(i).segment(i + 1, j - i - 1) *
                                                 t.col(j).segment(i + 1, j - i - 1));
      const complex128 divisor = t(i, i) + t(j, j);
      t(i, j) = rest == 0.0 && divisor == 0.0 ? complex128(0) : rest / divisor;
    }
  }
}

template <class T>
void sqrtm_kernel(std::span<const View> inputs, const View& out) {
  using Complex = std::complex<typename Eigen::NumTraits<T>::Real>;
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double n3 = std::pow(double(batch.rows()), 3);
  for_matrices(batch.count(), 28 * n3, [&](std::int64_t begin, std::int64_t end) {
    Matrix<Wide<T>> x;
    Matrix<complex128> t, z;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, n, x);
      if (complex_schur(x, true, t, z) && n > 0) {
        triangular_root(t);
        t = (z * t).eval() * z.adjoint();
      }
      store<Complex>(t, out, i);
    }
  });
}

// X dX + dX X = dA.
Tangents sqrtm_jvp(const Array&, const Array& dx, std::span<const Array> outputs, const Params&) {
  return {solved_sylvester(outputs[0], outputs[0], as_complex(dx))};
}

// --- polar ---------------------------------------------------------------------------------------

struct Iteration {
  int steps = 0;
  bool converged = false;
};

// x becomes its unitary factor; it has at least as many rows as columns.
template <class T>
Iteration halley(Matrix<T>& x, int max_steps, double eps) {
  const std::int64_t m = x.rows(), n = x.cols();
  Iteration iteration;
  if (n == 0 || !x.allFinite()) {
    x.setConstant(not_a_number<T>());
    return {0, n == 0};
  }
  const double size = std::sqrt(x.cwiseAbs().colwise().sum().maxCoeff()) *
                      std::sqrt(x.cwiseAbs().rowwise().sum().maxCoeff());
  if (size == 0) {
    x.setIdentity();
    return {0, true};
  }
  x /= size;
  double least = eps;  // a bound of the singular values from below
  Matrix<T> before, stacked, q, gram;
  while (!iteration.converged && iteration.steps < max_steps) {
    before = x;
    const double l2 = least * least, root = std::cbrt(4 * (1 / l2 - 1) / l2),
                 square = std::sqrt(1 + root),
                 a = square + std::sqrt(8 - 4 * root + 8 * (2 - l2) / (l2 * square)) / 2,
                 b = (a - 1) * (a - 1) / 4, c = a + b - 1;
    if (c > 100) {
      stacked.resize(m + n, n);
      stacked << std::sqrt(c) * x, Matrix<T>::Identity(n, n);
      const Eigen::HouseholderQR<Eigen::Ref<Matrix<T>>> qr(stacked);
      q.setIdentity(m + n, n);
      q.applyOnTheLeft(qr.householderQ());
      x = b / c * before;
      x.noalias() += (a - b / c) / std::sqrt(c) * (q.topRows(m) * q.bottomRows(n).adjoint());
    } else {
      gram.noalias() = c * (x.adjoint() * x);
      gram.diagonal().array() += T(1);
      const Eigen::LLT<Eigen::Ref<Matrix<T>>> llt(gram);
      x = b / c * before + (a - b / c) * llt.solve(before.adjoint()).adjoint();
    }
    least = std::min(1.0, least * (a + b * l2) / (1 + c * l2));
    ++iteration.steps;
    iteration.converged =
        std::abs(least - 1) < 10 * eps && (x - before).norm() <= std::cbrt(4 * eps) * x.norm();
  }
  // A step of Newton and Schulz removes what rounding has left.
  gram.noalias() = x.adjoint() * x;
  before = x;
  x = 1.5 * before;
  x.noalias() -= 0.5 * (before * gram);
  return iteration;
}

template <class T>
void polar_kernel(std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double m = double(batch.rows()), n = double(batch.columns());
  const double given = params.get<double>("eps");
  const double eps =
      given > 0 ? given
                : double(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::epsilon());
  const int max_steps = int(params.integer("max_iterations"));
  auto* const steps = outputs[1].as<std::int32_t>();
  auto* const converged = outputs[2].as<bool>();
  for_matrices(batch.count(), 40 * m * n * n, [&](std::int64_t begin, std::int64_t end) {
    Matrix<Wide<T>> x;
    for (std::int64_t i = begin; i < end; ++i) {
      batch.load<T>(i, sizes.at(0, i, batch.rows()), sizes.at(1, i, batch.columns()), x);
      const Iteration iteration = halley(x, max_steps, eps);
      store<T>(x, outputs[0], i);
      steps[i] = iteration.steps;
      converged[i] = iteration.converged;
    }
  });
}

// With H = U^H A: dU = U W + (dA - U U^H dA) H^-1 for the skew W of H W + W H = U^H dA - dA^H U.
Tangents polar_jvp(const Array& x, const Array& dx, std::span<const Array> outputs, const Params&) {
  const Array& u = outputs[0];
  const Array h = symmetrized(matmul(adjoint(u), x)), inner = matmul(adjoint(u), dx);
  const Array wide = as_complex(h);
  Array skew = solved_sylvester(wide, wide, as_complex(lax::sub(inner, adjoint(inner))));
  if (!is_complex(x.dtype())) skew = lax::real(skew);
  const Array beside = lax::sub(dx, matmul(u, inner));
  const Array quotient = adjoint(solved_by_lu(h, adjoint(beside)));
  return {lax::add(matmul(u, skew), quotient), Tangent(outputs[1]), Tangent(outputs[2])};
}

}  // namespace

constinit const Primitive sqrtm_p{"sqrtm"};
static const auto sqrtm_def =
    define(
        sqrtm_p,
        "The complex square roots of stacks of square matrices whose eigenvalues have real parts "
        "that are not negative.")
        .operands_at_least(1)
        .family(decomposition(sqrtm_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("sqrtm", inputs);
          require_square("sqrtm", inputs[0]);
          return std::vector<Aval>{{inputs[0].shape, complex_dtype_of(inputs[0].dtype)}};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype,
                        [&](auto element) { sqrtm_kernel<decltype(element)>(inputs, outputs[0]); });
        })
        .rule<Emit>(emit_sqrtm)
        .rule<Cost>(cost::of_matrices(
            [](const cost::MatrixSizes& x, const Params&) { return 28 * std::pow(x.rows, 3); }))
        .rule<Jvp>(matrix_jvp(sqrtm_p, sqrtm_jvp))
        .rule<Mask>(mask_leading(sqrtm_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, DType dtype) {
            return Sample{{{{shape, dtype}, Values::positive}}, {}};
          };
          return std::vector<Sample>{
              sample({1, 1}, DType::float64), sample({3, 3}, DType::complex128),
              sample({2, 2, 2}, DType::complex128), sample({0, 0}, DType::float64)};
        });
Array lax::linalg::sqrtm(Operand x) { return bind(sqrtm_p, {x}); }

constinit const Primitive polar_p{"polar"};
static const auto polar_def =
    define(
        polar_p,
        "The unitary factors u of stacks of matrices x = u h of at least as many rows as columns, "
        "with positive semidefinite h, by the dynamically weighted Halley iteration; for each "
        "the number of steps, and whether they sufficed.")
        .operands_at_least(1)
        .family(decomposition(polar_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("polar", inputs);
          const Aval& x = inputs[0];
          const bool padded = inputs.size() > 1;
          if (!padded && !less_equal(columns_of(x), rows_of(x)).value_or(false))
            throw ShapeError("polar: matrices of shape (" + x.shape.to_string() +
                                 ") may have more columns than rows",
                             "give as many rows or more: the adjoint has the adjoint factor");
          return std::vector<Aval>{
              {x.shape, x.dtype}, result_of(x, {}, DType::int32), result_of(x, {}, DType::bool_)};
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                polar_kernel<decltype(element)>(inputs, outputs, params);
              });
            })
        .rule<Emit>(emit_polar)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params&) {
          return 40 * x.rows * x.columns * x.columns;
        }))
        .rule<Jvp>(matrix_jvp(polar_p, polar_jvp))
        .rule<Mask>(mask_leading(polar_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, DType dtype) {
            return Sample{{{{shape, dtype}, Values::positive}},
                          {{"max_iterations", Dim(12)}, {"eps", 0x1p-52}}};
          };
          return std::vector<Sample>{
              sample({3, 3}, DType::complex128), sample({2, 2}, DType::float64),
              sample({2, 2, 2}, DType::float64), sample({0, 0}, DType::float64)};
        });
lax::linalg::Polar lax::linalg::polar(Operand x, std::optional<int> max_iterations,
                                      std::optional<double> eps) {
  const Arrays outputs =
      bind(polar_p, {x},
           {{"max_iterations", Dim(max_iterations.value_or(10))}, {"eps", eps.value_or(-1.0)}});
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace plait
