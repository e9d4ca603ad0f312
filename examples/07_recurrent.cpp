// Lesson 7: a recurrent net over sequences of unequal length, by scan under mask, vmap, grad and
// jit.
//
// The sequences are the UCI handwritten digits as columns of ink, from the first inked column to
// the last: 2 to 8 of them. Prints the same as its twin, 07_recurrent.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <cmath>
#include <cstdio>

#include "digits.h"

using plait::Array;
namespace jnp = plait::numpy;

constexpr int epochs = 12, batch = 128, width = 48;

struct Sequences {
  std::vector<float> columns;  // of each digit 8 columns of 8, those behind the last one NaN
  std::vector<std::int32_t> lengths, labels;
};

Sequences to_sequences(const Digits& digits) {
  const int n = digits.count;
  Sequences sequences{std::vector<float>(n * 64, NAN), std::vector<std::int32_t>(n),
                      std::vector<std::int32_t>(n)};
  for (int i = 0; i < n; ++i) {
    const float* image = digits.image(i);
    int first = 8, last = -1;
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column)
        if (image[row * 8 + column] != 0)
          first = std::min(first, column), last = std::max(last, column);
    sequences.lengths[i] = last - first + 1;
    sequences.labels[i] = digits.label(i);
    for (int column = first; column <= last; ++column)
      for (int row = 0; row < 8; ++row)
        sequences.columns[i * 64 + (column - first) * 8 + row] = image[row * 8 + column];
  }
  return sequences;
}

struct Batch {
  Array columns, lengths, labels;
};
Batch rows(const Sequences& digits, std::span<const std::int32_t> places) {
  const std::int64_t n = places.size();
  plait::Buffer columns = plait::Buffer::empty(plait::DType::float32, {n, 8, 8}),
                lengths = plait::Buffer::empty(plait::DType::int32, {n}),
                labels = plait::Buffer::empty(plait::DType::int32, {n});
  for (std::int64_t i = 0; i < n; ++i) {
    std::copy_n(digits.columns.data() + places[i] * 64, 64,
                static_cast<float*>(columns.mutable_data()) + i * 64);
    static_cast<std::int32_t*>(lengths.mutable_data())[i] = digits.lengths[places[i]];
    static_cast<std::int32_t*>(labels.mutable_data())[i] = digits.labels[places[i]];
  }
  return {Array(columns), Array(lengths), Array(labels)};
}

std::vector<std::int32_t> permutation(int seed, std::int64_t n) {
  const plait::Buffer order =
      plait::random::permutation(plait::random::key(Array(seed)), Array(n)).buffer().dense();
  const auto* first = static_cast<const std::int32_t*>(order.data());
  return {first, first + n};
}

struct Weights {
  Array x, h, o, b;
};
Weights init(const Array& key) {
  const Array keys = plait::random::split(key, {3});
  auto normal = [&](int i, const plait::Shape& shape, double scale) {
    return plait::random::normal(jnp::take(keys, i, 0), shape) * scale;
  };
  return {normal(0, {8, width}, 0.3), normal(1, {width, width}, 0.1), normal(2, {width, 10}, 0.2),
          jnp::zeros(plait::Shape{width})};
}

// Scores of ten digits for one sequence of n columns.
Array classify(const Weights& w, const Array& sequence) {
  auto step = [&](const Array& h, const Array& column) {
    return std::pair{jnp::tanh(jnp::matmul(column, w.x) + jnp::matmul(h, w.h) + w.b),
                     std::tuple<>()};
  };
  const Array last = plait::lax::scan(step, jnp::zeros(plait::Shape{width}), sequence).first;
  return jnp::matmul(last, w.o);
}

// One program for all lengths: n is 2 to 8, and differs between the examples of a batch.
const auto batched =
    plait::vmap(plait::mask(classify, {std::nullopt, "n 8"}), {std::nullopt, 0, 0});
Array scores(const Weights& w, const Batch& b) {
  return batched(w, b.columns, plait::Sizes{{"n", b.lengths}});
}

Array loss(const Weights& w, const Batch& b) {
  return -jnp::mean(
      jnp::sum(plait::nn::log_softmax(scores(w, b)) * plait::nn::one_hot(b.labels, 10), -1));
}

using State = plait::optim::AdamState<Weights>;
std::tuple<Weights, State, Array> update(const Weights& w, const State& state, const Batch& b) {
  const auto [value, gradients] = plait::value_and_grad(loss)(w, b);
  const auto [updates, next] = plait::optim::adam(gradients, state, {.learning_rate = 5e-3});
  return {plait::optim::apply_updates(w, updates), next, value};
}
Array accuracy(const Weights& w, const Batch& b) {
  return jnp::mean(jnp::equal(jnp::argmax(scores(w, b), -1), b.labels));
}

int main(int argc, char** argv) {
  const Sequences digits = to_sequences(load_digits(argc > 1 ? argv[1] : "data/digits.bin"));
  int counts[9] = {};
  for (std::int32_t length : digits.lengths) ++counts[length];
  std::printf("lengths");
  for (int count : counts) std::printf(" %d", count);
  std::printf("\n");
  const std::vector<std::int32_t> order = permutation(0, digits.labels.size());
  const std::span<const std::int32_t> test(order.data(), order.size() / 5),
      train(order.data() + order.size() / 5, order.size() - order.size() / 5);
  Weights w = init(plait::random::key(Array(1)));
  State state = plait::optim::adam_init(w);
  const auto step = plait::jit(update, "step");
  double value = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::int32_t> shuffled = permutation(epoch, train.size());
    for (std::size_t i = 0; i < train.size() / batch; ++i) {
      std::vector<std::int32_t> places;
      for (int k = 0; k < batch; ++k) places.push_back(train[shuffled[i * batch + k]]);
      const auto [next, next_state, now] = step(w, state, rows(digits, places));
      w = next;
      state = next_state;
      value = now.item<double>();
    }
  }
  std::printf("loss %.4f\n", value);
  std::printf("accuracy %.1f %%\n",
              100 * plait::jit(accuracy)(w, rows(digits, test)).item<double>());
  // What the padding holds is never read, and one program serves all lengths.
  const Batch few = rows(digits, test.first(5));
  const Array together = scores(w, few);
  double difference = 0;
  for (int i = 0; i < 5; ++i) {
    const Array columns = jnp::take(few.columns, i, 0);
    const Array alone = classify(w, plait::lax::slice_in_dim(columns, 0, digits.lengths[test[i]]));
    difference =
        std::max(difference, jnp::max(jnp::abs(alone - jnp::take(together, i, 0))).item<double>());
  }
  std::printf("one by one as in the batch: %s\n", difference < 1e-5 ? "True" : "False");
}
