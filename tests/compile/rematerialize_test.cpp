// Rematerialisation: a scan computes again what follows from other slices of an earlier one. Values
// are compared with loops over numbers, written here.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/control/primitives.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/transforms.h>

#include <cmath>

#include "../same_bits.h"
#include "compile/passes/rematerialize.h"

using namespace plait;

namespace {

using In = std::span<const Array>;
constexpr std::int64_t steps = 16;

// c' = c / 2 + x; e = exp(-c'), p = 1 / (1 + e), q = p / (1 + e), and behind it, backwards,
// d' = 0.9 d + e q + p x. Gives the last d, and p where that is wanted.
Function chain(bool with_p = false) {
  return [with_p](In in) {
    const flat::Scanned there = flat::scan(
        [](In now) -> Arrays {
          const Array c = now[0] * 0.5 + now[1], e = lax::exp(-c), p = 1.0 / (1.0 + e);
          return {c, e, p, p / (1.0 + e)};
        },
        in.first(1), in.subspan(1), {Dim(steps)});
    Arrays xs = there.ys;
    xs.push_back(in[1]);
    const flat::Scanned back = flat::scan(
        [](In now) -> Arrays { return {now[0] * 0.9 + now[1] * now[3] + now[2] * now[4]}; },
        in.first(1), xs, {Dim(steps), true});
    Arrays results = back.carry;
    if (with_p) results.push_back(there.ys[1]);
    return results;
  };
}

Arrays inputs_of(std::int64_t width) {
  const Array key = random::key(3);
  return {random::normal(key, {width}), random::normal(key, {Dim(steps), Dim(width)})};
}

double expected(double start, const float* xs, std::int64_t width) {
  double c = start, d = start, e[steps];
  for (std::int64_t i = 0; i < steps; ++i) {
    c = c / 2 + xs[i * width];
    e[i] = std::exp(-c);
  }
  for (std::int64_t i = steps; i-- > 0;) {
    const double p = 1 / (1 + e[i]);
    d = 0.9 * d + e[i] * p / (1 + e[i]) + p * xs[i * width];
  }
  return d;
}

Jaxpr program_of(const Function& function, const Arrays& inputs) {
  const std::vector<Aval> avals{inputs[0].aval(), inputs[1].aval()};
  return make_jaxpr(function, avals).jaxpr;
}

// Of the last scan: the slices that a step reads.
std::size_t slices_read(const Jaxpr& program) {
  std::size_t count = 0;
  for (const Equation& equation : program->equations)
    if (*equation.primitive == scan_p) count = ScanParams(equation.params).num_xs;
  return count;
}

}  // namespace

TEST_CASE("a later scan computes again what follows cheaply from other slices") {
  const std::int64_t width = 1 << 15;
  const Arrays inputs = inputs_of(width);
  const Jaxpr program = program_of(chain(), inputs),
              recomputed = compile_passes::rematerialize(program);
  REQUIRE(recomputed);
  CHECK(slices_read(program) == 4);
  CHECK(slices_read(recomputed) == 2);  // e and x
  const Array result = eval_jaxpr(recomputed, inputs)[0];
  CHECK(same_bits(result, eval_jaxpr(program, inputs)[0]));
  CHECK(same_bits(flat::Jit(chain(), "chain")(inputs)[0], result));
  const Buffer start = inputs[0].buffer().dense(), xs = inputs[1].buffer().dense(),
               got = result.buffer().dense();
  for (std::int64_t i = 0; i < width; i += 97) {
    const double want = expected(start.view().as<float>()[i], xs.view().as<float>() + i, width);
    CHECK(std::abs(got.view().as<float>()[i] - want) < 1e-4 * (1 + std::abs(want)));
  }
  CHECK_FALSE(compile_passes::rematerialize(recomputed));
}

TEST_CASE("slices that others want too stay, and so do small ones") {
  const Arrays inputs = inputs_of(1 << 15);
  const Jaxpr program = program_of(chain(true), inputs),
              recomputed = compile_passes::rematerialize(program);
  REQUIRE(recomputed);
  CHECK(slices_read(recomputed) == 3);  // e, p and x
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(same_bits(eval_jaxpr(recomputed, inputs)[i], eval_jaxpr(program, inputs)[i]));
  CHECK_FALSE(compile_passes::rematerialize(program_of(chain(), inputs_of(64))));
}

TEST_CASE("the gradient of a recurrent net has the same bits compiled") {
  const Function loss = [](In in) {
    const flat::Scanned done = flat::scan(
        [](In now) -> Arrays {
          const Array gate = 1.0 / (1.0 + lax::exp(-now[1])), c = gate * now[0] + lax::tanh(now[1]);
          return {c};
        },
        in.first(1), in.subspan(1), {Dim(steps)});
    return Arrays{lax::reduce_sum(done.carry[0] * done.carry[0], std::vector<int>{0})};
  };
  const Function gradient = [&](In in) {
    return flat::value_and_grad(loss, in, {true, true}).gradients;
  };
  const Arrays inputs = inputs_of(1 << 15);
  const Arrays now = gradient(inputs), compiled = flat::Jit(gradient, "gradient")(inputs);
  for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(now[i], compiled[i]));
}
