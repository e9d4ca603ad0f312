// The complex functions of kernels are those of the C++ library, special values included.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <string>

namespace {

using Complex = std::complex<double>;

#define DEVICE(name) extern "C" void device_##name(const double* numbers, double* result)
DEVICE(exp);
DEVICE(log);
DEVICE(sin);
DEVICE(cos);
DEVICE(tanh);
DEVICE(sqrt);
DEVICE(pow);
DEVICE(multiply);
DEVICE(divide);
#undef DEVICE

struct Function {
  const char* name;
  void (*device)(const double*, double*);
  Complex (*host)(Complex);
  double bound;  // of the error of a part, in units of 2^-53 of it, where it is no denormal
};
const Function functions[] = {
    {"exp", device_exp, [](Complex z) { return std::exp(z); }, 8},
    {"log", device_log, [](Complex z) { return std::log(z); }, 8},
    {"sin", device_sin, [](Complex z) { return std::sin(z); }, 8},
    {"cos", device_cos, [](Complex z) { return std::cos(z); }, 8},
    {"tanh", device_tanh, [](Complex z) { return std::tanh(z); }, 16},
    {"sqrt", device_sqrt, [](Complex z) { return std::sqrt(z); }, 8},
};

Complex on_device(const Function& function, Complex z) {
  const double numbers[4] = {z.real(), z.imag(), 0, 0};
  double result[2];
  function.device(numbers, result);
  return {result[0], result[1]};
}
Complex on_device(void (*function)(const double*, double*), Complex z, Complex w) {
  const double numbers[4] = {z.real(), z.imag(), w.real(), w.imag()};
  double result[2];
  function(numbers, result);
  return {result[0], result[1]};
}

// The error of a part in units of 2^-53; 0 for equal values, of which zeros have signs.
double error_of(double ours, double theirs) {
  if (std::isnan(ours) && std::isnan(theirs)) return 0;
  if (ours == theirs) return ours != 0 || std::signbit(ours) == std::signbit(theirs) ? 0 : 1e300;
  if (!std::isfinite(ours) || !std::isfinite(theirs)) return 1e300;
  const double size = std::max(std::abs(theirs), std::numeric_limits<double>::min());
  return std::abs(ours - theirs) / size * 0x1p53;
}
// Beside a part that is NaN, the sign of the other is what the library likes.
double error_of(Complex ours, Complex theirs) {
  if (std::isnan(theirs.real()) || std::isnan(theirs.imag())) {
    ours = {std::abs(ours.real()), std::abs(ours.imag())};
    theirs = {std::abs(theirs.real()), std::abs(theirs.imag())};
  }
  return std::max(error_of(ours.real(), theirs.real()), error_of(ours.imag(), theirs.imag()));
}

}  // namespace

TEST_CASE("complex functions of kernels have Annex G's special values") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double parts[] = {0.0,       -0.0,  1.0, -1.0,   2.5,    -2.5,   infinity,
                          -infinity, 1e308, nan, -1e308, 1e-320, 1000.0, -1000.0};
  for (const Function& function : functions)
    for (const double x : parts)
      for (const double y : parts) {
        CAPTURE(std::string(function.name));
        CAPTURE(x);
        CAPTURE(y);
        CHECK(error_of(on_device(function, {x, y}), function.host({x, y})) <= function.bound);
      }
}

TEST_CASE("complex functions of kernels are exact to some units in the last place") {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const Function& function : functions) {
    double worst = 0;
    for (int i = 0; i < 100000; ++i) {
      const double scale = std::exp2(std::floor(uniform(random) * (i % 2 ? 5 : 9)));
      const Complex z(uniform(random) * scale, uniform(random) * (i % 3 ? scale : 1));
      worst = std::max(worst, error_of(on_device(function, z), function.host(z)));
    }
    CAPTURE(std::string(function.name));
    CHECK(worst <= function.bound);
  }
}

TEST_CASE("complex arithmetic of kernels is that of the C++ library where all is finite") {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(-2, 2);
  const auto size_of_error = [](Complex ours, Complex theirs) {
    return std::abs(ours - theirs) / std::abs(theirs) * 0x1p53;
  };
  for (int i = 0; i < 10000; ++i) {
    const Complex z(uniform(random), uniform(random)), w(uniform(random), uniform(random));
    CHECK(size_of_error(on_device(device_multiply, z, w), z * w) <= 4);
    CHECK(size_of_error(on_device(device_divide, z, w), z / w) <= 8);
    CHECK(size_of_error(on_device(device_pow, z, w), std::pow(z, w)) <= 64);
  }
}
