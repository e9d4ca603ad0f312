// Programs and eager operations on a device: the stand-in, whose memory faults and whose work comes
// late (tests/standin).
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/stream.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <thread>

#include "../problem.h"
#include "../same_bits.h"
#include "standin/standin.h"

using namespace plait;

namespace {

const std::vector<Device> both{standin::lazy(), standin::delayed()};

Array ramp(const Shape& shape, DType dtype = DType::float32) {
  return device_put(
      lax::reshape(lax::sin(lax::iota(dtype, {shape.num_elements()}, 0) * 0.7), shape), {});
}

Arrays on(std::span<const Array> arrays, Device device) {
  Arrays there;
  for (const Array& array : arrays) there.push_back(device_put(array, device));
  return there;
}

// What the reference gives on the CPU: its kernels are those of the stand-in.
Arrays by_reference(const Function& f, const Arrays& inputs) {
  std::vector<Aval> avals;
  std::vector<Buffer> buffers;
  for (const Array& input : inputs)
    avals.push_back(input.aval()), buffers.push_back(input.buffer());
  const CompileOptions options{.backends = {find_backend("control"), find_backend("reference")}};
  Arrays results;
  for (const Buffer& buffer : compile(make_jaxpr(f, avals).jaxpr, options)->run(buffers))
    results.push_back(Array(buffer));
  return results;
}

// A function gives on a device what it gives on the CPU, to the bit: eagerly and compiled.
void check_same(const Function& f, const Arrays& inputs) {
  const Arrays expected = by_reference(f, inputs);
  for (const Device device : both) {
    CAPTURE(device.to_string());
    const Arrays there = on(inputs, device);
    const std::vector<Arrays> both_ways{f(there), flat::Jit(f, "f")(there)};
    for (const Arrays& results : both_ways) {
      REQUIRE(results.size() == expected.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(device_of(results[i]) == device);
        CHECK(same_bits(results[i], expected[i]));
      }
    }
  }
}

}  // namespace

TEST_CASE("programs on a device give what they give on the CPU") {
  const standin::Quiet quiet;
  const std::vector<int> swap{1, 0}, last{1};
  check_same(
      [=](std::span<const Array> in) {
        const Array product = lax::dot(in[0], lax::transpose(in[1], swap));
        const Array sums = lax::reduce_sum(lax::tanh(product), last);
        return Arrays{product,
                      sums,
                      lax::sort(sums, 0),
                      in[0],
                      nn::softmax(product),
                      lax::cumsum(product, 0)};
      },
      {ramp({5, 7}), ramp({6, 7})});
}

TEST_CASE("derivatives, batches and control flow on a device") {
  const standin::Quiet quiet;
  const auto loss = [](const Array& w, const Array& x) {
    Array h = lax::tanh(lax::dot(x, w));
    for (int i = 0; i < 3; ++i) h = lax::mul(h, h) + 0.5;
    return numpy::mean(h);
  };
  check_same([=](std::span<const Array> in) { return Arrays{grad(loss)(in[0], in[1])}; },
             {ramp({4, 3}), ramp({6, 4})});
  check_same(
      [=](std::span<const Array> in) {
        return Arrays{
            vmap([](const Array& row) { return numpy::cumsum(row) * numpy::max(row); })(in[0])};
      },
      {ramp({4, 9})});
}

TEST_CASE("operands that are not aligned are copied, and results of sessions too") {
  const standin::Quiet quiet;
  check_same(
      [](std::span<const Array> in) -> Arrays {
        const Array row = lax::slice(in[0], {1}, {6}, {1});
        const flat::Scanned rows = flat::scan(
            [](std::span<const Array> now) -> Arrays { return {now[0] + now[1], now[0] * now[1]}; },
            std::span(&row, 1), in.subspan(1, 1));
        return {row, lax::sin(row), rows.carry[0], rows.ys[0]};
      },
      {ramp({9}), ramp({4, 5})});
}

TEST_CASE("arrays of two devices are refused, and numbers move") {
  const standin::Quiet quiet;
  const Array here = ramp({3}), there = device_put(here, standin::lazy());
  CHECK(problem_and_fix<BackendError>([&] { lax::add(here, there); }) ==
        "add: its operands lie on two devices: argument 0, f32[3], on cpu:0, and argument 1, "
        "f32[3], on standin:0 | move one of them: device_put(x, \"standin:0\")");
  CHECK(problem_and_fix<BackendError>([&] { lax::add(there, device_put(here, standin::lazy(1))); })
            .starts_with("add: its operands lie on two devices: argument 0, f32[3], on standin:0, "
                         "and argument 1, f32[3], on standin:1"));
  CHECK(device_of(there * 2.0 + 1) == standin::lazy());
  CHECK(same_bits(there * 2.0 + 1, here * 2.0 + 1));
  const Array number = lax::reduce_sum(here, std::vector<int>{0});
  CHECK(same_bits(there * number, here * number));
  CHECK(same_bits(there + lax::iota(DType::float32, {3}, 0),
                  here + lax::iota(DType::float32, {3}, 0)));
  {
    const DeviceScope scope(standin::lazy(1));
    CHECK(device_of(lax::full({3}, 1, DType::float32)) == standin::lazy(1));
    CHECK(device_of(here + 1) == Device{});
  }
  CHECK(device_of(lax::full({3}, 1, DType::float32)) == Device{});
}

TEST_CASE("values are read through one door") {
  const standin::Quiet quiet;
  const Array here = ramp({2, 3}), there = device_put(here, standin::delayed());
  CHECK(there.to_string() == here.to_string());
  CHECK(there.to_vector<float>() == here.to_vector<float>());
  CHECK(lax::index_in_dim(lax::reshape(there, {6}), 2, 0, false).item<float>() ==
        lax::reshape(here, {6}).to_vector<float>()[2]);
  CHECK_THROWS_AS((void)there.span<float>(), ValueError);
}

TEST_CASE("an executable may end while its work is pending") {
  const standin::Quiet quiet;
  for (const Device device : both) {
    const std::size_t before = standin::bytes_in_use();
    {
      const Array x = ramp({100}), there = device_put(x, device);
      Arrays results;
      for (int i = 0; i < 20; ++i) {
        const Jaxpr program =
            make_jaxpr([=](const Array& x) { return lax::sin(x) * double(i) + lax::cos(x); }, there)
                .jaxpr;
        const auto executable = compile(program, {.device = device});
        const Buffer input = there.buffer();
        results.push_back(Array(executable->run(std::span(&input, 1))[0]));
      }
      for (int i = 0; i < 20; ++i)
        CHECK(same_bits(results[std::size_t(i)], lax::sin(x) * double(i) + lax::cos(x)));
    }
    CHECK(standin::bytes_in_use() == before);
  }
}

TEST_CASE("loops and branches on a device, their derivatives and batches") {
  const standin::Quiet quiet;
  const auto number = [](double value) {
    return device_put(Array::literal(value, DType::float64), {});
  };
  const Function recurrence = [](std::span<const Array> in) -> Arrays {
    const flat::Scanned done = flat::scan(
        [&](std::span<const Array> now) -> Arrays {
          return {lax::sin(now[0] * in[2]) + now[1], now[0] * now[1]};
        },
        in.first(1), in.subspan(1, 1));
    return {done.carry[0] + lax::reduce_sum(done.ys[0], std::vector<int>{0})};
  };
  const Arrays given{number(0.4), ramp({5}, DType::float64), number(1.3)};
  const auto gradient_of = [](Function f, std::vector<bool> wrt) -> Function {
    return [=](std::span<const Array> in) { return flat::value_and_grad(f, in, wrt).gradients; };
  };
  check_same(recurrence, given);
  check_same(gradient_of(recurrence, {true, true, true}), given);

  const Function halve = [](std::span<const Array> in) -> Arrays {
    return flat::while_loop(
        [](std::span<const Array> now) -> Arrays {
          return {lax::gt(now[0], Array::literal(1., DType::float64))};
        },
        [](std::span<const Array> now) -> Arrays { return {now[0] * 0.5, now[1] + 1}; }, in);
  };
  const Array none = device_put(Array::literal(0, DType::int32), {});
  check_same(halve, {number(10), none});
  flat::VmapOptions first;
  first.in_dims = {0, std::nullopt};
  const Function halves = [=](std::span<const Array> in) { return flat::vmap(halve, in, first); };
  check_same(halves, {ramp({6}, DType::float64) * 20.0, none});

  const Function branches = [](std::span<const Array> in) -> Arrays {
    return flat::cond(in[0],
                      {[](std::span<const Array> x) -> Arrays { return {lax::sin(x[0])}; },
                       [](std::span<const Array> x) -> Arrays { return {lax::cumsum(x[0], 0)}; },
                       [](std::span<const Array> x) -> Arrays { return {x[0] * x[0]}; }},
                      in.subspan(1));
  };
  for (int which = 0; which < 3; ++which)
    check_same(branches, {device_put(Array::literal(which, DType::int32), {}), ramp({4})});
  const Array which = device_put(lax::iota(DType::int32, {5}, 0), {});
  flat::VmapOptions all;
  all.in_dims = {0, 0};
  const Function batched = [=](std::span<const Array> in) { return flat::vmap(branches, in, all); };
  check_same(batched, {which, ramp({5, 4})});
  const Function sum = [=](std::span<const Array> in) -> Arrays {
    return {numpy::sum(flat::vmap(branches, in, all)[0])};
  };
  check_same(gradient_of(sum, {false, true}), {which, ramp({5, 4})});
}

TEST_CASE("reverse mode of a loop of unknown length keeps its steps on the device") {
  const standin::Quiet quiet;
  const Function grow = [](std::span<const Array> in) -> Arrays {
    flat::WhileOptions options;
    options.max_steps = 40;
    return flat::while_loop(
        [](std::span<const Array> now) -> Arrays {
          return {lax::lt(now[0], Array::literal(9., DType::float64))};
        },
        [](std::span<const Array> now) -> Arrays { return {now[0] * now[0] + 1.0}; }, in, options);
  };
  const Function gradient = [=](std::span<const Array> in) {
    return flat::value_and_grad(grow, in, {true}).gradients;
  };
  check_same(gradient, {device_put(Array::literal(0.3, DType::float64), {})});
  const Function batched = [=](std::span<const Array> in) {
    flat::VmapOptions each;
    each.in_dims = {0};
    return flat::vmap(gradient, in, each);
  };
  check_same(batched, {ramp({5}, DType::float64)});
}

TEST_CASE("ragged batches on a device") {
  const standin::Quiet quiet;
  const auto score = [](const Array& w, const Array& x) {
    return numpy::sum(numpy::tanh(numpy::matmul(x, w)));
  };
  const auto masked = mask(score, {"d k", "n d"});
  const auto batch = vmap(masked, {std::nullopt, 0, 0});
  const Array w = ramp({16, 24}), x = ramp({6, 40, 16});
  const Array lengths = device_put(lax::iota(DType::int32, {6}, 0) * 7 + 1, {});
  check_same(
      [=](std::span<const Array> in) -> Arrays {
        return {batch(in[0], in[1], Sizes{{"n", in[2]}})};
      },
      {w, x, lengths});
  check_same(
      [=](std::span<const Array> in) -> Arrays {
        return {grad([&](const Array& w) {
          return numpy::sum(batch(w, in[1], Sizes{{"n", in[2]}}));
        })(in[0])};
      },
      {w, x, lengths});
}

TEST_CASE("what belongs to the host runs there, between programs of the device") {
  const standin::Quiet quiet;
  const auto root = [](const Array& x) {
    check(lax::ge(x, Array::literal(0., DType::float32)), "x is {}, which has no root", {x});
    return lax::sqrt(x);
  };
  for (const Device device : both) {
    const Array x = device_put(lax::iota(DType::float32, {4}, 0) - 2.0, device);
    CHECK_THROWS_WITH_AS(
        vmap(root)(x), doctest::Contains("x is -2.0, which has no root; in example 0"), ValueError);
    CHECK(same_bits(jit(vmap(root))(x + 2.0),
                    numpy::sqrt(device_put(lax::iota(DType::float32, {4}, 0), {}))));
    const std::string text =
        compile(make_jaxpr(vmap(root), x).jaxpr, {.device = device})->explain();
    CAPTURE(text);
    CHECK(text.find("on the host, where the device is waited for: it raises an error") !=
          std::string::npos);
    CHECK(text.find("memory of " + device.to_string() + ": 2147483648 bytes may be in use\n") !=
          std::string::npos);
    const auto doubled = [](std::span<const Array> in) -> Arrays {
      CHECK(device_of(in[0]).is_host());
      return {in[0] * 2.0};
    };
    const Array called = jit([&](const Array& x) {
      return host_call(doubled, x.aval(), {lax::sin(x)}, {.name = "doubled"}) + 1.0;
    })(x);
    CHECK(same_bits(called, lax::sin(x) * 2.0 + 1.0));
  }
}

TEST_CASE(
    "a step that fails on the device is told whenever its results are read, and later calls work") {
  const standin::Quiet quiet;
  for (const Device device : both) {
    const Array x = device_put(ramp({4}), device);
    const auto solve =
        jit([](const Array& a, const Array& i) { return numpy::take(a, i, 0, "raise") * 2.0; });
    const Array bad = device_put(Array(Buffer::scalar<std::int32_t>(9)), device);
    const Array y = solve(x, bad);
    const Array after = lax::sin(y);
    for (int i = 0; i < 2; ++i) {
      CHECK_THROWS_AS(y.to_vector<float>(), IndexError);
      CHECK_THROWS_AS(block_until_ready(std::span(&after, 1)), IndexError);
      CHECK(same_bits(x, ramp({4})));
    }
    const Array good = device_put(Array(Buffer::scalar<std::int32_t>(2)), device);
    CHECK(solve(x, good).item<float>() == ramp({4}).to_vector<float>()[2] * 2);
  }
}

TEST_CASE("jit with a device runs there, wherever what moves by itself lies") {
  const standin::Quiet quiet;
  const Array w = ramp({4}), x = ramp({4});
  const auto body = [w](const Array& x, const Array& scale) {
    return x * scale + w + lax::iota(DType::float32, {4}, 0);
  };
  const Array expected = body(x, 2.0);
  for (const Device device : both) {
    const auto f = jit(body, {.device = device});
    const Array there = device_put(x, device);
    CHECK(device_of(f(there, 2.0)) == device);
    CHECK(same_bits(f(there, 2.0), expected));
    CHECK(same_bits(jit(body)(there, 2.0), expected));  // there too, what is captured moves
    // Numbers alone are no device's.
    const Array numbers = lax::iota(DType::float32, {4}, 0);
    CHECK(device_of(f(numbers, 2.0)) == device);
    CHECK(same_bits(f(numbers, 2.0), body(numbers, 2.0)));
    CHECK(device_of(jit([] { return lax::iota(DType::float32, {3}, 0); }, {.device = device})()) ==
          device);
    const auto of_struct = jit([](const std::pair<Array, double>& p) { return p.first * p.second; },
                               {.device = device});
    CHECK(same_bits(of_struct({there, 3.0}), x * 3.0));
    Array result;
    f.run_into(result, there, 2.0);
    const void* const memory = result.buffer().placed().data;
    f.run_into(result, there, 2.0);
    CHECK(result.buffer().placed().data == memory);
    CHECK(same_bits(result, expected));
    const auto twice = jit([](const Array& x) { return x * 2.0; }, {.device = device});
    twice.compile_for(there);
    CHECK(same_bits(twice(there), x * 2.0));
    const auto loss = [&](const Array& x) { return lax::reduce_sum(f(x, 2.0), std::vector{0}); };
    CHECK(same_bits(grad(loss)(there), numpy::full({4}, 2.0F)));
    CHECK(same_bits(vmap(jit([](const Array& x) { return x * x; }, {.device = device}))(there),
                    x * x));
    CHECK(problem_and_fix<BackendError>([&] { f(x, 2.0); }) ==
          "f: argument 0, " + x.aval().to_string() +
              ", lies on cpu:0, and jit was given the device " + device.to_string() +
              " | move it: device_put(x, \"" + device.to_string() + "\"), or leave out the device");
  }
  const auto on_host = jit([](const Array& x) { return x + 1.0; }, {.device = Device{}});
  CHECK(same_bits(on_host(x), x + 1.0));
  CHECK(problem_and_fix<BackendError>([&] {
          on_host(device_put(x, standin::lazy()));
        }).find("lies on standin:0") != std::string::npos);
}

TEST_CASE("memory that runs out at any point loses nothing") {
  const standin::Quiet quiet;
  const Device device = standin::lazy();
  const Array x = ramp({50}), there = device_put(x, device);
  const auto f = [](const Array& x) { return lax::cumsum(lax::sin(lax::cumsum(x, 0)), 0) + x; };
  const Jaxpr program = make_jaxpr(f, there).jaxpr;
  const auto executable = compile(program, {.device = device});
  const Buffer input = there.buffer();
  const Array expected = f(x);
  const std::size_t before = standin::bytes_in_use();
  bool has_failed = true;
  for (int n = 1; has_failed; ++n) {
    has_failed = false;
    standin::faults().failing_allocation = n;
    standin::faults().failing_again = true;
    try {
      const Array result(executable->run(std::span(&input, 1))[0]);
      CHECK(same_bits(result, expected));
    } catch (const MemoryError& error) {
      has_failed = true;
      CHECK(error.problem().find("on standin:0") != std::string::npos);
    }
    standin::faults() = {};
    CHECK(standin::bytes_in_use() == before);
    CHECK(same_bits(Array(executable->run(std::span(&input, 1))[0]), expected));
    CHECK(standin::bytes_in_use() == before);
    REQUIRE(n < 20);
  }
}

TEST_CASE("two threads on two streams share an executable") {
  const standin::Quiet quiet;
  const Device device = standin::delayed();
  const Array x = ramp({300}), there = device_put(x, device);
  const auto f = [](const Array& x) { return lax::cumsum(lax::sin(lax::cumsum(x, 0)), 0) + x; };
  const auto executable = compile(make_jaxpr(f, there).jaxpr, {.device = device});
  const Array expected = f(x);
  const Buffer input = there.buffer();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&] {
      const StreamScope scope(Stream::make(device));
      for (int i = 0; i < 50; ++i)
        wrong += !same_bits(Array(executable->run(std::span(&input, 1))[0]), expected);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("donated memory is written once no other stream reads it") {
  const standin::Quiet quiet;
  const Device device = standin::delayed();
  const auto f = [](const Array& x) { return x * 2.0 + 1; };
  const Array x = ramp({1000});
  const auto executable = compile(make_jaxpr(f, x).jaxpr, {.donate = {true}, .device = device});
  const Stream reading = Stream::make(device);
  for (int i = 0; i < 50; ++i) {
    Buffer input = device_put(x, device).buffer();
    Buffer copied;
    {
      const StreamScope scope(reading);
      copied = input.copy();
    }
    const void* const memory = input.placed().data;
    Buffer output;
    const Buffer* inputs[] = {&input};
    executable->run(inputs, std::span(&output, 1));
    CHECK(output.placed().data == memory);
    CHECK(same_bits(Array(copied), x));
    CHECK(same_bits(Array(output), f(x)));
  }
}
