// lu, by partial pivoting, and det.
// SPDX-License-Identifier: Apache-2.0
#include <Eigen/LU>

#include <numeric>

#include <plait/primitives/narrow.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/linalg/cost.h"
#include "primitives/linalg/emit_factors.h"
#include "primitives/linalg/matrices.h"
#include "primitives/linalg/small_factors.h"
#include "primitives/linalg/small_matrices.h"
#include "primitives/reduction/order.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT

using Pivots = Eigen::Transpositions<Eigen::Dynamic, Eigen::Dynamic, std::int32_t>;

// Factors x in place. Eigen factors the leading columns, at most as many as there are rows; the
// columns after them are updated here. Returns the number of exchanges.
template <class T>
int factor(Matrix<T>& x, Pivots& pivots) {
  const std::int64_t k = std::min(x.rows(), x.cols());
  pivots.resize(k);
  if (k == 0) return 0;
  std::int32_t exchanges = 0;
  Eigen::Ref<Matrix<T>> square = x.leftCols(k);
  Eigen::internal::partial_lu_inplace(square, pivots, exchanges);
  if (x.cols() > k) {
    auto rest = x.rightCols(x.cols() - k);
    for (std::int64_t i = 0; i < k; ++i) rest.row(i).swap(rest.row(pivots.coeff(i)));
    x.leftCols(k).template triangularView<Eigen::UnitLower>().solveInPlace(rest);
  }
  return exchanges;
}

// The same in tiles, for complex numbers, which Eigen multiplies slowly.
template <class T>
int factor(tiles::PivotedFactors<T>& factors, const tiles::Strided<const T>& x) {
  factors.factor(x);
  int exchanges = 0;
  for (std::size_t i = 0; i < factors.pivots().size(); ++i)
    exchanges += factors.pivots()[i] != std::int32_t(i);
  return exchanges;
}

// A real matrix m × n of a stack.
template <class T>
void lu_by_eigen(const MatrixBatch& batch, std::int64_t index, std::int64_t m, std::int64_t n,
                 std::span<const View> outputs) {
  Matrix<T> x;
  Pivots pivots;
  Eigen::Matrix<std::int32_t, Eigen::Dynamic, 1> order(m);
  batch.load<T>(index, m, n, x);
  factor(x, pivots);
  std::iota(order.data(), order.data() + m, 0);
  for (std::int64_t row = 0; row < pivots.size(); ++row)
    std::swap(order[row], order[pivots.coeff(row)]);
  store<T>(x, outputs[0], index);
  store_vector<std::int32_t>(pivots.indices(), outputs[1], index);
  store_vector<std::int32_t>(order, outputs[2], index);
}

// The same for a complex one.
template <class T>
void lu_in_tiles(const MatrixBatch& batch, std::int64_t index, std::int64_t m, std::int64_t n,
                 std::span<const View> outputs) {
  tiles::PivotedFactors<T> factors(m, n);
  factor(factors, batch.at<T>(index));
  store_tiles<T>(factors.matrix(), m, n, outputs[0], index);
  using Vector = Eigen::Map<const Eigen::Matrix<std::int32_t, Eigen::Dynamic, 1>>;
  const auto vector = [](const std::vector<std::int32_t>& x) {
    return Vector(x.data(), std::int64_t(x.size()));
  };
  store_vector<std::int32_t>(vector(factors.pivots()), outputs[1], index);
  store_vector<std::int32_t>(vector(factors.order()), outputs[2], index);
}

template <class T>
void lu_kernel(std::span<const View> inputs, std::span<const View> outputs) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double rows = double(batch.rows()), columns = double(batch.columns());
  const double flops = rows * columns * std::min(rows, columns);
  if constexpr (std::is_floating_point_v<T>)
    if (inputs.size() == 1 && flops > 0 && std::max(rows, columns) <= small::largest_lu)
      return small_lu<T>(inputs[0], outputs[0], outputs[1], outputs[2]);
  for_matrices(batch.count(), flops, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t m = sizes.at(0, i, batch.rows()), n = sizes.at(1, i, batch.columns());
      if constexpr (std::is_floating_point_v<T>)
        lu_by_eigen<T>(batch, i, m, n, outputs);
      else
        lu_in_tiles<T>(batch, i, m, n, outputs);
    }
  });
}

template <class T>
void det_kernel(std::span<const View> inputs, const View& out) {
  const MatrixBatch batch(inputs[0]);
  const RealSizes sizes(inputs, 1);
  const double flops = std::pow(double(batch.rows()), 3);
  if constexpr (std::is_floating_point_v<T>)
    if (inputs.size() == 1 && flops > 0 && batch.rows() <= small::largest_lu)
      return small_det<T>(inputs[0], out);
  for_matrices(batch.count(), flops, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      const auto product = [&](int exchanges, const auto& diagonal) {
        T result = exchanges % 2 ? T(-1) : T(1);
        for (std::int64_t k = 0; k < n; ++k) result *= diagonal(k);
        out.as<T>()[i] = result;
      };
      if constexpr (std::is_floating_point_v<T>) {
        Matrix<T> x;
        Pivots pivots;
        batch.load<T>(i, n, n, x);
        product(factor(x, pivots), [&](std::int64_t k) { return x(k, k); });
      } else {
        tiles::PivotedFactors<T> x(n, n);
        product(factor(x, batch.at<T>(i)), [&](std::int64_t k) { return x.matrix().get(k, k); });
      }
    }
  });
}

// An element of the permutation, from the last exchange to the first: where what lies there was.
loops::Tensors emit_permutation(loops::Writer& w, const Equation& equation,
                                std::span<const loops::Tensor> inputs) {
  using namespace written;  // NOLINT
  require_no_kernels(w);
  if (inputs.size() > 1) w.refuse("`pivots_to_permutation` of padded pivots");
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const std::int64_t n = equation.params.get<Dim>("size").constant(),
                     k = std::min(x.aval.shape.back().constant(), n);
  Shape shape = x.aval.shape;
  shape.back() = n;
  const loops::Tensor result = make(shape, DType::int32);
  for_all(shape, [&](const Indices& at) {
    const Number place =
        repeated(k, {number_of(at.back())}, [&](const Index& step, const Numbers& carried) {
          const Number row = integer(k - 1) - number_of(step), here = carried[0];
          Indices of_pivot = at;
          of_pivot.back() = sum_of({k - 1}, times(step, -1));
          const Number other = cast(get(x, of_pivot), DType::int64);
          const Number is_inside = (other >= integer(0)) & (other < integer(n)),
                       exchanged = select(here == row, other, select(here == other, row, here));
          return Numbers{select(is_inside, exchanged, here)};
        })[0];
    put(result, at, place);
  });
  return {result};
}

void permute_kernel(std::span<const View> inputs, const View& out) {
  const Buffer pivots = Buffer::copy_of(inputs[0]);
  const std::int64_t k = pivots.shape().back(), n = out.shape.back();
  const RealSizes sizes(inputs, 1);
  for (std::int64_t i = 0; n > 0 && i < num_elements(out.shape) / n; ++i) {
    const auto* rows = static_cast<const std::int32_t*>(pivots.data()) + i * k;
    auto* order = out.as<std::int32_t>() + i * n;
    std::iota(order, order + n, 0);
    for (std::int64_t row = 0; row < std::min(sizes.at(0, i, k), n); ++row)
      if (rows[row] >= 0 && rows[row] < n) std::swap(order[row], order[rows[row]]);
  }
}

// P dA = dL U + L dU, so that with X = P dA, F = L11^-1 X11 U11^-1 and k = min(m, n): dU11 =
// triu(F) U11, dL11 = L11 tril(F, -1); then the rest of dL from X = dL U11 + L dU11, and of dU from
// X = L11 dU + dL11 U. De Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using
// triangular factorization" (2011).
Tangents lu_jvp(const Array& x, const Array& dx, std::span<const Array> outputs, const Params&) {
  using lax::linalg::triangular_solve;
  const Array& lu = outputs[0];
  const Dim m = rows_of(x.aval()), n = columns_of(x.aval()), k = minimum(m, n);
  // Sliced before any of it is used twice. Where some of these parts are all of dx, named sizes and
  // numbers then add cotangents in the same order.
  const Array columns_of_dx = take_rows(leading(dx, m, k), outputs[2]),
              rows_of_dx = leading(take_rows(dx, outputs[2]), k, n), square = leading(lu, k, k);
  const Array unit = broadcast_to(eye(m, k, x.dtype()), leading(lu, m, k).shape());
  const Array l = lax::add(lower(leading(lu, m, k), -1), unit), u = upper(leading(lu, k, n));
  const Array left =
      triangular_solve(square, leading(columns_of_dx, k, k), true, true, false, false, true);
  const Array f = triangular_solve(square, left);
  const Array du_square = matmul(upper(f), leading(u, k, k)),
              dl_square = matmul(leading(l, k, k), lower(f, -1));
  const Array dl = triangular_solve(square, lax::sub(columns_of_dx, matmul(l, du_square)));
  const Array du = triangular_solve(square, lax::sub(rows_of_dx, matmul(dl_square, u)), true, true,
                                    false, false, true);
  const Array zero = Array::literal(0, x.dtype());
  std::vector<lax::Padding> columns(x.ndim(), {0, 0, 0}), rows = columns;
  columns.back().high = n - k;
  rows[x.ndim() - 2].high = m - k;
  const Array dlu =
      lax::add(lax::pad(lower(dl, -1), zero, columns), lax::pad(upper(du), zero, rows));
  return {dlu, Tangent(outputs[1].aval()), Tangent(outputs[2].aval())};
}

// For real numbers.
Array is_finite(const Array& x) {
  return lax::lt(lax::abs(x), as_weak_as(x, Array::literal(INFINITY, x.dtype())));
}

// det(a) a^-1 b, which is defined for singular matrices too. With P a = L U and y = L^-1 P b, the
// last row of U^-1 det(a) y is y_n times the product of the other elements of U's diagonal, and the
// rows above have det(a) y, less the contribution of the last unknown: U's last element is replaced
// by the inverse of that product. Where even that fails, the rank is less than n - 1, and the
// result is 0: only the last element of U's diagonal may be 0.
Array cofactor_product_in_order(const Array& a, const Array& b) {
  using lax::linalg::triangular_solve;
  const auto [lu, pivots, permutation] = lax::linalg::lu(a);
  const int rank = a.ndim();
  const Dim n = columns_of(a.aval());
  const Array zero = Array::literal(0, a.dtype()), one = Array::literal(1, a.dtype());
  auto positions = [&](int axis) { return lax::iota(DType::int32, a.shape(), axis); };
  const Array last = lax::sub(index_of(n), Array::literal(1, DType::int32));
  const Array row = positions(rank - 2), column = positions(rank - 1);
  const Array in_last_row = lax::eq(row, last), on_diagonal = lax::eq(row, column);
  const std::vector<int> both{rank - 2, rank - 1};
  // The signs of the exchanges do not depend differentiably on a.
  const Array step = lax::iota(DType::int32, pivots.shape(), rank - 2);
  const Array exchanged = lax::ne(pivots, step);
  Shape vector = pivots.shape();
  const Array signs =
      lax::select(exchanged, lax::full(vector, -1, a.dtype()), lax::full(vector, 1, a.dtype()));
  const Array sign = lax::reduce_prod(signs, std::vector<int>{rank - 2});
  const Array ones = lax::full(a.shape(), 1, a.dtype());
  const Array factors = lax::select(on_diagonal, lu, ones);
  const Array others =
      lax::mul(sign, lax::reduce_prod(lax::select(in_last_row, ones, factors), both));
  const Array whole = lax::mul(sign, lax::reduce_prod(factors, both));
  auto everywhere = [&](const Array& scalar) {
    std::vector<int> dims(rank - 2);
    for (int i = 0; i < rank - 2; ++i) dims[i] = i;
    return lax::broadcast_in_dim(scalar, a.shape(), dims);
  };
  const Array in_corner = lax::bitwise_and(in_last_row, on_diagonal);
  const Array u = lax::select(in_corner, everywhere(lax::div(one, others)), lu);
  const Array probe = triangular_solve(lax::stop_gradient(u), ones, true, false);
  const Array finite = everywhere(
      lax::reduce_and(is_finite(is_complex(probe.dtype()) ? lax::abs(probe) : probe), both));
  const Array zeros = lax::full(a.shape(), 0, a.dtype());
  const Array rhs = lax::select(finite, take_rows(b, permutation), zeros);
  const Array y = triangular_solve(lu, rhs, true, true, false, false, true);
  const Array scaled = lax::select(in_last_row, y, lax::mul(y, everywhere(whole)));
  return lax::select(finite, triangular_solve(u, scaled, true, false), zeros);
}

// The same for any order of the columns: a column whose pivot is 0 depends on those before it, and
// is exchanged with the last.
Array cofactor_product(const Array& a, const Array& b) {
  const int rank = a.ndim();
  const Dim n = columns_of(a.aval());
  const Array pivots = diagonal_of(lax::linalg::lu(lax::stop_gradient(a)).lu);
  const Array position = lax::iota(DType::int32, pivots.shape(), rank - 2);
  const Array last =
      broadcast_to(lax::sub(index_of(n), Array::literal(1, DType::int32)), pivots.shape());
  const Array is_zero = lax::eq(pivots, lax::zeros_like(pivots.aval()));
  const Array first =
      lax::reduce_min(lax::select(is_zero, position, last), std::vector<int>{rank - 2});
  std::vector<int> batch(rank - 2);
  for (int i = 0; i < rank - 2; ++i) batch[i] = i;
  const Array dependent = lax::broadcast_in_dim(first, pivots.shape(), batch);
  const Array order = lax::select(lax::eq(position, dependent), last,
                                  lax::select(lax::eq(position, last), dependent, position));
  const Array product = cofactor_product_in_order(transposed(take_rows(transposed(a), order)), b);
  const Array is_same = broadcast_to(as_columns(lax::eq(dependent, last)), product.shape());
  const Array ordered = take_rows(product, order);
  return lax::select(is_same, ordered, lax::neg(ordered));
}

// x rotated along an axis by this many positions; the axis's size is a number.
Array turned(const Array& x, int axis, std::int64_t places) {
  const std::int64_t size = x.shape(axis).constant(), cut = places % size;
  if (cut == 0) return x;
  auto part = [&](std::int64_t begin, std::int64_t end) {
    Shape start(x.ndim(), 0), limit = x.shape(), stride(x.ndim(), 1);
    start[axis] = begin;
    limit[axis] = end;
    return lax::slice(x, start, limit, stride);
  };
  return lax::concatenate({part(cut, size), part(0, cut)}, axis);
}

// The cofactors of matrices of up to three rows, as polynomials: correct in every derivative and
// for every rank, where the derivatives of a factorization would divide by zero pivots. With cyclic
// indices, for three rows, C_ij = a_(i+1)(j+1) a_(i+2)(j+2) - a_(i+1)(j+2) a_(i+2)(j+1).
Array cofactors(const Array& a) {
  const int rank = a.ndim();
  auto round = [&](int rows, int columns) {
    return turned(turned(a, rank - 2, rows), rank - 1, columns);
  };
  const Dim n = rows_of(a.aval());
  if (n == Dim(3))
    return lax::sub(lax::mul(round(1, 1), round(2, 2)), lax::mul(round(1, 2), round(2, 1)));
  if (n == Dim(1)) return lax::full(a.shape(), 1, a.dtype());
  const Array off_diagonal = lax::ne(lax::iota(DType::int32, a.shape(), rank - 2),
                                     lax::iota(DType::int32, a.shape(), rank - 1));
  const Array opposite = round(1, 1);
  return lax::select(off_diagonal, lax::neg(opposite), opposite);
}

// d det(A) = tr(det(A) A^-1 dA), the sum of the products of cofactors and dA.
Tangents det_jvp(const Array& x, const Array& dx, std::span<const Array>, const Params&) {
  const Dim n = rows_of(x.aval());
  if (!(n.is_constant() && n.constant() >= 1 && n.constant() <= 3))
    return {trace_of(cofactor_product(x, dx))};
  return {
      lax::reduce_sum(lax::mul(cofactors(x), dx), std::vector<int>{x.ndim() - 2, x.ndim() - 1})};
}

}  // namespace

constinit const Primitive lu_p{"lu"};
static const auto lu_def =
    define(lu_p,
           "P A = L U for stacks of matrices: L below and U on the diagonal and above; the rows "
           "that were exchanged; and the permutation that they make.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("lu", inputs);
          const Aval& x = inputs[0];
          const Dim m = rows_of(x), n = columns_of(x);
          return std::vector<Aval>{{x.shape, x.dtype},
                                   result_of(x, {minimum(m, n)}, DType::int32),
                                   result_of(x, {m}, DType::int32)};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype,
                        [&](auto element) { lu_kernel<decltype(element)>(inputs, outputs); });
        })
        .rule<Emit>(emit_lu)
        .rule<Cost>(cost::of_matrices(cost::lu_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(lu_p, lu_jvp))
        .rule<Batch>(batch_matrices(lu_p))
        .rule<Mask>(mask_leading(lu_p, {2, 1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape) { return Sample{{{{shape, DType::float64}}}, {}}; };
          return std::vector<Sample>{sample({3, 3}), sample({4, 2}), sample({2, 2, 3}),
                                     sample({0, 0})};
        });
lax::linalg::LU lax::linalg::lu(Operand x) {
  const Arrays outputs = bind(lu_p, {x});
  return {outputs[0], outputs[1], outputs[2]};
}

constinit const Primitive det_p{"det"};
static const auto det_def =
    define(det_p, "The determinants of stacks of square matrices.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("det", inputs);
          require_square("det", inputs[0]);
          return std::vector<Aval>{result_of(inputs[0], {})};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype,
                        [&](auto element) { det_kernel<decltype(element)>(inputs, outputs[0]); });
        })
        .rule<Emit>(emit_det)
        .rule<Cost>(cost::of_matrices(cost::lu_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(det_p, det_jvp))
        .rule<Batch>(batch_matrices(det_p))
        .rule<Mask>(mask_leading(det_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape shape) { return Sample{{{{shape, DType::float64}}}, {}}; };
          return std::vector<Sample>{sample({3, 3}),    sample({1, 1}), sample({2, 2, 2}),
                                     sample({2, 4, 4}), sample({5, 5}), sample({0, 0})};
        });

constinit const Primitive pivots_to_permutation_p{"pivots_to_permutation"};
static const auto pivots_to_permutation_def =
    define(pivots_to_permutation_p,
           "The permutation of `size` rows that exchanging row i and row pivots[..., i] makes, in "
           "order of i.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const Aval& pivots = inputs[0];
          if (pivots.dtype != DType::int32 || pivots.rank() == 0)
            throw DtypeError("lu_pivots_to_permutation: pivots of type " + pivots.to_string(),
                             "give the int32 pivots of lu");
          Aval aval = pivots;
          aval.shape.back() = params.get<Dim>("size");
          return std::vector<Aval>{aval};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          permute_kernel(inputs, outputs[0]);
        })
        .rule<Emit>(emit_permutation)
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          Arrays arrays;
          for (const Batched& input : inputs) arrays.push_back(batch_to_front(input, size));
          return {{Array(bind(pivots_to_permutation_p, arrays, params)), 0}};
        })
        // Padding would be read as exchanges of rows, so the real number of pivots is an operand.
        .rule<Mask>([](std::span<const Masked> inputs, std::span<const Aval> outputs,
                       const Params& params, const SizeValues& sizes) {
          const Dim count = inputs[0].aval.shape.back(), size = outputs[0].shape.back();
          Arrays operands{inputs[0].padded};
          if (!count.is_constant()) {
            Shape batch = inputs[0].padded.shape();
            batch.pop_back();
            operands.push_back(
                lax::broadcast_in_dim(sizes.value(count), batch, std::vector<int>{}));
          }
          const Dim bound = size.is_constant() ? size : sizes.bound(size);
          return Arrays(bind(pivots_to_permutation_p, operands, params.with("size", bound)));
        })
        .rule<Samples>([] {
          auto sample = [](Shape shape, int size) {
            return Sample{{{{shape, DType::int32}, Sample::Input::Values::indices, 3}},
                          {{"size", Dim(size)}}};
          };
          return std::vector<Sample>{sample({3}, 3), sample({2, 3}, 4)};
        });
Array lax::linalg::lu_pivots_to_permutation(Operand pivots, Dim permutation_size) {
  return bind(pivots_to_permutation_p, {pivots}, {{"size", permutation_size}});
}

}  // namespace plait
