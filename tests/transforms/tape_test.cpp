// The tape from C++: gradients against hand derivations and grad, life of nodes, and errors.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/transforms/tape_nodes.h>

#include <string>
#include <thread>

#include "../problem.h"
#include "../same_bits.h"

using namespace plait;

namespace {

Array scalar(double value) { return Array::literal(value, DType::float64); }
Array ramp(std::int64_t n) { return lax::iota(DType::float64, {n}, 0) * 0.1 + 0.3; }
double gradient(const Array& x) { return grad_of(x)->item<double>(); }
}  // namespace

TEST_CASE("backward adds the derivatives of a scalar to its variables") {
  const Array x = variable(scalar(3)), y = variable(scalar(2));
  backward(x * x * y + lax::sin(y));
  CHECK(gradient(x) == doctest::Approx(12));
  CHECK(gradient(y) == doctest::Approx(9 + std::cos(2)));
  backward(x * y);
  CHECK(gradient(x) == doctest::Approx(14));
  set_grad(x, std::nullopt);
  CHECK_FALSE(grad_of(x).has_value());
}

TEST_CASE("gradients by tape and by grad are equal to the bit where sums have many terms") {
  auto f = [](const Array& x) -> Array {
    Array z = x;
    for (int i = 0; i < 5; ++i) z = lax::sin(z) * x + z / (x + 1.0) - x * z;
    return numpy::sum(z * x + z);
  };
  const Array start = ramp(37), x = variable(start);
  backward(f(x));
  CHECK(same_bits(*grad_of(x), grad(f)(start)));
  CHECK(same_bits(*grad_of(x), jit(grad(f))(start)));
}

TEST_CASE("recorded gradients are differentiated again") {
  const Array x = variable(scalar(0.7));
  backward(lax::sin(x), {.create_graph = true});
  const Array cosine = *grad_of(x);
  set_grad(x, std::nullopt);
  backward(cosine);
  CHECK(gradient(x) == doctest::Approx(-std::sin(0.7)));
}

TEST_CASE("variables reach through jit, vmap and grad of functions that capture them") {
  const Array w = variable(scalar(2));
  const auto f = jit([&](const Array& x) -> Array { return lax::sin(w * x); });
  backward(f(scalar(3)));
  CHECK(gradient(w) == doctest::Approx(3 * std::cos(6)));
  set_grad(w, std::nullopt);
  backward(numpy::sum(vmap([&](const Array& x) -> Array { return w * w * x; })(ramp(3))));
  CHECK(gradient(w) == doctest::Approx(4 * (0.3 + 0.4 + 0.5)));
  set_grad(w, std::nullopt);
  backward(grad([&](const Array& x) -> Array { return w * x * x; })(scalar(5)));
  CHECK(gradient(w) == doctest::Approx(10));
}

TEST_CASE("the user's rule is the derivative on the tape too") {
  const auto f = custom_vjp([](const Array& x) -> Array { return x * x; },
                            [](const Array& x) { return std::pair{x * x, x}; },
                            [](const Array& x, const Array& g) -> Array { return g * x * 10.0; });
  const Array x = variable(scalar(3));
  backward(f(x));
  CHECK(gradient(x) == doctest::Approx(30));
  set_grad(x, std::nullopt);
  backward(jit([&](const Array& y) -> Array { return f(y); })(x));
  CHECK(gradient(x) == doctest::Approx(30));
}

TEST_CASE("nothing is recorded under NoGrad, where variables are assigned") {
  Array x = variable(scalar(3));
  const Array y = x * x;
  {
    const NoGrad no_grad;
    CHECK_FALSE(requires_grad(x * 2.0));
    assign(x, x - 1.0);
  }
  CHECK(x.item<double>() == 2);
  backward(y + x);  // the same variable before and after
  CHECK(gradient(x) == doctest::Approx(7));
  CHECK(problem([&] { assign(x, x + 1.0); }).starts_with("a variable of type f64[] was written"));
}

TEST_CASE("hooks see gradients and replace them until they are removed") {
  const Array x = variable(scalar(3)), y = x * 2.0;
  double seen = 0;
  HookHandle hook = register_hook(y, [&](const Array& g) -> std::optional<Array> {
    seen = g.item<double>();
    return g * 10.0;
  });
  backward(y * y, {.retain_graph = true});
  CHECK(seen == 12);
  CHECK(gradient(x) == 240);
  hook.remove();
  set_grad(x, std::nullopt);
  backward(y * y);
  CHECK(gradient(x) == 24);
}

TEST_CASE("chains of 100,000 operations are differentiated and freed without recursion") {
  const std::int64_t before = num_variables();
  {
    const Array x = variable(scalar(1));
    Array y = x;
    for (int i = 0; i < 100'000; ++i) y = y * 1.00001;
    backward(y);
    CHECK(gradient(x) == doctest::Approx(y.item<double>()));
    for (int i = 0; i < 100'000; ++i) y = lax::sin(y);
    y = x;
  }
  CHECK(num_variables() == before);
}

TEST_CASE("threads that go back over one graph each add all of it") {
  const Array x = variable(scalar(2)), y = lax::sin(x) * x;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) backward(y, {.retain_graph = true});
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(gradient(x) == doctest::Approx(400 * (std::cos(2) * 2 + std::sin(2))));
}

TEST_CASE("backward says what it cannot do") {
  const Array x = variable(ramp(3)), y = x * x;
  CHECK(problem([&] { backward(y); }).find("only a scalar has a gradient") != std::string::npos);
  CHECK(problem([&] { backward(y, {.cotangent = ramp(2)}); }) ==
        "backward: the cotangent has shape (2) for a value of shape (3)");
  CHECK(problem([&] { backward(scalar(1)); }).find("not on the tape") != std::string::npos);
  CHECK(problem([&] { variable(3); }).find("dtype int64") != std::string::npos);
  const Array sum = numpy::sum(y);
  backward(sum);
  CHECK(problem([&] { backward(sum); }).find("freed by an earlier") != std::string::npos);
  const Array outside = numpy::sum(x * x);
  auto inside = [&](const Array& z) -> Array {
    backward(outside);
    return z;
  };
  CHECK(problem([&] { jit(inside)(scalar(1)); }).find("while jit traces") != std::string::npos);
}
