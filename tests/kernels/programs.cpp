// See programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "programs.h"

#include "backends/cuda/backend.h"
#include "backends/cuda/kernel.h"
#include "compile/partition.h"
#include "compile/passes/pipeline.h"

namespace plait::kernels {
namespace {

namespace np = numpy;

using In = std::span<const Array>;

// Lowering asks of a device whether it is the CPU.
constexpr Device some_device{Device::Kind(1), 0};

Aval f32(const Shape& shape) { return {shape, DType::float32}; }
Aval i32(const Shape& shape) { return {shape, DType::int32}; }

Function gradient_of(const Function& f) {
  return [f](In in) {
    std::vector<bool> wrt;
    for (const Array& x : in) wrt.push_back(is_inexact(x.dtype()));
    const Function total = [&](In x) { return Arrays{np::sum(f(x)[0])}; };
    return flat::value_and_grad(total, in, wrt).gradients;
  };
}

Arrays over_examples(const Function& each, In in) {
  flat::VmapOptions options;
  options.in_dims.assign(in.size(), 0);
  return flat::vmap(each, in, options);
}

Arrays softmax(In in) { return {nn::softmax(in[0])}; }
Arrays layer_norm(In in) { return {nn::layer_norm(in[0], in[1], in[2])}; }
Arrays cross_entropy(In in) {
  const Array picked = np::take_along_axis(nn::log_softmax(in[0]), np::expand_dims(in[1], {1}), 1);
  return {np::negative(np::mean(picked))};
}
Arrays gelu(In in) { return {nn::gelu(in[0] * 2.0 + in[1])}; }
Arrays gauss_seidel(In in) {
  const Function sweep = [&](In carry) {
    const Array u = carry[1];
    const Array next = np::where(u > 0.5, u * 0.25, u + 0.125);
    return Arrays{next};
  };
  return flat::fori_loop(Array::literal(0, DType::int32), Array::literal(50, DType::int32), sweep,
                         Arrays{in[0]});
}
// Each example until its own square is close.
Arrays square_roots(In in) {
  const Function each = [](In x) {
    const Array a = x[0];
    return flat::while_loop(
        [&](In carry) { return Arrays{np::abs(carry[0] * carry[0] - a) > a * 1e-5}; },
        [&](In carry) { return Arrays{(carry[0] + a / carry[0]) * 0.5}; }, Arrays{a});
  };
  return over_examples(each, in);
}
// A damped oscillator by the midpoint rule, one for each pair of parameters.
Arrays oscillators(In in) {
  const Function step = [](In carry) {
    const Array x = carry[1], v = carry[2], k = carry[3];
    const Array half_v = v - k * x * 0.005, half_x = x + v * 0.005;
    return Arrays{x + half_v * 0.01, v - k * half_x * 0.01, k};
  };
  const Function each = [&](In x) {
    return flat::fori_loop(Array::literal(0, DType::int32), Array::literal(200, DType::int32), step,
                           Arrays{x[0], x[1], x[2]});
  };
  return over_examples(each, in);
}

Array heated(const Array& u) {
  return u + (np::roll(u, 1, {0}) + np::roll(u, -1, {0}) - u * 2.0) * 0.1;
}
// Steps that exchange two arrays.
Arrays heat(In in) {
  const Function step = [](In carry) { return Arrays{heated(carry[1])}; };
  return flat::fori_loop(Array::literal(0, DType::int32), Array::literal(1000, DType::int32), step,
                         Arrays{in[0]});
}
// Until the largest change is small.
Arrays steady_heat(In in) {
  const Function changes = [](In carry) { return Arrays{carry[1] > 1e-4}; };
  const Function step = [](In carry) {
    const Array next = heated(carry[0]);
    return Arrays{next, np::max(np::abs(next - carry[0]))};
  };
  return flat::while_loop(changes, step, Arrays{in[0], in[1]});
}

}  // namespace

std::vector<Program> programs() {
  const auto one = [](auto f) { return Function([f](In in) { return Arrays{f(in)}; }); };
  return {
      {"chain",
       one([](In in) { return np::tanh(in[0] * in[1]) + np::exp(np::negative(in[0])); }),
       {f32({1 << 20}), f32({1 << 20})}},
      {"gelu", gelu, {f32({512, 3072}), f32({3072})}},
      {"softmax", softmax, {f32({4096, 1000})}},
      {"softmax_gradient", gradient_of(softmax), {f32({4096, 1000})}},
      {"softmax_long_rows", softmax, {f32({64, 50257})}},
      {"layer_norm", layer_norm, {f32({8192, 768}), f32({768}), f32({768})}},
      {"layer_norm_gradient", gradient_of(layer_norm), {f32({8192, 768}), f32({768}), f32({768})}},
      {"cross_entropy_gradient", gradient_of(cross_entropy), {f32({2048, 1000}), i32({2048})}},
      {"sum", one([](In in) { return np::sum(in[0]); }), {f32({1 << 22})}},
      {"sum_of_columns", one([](In in) { return np::sum(in[0], 0); }), {f32({8192, 512})}},
      {"mean_and_variance",
       [](In in) { return Arrays{np::mean(in[0], 0), np::var(in[0], 0)}; },
       {f32({4096, 64})}},
      {"matrix_vector",
       one([](In in) { return np::matmul(in[0], in[1]); }),
       {f32({1024, 768}), f32({768})}},
      {"sort", one([](In in) { return np::sort(in[0]); }), {f32({1 << 20})}},
      {"argsort_rows", one([](In in) { return np::argsort(in[0], 1); }), {i32({4096, 1000})}},
      {"cumsum", one([](In in) { return np::cumsum(in[0], 1); }), {f32({1024, 300})}},
      {"argmax", one([](In in) { return np::argmax(in[0], 1); }), {f32({4096, 128})}},
      {"transpose", one([](In in) { return np::transpose(in[0]) * 2.0; }), {f32({1000, 700})}},
      {"gather",
       one([](In in) { return np::take(in[0], in[1], 0); }),
       {f32({10000, 64}), i32({4096})}},
      {"complex_product",
       one([](In in) { return in[0] * in[1]; }),
       {{{4096}, DType::complex64}, {{4096}, DType::complex64}}},
      {"steps", gauss_seidel, {f32({4096})}},
      {"square_roots", square_roots, {f32({10000})}},
      {"heat", heat, {f32({1 << 20})}},
      {"steady_heat", steady_heat, {f32({1 << 16}), f32({})}},
      {"oscillators", oscillators, {f32({100000}), f32({100000}), f32({100000})}},
  };
}

std::vector<std::shared_ptr<const cuda::Staged>> staged(const Program& program) {
  static const std::unique_ptr<Backend> cuda = cuda::make_backend();
  std::vector<const Backend*> backends{cuda.get()};
  for (const Backend* backend : backends_of(some_device)) backends.push_back(backend);
  const Jaxpr traced = make_jaxpr(program.function, program.inputs, program.name).jaxpr;
  const Jaxpr plain = compile_passes::prepare(traced, backends, some_device);
  std::vector<std::shared_ptr<const cuda::Staged>> all;
  const compile_passes::Partition partition =
      compile_passes::partition_program(plain, backends, some_device);
  for (const compile_passes::Group& group : partition.groups) {
    if (group.backend != cuda.get()) continue;
    std::vector<Sizes64> strides;
    for (const Atom& atom : group.inputs)
      strides.push_back(partition.layouts[std::size_t(atom.var().id)].strides);
    cuda::Lowered lowered = cuda::lowered(group.jaxpr, strides, some_device);
    if (lowered.staged) all.push_back(std::move(lowered.staged));
  }
  return all;
}

std::string source_of(const Program& program) {
  std::vector<cuda::ProgramText> texts;
  const auto all = staged(program);
  for (const auto& each : all)
    texts.push_back(
        cuda::text_of(*each, program.name + std::to_string(texts.size()), cuda::Sizes::written));
  std::vector<const cuda::ProgramText*> pointers;
  for (const cuda::ProgramText& text : texts) pointers.push_back(&text);
  return cuda::source_of(pointers);
}

}  // namespace plait::kernels
