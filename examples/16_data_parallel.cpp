// Lesson 16: the handwritten digits, learned in several places at once, each of which has a part of
// every batch.
//
// Alone this process is all places, here four or as many as the second argument says. Started on
// ranks, each is one place, with the same bits:
//
//   plait run -n 4 build/tests/example_16_data_parallel
//
// Prints the same numbers as its twin, 16_data_parallel.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/mesh.h>
#include <plait/nn.h>
#include <plait/numpy.h>
#include <plait/optim.h>
#include <plait/plait.h>
#include <plait/random.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "digits.h"

using plait::Array, plait::P;
namespace jnp = plait::numpy;
namespace random_ = plait::random;

constexpr int epochs = 10, batch = 60;  // 2, 4 and 5 places divide it

struct Layer {
  Array b, w;
};
using Layers = std::vector<Layer>;
using State = plait::optim::AdamState<Layers>;

Layers init(Array key) {
  Layers layers;
  for (auto [fan_in, fan_out] : {std::pair{64, 32}, std::pair{32, 10}}) {
    const Array keys = random_::split(key);
    key = jnp::take(keys, 0, 0);
    layers.push_back(
        {jnp::zeros({fan_out}),
         random_::normal(jnp::take(keys, 1, 0), {fan_in, fan_out}) * std::sqrt(2.0 / fan_in)});
  }
  return layers;
}

Array predict(const Layers& layers, const Array& x) {
  const Array hidden = plait::nn::relu(jnp::matmul(x, layers[0].w) + layers[0].b);
  return jnp::matmul(hidden, layers[1].w) + layers[1].b;
}

Array loss(const Layers& layers, const Array& x, const Array& y) {
  const Array logits = predict(layers, x);
  return -jnp::mean(jnp::sum(plait::nn::log_softmax(logits) * plait::nn::one_hot(y, 10), -1));
}

// A place sees its part of the batch, and all weights. The mean over places is the same everywhere,
// so the result has the spec P(). Its gradient by the weights, which places share, is summed over
// places by itself.
Array loss_of_part(const Layers& layers, const Array& x, const Array& y) {
  return plait::lax::pmean(loss(layers, x, y), "data");
}

template <class Loss>
auto step_of(const Loss& loss) {
  return plait::jit([=](const Layers& layers, const State& state, const Array& x,
                        const Array& y) -> std::tuple<Layers, State, Array> {
    const auto [value, gradients] = plait::value_and_grad(loss)(layers, x, y);
    const auto [updates, next] = plait::optim::adam(gradients, state, {.learning_rate = 3e-3});
    return {plait::optim::apply_updates(layers, updates), next, value};
  });
}

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

template <class Step>
std::pair<Layers, double> train(const Step& step, const Digits& digits,
                                const std::vector<std::int32_t>& places) {
  Layers layers = init(random_::key(1));
  State state = plait::optim::adam_init(layers);
  double total = 0;
  const std::int64_t n = places.size(), steps = n / batch;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::int32_t> order =
        random_::permutation(random_::fold_in(random_::key(2), epoch), n).to_vector<std::int32_t>();
    total = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      std::vector<std::int32_t> chosen;
      for (int k = 0; k < batch; ++k) chosen.push_back(places[order[i * batch + k]]);
      const auto [x, y] = rows(digits, chosen);
      auto [next_layers, next_state, value] = step(layers, state, x, y);
      layers = next_layers;
      state = next_state;
      total += value.template item<double>();
    }
  }
  return {layers, total / steps};
}

int main(int argc, char** argv) {
  const Digits digits = load_digits(argc > 1 ? argv[1] : "data/digits.bin");
  const int count = plait::process_count();
  const int places = count > 1 ? count : argc > 2 ? std::atoi(argv[2]) : 4;
  const plait::Mesh mesh({places}, {"data"});
  const auto loss_of_batch = plait::shard_map(loss_of_part, mesh, {P(), P("data"), P("data")}, P());

  std::vector<std::int32_t> for_test, for_training;
  for (std::int32_t i = 0; i < digits.count; ++i)
    (i % 5 == 0 ? for_test : for_training).push_back(i);
  const std::pair<Array, Array> test = rows(digits, for_test);
  const auto show = [&](const char* what, const std::pair<Layers, double>& trained) {
    const Array right =
        jnp::equal(jnp::argmax(predict(trained.first, test.first), -1), test.second);
    if (plait::process_index() == 0)
      std::printf("%s: loss %.3f, accuracy %.1f %%\n", what, trained.second,
                  100 * jnp::mean(right).item<double>());
  };
  show("in places", train(step_of(loss_of_batch), digits, for_training));
  show("undivided", train(step_of(loss), digits, for_training));
}
