// plait.numpy: covariances and correlations, interpolation on a circle.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_analysis.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// Variables as the rows of a matrix, of a floating or complex dtype.
Array variables(std::string_view function, const Array& m, bool rowvar,
                std::optional<DType> dtype) {
  if (m.ndim() > 2)
    throw ShapeError(std::string(function) + ": an array of shape (" + m.shape().to_string() + ")",
                     "give a matrix of variables, or a vector");
  const Array x = numpy::atleast_2d(dtype ? astype(m, *dtype) : to_inexact(m));
  return rowvar || m.ndim() < 2 ? x : numpy::transpose(x);
}
void require_weights(const char* name, const Array& weights, Dim count) {
  if (weights.ndim() != 1 || !(weights.shape(0) == count))
    throw ShapeError(
        std::string("cov: ") + name + " of shape (" + weights.shape().to_string() + ")",
        "give one for each of " + count.to_string() + " observations");
}

}  // namespace

Array numpy::cov(Operand m, const OptionalArray& y, bool rowvar, bool bias,
                 std::optional<double> ddof, const OptionalArray& fweights,
                 const OptionalArray& aweights, OptionalDType dtype) {
  Array x = variables("cov", m, rowvar, dtype);
  if (y) x = concatenate({x, variables("cov", *y, rowvar, dtype)}, 0);
  const Dim count = x.shape(1);
  const double freedom = ddof.value_or(bias ? 0 : 1);
  OptionalArray weights;
  if (fweights) {
    require_weights("fweights", *fweights, count);
    if (!is_integer(fweights->dtype()))
      throw DtypeError("cov: fweights of dtype " + std::string(name_of(fweights->dtype())),
                       "give integers, or aweights");
    weights = *fweights;
  }
  if (aweights) {
    require_weights("aweights", *aweights, count);
    weights = weights ? multiply(*weights, *aweights) : *aweights;
  }
  if (weights) weights = astype(*weights, real_dtype_of(x.dtype()));
  const Array centered =
      subtract(x, weights ? expand_dims(average(x, 1, *weights), {1}) : mean(x, 1, {}, true));
  const Array counted = weights ? multiply(centered, *weights) : centered;
  const Array products = matmul(counted, conj(transpose(centered)));
  Array divisor;
  if (!weights) {
    divisor = lax::sub(as_weak_as(x, number_of(count, x.dtype())), constant(freedom, x));
    if (count.is_constant() && double(count.constant()) < freedom) divisor = constant(0, x);
  } else {
    const Array total = sum(*weights);
    const Array lost = aweights && freedom != 0 ? divide(sum(multiply(*weights, *aweights)), total)
                                                : constant(1, total);
    divisor = subtract(total, multiply(lost, constant(freedom, lost)));
  }
  const Array result = divide(products, divisor);
  return x.shape(0) == Dim(1) ? lax::reshape(result, {}) : result;
}
Array numpy::cov(Operand m, bool rowvar, double ddof) {
  return cov(m, std::nullopt, rowvar, false, ddof);
}

Array numpy::corrcoef(Operand x, const OptionalArray& y, bool rowvar, OptionalDType dtype) {
  const Array c = cov(x, y, rowvar, false, {}, {}, {}, dtype);
  if (c.ndim() == 0) return divide(c, c);
  const Array deviation = sqrt(real(diagonal(c)));
  const Array result = divide(divide(c, expand_dims(deviation, {1})), deviation);
  if (!is_complex(result.dtype())) return clip(result, -1, 1);
  return lax::complex(clip(real(result), -1, 1), clip(imag(result), -1, 1));
}
Array numpy::corrcoef(Operand x) { return corrcoef(x, std::nullopt); }

Array numpy::interp(Operand x, Operand xp, Operand fp, const OptionalArray& left,
                    const OptionalArray& right, const OptionalArray& period) {
  if (!period) return interp(x, xp, fp, left, right);
  if (period->ndim() != 0 || xp.ndim() != 1 || !(xp.shape() == fp.shape()))
    throw ShapeError("interp: points of shapes (" + xp.shape().to_string() + ") and (" +
                         fp.shape().to_string() + ") with a period of shape (" +
                         period->shape().to_string() + ")",
                     "give two vectors of equal size, and a number");
  // The last point before and the first one after the period close the circle.
  const Array points = remainder(xp, *period), order = argsort(points);
  const Array grid = take(points, order, 0, "clip"), values = take(fp, order, 0, "clip");
  const Dim n = grid.shape(0);
  const Array around = concatenate(
      {subtract(part(grid, 0, n - 1, n), *period), grid, add(part(grid, 0, 0, 1), *period)});
  const Array closed = concatenate({part(values, 0, n - 1, n), values, part(values, 0, 0, 1)});
  return interp(remainder(x, *period), around, closed);
}

namespace {

Array cov_of(Operand m, const std::optional<Array>& y, bool rowvar, bool bias,
             std::optional<double> ddof, const std::optional<Array>& fweights,
             const std::optional<Array>& aweights, std::optional<DType> dtype) {
  return numpy::cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype);
}
Array corrcoef_of(Operand x, const std::optional<Array>& y, bool rowvar,
                  std::optional<DType> dtype) {
  return numpy::corrcoef(x, y, rowvar, dtype);
}
Array interp_of(Operand x, Operand xp, Operand fp, const std::optional<Array>& left,
                const std::optional<Array>& right, const std::optional<Array>& period) {
  return numpy::interp(x, xp, fp, left, right, period);
}

[[maybe_unused]] const FunctionInfo* const correlation_functions[] = {
    function("numpy",
             "cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, "
             "dtype=None)",
             "The covariances of variables, which are rows of observations (columns with "
             "rowvar=False), those of m and then those of y. fweights says how often each "
             "observation was made, aweights how much it counts. Divided by their number less "
             "ddof, by default 1, or 0 with bias.",
             &cov_of),
    function("numpy", "corrcoef(x, y=None, rowvar=True, dtype=None)",
             "The correlations of variables, which are rows of observations, or columns with "
             "rowvar=False.",
             &corrcoef_of),
    function("numpy", "interp(x, xp, fp, left=None, right=None, period=None)",
             "The piecewise linear function through the points (xp, fp), xp rising, at x; left and "
             "right of them fp[0] and fp[-1], or as given. With a period, on a circle: xp in any "
             "order, and left and right have no say.",
             &interp_of),
};

}  // namespace
}  // namespace plait
