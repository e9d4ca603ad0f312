// Sums of rows, by whichever team of threads runs them: near those of the CPU, and of the same bits
// however often they run, whoever runs them, and whether sizes are written or given. What has no
// order, such as integers and extremes, has the CPU's bits.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/inspect/samples.h>
#include <plait/plait.h>

#include "../same_bits.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/kernel.h"
#include "compile/loop_programs.h"
#include "compile/passes/pipeline.h"
#include "run_kernel.h"

using namespace plait;

namespace {

namespace np = numpy;
using In = std::span<const Array>;

struct Rows {
  std::string name;
  Function function;
  Arrays inputs;
  std::int64_t before = 0;  // elements of other arrays before each operand and result

  std::string where() const {
    std::string text = name;
    for (const Array& x : inputs) text += " " + x.aval().to_string();
    return text + (before > 0 ? " behind " + std::to_string(before) : "");
  }
};

std::vector<Aval> avals_of(const Arrays& arrays) {
  std::vector<Aval> avals;
  for (const Array& array : arrays) avals.push_back(array.aval());
  return avals;
}

// A function as one group.
std::shared_ptr<const cuda::Staged> staged(const Rows& rows) {
  static const std::unique_ptr<Backend> cuda = cuda::make_backend();
  std::vector<const Backend*> backends{cuda.get()};
  for (const Backend* backend : backends_of(kernels::device())) backends.push_back(backend);
  const Jaxpr group = compile_passes::prepare(
      make_jaxpr(rows.function, avals_of(rows.inputs)).jaxpr, backends, kernels::device());
  const cuda::Lowered lowered =
      cuda::lowered(group, compile_passes::dense_inputs(group), kernels::device());
  REQUIRE_MESSAGE(lowered.staged, rows.where() << ": " << lowered.reason);
  return lowered.staged;
}
// What the kernels of functions give, which are one text.
std::vector<Arrays> run(const std::vector<Rows>& all, cuda::Sizes sizes) {
  std::vector<std::shared_ptr<const cuda::Staged>> programs;
  for (const Rows& rows : all) programs.push_back(staged(rows));
  const auto made = cuda::make_program_kernels(programs, kernels::device(), sizes);
  std::vector<Arrays> results;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<Aval> outputs =
        make_jaxpr(all[i].function, avals_of(all[i].inputs)).jaxpr->output_avals();
    const codegen::Outcome outcome =
        kernels::run(*made[i], all[i].inputs, outputs, {}, all[i].before);
    CHECK_MESSAGE(outcome.error.empty(), all[i].where() << ": " << outcome.error);
    results.push_back(outcome.results);
  }
  return results;
}

bool adds_floats(const Rows& rows) {
  return is_inexact(rows.inputs[0].dtype()) && rows.name != "maximum";
}

// bound: of the difference, relative to 1 and the number.
void check(const std::vector<Rows>& all, std::optional<double> bound = {}) {
  const std::vector<Arrays> written = run(all, cuda::Sizes::written),
                            given = run(all, cuda::Sizes::given);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].where());
    const Arrays expected = all[i].function(all[i].inputs);
    const auto wrong = adds_floats(all[i]) ? laws::difference(written[i], expected, bound)
                                           : laws::difference_in_bits(written[i], expected);
    CHECK_MESSAGE(!wrong, *wrong);
    const auto differs = laws::difference_in_bits(given[i], written[i]);
    CHECK_MESSAGE(!differs, "sizes given: " << *differs);
  }
}

Array some(const Shape& shape, DType dtype = DType::float32, unsigned seed = 1) {
  return laws::normal_like({shape, dtype}, seed);
}

Arrays total(In in) { return {np::sum(in[0], 1)}; }
Arrays maximum_of(In in) { return {np::max(in[0], 1)}; }
Arrays softmax(In in) { return {nn::softmax(in[0])}; }
Arrays standardized(In in) {
  const Array mean = np::mean(in[0], 1, {}, true), x = in[0] - mean;
  return {x / np::sqrt(np::mean(x * x, 1, {}, true) + 1e-5)};
}
Arrays gradient_of_softmax(In in) {
  const Function loss = [](In x) {
    const Array y = nn::softmax(x[0]);
    return Arrays{np::sum(y * y * y)};
  };
  return flat::value_and_grad(loss, in, {true}).gradients;
}
Arrays dot(In in) { return {np::matmul(in[0], in[1])}; }
Arrays dot_of_columns(In in) { return {np::matmul(np::transpose(in[0]), in[1])}; }

}  // namespace

TEST_CASE("sums of rows of any length") {
  REQUIRE(kernels::is_apart);
  std::vector<Rows> all;
  for (const std::int64_t n :
       {1, 7, 8, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 4096, 5000, 100'003}) {
    const Array x = some({2, n});
    all.push_back({"total", total, {x}});
    all.push_back({"maximum", maximum_of, {x}});
    if (n > 5000) continue;
    all.push_back({"standardized", standardized, {x}});
    all.push_back({"softmax", softmax, {x}});
    all.push_back({"gradient of softmax", gradient_of_softmax, {x}});
    all.push_back({"dot", dot, {x, some({n}, DType::float32, 2)}});
  }
  check(all);
}

TEST_CASE("sums of rows of any dtype, wherever they lie") {
  const auto some_of = [](In in) { return Arrays{np::sum(in[0], 1) + np::min(in[0], 1) * 3}; };
  std::vector<Rows> all;
  for (const std::int64_t n : {33, 257, 600, 1024}) {
    for (const DType dtype : {DType::bool_, DType::int8, DType::uint16, DType::int64})
      all.push_back({"some", some_of, {some({3, n}, dtype)}, n % 3});
    for (const DType dtype : {DType::float32, DType::float64}) {
      all.push_back({"softmax", softmax, {some({3, n}, dtype)}, 1});
      all.push_back({"standardized", standardized, {some({3, n}, dtype)}, 4});
      all.push_back({"dot", dot, {some({3, n}, dtype), some({n}, dtype, 2)}, 3});
    }
    for (const DType dtype : {DType::complex64, DType::complex128})
      all.push_back({"total", total, {some({3, n}, dtype)}, 1});
  }
  check(all);
  all.clear();
  for (const std::int64_t n : {257, 600})
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      all.push_back({"softmax", softmax, {some({3, n}, dtype)}, 1});
      all.push_back({"maximum", maximum_of, {some({3, n}, dtype)}});
    }
  check(all, 0.05);
}

// As many as warps take one each, with their elements in registers.
TEST_CASE("sums of many rows") {
  constexpr std::int64_t many = 512;
  std::vector<Rows> all;
  for (const std::int64_t n : {256, 259, 384, 513}) {
    const Array x = some({many, n});
    all.push_back({"softmax", softmax, {x}, n == 384 ? 1 : 0});
    all.push_back({"standardized", standardized, {x}});
    all.push_back({"gradient of softmax", gradient_of_softmax, {x}, n == 256 ? 4 : 0});
  }
  all.push_back({"standardized", standardized, {some({many, 272}, DType::float64)}});
  all.push_back({"standardized", standardized, {some({many, 272}, DType::bfloat16)}});
  all.back().before = 4;
  check(all, 0.05);
}

TEST_CASE("a sum of a row has the same bits whoever runs it") {
  constexpr std::int64_t many = 2048, few = 3, n = 300;
  const Array x = some({many, n}), part = np::take(x, np::arange(few), 0),
              y = some({n}, DType::float32, 2);
  const std::vector<Rows> all = {{"many", total, {x}},
                                 {"few", total, {part}},
                                 {"twice", total, {part}},
                                 {"behind", total, {part}, 1},
                                 {"dot of many", dot, {x, y}},
                                 {"dot of few", dot, {part, y}},
                                 {"dot of columns", dot_of_columns, {np::transpose(x), y}}};
  const std::vector<Arrays> results = run(all, cuda::Sizes::written),
                            given = run(all, cuda::Sizes::given);
  const auto first = [&](const Array& sums) { return np::take(sums, np::arange(few), 0); };
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].where());
    CHECK(same_bits(results[i][0], given[i][0]));
    CHECK(same_bits(first(results[i][0]), first(results[i < 4 ? 0 : 4][0])));
  }
}
