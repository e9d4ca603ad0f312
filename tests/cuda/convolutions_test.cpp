// Convolutions on CUDA devices (backends/cuda/cudnn), on the stand-ins: what reaches the library,
// and that it gives what the CPU gives.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/transfer.h>
#include <plait/transforms/transforms.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "../problem.h"
#include "cudnn_here.h"
#include "own_process.h"

using namespace plait;
using plait::cuda::check_one_graph;
using plait::cuda::cudnn;
using plait::cuda::first_device;
using plait::cuda::has;
using plait::cuda::loaded;
using plait::cuda::numbers;
using plait::cuda::run_graphs;

namespace {

using Numbers = std::function<Array(std::span<const Array>)>;
using Run = plait::cuda::GraphRun;

// One convolution, of such a kind, and maybe other steps.
void check_only(const Run& run, const std::string& graph) {
  CAPTURE(run.steps);
  CAPTURE(run.graph);
  CHECK(run.num_graphs == 1);
  CHECK(has(run.graph, graph));
}

struct Setting {
  Shape strides = {}, dilations = {};
  lax::WindowPadding padding = "SAME";
  lax::ConvDimensions dimensions = {};
  std::int64_t groups = 1;
};
Array conv(const Array& lhs, const Array& rhs, const Setting& how = {}) {
  return lax::conv_general_dilated(lhs, rhs, how.strides, how.padding, {}, how.dilations,
                                   how.dimensions, how.groups);
}
Numbers of(const Setting& how) {
  return [how](auto in) { return conv(in[0], in[1], how); };
}

// The gradient of sum(conv(x, w) * ct) with respect to x or w, where in holds x, w, ct.
Numbers gradient(const Setting& how, int by) {
  return [how, by](std::span<const Array> in) {
    const auto f = [&](std::span<const Array> z) {
      return Arrays{by == 0 ? conv(z[0], in[1], how) : conv(in[0], z[0], how)};
    };
    const flat::Pullback pullback = flat::vjp(f, std::vector<Array>{in[std::size_t(by)]}, {true});
    return pullback.pull(std::vector<Tangent>{Tangent(in[2])})[0].array();
  };
}
Shape shape_of(const Shape& lhs, const Shape& rhs, const Setting& how) {
  const Function f = [&](std::span<const Array> in) { return Arrays{conv(in[0], in[1], how)}; };
  const std::vector<Aval> avals{{lhs, DType::float32}, {rhs, DType::float32}};
  const Jaxpr program = make_jaxpr(f, avals).jaxpr;
  return program->aval(program->outputs[0]).shape;
}

const DType reals[] = {DType::float32, DType::float64, DType::float16, DType::bfloat16};
const lax::ConvDimensions last = lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");

}  // namespace

TEST_CASE("convolutions reach cuDNN in every dtype that it has, in both layouts") {
  const Setting channels_last{{}, {}, "SAME", lax::conv_dimension_numbers("NHWC", "OHWI", "NHWC")};
  for (const DType dtype : reals) {
    CAPTURE(name_of(dtype));
    check_one_graph(
        run_graphs(of({}), {numbers({2, 8, 9, 7}, dtype), numbers({6, 8, 3, 3}, dtype)}),
        "forward 2x8x9x7 by 6x8x3x3 first");
    check_one_graph(
        run_graphs(of(channels_last), {numbers({2, 9, 7, 8}, dtype), numbers({6, 3, 3, 8}, dtype)}),
        "forward 2x8x9x7 by 6x8x3x3 last");
  }
}

TEST_CASE("convolutions and both their gradients are what the CPU computes") {
  struct Case {
    Shape lhs, rhs;
    Setting how;
  };
  const Case cases[] = {
      {{2, 8, 11, 10}, {12, 8, 3, 3}, {{1, 1}, {}, "VALID"}},
      {{2, 8, 17, 15}, {12, 8, 3, 2}, {{2, 3}}},
      {{2, 8, 12, 11}, {12, 8, 3, 3}, {{2, 2}, {}, "SAME"}},
      {{2, 8, 12, 12}, {12, 8, 3, 3}, {{1, 1}, {2, 2}}},
      {{2, 8, 9, 9}, {12, 2, 3, 3}, {{1, 2}, {}, "SAME", {}, 4}},
      {{2, 12, 9, 9}, {12, 1, 3, 3}, {{1, 1}, {}, "SAME", {}, 12}},
      {{3, 8, 100}, {12, 8, 5}, {{2}, {}, "SAME"}},
      {{2, 4, 7, 6, 5}, {8, 4, 3, 2, 3}, {{1, 2, 1}, {}, "SAME"}},
      {{2, 12, 11, 8}, {3, 3, 8, 12}, {{2, 2}, {}, "SAME", last}},
      {{2, 12, 11, 8}, {3, 3, 4, 12}, {{1, 2}, {}, "SAME", last, 2}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.lhs.to_string());
    CAPTURE(one.rhs.to_string());
    const Array x = numbers(one.lhs, DType::float32), w = numbers(one.rhs, DType::float32),
                ct = numbers(shape_of(one.lhs, one.rhs, one.how), DType::float32);
    check_only(run_graphs(of(one.how), {x, w}), "forward");
    check_only(run_graphs(gradient(one.how, 0), {x, w, ct}), "data gradient");
    check_only(run_graphs(gradient(one.how, 1), {x, w, ct}), "kernel gradient");
  }
}

TEST_CASE("gradients read kernels in reverse where they lie") {
  const Array x = numbers({2, 8, 9, 7}, DType::float32), w = numbers({6, 8, 3, 3}, DType::float32),
              ct = numbers({2, 6, 9, 7}, DType::float32);
  const Run data = run_graphs(gradient({}, 0), {x, w, ct});
  check_one_graph(data, "data gradient 2x8x9x7 by 6x8x3x3 first");
  CHECK(!has(data.steps, "copies"));
  const Run kernel = run_graphs(gradient({}, 1), {x, w, ct});
  check_one_graph(kernel, "kernel gradient 2x8x9x7 by 6x8x3x3 first");
  CHECK(!has(kernel.steps, "copies"));
}

TEST_CASE("examples with kernels of their own are groups, in gradients too") {
  const auto each = [](const Numbers& f) {
    return [f](std::span<const Array> in) {
      flat::VmapOptions options;
      options.in_dims = std::vector<std::optional<int>>(in.size(), 0);
      options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
      const Function one = [&](std::span<const Array> example) { return Arrays{f(example)}; };
      return flat::vmap(one, in, options)[0];
    };
  };
  for (const std::int64_t groups : {1, 2}) {
    const Setting how{{1, 2}, {}, "SAME", {}, groups};
    const Array x = numbers({3, 2, 4, 9, 7}, DType::float32),
                w = numbers({3, 6, 4 / groups, 3, 3}, DType::float32),
                ct = numbers({3, 2, 6, 9, 4}, DType::float32);
    check_only(run_graphs(each(of(how)), {x, w}), "forward 2x12x9x7 by 18x");
    check_only(run_graphs(each(gradient(how, 0)), {x, w, ct}), "data gradient 2x12x9x7 by 18x");
    check_only(run_graphs(each(gradient(how, 1)), {x, w, ct}), "kernel gradient 2x12x9x7 by 18x");
  }
}

TEST_CASE("what does not lie packed is copied") {
  const DType dtype = DType::float32;
  const auto rows = [](auto in) {
    return conv(lax::slice(in[0], {0, 0, 1, 0}, {2, 8, 9, 7}), in[1]);
  };
  const Run sliced = run_graphs(rows, {numbers({2, 8, 9, 7}, dtype), numbers({6, 8, 3, 3}, dtype)});
  CHECK(sliced.graph == "forward 2x8x8x7 by 6x8x3x3 first");
  CHECK(has(sliced.steps, "copies lhs"));
  const Run mixed = run_graphs(of({{}, {}, "SAME", last}),
                               {numbers({2, 9, 7, 8}, dtype), numbers({3, 3, 8, 6}, dtype)});
  CHECK(mixed.graph == "forward 2x8x9x7 by 6x8x3x3 last");
  CHECK(has(mixed.steps, "copies rhs"));
  const auto repeated = [](auto in) {
    const std::vector<int> dims{1, 2, 3};
    return conv(lax::broadcast_in_dim(in[0], {3, 8, 9, 7}, dims), in[1]);
  };
  CHECK(run_graphs(repeated, {numbers({8, 9, 7}, dtype), numbers({6, 8, 3, 3}, dtype)}).graph ==
        "forward 3x8x9x7 by 6x8x3x3 first");
}

TEST_CASE("memory that is not aligned has plans of its own") {
  for (const DType dtype : reals) {
    const auto f = [](auto in) {
      return conv(lax::reshape(lax::slice(in[0], {1}, {1009}), {2, 8, 9, 7}), in[1]);
    };
    check_one_graph(run_graphs(f, {numbers({1009}, dtype), numbers({6, 8, 3, 3}, dtype)}),
                    "forward 2x8x9x7 by 6x8x3x3 first");
  }
}

TEST_CASE("biases, arrays and relu behind a convolution are part of it") {
  const Setting channels_last{{}, {}, "SAME", last};
  (void)run_graphs(
      [](auto in) { return nn::relu(conv(in[0], in[1]) + numpy::expand_dims(in[2], {1, 2})); },
      {numbers({2, 8, 9, 7}, DType::float32), numbers({6, 8, 3, 3}, DType::float32),
       numbers({6}, DType::float32)});  // now it is known whether NaN stays through relu
  for (const DType dtype : reals) {
    CAPTURE(name_of(dtype));
    const Array x = numbers({2, 8, 9, 7}, dtype), w = numbers({6, 8, 3, 3}, dtype),
                b = numbers({6}, dtype), y = numbers({2, 6, 9, 7}, dtype);
    const auto by_channel = [](const Array& bias) { return numpy::expand_dims(bias, {1, 2}); };
    check_one_graph(
        run_graphs([&](auto in) { return conv(in[0], in[1]) + by_channel(in[2]); }, {x, w, b}),
        "forward 2x8x9x7 by 6x8x3x3 first bias");
    check_one_graph(
        run_graphs([&](auto in) { return nn::relu(conv(in[0], in[1]) + by_channel(in[2])); },
                   {x, w, b}),
        "forward 2x8x9x7 by 6x8x3x3 first bias relu");
    check_one_graph(
        run_graphs(
            [&](auto in) { return nn::relu(conv(in[0], in[1]) + by_channel(in[2]) + in[3]); },
            {x, w, b, y}),
        "forward 2x8x9x7 by 6x8x3x3 first array bias relu");
    check_one_graph(
        run_graphs([&](auto in) { return nn::relu(conv(in[0], in[1], channels_last) + in[2]); },
                   {numbers({2, 9, 7, 8}, dtype), numbers({3, 3, 8, 6}, dtype), b}),
        "forward 2x8x9x7 by 6x8x3x3 last bias relu");
  }
  const Array x = numbers({2, 8, 9, 7}, DType::float32), w = numbers({6, 8, 3, 3}, DType::float32);
  CHECK(run_graphs([](auto in) { return nn::relu(conv(in[0], in[1])); }, {x, w}).graph ==
        "forward 2x8x9x7 by 6x8x3x3 first");
}

TEST_CASE("steps that no engine takes run behind the convolution") {
  cudnn().standin_set_fused(false);
  const Run apart = run_graphs(
      [](auto in) { return nn::relu(conv(in[0], in[1]) + numpy::expand_dims(in[2], {1, 2})); },
      {numbers({2, 8, 9, 6}, DType::float32), numbers({6, 8, 3, 3}, DType::float32),
       numbers({6}, DType::float32)});
  cudnn().standin_set_fused(true);
  check_one_graph(apart, "forward 2x8x9x6 by 6x8x3x3 first");
  CHECK(has(apart.steps, "then one kernel"));
}

TEST_CASE("NaN stays where it is, and stays through relu") {
  Arrays inputs{numbers({2, 8, 9, 7}, DType::float32), numbers({6, 8, 3, 3}, DType::float32),
                numbers({6}, DType::float32)};
  Buffer with_nan = Buffer::copy_of(inputs[0].buffer().view());
  static_cast<float*>(with_nan.mutable_data())[5] = NAN;
  inputs[0] = Array(with_nan);
  const auto f = [](auto in) {
    return nn::relu(conv(in[0], in[1]) + numpy::expand_dims(in[2], {1, 2}));
  };
  check_one_graph(run_graphs(f, inputs), "forward 2x8x9x7 by 6x8x3x3 first bias relu");
}

TEST_CASE("the fastest engine is chosen once, and kept for the next process") {
  const auto chosen = [](std::vector<int> microseconds) {
    cudnn().standin_plant_engines(microseconds.data(), int(microseconds.size()));
    (void)run_graphs(
        of({}), {numbers({2, 5, 9, 7}, DType::float32), numbers({6, 5, 3, 3}, DType::float32)});
    cudnn().standin_plant_engines(nullptr, 0);
    return cudnn().standin_last_engine() - 100;
  };
  if (!plait::cuda::is_in_own_process()) {
    char folder[] = "/tmp/plait_choices_XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    for (const auto& [order, measures] : {std::pair("unmeasured", "0"), std::pair("measured", "1"),
                                          std::pair("kept", "1"), std::pair("unmeasured", "0")})
      CHECK(plait::cuda::in_own_process("convolutions_test.cpp", "*kept for the next process",
                                        {{"PLAIT_CACHE_DIR", folder},
                                         {"PLAIT_MEASURE", measures},
                                         {"STANDIN_SEED", "0"},
                                         {"TEST_ORDER", order}}) == 0);
    std::filesystem::remove_all(folder);
    return;
  }
  const std::string order = std::getenv("TEST_ORDER");
  if (order == "unmeasured") {
    CHECK(chosen({20000, 20000, 0, 20000}) == 0);
  } else if (order == "measured") {
    CHECK(chosen({20000, 20000, 0, 20000}) == 2);
    CHECK(chosen({20000, 0, 20000, 20000}) == 2);  // once in a process
  } else {
    CHECK(chosen({20000, 0, 20000, 20000}) == 2);  // as the process before
  }
}

TEST_CASE("engines that round, or add up in any order, are not used") {
  const Arrays inputs{numbers({2, 8, 9, 5}, DType::float32), numbers({6, 8, 3, 3}, DType::float32)};
  CHECK(has(run_graphs(of({}), inputs).steps, "engine 11"));
  cudnn().standin_set_proposals(false);
  const Run fallback = run_graphs(
      of({}), {numbers({2, 8, 9, 4}, DType::float32), numbers({6, 8, 3, 3}, DType::float32)});
  cudnn().standin_set_proposals(true);
  CHECK(has(fallback.steps, "engine 1]"));
}

TEST_CASE("convolutions that cuDNN does not take are left to loops, which say why") {
  const auto reason = [](const Numbers& f, const Arrays& inputs) {
    const Run left = run_graphs(f, inputs);
    CHECK(left.num_graphs == 0);
    return left.steps;
  };
  const Array x = numbers({2, 8, 9, 7}, DType::float32), w = numbers({6, 8, 3, 3}, DType::float32);
  CHECK(has(reason(of({}),
                   {numbers({1, 2, 5, 5}, DType::float32), numbers({3, 2, 3, 3}, DType::float32)}),
            "small: 1350 products"));
  CHECK(has(
      reason(of({}), {numbers({2, 8, 9, 7}, DType::int32), numbers({6, 8, 3, 3}, DType::int32)}),
      "no convolution of int32"));
  const std::vector<std::pair<Dim, Dim>> cropped{{-1, 1}, {0, 0}};
  CHECK(has(reason(of({{}, {}, cropped}), {x, w}), "its padding"));
  const auto holes = [](auto in) {
    return lax::conv_general_dilated(in[0], in[1], {2, 2}, "VALID", {3, 3});
  };
  CHECK(has(reason(holes, {x, w}), "holes in lhs with strides"));
  const auto wide = [](auto in) {
    return lax::conv_general_dilated(in[0], in[1], {1, 1}, "SAME", {}, {}, {}, 1, 1,
                                     DType::float32);
  };
  CHECK(has(reason(wide, {x.astype(DType::bfloat16), w.astype(DType::bfloat16)}),
            "a result of another dtype, float32"));
}

TEST_CASE("a convolution of more elements than the library counts is left to loops") {
  const Shape lhs{1 << 16, 64, 32, 32}, rhs{8, 64, 1, 1}, out{1 << 16, 8, 32, 32};
  const Function f = [](std::span<const Array> in) { return Arrays{conv(in[0], in[1])}; };
  const Aval operands[] = {{lhs, DType::float32}, {rhs, DType::float32}},
             result{out, DType::float32};
  const Jaxpr program = make_jaxpr(f, std::vector<Aval>{operands[0], operands[1]}).jaxpr;
  CHECK(find_backend("cudnn")
            ->supports(program->equations[0], operands, std::span(&result, 1), first_device())
            .reason == "more than 2^31 elements");
}

TEST_CASE("a library that fails when it is asked leaves the convolution to loops") {
  cudnn().standin_fail_cudnn("plan", plait::cuda::CUDNN_STATUS_INTERNAL_ERROR);
  const Run left = run_graphs(
      of({}), {numbers({2, 8, 9, 3}, DType::float64), numbers({6, 8, 3, 3}, DType::float64)});
  cudnn().standin_fail_cudnn(nullptr, 0);
  // The next engine runs it.
  CHECK(left.num_graphs == 1);
}

TEST_CASE("a convolution that cannot be started says why") {
  const Array x = device_put(numbers({2, 8, 9, 7}, DType::float32), first_device()),
              w = device_put(numbers({6, 8, 3, 3}, DType::float32), first_device());
  (void)conv(x, w);
  cudnn().standin_fail_cudnn("cudnnBackendExecute", plait::cuda::CUDNN_STATUS_EXECUTION_FAILED);
  const std::string said = problem([&] { (void)conv(x, w); });
  CHECK(said == "cuDNN cannot start a convolution: CUDNN_STATUS_EXECUTION_FAILED (as asked)");
  loaded().standin_fail_call("standin_submit", 1, plait::cuda::CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(has(problem([&] { (void)conv(x, w); }), "cuDNN cannot start a convolution"));
  loaded().standin_fail_call(nullptr, 0, 0);
  (void)conv(x, w);
}

TEST_CASE("threads share plans, and have handles of their own") {
  const Arrays inputs{numbers({2, 8, 9, 7}, DType::float32), numbers({6, 8, 3, 3}, DType::float32)};
  const std::vector<double> expected = conv(inputs[0], inputs[1]).to_vector<double>();
  (void)run_graphs(of({}), inputs);
  const long before = cudnn().standin_handles(), plans_before = cudnn().standin_plans();
  const Array x = device_put(inputs[0], first_device()), w = device_put(inputs[1], first_device());
  constexpr int num_threads = 3;
  std::vector<std::vector<double>> given(num_threads);
  std::vector<std::string> problems(num_threads);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads; ++i)
      threads.emplace_back([&, i] {
        problems[std::size_t(i)] = problem([&] {
          for (int call = 0; call < 5; ++call)
            given[std::size_t(i)] = device_put(conv(x, w), Device()).to_vector<double>();
        });
      });
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::string& each : problems) CHECK(each == "");
  CHECK(cudnn().standin_handles() <= before + num_threads);
  CHECK(cudnn().standin_plans() < plans_before + num_threads);  // one was there
  for (const std::vector<double>& values : given)
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(values[i] - expected[i]) <= 1e-4);
}

TEST_CASE("convolutions and attention are captured, and replayed with other memory") {
  const auto block = [](std::span<const Array> in) {
    const Array y = nn::relu(conv(in[0], in[1]) + numpy::expand_dims(in[2], {1, 2}));
    const Array rows = lax::sort(lax::reshape(y, {2, 6, 63}), 2);
    return Arrays{nn::attention(numpy::swapaxes(numpy::tile(rows, {1, 4, 1}), 1, 2), in[3], in[3])};
  };
  const DType dtype = DType::bfloat16;
  const Array w = numbers({6, 8, 3, 3}, dtype), b = numbers({6}, dtype),
              k = numbers({2, 128, 24}, dtype);
  const Array shape = numbers({2, 8, 9, 7}, dtype);
  const Jaxpr program =
      make_jaxpr(block, std::vector<Aval>{shape.aval(), w.aval(), b.aval(), k.aval()}).jaxpr;
  const auto there = compile(program, {.device = first_device()}), here = compile(program);
  const long before = cudnn().standin_graphs();
  int num_calls = 0;
  std::vector<Buffer> kept;  // so that calls meet other memory
  for (; num_calls < 7; ++num_calls) {
    const Array x = shape * (1.0 + 0.25 * num_calls);
    std::vector<Buffer> inputs, on_device;
    for (const Array& each : {x, w, b, k}) {
      inputs.push_back(each.buffer());
      on_device.push_back(device_put(each, first_device()).buffer());
    }
    kept.insert(kept.end(), on_device.begin(), on_device.end());
    const std::vector<double> given = Array(there->run(on_device)[0].on_host()).to_vector<double>(),
                              expected = Array(here->run(inputs)[0]).to_vector<double>();
    for (std::size_t i = 0; i < given.size(); ++i)
      REQUIRE(std::abs(given[i] - expected[i]) <= 0.05 * (1 + std::abs(expected[i])));
  }
  CAPTURE(there->explain());
  CHECK(has(there->explain(), "captured where the device can"));
  CHECK(cudnn().standin_graphs() > before);
}
