// plait.scipy.linalg: matrices that a vector or a size determines.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/lax_numbers.h>
#include <plait/functions/scipy_matrices.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "functions/functions.h"
#include "primitives/linalg/matrices.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

Array vector_of(std::string_view name, const Array& x, int least = 1) {
  if (x.ndim() < 1)
    throw ShapeError(std::string(name) + ": an array of shape () is no vector",
                     "give an array of one or more axes");
  const Dim size = x.shape(x.ndim() - 1);
  if (size.is_constant() && size.constant() < least)
    throw ShapeError(std::string(name) + ": a vector of " + size.to_string() + " elements",
                     "give at least " + std::to_string(least));
  return x;
}
Dim size_of(const Array& x) { return x.shape(x.ndim() - 1); }

void require_positive(std::string_view name, std::int64_t n) {
  if (n < 1)
    throw ValueError(std::string(name) + ": n is " + std::to_string(n), "give a positive size");
}

Array places(const Dim& rows, const Dim& columns, int axis, DType dtype = DType::int32) {
  return lax::iota(dtype, {rows, columns}, axis);
}

// The values at these places of each vector.
Array chosen(const Array& vectors, const Array& places) {
  return numpy::take(vectors, places, vectors.ndim() - 1);
}

// Two vectors, in one dtype and of one batch.
std::pair<Array, Array> promoted_vectors(std::string_view name, const Array& x, const Array& y) {
  Arrays both{x, y};
  promote_dtypes(both, name);
  auto batch_of = [](const Array& x) { return Shape(x.shape().begin(), x.shape().end() - 1); };
  const Shape batches[] = {batch_of(x), batch_of(y)};
  const Shape batch = broadcast_shapes(batches, name);
  for (Array& each : both) {
    Shape shape = batch;
    shape.push_back(size_of(each));
    each = plait::broadcast_to(each, shape);
  }
  return {both[0], both[1]};
}

Array after_first(const Array& x) { return part(x, x.ndim() - 1, 1, size_of(x)); }

// The matrices with these first rows, and these numbers below the diagonal.
Array with_subdiagonal(std::string_view name, const Array& row, const Array& below) {
  if (!(size_of(row) == size_of(below) + 1))
    throw ShapeError(std::string(name) + ": the row and the diagonal have " +
                         size_of(row).to_string() + " and " + size_of(below).to_string() +
                         " elements",
                     "give one element fewer in the diagonal");
  const auto [first, rest] = promoted_vectors(name, row, below);
  const Dim n = size_of(first);
  Shape shape = first.shape();
  shape.push_back(n);
  const Array i = places(n, n, 0), j = places(n, n, 1);
  std::vector<lax::Padding> padding(std::size_t(rest.ndim()));
  padding.back() = {0, 1, 0};
  const Array padded = lax::pad(rest, constant(0, rest), padding);
  const auto where = [&](const Array& here, const Array& vector, const Array& otherwise) {
    return Array(lax::select(plait::broadcast_to(here, shape),
                             plait::broadcast_to(matrices::as_rows(vector), shape), otherwise));
  };
  const Array zeros = as_weak_as(first, lax::full(shape, 0, first.dtype()));
  const Array subdiagonal = lax::eq(i, lax::add(j, constant(1, j)));
  return where(lax::eq(i, constant(0, i)), first, where(subdiagonal, padded, zeros));
}

// A matrix of known numbers in the default float.
Array known_matrix(std::int64_t n, const std::function<double(std::int64_t, std::int64_t)>& value) {
  Buffer buffer = Buffer::empty(DType::float64, {n, n});
  auto* const numbers = static_cast<double*>(buffer.mutable_data());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) numbers[i * n + j] = value(i, j);
  return astype(Array(std::move(buffer)), default_float());
}

double binomial(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  double product = 1;
  for (std::int64_t i = 1; i <= std::min(k, n - k); ++i)
    product = product * double(n - std::min(k, n - k) + i) / double(i);
  return product;
}

enum class Kind { symmetric, lower, upper };
Kind pascal_kind(std::string_view name, const std::optional<std::string>& kind) {
  if (!kind || *kind == "symmetric") return Kind::symmetric;
  if (*kind == "lower") return Kind::lower;
  if (*kind == "upper") return Kind::upper;
  throw ValueError(std::string(name) + ": kind is '" + *kind + "'",
                   "give 'symmetric', 'lower' or 'upper'");
}

}  // namespace

namespace scipy::linalg {

Array toeplitz(Operand c, const std::optional<Array>& r) {
  const Array column = vector_of("toeplitz", c);
  const Array row =
      r ? vector_of("toeplitz", *r) : (is_complex(c.dtype()) ? Array(lax::conj(c)) : column);
  const auto [down, across] = promoted_vectors("toeplitz", column, row);
  const int last = down.ndim() - 1;
  const Array later = lax::rev(after_first(across), std::vector<int>{last});
  const Array values = lax::concatenate({later, down}, last);
  const Dim n = size_of(down), m = size_of(across);
  const Array place =
      lax::add(lax::sub(places(n, m, 0), places(n, m, 1)), number_of(m - 1, DType::int32));
  return chosen(values, place);
}

Array hankel(Operand c, const std::optional<Array>& r) {
  const Array column = vector_of("hankel", c);
  const Array row = r ? vector_of("hankel", *r) : Array(lax::zeros_like(column.aval()));
  const auto [down, across] = promoted_vectors("hankel", column, row);
  const Array values = lax::concatenate({down, after_first(across)}, down.ndim() - 1);
  const Dim n = size_of(down), m = size_of(across);
  return chosen(values, lax::add(places(n, m, 0), places(n, m, 1)));
}

Array circulant(Operand c) {
  const Array x = vector_of("circulant", c);
  const Dim n = size_of(x);
  const Array size = number_of(n, DType::int32);
  const Array shift = lax::add(lax::sub(places(n, n, 0), places(n, n, 1)), size);
  return chosen(x, lax::rem(shift, size));
}

Array convolution_matrix(Operand a, Dim n, const std::string& mode) {
  const Array x = vector_of("convolution_matrix", a);
  if (n.is_constant()) require_positive("convolution_matrix", n.constant());
  const Dim m = size_of(x), rows = m + n - 1, least = minimum(m, n);
  Dim first = 0, count = rows;
  if (mode == "same") {
    first = floor_divide(least - 1, 2);
    count = maximum(m, n);
  } else if (mode == "valid") {
    first = least - 1;
    count = maximum(m, n) - least + 1;
  } else if (mode != "full") {
    throw ValueError("convolution_matrix: mode is '" + mode + "'",
                     "give 'full', 'same' or 'valid'");
  }
  // Element (i, j) is x[i - j]; zeros stand before and behind x.
  std::vector<lax::Padding> padding(std::size_t(x.ndim()));
  padding.back() = {n - 1, n - 1, 0};
  const Array padded = lax::pad(x, constant(0, x), padding);
  const Array offset = number_of(n - 1 + first, DType::int32);
  const Array place = lax::add(lax::sub(places(count, n, 0), places(count, n, 1)), offset);
  return chosen(padded, place);
}

Array companion(Operand a) {
  const Array x = to_inexact(vector_of("companion", a, 2));
  const int last = x.ndim() - 1;
  const Array first = part(x, last, 0, 1), rest = after_first(x);
  const Array row = lax::neg(lax::div(rest, plait::broadcast_to(first, rest.shape())));
  return with_subdiagonal("companion", row, filled(1, after_first(row)));
}

Array fiedler(Operand a) {
  const Array x = vector_of("fiedler", a, 0);
  return lax::abs(numpy::subtract(matrices::as_columns(x), matrices::as_rows(x)));
}

Array fiedler_companion(Operand a) {
  const Array x = to_inexact(vector_of("fiedler_companion", a));
  const Dim size = size_of(x);
  if (!size.is_constant())
    throw ShapeError("fiedler_companion: the places depend on the size, " + size.to_string(),
                     "give a vector of a known size");
  const std::int64_t n = size.constant() - 1;
  // Place 0 holds 0, place 1 holds 1, and place i + 2 holds -a[i] / a[0].
  Buffer buffer = Buffer::empty(DType::int32, {n, n});
  auto* const place = static_cast<std::int32_t*>(buffer.mutable_data());
  std::fill_n(place, n * n, 0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t even = i - i % 2;
    if (i % 2 == 0) {
      if (i + 1 < n) place[i * n + i + 1] = std::int32_t(i + 2 + 2);
      if (i + 2 < n) place[i * n + i + 2] = 1;
      if (i > 0) place[i * n + i - 1] = std::int32_t(i + 1 + 2);
    } else if (even > 0) {
      place[i * n + i - 2] = 1;
    }
  }
  if (n > 0) place[0] = 3;
  if (n > 1) place[n] = 1;
  const int last = x.ndim() - 1;
  const Array first = part(x, last, 0, 1);
  const Array scaled = lax::neg(lax::div(x, plait::broadcast_to(first, x.shape())));
  std::vector<lax::Padding> padding(std::size_t(x.ndim()));
  padding.back() = {1, 0, 0};
  const Array with_one = lax::pad(scaled, constant(1, x), padding);
  return chosen(lax::pad(with_one, constant(0, x), padding), Array(std::move(buffer)));
}

Array leslie(Operand f, Operand s) {
  return with_subdiagonal("leslie", vector_of("leslie", f, 2), vector_of("leslie", s));
}

Array dft(Dim n, const std::optional<std::string>& scale, std::optional<DType> dtype) {
  if (scale && *scale != "sqrtn" && *scale != "n")
    throw ValueError("dft: scale is '" + *scale + "'", "give None, 'sqrtn' or 'n'");
  const DType complex = dtype.value_or(complex_dtype_of(default_float()));
  if (!is_complex(complex))
    throw DtypeError("dft: dtype " + std::string(name_of(complex)) + " is not complex",
                     "give complex64 or complex128");
  // The angle of a product that is reduced modulo n first.
  const Array size = number_of(n, DType::int64);
  const Array product = lax::mul(places(n, n, 0, DType::int64), places(n, n, 1, DType::int64));
  const Array turns = lax::convert_element_type(lax::rem(product, size), DType::float64);
  const Array wide = number_of(n, DType::float64);
  const Array angle = lax::div(lax::mul(turns, constant(-2 * M_PI, turns)), wide);
  const Array factor = !scale          ? constant(1, wide)
                       : *scale == "n" ? Array(lax::div(constant(1, wide), wide))
                                       : Array(lax::div(constant(1, wide), lax::sqrt(wide)));
  const auto narrow = [&](const Array& x) {
    return lax::convert_element_type(lax::mul(x, factor), real_dtype_of(complex));
  };
  return lax::complex(narrow(lax::cos(angle)), narrow(lax::sin(angle)));
}

Array hadamard(int n, std::optional<DType> dtype) {
  if (n < 1 || (n & (n - 1)) != 0)
    throw ValueError("hadamard: n is " + std::to_string(n), "give a power of 2");
  const Array both = lax::bitwise_and(places(n, n, 0), places(n, n, 1));
  const Array odd = lax::bitwise_and(lax::population_count(both), constant(1, both));
  const Array signs = lax::sub(constant(1, odd), lax::mul(constant(2, odd), odd));
  return astype(signs, dtype.value_or(default_int()));
}

Array helmert(Dim n, bool full) {
  if (n.is_constant()) require_positive("helmert", n.constant());
  const Array i = lax::convert_element_type(places(n, n, 0), default_float()),
              j = lax::convert_element_type(places(n, n, 1), default_float());
  const Array one = constant(1, i), zeros = filled(0, i);
  const Array length = lax::sqrt(lax::mul(i, lax::add(i, one)));
  const Array safe = lax::select(lax::eq(i, zeros), filled(1, i), length);
  const Array below = lax::div(
      lax::select(lax::lt(j, i), filled(1, i), lax::select(lax::eq(j, i), lax::neg(i), zeros)),
      safe);
  const Array first = plait::broadcast_to(
      lax::div(constant(1, i), lax::sqrt(number_of(n, default_float()))), i.shape());
  const Array all = lax::select(lax::eq(i, zeros), first, below);
  return full ? all : part(all, 0, 1, n);
}

Array hilbert(Dim n) {
  const Array sum = lax::add(places(n, n, 0), places(n, n, 1));
  const Array divisor = lax::convert_element_type(lax::add(sum, constant(1, sum)), default_float());
  return lax::div(constant(1, divisor), divisor);
}

Array invhilbert(int n) {
  require_positive("invhilbert", n);
  return known_matrix(n, [n](std::int64_t i, std::int64_t j) {
    const double sign = (i + j) % 2 ? -1 : 1, middle = binomial(i + j, i);
    return sign * double(i + j + 1) * binomial(n + i, n - j - 1) * binomial(n + j, n - i - 1) *
           middle * middle;
  });
}

Array pascal(int n, const std::optional<std::string>& kind) {
  const Kind which = pascal_kind("pascal", kind);
  require_positive("pascal", n);
  return known_matrix(n, [which](std::int64_t i, std::int64_t j) {
    return which == Kind::symmetric ? binomial(i + j, i)
           : which == Kind::lower   ? binomial(i, j)
                                    : binomial(j, i);
  });
}

Array invpascal(int n, const std::optional<std::string>& kind) {
  const Kind which = pascal_kind("invpascal", kind);
  require_positive("invpascal", n);
  return known_matrix(n, [which, n](std::int64_t i, std::int64_t j) {
    const double sign = (i + j) % 2 ? -1 : 1;
    if (which != Kind::symmetric)
      return sign * (which == Kind::lower ? binomial(i, j) : binomial(j, i));
    double sum = 0;
    for (std::int64_t k = std::max(i, j); k < n; ++k) sum += binomial(k, i) * binomial(k, j);
    return sign * sum;
  });
}

namespace {

[[maybe_unused]] const FunctionInfo* const special_matrix_functions[] = {
    function("scipy.linalg", "toeplitz(c, r=None)",
             "The matrices with first columns c and first rows r, whose diagonals are equal: "
             "element (i, j) is c[i - j], and r[j - i] above the diagonal; r[0] is not read. r is "
             "conj(c) by default. Vectors are the last axes.",
             &toeplitz),
    function("scipy.linalg", "hankel(c, r=None)",
             "The matrices with first columns c and last rows r, whose antidiagonals are equal; "
             "r[0] is not read. r is zeros by default.",
             &hankel),
    function("scipy.linalg", "circulant(c)",
             "The square matrices with first columns c, each column the one before it turned by "
             "one element.",
             &circulant),
    function("scipy.linalg", "convolution_matrix(a, n, mode='full')",
             "The matrix whose product with a vector of n elements is its convolution with a; mode "
             "is 'full', 'same' or 'valid'.",
             &convolution_matrix),
    function("scipy.linalg", "companion(a)",
             "The companion matrices of polynomials with coefficients a, highest power first.",
             &companion),
    function("scipy.linalg", "fiedler(a)", "The matrices of |a[i] - a[j]|.", &fiedler),
    function("scipy.linalg", "fiedler_companion(a)",
             "The companion matrices of polynomials with five diagonals: Fiedler's form.",
             &fiedler_companion),
    function("scipy.linalg", "leslie(f, s)",
             "The matrices with first rows f and s below the diagonal.", &leslie),
    function("scipy.linalg", "dft(n, scale=None, *, dtype=None)",
             "The matrix of the discrete Fourier transform of n points, exp(-2 pi i j k / n), "
             "divided by sqrt(n) for scale 'sqrtn' and by n for 'n'. complex64 by default.",
             &dft),
    function("scipy.linalg", "hadamard(n, dtype=None)",
             "Sylvester's matrix of 1 and -1 with orthogonal rows; n is a power of 2. An integer "
             "matrix by default.",
             &hadamard),
    function("scipy.linalg", "helmert(n, full=False)",
             "The n - 1 orthonormal contrasts of n numbers, as rows; full adds the mean's row "
             "before them.",
             &helmert),
    function("scipy.linalg", "hilbert(n)", "The matrix of 1 / (i + j + 1).", &hilbert),
    function("scipy.linalg", "invhilbert(n)",
             "The inverse of hilbert(n), from binomial coefficients.", &invhilbert),
    function("scipy.linalg", "pascal(n, kind=None)",
             "The matrix of binomial coefficients (i + j over i); kind 'lower': its lower "
             "triangular factor (i over j), 'upper': that transposed, 'symmetric': the default.",
             &pascal),
    function("scipy.linalg", "invpascal(n, kind=None)",
             "The inverse of pascal(n, kind), from binomial coefficients.", &invpascal),
};

}  // namespace
}  // namespace scipy::linalg
}  // namespace plait
