// The transforms over C++ functions and structs: values against hand derivations, and compositions.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <complex>
#include <string>

#include "../problem.h"

using namespace plait;

namespace {

struct Weights {
  Array w, b;
};

Array full(Shape shape, double value) { return lax::full(shape, value, DType::float64); }
Array sum(const Array& x) {
  std::vector<int> axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return lax::reduce_sum(x, axes);
}
Array loss(const Weights& p, const Array& x, const Array& y) {
  const Array error = lax::tanh(lax::dot_general(x, p.w, {{x.ndim() - 1}, {0}, {}, {}}) + p.b) - y;
  return sum(error * error);
}
Array ramp(std::int64_t n) { return lax::iota(DType::float64, {n}, 0) * 0.1 + 0.3; }
double at(const Array& x, std::int64_t i) {
  return static_cast<const double*>(x.buffer().dense().data())[i];
}

}  // namespace

TEST_CASE("grad of a sum of cubes is three squares") {
  auto f = [](const Array& x) -> Array { return sum(x * x * x); };
  const Array x = ramp(4), g = grad(f)(x);
  for (int i = 0; i < 4; ++i) CHECK(at(g, i) == doctest::Approx(3 * at(x, i) * at(x, i)));
}

TEST_CASE("grad, jit and checkpoint of a loss over a struct agree with differences") {
  const Weights p{full({3, 2}, 0.3), full({2}, 0.1)};
  const Array x = full({4, 3}, 0.5), y = full({4, 2}, 0.2);
  const double h = 1e-6;
  const Weights more{p.w, full({2}, 0.1 + h)}, less{p.w, full({2}, 0.1 - h)};
  const double expected =
      (loss(more, x, y).item<double>() - loss(less, x, y).item<double>()) / (2 * h);
  CHECK(sum(grad(loss)(p, x, y).b).item<double>() == doctest::Approx(expected));
  CHECK(sum(jit(grad(loss))(p, x, y).b).item<double>() == doctest::Approx(expected));
  CHECK(sum(grad(jit(loss))(p, x, y).b).item<double>() == doctest::Approx(expected));
  CHECK(sum(grad(checkpoint(loss))(p, x, y).b).item<double>() == doctest::Approx(expected));
  CHECK(sum(jit(grad(checkpoint(loss, flat::dots_saveable())))(p, x, y).b).item<double>() ==
        doctest::Approx(expected));
  CHECK(sum(jit(grad(checkpoint(loss, flat::everything_saveable())))(p, x, y).b).item<double>() ==
        doctest::Approx(expected));
  const auto [value, gradient] = jit(value_and_grad(loss))(p, x, y);
  CHECK(value.item<double>() == doctest::Approx(loss(p, x, y).item<double>()));
  CHECK(sum(gradient.b).item<double>() == doctest::Approx(expected));
}

TEST_CASE("checkpoint with no saved results computes the sine again in the backward pass") {
  auto f = [](const Array& x) -> Array { return sum(lax::sin(lax::sin(x))); };
  auto count = [](const Jaxpr& jaxpr, const Primitive& primitive, auto& self) -> int {
    int n = 0;
    for (const Equation& equation : jaxpr->equations) {
      n += *equation.primitive == primitive;
      for_each_body(equation.params, [&](const Jaxpr& body) { n += self(body, primitive, self); });
    }
    return n;
  };
  const Array x = ramp(3);
  CHECK(count(make_jaxpr(value_and_grad(jit(f)), x).jaxpr, sin_p, count) == 2);
  CHECK(count(make_jaxpr(value_and_grad(checkpoint(f)), x).jaxpr, sin_p, count) > 2);
  for (int i = 0; i < 3; ++i)
    CHECK(at(grad(checkpoint(f))(x), i) == doctest::Approx(at(grad(f)(x), i)));
}

TEST_CASE("second derivatives: hessian, hvp, and grad of grad") {
  auto f = [](const Array& x) -> Array { return sum(lax::sin(x) * x); };
  const Array x = ramp(3), h = hessian(f)(x), direction = full({3}, 1);
  CHECK(h.shape() == Shape{3, 3});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double v = at(x, i);
      CHECK(at(h, 3 * i + j) == doctest::Approx(i == j ? 2 * std::cos(v) - v * std::sin(v) : 0));
    }
  const Array product = hvp(f)(x, direction);
  for (int i = 0; i < 3; ++i) CHECK(at(product, i) == doctest::Approx(at(h, 4 * i)));
}

TEST_CASE("gradients by complex arguments, and derivatives of holomorphic functions") {
  using Complex = std::complex<double>;
  const Array x = ramp(2), z = lax::complex(x, x * x - 0.5);
  auto number = [](const Array& array, std::int64_t i) {
    return Complex(at(lax::real(array), i), at(lax::imag(array), i));
  };
  auto squares = [](const Array& z) -> Array {
    const Array size = lax::abs(z);
    return sum(size * size);
  };
  auto cubes = [](const Array& z) -> Array { return sum(z * z * z); };
  auto square = [](const Array& z) -> Array { return z * z; };
  const flat::GradOptions holomorphic{.holomorphic = true};
  const Array gradient = grad(squares)(z), slope = grad(cubes, holomorphic)(z);
  const Array second = hessian(cubes, {.holomorphic = true})(z);
  const Array columns = jacfwd(square, {.chunk = 1, .holomorphic = true})(z);
  const Array rows = jacrev(square, {.holomorphic = true})(z);
  for (int i = 0; i < 2; ++i) {
    const Complex point = number(z, i);
    // d|z|^2 = 2 conj(z), as df/dx - i df/dy.
    CHECK(std::abs(number(gradient, i) - 2.0 * std::conj(point)) < 1e-12);
    CHECK(std::abs(number(slope, i) - 3.0 * point * point) < 1e-12);
    CHECK(std::abs(number(second, 3 * i) - 6.0 * point) < 1e-12);
    CHECK(std::abs(number(columns, 3 * i) - 2.0 * point) < 1e-12);
    CHECK(std::abs(number(rows, 3 * i) - 2.0 * point) < 1e-12);
  }
  CHECK(problem([&] {
          grad(cubes)(z);
        }).starts_with("grad: the function returns complex128, of which only holomorphic"));
  CHECK(problem([&] {
          grad(squares, holomorphic)(z);
        }).starts_with("grad: the function returns float64, and holomorphic functions have"));
  CHECK(problem([&] {
          jacfwd(squares)(z);
        }).starts_with("jacfwd: argument 0 has dtype complex128, by which only holomorphic"));
}

TEST_CASE("per-example gradients by vmap equal a loop over examples") {
  const Weights p{full({3, 2}, 0.3), full({2}, 0.1)};
  const Array x = lax::reshape(ramp(12), {4, 3}), y = lax::reshape(ramp(8), {4, 2});
  const Weights batch = jit(vmap(grad(loss), {std::nullopt, 0, 0}))(p, x, y);
  CHECK(batch.w.shape() == Shape{4, 3, 2});
  for (int i = 0; i < 4; ++i) {
    auto row = [&](const Array& a, std::int64_t n) {
      return Array(
          bind(slice_p, {a},
               {{"start", Shape{i, 0}}, {"limit", Shape{i + 1, n}}, {"strides", Shape{1, 1}}}));
    };
    const Weights one = grad(loss)(p, lax::reshape(row(x, 3), {3}), lax::reshape(row(y, 2), {2}));
    for (int k = 0; k < 6; ++k) CHECK(at(batch.w, 6 * i + k) == doctest::Approx(at(one.w, k)));
  }
}

TEST_CASE("vmap in chunks gives what it gives at once") {
  auto f = [](const Array& x) -> Array { return lax::sin(x) * 2.0; };
  const Array x = lax::reshape(ramp(10), {5, 2});
  const Array whole = vmap(f)(x), parts = vmap(f, 0, 0, 2)(x);
  for (int i = 0; i < 10; ++i) CHECK(at(whole, i) == at(parts, i));
}

TEST_CASE("vmap says which argument disagrees on the size of the mapped axis") {
  auto f = [](const Array& x, const Array& y) -> Array { return x + y; };
  CHECK(problem([&] { vmap(f)(full({8}, 1), full({4}, 1)); }) ==
        "vmap: inputs disagree on the size of the mapped axis: argument 0 has 8, argument 1 has 4");
  CHECK(problem([&] { vmap(f, 0, std::nullopt)(full({4}, 1), full({4}, 1)); }) ==
        "vmap: output 0 has out_axes std::nullopt, but depends on the mapped axis");
  CHECK(problem([&] {
          vmap(f, {0, 0, 0})(full({4}, 1), full({4}, 1));
        }).find("vmap: in_axes does not fit: a list of 3 for the 2 parts of (*, *)") !=
        std::string::npos);
}

TEST_CASE("jvp and vjp are adjoint") {
  auto f = [](const Array& x) -> Array { return lax::tanh(x) * lax::exp(x); };
  const Array x = ramp(5), v = full({5}, 0.7), w = lax::sin(ramp(5));
  const auto [y, pushed] = jvp(f)(std::tuple<Array>(x), std::tuple<Array>(v));
  const auto [same, pull] = vjp(f, x);
  const Array pulled = std::get<0>(pull(w));
  CHECK(sum(pushed * w).item<double>() == doctest::Approx(sum(v * pulled).item<double>()));
}

TEST_CASE("a custom_vjp rule survives vmap and jit, and its own derivative is that of the rule") {
  // The rule triples the true derivative, so that it is seen to be used.
  const Function f = [](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; };
  const flat::ForwardRule fwd = [](std::span<const Array> x) -> flat::Forward {
    return {{lax::sin(x[0])}, {lax::cos(x[0])}};
  };
  const Function bwd = [](std::span<const Array> r) -> Arrays { return {r[1] * r[0] * 3.0}; };
  auto custom = [=](const Array& x) -> Array {
    return flat::custom_vjp(f, fwd, bwd, Arrays{x}, "sine")[0];
  };
  const Array x = ramp(3);
  auto total = [=](const Array& v) -> Array { return sum(custom(v)); };
  for (const Array& g :
       {grad(total)(x), jit(grad(total))(x), grad(jit(total))(x), vmap(grad(custom))(x)})
    for (int i = 0; i < 3; ++i) CHECK(at(g, i) == doctest::Approx(3 * std::cos(at(x, i))));
  const Array second = vmap(grad(grad(custom)))(x);
  for (int i = 0; i < 3; ++i) CHECK(at(second, i) == doctest::Approx(-3 * std::sin(at(x, i))));
}

TEST_CASE("rules of custom_vjp and custom_jvp read values and call their own function under grad") {
  // |x|, whose rules ask for the sign of x; the derivative of the rule is that of the rule again.
  std::function<Array(const Array&)> magnitude = [&](const Array& x) -> Array {
    const Function f = [](std::span<const Array> v) -> Arrays {
      return {v[0].item<double>() < 0 ? -v[0] : v[0]};
    };
    const flat::ForwardRule fwd = [&](std::span<const Array> v) -> flat::Forward {
      return {{magnitude(v[0])}, {v[0]}};
    };
    const Function bwd = [](std::span<const Array> r) -> Arrays {
      return {r[0].item<double>() < 0 ? r[1] * r[0] * 3.0 : r[1] * r[0]};
    };
    return flat::custom_vjp(f, fwd, bwd, Arrays{x}, "magnitude")[0];
  };
  CHECK(grad(magnitude)(Array(-2.0)).item<double>() == -6);
  CHECK(grad(magnitude)(Array(2.0)).item<double>() == 2);
  CHECK(grad(grad(magnitude))(Array(-2.0)).item<double>() == 3);
}

TEST_CASE("a custom_jvp rule is used forward and backward") {
  const Function f = [](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; };
  const Function rule = [](std::span<const Array> a) -> Arrays {
    return {lax::sin(a[0]), a[1] * lax::cos(a[0]) * 5.0};
  };
  auto custom = [=](const Array& x) -> Array {
    return flat::custom_jvp(f, rule, Arrays{x}, "sine")[0];
  };
  const Array x = ramp(3);
  const Array pushed = jvp(custom)(std::tuple<Array>(x), std::tuple<Array>(full({3}, 1))).second;
  const Array pulled = vmap(grad(custom))(x);
  for (int i = 0; i < 3; ++i) {
    CHECK(at(pushed, i) == doctest::Approx(5 * std::cos(at(x, i))));
    CHECK(at(pulled, i) == doctest::Approx(5 * std::cos(at(x, i))));
  }
}

TEST_CASE("gradients refuse what has none, by name") {
  auto vector_valued = [](const Array& x) -> Array { return x * 2.0; };
  CHECK(problem([&] {
          grad(vector_valued)(full({3}, 1));
        }).find("grad: the function returns an array of shape (3)") == 0);
  CHECK(problem([&] {
          value_and_grad(vector_valued)(full({3}, 1));
        }).find("value_and_grad: the function returns an array of shape (3)") == 0);
  auto f = [](const Array& x) -> Array {
    return sum(lax::convert_element_type(x, DType::float32));
  };
  CHECK(problem([&] {
          grad(f)(lax::iota(DType::int32, {3}, 0));
        }).find("grad: argument 0 has dtype int32") == 0);
}

TEST_CASE("trees of structs, vectors, maps and optionals come back as they went in") {
  struct Deep {
    std::vector<Weights> layers;
    std::map<std::string, Array> named;
    std::optional<Array> maybe;
    std::pair<Array, Array> pair;
  };
  const Deep deep{{{full({1}, 1), full({1}, 2)}, {full({1}, 3), full({1}, 4)}},
                  {{"x", full({1}, 5)}},
                  std::nullopt,
                  {full({1}, 6), full({1}, 7)}};
  Arrays leaves;
  const TreeDef structure = flatten(deep, leaves);
  CHECK(leaves.size() == 7);
  CHECK(structure.path(2) == ".layers[1].w");
  CHECK(structure.path(4) == ".named['x']");
  const Deep again = unflatten<Deep>(structure, leaves);
  Arrays same;
  CHECK(flatten(again, same) == structure);
  for (std::size_t i = 0; i < leaves.size(); ++i) CHECK(same[i].is_same(leaves[i]));
}

namespace {
struct Half {
  Array a, b;
};
Half half(const Array& x) {
  Half result;
  result.a = x;
  return result;
}
}  // namespace

TEST_CASE("a function that returns an array without a value is refused") {
  const std::string expected =
      "an Array that holds nothing was used: it was made without a value, or moved from";
  const Array x = full({2}, 1);
  CHECK(problem([&] { jit(half)(x); }) == expected);
  CHECK(problem([&] { vmap(half)(x); }) == expected);
  CHECK(problem([&] { jvp(half)({x}, {x}); }) == expected);
  CHECK(problem([&] { vjp(half, x); }) == expected);
  CHECK(problem([&] { linearize(half, x); }) == expected);
  CHECK(problem([&] { jacrev(half)(x); }) == expected);
  CHECK(problem([&] { grad([](const Array&) { return Array(); })(x); }) == expected);
  CHECK(problem([&] {
          lax::cond(
              true, [](const Array& y) { return y; }, [](const Array&) { return Array(); }, x);
        }) == expected);
}

TEST_CASE("tangents and cotangents fit their values") {
  const Array three = full({3}, 1), two = full({2}, 1);
  using List = std::vector<Array>;
  auto doubled = [](const Array& x) { return x * 2.0; };
  auto both = [](const List& x) { return x[0] + 2.0 * x[1]; };
  CHECK(problem([&] { jvp(doubled)({three}, {two}); }) ==
        "jvp: the tangent of value[0] has shape (2) for a value of shape (3)");
  CHECK(problem([&] { jvp(both)({List{two, two}}, {List{two}}); }) ==
        "jvp: the tangents have the structure ([*],), and the values have ([*, *],)");
  CHECK(problem([&] { vjp(doubled, three).second(two); }) ==
        "vjp: the cotangent of value has shape (2) for a value of shape (3)");
  CHECK(problem([&] {
          vjp([](const Array& x) { return List{x, x}; }, three).second(List{three});
        }) == "vjp: the cotangents have the structure [*], and the values have [*, *]");
  CHECK(problem([&] { linearize(doubled, three).second(full({7}, 1)); }) ==
        "linearize: the tangent of value[0] has shape (7) for a value of shape (3)");
  CHECK(problem([&] { hvp([](const Array& x) { return sum(x * x); })(three, 1.0); }) ==
        "jvp: the tangent of value[0] has shape () for a value of shape (3)");
  CHECK(problem([&] { jvp(doubled)({three}, {numpy::ones({3})}); }) ==
        "jvp: the tangent of value[0] has dtype float32 for a value of dtype float64");
  // Numbers of weaker kinds take the dtype; what is given for integers counts for nothing.
  CHECK(jvp(doubled)({full({}, 1)}, {1}).second.item<double>() == 2);
  auto scaled = [](const Array& x, const Array& n) { return x * n; };
  CHECK(jvp(scaled)({full({}, 3), 2}, {1.0, 5}).second.item<double>() == 2);
}
