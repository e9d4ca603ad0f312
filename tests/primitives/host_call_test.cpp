// Functions of the host in programs.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/functions/numpy.h>
#include <plait/primitives/host_call.h>
#include <plait/transforms/custom.h>

#include <cmath>
#include <thread>

using namespace plait;

namespace {

const Aval scalar{{}, DType::float32};

Array vector_of(std::initializer_list<float> values) {
  Buffer buffer = Buffer::empty(DType::float32, {std::int64_t(values.size())});
  std::copy(values.begin(), values.end(), static_cast<float*>(buffer.mutable_data()));
  return Array(buffer);
}

float at(const Array& array, int index) {
  return static_cast<const float*>(array.buffer().dense().data())[index];
}

Arrays host_sine(std::span<const Array> inputs) {
  return {Array(Buffer::scalar(std::sin(inputs[0].item<float>())))};
}

}  // namespace

TEST_CASE("a host call runs eagerly, compiled, and for each example of a batch") {
  const auto f = [](const Array& x) -> Array {
    return host_call(host_sine, scalar, {x}, {.name = "sine"}) * 2.0;
  };
  const Array x = Array(Buffer::scalar(0.5f));
  CHECK(f(x).item<float>() == doctest::Approx(2 * std::sin(0.5)));
  CHECK(jit(f)(x).item<float>() == doctest::Approx(2 * std::sin(0.5)));
  const Array rows = jit(vmap(f))(vector_of({0.5f, 1.5f}));
  CHECK(at(rows, 0) == doctest::Approx(2 * std::sin(0.5)));
  CHECK(at(rows, 1) == doctest::Approx(2 * std::sin(1.5)));
}

TEST_CASE("a custom rule gives a host call its derivative") {
  const auto f = custom_jvp(
      [](const Array& x) -> Array { return host_call(host_sine, scalar, {x}, {.name = "sine"}); },
      [](const std::tuple<Array>& x, const std::tuple<Array>& dx) {
        return std::pair{host_call(host_sine, scalar, {std::get<0>(x)}, {.name = "sine"}),
                         lax::cos(std::get<0>(x)) * std::get<0>(dx)};
      });
  const Array x = Array(Buffer::scalar(0.5f));
  CHECK(grad(f)(x).item<float>() == doctest::Approx(std::cos(0.5)));
  CHECK(jit(grad(f))(x).item<float>() == doctest::Approx(std::cos(0.5)));
  const auto plain = [](const Array& x) -> Array {
    return host_call(host_sine, scalar, {x}, {.name = "sine"});
  };
  CHECK_THROWS_AS(grad(plain)(x), MissingRuleError);
}

TEST_CASE("what a host call raises is kept in the error, and the thread is unharmed") {
  const Function fails = [](std::span<const Array>) -> Arrays {
    throw std::out_of_range("no such key");
  };
  const auto f = [&](const Array& x) -> Array {
    return host_call(fails, scalar, {x}, {.name = "lookup"});
  };
  const Array x = Array(Buffer::scalar(0.5f));
  try {
    jit(f)(x);
    FAIL("no error");
  } catch (const HostError& error) {
    CHECK(error.problem() == "host_call: `lookup` raised: no such key");
    CHECK_THROWS_AS(std::rethrow_exception(error.cause), std::out_of_range);
  }
  CHECK(jit([](const Array& x) -> Array { return x + 1.0; })(x).item<float>() == 1.5f);
}

TEST_CASE("ordered host calls run each time and in order, pure ones where they are needed") {
  std::vector<int> seen;
  const auto f = [&](const Array& x) -> Array {
    for (int i = 0; i < 3; ++i) {
      host_call(
          [&seen, i](std::span<const Array>) -> Arrays {
            seen.push_back(i);
            return {};
          },
          std::span<const Aval>(), std::vector<Array>{x}, {.ordered = true});
      host_call(
          [&seen](std::span<const Array> inputs) -> Arrays {
            seen.push_back(-1);
            return {inputs[0]};
          },
          scalar, {x});
    }
    return x;
  };
  jit(f)(Array(Buffer::scalar(1.0f)));
  CHECK(seen == std::vector<int>{0, 1, 2});
}

TEST_CASE("a host call may call plait again, also from other threads") {
  const auto inner = jit([](const Array& x) -> Array { return x * x; });
  const Function outer = [&](std::span<const Array> inputs) -> Arrays {
    Array result;
    std::thread([&] { result = inner(inputs[0]); }).join();
    return {inner(result)};
  };
  const auto f = jit([&](const Array& x) -> Array { return host_call(outer, scalar, {x}); });
  CHECK(f(Array(Buffer::scalar(3.0f))).item<float>() == 81.0f);
}

TEST_CASE("host calls are refused where they are forbidden, and listed") {
  const Function same = [](std::span<const Array> inputs) -> Arrays { return {inputs[0]}; };
  const auto f = [&](std::span<const Array> x) -> Arrays {
    return {host_call(same, scalar, {x[0]}, {.name = "same"})};
  };
  const std::vector<Aval> avals{scalar};
  const auto sites = host_calls_of(make_jaxpr(f, avals).jaxpr);
  REQUIRE(sites.size() == 1);
  CHECK(sites[0].name == "same");
  CHECK_FALSE(sites[0].ordered);
  const NoHostCalls none("a strict save");
  CHECK_THROWS_WITH_AS(make_jaxpr(f, avals), doctest::Contains("a strict save allows none"),
                       ValueError);
}

TEST_CASE("a callable of another type is an internal error") {
  const Callable callable("f", std::make_shared<int>(3));
  CHECK(callable.holds<int>());
  CHECK(callable.as<int>() == 3);
  CHECK_THROWS_AS(callable.as<Function>(), InternalError);
}
