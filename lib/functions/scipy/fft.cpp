// plait.scipy.fft: cosine transforms, by the Fourier transform of the same length. J. Makhoul, "A
// fast cosine transform in one and two dimensions" (1980).
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/scipy_fft.h>
#include <plait/primitives/fourier.h>

#include <cmath>

#include "functions/functions.h"
#include "functions/numpy/fourier_arguments.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using namespace fourier_arguments;  // NOLINT

Array along_axis(const Array& vector, const Array& x, int axis) {
  return lax::broadcast_in_dim(vector, x.shape(), std::vector<int>{axis});
}

// cos and sin of pi k / (2 n) for k below n, times numbers.
struct Turns {
  Array cos, sin;
};
Turns turns_along(const Array& x, int axis) {
  const Dim n = x.shape(axis);
  const Array angle = lax::div(lax::mul(astype(counting(n), x.dtype()), constant(M_PI / 2, x)),
                               number_of(n, x.dtype()));
  return {along_axis(lax::cos(angle), x, axis), along_axis(lax::sin(angle), x, axis)};
}

// What an orthogonal transform has beside the plain one: sqrt(1 / (4 n)) at 0, sqrt(1 / (2 n))
// elsewhere.
Array ortho_factors(const Array& x, int axis) {
  const Dim n = x.shape(axis);
  const Array count = number_of(n, x.dtype());
  const Array at_0 = lax::sqrt(lax::div(constant(0.25, x), count)),
              elsewhere = lax::sqrt(lax::div(constant(0.5, x), count));
  const Array is_0 = lax::eq(counting(n), Array::literal(0, default_int()));
  return along_axis(
      lax::select(is_0, broadcast_to(at_0, Shape{n}), broadcast_to(elsewhere, Shape{n})), x, axis);
}

// Even places in order, then odd ones backwards: a cosine transform is the real part of the turned
// Fourier transform of that.
Array second_kind(const Array& x, int axis) {
  const Dim n = x.shape(axis);
  const Array order = lax::concatenate(
      {part(x, axis, 0, n, 2), lax::rev(part(x, axis, 1, n, 2), std::vector<int>{axis})}, axis);
  const Array spectrum =
      lax::fft_along(lax::complex(order, lax::zeros_like(order.aval())), "fft", axis, n);
  const auto [cos, sin] = turns_along(x, axis);
  const Array turned =
      lax::add(lax::mul(lax::real(spectrum), cos), lax::mul(lax::imag(spectrum), sin));
  return lax::mul(turned, constant(2, x));
}

Array inverse_of_second_kind(const Array& x, int axis) {
  const Dim n = x.shape(axis), half = floor_divide(n + 1, 2);
  // x[n - k], and 0 for k = 0.
  std::vector<lax::Padding> by_one(std::size_t(x.ndim()));
  by_one[std::size_t(axis)].low = 1;
  const Array mirrored = lax::pad(lax::rev(part(x, axis, 1, n), std::vector<int>{axis}),
                                  Array::literal(0, x.dtype()), by_one);
  const auto [cos, sin] = turns_along(x, axis);
  const Array re = lax::add(lax::mul(x, cos), lax::mul(mirrored, sin)),
              im = lax::sub(lax::mul(x, sin), lax::mul(mirrored, cos));
  const Array order =
      lax::mul(lax::real(lax::fft_along(lax::complex(re, im), "ifft", axis, n)), constant(0.5, x));
  // Back to their places: the first ones to even ones, the last ones to odd ones.
  const auto spread = [&](const Array& some, Dim first) {
    std::vector<lax::Padding> padding(std::size_t(x.ndim()));
    const Dim end = first + Dim(2) * (some.shape(axis) - 1) + 1;
    padding[std::size_t(axis)] = {first, n - end, 1};
    return lax::pad(some, Array::literal(0, x.dtype()), padding);
  };
  const Array evens = spread(part(order, axis, 0, half), 0);
  if (n == Dim(1)) return evens;
  return lax::add(evens, spread(lax::rev(part(order, axis, half, n), std::vector<int>{axis}), 1));
}

Array cosine_transform(const char* function, const Array& given, int type, bool is_inverse,
                       const Points& n, int axis, const Norm& norm) {
  if (type != 2 && type != 3)
    throw ValueError(std::string(function) + ": type " + std::to_string(type) +
                         " of the cosine transforms is not there",
                     "use type 2, or its inverse, type 3");
  const int normal = normalize_axis(axis, given.ndim(), function);
  Array x = floating_only(function, to_inexact(given));
  if (is_given(n)) x = fitted(x, normal, *n);
  const Dim size = x.shape(normal);
  if (size.is_constant() && size.constant() < 1)
    throw ValueError(std::string(function) + ": a transform of 0 points",
                     "transform at least one point");
  if (x.dtype() == DType::float16 || x.dtype() == DType::bfloat16) x = astype(x, DType::float32);
  const Factor factor = factor_of(function, norm);
  const bool is_second = (type == 2) != is_inverse;
  Array result;
  if (factor == Factor::ortho)
    return is_second ? lax::mul(second_kind(x, normal), ortho_factors(x, normal))
                     : inverse_of_second_kind(lax::div(x, ortho_factors(x, normal)), normal);
  // The pair has the factor 1 / (2 n), in the inverse, or in the transform where norm says so.
  result = is_second ? second_kind(x, normal) : inverse_of_second_kind(x, normal);
  const Array count = number_of(Dim(2) * size, x.dtype());
  const bool wants_factor = is_inverse != (factor == Factor::forward);
  if (is_second == !wants_factor) return result;
  return wants_factor ? lax::div(result, count) : lax::mul(result, count);
}

Array over_axes(const char* function, Operand x, int type, bool is_inverse, const Points2& s,
                const Axes& axes, const Norm& norm) {
  Array result = x;
  for (const auto& [axis, points] : axes_of(function, result, s, axes))
    result = cosine_transform(function, result, type, is_inverse, points, axis, norm);
  return result;
}

}  // namespace

namespace scipy {

Array fft::dct(Operand x, int type, const Points& n, int axis, const Norm& norm) {
  return cosine_transform("dct", x, type, false, n, axis, norm);
}
Array fft::idct(Operand x, int type, const Points& n, int axis, const Norm& norm) {
  return cosine_transform("idct", x, type, true, n, axis, norm);
}
Array fft::dctn(Operand x, int type, const Points2& s, const Axes& axes, const Norm& norm) {
  return over_axes("dctn", x, type, false, s, axes, norm);
}
Array fft::idctn(Operand x, int type, const Points2& s, const Axes& axes, const Norm& norm) {
  return over_axes("idctn", x, type, true, s, axes, norm);
}

namespace {

[[maybe_unused]] const FunctionInfo* const fft_functions[] = {
    function(
        "scipy.fft", "dct(x, type=2, n=None, axis=-1, norm=None)",
        "The cosine transform 2 sum_j x[j] cos(pi k (2 j + 1) / (2 n)) of real numbers along an "
        "axis; type 3 is its inverse without the factor 1 / (2 n). n: the number of points, to "
        "which x is cut or padded with zeros. norm: 'backward', 'ortho' or 'forward'.",
        &fft::dct),
    function("scipy.fft", "idct(x, type=2, n=None, axis=-1, norm=None)",
             "The inverse of dct of the same type and norm.", &fft::idct),
    function("scipy.fft", "dctn(x, type=2, s=None, axes=None, norm=None)",
             "dct over several axes: all, or the last ones that s gives points for.", &fft::dctn),
    function("scipy.fft", "idctn(x, type=2, s=None, axes=None, norm=None)", "The inverse of dctn.",
             &fft::idctn),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
