// plait.scipy.special.wofz: Faddeeva's function, by Weideman's rational series.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/special.h"

#include <plait/functions/lax.h>
#include <plait/functions/scipy.h>

#include <vector>

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

constexpr int num_terms = 64;

// Fourier coefficients of (L^2 + t^2) exp(-t^2) in theta, where t = L tan(theta / 2) (Weideman,
// Computation of the complex error function, 1994).
double scale_of_series() { return std::sqrt(num_terms / std::sqrt(2.0)); }
const std::vector<double>& coefficients() {
  static const std::vector<double>& kept = *new std::vector<double>([] {
    constexpr int points = 2 * num_terms;
    const double scale = scale_of_series();
    std::vector<double> terms;
    for (int n = 1; n <= num_terms; ++n) {
      double sum = 0;
      for (int k = 1 - points; k < points; ++k) {
        const double theta = k * M_PI / points, t = scale * std::tan(theta / 2);
        sum += std::exp(-t * t) * (scale * scale + t * t) * std::cos(n * theta);
      }
      terms.push_back(sum / (2 * points));
    }
    return terms;
  }());
  return kept;
}

}  // namespace

// w(z) = 2 p(Z) / (L - iz)^2 + 1 / (sqrt(pi) (L - iz)) with Z = (L + iz) / (L - iz) above the real
// axis, and w(z) = 2 exp(-z^2) - w(-z) below.
Array special::wofz(Operand z) {
  const Array given = to_inexact(z);
  const DType real = real_dtype_of(given.dtype());
  const Array x = astype(given, real == DType::float64 ? DType::complex128 : DType::complex64);
  const Array is_below = lax::lt(lax::imag(x), Array::literal(0, lax::imag(x).dtype()));
  const Array above = numpy::where(is_below, lax::neg(x), x);
  const Array turned = lax::complex(lax::neg(lax::imag(above)), lax::real(above));  // iz
  const double scale = scale_of_series();
  const Array denominator = scale - turned, ratio = (scale + turned) / denominator;
  Array sum = ratio * 0.0;
  for (int n = num_terms - 1; n >= 0; --n) sum = sum * ratio + coefficients()[std::size_t(n)];
  const Array value = sum * 2.0 / (denominator * denominator) + (1 / std::sqrt(M_PI)) / denominator;
  const Array inside = numpy::where(is_below, x, 0);
  return numpy::where(is_below, lax::exp(lax::neg(inside * inside)) * 2.0 - value, value);
}

}  // namespace scipy
}  // namespace plait
