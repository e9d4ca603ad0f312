// Lesson 11: looking inside: what a program costs by scope, its code, and how two of them differ.
//
// Prints the same as its twin, 11_inspect.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <cstdio>

using plait::Array;
using plait::NamedScope;
namespace jnp = plait::numpy;

Array attention(const Array& x, const Array& wq, const Array& wk, const Array& wv) {
  const NamedScope scope("attention");
  Array scores;
  {
    const NamedScope inner("scores");
    const Array q = jnp::matmul(x, wq), k = jnp::matmul(x, wk);
    scores = jnp::matmul(q, jnp::matrix_transpose(k));
  }
  return jnp::matmul(plait::nn::softmax(scores), jnp::matmul(x, wv));
}

Array encoder(const Array& x, const Array& wq, const Array& wk, const Array& wv, const Array& wo) {
  const Array y = attention(x, wq, wk, wv);
  const NamedScope scope("output");
  return jnp::tanh(jnp::matmul(y, wo));
}

Array loss(const Array& x, const Array& wq, const Array& wk, const Array& wv, const Array& wo) {
  return jnp::sum(encoder(x, wq, wk, wv, wo));
}

Array wave(const Array& x, const Array& rate) { return jnp::sum(jnp::sin(x * rate), 0); }

Array damped(const Array& x, const Array& rate) {
  return jnp::sum(jnp::exp(-x) * jnp::sin(x * rate), 1);
}

int main() {
  // A table by named scope: what leaves it, the elements of arguments that it reads, equations,
  // arithmetic, memory read and written, and the most memory that its values take. Transforms keep
  // scopes: the gradient's work is counted where it comes from.
  const Array x = jnp::ones({16, 32}), wq = jnp::ones({32, 8}), wk = jnp::ones({32, 8}),
              wv = jnp::ones({32, 8}), wo = jnp::ones({8, 32});
  const plait::Jaxpr program = plait::make_jaxpr(encoder, x, wq, wk, wv, wo).jaxpr;
  std::puts(plait::summary(program).to_string().c_str());
  const auto slope = plait::make_jaxpr(plait::grad(loss), x, wq, wk, wv, wo).jaxpr;
  std::puts(plait::summary(slope).to_string().c_str());
  const plait::Work total = plait::work_of(program);
  std::printf("%.0f operations on %.0f bytes\n", total.flops, total.bytes());

  // A program is code too: a line for each equation, which traced again gives the same program.
  const auto waves = plait::make_jaxpr(wave, "4 3", "3").jaxpr;
  std::puts(plait::code(waves).text.c_str());
  const plait::Jaxpr again =
      plait::staged("; a:f32[4,3] b:f32[3]", [](auto, auto in) -> plait::Arrays {
        return {wave(in[0], in[1])};  // what that code does
      });
  std::printf("the same program: %s\n", again == waves ? "True" : "False");

  // Two programs are compared equation by equation: what was removed (-), added (+), or changed
  // (~). What comes after a change is the same as before.
  const plait::Difference difference =
      plait::diff(waves, plait::make_jaxpr(damped, "4 3", "3").jaxpr);
  std::printf("they differ: %s\n", difference ? "True" : "False");
  int counts[4] = {};
  for (const plait::Change& change : difference.changes()) ++counts[int(change.kind)];
  std::printf("%d same, %d removed, %d added, %d changed\n", counts[0], counts[1], counts[2],
              counts[3]);
}
