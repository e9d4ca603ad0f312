// See wide_loops.h.
// SPDX-License-Identifier: Apache-2.0
#include "wide_loops.h"

#include <plait/inspect/samples.h>

#include <cmath>

namespace plait::kernels {
namespace {

namespace np = numpy;
using In = std::span<const Array>;

Array i32(std::int64_t value) { return Array::literal(double(value), DType::int32); }
Array random(const Shape& shape, unsigned seed) {
  return laws::normal_like({shape, DType::float32}, seed);
}
// body(i, carry) for i from 0 on.
Arrays loop(std::int64_t steps, const Function& body, const Arrays& init) {
  return flat::fori_loop(i32(0), i32(steps), body, init);
}
Array heated(const Array& u) {
  return u + 0.1 * (np::roll(u, 1, {0}) + np::roll(u, -1, {0}) - 2.0 * u);
}

// Steps that exchange two arrays; behind an odd number of them each goes home.
Arrays heat(In in) {
  return loop(5, [](In in) { return Arrays{heated(in[1])}; }, {in[0]});
}
// Until the largest change is small, or for ten steps.
Arrays steady_heat(In in) {
  const Function goes_on = [](In s) -> Arrays { return {(s[1] > 1e-1) & (s[2] < 10)}; };
  const Function step = [](In s) -> Arrays {
    const Array next = heated(s[0]);
    return {next, np::max(np::abs(next - s[0])), s[2] + 1};
  };
  return flat::while_loop(goes_on, step, Arrays{in[0], np::sum(in[0]) * 0.0 + 1.0, i32(0)});
}
// A predicate that is a sum of all elements.
Arrays halved_until_small(In in) {
  const Function goes_on = [](In s) -> Arrays { return {np::sum(s[0] * s[0]) > 1.0}; };
  const Function step = [](In s) -> Arrays { return {s[0] * 0.5, s[1] + 1}; };
  return flat::while_loop(goes_on, step, Arrays{in[0], i32(0)});
}
Arrays power_iteration(In in) {
  return loop(4,
              [&](In s) -> Arrays {
                const Array y = np::matmul(in[0], s[1]);
                const Array norm = np::sqrt(np::sum(y * y));
                return {y / norm, norm};
              },
              {in[1], np::sum(in[1]) * 0.0});
}
// What each step has, and a sum of it, one behind the other.
Arrays trajectory(In in) {
  const Function step = [](In s) -> Arrays {
    const Array next = s[0] * 0.9 + np::roll(s[0], 3, {0}) * s[1];
    return {next, next, np::sum(next)};
  };
  const flat::Scanned done = flat::scan(step, Arrays{in[0]}, Arrays{in[1]});
  return {done.carry[0], done.ys[0], done.ys[1]};
}
// Conjugate gradients for a matrix of three diagonals: scalars between sums decide what steps do.
Arrays conjugate_gradients(In in) {
  const auto applied = [](const Array& x) {
    return 2.5 * x - np::roll(x, 1, {0}) - np::roll(x, -1, {0});
  };
  const Function goes_on = [](In s) -> Arrays { return {(s[3] > 1e-2) & (s[4] < 6)}; };
  const Function step = [&](In s) -> Arrays {
    const Array a_p = applied(s[2]), alpha = s[3] / np::sum(s[2] * a_p);
    const Array x = s[0] + alpha * s[2], r = s[1] - alpha * a_p, rr = np::sum(r * r);
    return {x, r, r + rr / s[3] * s[2], rr, s[4] + 1};
  };
  const Array b = in[0];
  return flat::while_loop(goes_on, step, Arrays{b * 0.0, b, b, np::sum(b * b), i32(0)});
}
// A few inner steps in each outer one, and a branch by what they have left.
Arrays nested(In in) {
  return loop(3,
              [](In s) -> Arrays {
                const Array inner =
                    loop(2, [&](In c) { return Arrays{heated(c[1]) + 0.01 * s[1]}; }, {s[1]})[0];
                const std::vector<Function> branches = {
                    [](In x) -> Arrays { return {x[0] * 0.5}; },
                    [](In x) -> Arrays { return {np::flip(x[0]) - np::mean(x[0])}; }};
                return flat::cond(np::sum(inner) > 0.0, branches, Arrays{inner});
              },
              {in[0]});
}
// Elements that steps choose among all: an index that is a reduction.
Arrays largest_go(In in) {
  return loop(6,
              [](In s) -> Arrays {
                const Array i = np::argmax(s[1]);
                return {s[1].at(i).set(-1.0), s[2] + s[1][i]};
              },
              {in[0], np::sum(in[0]) * 0.0});
}
// Sums of rows and of columns.
Arrays balanced(In in) {
  return loop(3,
              [](In s) -> Arrays {
                const Array rows = s[1] / np::sum(s[1], 1, {}, true);
                return {rows / np::sum(rows, 0, {}, true)};
              },
              {np::exp(in[0])});
}
// A cumulative sum takes rounds.
Arrays cumulative(In in) {
  return loop(3, [](In s) { return Arrays{np::cumsum(s[1]) * 0.01 - s[1]}; }, {in[0]});
}
// Too many steps for its bound.
Arrays bounded(In in) {
  const Function goes_on = [](In s) -> Arrays { return {np::sum(s[0] * s[0]) > 0.0}; };
  const Function step = [](In s) -> Arrays { return {s[0] + 1.0}; };
  return flat::while_loop(goes_on, step, in, {4});
}

Function over_examples(const Function& each) {
  return [each](In in) {
    flat::VmapOptions options;
    options.in_dims.assign(in.size(), 0);
    return flat::vmap(each, in, options);
  };
}

}  // namespace

codegen::LoopCases wide_loops(std::int64_t size) {
  const std::int64_t side = std::int64_t(std::sqrt(double(size))) + 1;
  const Array x = random({size}, 1), square = random({side, side}, 2), few = random({3, size}, 3);
  codegen::LoopCases all;
  const auto add = [&](const char* name, const Function& function, const Arrays& inputs) {
    all.add(codegen::loops_of(name, function, inputs));
  };
  add("heat", heat, {x});
  add("steady heat", steady_heat, {x});
  add("halved until small", halved_until_small, {x});
  add("power iteration", power_iteration, {square, random({side}, 4)});
  add("trajectory", trajectory, {x, random({4}, 5)});
  add("conjugate gradients", conjugate_gradients, {x});
  add("nested", nested, {x});
  add("largest go", largest_go, {x});
  add("balanced", balanced, {square});
  add("cumulative", cumulative, {x});
  add("bounded", bounded, {x});
  add("heat of examples", over_examples(heat), {few});
  add("examples halved", over_examples(halved_until_small), {few});
  add("steady heat of examples", over_examples(steady_heat), {few});
  return all;
}

}  // namespace plait::kernels
