// Attention on CUDA devices (backends/cuda/cudnn), on the stand-ins: what reaches the library, and
// that it gives what the CPU gives.
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
  const auto causal = [](std::span<const Array> in) {
    return nn::dot_product_attention(in[0], in[1], in[2], {}, {}, {}, true);
  };
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
  Arrays masked = of({2, 3, 64, 16}, DType::bfloat16);
  masked.push_back(numbers({2, 3, 64, 64}, DType::float32) > 0);
  CHECK(refusal(masked) == "a mask that is not causal");
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
