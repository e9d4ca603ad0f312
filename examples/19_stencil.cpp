// Lesson 19: heat that spreads over a square, of which each place has some rows. Rows at the seams
// are exchanged.
//
// Before each step a place sends its first row up and its last row down, by ppermute, and gets
// those of its neighbours. Who has no neighbour gets zeros: the edge is cold. The loop and the
// exchange in it are one compiled program, and differentiable. Alone this process is all places,
// here four or as many as the first argument says; on ranks each is one place, with the same bits:
//
//   plait run -n 4 build/tests/example_19_stencil
//
// Prints the same numbers as its twin, 19_stencil.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control.h>
#include <plait/mesh.h>
#include <plait/numpy.h>
#include <plait/plait.h>

#include <cstdio>
#include <cstdlib>

using plait::Array, plait::P;
namespace jnp = plait::numpy;
namespace lax = plait::lax;

constexpr int size = 40, steps = 200;  // 2, 4 and 5 places divide the size
constexpr double rate = 0.2;

// One step: the five-point stencil, between a row above and a row below.
Array spread(const Array& above, const Array& heat, const Array& below) {
  const Array rows = jnp::concatenate({above, heat, below});
  const Array columns = jnp::pad(heat, {{0, 0}, {1, 1}});
  const plait::Dim n = heat.shape(0);
  const Array around = lax::slice_in_dim(rows, 0, n) + lax::slice_in_dim(rows, 2, n + 2) +
                       lax::slice_in_dim(columns, 0, size, 1, 1) +
                       lax::slice_in_dim(columns, 2, size + 2, 1, 1);
  return heat + rate * (around - 4 * heat);
}

Array undivided(const Array& heat) {
  const Array cold = jnp::zeros({1, size});
  return lax::fori_loop(
      0, steps, [&](const Array&, const Array& heat) { return spread(cold, heat, cold); }, heat);
}

void show(const char* what, const Array& row, double factor) {
  std::printf("%s", what);
  for (int i = 0; i < size; i += 8) std::printf(" %.3f", factor * jnp::take(row, i).item<double>());
  std::printf("\n");
}

int main(int argc, char** argv) {
  const int count = plait::process_count();
  const int places = count > 1 ? count : argc > 1 ? std::atoi(argv[1]) : 4;
  const plait::Mesh mesh({places}, {"rows"});
  lax::Permutation down, up;
  for (int i = 0; i + 1 < places; ++i) down.emplace_back(i, i + 1), up.emplace_back(i + 1, i);

  const auto in_a_place = [=](const Array& heat) -> Array {
    const auto step = [&](const Array&, const Array& heat) {
      const plait::Dim n = heat.shape(0);
      const Array above = lax::ppermute(lax::slice_in_dim(heat, n - 1, n), "rows", down);
      const Array below = lax::ppermute(lax::slice_in_dim(heat, 0, 1), "rows", up);
      return spread(above, heat, below);
    };
    return lax::fori_loop(0, steps, step, heat);
  };
  const auto in_places = plait::jit(plait::shard_map(in_a_place, mesh, P("rows"), P("rows")));

  const Array place = jnp::floor_divide(jnp::arange(size), 10);
  const Array sum = jnp::reshape(place, {size, 1}) + place;
  const Array start = jnp::where(jnp::equal(jnp::remainder(sum, 3), 0), 100.0f, 0.0f);
  const Array after = in_places(start), expected = plait::jit(undivided)(start);
  // How the heat at one point depends on that of the start: the gradient goes back through the
  // exchanges.
  const auto middle = [&](const Array& heat) -> Array {
    return jnp::take(jnp::take(in_places(heat), 20, 0), 20);
  };
  const Array back = plait::grad(middle)(start);
  if (plait::process_index() > 0) return 0;
  std::printf("heat %.1f before, %.1f after\n", jnp::sum(start).item<double>(),
              jnp::sum(after).item<double>());
  for (int row : {5, 19, 20, 39})
    show(("row " + std::to_string(row) + ":").c_str(), jnp::take(after, row, 0), 1);
  const bool is_equal = jnp::max(jnp::abs(after - expected)).item<double>() < 1e-3;
  std::printf("equal to the undivided: %s\n", is_equal ? "True" : "False");
  show("of the heat at the middle:", jnp::take(back, 20, 0), 1e3);
}
