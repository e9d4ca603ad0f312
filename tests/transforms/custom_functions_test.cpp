// Derivative rules of their own for C++ functions over structs, linearize and eval_shape.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>

using namespace plait;

namespace {

struct Pair {
  Array a, b;
};

double number(const Array& x) { return x.item<double>(); }
Array scalar(double value) { return Array::literal(value, DType::float64); }

}  // namespace

TEST_CASE("a C++ function keeps its jvp rule under every transform") {
  // The rule is three times too large, so that it shows where it was used.
  auto f = custom_jvp([](const Array& x) -> Array { return lax::sin(x); },
                      [](const std::tuple<Array>& x, const std::tuple<Array>& dx) {
                        const Array tangent = 3.0 * lax::cos(std::get<0>(x)) * std::get<0>(dx);
                        return std::pair{Array(lax::sin(std::get<0>(x))), tangent};
                      });
  const double x = 0.4, slope = 3 * std::cos(x);
  CHECK(number(f(scalar(x))) == doctest::Approx(std::sin(x)));
  CHECK(number(grad(f)(scalar(x))) == doctest::Approx(slope));
  CHECK(number(jit(grad(f))(scalar(x))) == doctest::Approx(slope));
  CHECK(number(grad(jit(f))(scalar(x))) == doctest::Approx(slope));
  const Array xs = lax::full({3}, x, DType::float64);
  CHECK(number(numpy::sum(vmap(grad(f))(xs))) == doctest::Approx(3 * slope));
  const Array gradient = grad([&](const Array& v) -> Array { return numpy::sum(vmap(f)(v)); })(xs);
  CHECK(number(numpy::sum(gradient)) == doctest::Approx(3 * slope));
}

TEST_CASE("a C++ function over structs keeps its vjp rule, with residuals of any structure") {
  auto f =
      custom_vjp([](const Pair& p, const Array& c) -> Array { return p.a * p.b * c; },
                 [](const Pair& p, const Array& c) {
                   return std::pair{Array(p.a * p.b * c), std::pair{p, c}};
                 },
                 [](const std::pair<Pair, Array>& kept, const Array& ct) {
                   const auto& [p, c] = kept;
                   return std::tuple{Pair{2.0 * ct * p.b * c, ct * p.a * c}, Array(ct * p.a * p.b)};
                 });
  const Pair p{scalar(2), scalar(3)};
  const auto [value, gradients] = value_and_grad<0, 1>(f)(p, scalar(5));
  CHECK(number(value) == doctest::Approx(30));
  CHECK(number(std::get<0>(gradients).a) == doctest::Approx(2 * 15));  // the rule's factor
  CHECK(number(std::get<0>(gradients).b) == doctest::Approx(10));
  CHECK(number(std::get<1>(gradients)) == doctest::Approx(6));
  CHECK(number(jit(grad(f))(p, scalar(5)).a) == doctest::Approx(30));

  auto clipped = custom_vjp(
      [](const Array& x) -> Array { return x; },
      [](const Array& x) { return std::pair{x, std::tuple<>()}; },
      [](const std::tuple<>&, const Array& ct) -> Array { return lax::min(ct, scalar(1)); });
  CHECK(number(grad([&](const Array& x) -> Array { return 7.0 * clipped(x); })(scalar(2))) ==
        doctest::Approx(1));
}

TEST_CASE("a rule that returns another shape is an error that says which") {
  auto f = custom_jvp([](const Array& x) -> Array { return x; },
                      [](const std::tuple<Array>& x, const std::tuple<Array>&) {
                        return std::pair{std::get<0>(x), Array(lax::full({2}, 0, DType::float64))};
                      },
                      "wrong");
  CHECK_THROWS_WITH_AS(grad(f)(scalar(1)), doctest::Contains("the jvp rule of `wrong`"),
                       ShapeError);
}

TEST_CASE("linearize gives the derivative as a function, and eval_shape the avals") {
  auto f = [](const Pair& p) -> Pair { return {p.a * lax::sin(p.b), p.b}; };
  const auto [out, push] = linearize(f, Pair{scalar(2), scalar(0.3)});
  CHECK(number(out.a) == doctest::Approx(2 * std::sin(0.3)));
  const Pair pushed = push(Pair{scalar(1), scalar(10)});
  CHECK(number(pushed.a) == doctest::Approx(std::sin(0.3) + 20 * std::cos(0.3)));
  CHECK(number(pushed.b) == doctest::Approx(10));
  const std::vector<Aval> avals = eval_shape(f, Pair{lax::full({3}, 1, DType::float32), scalar(1)});
  CHECK(avals == std::vector<Aval>{{{3}, DType::float64}, {{}, DType::float64}});
}

TEST_CASE("a rule may apply its own function, on values and where it is traced") {
  std::function<Array(const Array&)> f;
  f = custom_jvp([](const Array& x) -> Array { return lax::exp(x); },
                 [&f](const std::tuple<Array>& x, const std::tuple<Array>& dx) {
                   const Array y = f(std::get<0>(x));
                   return std::pair{y, Array(y * std::get<0>(dx))};
                 },
                 "exp_again");
  CHECK(number(grad(f)(scalar(1))) == doctest::Approx(std::exp(1)));
  CHECK(number(grad(grad(f))(scalar(1))) == doctest::Approx(std::exp(1)));
  CHECK(number(jit(grad(f))(scalar(1))) == doctest::Approx(std::exp(1)));
  CHECK(number(jit(grad(grad(f)))(scalar(1))) == doctest::Approx(std::exp(1)));
}
