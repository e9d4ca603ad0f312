// Attention on CUDA devices and its gradient (backends/cuda/cudnn), on the stand-ins: what reaches
// the library, and that it gives what the CPU gives.
// SPDX-License-Identifier: Apache-2.0
#include <plait/transforms/transforms.h>

#include "../problem.h"
#include "cudnn_here.h"

using namespace plait;
using plait::cuda::check_one_graph;
using plait::cuda::cudnn;
using plait::cuda::first_device;
using plait::cuda::GraphRun;
using plait::cuda::has;
using plait::cuda::numbers;
using plait::cuda::run_graphs;

namespace {

const DType halves[] = {DType::bfloat16, DType::float16};

Array attended(std::span<const Array> in) { return nn::attention(in[0], in[1], in[2]); }

Array causal(std::span<const Array> in) {
  return nn::dot_product_attention(in[0], in[1], in[2], {}, {}, {}, true);
}

using Attention = Array (*)(std::span<const Array>);

// The gradients of the first operands, one behind the other, for the cotangent that comes last.
Array gradients(Attention f, std::span<const Array> in, std::size_t count = 3) {
  const Function function = [f](std::span<const Array> operands) { return Arrays{f(operands)}; };
  std::vector<bool> wrt(in.size() - 1);
  std::fill_n(wrt.begin(), count, true);
  const flat::Pullback pullback = flat::vjp(function, in.first(in.size() - 1), wrt);
  Arrays flattened;
  for (const Tangent& each : pullback.pull(std::vector{Tangent(in.back())}))
    if (!each.is_zero()) flattened.push_back(numpy::ravel(each.array()));
  return numpy::concatenate(Operands(flattened));
}

// q, k, v, and a cotangent: of [..., t, h, d] where the heads come last but one.
Arrays operands_of_gradients(const Shape& q, const Shape& k, DType dtype) {
  return {numbers(q, dtype), numbers(k, dtype), numbers(k, dtype), numbers(q, dtype)};
}

// How far results are from those of float64, in parts of the largest.
double distance_to_float64(const std::function<Array(std::span<const Array>)>& f,
                           const Arrays& inputs) {
  Arrays there, wide;
  for (const Array& input : inputs) {
    there.push_back(device_put(input, first_device()));
    wide.push_back(numpy::astype(input, DType::float64));
  }
  const Function function = [&](std::span<const Array> in) { return Arrays{f(in)}; };
  const std::vector<double> ours = numpy::astype(
                                       device_put(flat::Jit(function, "f")(there)[0], Device{}),
                                       DType::float64)
                                       .to_vector<double>(),
                            exact = f(wide).to_vector<double>();
  double largest = 0, distance = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    largest = std::max(largest, std::abs(exact[i]));
    distance = std::max(distance, std::abs(ours[i] - exact[i]));
  }
  return distance / largest;
}

// Why the backend leaves attention to others.
std::string refusal(const Arrays& inputs) {
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  const Function f = [](std::span<const Array> in) {
    return Arrays{nn::attention(in[0], in[1], in[2],
                                in.size() > 3 ? std::optional<Array>(in[3]) : std::nullopt)};
  };
  const Jaxpr program = make_jaxpr(f, avals).jaxpr;
  const Equation& equation = program->equations.back();
  std::vector<Aval> operands;
  for (const Atom& atom : equation.inputs) operands.push_back(program->aval(atom));
  const Aval result = program->aval(equation.outputs[0]);
  return find_backend("cudnn")
      ->supports(equation, operands, std::span(&result, 1), first_device())
      .reason;
}

}  // namespace

TEST_CASE("attention in 16 bits is one graph of cuDNN") {
  for (const DType dtype : halves) {
    CAPTURE(name_of(dtype));
    check_one_graph(
        run_graphs(attended, {numbers({2, 3, 64, 16}, dtype), numbers({2, 3, 64, 16}, dtype),
                              numbers({2, 3, 64, 16}, dtype)}),
        "attention 2x3x64x16 by 64");
    check_one_graph(run_graphs(attended, {numbers({3, 61, 24}, dtype), numbers({3, 77, 24}, dtype),
                                          numbers({3, 77, 8}, dtype)}),
                    "attention 1x3x61x24 by 77");
  }
}

TEST_CASE("causal attention is a graph too, and heads are read where they lie") {
  for (const DType dtype : halves) {
    const Array q = numbers({2, 64, 3, 16}, dtype), k = numbers({2, 70, 3, 16}, dtype);
    const GraphRun run = run_graphs(causal, {q, k, k});
    CAPTURE(run.steps);
    CHECK(run.num_graphs == 1);
    CHECK(run.graph == "attention 2x3x64x16 by 70 causal");
    CHECK(!has(run.steps, "copies"));
  }
}

TEST_CASE("operands of attention that the library does not read are copied") {
  const auto transposed = [](std::span<const Array> in) {
    return nn::attention(in[0], numpy::swapaxes(in[1], -1, -2), in[2]);
  };
  const GraphRun run = run_graphs(transposed, {numbers({2, 3, 64, 16}, DType::bfloat16),
                                               numbers({2, 3, 16, 64}, DType::bfloat16),
                                               numbers({2, 3, 64, 16}, DType::bfloat16)});
  check_one_graph(run, "attention 2x3x64x16 by 64");
  CHECK(has(run.steps, "copies k"));
}

TEST_CASE("attention of examples is one graph") {
  const auto each = [](std::span<const Array> in) {
    flat::VmapOptions options;
    options.in_dims = {0, 1, 0};
    options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
    const Function one = [](std::span<const Array> example) {
      return Arrays{
          nn::dot_product_attention(example[0], example[1], example[2], {}, {}, {}, true)};
    };
    return flat::vmap(one, in, options)[0];
  };
  const DType dtype = DType::float16;
  const GraphRun run =
      run_graphs(each, {numbers({2, 3, 32, 2, 16}, dtype), numbers({3, 2, 40, 2, 16}, dtype),
                        numbers({2, 3, 40, 2, 16}, dtype)});
  CAPTURE(run.steps);
  CHECK(run.num_graphs == 1);
  CHECK(run.graph == "attention 6x2x32x16 by 40 causal");
  CHECK(has(run.steps, "copies k"));
  CHECK(!has(run.steps, "copies q"));
  CHECK(!has(run.steps, "copies v"));
}

TEST_CASE("attention that cuDNN does not take is left to loops") {
  const auto of = [](const Shape& shape, DType dtype) {
    return Arrays{numbers(shape, dtype), numbers(shape, dtype), numbers(shape, dtype)};
  };
  CHECK(refusal(of({2, 3, 64, 16}, DType::float32)) == "no attention of float32");
  CHECK(refusal(of({2, 2, 4, 8}, DType::bfloat16)) == "small: 1024 products");
  CHECK(has(refusal(of({2, 3, 64, 20}, DType::bfloat16)), "no engine"));
  CHECK(refusal(of({128, 64}, DType::bfloat16)) == "rank 2");
  const GraphRun loops = run_graphs(attended, of({2, 3, 64, 20}, DType::bfloat16));
  CHECK(loops.num_graphs == 0);
}

TEST_CASE("attention that cannot be started says why") {
  const Array x = device_put(numbers({2, 3, 64, 16}, DType::bfloat16), first_device());
  const Function f = [](std::span<const Array> in) { return Arrays{attended(in)}; };
  const flat::Jit jitted(f, "attended");
  (void)jitted(Arrays{x, x, x});
  cudnn().standin_fail_cudnn("cudnnBackendExecute", plait::cuda::CUDNN_STATUS_EXECUTION_FAILED);
  CHECK(problem([&] { (void)jitted(Arrays{x, x, x}); }) ==
        "cuDNN cannot start attention: CUDNN_STATUS_EXECUTION_FAILED (as asked)");
}

TEST_CASE("the gradient of attention is a graph, which reads what that of the result leaves") {
  for (const DType dtype : halves) {
    CAPTURE(name_of(dtype));
    const GraphRun plain = run_graphs([](auto in) { return gradients(attended, in); },
                                      operands_of_gradients({2, 3, 64, 16}, {2, 3, 72, 16}, dtype));
    CAPTURE(plain.steps);
    CHECK(plain.num_graphs == 2);
    CHECK(plain.graph == "attention 2x3x64x16 by 72 gradient");
    CHECK(!has(plain.steps, "copies"));
    const GraphRun heads = run_graphs([](auto in) { return gradients(causal, in); },
                                      operands_of_gradients({2, 64, 3, 16}, {2, 64, 3, 16}, dtype));
    CAPTURE(heads.steps);
    CHECK(heads.num_graphs == 2);
    CHECK(heads.graph == "attention 2x3x64x16 by 64 gradient causal");
    CHECK(!has(heads.steps, "copies"));
  }
}

TEST_CASE("the gradient of some of attention's operands is one graph too") {
  const auto of_queries = [](std::span<const Array> in) { return gradients(attended, in, 1); };
  const GraphRun run = run_graphs(
      of_queries, operands_of_gradients({2, 3, 64, 16}, {2, 3, 64, 16}, DType::bfloat16));
  CAPTURE(run.steps);
  CHECK(run.num_graphs == 2);
  CHECK(run.graph == "attention 2x3x64x16 by 64 gradient");
}

TEST_CASE("gradients of attention are as far from float64 as their dtype is") {
  const auto of_all = [](std::span<const Array> in) { return gradients(causal, in); };
  // Weights, and what they are multiplied by, are rounded once, and so are results.
  CHECK(distance_to_float64(of_all, operands_of_gradients({2, 64, 3, 16}, {2, 64, 3, 16},
                                                          DType::bfloat16)) < 3 * 0x1p-8);
  CHECK(distance_to_float64(of_all, operands_of_gradients({2, 64, 3, 16}, {2, 64, 3, 16},
                                                          DType::float16)) < 3 * 0x1p-11);
}

TEST_CASE("the gradient of attention of examples is one graph") {
  const auto each = [](std::span<const Array> in) {
    flat::VmapOptions options;
    options.in_dims = {0, 1, 0, 0};
    options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
    const Function one = [](std::span<const Array> example) {
      return Arrays{gradients(causal, example)};
    };
    return flat::vmap(one, in, options)[0];
  };
  const DType dtype = DType::float16;
  const GraphRun run =
      run_graphs(each, {numbers({2, 3, 32, 2, 16}, dtype), numbers({3, 2, 40, 2, 16}, dtype),
                        numbers({2, 3, 40, 2, 16}, dtype), numbers({2, 3, 32, 2, 16}, dtype)});
  CAPTURE(run.steps);
  CHECK(run.num_graphs == 2);
  CHECK(run.graph == "attention 6x2x32x16 by 40 gradient causal");
}

TEST_CASE("attention with a mask is a graph that adds what is made of the mask") {
  const auto masked = [](std::span<const Array> in) {
    return nn::attention(in[0], in[1], in[2], numpy::broadcast_to(in[3], {2, 3, 64, 72}));
  };
  const auto derivative = [&](std::span<const Array> in) {
    const Function f = [&](std::span<const Array> x) {
      return Arrays{masked(Arrays{x[0], x[1], x[2], in[4]})};
    };
    const flat::Pullback pullback = flat::vjp(f, in.first(3), std::vector<bool>(3, true));
    Arrays flattened;
    for (const Tangent& each : pullback.pull(std::vector{Tangent(in[3])}))
      flattened.push_back(numpy::ravel(each.array()));
    return numpy::concatenate(Operands(flattened));
  };
  for (const DType dtype : halves)
    for (const Shape& shape :
         {Shape{2, 3, 64, 72}, Shape{2, 1, 64, 72}, Shape{2, 1, 1, 72}, Shape{64, 72}}) {
      CAPTURE(name_of(dtype));
      CAPTURE(shape.to_string());
      Shape rows = shape;
      rows.back() = Dim(1);
      const Array mask =
          numpy::logical_and(numbers(shape, DType::float32) > -0.2,
                             numbers(rows, DType::float32) > -0.8);  // some are empty
      const Array q = numbers({2, 3, 64, 16}, dtype), k = numbers({2, 3, 72, 16}, dtype);
      const GraphRun forward = run_graphs(masked, {q, k, k, mask});
      CAPTURE(forward.steps);
      CHECK(forward.num_graphs == 1);
      CHECK(has(forward.graph, "attention 2x3x64x16 by 72 plus "));
      const GraphRun backward = run_graphs(derivative, {q, k, k, q, mask});
      CAPTURE(backward.steps);
      CHECK(backward.num_graphs == 2);
      CHECK(has(backward.graph, " gradient"));
    }
}

TEST_CASE("derivatives of attention that the library does not have are those of its body") {
  const DType dtype = DType::bfloat16;
  const Arrays inputs = operands_of_gradients({2, 3, 64, 20}, {2, 3, 64, 20}, dtype);
  CHECK(run_graphs([](auto in) { return gradients(attended, in); }, inputs).num_graphs == 0);
  const auto forward = [](std::span<const Array> in) {
    const Function f = [](std::span<const Array> x) { return Arrays{attended(x)}; };
    return flat::jvp(f, in.first(3), std::vector<Tangent>(in.begin() + 3, in.end()))
        .tangents[0]
        .array();
  };
  Arrays pushed = operands_of_gradients({2, 3, 64, 16}, {2, 3, 64, 16}, dtype);
  for (int i = 0; i < 2; ++i) pushed.push_back(pushed[0]);
  (void)run_graphs(forward, pushed);
  const auto twice = [](std::span<const Array> in) {
    const Function first = [](std::span<const Array> x) { return Arrays{gradients(attended, x)}; };
    const flat::Pullback pullback =
        flat::vjp(first, in.first(4), std::vector<bool>{true, false, false, false});
    return pullback.pull(std::vector{Tangent(in[4])})[0].array();
  };
  Arrays second = operands_of_gradients({1, 2, 64, 16}, {1, 2, 64, 16}, dtype);
  second.push_back(numbers({3 * 2 * 64 * 16}, dtype));
  (void)run_graphs(twice, second);
}

TEST_CASE("programs for the CPU compute the weights of attention once") {
  const Function f = [](std::span<const Array> in) { return Arrays{gradients(causal, in)}; };
  std::vector<Aval> avals(4, Aval{{2, 64, 3, 16}, DType::float32});
  const Jaxpr program = make_jaxpr(f, avals).jaxpr;
  const std::string steps = compile(program)->explain();
  CAPTURE(steps);
  std::size_t products = 0;
  for (std::size_t at = 0; (at = steps.find("dot_general", at)) != std::string::npos; ++at)
    ++products;
  // q k^T, and dv, dp, dq, dk; the result itself is not asked for.
  CHECK(products == 5);
}
