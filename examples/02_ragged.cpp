// Lesson 2: named sizes, and a batch of sequences of unequal length without a loop or a
// recompilation.
//
// Prints the same numbers as its twin, 02_ragged.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cmath>
#include <cstdio>

using plait::Array;
namespace jnp = plait::numpy;

// A score of one sequence x of n vectors: attention-like weights over its n positions.
Array pooled(const Array& w, const Array& x) {
  const Array scores = jnp::tanh(jnp::matmul(x, w));
  const Array weights = jnp::exp(scores - jnp::max(scores));
  return jnp::sum(weights * scores) / jnp::sum(weights) + jnp::mean(x);
}

void show(const char* what, const Array& x) {
  std::printf("%s", what);
  for (plait::Dim i = 0; i != x.shape(0); i = i + 1)
    std::printf(" %.6f", jnp::take(x, i).item<double>());
  std::printf("\n");
}

int main() {
  // A size may be a name. The program below is for every n.
  std::puts(print(plait::make_jaxpr(pooled, "3", "n 3").jaxpr).c_str());

  // Three sequences of lengths 2, 5 and 3, padded to 5. What the padding holds is never read: here
  // it is NaN.
  const std::vector<int> sizes = {2, 5, 3};
  std::vector<Array> sequences, rows, numbers;
  for (int n : sizes) {
    sequences.push_back(jnp::reshape(jnp::arange(3 * n) * 0.1, {n, 3}) + int(sequences.size()));
    rows.push_back(jnp::pad(sequences.back(), {{0, 5 - n}, {0, 0}}, "constant", NAN));
    numbers.push_back(n);
  }
  const Array padded = jnp::stack(rows), lengths = jnp::stack(numbers),
              w = jnp::arange(3) * 0.2 - 0.1;

  auto batched =
      plait::jit(plait::vmap(plait::mask(pooled, {std::nullopt, "n 3"}), {std::nullopt, 0, 0}));
  show("together", batched(w, padded, plait::Sizes{{"n", lengths}}));
  std::printf("one by one");
  for (const Array& sequence : sequences) std::printf(" %.6f", pooled(w, sequence).item<double>());
  std::printf("\n");

  auto total = [&](const Array& w, const Array& x) -> Array {
    return jnp::sum(batched(w, x, plait::Sizes{{"n", lengths}}));
  };
  // The gradient of padding is exactly zero.
  show("gradient by w", plait::grad(total)(w, padded));
  const Array by_x = plait::grad<1>(total)(w, padded), first = jnp::take(by_x, 0, 0);
  std::printf("gradient in the padding %.1f\n",
              jnp::sum(jnp::abs(plait::lax::slice_in_dim(first, 2, 5))).item<double>());
}
