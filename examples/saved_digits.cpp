// Continues, with no Python, a training on the handwritten digits that Python began and saved:
// tests/python/test_saved_digits.py writes the file. What it holds are ordinary functions: they are
// jitted, differentiated, also through a step of training, and mapped.
//
//   example_saved_digits FILE [data/digits.bin]
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>

#include <cmath>
#include <cstdio>

#include "digits.h"

using plait::Array;
namespace jnp = plait::numpy;

constexpr int batch = 64;

// What Python wrote as dicts with the keys "b" and "w", in that order.
struct Layer {
  Array b, w;
};
using Layers = std::vector<Layer>;
using State = std::tuple<Array, Layers, Layers>;  // of Adam

double number(const Array& x) { return x.item<double>(); }

std::pair<Array, Array> rows(const Digits& digits, std::int64_t first) {
  plait::Buffer images = plait::Buffer::empty(plait::DType::float32, {batch, 64}),
                labels = plait::Buffer::empty(plait::DType::int32, {batch});
  std::copy_n(digits.image(first), batch * 64, static_cast<float*>(images.mutable_data()));
  for (int i = 0; i < batch; ++i)
    static_cast<std::int32_t*>(labels.mutable_data())[i] = digits.label(first + i);
  return {Array(images), Array(labels)};
}

double norm(const Layers& layers) {
  double sum = 0;
  for (const Layer& layer : layers)
    sum += number(jnp::sum(jnp::square(layer.b))) + number(jnp::sum(jnp::square(layer.w)));
  return std::sqrt(sum);
}

// Two networks as one, the second with other weights.
Layers both(const Layers& layers, double factor) {
  Layers result;
  for (const Layer& layer : layers)
    result.push_back({jnp::stack(std::vector<Array>{layer.b, layer.b * factor}),
                      jnp::stack(std::vector<Array>{layer.w, layer.w * factor})});
  return result;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: example_saved_digits FILE [data/digits.bin]\n");
    return 2;
  }
  const Digits digits = load_digits(argc > 2 ? argv[2] : "data/digits.bin");
  const plait::Program program = plait::load(argv[1], {.verify = true});
  auto [layers, state] = program.entry<std::pair<Layers, State>()>("start")();
  const auto train_step =
      program.entry<std::tuple<Layers, State, Array>(Layers, State, Array, Array)>("train_step");
  const auto loss = program.entry<Array(Layers, Array, Array)>("loss");
  const auto accuracy = program.entry<Array(Layers, Array, Array)>("accuracy");
  const std::int64_t train = digits.count * 4 / 5 / batch;  // batches
  const std::pair<Array, Array> test = rows(digits, train * batch);
  const Array &test_x = test.first, &test_y = test.second;

  std::printf("steps before %.0f\n", number(std::get<0>(state)));
  const auto step = plait::jit(train_step);
  for (int epoch = 0; epoch < 3; ++epoch) {
    double total = 0;
    for (std::int64_t i = 0; i < train; ++i) {
      const auto [x, y] = rows(digits, i * batch);
      auto [next_layers, next_state, value] = step(layers, state, x, y);
      layers = next_layers;
      state = next_state;
      total += number(value);
    }
    std::printf("loss %.4f\n", total / double(train));
  }
  std::printf("accuracy %.3f %%\n", 100 * number(accuracy(layers, test_x, test_y)));

  // The slope of the loss, and of the loss after a step down the slope.
  std::printf("slope %.5f\n", norm(plait::grad(loss)(layers, test_x, test_y)));
  const auto plain_step = program.entry<Layers(Layers, Array, Array)>("plain_step");
  auto after = [&](const Layers& from) {
    return loss(plain_step(from, test_x, test_y), test_x, test_y);
  };
  std::printf("slope through a step %.5f\n", norm(plait::grad(after)(layers)));

  // A slope for each example, which a saved program of one batch does not say.
  auto one = [&](const Layers& of, const Array& x, const Array& y) {
    return loss(of, jnp::reshape(x, {1, 64}), jnp::reshape(y, {1}));
  };
  const Layers each =
      plait::vmap(plait::grad(one), {plait::AxisTree(std::nullopt), 0, 0})(layers, test_x, test_y);
  const Array sizes = jnp::sqrt(jnp::sum(jnp::square(each[1].b), 1));
  std::printf("largest slope of an example %.5f\n", number(jnp::max(sizes)));

  // Two networks trained at once.
  const State states(jnp::stack(std::vector<Array>(2, std::get<0>(state))),
                     both(std::get<1>(state), 1), both(std::get<2>(state), 1));
  const auto two =
      plait::vmap(train_step, {0, 0, plait::AxisTree(std::nullopt), plait::AxisTree(std::nullopt)});
  const Array values = std::get<2>(two(both(layers, 0.5), states, test_x, test_y));
  std::printf("two networks %.5f %.5f\n", number(jnp::take(values, 0)),
              number(jnp::take(values, 1)));
}
