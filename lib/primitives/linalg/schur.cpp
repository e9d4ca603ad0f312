// schur, and triangular_sylvester, in which its derivative is written.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/cost.h"
#include "primitives/linalg/decompositions.h"
#include "primitives/linalg/emit_matrices.h"
#include "primitives/linalg/schur_solver.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

// Makes columns of z start with real and positive numbers, as eigh does.
template <class T>
void normalise(Matrix<T>& t, Matrix<T>& z) {
  for (std::int64_t i = 0; i < z.cols(); ++i) {
    const T phase = phase_of<T>(z.col(i));
    z.col(i) *= phase;
    t.col(i) *= phase;
    t.row(i) *= Eigen::numext::conj(phase);
  }
}

template <class T>
void schur_kernel(std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const bool vectors = params.flag("compute_vectors");
  const double n3 = std::pow(double(batch.rows()), 3);
  const auto each = [&](auto element, const auto& solve) {
    using R = decltype(element);  // of the results
    for_matrices(batch.count(), 25 * n3, [&](std::int64_t begin, std::int64_t end) {
      Matrix<Wide<T>> x;
      Matrix<Wide<R>> t, z;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t n = sizes.at(0, i, batch.rows());
        batch.load<T>(i, n, n, x);
        // The signs of t follow from those of z, which are computed for them.
        if (solve(x, t, z)) normalise(t, z);
        store<R>(t, outputs[0], i);
        if (vectors) store<R>(z, outputs[1], i);
      }
    });
  };
  const auto to_complex = [](const auto& x, auto& t, auto& z) {
    return complex_schur(x, true, t, z);
  };
  if constexpr (std::is_floating_point_v<T>) {
    if (!params.flag("complex"))
      return each(T{}, [](const auto& x, auto& t, auto& z) { return real_schur(x, true, t, z); });
    each(std::complex<T>{}, to_complex);
  } else {
    each(T{}, to_complex);
  }
}

// With M = Z^H dA Z: dT = M - W T + T W for the skew W = L - L^H + D, of which the strictly lower L
// makes dT upper triangular, T L - L T = -M below the diagonal, and D keeps phases. Where
// eigenvalues are equal, L is 0.
Tangents schur_jvp(const Array& x, const Array& dx, std::span<const Array> outputs,
                   const Params& params) {
  if (!params.flag("complex"))
    throw MissingRuleError("schur: the real form of a real matrix has no derivative",
                           "use output='complex'");
  Arrays parts(outputs.begin(), outputs.end());
  if (!params.flag("compute_vectors"))
    parts = bind(schur_p, {x}, params.with("compute_vectors", true));
  const Array &t = parts[0], &z = parts[1];
  const Array inner = matmul(matmul(adjoint(z), as_complex(dx)), z);
  const Array below =
      bind(triangular_sylvester_p, {lax::neg(inner), t, lax::neg(t)}, {{"part", Dim(-1)}})[0];
  const Array turned = lax::sub(below, adjoint(below));
  const Array skew = lax::add(turned, phase_tangent(z, matmul(z, turned)));
  const Array dt = upper(lax::add(lax::sub(inner, matmul(skew, t)), matmul(t, skew)));
  if (!params.flag("compute_vectors")) return {dt};
  return {dt, matmul(z, skew)};
}

// --- triangular_sylvester ------------------------------------------------------------------------

// Column by column, from the last row of each. part is negative for elements below the diagonal
// alone, positive for those above it; others count as 0.
template <class T>
void sylvester_kernel(std::span<const View> inputs, const View& out, int part) {
  const MatrixBatch c(inputs[0]), t(inputs[1]), s(inputs[2]);
  const RealSizes sizes(inputs, 3);
  const double m = double(c.rows()), n = double(c.columns());
  for_matrices(c.count(), m * n * (m + n), [&](std::int64_t begin, std::int64_t end) {
    Matrix<T> left, right, x;
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t rows = sizes.at(0, index, c.rows()),
                         columns = sizes.at(1, index, c.columns());
      c.load<T>(index, rows, columns, x);
      t.load<T>(index, rows, rows, left);
      s.load<T>(index, columns, columns, right);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t first = part < 0 ? std::min(j + 1, rows) : 0,
                           last = part > 0 ? std::min(j, rows) : rows;
        for (std::int64_t k = 0; k < j; ++k)
          x.col(j).segment(first, last - first) -=
              right(k, j) * x.col(k).segment(first, last - first);
        x.col(j).head(first).setZero();
        x.col(j).tail(rows - last).setZero();
        for (std::int64_t i = last; i-- > first;) {
          const T divisor = left(i, i) + right(j, j);
          const T value = part != 0 && divisor == T(0) ? T(0) : T(x(i, j) / divisor);
          x(i, j) = value;
          x.col(j).segment(first, i - first) -= value * left.col(i).segment(first, i - first);
        }
      }
      store<T>(x, out, index);
    }
  });
}

Array part_of(const Array& x, const Params& params) {
  const auto part = params.integer("part");
  return part == 0 ? x : part < 0 ? lower(x, -1) : upper(x, 1);
}

// T dX + dX S = dC - dT X - X dS.
Tangents sylvester_jvp(std::span<const Array> primals, std::span<const Tangent> tangents,
                       std::span<const Array> outputs, const Params& params) {
  if (primals.size() != 3)
    throw InternalError("triangular_sylvester: differentiated after masking");
  Tangent rhs = tangents[0];
  const auto subtract = [&](const Array& term) {
    rhs = add_tangents(rhs, lax::neg(part_of(term, params)));
  };
  if (!tangents[1].is_zero()) subtract(matmul(upper(tangents[1].array()), outputs[0]));
  if (!tangents[2].is_zero()) subtract(matmul(outputs[0], upper(tangents[2].array())));
  return {bind(triangular_sylvester_p, {rhs.array(), primals[1], primals[2]}, params)[0]};
}

// The transpose of T^T Y + Y S^T = C is S Y^T + Y^T T = C^T.
Tangents sylvester_transpose(std::span<const Tangent> cotangents,
                             std::span<const TransposeInput> inputs, const Params& params) {
  if (inputs[1].is_linear() || inputs[2].is_linear())
    throw InternalError("triangular_sylvester: it is not linear in the triangular matrices");
  const Array turned =
      bind(triangular_sylvester_p,
           {transposed(cotangents[0].array()), inputs[2].known(), inputs[1].known()},
           params.with("part", Dim(-params.integer("part"))))[0];
  return {transposed(turned), Tangent(inputs[1].aval()), Tangent(inputs[2].aval())};
}

std::vector<Aval> sylvester_aval(std::span<const Aval> inputs, const Params&) {
  require_matrices("triangular_sylvester", inputs, 3);
  const Aval &c = inputs[0], &t = inputs[1], &s = inputs[2];
  const Dim m = rows_of(c), n = columns_of(c);
  const bool fits = t.dtype == c.dtype && s.dtype == c.dtype &&
                    t.shape == result_of(c, {m, m}).shape && s.shape == result_of(c, {n, n}).shape;
  if (!fits)
    throw ShapeError("triangular_sylvester: right-hand sides of type " + c.to_string() +
                         " for matrices of types " + t.to_string() + " and " + s.to_string(),
                     "give square matrices of as many rows, and as many columns, of the same "
                     "batch and dtype");
  return {{c.shape, c.dtype}};
}

}  // namespace

constinit const Primitive schur_p{"schur"};
static const auto schur_def =
    define(schur_p,
           "x = z t z^H for stacks of square matrices: an upper triangular t and a unitary z. "
           "Unless complex, those of real matrices are real, and t has blocks of two rows for "
           "pairs of complex eigenvalues. Of every column of z the first element that is at least "
           "half as large as the largest is real and positive.")
        .operands_at_least(1)
        .family(decomposition(schur_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_matrices("schur", inputs);
          require_square("schur", inputs[0]);
          const DType dtype = inputs[0].dtype;
          const Aval t{inputs[0].shape, params.flag("complex") ? complex_dtype_of(dtype) : dtype};
          return std::vector<Aval>(params.flag("compute_vectors") ? 2 : 1, t);
        })
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                schur_kernel<decltype(element)>(inputs, outputs, params);
              });
            })
        .rule<Emit>(emit_schur)
        .rule<Cost>(cost::of_matrices(
            [](const cost::MatrixSizes& x, const Params&) { return 25 * std::pow(x.rows, 3); }))
        .rule<Jvp>(matrix_jvp(schur_p, schur_jvp))
        .rule<Mask>(mask_leading(schur_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape, DType dtype, bool vectors) {
            return Sample{{{{shape, dtype}, Values::positive}},
                          {{"complex", true}, {"compute_vectors", vectors}}};
          };
          return std::vector<Sample>{
              sample({3, 3}, DType::complex128, true), sample({2, 2, 2}, DType::complex128, true),
              sample({2, 2}, DType::float64, true), sample({3, 3}, DType::complex128, false),
              sample({0, 0}, DType::float64, true)};
        });
lax::linalg::Schur lax::linalg::schur(Operand x, bool complex) {
  const Arrays outputs = bind(schur_p, {x}, {{"complex", complex}, {"compute_vectors", true}});
  return {outputs[0], outputs[1]};
}

constinit const Primitive triangular_sylvester_p{"triangular_sylvester"};
static const auto triangular_sylvester_def =
    define(triangular_sylvester_p,
           "X of T X + X S = C, for stacks of matrices C, T and S, of which T and S are upper "
           "triangular. A negative part: the elements of X below the diagonal alone, such that "
           "the equation holds there; a positive one: those above it. Of these, one whose divisor "
           "is 0 is 0.")
        .operands_at_least(3)
        .family(decomposition(triangular_sylvester_p))
        .rule<Abstract>(sylvester_aval)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs,
                       const Params& params) {
          visit_element(inputs[0].dtype, [&](auto element) {
            sylvester_kernel<decltype(element)>(inputs, outputs[0], int(params.integer("part")));
          });
        })
        .rule<Emit>(emit_triangular_sylvester)
        .rule<Cost>(cost::of_matrices([](const cost::MatrixSizes& x, const Params&) {
          return x.rows * x.columns * (x.rows + x.columns);
        }))
        .rule<Jvp>(sylvester_jvp)
        .rule<Transpose>(sylvester_transpose)
        .rule<Mask>(mask_leading(triangular_sylvester_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape c, Shape t, Shape s, int part) {
            return Sample{{{{c, DType::float64}},
                           {{t, DType::float64}, Values::positive},
                           {{s, DType::float64}, Values::positive}},
                          {{"part", Dim(part)}}};
          };
          return std::vector<Sample>{
              sample({3, 2}, {3, 3}, {2, 2}, 0), sample({3, 3}, {3, 3}, {3, 3}, -1),
              sample({3, 3}, {3, 3}, {3, 3}, 1), sample({2, 2, 2}, {2, 2, 2}, {2, 2, 2}, 0),
              sample({0, 2}, {0, 0}, {2, 2}, 0)};
        });

}  // namespace plait
