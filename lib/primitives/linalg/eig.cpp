// eig: eigenvalues and eigenvectors of general matrices.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/decompositions.h"
#include "primitives/linalg/emit_matrices.h"
#include "primitives/linalg/schur_solver.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

struct EigParams {
  bool left, right;
  explicit EigParams(const Params& params)
      : left(params.flag("left_vectors")), right(params.flag("right_vectors")) {}
  Params to_params() const { return {{"left_vectors", left}, {"right_vectors", right}}; }
};

enum class Side { left, right };

// An eigenvector of the upper triangular t for t(k, k), by substitution from element k, which is 1,
// up, or for left ones down. A divisor is not smaller than rounding, as in LAPACK's trevc; numbers
// that grow by it are scaled.
void substitute(const Matrix<complex128>& t, std::int64_t k, Side side, double least,
                Eigen::VectorXcd& y) {
  constexpr double huge = 1e150;
  const std::int64_t n = t.rows();
  y.setZero(n);
  y[k] = 1;
  const auto solve = [&](std::int64_t i, complex128 sum, complex128 divisor) {
    if (std::abs(divisor) < least) divisor = least;
    y[i] = -sum / divisor;
    if (std::abs(y[i]) > huge) y /= std::abs(y[i]);
  };
  if (side == Side::right)
    for (std::int64_t i = k; i-- > 0;)
      solve(i, t.row(i).segment(i + 1, k - i) * y.segment(i + 1, k - i), t(i, i) - t(k, k));
  else
    for (std::int64_t i = k + 1; i < n; ++i)
      solve(i, t.col(i).segment(k, i - k).dot(y.segment(k, i - k)), std::conj(t(i, i) - t(k, k)));
}

// Eigenvectors in the order of t's diagonal. Those of a pair of conjugate eigenvalues are
// conjugate, and those of a real matrix's real eigenvalues are real.
void vectors_of(const Matrix<complex128>& t, const Matrix<complex128>& z,
                const std::vector<int>& pairs, bool is_real, Side side,
                Matrix<complex128>& vectors) {
  const std::int64_t n = t.rows();
  const double least = std::max(0x1p-52 * t.cwiseAbs().maxCoeff(), 0x1p-1000);
  Matrix<complex128> substituted(n, n);
  Eigen::VectorXcd y;
  for (std::int64_t k = 0; k < n; ++k) {
    substitute(t, k, side, least, y);
    substituted.col(k) = y / y.cwiseAbs().maxCoeff();
  }
  vectors.noalias() = z * substituted;
  for (std::int64_t k = 0; k < n; ++k) {
    auto column = vectors.col(k);
    if (is_real && pairs[std::size_t(k)] == 2) {
      column = vectors.col(k - 1).conjugate();
      continue;
    }
    column *= phase_of<complex128>(column);
    if (is_real && pairs[std::size_t(k)] == 0) column = column.real().cast<complex128>().eval();
    column /= column.norm();
  }
}

template <class T>
void eig_kernel(std::span<const View> inputs, std::span<const View> outputs, EigParams kind) {
  using Complex = std::complex<typename Eigen::NumTraits<T>::Real>;
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double n3 = std::pow(double(batch.rows()), 3);
  for_matrices(batch.count(), 25 * n3, [&](std::int64_t begin, std::int64_t end) {
    Matrix<Wide<T>> x;
    Matrix<complex128> t, z, vectors, sorted;
    std::vector<int> pairs;
    std::vector<std::int64_t> order;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, n, x);
      const bool has_vectors = kind.left || kind.right;
      const bool found = complex_schur(x, has_vectors, t, z, &pairs);
      const Eigen::VectorXcd values = t.diagonal();
      order.resize(std::size_t(n));
      std::iota(order.begin(), order.end(), 0);
      if (found)
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
          const complex128 x = values[i], y = values[j];
          return x.real() != y.real() ? x.real() < y.real() : x.imag() < y.imag();
        });
      store_vector<Complex>(Eigen::VectorXcd(values(order)), outputs[0], i);
      std::size_t next = 1;
      for (const Side side : {Side::left, Side::right}) {
        if (!(side == Side::left ? kind.left : kind.right)) continue;
        vectors = t;  // NaN, or of no element
        if (found && n > 0) vectors_of(t, z, pairs, std::is_floating_point_v<T>, side, vectors);
        sorted = vectors(Eigen::all, order);
        store<Complex>(sorted, outputs[next++], i);
      }
    }
  });
}

// 1 / (w_j - w_i) for i != j, and 0 where they are equal.
Array inverse_gaps(const Array& w, const Shape& shape) {
  const Array gaps = lax::sub(broadcast_to(as_rows(w), shape), broadcast_to(as_columns(w), shape));
  const Array zero = Array::literal(0, gaps.dtype()), is_zero = lax::eq(gaps, zero);
  const Array ones = lax::full(shape, 1, gaps.dtype());
  return lax::select(is_zero, lax::zeros_like(gaps.aval()),
                     reciprocal(lax::select(is_zero, ones, gaps)));
}

// With M = V^-1 dA V: dw = diag(M), and dV = V (F o M) for F_ij = 1 / (w_j - w_i), less what
// changes the length and the phase of a vector. Boeddeker, Hanebrink, Drude, Heymann and
// Haeb-Umbach, "On the computation of complex-valued gradients with application to statistically
// optimum beamforming" (2017), equations 4.60 and 4.63. Left eigenvectors are the right ones of
// A^H, whose eigenvalues are conjugate.
Tangents eig_jvp(const Array& x, const Array& dx, std::span<const Array> outputs,
                 const Params& params) {
  const EigParams kind(params);
  const Array da = as_complex(dx);
  const auto inner_of = [](const Array& v, const Array& da) {
    return solved_by_lu(v, matmul(da, v));
  };
  const auto tangent_of = [](const Array& v, const Array& inner, const Array& w) {
    return normalised_tangent(v, matmul(v, lax::mul(inner, inverse_gaps(w, inner.shape()))));
  };
  const std::size_t place = kind.left ? 2 : 1;
  EigParams with_right = kind;
  with_right.right = true;
  const Array v = kind.right ? outputs[place] : bind(eig_p, {x}, with_right.to_params())[place];
  const Array& w = outputs[0];
  const Array inner = inner_of(v, da);
  Tangents tangents{diagonal_of(inner)};
  if (kind.left) {
    const Array& left = outputs[1];
    tangents.push_back(tangent_of(left, inner_of(left, adjoint(da)), conj(w)));
  }
  if (kind.right) tangents.push_back(tangent_of(v, inner, w));
  return tangents;
}

}  // namespace

constinit const Primitive eig_p{"eig"};
static const auto eig_def =
    define(eig_p,
           "Eigenvalues of stacks of square matrices, in order of their real parts, then of their "
           "imaginary parts; left and right eigenvectors, as columns, if asked for. All are "
           "complex. Vectors have length 1, and their first element that is at least half as large "
           "as the largest is real and positive.")
        .operands_at_least(1)
        .family(decomposition(eig_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_matrices("eig", inputs);
          require_square("eig", inputs[0]);
          const Aval& x = inputs[0];
          const DType dtype = complex_dtype_of(x.dtype);
          const EigParams kind(params);
          std::vector<Aval> results{result_of(x, {rows_of(x)}, dtype)};
          results.resize(1 + std::size_t(kind.left) + std::size_t(kind.right),
                         Aval{x.shape, dtype});
          return results;
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                eig_kernel<decltype(element)>(inputs, outputs, EigParams(params));
              });
            })
        .rule<Emit>(emit_eig)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params& params) {
          const EigParams kind(params);
          return (kind.left || kind.right ? 25 : 10) * std::pow(x.rows, 3);
        }))
        .rule<Jvp>(matrix_jvp(eig_p, eig_jvp))
        .rule<Mask>(mask_leading(eig_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, DType dtype, bool left, bool right) {
            return Sample{{{{shape, dtype}, Values::positive}},
                          {{"left_vectors", left}, {"right_vectors", right}}};
          };
          return std::vector<Sample>{sample({2, 2}, DType::float64, true, true),
                                     sample({3, 3}, DType::complex128, true, true),
                                     sample({2, 2, 2}, DType::float64, false, true),
                                     sample({3, 3}, DType::complex128, false, false),
                                     sample({0, 0}, DType::float64, true, true)};
        });
Arrays lax::linalg::eig(Operand x, bool compute_left_eigenvectors,
                        bool compute_right_eigenvectors) {
  return bind(
      eig_p, {x},
      {{"left_vectors", compute_left_eigenvectors}, {"right_vectors", compute_right_eigenvectors}});
}

}  // namespace plait
