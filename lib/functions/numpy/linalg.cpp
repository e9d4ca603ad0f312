// plait.numpy.linalg: systems of equations, and functions of decompositions.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/lax_linalg.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/primitives/linear_solve.h>
#include <plait/primitives/narrow.h>

#include <algorithm>
#include <cmath>

#include "functions/functions.h"
#include "functions/systems.h"
#include "primitives/linalg/eigh.h"
#include "primitives/linalg/matrices.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using matrices::adjoint;
using matrices::columns_of;
using matrices::rows_of;
using numpy::OptionalArray;

// max(m, n) eps of the dtype, as a scalar.
double rounding_of(DType dtype) {
  return real_dtype_of(dtype) == DType::float32 ? 0x1p-23 : 0x1p-52;
}
Array default_tolerance(const Array& x) {
  const DType real = real_dtype_of(x.dtype());
  return lax::mul(number_of(maximum(rows_of(x.aval()), columns_of(x.aval())), real),
                  Array::literal(rounding_of(x.dtype()), real));
}

Array matrices_only(std::string_view function, const Array& x) {
  const Array a = to_inexact(x);
  matrices::require_matrices(function, std::span(&a.aval(), 1));
  return a;
}

}  // namespace

// --- Systems -------------------------------------------------------------------------------------

std::pair<Array, Array> systems::promoted_system(std::string_view function, const Array& a,
                                                 const Array& b) {
  Arrays both{to_inexact(a), to_inexact(b)};
  promote_dtypes(both, function);
  matrices::require_matrices(function, std::span(&both[0].aval(), 1));
  matrices::require_square(function, both[0].aval());
  const Array& rhs = both[1];
  const Dim n = rows_of(both[0].aval());
  if (rhs.ndim() == 0 || !(rhs.shape(std::max(0, rhs.ndim() - 2)) == n))
    throw ShapeError(std::string(function) + ": matrices of shape (" + a.shape().to_string() +
                         ") and right-hand sides of shape (" + b.shape().to_string() +
                         ") do not fit",
                     "give a vector or matrices of " + n.to_string() + " rows");
  return {both[0], both[1]};
}

Array systems::for_columns(std::string_view function, const Array& a, const Array& b,
                           const ColumnSolver& solver) {
  const Dim n = rows_of(a.aval());
  if (b.ndim() == 1 && a.ndim() == 2)
    return lax::reshape(solver(a, lax::reshape(b, {n, 1})), b.shape());
  if (b.ndim() == 1) {  // the same vector for every matrix
    const Array x = for_columns(function, a, lax::reshape(b, {n, 1}), solver);
    return numpy::squeeze(x, -1);
  }
  if (a.ndim() == 2 && b.ndim() > 2) {  // all right-hand sides form one matrix
    const Array rows = moved(b, b.ndim() - 2, 0);
    const Array x = solver(a, lax::reshape(rows, {n, size_behind_first(rows.shape())}));
    return moved(lax::reshape(x, rows.shape()), 0, b.ndim() - 2);
  }
  auto batch_of = [](const Array& x) { return Shape(x.shape().begin(), x.shape().end() - 2); };
  const Shape batches[] = {batch_of(a), batch_of(b)};
  const Shape batch = plait::broadcast_shapes(batches, function);
  auto spread = [&](const Array& x) {
    Shape shape = batch;
    shape.push_back(rows_of(x.aval()));
    shape.push_back(columns_of(x.aval()));
    return plait::broadcast_to(x, shape);
  };
  return solver(spread(a), spread(b));
}

Dim systems::size_behind_first(const Shape& shape) {
  return Shape(shape.begin() + 1, shape.end()).num_elements();
}

Array systems::solve_factored(const Array& lu, const Array& permutation, const Array& b,
                              bool transpose, bool conjugate) {
  using lax::linalg::triangular_solve;
  if (!transpose) {
    const Array y = triangular_solve(lu, matrices::take_rows(b, permutation), true, true, false,
                                     conjugate, true);
    return triangular_solve(lu, y, true, false, false, conjugate);
  }
  const Array y = triangular_solve(lu, b, true, false, true, conjugate);
  const Array z = triangular_solve(lu, y, true, true, true, conjugate, true);
  return matrices::take_rows(z, numpy::argsort(permutation));
}

namespace {

// Derivatives do not see the factors: they follow from a x = b.
Array solve_by_lu(const Array& a, const Array& b) {
  const bool plain = !Trace::current() && a.node()->is_plain() && b.node()->is_plain();
  const auto [lu, pivots, permutation] = lax::linalg::lu(plain ? a : lax::stop_gradient(a));
  if (plain) return systems::solve_factored(lu, permutation, b, false, false);
  auto solver = [lu = lu, permutation = permutation](bool transpose) {
    return [=](std::span<const Array> y) -> Arrays {
      return {systems::solve_factored(lu, permutation, y[0], transpose, false)};
    };
  };
  const Function matvec = [&](std::span<const Array> x) -> Arrays {
    return {matrices::matmul(a, x[0])};
  };
  return linear_solve(matvec, std::span(&b, 1), solver(false), solver(true))[0];
}

}  // namespace

Array numpy::linalg::solve(Operand a, Operand b) {
  const auto [left, right] = systems::promoted_system("solve", a, b);
  return systems::for_columns("solve", left, right, solve_by_lu);
}

Array numpy::linalg::inv(Operand a) {
  const Array x = matrices_only("inv", a);
  matrices::require_square("inv", x.aval());
  const Array identity = as_weak_as(x, numpy::eye(rows_of(x.aval()), {}, 0, x.dtype()));
  return solve_by_lu(x, plait::broadcast_to(identity, x.shape()));
}

numpy::linalg::LeastSquares numpy::linalg::lstsq(Operand a, Operand b,
                                                 std::optional<double> rcond) {
  Arrays both{to_inexact(a), to_inexact(b)};
  promote_dtypes(both, "lstsq");
  const Array &left = both[0], &right = both[1];
  if (left.ndim() != 2 || right.ndim() < 1 || right.ndim() > 2 ||
      !(left.shape(0) == right.shape(0)))
    throw ShapeError("lstsq: a of shape (" + a.shape().to_string() + ") and b of shape (" +
                         b.shape().to_string() + ") do not fit",
                     "give a matrix, and a vector or a matrix of as many rows");
  if (!rcond && !(left.shape(0).is_constant() && left.shape(1).is_constant()))
    throw ShapeError(
        "lstsq: the default of rcond depends on the sizes of a, (" + left.shape().to_string() + ")",
        "give rcond");
  const double relative =
      rcond ? *rcond
            : rounding_of(left.dtype()) * double(maximum(left.shape(0), left.shape(1)).constant());
  const Array s = svdvals(left);
  const Array x = numpy::matmul(pinv(left, relative), right);
  const Array rest = lax::abs(lax::sub(right, numpy::matmul(left, x)));
  const Array least = lax::mul(numpy::max(s, {}, true), Array::literal(relative, s.dtype()));
  const Array rank = numpy::sum(numpy::greater(s, least), {}, default_int());
  return {x, numpy::sum(lax::mul(rest, rest), 0), rank, s};
}

Array numpy::linalg::tensorsolve(Operand a, Operand b,
                                 const std::optional<std::vector<int>>& axes) {
  Array left = a;
  if (axes) {
    std::vector<int> last;
    for (std::size_t i = 0; i < axes->size(); ++i) last.push_back(int(i) - int(axes->size()));
    left = numpy::moveaxis(a, *axes, last);
  }
  if (left.ndim() < b.ndim())
    throw ShapeError("tensorsolve: a of shape (" + a.shape().to_string() + ") and b of shape (" +
                         b.shape().to_string() + ")",
                     "give a as many axes as b and x have together");
  const Shape rest(left.shape().begin() + b.ndim(), left.shape().end());
  const Array square = lax::reshape(left, {b.shape().num_elements(), rest.num_elements()});
  return lax::reshape(solve(square, raveled(b)), rest);
}

Array numpy::linalg::tensorinv(Operand a, int ind) {
  if (ind <= 0 || ind > a.ndim())
    throw ValueError("tensorinv: ind is " + std::to_string(ind) + " for an array of shape (" +
                         a.shape().to_string() + ")",
                     "give the number of the first axes that are the rows, 1 or more");
  const Shape first(a.shape().begin(), a.shape().begin() + ind),
      rest(a.shape().begin() + ind, a.shape().end());
  Shape result = rest;
  for (Dim dim : first) result.push_back(dim);
  const Array square = lax::reshape(a, {first.num_elements(), rest.num_elements()});
  return lax::reshape(inv(square), result);
}

// --- Determinants and ranks ----------------------------------------------------------------------

// --- Decompositions of the primitives ------------------------------------------------------------

namespace {
bool is_lower(const std::string& UPLO, const char* function) {
  if (UPLO == "L" || UPLO == "l") return true;
  if (UPLO == "U" || UPLO == "u") return false;
  throw ValueError(std::string(function) + ": UPLO is '" + UPLO + "'", "give 'L' or 'U'");
}
}  // namespace

Array numpy::linalg::det(Operand a) { return bind(det_p, {to_inexact(a)}); }

Array numpy::linalg::eigvalsh(Operand a, const std::string& UPLO, bool symmetrize_input) {
  return eigh_of(to_inexact(a), is_lower(UPLO, "eigvalsh"), symmetrize_input, false)[0];
}
std::pair<Array, Array> numpy::linalg::eigh(Operand a, const std::string& UPLO,
                                            bool symmetrize_input) {
  const Arrays outputs = eigh_of(to_inexact(a), is_lower(UPLO, "eigh"), symmetrize_input, true);
  return {outputs[1], outputs[0]};
}

Array numpy::linalg::svdvals(Operand x) {
  return bind(svd_p, {to_inexact(x)}, {{"compute_uv", false}, {"full_matrices", false}});
}

Array numpy::linalg::pinv(Operand a, std::optional<double> rtol) {
  if (rtol && !(*rtol >= 0))
    throw ValueError("pinv: rtol is " + std::to_string(*rtol), "give a number of 0 or more");
  return bind(pinv_p, {to_inexact(a)}, {{"rtol", rtol.value_or(-1.0)}});
}

std::pair<Array, Array> numpy::linalg::slogdet(Operand a) {
  const Array x = matrices_only("slogdet", a);
  matrices::require_square("slogdet", x.aval());
  const auto [lu, pivots, permutation] = lax::linalg::lu(x);
  const int last = x.ndim() - 2;
  const Array swapped = lax::ne(pivots, lax::iota(DType::int32, pivots.shape(), last));
  const Array swaps = numpy::sum(swapped, last, DType::int32);
  const Array is_odd = lax::ne(lax::bitwise_and(swaps, numpy::astype(1, DType::int32)),
                               numpy::astype(0, DType::int32));
  const Array diagonal = matrices::diagonal_of(lu), size = lax::abs(diagonal);
  const Array product = lax::reduce_prod(numpy::sign(diagonal), std::vector<int>{last});
  const Array sign = lax::select(is_odd, lax::neg(product), product);
  return {sign, lax::reduce_sum(lax::log(size), std::vector<int>{last})};
}

namespace {

Array values_above(const Array& s, const Array& least) {
  const Array limit = plait::broadcast_to(least, s.shape());
  return numpy::sum(lax::gt(s, limit), s.ndim() - 1, default_int());
}

// A tolerance for each matrix, as an array with an axis for its singular values.
Array tolerance_of(std::string_view function, const Array& tolerance, const Array& s) {
  Shape batch = s.shape();
  batch.pop_back();
  const Array each = lax::convert_element_type(tolerance, s.dtype());
  const Shape shapes[] = {each.shape(), batch};
  if (!(broadcast_shapes(std::span<const Shape>(shapes), function) == batch))
    throw ShapeError(std::string(function) + ": a tolerance of shape (" +
                         tolerance.shape().to_string() + ") for matrices of batch shape (" +
                         batch.to_string() + ")",
                     "give one number, or one for each matrix");
  batch.push_back(1);
  return lax::reshape(plait::broadcast_to(each, Shape(batch.begin(), batch.end() - 1)), batch);
}

// For the catalogue: tolerances may be arrays.
Array rank_of(Operand M, const OptionalArray& rtol, bool hermitian, const OptionalArray& tol) {
  if (M.ndim() < 2 || (!rtol && !tol)) return numpy::linalg::matrix_rank(M, {}, hermitian);
  const Array x = matrices_only("matrix_rank", M);
  const Array s = hermitian ? lax::abs(numpy::linalg::eigvalsh(x)) : numpy::linalg::svdvals(x);
  if (tol) return values_above(s, tolerance_of("matrix_rank", *tol, s));
  const Array largest = numpy::max(s, -1, true);
  return values_above(s, numpy::multiply(largest, tolerance_of("matrix_rank", *rtol, s)));
}

// The tolerance is a parameter of the equation, so an array becomes one equation for each of its
// values.
Array pinv_of(Operand a, const OptionalArray& rtol) {
  if (!rtol) return numpy::linalg::pinv(a);
  if (rtol->ndim() == 0) return numpy::linalg::pinv(a, rtol->item<double>());
  const Array x = matrices_only("pinv", a);
  const int rank = x.ndim();
  const Shape batch(x.shape().begin(), x.shape().end() - 2);
  const Shape shapes[] = {rtol->shape(), batch};
  if (!(broadcast_shapes(std::span<const Shape>(shapes), "pinv") == batch))
    throw ShapeError("pinv: rtol of shape (" + rtol->shape().to_string() +
                         ") for matrices of batch shape (" + batch.to_string() + ")",
                     "give one number, or one for each matrix");
  const Array each = plait::broadcast_to(lax::convert_element_type(*rtol, DType::float64), batch);
  const Buffer values = each.host_buffer().dense();
  const auto* first = static_cast<const double*>(values.data());
  std::vector<double> distinct(first, first + num_elements(values.shape()));
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.empty()) return numpy::linalg::pinv(x);
  std::vector<int> axes;
  for (int i = 0; i < rank - 2; ++i) axes.push_back(i);
  Array result;
  for (double value : distinct) {
    const Array inverse = numpy::linalg::pinv(x, value);
    const Array mine = numpy::equal(each, Array::literal(value, DType::float64));
    result = result.is_valid()
                 ? Array(lax::select(lax::broadcast_in_dim(mine, inverse.shape(), axes), inverse,
                                     result))
                 : inverse;
  }
  return result;
}

}  // namespace

Array numpy::linalg::matrix_rank(Operand M, std::optional<double> rtol, bool hermitian,
                                 std::optional<double> tol) {
  if (M.ndim() < 2) return numpy::astype(numpy::any(truth(M)), default_int());  // is it nonzero
  const Array x = matrices_only("matrix_rank", M);
  const Array s = hermitian ? lax::abs(eigvalsh(x)) : svdvals(x);
  const DType real = s.dtype();
  const Array relative = rtol ? Array::literal(*rtol, real) : default_tolerance(x);
  const Array largest = numpy::max(s, -1, true);
  const Array least = tol ? Array::literal(*tol, real) : Array(lax::mul(largest, relative));
  return values_above(s, least);
}

Array numpy::linalg::cond(Operand x, const NormOrder& p) {
  const Array a = matrices_only("cond", x);
  const std::optional<double> number = p.number();
  if (p.is_none() || (number && std::abs(*number) == 2)) {
    const Array s = svdvals(a);
    const Array largest = numpy::max(s, -1), smallest = numpy::min(s, -1);
    const Array ratio =
        number && *number < 0 ? lax::div(smallest, largest) : lax::div(largest, smallest);
    return lax::select(lax::eq(largest, constant(0, largest)), filled(INFINITY, ratio), ratio);
  }
  matrices::require_square("cond", a.aval());
  return lax::mul(norm(a, p, {-2, -1}), norm(inv(a), p, {-2, -1}));
}

// --- Decompositions ------------------------------------------------------------------------------

Array numpy::linalg::cholesky(Operand a, bool upper, bool symmetrize_input) {
  const Array x = matrices_only("cholesky", a);
  if (!upper) return lax::linalg::cholesky(x, symmetrize_input);
  return adjoint(lax::linalg::cholesky(symmetrize_input ? x : adjoint(x), symmetrize_input));
}

std::pair<Array, Array> numpy::linalg::qr(Operand a, const std::string& mode) {
  if (mode != "reduced" && mode != "complete")
    throw ValueError("qr: mode is '" + mode + "'", "give 'reduced', 'complete', 'r' or 'raw'");
  const auto [q, r] = lax::linalg::qr(matrices_only("qr", a), mode == "complete");
  return {q, r};
}

std::tuple<Array, Array, Array> numpy::linalg::svd(Operand a, bool full_matrices, bool hermitian) {
  const Array x = matrices_only("svd", a);
  if (!hermitian) {
    const auto [u, s, vh] = lax::linalg::svd(x, full_matrices);
    return {u, s, vh};
  }
  // x = v w v^H: the largest |w| first, and its sign into vh.
  const auto [w, v] = eigh(x);
  const Array order = numpy::argsort(lax::neg(lax::abs(w)), w.ndim() - 1);
  const Array columns = adjoint(matrices::take_rows(adjoint(v), order));
  const Array sorted = numpy::take_along_axis(w, order, w.ndim() - 1);
  const Array signs =
      lax::select(lax::lt(sorted, constant(0, sorted)), filled(-1, sorted), filled(1, sorted));
  const Array vh = matrices::broadcast_product(adjoint(columns), matrices::as_columns(signs));
  return {columns, lax::abs(sorted), vh};
}

Array numpy::linalg::multi_dot(Operands arrays) {
  const int count = int(arrays.size());
  if (count == 0) throw ValueError("multi_dot: there are no arrays", "give two or more");
  for (int i = 0; i < count; ++i)
    if (arrays[i].ndim() != 2 && !(arrays[i].ndim() == 1 && (i == 0 || i == count - 1)))
      throw ShapeError("multi_dot: array " + std::to_string(i) + " has shape (" +
                           arrays[i].shape().to_string() + ")",
                       "give matrices; the first and the last may be vectors");
  // The fewest multiplications of arrays first .. last, where sizes are known: Cormen et al.,
  // "Introduction to Algorithms", section 15.2.
  std::vector<double> sizes;
  for (int i = 0; i < count; ++i) {
    auto number = [](Dim dim) { return dim.is_constant() ? double(dim.constant()) : 256.0; };
    const Array& x = arrays[i];
    if (i == 0) sizes.push_back(x.ndim() == 1 ? 1.0 : number(x.shape(0)));
    sizes.push_back(x.ndim() == 1 && i > 0 ? 1.0 : number(x.shape(x.ndim() - 1)));
  }
  std::vector<std::vector<double>> cost(count, std::vector<double>(count, 0));
  std::vector<std::vector<int>> cut(count, std::vector<int>(count, 0));
  for (int length = 2; length <= count; ++length)
    for (int first = 0; first + length <= count; ++first) {
      const int last = first + length - 1;
      cost[first][last] = INFINITY;
      for (int middle = first; middle < last; ++middle) {
        const double total = cost[first][middle] + cost[middle + 1][last] +
                             sizes[first] * sizes[middle + 1] * sizes[last + 1];
        if (total < cost[first][last]) cost[first][last] = total, cut[first][last] = middle;
      }
    }
  std::function<Array(int, int)> product = [&](int first, int last) -> Array {
    if (first == last) return arrays[first];
    const int middle = cut[first][last];
    return numpy::matmul(product(first, middle), product(middle + 1, last));
  };
  return product(0, count - 1);
}

namespace {

namespace of = numpy::linalg;

[[maybe_unused]] const FunctionInfo* const linalg_functions[] = {
    function("numpy.linalg", "solve(a, b)",
             "The x of a x = b for square matrices a. b is a vector when it has one axis, and "
             "matrices otherwise; batches broadcast. A singular a gives infinities or NaN. "
             "Derivatives solve the same systems again.",
             &of::solve),
    function("numpy.linalg", "inv(a)",
             "The inverses of square matrices; infinities or NaN for singular ones.", &of::inv),
    function("numpy.linalg", "det(a)",
             "The determinants of square matrices; the gradient is right for singular ones too.",
             &of::det),
    function(
        "numpy.linalg", "slogdet(a)",
        "The sign (of complex matrices: the phase) of the determinant, and the logarithm of its "
        "magnitude.",
        &of::slogdet),
    function(
        "numpy.linalg", "multi_dot(arrays, *, precision=None!)",
        "The product of matrices in the order that needs the fewest multiplications; the first "
        "and the last may be vectors.",
        &of::multi_dot),
    function(
        "numpy.linalg", "pinv(a, rtol=None, hermitian=False, *, rcond=None)",
        "The Moore-Penrose inverse. Singular values up to rtol (or rcond) times the largest count "
        "as 0; by default 10 max(m, n) times the dtype's rounding. It may be an array of known "
        "values, one for each matrix. hermitian says something of a, and is not needed.",
        +[](Operand a, const OptionalArray& rtol, bool, const OptionalArray& rcond) {
          return pinv_of(a, rtol ? rtol : rcond);
        }),
    function(
        "numpy.linalg", "lstsq(a, b, rcond=None, *, numpy_resid=False)",
        "x of least norm among those with the least |a x - b|, the sums of squares of b - a x, the "
        "rank of a (int32), and its singular values. Singular values up to rcond times the largest "
        "count as 0; by default the dtype's rounding times max(m, n). numpy_resid: no sums where "
        "the rank is below n or m <= n, for which the rank must be known.",
        +[](Operand a, Operand b, std::optional<double> rcond, bool numpy_resid) {
          auto [x, residuals, rank, s] = of::lstsq(a, b, rcond);
          if (numpy_resid) {
            const Dim n = a.shape(1);
            const bool determined = rank.item<std::int64_t>() == n.constant();
            if (!determined || less_equal(a.shape(0), n).value_or(false))
              residuals = lax::full({0}, 0, residuals.dtype());
            else if (residuals.ndim() == 0)
              residuals = lax::reshape(residuals, {1});
          }
          return std::tuple{x, residuals, rank, s};
        }),
    function("numpy.linalg", "tensorsolve(a, b, axes=None)",
             "The x for which tensordot(a, x, x.ndim) = b; axes of a are moved to its end first.",
             &of::tensorsolve),
    function("numpy.linalg", "tensorinv(a, ind=2)",
             "The inverse of a for tensordot; its first ind axes are the rows.", &of::tensorinv),
    function("numpy.linalg", "matrix_rank(M, rtol=None, *, hermitian=False, tol=None)",
             "How many singular values are above tol, or above rtol times the largest, by default "
             "max(m, n) times the dtype's rounding. Either may be an array, one for each matrix. "
             "hermitian: by eigenvalues.",
             &rank_of),
    function("numpy.linalg", "cond(x, p=None)",
             "norm(x, p) norm(inv(x), p); for None, 2 and -2 by singular values.", &of::cond),
    function(
        "numpy.linalg", "cholesky(a, *, upper=False, symmetrize_input=True)",
        "The lower triangular L of a = L L^H, or U = L^H when upper. symmetrize_input takes "
        "(a + a^H) / 2; otherwise that triangle of a is read. NaN where a matrix is not positive "
        "definite.",
        &of::cholesky),
    function(
        "numpy.linalg", "qr(a, mode='reduced')",
        "q and r of a = q r, with orthonormal columns of q and an upper triangular r; r alone for "
        "mode 'r', a square q for 'complete', which has no derivative when a has more rows than "
        "columns. 'raw': r and the Householder reflections of q in one matrix, transposed, and "
        "their factors.",
        +[](Operand a, const std::string& mode) {
          if (mode == "r") return Argument(of::qr(a).second);
          if (mode == "raw") {
            const auto [packed, taus] = lax::linalg::geqrf(a);
            return Argument(Argument::List{matrices::transposed(packed), taus});
          }
          const auto [q, r] = of::qr(a, mode);
          return Argument(Argument::List{q, r});
        }),
    function(
        "numpy.linalg", "svd(a, full_matrices=True, compute_uv=True, hermitian=False)",
        "u, s and vh of a = u diag(s) vh, s largest first; s alone unless compute_uv. "
        "full_matrices: square u and vh, which have no derivatives. hermitian: by eigenvalues. Of "
        "every column of u the first element that is at least half as large as the largest is real "
        "and positive.",
        +[](Operand a, bool full_matrices, bool compute_uv, bool hermitian) {
          if (!compute_uv && !hermitian) return Argument(of::svdvals(a));
          const auto [u, s, vh] = of::svd(a, full_matrices, hermitian);
          return compute_uv ? Argument(Argument::List{u, s, vh}) : Argument(s);
        }),
    function("numpy.linalg", "svdvals(x)", "Singular values, largest first.", &of::svdvals),
    function("numpy.linalg", "eigh(a, UPLO='L', symmetrize_input=True)",
             "Eigenvalues of Hermitian matrices, least first, and orthonormal eigenvectors as "
             "columns, of which the first element that is at least half as large as the largest is "
             "real and positive. symmetrize_input takes (a + a^H) / 2; otherwise UPLO says which "
             "triangle is read.",
             &of::eigh),
    function("numpy.linalg", "eigvalsh(a, UPLO='L', *, symmetrize_input=True)",
             "Eigenvalues of Hermitian matrices, least first.", &of::eigvalsh),
};

}  // namespace
}  // namespace plait
