// Trains a classifier on handwritten digits with no Python: the twin of demo.py, from the same
// seed.
// SPDX-License-Identifier: Apache-2.0
#include <plait/nn.h>
#include <plait/numpy.h>
#include <plait/optim.h>
#include <plait/plait.h>
#include <plait/random.h>

#include <cstdio>

#include "digits.h"

using plait::Array;
namespace jnp = plait::numpy;
namespace random_ = plait::random;

constexpr int epochs = 40, batch = 64;

struct Layer {
  Array w, b;
};
using Layers = std::vector<Layer>;

// The rows at these places, as arrays.
std::pair<Array, Array> rows(const Digits& digits, std::span<const std::int32_t> places) {
  const std::int64_t n = places.size();
  plait::Buffer images = plait::Buffer::empty(plait::DType::float32, {n, 64}),
                labels = plait::Buffer::empty(plait::DType::int32, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(digits.image(places[i]), 64, static_cast<float*>(images.mutable_data()) + i * 64);
    static_cast<std::int32_t*>(labels.mutable_data())[i] = digits.label(places[i]);
  }
  return {Array(images), Array(labels)};
}

std::vector<std::int32_t> permutation(const Array& key, std::int64_t n) {
  const plait::Buffer order = random_::permutation(key, Array(n)).buffer().dense();
  const auto* first = static_cast<const std::int32_t*>(order.data());
  return {first, first + n};
}

Layers init(Array key) {
  Layers layers;
  for (auto [fan_in, fan_out] : {std::pair{64, 128}, std::pair{128, 10}}) {
    const Array keys = random_::split(key);
    key = jnp::take(keys, 0, 0);
    layers.push_back(
        {random_::normal(jnp::take(keys, 1, 0), {fan_in, fan_out}) * std::sqrt(2.0 / fan_in),
         jnp::zeros({fan_out})});
  }
  return layers;
}

Array predict(const Layers& layers, Array x) {
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    x = plait::nn::relu(jnp::matmul(x, layers[i].w) + layers[i].b);
  return jnp::matmul(x, layers.back().w) + layers.back().b;
}

Array loss(const Layers& layers, const Array& x, const Array& y) {
  const Array logits = predict(layers, x);
  return -jnp::mean(jnp::sum(plait::nn::log_softmax(logits) * plait::nn::one_hot(y, 10), -1));
}

using State = plait::optim::AdamState<Layers>;

std::tuple<Layers, State, Array> update(const Layers& layers, const State& state, const Array& x,
                                        const Array& y) {
  const auto [value, gradients] = plait::value_and_grad(loss)(layers, x, y);
  const auto [updates, next] = plait::optim::adam(gradients, state, {.learning_rate = 3e-3});
  return {plait::optim::apply_updates(layers, updates), next, value};
}

Array accuracy(const Layers& layers, const Array& x, const Array& y) {
  return jnp::mean(jnp::equal(jnp::argmax(predict(layers, x), -1), y));
}

int main(int argc, char** argv) {
  const Digits digits = load_digits(argc > 1 ? argv[1] : "data/digits.bin");
  const std::int64_t n = digits.count;
  const std::vector<std::int32_t> order = permutation(random_::key(Array(0)), n);
  const std::span<const std::int32_t> test(order.data(), n / 5),
      train(order.data() + n / 5, n - n / 5);
  const auto [test_x, test_y] = rows(digits, test);

  Layers layers = init(random_::key(Array(1)));
  State state = plait::optim::adam_init(layers);
  const auto step = plait::jit(update, "step");
  const auto score = plait::jit(accuracy, "accuracy");
  const std::int64_t steps = train.size() / batch;
  double total = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::int32_t> shuffled =
        permutation(random_::fold_in(random_::key(Array(2)), Array(epoch)), train.size());
    total = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      std::vector<std::int32_t> places;
      for (int k = 0; k < batch; ++k) places.push_back(train[shuffled[i * batch + k]]);
      const auto [x, y] = rows(digits, places);
      auto [next_layers, next_state, value] = step(layers, state, x, y);
      layers = next_layers;
      state = next_state;
      total += value.item<double>();
    }
  }
  std::printf("loss %.4f\n", total / steps);
  std::printf("accuracy %.1f %%\n", 100 * score(layers, test_x, test_y).item<double>());
}
