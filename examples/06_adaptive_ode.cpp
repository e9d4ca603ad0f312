// Lesson 6: a loop whose number of steps depends on the data, and its derivatives.
//
// An adaptive solver of y' = r y (1 - y): a while_loop, which reverse mode goes through as forward
// mode does. Prints the same as its twin, 06_adaptive_ode.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cmath>
#include <cstdio>

using plait::Array;
namespace jnp = plait::numpy;
namespace lax = plait::lax;

constexpr double end_time = 5.0;

struct State {
  Array t, y, h, steps;
};

// y at the end and the number of steps tried, by the method of Bogacki and Shampine (1989).
std::pair<Array, Array> solve(const Array& r, const Array& start, const Array& tolerance) {
  auto slope = [&](const Array& y) { return r * y * (1 - y); };
  auto step = [&](const State& s) {
    const Array& y = s.y;
    const Array h = jnp::minimum(s.h, end_time - s.t);
    const Array k1 = slope(y), k2 = slope(y + h * k1 / 2), k3 = slope(y + h * k2 * 3 / 4);
    const Array following = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9;
    const Array error = jnp::abs(h * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * slope(following)) / 72);
    // How far to go next is no part of the derivative.
    const Array factor =
        lax::stop_gradient(jnp::clip(0.9 * jnp::cbrt(tolerance / (error + 1e-30)), 0.2, 5.0));
    const Array accepted = jnp::less_equal(error, tolerance);
    return State{jnp::where(accepted, s.t + h, s.t), jnp::where(accepted, following, y), h * factor,
                 s.steps + 1};
  };
  const State last = lax::while_loop([](const State& s) { return jnp::less(s.t, end_time); }, step,
                                     State{0 * start, start, 0.1 + 0 * start, plait::Array(0)});
  return {last.y, last.steps};
}

Array number(double value) { return lax::full({}, value, plait::DType::float64); }
Array end(const Array& r) { return solve(r, number(0.1), 1e-8).first; }
Array exact(const Array& r) { return 1 / (1 + (1 / 0.1 - 1) * jnp::exp(-r * end_time)); }

int main() {
  const Array r = number(0.7);
  auto value = [](const Array& x) { return x.item<double>(); };
  std::printf("solution %.6f, exactly %.6f\n", value(end(r)), value(exact(r)));
  std::printf("gradient %.6f, exactly %.6f\n", value(plait::jit(plait::grad(end))(r)),
              value(plait::grad(exact)(r)));
  std::printf("second derivative %.5f, exactly %.5f\n", value(plait::hessian(end)(r)),
              value(plait::hessian(exact)(r)));

  // Under vmap each example takes the steps that it needs: a loose tolerance ends early.
  const double tolerances[] = {1e-3, 1e-6, 1e-9};
  const Array all = jnp::stack(
      plait::Arrays{number(tolerances[0]), number(tolerances[1]), number(tolerances[2])});
  const plait::LaneWork before = plait::lane_work();
  const auto [ys, steps] =
      plait::jit(plait::vmap(solve, {std::nullopt, std::nullopt, 0}))(r, number(0.1), all);
  const plait::LaneWork after = plait::lane_work();
  for (int row = 0; row < 3; ++row) {
    const double error = std::abs(value(jnp::take(ys, row)) - value(exact(r)));
    std::printf("tolerance 1e-%d: %d steps, error below 1e-%d: %s\n", 3 + 3 * row,
                jnp::take(steps, row).item<int>(), 2 + 3 * row,
                error < 10 * tolerances[row] ? "True" : "False");
  }

  // The work is that of the examples that go on; all three together would take the most steps of
  // one three times.
  std::printf("%d steps needed, %d taken, %d if nobody left\n", int(after.live - before.live),
              int(after.all - before.all), 3 * jnp::max(steps).item<int>());

  // Gradients by each of many growth rates at once.
  const Array rates = jnp::stack(plait::Arrays{number(0.3), number(0.7), number(1.1)});
  const Array gradients = plait::vmap(plait::grad(end))(rates);
  std::printf("gradients");
  for (int i = 0; i < 3; ++i) std::printf(" %.6f", value(jnp::take(gradients, i)));
  std::printf("\n");
}
