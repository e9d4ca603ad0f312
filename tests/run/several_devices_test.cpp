// Programs that put values on other devices.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include "../problem.h"
#include "../same_bits.h"
#include "standin/standin.h"

using namespace plait;

namespace {

Array ramp(const Shape& shape) {
  return device_put(
      lax::reshape(lax::sin(lax::iota(DType::float32, {shape.num_elements()}, 0) * 0.7), shape),
      {});
}

// A function of arrays that are on the device gives, compiled, what it gives eagerly, where it
// gives it.
void check_as_eager(const Function& f, const Arrays& inputs, Device device) {
  Arrays there;
  for (const Array& input : inputs) there.push_back(device_put(input, device));
  const Arrays expected = f(there), results = flat::Jit(f, "f")(there);
  REQUIRE(results.size() == expected.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    CHECK(device_of(results[i]) == device_of(expected[i]));
    CHECK(same_bits(results[i], expected[i]));
  }
}

}  // namespace

TEST_CASE("a program may put values on other devices, and bring them back") {
  const standin::Quiet quiet;
  const Device first = standin::delayed(), second = standin::lazy(1), host;
  const Function f = [=](std::span<const Array> in) -> Arrays {
    const Array h = lax::tanh(lax::dot(in[0], in[1]));
    const Array there = device_put(h, second);
    const Array squares = there * there + lax::iota(DType::float32, {3}, 0);
    const Array here = device_put(h, host);
    const Array sum = numpy::sum(here);  // a number of the host moves
    return {h,
            squares,
            device_put(squares, first) + h,
            squares * sum,
            here,
            numpy::sum(h) * device_put(sum, first),
            in[1],
            device_put(in[1], host)};
  };
  for (const Device device : {first, second, host})
    check_as_eager(
        [&](std::span<const Array> in) {
          const Arrays put{device_put(in[0], first), device_put(in[1], first)};
          return f(put);
        },
        {ramp({2, 4}), ramp({4, 3})}, device);
}

TEST_CASE("what is made of numbers alone is computed where it is used") {
  const standin::Quiet quiet;
  check_as_eager(
      [](std::span<const Array> in) -> Arrays {
        const Array positions = lax::sin(lax::iota(DType::float32, {5}, 0));
        return {in[0] + positions, device_put(in[0], standin::lazy()) * positions, positions,
                device_put(positions, standin::lazy()), lax::full({2}, 3, DType::int32)};
      },
      {ramp({5})}, Device{});
}

TEST_CASE("derivatives of programs on several devices") {
  const standin::Quiet quiet;
  const Device second = standin::lazy(1);
  const auto loss = [=](const Array& w, const Array& x) {
    const Array there = device_put(lax::tanh(lax::dot(x, w)), second);
    const Array back = device_put(lax::sin(there) * there, {});
    return numpy::sum(back * lax::dot(x, w));
  };
  const Array w = ramp({4, 3}), x = ramp({2, 4});
  const Array eager = grad(loss)(w, x);
  for (const Array& gradient :
       {grad(jit(loss))(w, x), jit(grad(loss))(w, x), jit(grad(jit(loss)))(w, x)}) {
    CHECK(device_of(gradient) == Device{});
    CHECK(same_bits(gradient, eager));
  }
  const auto plain = [](const Array& w, const Array& x) {
    const Array h = lax::tanh(lax::dot(x, w));
    return numpy::sum(lax::sin(h) * h * lax::dot(x, w));
  };
  const std::vector<float> wanted = grad(plain)(w, x).to_vector<float>(),
                           found = eager.to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(found[i] == doctest::Approx(wanted[i]));
  const auto [value, tangent] =
      jvp(jit([=](const Array& x) { return lax::sin(device_put(x * x, second)); }))(
          std::tuple<Array>(x), std::tuple<Array>(lax::cos(x)));
  CHECK(device_of(tangent) == second);
  CHECK(same_bits(value, lax::sin(x * x)));
}

TEST_CASE("batches, and memory that may be given away") {
  const standin::Quiet quiet;
  const Device second = standin::lazy(1);
  const auto row = [=](const Array& x) {
    return device_put(numpy::cumsum(device_put(x, second)) * 2.0, {});
  };
  const Array x = ramp({3, 5});
  CHECK(same_bits(jit(vmap(row))(x), numpy::cumsum(x, 1) * 2.0));
  const std::size_t before = standin::bytes_in_use();
  for (int i = 0; i < 3; ++i) CHECK(same_bits(jit(vmap(row))(x), numpy::cumsum(x, 1) * 2.0));
  CHECK(standin::bytes_in_use() == before);
}

TEST_CASE("what programs on several devices refuse") {
  const standin::Quiet quiet;
  const Device second = standin::lazy(1);
  const Array x = ramp({3});
  CHECK(problem_and_fix<BackendError>(
            [&] { jit([=](const Array& x) { return device_put(x, second) * x; })(x); }) ==
        "mul: its operands lie on two devices: argument 0, f32[3], on standin:1, and argument 1, "
        "f32[3], on cpu:0 | move one of them: device_put(x, \"standin:1\")");
  const auto loop = [=](const Array& x) {
    return lax::fori_loop(
        0, 3,
        [=](const Array&, const Array& y) -> Array {
          return device_put(device_put(y, second) * 2.0, {});
        },
        x);
  };
  CHECK(problem_and_fix<BackendError>([&] {
          jit(loop)(x);
        }).ends_with("call device_put outside of loops and branches"));
}

TEST_CASE("explain names the parts and the copies of a program on several devices") {
  const standin::Quiet quiet;
  const Jaxpr program =
      make_jaxpr([](const Array& x) { return lax::sin(device_put(x * 2.0, standin::lazy())); },
                 ramp({3}))
          .jaxpr;
  const std::string text = compile(program)->explain();
  CAPTURE(text);
  CHECK(text.starts_with("on cpu:0:\nstep"));
  CHECK(text.find("copied to standin:0: f32[3]\non standin:0:\nstep") != std::string::npos);
}
