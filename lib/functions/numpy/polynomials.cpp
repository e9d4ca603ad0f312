// plait.numpy: polynomials as vectors of coefficients, highest power first.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_analysis.h>
#include <plait/functions/numpy_eig.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/subscript.h>

#include <limits>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

Array coefficients(std::string_view function, const Array& p) {
  if (p.ndim() > 1)
    throw ShapeError(
        std::string(function) + ": coefficients of shape (" + p.shape().to_string() + ")",
        "give vectors");
  return numpy::atleast_1d(p);
}

std::int64_t known_size(std::string_view function, const Array& p) {
  if (!p.shape(0).is_constant())
    throw ShapeError(std::string(function) + ": " + p.shape(0).to_string() + " coefficients",
                     "give a vector whose size is a number");
  return p.shape(0).constant();
}

// Both with as many coefficients.
Arrays of_one_degree(std::string_view function, const Array& a1, const Array& a2) {
  Arrays p{coefficients(function, a1), coefficients(function, a2)};
  promote_dtypes(p, function);
  const Dim size = maximum(p[0].shape(0), p[1].shape(0));
  for (Array& each : p) each = lax::pad(each, constant(0, each), {{size - each.shape(0), 0, 0}});
  return p;
}

// Where a known vector has its first and last element that is not 0; both its size if none is.
std::pair<std::int64_t, std::int64_t> support_of(const Array& p) {
  std::vector<bool> is_set;
  for (const complex128& value : p.to_vector<complex128>()) is_set.push_back(value != 0.0);
  const std::int64_t size = std::int64_t(is_set.size());
  const auto first = std::find(is_set.begin(), is_set.end(), true) - is_set.begin();
  const auto last = is_set.rend() - std::find(is_set.rbegin(), is_set.rend(), true) - 1;
  return {first, first == size ? size : last};
}

}  // namespace

Array numpy::trim_zeros(Operand filt, const std::string& trim, const Axes& axis) {
  if (trim.find_first_not_of("fbFB") != std::string::npos || trim.empty())
    throw ValueError("trim_zeros: trim is '" + trim + "'", "choose 'f', 'b' or 'fb'");
  auto trims = [&](char end) { return trim.find_first_of(end == 'f' ? "fF" : "bB") != trim.npos; };
  const std::vector<int> axes = axis.of(filt.ndim(), "trim_zeros");
  const Array is_set = truth(filt);
  Array result = filt;
  for (int along : axes) {
    std::vector<int> others;
    for (int other = 0; other < filt.ndim(); ++other)
      if (other != along) others.push_back(other);
    const auto [first, last] = support_of(lax::reduce_or(is_set, others));
    const Dim size = filt.shape(along);
    if (Dim(first) == size)
      result = part(result, along, 0, 0);
    else
      result = part(result, along, trims('f') ? Dim(first) : 0, trims('b') ? Dim(last + 1) : size);
  }
  return result;
}

Array numpy::polyadd(Operand a1, Operand a2) {
  const Arrays p = of_one_degree("polyadd", a1, a2);
  return add(p[0], p[1]);
}
Array numpy::polysub(Operand a1, Operand a2) {
  const Arrays p = of_one_degree("polysub", a1, a2);
  return subtract(p[0], p[1]);
}

Array numpy::polymul(Operand a1, Operand a2, bool trim_leading_zeros) {
  Array p = coefficients("polymul", a1), q = coefficients("polymul", a2);
  if (trim_leading_zeros) p = trim_zeros(p, "f"), q = trim_zeros(q, "f");
  for (Array* each : {&p, &q})
    if (each->shape(0) == Dim(0)) *each = lax::full({1}, 0, each->dtype());
  return convolve(p, q);
}

// Division by hand: each coefficient of the quotient takes a multiple of v from what is left.
std::pair<Array, Array> numpy::polydiv(Operand u, Operand v, bool trim_leading_zeros) {
  Arrays p{to_inexact(coefficients("polydiv", u)), to_inexact(coefficients("polydiv", v))};
  promote_dtypes(p, "polydiv");
  Array rest = p[0];
  const Array divisor = p[1];
  const std::int64_t m = known_size("polydiv", rest), n = known_size("polydiv", divisor);
  if (n == 0) throw ShapeError("polydiv: a divisor without coefficients", "give at least one");
  const Array first = lax::index_in_dim(divisor, 0, 0, false);
  Arrays quotient;
  for (std::int64_t k = 0; k + n <= m; ++k) {
    quotient.push_back(lax::div(lax::index_in_dim(rest, k, 0, false), first));
    const Array taken =
        lax::pad(multiply(divisor, quotient.back()), constant(0, divisor), {{k, m - n - k, 0}});
    rest = lax::sub(rest, taken);
  }
  if (quotient.empty()) quotient.push_back(constant(0, rest));
  if (trim_leading_zeros) rest = trim_zeros(rest, "f");
  return {stack(quotient), rest};
}

Array numpy::polyder(Operand p, int m) {
  if (m < 0) throw ValueError("polyder: m is " + std::to_string(m), "give a count >= 0");
  Array result = coefficients("polyder", p);
  for (int i = 0; i < m; ++i) {
    const Dim size = result.shape(0), left = maximum(0, size - 1);
    const Array powers = lax::sub(number_of(size, default_int()),
                                  lax::add(counting(left), Array::literal(1, default_int())));
    result = multiply(part(result, 0, 0, left), as_weak_as(result, astype(powers, result.dtype())));
  }
  return result;
}

Array numpy::polyint(Operand p, int m, const OptionalArray& k) {
  if (m < 0) throw ValueError("polyint: m is " + std::to_string(m), "give a count >= 0");
  Array result = to_inexact(coefficients("polyint", p));
  Array constants = k ? atleast_1d(*k) : as_weak_as(result, lax::full({1}, 0, result.dtype()));
  if (constants.ndim() != 1 || !(constants.shape(0) == Dim(1) || constants.shape(0) == Dim(m)))
    throw ShapeError("polyint: constants of shape (" + constants.shape().to_string() + ")",
                     "give one, or " + std::to_string(m));
  constants = plait::broadcast_to(constants, Shape{m});
  for (int i = 0; i < m; ++i) {
    const Dim size = result.shape(0);
    const Array powers = lax::sub(number_of(size, default_int()), counting(size));
    const Array raised = divide(result, as_weak_as(result, astype(powers, result.dtype())));
    result = concatenate({raised, part(constants, 0, i, i + 1)});
  }
  return result;
}

Array numpy::poly(Operand seq_of_zeros) {
  const Array given = to_inexact(atleast_1d(seq_of_zeros));
  const bool is_matrix = given.ndim() == 2 && given.shape(0) == given.shape(1);
  if (given.ndim() != 1 && !is_matrix)
    throw ShapeError("poly: an array of shape (" + given.shape().to_string() + ")",
                     "give a vector of zeros, or a square matrix");
  const Array zeros = is_matrix ? linalg::eigvals(given) : given;
  Array result = as_weak_as(zeros, lax::full({1}, 1, zeros.dtype()));
  const std::int64_t count = known_size("poly", zeros);
  for (std::int64_t i = 0; i < count; ++i) {  // times x - zero
    const Array lowered = multiply(result, lax::index_in_dim(zeros, i, 0, false));
    result = lax::sub(lax::pad(result, constant(0, result), {{0, 1, 0}}),
                      lax::pad(lowered, constant(0, result), {{1, 0, 0}}));
  }
  return is_matrix && !is_complex(given.dtype()) ? real(result) : result;
}

// The eigenvalues of the companion matrix, whose characteristic polynomial p is.
Array numpy::roots(Operand p, bool strip_zeros) {
  Array q = to_inexact(coefficients("roots", p));
  Dim at_zero = 0;
  if (strip_zeros && !(q.shape(0) == Dim(0))) {
    const auto [first, last] = support_of(q);
    const Dim size = q.shape(0);
    at_zero = Dim(first) == size ? Dim(0) : size - Dim(last) - 1;
    q = Dim(first) == size ? part(q, 0, 0, 0) : part(q, 0, Dim(first), Dim(last) + 1);
  }
  const DType dtype = complex_dtype_of(q.dtype());
  const Dim degree = q.shape(0) - 1;
  const Array zeros =
      lax::convert_element_type(lax::full({at_zero}, 0, dtype), dtype, q.aval().weak);
  if (less_equal(degree, 0) == true) return zeros;
  const Array top = negative(divide(part(q, 0, 1, degree + 1), part(q, 0, 0, 1)));
  const Array below = as_weak_as(q, eye(degree - 1, degree, 0, q.dtype()));
  const Array companion = lax::concatenate({expand_dims(top, {0}), below}, 0);
  const Array values = lax::convert_element_type(linalg::eigvals(companion), dtype, q.aval().weak);
  return lax::concatenate({values, zeros}, 0);
}

numpy::PolynomialFit numpy::polynomial_fit(Operand x, Operand y, Dim deg,
                                           std::optional<double> rcond, const OptionalArray& w,
                                           bool cov) {
  if (less_equal(0, deg) == false)
    throw ValueError("polyfit: the degree is " + deg.to_string(), "give one >= 0");
  if (x.ndim() != 1 || (y.ndim() != 1 && y.ndim() != 2) || !(x.shape(0) == y.shape(0)))
    throw ShapeError("polyfit: x and y of shapes (" + x.shape().to_string() + ") and (" +
                         y.shape().to_string() + ")",
                     "give a vector, and one or more columns of its size");
  if (x.shape(0) == Dim(0)) throw ValueError("polyfit: no points", "give at least one");
  const Array values = floating_only("polyfit", x);
  const DType dtype = promote_types(values.dtype(), to_inexact(y).dtype());
  Array lhs = vander(astype(values, dtype), deg + 1), rhs = astype(to_inexact(y), dtype);
  if (w) {
    if (w->ndim() != 1 || !(w->shape(0) == x.shape(0)))
      throw ShapeError("polyfit: weights of shape (" + w->shape().to_string() + ")",
                       "give one for each point");
    lhs = multiply(lhs, expand_dims(*w, {1}));
    rhs = multiply(rhs, y.ndim() == 2 ? expand_dims(*w, {1}) : *w);
  }
  // Columns of one size are better conditioned.
  const Array scale = sqrt(sum(multiply(lhs, lhs), 0));
  const double epsilon = real_dtype_of(dtype) == DType::float64
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
  PolynomialFit fit;
  fit.rcond =
      rcond.value_or(epsilon * (x.shape(0).is_constant() ? double(x.shape(0).constant()) : 1.0));
  const linalg::LeastSquares solved = linalg::lstsq(divide(lhs, scale), rhs, fit.rcond);
  const Array unscaled = y.ndim() == 2 ? expand_dims(scale, {1}) : scale;
  fit.p = divide(solved.x, unscaled);
  fit.residuals = solved.residuals;
  fit.rank = solved.rank;
  fit.singular_values = solved.singular_values;
  if (cov) {
    const Array inverse = linalg::inv(matmul(transpose(lhs), lhs));
    const Dim freedom = x.shape(0) - deg - 1;
    const Array error = subtract(rhs, matmul(lhs, fit.p));
    const Array variance = divide(sum(multiply(error, error), 0), number_of(freedom, dtype));
    fit.covariance =
        y.ndim() == 2 ? multiply(expand_dims(inverse, {2}), variance) : multiply(inverse, variance);
  }
  return fit;
}

Array numpy::polyfit(Operand x, Operand y, Dim deg, std::optional<double> rcond,
                     const OptionalArray& w) {
  return polynomial_fit(x, y, deg, rcond, w).p;
}

namespace {

Argument polyfit_of(Operand x, Operand y, Dim deg, std::optional<double> rcond, bool full,
                    const numpy::OptionalArray& w, bool cov) {
  const numpy::PolynomialFit fit = numpy::polynomial_fit(x, y, deg, rcond, w, cov && !full);
  if (full)
    return Argument(Argument::List{fit.p, fit.residuals, fit.rank, fit.singular_values, fit.rcond});
  return cov ? Argument(Argument::List{fit.p, fit.covariance}) : Argument(fit.p);
}

[[maybe_unused]] const FunctionInfo* const polynomial_functions[] = {
    function(
        "numpy", "poly(seq_of_zeros)",
        "The coefficients, highest power first and 1, of the polynomial with these zeros; of a "
        "square matrix its characteristic polynomial.",
        &numpy::poly),
    function("numpy", "roots(p, *, strip_zeros=True)",
             "The zeros of a polynomial, of which these are the coefficients, highest power first: "
             "complex. Leading and trailing zeros are stripped, which needs the value of p; with "
             "strip_zeros=False, as under jit, p[0] must not be 0.",
             &numpy::roots),
    function("numpy", "polyadd(a1, a2)", "The sum of polynomials, as coefficients.",
             &numpy::polyadd),
    function("numpy", "polysub(a1, a2)", "The difference of polynomials, as coefficients.",
             &numpy::polysub),
    function("numpy", "polymul(a1, a2, *, trim_leading_zeros=False)",
             "The product of polynomials, as coefficients. trim_leading_zeros: of the factors, "
             "whose values must then be known.",
             &numpy::polymul),
    function("numpy", "polydiv(u, v, *, trim_leading_zeros=False)",
             "(quotient, remainder) of polynomials, as coefficients. The remainder has as many as "
             "u, unless leading zeros are trimmed, which needs its value.",
             &numpy::polydiv),
    function("numpy", "polyder(p, m=1)", "The derivative of order m, as coefficients.",
             &numpy::polyder),
    function(
        "numpy", "polyint(p, m=1, k=None)",
        "The m-fold integral, as coefficients; k: the constants, or one for all, by default 0.",
        &numpy::polyint),
    function("numpy", "polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False)",
             "The coefficients of the polynomial of degree deg nearest to y, a vector or columns, "
             "in the sum of squares, which w weights. full: with (residuals, rank, singular "
             "values, rcond) of lstsq. cov: with the covariance of the coefficients.",
             &polyfit_of),
    function("numpy", "trim_zeros(filt, trim='fb', axis=None)",
             "An array without the zeros in front ('f'), behind ('b') or at both ends of axes "
             "(None: all): of several axes the rows that are all zeros. Its value must be known, "
             "which it is not under jit.",
             &numpy::trim_zeros),
};

}  // namespace
}  // namespace plait
