// Tracing: captured arrays, escaped tracers, unknown values, user lines.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/primitives/primitives.h>
#include <plait/transforms/transforms.h>

#include <string>

using namespace plait;

namespace {

const Aval vector_f32{{3}, DType::float32};

template <class E>
std::string thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("captured arrays become operands after the inputs, once each") {
  const Array captured = lax::full({3}, 2, DType::float32);
  const Traced traced =
      make_jaxpr([&](std::span<const Array> x) -> Arrays { return {x[0] * captured + captured}; },
                 std::vector<Aval>{vector_f32});
  REQUIRE(traced.captured.size() == 1);
  CHECK(traced.captured[0].is_same(captured));
  CHECK(print(traced.jaxpr) ==
        "{ lambda ; a:f32[3] b:f32[3] . let\n"
        "    c:f32[3] = mul a b\n"
        "    d:f32[3] = add c b\n"
        "  in (d,) }");
}

TEST_CASE("a tracer used after its trace has ended is reported with its line of birth") {
  Array leaked;
  const int line = __LINE__ + 1;
  make_jaxpr([&](std::span<const Array> x) -> Arrays { return {leaked = lax::sin(x[0])}; },
             std::vector<Aval>{vector_f32});
  const std::string message = thrown<TracerError>([&] { leaked + 1.0; });
  CHECK(message.find("a traced value of type f32[3] was used after its trace had ended") == 0);
  CHECK(message.find("trace_test.cpp:" + std::to_string(line)) != std::string::npos);
  CHECK(message.find("fix: return the value from the traced function") != std::string::npos);
  // The process and later calls are unharmed.
  CHECK(lax::sin(Array(0.0)).item<double>() == 0);
}

TEST_CASE("the value of a traced array is known under grad and unknown under jit") {
  const Function branchy = [](std::span<const Array> x) -> Arrays {
    return {x[0].item<double>() > 0 ? x[0] * 2.0 : x[0] * 3.0};
  };
  const Array one = Array::literal(1, DType::float32), minus = Array::literal(-1, DType::float32);
  CHECK(flat::value_and_grad(branchy, Arrays{one}, {true}).gradients[0].item<double>() == 2);
  CHECK(flat::value_and_grad(branchy, Arrays{minus}, {true}).gradients[0].item<double>() == 3);
  const std::string message =
      thrown<TracerError>([&] { flat::Jit(branchy, "branchy")(Arrays{one}); });
  CHECK(message.find("the value of an array of type f32[] is needed, but it is not known while jit "
                     "traces the function") == 0);
  CHECK(message.find("while applying jit(branchy)") != std::string::npos);
}

TEST_CASE("unmapped values are known under vmap, mapped ones are not") {
  flat::VmapOptions options;
  options.in_dims = {0, std::nullopt};
  const Function f = [](std::span<const Array> x) -> Arrays {
    return {x[1].item<double>() > 0 ? x[0] : -x[0]};
  };
  const Array batch = lax::full({4}, 1, DType::float32);
  CHECK(flat::vmap(f, Arrays{batch, Array::literal(-1, DType::float32)}, options)[0].shape() ==
        Shape{4});
  const Function g = [](std::span<const Array> x) -> Arrays {
    return {x[0].item<double>() > 0 ? x[0] : -x[0]};
  };
  CHECK(thrown<TracerError>([&] {
          flat::vmap(g, Arrays{batch, batch}, options);
        }).find("examples of vmap") != std::string::npos);
}

TEST_CASE("every equation has the user's line") {
  int line = 0;
  const Function f = [&](std::span<const Array> x) -> Arrays {
    line = __LINE__ + 1;
    return {lax::sin(x[0])};
  };
  const Traced traced = make_jaxpr(f, std::vector<Aval>{vector_f32});
  REQUIRE(traced.jaxpr->equations[0].source);
  CHECK(traced.jaxpr->equations[0].source->line == line);
}

TEST_CASE("nested gradients do not confuse their perturbations") {
  // d/dx (x * d/dy (x + y) at 1) = 1; mixing the two perturbations gives 2.
  auto grad = [](const Function& f, const Array& x) {
    return flat::value_and_grad(f, Arrays{x}, {true}).gradients[0];
  };
  const Array one = Array::literal(1, DType::float64);
  const Array result = grad(
      [&](std::span<const Array> x) -> Arrays {
        return {x[0] *
                grad([&](std::span<const Array> y) -> Arrays { return {x[0] + y[0]}; }, one)};
      },
      one);
  CHECK(result.item<double>() == 1);
}

TEST_CASE("an Array that holds nothing, and an axis that there is not, are errors") {
  const Array empty;
  CHECK_THROWS_AS(empty.shape(), ValueError);
  CHECK_THROWS_AS(empty.dtype(), ValueError);
  CHECK_THROWS_AS(empty.is_concrete(), ValueError);
  CHECK_THROWS_AS(empty.buffer(), ValueError);
  CHECK_THROWS_AS(lax::sin(empty), ValueError);
  Array x = lax::full({2, 3}, 1, DType::float32);
  CHECK_THROWS_AS(x.shape(2), IndexError);
  CHECK_THROWS_AS(x.shape(-1), IndexError);
  const Array moved = std::move(x);
  CHECK(moved.shape(1) == Dim(3));
  CHECK_THROWS_AS(x.ndim(), ValueError);  // NOLINT: moved from
}
