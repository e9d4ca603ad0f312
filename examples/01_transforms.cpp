// Lesson 1: a function, its jaxpr, and what grad, vmap and jit make of it.
//
// Prints the same numbers as its twin, 01_transforms.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>

#include <cstdio>

using plait::Array;
namespace jnp = plait::numpy;

Array f(const Array& x) { return jnp::sum(jnp::tanh(x) * x); }

Array loss(const Array& w, const Array& b, const Array& x, const Array& y) {
  const Array error = jnp::tanh(jnp::matmul(x, w)) + b - y;
  return jnp::sum(jnp::square(error));
}

void show(const char* what, const Array& x) {
  const plait::Buffer dense = x.buffer().dense();
  std::printf("%s", what);
  for (std::int64_t i = 0; i < dense.view().size(); ++i)
    std::printf(" %.6f", double(static_cast<const float*>(dense.data())[i]));
  std::printf("\n");
}

int main() {
  const Array x = jnp::arange(4) * 0.5 - 0.75;

  // A function is traced once to a jaxpr: typed vars, one equation a line.
  std::puts(print(plait::make_jaxpr(f, x).jaxpr).c_str());
  std::printf("value %.6f\n", f(x).item<double>());

  // Derivatives compose: forward, backward, twice.
  show("grad", plait::grad(f)(x));
  show("hessian diagonal", jnp::diagonal(plait::hessian(f)(x)));
  const Array ones = jnp::ones({4});
  const Array pushed = plait::jvp(f)(std::tuple<Array>(x), std::tuple<Array>(ones)).second;
  const auto pull = plait::vjp(f, x).second;
  std::printf("jvp and vjp agree %.6f %.6f\n", pushed.item<double>(),
              jnp::sum(std::get<0>(pull(jnp::ones({})))).item<double>());

  // vmap turns a function of one example into one of a batch; jit compiles, and every transform
  // sees through.
  const Array w = jnp::reshape(jnp::arange(6) * 0.1, {3, 2}), b = jnp::zeros({2});
  const Array batch = jnp::reshape(jnp::arange(12) * 0.05, {4, 3}), target = jnp::ones({4, 2});
  const Array per_example = plait::jit(
      plait::vmap(plait::grad(loss), {std::nullopt, std::nullopt, 0, 0}))(w, b, batch, target);
  std::printf("per-example gradients (%s)",
              [&] {
                std::string text;
                for (plait::Dim dim : per_example.shape())
                  text += (text.empty() ? "" : ", ") + dim.to_string();
                return text;
              }()
                  .c_str());
  show("", jnp::sum(per_example, std::vector<int>{1, 2}));
  const auto [value, gradient] = plait::jit(plait::value_and_grad<0, 1>(loss))(w, b, batch, target);
  std::printf("batch %.6f %.6f %.6f\n", value.item<double>(),
              jnp::sum(std::get<0>(gradient)).item<double>(),
              jnp::sum(std::get<1>(gradient)).item<double>());
}
