// tridiagonal_solve, cholesky_update and pivoted_order.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/QR>

#include "primitives/cost.h"
#include "primitives/linalg/cost.h"
#include "primitives/linalg/decompositions.h"
#include "primitives/linalg/emit_matrices.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

void require_vectors(std::string_view name, std::span<const Aval> vectors, const Aval& matrices,
                     const Dim& size) {
  const Shape wanted = result_of(matrices, {size}).shape;
  for (const Aval& vector : vectors)
    if (!(vector.shape == wanted) || vector.dtype != matrices.dtype)
      throw ShapeError(std::string(name) + ": a vector of type " + vector.to_string() +
                           " beside matrices of type " + matrices.to_string(),
                       "give vectors of shape (" + wanted.to_string() + ") and of their dtype");
}

// A vector of each matrix of a stack.
template <class T>
class Vectors {
 public:
  explicit Vectors(const View& view) : buffer_(Buffer::copy_of(view)) {}
  const T* at(std::int64_t index) const {
    const auto& shape = buffer_.shape();
    return static_cast<const T*>(buffer_.data()) + index * shape[shape.size() - 1];
  }

 private:
  Buffer buffer_;
};

// --- tridiagonal_solve ---------------------------------------------------------------------------

// Elimination with exchanges of neighbouring rows, which fill a second diagonal above.
template <class W>
void solve_tridiagonal(std::vector<W>& below, std::vector<W>& diagonal, std::vector<W>& above,
                       Matrix<W>& x) {
  const auto n = std::int64_t(diagonal.size());
  std::vector<W> second(diagonal.size(), W(0));
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const auto at = std::size_t(i);
    W lower = below[at + 1];
    if (std::abs(lower) > std::abs(diagonal[at])) {
      std::swap(diagonal[at], lower);
      std::swap(above[at], diagonal[at + 1]);
      second[at] = above[at + 1];
      above[at + 1] = W(0);
      x.row(i).swap(x.row(i + 1));
    }
    if (lower == W(0)) continue;
    const W factor = lower / diagonal[at];
    diagonal[at + 1] -= factor * above[at];
    above[at + 1] -= factor * second[at];
    x.row(i + 1) -= factor * x.row(i);
  }
  for (std::int64_t i = n; i-- > 0;) {
    const auto at = std::size_t(i);
    if (i + 1 < n) x.row(i) -= above[at] * x.row(i + 1);
    if (i + 2 < n) x.row(i) -= second[at] * x.row(i + 2);
    x.row(i) /= diagonal[at];
  }
}

template <class T>
void tridiagonal_kernel(std::span<const View> inputs, const View& out) {
  using W = Wide<T>;
  const MatrixBatch batch(inputs[0]);
  const Vectors<T> below(inputs[1]), diagonal(inputs[2]), above(inputs[3]);
  const RealSizes sizes(inputs, 4);
  const double work = 8 * double(batch.rows()) * double(batch.columns());
  for_matrices(batch.count(), work, [&](std::int64_t begin, std::int64_t end) {
    Matrix<W> x;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, sizes.at(1, i, batch.columns()), x);
      const auto wide = [&](const Vectors<T>& vectors) {
        return std::vector<W>(vectors.at(i), vectors.at(i) + n);
      };
      std::vector<W> dl = wide(below), d = wide(diagonal), du = wide(above);
      if (n > 0) du[std::size_t(n - 1)] = W(0);
      solve_tridiagonal(dl, d, du, x);
      store<T>(x, out, i);
    }
  });
}

// x[i - 1] or x[i + 1] in place i along an axis counted from the end, and 0 at the end.
Array shifted(const Array& x, int axis, int by) {
  std::vector<lax::Padding> padding(std::size_t(x.ndim()));
  padding[std::size_t(x.ndim() - axis)] = {by, -by, 0};
  return lax::pad(x, Array::literal(0, x.dtype()), padding);
}

Array tridiagonal_product(const Array& dl, const Array& d, const Array& du, const Array& x) {
  const auto rows = [&](const Array& factors, const Array& x) {
    return broadcast_product(x, as_columns(factors));
  };
  const Array beside = lax::add(rows(dl, shifted(x, 2, 1)), rows(du, shifted(x, 2, -1)));
  return lax::add(rows(d, x), beside);
}

// A dx = db - dA x.
Tangents tridiagonal_jvp(std::span<const Array> primals, std::span<const Tangent> tangents,
                         std::span<const Array> outputs, const Params& params) {
  if (primals.size() != 4) throw InternalError("tridiagonal_solve: differentiated after masking");
  Tangent rhs = tangents[0];
  if (!tangents[1].is_zero() || !tangents[2].is_zero() || !tangents[3].is_zero())
    rhs = add_tangents(
        rhs, lax::neg(tridiagonal_product(tangents[1].instantiate(), tangents[2].instantiate(),
                                          tangents[3].instantiate(), outputs[0])));
  return {bind(tridiagonal_solve_p, {rhs.array(), primals[1], primals[2], primals[3]}, params)[0]};
}

Tangents tridiagonal_transpose(std::span<const Tangent> cotangents,
                               std::span<const TransposeInput> inputs, const Params& params) {
  Tangents result{Tangent(inputs[0].aval())};
  for (std::size_t i = 1; i < 4; ++i) {
    if (inputs[i].is_linear())
      throw InternalError("tridiagonal_solve: it is not linear in the matrix");
    result.push_back(Tangent(inputs[i].aval()));
  }
  const Array &dl = inputs[1].known(), &d = inputs[2].known(), &du = inputs[3].known();
  result[0] = bind(tridiagonal_solve_p,
                   {cotangents[0].array(), shifted(du, 1, 1), d, shifted(dl, 1, -1)}, params)[0];
  return result;
}

// --- cholesky_update -----------------------------------------------------------------------------

// Rotations of w^H with each row of r.
template <class T>
void update(Matrix<T>& r, Eigen::Matrix<T, 1, Eigen::Dynamic>& x) {
  const std::int64_t n = r.rows();
  Eigen::Matrix<T, 1, Eigen::Dynamic> row;
  for (std::int64_t i = 0; i < n; ++i) {
    const T a = r(i, i), b = x[i];
    const auto length = std::hypot(std::abs(a), std::abs(b));
    if (length == 0) continue;
    const std::int64_t count = n - i;
    row = r.row(i).tail(count);
    r.row(i).tail(count) =
        Eigen::numext::conj(a) / length * row + Eigen::numext::conj(b) / length * x.tail(count);
    x.tail(count) = a / length * x.tail(count).eval() - b / length * row;
  }
}

template <class T>
void cholesky_update_kernel(std::span<const View> inputs, const View& out) {
  using W = Wide<T>;
  const MatrixBatch batch(inputs[0]);
  const Vectors<T> vectors(inputs[1]);
  const RealSizes sizes(inputs, 2);
  const double n = double(batch.rows());
  for_matrices(batch.count(), 3 * n * n, [&](std::int64_t begin, std::int64_t end) {
    Matrix<W> r;
    Eigen::Matrix<W, 1, Eigen::Dynamic> x;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, n, r);
      r.template triangularView<Eigen::StrictlyLower>().setZero();
      x.resize(n);
      for (std::int64_t j = 0; j < n; ++j) x[j] = Eigen::numext::conj(W(vectors.at(i)[j]));
      update(r, x);
      store<T>(r, out, i);
    }
  });
}

// The differential of the factor R^H of R^H R: as that of cholesky.
Tangents cholesky_update_jvp(std::span<const Array> primals, std::span<const Tangent> tangents,
                             std::span<const Array> outputs, const Params&) {
  if (primals.size() != 2) throw InternalError("cholesky_update: differentiated after masking");
  const Array l = adjoint(outputs[0]), r = upper(primals[0]), &w = primals[1];
  const Array dr = upper(tangents[0].instantiate()), dw = tangents[1].instantiate();
  const Array of_r = matmul(adjoint(r), dr), of_w = matmul(as_columns(dw), adjoint(as_columns(w)));
  const Array half = lax::add(of_r, of_w), da = lax::add(half, adjoint(half));
  using lax::linalg::triangular_solve;
  const Array right = triangular_solve(l, da, false, true, true, true);
  const Array both = triangular_solve(l, right, true, true);
  return {adjoint(matmul(l, half_lower(both)))};
}

// --- pivoted_order -------------------------------------------------------------------------------

template <class T>
void order_kernel(std::span<const View> inputs, const View& out) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double m = double(batch.rows()), n = double(batch.columns());
  for_matrices(
      batch.count(), 2 * m * n * std::min(m, n), [&](std::int64_t begin, std::int64_t end) {
        Matrix<Wide<T>> x;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t rows = sizes.at(0, i, batch.rows()),
                             columns = sizes.at(1, i, batch.columns());
          batch.load<T>(i, rows, columns, x);
          Eigen::VectorXi order = Eigen::VectorXi::LinSpaced(columns, 0, int(columns) - 1);
          if (rows > 0 && columns > 0 && x.allFinite())
            order = Eigen::ColPivHouseholderQR<Matrix<Wide<T>>>(x).colsPermutation().indices();
          store_vector<std::int32_t>(order, out, i);
        }
      });
}

}  // namespace

constinit const Primitive tridiagonal_solve_p{"tridiagonal_solve"};
static const auto tridiagonal_solve_def =
    define(tridiagonal_solve_p,
           "The x of A x = b for stacks of matrices b, and of A with the diagonals dl (from its "
           "second element on), d and du (but for its last), by elimination with partial pivoting.")
        .operands_at_least(4)
        .family(decomposition(tridiagonal_solve_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("tridiagonal_solve", inputs.first(1));
          require_vectors("tridiagonal_solve", inputs.subspan(1, 3), inputs[0], rows_of(inputs[0]));
          return std::vector<Aval>{{inputs[0].shape, inputs[0].dtype}};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype, [&](auto element) {
            tridiagonal_kernel<decltype(element)>(inputs, outputs[0]);
          });
        })
        .rule<Emit>(emit_tridiagonal_solve)
        .rule<Cost>(cost::arithmetic([](cost::Avals inputs, cost::Avals, const Params&) {
          return cost::multiply_add(inputs[0].dtype) / 2 * 8 * elements_of(inputs[0]);
        }))
        .rule<Jvp>(tridiagonal_jvp)
        .rule<Transpose>(tridiagonal_transpose)
        .rule<Mask>(mask_leading(tridiagonal_solve_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape b, Shape d) {
            const Sample::Input vector{{d, DType::float64}, Values::unit};
            return Sample{
                {{{b, DType::float64}}, vector, {{d, DType::float64}, Values::positive}, vector},
                {}};
          };
          return std::vector<Sample>{sample({3, 2}, {3}), sample({2, 4, 2}, {2, 4}),
                                     sample({1, 2}, {1}), sample({0, 2}, {0})};
        });
Array lax::linalg::tridiagonal_solve(Operand dl, Operand d, Operand du, Operand b) {
  return bind(tridiagonal_solve_p, {b, dl, d, du});
}

constinit const Primitive cholesky_update_p{"cholesky_update"};
static const auto cholesky_update_def =
    define(cholesky_update_p,
           "The upper triangular R' of R'^H R' = R^H R + w w^H, for stacks of upper triangular R "
           "and vectors w, with a diagonal that is real and not negative.")
        .operands_at_least(2)
        .family(decomposition(cholesky_update_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("cholesky_update", inputs.first(1));
          require_square("cholesky_update", inputs[0]);
          require_vectors("cholesky_update", inputs.subspan(1, 1), inputs[0], rows_of(inputs[0]));
          return std::vector<Aval>{{inputs[0].shape, inputs[0].dtype}};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype, [&](auto element) {
            cholesky_update_kernel<decltype(element)>(inputs, outputs[0]);
          });
        })
        .rule<Emit>(emit_cholesky_update)
        .rule<Cost>(cost::of_matrices(
            [](const cost::MatrixSizes& x, const Params&) { return 3 * x.rows * x.rows; }))
        .rule<Jvp>(cholesky_update_jvp)
        .rule<Mask>(mask_leading(cholesky_update_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape r, Shape w) {
            return Sample{{{{r, DType::float64}, Values::positive}, {{w, DType::float64}}}, {}};
          };
          return std::vector<Sample>{sample({3, 3}, {3}), sample({2, 2, 2}, {2, 2}),
                                     sample({1, 1}, {1}), sample({0, 0}, {0})};
        });
Array lax::linalg::cholesky_update(Operand r_matrix, Operand w_vector) {
  return bind(cholesky_update_p, {r_matrix, w_vector});
}

constinit const Primitive pivoted_order_p{"pivoted_order"};
static const auto pivoted_order_def =
    define(pivoted_order_p,
           "The order of the columns of stacks of matrices in which each has the largest part that "
           "is orthogonal to those before it, as int32.")
        .operands_at_least(1)
        .family(decomposition(pivoted_order_p))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("pivoted_order", inputs);
          return std::vector<Aval>{result_of(inputs[0], {columns_of(inputs[0])}, DType::int32)};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype,
                        [&](auto element) { order_kernel<decltype(element)>(inputs, outputs[0]); });
        })
        .rule<Emit>(emit_pivoted_order)
        .rule<Cost>(cost::of_matrices(cost::lu_flops))
        .rule<Jvp>(zero_derivative())
        .rule<Mask>(mask_leading(pivoted_order_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape) {
            return Sample{{{{shape, DType::float64}, Values::distinct}}, {}};
          };
          return std::vector<Sample>{sample({3, 3}), sample({4, 2}), sample({2, 2, 3}),
                                     sample({0, 0})};
        });
Array lax::linalg::pivoted_order(Operand x) { return bind(pivoted_order_p, {x}); }

}  // namespace plait
