// Lesson 9: one autograd: the digits by a tape, as eager programs have it, and by jit(grad). Same
// bits.
//
// Prints the same as its twin, 09_tape.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>

#include <cstdio>
#include <cstring>

#include "digits.h"

using plait::Array;
namespace jnp = plait::numpy;
namespace random_ = plait::random;

constexpr int epochs = 2;
constexpr std::int64_t batch = 64;
constexpr double rate = 0.2;

std::vector<Array> init() {
  const Array keys = random_::split(random_::key(Array(1)));
  return {random_::normal(jnp::take(keys, 0, 0), {64, 128}) * 0.2, jnp::zeros({128}),
          random_::normal(jnp::take(keys, 1, 0), {128, 10}) * 0.1, jnp::zeros({10})};
}

Array loss(const std::vector<Array>& weights, const Array& x, const Array& y) {
  const Array hidden = plait::nn::relu(jnp::matmul(x, weights[0]) + weights[1]);
  const Array logits = jnp::matmul(hidden, weights[2]) + weights[3];
  return -jnp::mean(jnp::sum(plait::nn::log_softmax(logits) * plait::nn::one_hot(y, 10), -1));
}

bool same_bits(const Array& a, const Array& b) {
  const plait::Buffer x = a.buffer().dense(), y = b.buffer().dense();
  return x.bytes() == y.bytes() && std::memcmp(x.data(), y.data(), x.bytes()) == 0;
}

Array three() { return Array::literal(3, plait::DType::float32); }
double number(const Array& x) { return x.item<double>(); }

int main(int argc, char** argv) {
  // A tape records what an eager program does to its variables. backward goes back over it and adds
  // to their gradients. What it applies are the rules of grad, so it is no second set of
  // derivatives.
  const Array x = plait::variable(three());
  Array y = x * x;
  while (number(y) < 100) y = y * x;  // values are known: any C++ goes
  plait::backward(y);
  std::printf("x^5 = %.0f, and its derivative is %.0f\n", number(y), number(*plait::grad_of(x)));

  // The derivative can be recorded, and differentiated again.
  plait::set_grad(x, std::nullopt);
  plait::backward(jnp::sin(x), {.create_graph = true});
  const Array slope = *plait::grad_of(x);
  plait::set_grad(x, std::nullopt);
  plait::backward(slope);
  std::printf("sin''(3) = %.4f, and -sin(3) = %.4f\n", number(*plait::grad_of(x)),
              -number(jnp::sin(x)));

  // C++ arrays are values: what Python writes is an update that gives a new one.
  const Array ramp = plait::variable(jnp::arange(1.0, 4.0));
  Array row = jnp::zeros({2, 3}) + ramp;
  row = plait::update_item(row, {plait::Dim(1)}, plait::getitem(row, {plait::Dim(1)}) * ramp,
                           plait::UpdateKind::set);
  row = plait::update_item(row, {plait::Dim(0), plait::Dim(0)}, 5, plait::UpdateKind::set);
  plait::backward(jnp::sum(row * row));
  const Array written = *plait::grad_of(ramp);
  std::printf("after writing: [%.1f, %.1f, %.1f]\n", number(jnp::take(written, 0)),
              number(jnp::take(written, 1)), number(jnp::take(written, 2)));

  // Now the same model twice. Variables are updated under NoGrad; pure functions return new
  // weights.
  const Digits digits = load_digits(argc > 1 ? argv[1] : "data/digits.bin");
  const Array all_images(digits.images), all_labels(digits.labels);
  std::vector<Array> variables, weights = init();
  for (const Array& weight : init()) variables.push_back(plait::variable(weight));
  const auto gradient = plait::jit(plait::grad(loss));
  int equal = 0, total = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    Array value;
    for (std::int64_t first = 0; first + batch <= digits.count; first += batch) {
      const plait::Subscripts rows{plait::Range{first, first + batch, {}}};
      const Array images = plait::getitem(all_images, rows),
                  labels = plait::getitem(all_labels, rows);
      value = loss(variables, images, labels);
      plait::backward(value);
      const std::vector<Array> gradients = gradient(weights, images, labels);
      bool same = true;
      const plait::NoGrad no_grad;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        same &= same_bits(*plait::grad_of(variables[i]), gradients[i]);
        plait::assign(variables[i], variables[i] - rate * *plait::grad_of(variables[i]));
        plait::set_grad(variables[i], std::nullopt);
        weights[i] = weights[i] - rate * gradients[i];
      }
      ++total;
      equal += same;
    }
    std::printf("epoch %d: loss %.4f\n", epoch, number(value));
  }
  std::printf("steps whose gradients are equal to the bit: %d of %d\n", equal, total);
  int same = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) same += same_bits(variables[i], weights[i]);
  std::printf("weights equal to the bit: %d of %d\n", same, int(weights.size()));
}
