// Lesson 17: a transformer block whose weights are divided among places: heads of attention, and
// hidden units.
//
// A place multiplies by its columns of the first matrix and its rows of the second, and one sum
// over places follows the second product. Values and gradients are those of the whole block. Alone
// this process is all places, here four or as many as the first argument says; on ranks each is one
// place, with the same bits:
//
//   plait run -n 4 build/tests/example_17_tensor_parallel
//
// Prints the same numbers as its twin, 17_tensor_parallel.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/mesh.h>
#include <plait/nn.h>
#include <plait/numpy.h>
#include <plait/plait.h>
#include <plait/random.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using plait::Array, plait::P;
namespace jnp = plait::numpy;

// 2, 4 and 5 places divide heads and hidden units.
constexpr int width = 80, heads = 20, each = 4, hidden = 160;

struct Weights {
  Array query, key, value, out, up, down;
};
const plait::Shape shapes[] = {{width, heads, each}, {width, heads, each}, {width, heads, each},
                               {heads, each, width}, {width, hidden},      {hidden, width}};
// Where each is divided: by heads, and by hidden units.
const P columns(std::nullopt, "model"), rows("model");
const plait::PartitionTree specs = {columns, columns, columns, rows, columns, rows};

// Of the heads that weights has; the sum over heads is that over these heads alone.
Array attention(const Weights& weights, const Array& x) {
  const auto of_heads = [&](const Array& w) { return jnp::einsum("btw,whe->bhte", {x, w}); };
  const Array q = of_heads(weights.query), k = of_heads(weights.key), v = of_heads(weights.value);
  const Array scores = jnp::einsum("bhte,bhse->bhts", {q, k}) / std::sqrt(double(each));
  const plait::Dim length = x.shape(1);
  const Array causal = jnp::tril(jnp::ones({length, length}, plait::DType::bool_));
  const Array shares = plait::nn::softmax(jnp::where(causal, scores, -1e9), -1);
  return jnp::einsum("bhts,bhse,hew->btw", {shares, v, weights.out});
}

Array feed_forward(const Weights& weights, const Array& x) {
  return jnp::matmul(plait::nn::gelu(jnp::matmul(x, weights.up)), weights.down);
}

Array normalized(const Array& x) {
  const Array mean = jnp::mean(x, -1, {}, true), var = jnp::var(x, -1, {}, 0, true);
  return (x - mean) / jnp::sqrt(var + 1e-5);
}

// total: the sum of what places have, where weights are divided.
template <class Total>
Array block(const Weights& weights, const Array& given, const Total& total) {
  const Array x = given + total(attention(weights, normalized(given)));
  return x + total(feed_forward(weights, normalized(x)));
}

Array divided_block(const Weights& weights, const Array& x) {
  return block(weights, x, [](const Array& part) { return plait::lax::psum(part, "model"); });
}

Array whole_block(const Weights& weights, const Array& x) {
  return block(weights, x, [](const Array& part) { return part; });
}

template <class Block>
auto loss_of(const Block& block) {
  return plait::jit(plait::value_and_grad([=](const Weights& weights, const Array& x) -> Array {
    return jnp::mean(jnp::square(block(weights, x) - 1));
  }));
}

int main(int argc, char** argv) {
  const int count = plait::process_count();
  const int places = count > 1 ? count : argc > 1 ? std::atoi(argv[1]) : 4;
  const plait::Mesh mesh({places}, {"model"});
  const auto in_places = plait::shard_map(divided_block, mesh, {specs, P()}, P());

  const Array keys = plait::random::split(plait::random::key(0), {7});
  const auto normal = [&](int i) {
    const double scale = std::pow(shapes[i][0].constant(), -0.5);
    return plait::random::normal(jnp::take(keys, i, 0), shapes[i]) * scale;
  };
  const Weights weights{normal(0), normal(1), normal(2), normal(3), normal(4), normal(5)};
  const Array x = plait::random::normal(jnp::take(keys, 6, 0), {2, 16, width});
  const auto [value, gradients] = loss_of(in_places)(weights, x);
  const auto [whole, expected] = loss_of(whole_block)(weights, x);
  if (plait::process_index() > 0) return 0;
  std::printf("loss %.4f in places, %.4f undivided\n", value.item<double>(), whole.item<double>());
  const auto show = [](const char* name, const Array& gradient, const Array& expected) {
    const Array off = jnp::max(jnp::abs(gradient - expected)) / jnp::max(jnp::abs(expected));
    std::string shape;
    for (const plait::Dim& size : gradient.shape())
      shape += (shape.empty() ? "" : ", ") + size.to_string();
    std::printf("gradient by %s: (%s), equal to rounding: %s\n", name, shape.c_str(),
                off.item<double>() < 1e-4 ? "True" : "False");
  };
  show("query", gradients.query, expected.query);
  show("key", gradients.key, expected.key);
  show("value", gradients.value, expected.value);
  show("out", gradients.out, expected.out);
  show("up", gradients.up, expected.up);
  show("down", gradients.down, expected.down);
}
