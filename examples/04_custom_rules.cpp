// Lesson 4: derivatives by rules of one's own, and what reverse mode keeps.
//
// Prints the same as its twin, 04_custom_rules.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cstdio>

using plait::Array;
namespace jnp = plait::numpy;

// The derivative of log(1 + exp(x)) is 1 / (1 + exp(-x)), but made of the function's parts it is
// inf / inf where exp(x) overflows.
Array plain(const Array& x) { return jnp::log(1.0 + jnp::exp(x)); }

std::pair<Array, Array> softplus_jvp(const std::tuple<Array>& primals,
                                     const std::tuple<Array>& tangents) {
  const auto& [x] = primals;
  const auto& [dx] = tangents;
  return {plain(x), dx / (1.0 + jnp::exp(-x))};
}

// A rule for reverse mode alone: x passes through, and its cotangent is cut to [-limit, limit] on
// the way back. fwd returns the output and what bwd needs; bwd gives a cotangent for each argument.
Array pass(const Array& x, const Array&) { return x; }
std::pair<Array, Array> cut_fwd(const Array& x, const Array& limit) { return {x, limit}; }
std::tuple<Array, Array> cut_bwd(const Array& limit, const Array& cotangent) {
  return {jnp::clip(cotangent, -limit, limit), jnp::zeros_like(limit)};
}
Array steep(const Array& x) {
  return jnp::sum(jnp::power(plait::custom_vjp(pass, cut_fwd, cut_bwd)(x, 2.0), 3));
}

// Reverse mode keeps the intermediate results that it needs. checkpoint computes them again
// instead, but for those that its policy keeps: here the products of matrices, which cost most.
Array layer(const Array& x) {
  return jnp::sum(jnp::tanh(jnp::matmul(jnp::sin(jnp::matmul(x, x)), x)));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

void show(const char* what, const auto& f) {
  const std::string program = print(plait::make_jaxpr(plait::value_and_grad(f), "4 4").jaxpr);
  std::printf("%s: %d products, %d sines\n", what, count(program, "= dot_general"),
              count(program, "= sin"));
}

void print_row(const char* what, const Array& x) {
  std::printf("%s", what);
  for (int i = 0; i < 4; ++i) std::printf(" %.6f", jnp::take(x, i).item<double>());
  std::printf("\n");
}

int main() {
  const auto softplus = plait::custom_jvp(plain, softplus_jvp);
  const Array large = plait::lax::full({}, 1000.0, plait::DType::float32);
  std::printf("plain is finite: %s\n",
              jnp::isfinite(plait::grad(plain)(large)).item<bool>() ? "True" : "False");
  std::printf("by the rule %.1f\n", plait::grad(softplus)(large).item<double>());
  const Array x = jnp::arange(4) * 1.0 - 1.5;
  print_row("under jit and vmap", plait::jit(plait::vmap(plait::grad(softplus)))(x));
  print_row("twice", plait::vmap(plait::grad(plait::grad(softplus)))(x));
  print_row("cut", plait::grad(steep)(x));
  show("plain", layer);
  show("checkpoint", plait::checkpoint(layer));
  show("keeping products", plait::checkpoint(layer, plait::flat::dots_saveable()));
}
