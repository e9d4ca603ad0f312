// Implicit differentiation over C++ functions and structs, and systems of named sizes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>

#include <cmath>

using namespace plait;

namespace {

double number(const Array& x) { return x.item<double>(); }
Array scalar(double value) { return Array::literal(value, DType::float64); }

struct Point {
  Array x, y;
};

// The x with x^3 = c, by Newton's method until it looks right: values are known under grad.
Array cube_root(const Array& c) {
  return lax::custom_root([&](const Array& x) -> Array { return x * x * x - c; }, scalar(1),
                          [](const auto& f, Array x) {
                            while (std::abs(number(f(x))) > 1e-13) x = x - f(x) / (3.0 * x * x);
                            return x;
                          },
                          [](const auto& g, const Array& y) -> Array { return y / g(scalar(1)); });
}

}  // namespace

TEST_CASE("a root is differentiated by its equation, to any order") {
  const std::function<Array(const Array&)> f = cube_root;
  const double c = 5;
  CHECK(number(f(scalar(c))) == doctest::Approx(std::cbrt(c)));
  CHECK(number(grad(f)(scalar(c))) == doctest::Approx(std::pow(c, -2.0 / 3) / 3));
  CHECK(number(grad(grad(f))(scalar(c))) == doctest::Approx(-2.0 / 9 * std::pow(c, -5.0 / 3)));
}

TEST_CASE("a linear system over a struct is differentiated by its matrix and its transpose") {
  // [a 1; 0 2] p = b
  auto solved = [](const Array& a, const Array& b) -> Array {
    auto matvec = [&](const Point& p) { return Point{a * p.x + p.y, 2.0 * p.y}; };
    auto solve = [&](const auto&, const Point& r) {
      const Array y = r.y / 2.0;
      return Point{(r.x - y) / a, y};
    };
    auto transposed = [&](const auto&, const Point& r) {
      const Array x = r.x / a;
      return Point{x, (r.y - x) / 2.0};
    };
    return lax::custom_linear_solve(matvec, Point{b, scalar(4)}, solve, transposed).x;
  };
  const Array a = scalar(3), b = scalar(8);  // x = (b - 2) / a
  CHECK(number(solved(a, b)) == doctest::Approx(2));
  using Gradient = std::function<std::tuple<Array, Array>(const Array&, const Array&)>;
  for (const Gradient& f : {Gradient(grad<0, 1>(solved)), Gradient(jit(grad<0, 1>(solved))),
                            Gradient(grad<0, 1>(jit(solved)))}) {
    const auto [da, db] = f(a, b);
    CHECK(number(da) == doctest::Approx(-6.0 / 9));
    CHECK(number(db) == doctest::Approx(1.0 / 3));
  }
  const auto [value, tangent] = jvp(solved)(std::tuple{a, b}, std::tuple{scalar(1), scalar(0)});
  CHECK(number(value) == doctest::Approx(2));
  CHECK(number(tangent) == doctest::Approx(-6.0 / 9));
  const Array many = numpy::add(numpy::arange(3, {}, {}, DType::float64), 1);
  const Array slopes = vmap(grad(solved), {0, std::nullopt})(many, b);
  CHECK(number(numpy::sum(slopes)) == doctest::Approx(-6 * (1 + 1.0 / 4 + 1.0 / 9)));
}

TEST_CASE("solve of named sizes is one program, whose gradient is one too") {
  const Function f = [](std::span<const Array> inputs) -> Arrays {
    return {numpy::sum(numpy::linalg::solve(inputs[0], inputs[1]))};
  };
  const Function gradients = [&](std::span<const Array> inputs) {
    return flat::value_and_grad(f, inputs, {true, true}).gradients;
  };
  const Dim n = Dim::size("n");
  const std::vector<Aval> named{{{n, n}, DType::float64}, {{n}, DType::float64}};
  const Jaxpr program = make_jaxpr(gradients, named).jaxpr;
  const Array a = numpy::multiply(numpy::eye(3, {}, 0, DType::float64), 2);
  const Array b = lax::full({3}, 6, DType::float64);
  const Arrays inputs{a, b};
  const Arrays result = eval_jaxpr(program, inputs);
  CHECK(number(numpy::sum(result[0])) == doctest::Approx(-0.5 * 3 * 9));
  CHECK(number(numpy::sum(result[1])) == doctest::Approx(1.5));
}
