// What equations cost, against counts made by loops.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/cost.h>

#include <set>

using namespace plait;

namespace {

Jaxpr traced_at(const Function& function, const std::vector<Aval>& avals) {
  return make_closed_jaxpr(function, avals);
}
Aval f32(Shape shape) { return {std::move(shape), DType::float32}; }

// Pairs of results and kernel elements that meet an element, along one axis, counted.
double pairs_that_meet(std::int64_t size, std::int64_t window, std::int64_t count,
                       std::int64_t stride, std::int64_t low, std::int64_t holes,
                       std::int64_t dilation) {
  double pairs = 0;
  for (std::int64_t o = 0; o < count; ++o)
    for (std::int64_t k = 0; k < window; ++k) {
      const std::int64_t place = o * stride + k * dilation - low;
      if (place >= 0 && place <= (size - 1) * holes && place % holes == 0) ++pairs;
    }
  return pairs;
}

}  // namespace

TEST_CASE("an elementwise equation is one operation for each element, and reads operands once") {
  const Jaxpr jaxpr =
      traced_at([](auto in) -> Arrays { return {lax::exp(in[0] * in[0])}; }, {f32({3, 4})});
  CHECK(work_of(*jaxpr, jaxpr->equations[0]) == Work{12, 48, 48});
  CHECK(work_of(jaxpr) == Work{24, 96, 96});
}

TEST_CASE("products count two operations for each multiply and add, eight of complex numbers") {
  for (const DType dtype : {DType::float32, DType::complex64}) {
    const Jaxpr jaxpr = traced_at(
        [](auto in) -> Arrays { return {lax::dot_general(in[0], in[1], {{2}, {1}, {0}, {0}})}; },
        {{{5, 2, 3}, dtype}, {{5, 3, 4}, dtype}});
    const double size = double(size_of(dtype));
    CHECK(work_of(jaxpr) == Work{(is_complex(dtype) ? 8.0 : 2.0) * 5 * 2 * 3 * 4,
                                 size * (5 * 2 * 3 + 5 * 3 * 4), size * 5 * 2 * 4});
  }
}

TEST_CASE("a convolution counts the products that padding and holes leave") {
  for (int stride = 1; stride < 4; ++stride)
    for (int holes = 1; holes < 4; ++holes)
      for (int dilation = 1; dilation < 3; ++dilation)
        for (int low = -1; low < 3; ++low) {
          const Jaxpr jaxpr = traced_at(
              [&](auto in) -> Arrays {
                return {lax::conv_general_dilated(in[0], in[1], {stride}, {{{low, 2}}}, {holes},
                                                  {dilation}, {}, 2)};
              },
              {f32({2, 6, 7}), f32({4, 3, 3})});
          const std::int64_t count = jaxpr->output_avals()[0].shape[2].constant();
          CHECK(work_of(jaxpr).flops ==
                2 * 2 * 4 * 3 * pairs_that_meet(7, 3, count, stride, low, holes, dilation));
        }
}

TEST_CASE("bodies count as often as they run, and what data decide is marked") {
  const Function twice = [](auto in) -> Arrays { return {in[0] * Array(2.0F)}; };
  const Jaxpr loop = traced_at(
      [&](auto in) { return flat::scan(twice, in.first(1), {}, {Dim(7)}).carry; }, {f32({5})});
  CHECK(work_of(loop) == Work{7 * 5, 7 * 20, 7 * 20});
  const Jaxpr unknown = traced_at(
      [&](auto in) {
        const Function holds = [](auto x) -> Arrays {
          return {lax::lt(x[0], Array::literal(3.0, DType::float32))};
        };
        return flat::while_loop(holds, twice, in.first(1));
      },
      {f32({})});
  CHECK(work_of(unknown) == Work{2, 8, 5, false});
  const Jaxpr branch = traced_at(
      [&](auto in) {
        const Function sine = [](auto x) -> Arrays { return {lax::sin(lax::sin(x[0]))}; };
        return flat::cond(in[1], {twice, sine}, in.first(1));
      },
      {f32({5}), {{}, DType::int32}});
  CHECK_FALSE(work_of(branch).known);
  CHECK(work_of(*branch, branch->equations.back()).flops == 10);
}

TEST_CASE("indexing reads what it gives") {
  const Jaxpr jaxpr = traced_at(
      [](auto in) -> Arrays {
        return {lax::dynamic_slice(in[0], {in[1]}, {3}, lax::NegativeIndices::clamp)};
      },
      {f32({100}), {{}, DType::int32}});
  CHECK(work_of(*jaxpr, jaxpr->equations.back()) == Work{0, 12 + 4, 12});
}

TEST_CASE("factorizations count as in the textbook") {
  const auto of = [&](const Function& function, const Shape& shape) {
    const Jaxpr jaxpr = traced_at(function, {{shape, DType::float64}});
    double most = 0;  // what functions do besides is less
    for (const Equation& equation : jaxpr->equations)
      most = std::max(most, work_of(*jaxpr, equation).flops);
    return most;
  };
  const double n = 30, m = 50;
  CHECK(of([](auto in) -> Arrays { return {lax::linalg::cholesky(in[0])}; }, {4, 30, 30}) ==
        doctest::Approx(4 * n * n * n / 3));
  CHECK(of([](auto in) -> Arrays { return {lax::linalg::lu(in[0]).lu}; }, {30, 30}) ==
        doctest::Approx(2 * n * n * n / 3));
  CHECK(of([](auto in) -> Arrays { return {lax::linalg::qr(in[0], false).r}; }, {50, 30}) ==
        doctest::Approx(4 * n * n * (m - n / 3)));
}

TEST_CASE("the work of a program with named sizes is an error that says what to do") {
  Builder builder;
  const Dim n = Dim::size("n");
  const Var x = builder.add_binder({{n}, DType::float32});
  const Jaxpr jaxpr = builder.close({builder.add(sin_p, {x}, {}, {})[0]}, {n});
  CHECK_THROWS_AS(work_of(jaxpr), ValueError);
  CHECK(work_of(instantiate(jaxpr, {{"n", Dim(6)}})).flops == 6);
}

TEST_CASE("every primitive of the catalogue says what it costs") {
  std::set<std::string> unknown;
  for (const PrimitiveInfo* info : all_primitives()) {
    CAPTURE(info->primitive->name());
    const auto* samples = Samples::table().find(*info->primitive);
    if (!samples) continue;
    for (const Sample& sample : (*samples)()) {
      Builder builder;
      std::vector<Atom> inputs;
      for (const Sample::Input& input : sample.inputs)
        inputs.push_back(builder.add_binder(input.aval));
      std::vector<Atom> outputs;
      for (const Var& var : builder.add(*info->primitive, inputs, sample.params, {}))
        outputs.push_back(var);
      const Jaxpr jaxpr = builder.close(outputs);
      const bool holds = holds_bodies(sample.params) || holds_callable(sample.params);
      if (!holds && info->file.find("lib/primitives") != std::string::npos)
        CHECK(work_of(jaxpr).known);
      else if (!work_of(jaxpr).known)
        unknown.insert(std::string(info->primitive->name()));
    }
  }
  // What data decide: the steps of a loop, the branch that is taken, sizes, functions of the host.
  const std::set<std::string> by_data{"cond",   "host_call",         "lanes",
                                      "masked", "ordered_host_call", "while"};
  for (const std::string& name : unknown) {
    CAPTURE(name);
    CHECK(by_data.contains(name));
  }
  CHECK(unknown.contains("while"));
  CHECK(unknown.contains("host_call"));
}
