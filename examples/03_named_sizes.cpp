// Lesson 3: programs whose sizes have names: traced once, for every size.
//
// Prints the same as its twin, 03_named_sizes.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cstdio>

using plait::Array, plait::Dim;
namespace jnp = plait::numpy;
namespace lax = plait::lax;

// Rows less their mean row, the later the heavier.
Array center(const Array& x) {
  const Dim n = x.shape(0);
  const Array places = (jnp::arange(n) + 1) / Array(n);
  return (x - jnp::mean(x, 0)) * jnp::reshape(places, {n, 1});
}

Array halves(const Array& x, const Array& i) {
  const Dim half = floor_divide(x.shape(0), 2);
  return lax::slice_in_dim(x, 0, half) * lax::slice_in_dim(x, half, 2 * half) + i;
}

Array first(const Array& x, const Array& y) { return lax::slice(x, {0}, y.shape()); }

int main() {
  // A spec stands for an argument: "n 2" is a float32 array of n rows. The jaxpr binds n, so it is
  // a program for every n; x.shape(0) is a size that does arithmetic and stands wherever a size
  // may.
  const plait::Jaxpr program = plait::make_jaxpr(center, "n 2").jaxpr;
  std::puts(print(program).c_str());

  // With a number in its place it is the program that tracing at that number gives.
  const bool same = print(plait::instantiate(program, {{"n", 4}})) ==
                    print(plait::make_jaxpr(center, "4 2").jaxpr);
  std::printf("the same at n = 4: %s\n", same ? "True" : "False");

  // Sizes may be expressions, and a spec may say the dtype.
  const plait::Jaxpr product = plait::make_jaxpr(halves, "2*n", "i32[n]").jaxpr;
  std::printf("halves of 2*n: %s\n", product->output_avals()[0].to_string().c_str());

  // What a program needs of sizes that tracing cannot decide is part of it, and checked when it is
  // used.
  const plait::Jaxpr beginning = plait::make_jaxpr(first, "n", "m").jaxpr;
  try {
    plait::instantiate(beginning, {{"n", 2}, {"m", 3}});
  } catch (const plait::Error& error) {
    std::printf("error: %s\n", error.problem().c_str());
  }

  // mask runs the program for every n on arrays of one shape: n rows are real, the rest is padding,
  // which is never read and comes out as zero. Sizes that the call does not name are those of the
  // arrays.
  const Array x = jnp::reshape(jnp::arange(10), {5, 2}) * 1.0;
  const auto masked = plait::mask(center, "n d");
  for (int n : {1, 3, 5}) {
    std::printf("n = %d:", n);
    const Array rows = masked(x, {{"n", n}});
    for (int i = 0; i < 5; ++i)
      std::printf(" %.3f", jnp::take(jnp::take(rows, i, 0), 0).item<double>());
    std::printf("\n");
  }
  try {
    masked(x, {{"n", 6}});
  } catch (const plait::Error& error) {
    std::printf("error: %s\n", error.problem().c_str());
  }
}
