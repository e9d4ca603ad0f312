// plait.scipy from C++: solvers over trees, minimisation, signals. The Python tests compare them
// with SciPy.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>

using namespace plait;
namespace krylov = scipy::sparse::linalg;

namespace {

Array matrix() {
  return numpy::array({{4.0, 1.0, 0.0}, {1.0, 3.0, 0.5}, {0.0, 0.5, 2.0}}, DType::float64);
}
Array vector(std::initializer_list<double> values) { return numpy::array(values, DType::float64); }
double distance(const Array& x, const Array& y) {
  return numpy::max(numpy::abs(x - y)).item<double>();
}

struct Halves {
  Array low, high;
};

}  // namespace

TEST_CASE("Krylov solvers take matrices, functions and structs, and differentiate") {
  const Array a = matrix(), b = vector({1, 2, 3}), x = numpy::linalg::solve(a, b);
  const krylov::SolverOptions options{.tol = 1e-12};
  const auto product = [&](const Array& v) -> Array { return numpy::matmul(a, v); };
  CHECK(distance(krylov::cg(a, b, {}, options), x) < 1e-10);
  CHECK(distance(krylov::bicgstab(product, b, {}, options), x) < 1e-10);
  CHECK(distance(krylov::gmres(product, b, std::optional(x), options, numpy::linalg::inv(a)), x) <
        1e-10);
  const auto halves = [&](const Halves& v) -> Halves {
    const Array y = numpy::matmul(a, numpy::concatenate({v.low, v.high}));
    return {y[Range{0, 1}], y[Range{1, 3}]};
  };
  const Halves found = krylov::gmres(halves, Halves{b[Range{0, 1}], b[Range{1, 3}]}, {}, options);
  CHECK(distance(numpy::concatenate({found.low, found.high}), x) < 1e-10);
  const auto sum = [&](const Array& b) -> Array {
    return numpy::sum(krylov::cg(a, b, {}, options));
  };
  CHECK(distance(grad(sum)(b), numpy::linalg::solve(a, vector({1, 1, 1}))) < 1e-10);
  CHECK(distance(jit(sum)(b), numpy::sum(x)) < 1e-10);
}

TEST_CASE("minimize finds minima, under jit, vmap and grad") {
  const auto bowl = [](const Array& x, const Array& centre) -> Array {
    return numpy::sum(numpy::square(x - centre)) + numpy::sum(numpy::power(x, 4));
  };
  const auto least = [&](const Array& centre) -> Array {
    return scipy::optimize::minimize([&](const Array& x) { return bowl(x, centre); },
                                     vector({0, 0}), "BFGS", 1e-10)
        .x;
  };
  const Array x = least(vector({3, -3}));  // 2 (x - 3) + 4 x^3 = 0
  CHECK(distance(x, vector({1, -1})) < 1e-8);
  CHECK(distance(jit(least)(vector({3, -3})), x) < 1e-8);
  const auto total = [&](const Array& centre) -> Array { return numpy::sum(least(centre)); };
  CHECK(distance(grad(total)(vector({3, -3})), vector({1.0 / 7, 1.0 / 7})) < 1e-5);
  const Array several = vmap(least)(numpy::stack({vector({3, -3}), vector({0, 3})}));
  CHECK(distance(several[1], vector({0, 1})) < 1e-8);
  CHECK_THROWS_WITH_AS(scipy::optimize::minimize([](const Array& x) { return x; }, matrix()),
                       doctest::Contains("x0 of shape"), ShapeError);
}

TEST_CASE("signals go through their spectra and back") {
  const Array t = numpy::arange(200, {}, {}, DType::float64);
  const Array x = numpy::sin(t * 0.3) + 0.1 * numpy::cos(t * 1.1);
  const auto [frequencies, times, spectra] = scipy::signal::stft(x, 2.0, {"kaiser", {4.0}}, 32);
  CHECK(frequencies.shape() == Shape{17});
  const auto [again, signal] = scipy::signal::istft(spectra, 2.0, {"kaiser", {4.0}}, 32);
  CHECK(distance(signal[Range{0, 200}], x) < 1e-12);
  const Array kernel = vector({1, 2, 1}) * 0.25;
  CHECK(distance(scipy::signal::convolve(x, kernel, "same"), numpy::convolve(x, kernel, "same")) <
        1e-12);
  const Array places = scipy::ndimage::map_coordinates(x, {vector({0.5, 1.5})}, 1);
  CHECK(distance(places[0], (x[0] + x[1]) * 0.5) < 1e-12);
}
