// NumPy's functions: dtypes promote, shapes broadcast, and numbers count as arrays. Names,
// arguments and their order are NumPy's (and jax.numpy's where it adds one), the same in C++ and in
// Python. The documentation of each function is in the catalogue (catalogue.h); the functions that
// move elements are in numpy_shape.h.
//
// Functions of real numbers take integers and bools as float32. Sizes may be named.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/functions/numpy_array.h>
#include <plait/functions/numpy_shape.h>
#include <plait/functions/subscript.h>

namespace plait::numpy {

using OptionalArray = std::optional<Array>;
using OptionalDType = std::optional<DType>;

// --- Arithmetic ----------------------------------------------------------------------------------

Array add(Operand x1, Operand x2);
Array subtract(Operand x1, Operand x2);
Array multiply(Operand x1, Operand x2);
Array divide(Operand x1, Operand x2);
Array true_divide(Operand x1, Operand x2);
Array floor_divide(Operand x1, Operand x2);
Array remainder(Operand x1, Operand x2);
Array mod(Operand x1, Operand x2);
Array fmod(Operand x1, Operand x2);
std::pair<Array, Array> divmod(Operand x1, Operand x2);
Array power(Operand x1, Operand x2);
Array pow(Operand x1, Operand x2);
Array float_power(Operand x1, Operand x2);
Array maximum(Operand x1, Operand x2);
Array minimum(Operand x1, Operand x2);
Array fmax(Operand x1, Operand x2);
Array fmin(Operand x1, Operand x2);
Array negative(Operand x);
Array positive(Operand x);
Array abs(Operand x);
Array absolute(Operand x);
Array fabs(Operand x);
Array sign(Operand x);
Array square(Operand x);
Array reciprocal(Operand x);
Array clip(Operand a, const OptionalArray& min = {}, const OptionalArray& max = {});
Array heaviside(Operand x1, Operand x2);
Array nan_to_num(Operand x, double nan = 0.0, const std::optional<double>& posinf = {},
                 const std::optional<double>& neginf = {});

// --- Rounding ------------------------------------------------------------------------------------

Array floor(Operand x);
Array ceil(Operand x);
Array trunc(Operand x);
Array fix(Operand x);
Array rint(Operand x);
Array round(Operand a, int decimals = 0);
Array around(Operand a, int decimals = 0);

// --- Exponentials and logarithms -----------------------------------------------------------------

Array exp(Operand x);
Array exp2(Operand x);
Array expm1(Operand x);
Array log(Operand x);
Array log2(Operand x);
Array log10(Operand x);
Array log1p(Operand x);
Array logaddexp(Operand x1, Operand x2);
Array logaddexp2(Operand x1, Operand x2);
Array sqrt(Operand x);
Array cbrt(Operand x);
Array hypot(Operand x1, Operand x2);

// --- Trigonometry --------------------------------------------------------------------------------

Array sin(Operand x);
Array cos(Operand x);
Array tan(Operand x);
Array arcsin(Operand x);
Array arccos(Operand x);
Array arctan(Operand x);
Array arctan2(Operand x1, Operand x2);
Array sinh(Operand x);
Array cosh(Operand x);
Array tanh(Operand x);
Array arcsinh(Operand x);
Array arccosh(Operand x);
Array arctanh(Operand x);
Array asin(Operand x);
Array acos(Operand x);
Array atan(Operand x);
Array atan2(Operand x1, Operand x2);
Array asinh(Operand x);
Array acosh(Operand x);
Array atanh(Operand x);
Array sinc(Operand x);
Array degrees(Operand x);
Array radians(Operand x);
Array rad2deg(Operand x);
Array deg2rad(Operand x);

// --- Complex numbers -----------------------------------------------------------------------------

Array real(Operand val);
Array imag(Operand val);
Array conj(Operand x);
Array conjugate(Operand x);
Array angle(Operand z, bool deg = false);
Array isreal(Operand x);
Array iscomplex(Operand x);
bool isrealobj(Operand x);
bool iscomplexobj(Operand x);

// --- Bits, logic, comparison ---------------------------------------------------------------------

Array bitwise_and(Operand x1, Operand x2);
Array bitwise_or(Operand x1, Operand x2);
Array bitwise_xor(Operand x1, Operand x2);
Array bitwise_not(Operand x);
Array bitwise_invert(Operand x);
Array invert(Operand x);
Array left_shift(Operand x1, Operand x2);
Array bitwise_left_shift(Operand x1, Operand x2);
Array right_shift(Operand x1, Operand x2);
Array bitwise_right_shift(Operand x1, Operand x2);
Array logical_and(Operand x1, Operand x2);
Array logical_or(Operand x1, Operand x2);
Array logical_xor(Operand x1, Operand x2);
Array logical_not(Operand x);
Array equal(Operand x1, Operand x2);
Array not_equal(Operand x1, Operand x2);
Array less(Operand x1, Operand x2);
Array less_equal(Operand x1, Operand x2);
Array greater(Operand x1, Operand x2);
Array greater_equal(Operand x1, Operand x2);
Array isnan(Operand x);
Array isinf(Operand x);
Array isfinite(Operand x);
Array isposinf(Operand x);
Array isneginf(Operand x);
Array signbit(Operand x);
Array copysign(Operand x1, Operand x2);
Array nextafter(Operand x1, Operand x2);
Array isclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false);
Array allclose(Operand a, Operand b, double rtol = 1e-5, double atol = 1e-8,
               bool equal_nan = false);
Array array_equal(Operand a1, Operand a2, bool equal_nan = false);
Array where(Operand condition, Operand x, Operand y);

// --- Reductions ----------------------------------------------------------------------------------

Array sum(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
          const OptionalArray& initial = {}, const OptionalArray& where = {});
Array prod(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
           const OptionalArray& initial = {}, const OptionalArray& where = {});
Array max(Operand a, const Axes& axis = {}, bool keepdims = false,
          const OptionalArray& initial = {}, const OptionalArray& where = {});
Array min(Operand a, const Axes& axis = {}, bool keepdims = false,
          const OptionalArray& initial = {}, const OptionalArray& where = {});
Array amax(Operand a, const Axes& axis = {}, bool keepdims = false,
           const OptionalArray& initial = {}, const OptionalArray& where = {});
Array amin(Operand a, const Axes& axis = {}, bool keepdims = false,
           const OptionalArray& initial = {}, const OptionalArray& where = {});
Array any(Operand a, const Axes& axis = {}, bool keepdims = false, const OptionalArray& where = {});
Array all(Operand a, const Axes& axis = {}, bool keepdims = false, const OptionalArray& where = {});
Array mean(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
           const OptionalArray& where = {});
Array var(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, double ddof = 0,
          bool keepdims = false, const OptionalArray& where = {},
          std::optional<double> correction = {});
Array std(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, double ddof = 0,
          bool keepdims = false, const OptionalArray& where = {},
          std::optional<double> correction = {});
Array average(Operand a, const Axes& axis = {}, const OptionalArray& weights = {},
              bool keepdims = false);
Array ptp(Operand a, const Axes& axis = {}, bool keepdims = false);
Array count_nonzero(Operand a, const Axes& axis = {}, bool keepdims = false);
Array argmax(Operand a, std::optional<int> axis = {}, bool keepdims = false);
Array argmin(Operand a, std::optional<int> axis = {}, bool keepdims = false);
Array nansum(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
             const OptionalArray& initial = {}, const OptionalArray& where = {});
Array nanprod(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
              const OptionalArray& initial = {}, const OptionalArray& where = {});
Array nanmean(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, bool keepdims = false,
              const OptionalArray& where = {});
Array nanvar(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, double ddof = 0,
             bool keepdims = false, const OptionalArray& where = {});
Array nanstd(Operand a, const Axes& axis = {}, OptionalDType dtype = {}, double ddof = 0,
             bool keepdims = false, const OptionalArray& where = {});
Array nanmax(Operand a, const Axes& axis = {}, bool keepdims = false,
             const OptionalArray& initial = {}, const OptionalArray& where = {});
Array nanmin(Operand a, const Axes& axis = {}, bool keepdims = false,
             const OptionalArray& initial = {}, const OptionalArray& where = {});
Array nanargmax(Operand a, std::optional<int> axis = {}, bool keepdims = false);
Array nanargmin(Operand a, std::optional<int> axis = {}, bool keepdims = false);
Array cumsum(Operand a, std::optional<int> axis = {}, OptionalDType dtype = {});
Array cumprod(Operand a, std::optional<int> axis = {}, OptionalDType dtype = {});
Array cumulative_sum(Operand x, std::optional<int> axis = {}, OptionalDType dtype = {},
                     bool include_initial = false);
Array cumulative_prod(Operand x, std::optional<int> axis = {}, OptionalDType dtype = {},
                      bool include_initial = false);
Array nancumsum(Operand a, std::optional<int> axis = {}, OptionalDType dtype = {});
Array nancumprod(Operand a, std::optional<int> axis = {}, OptionalDType dtype = {});

// --- Order and statistics ------------------------------------------------------------------------

// method: linear, lower, higher, nearest or midpoint.
Array quantile(Operand a, Operand q, const Axes& axis = {}, const std::string& method = "linear",
               bool keepdims = false);
Array percentile(Operand a, Operand q, const Axes& axis = {}, const std::string& method = "linear",
                 bool keepdims = false);
Array median(Operand a, const Axes& axis = {}, bool keepdims = false);
Array nanquantile(Operand a, Operand q, const Axes& axis = {}, const std::string& method = "linear",
                  bool keepdims = false);
Array nanpercentile(Operand a, Operand q, const Axes& axis = {},
                    const std::string& method = "linear", bool keepdims = false);
Array nanmedian(Operand a, const Axes& axis = {}, bool keepdims = false);
Array sort(Operand a, std::optional<int> axis = -1, bool stable = true, bool descending = false);
Array argsort(Operand a, std::optional<int> axis = -1, bool stable = true, bool descending = false);
Array lexsort(Operands keys, int axis = -1);
Array searchsorted(Operand a, Operand v, const std::string& side = "left",
                   const OptionalArray& sorter = {});
Array digitize(Operand x, Operand bins, bool right = false);
Array bincount(Operand x, const OptionalArray& weights = {}, int minlength = 0,
               std::optional<Dim> length = {});
std::pair<Array, Array> histogram(Operand a, Operand bins = 10,
                                  const std::optional<Arrays>& range = {},
                                  const OptionalArray& weights = {}, bool density = false);
Array interp(Operand x, Operand xp, Operand fp, const OptionalArray& left = {},
             const OptionalArray& right = {});
Array diff(Operand a, int n = 1, int axis = -1, const OptionalArray& prepend = {},
           const OptionalArray& append = {});
Array corrcoef(Operand x);
Array cov(Operand m, bool rowvar = true, double ddof = 1);

// --- Contraction ---------------------------------------------------------------------------------

Array dot(Operand a, Operand b, OptionalDType preferred_element_type = {});
Array vdot(Operand a, Operand b, OptionalDType preferred_element_type = {});
Array vecdot(Operand x1, Operand x2, int axis = -1, OptionalDType preferred_element_type = {});
Array inner(Operand a, Operand b, OptionalDType preferred_element_type = {});
Array outer(Operand a, Operand b);
Array matmul(Operand a, Operand b, OptionalDType preferred_element_type = {});
Array matvec(Operand x1, Operand x2);
Array vecmat(Operand x1, Operand x2);
Array tensordot(Operand a, Operand b, int axes = 2, OptionalDType preferred_element_type = {});
Array tensordot(Operand a, Operand b, const std::vector<int>& a_axes,
                const std::vector<int>& b_axes, OptionalDType preferred_element_type = {});
Array einsum(const std::string& subscripts, Operands operands,
             OptionalDType preferred_element_type = {});
Array kron(Operand a, Operand b);
Array cross(Operand a, Operand b, int axis = -1);
Array convolve(Operand a, Operand v, const std::string& mode = "full",
               OptionalDType preferred_element_type = {});
Array correlate(Operand a, Operand v, const std::string& mode = "valid",
                OptionalDType preferred_element_type = {});
Array trace(Operand a, int offset = 0, int axis1 = 0, int axis2 = 1, OptionalDType dtype = {});
Array polyval(Operand p, Operand x);
Array trapezoid(Operand y, const OptionalArray& x = {}, Operand dx = 1.0, int axis = -1);
Array vander(Operand x, std::optional<Dim> N = {}, bool increasing = false);

}  // namespace plait::numpy
