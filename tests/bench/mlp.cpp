// bench_mlp: one training step of a 784-512-512-10 network, batch 128, Adam, jitted from C++.
//
//   bench_mlp [explain]
//
// Prints the time of a step and of its first call; with `explain`, where every equation ran.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "right.h"

using namespace plait;

namespace {

struct Layer {
  Array w, b;
};
struct State {
  std::vector<Layer> params, m, v;
  Array count;
};

Array matmul(const Array& x, const Array& w) { return lax::dot_general(x, w, {{1}, {0}, {}, {}}); }

Array loss(const std::vector<Layer>& params, const Array& x, const Array& y) {
  Array h = x;
  for (std::size_t i = 0; i < params.size(); ++i) {
    h = matmul(h, params[i].w) + params[i].b;
    if (i + 1 < params.size()) h = lax::max(h, Array::literal(0, DType::float32));
  }
  const std::vector<int> last{1};
  const Array top = lax::broadcast_in_dim(lax::reduce_max(h, last), h.shape(), std::vector<int>{0});
  const Array shifted = h - lax::stop_gradient(top);
  const Array total = lax::log(lax::reduce_sum(lax::exp(shifted), last));
  const Array picked = lax::reduce_sum(shifted * y, last);
  return lax::reduce_sum(total - picked, std::vector<int>{0}) / 128.0;
}

std::pair<Array, State> step(const State& state, const Array& x, const Array& y) {
  const auto [value, gradient] = value_and_grad(loss)(state.params, x, y);
  State next = state;
  next.count = state.count + 1.0;
  const Array scale1 = 1.0 / (1.0 - lax::pow(Array::literal(0.9, DType::float32), next.count));
  const Array scale2 = 1.0 / (1.0 - lax::pow(Array::literal(0.999, DType::float32), next.count));
  auto update = [&](const Array& g, const Array& p, Array& m, Array& v) -> Array {
    m = m * 0.9 + g * 0.1;
    v = v * 0.999 + g * g * 0.001;
    return p - m * scale1 / (lax::sqrt(v * scale2) + 1e-8) * 1e-3;
  };
  for (std::size_t i = 0; i < next.params.size(); ++i) {
    next.params[i].w = update(gradient[i].w, state.params[i].w, next.m[i].w, next.v[i].w);
    next.params[i].b = update(gradient[i].b, state.params[i].b, next.m[i].b, next.v[i].b);
  }
  return {value, next};
}

Array ramp(const Shape& shape, double scale) {
  const Array i = lax::iota(DType::float32, {shape.num_elements()}, 0);
  return lax::reshape(lax::sin(i * 12.9898) * scale, shape);
}

using Numbers = std::vector<double>;

Numbers numbers_of(const Array& array) {
  const Buffer dense = array.buffer().dense();
  const auto* data = static_cast<const float*>(dense.data());
  return Numbers(data, data + num_elements(dense.shape()));
}

// The loss and its gradient by the last bias, in plain loops.
struct Plain {
  double loss = 0;
  Numbers gradient;
};
Plain plain_loss(const std::vector<Layer>& params, const Array& x, const Array& y) {
  const std::size_t rows = std::size_t(x.shape(0).constant());
  Numbers h = numbers_of(x);
  for (std::size_t layer = 0; layer < params.size(); ++layer) {
    const Numbers w = numbers_of(params[layer].w), b = numbers_of(params[layer].b);
    const std::size_t width = b.size(), depth = w.size() / width;
    Numbers next(rows * width);
    for (std::size_t r = 0; r < rows; ++r) {
      double* const out = &next[r * width];
      for (std::size_t c = 0; c < width; ++c) out[c] = b[c];
      for (std::size_t k = 0; k < depth; ++k)
        for (std::size_t c = 0; c < width; ++c) out[c] += h[r * depth + k] * w[k * width + c];
      for (std::size_t c = 0; c < width && layer + 1 < params.size(); ++c)
        out[c] = std::max(out[c], 0.0);
    }
    h = std::move(next);
  }
  const Numbers labels = numbers_of(y);
  const std::size_t classes = labels.size() / rows;
  Plain plain{0, Numbers(classes)};
  for (std::size_t r = 0; r < rows; ++r) {
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(h[r * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double label = labels[r * classes + c], score = h[r * classes + c];
      plain.loss += label * (std::log(total) - score) / double(rows);
      plain.gradient[c] += (std::exp(score) / total - label) / double(rows);
    }
  }
  return plain;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  State state;
  const int sizes[] = {784, 512, 512, 10};
  for (int i = 0; i < 3; ++i) {
    const Layer zero{lax::full({sizes[i], sizes[i + 1]}, 0, DType::float32),
                     lax::full({sizes[i + 1]}, 0, DType::float32)};
    state.params.push_back({ramp({sizes[i], sizes[i + 1]}, 0.05), zero.b});
    state.m.push_back(zero);
    state.v.push_back(zero);
  }
  state.count =
      Array::literal(0, DType::float32) + lax::reduce_sum(ramp({1}, 0), std::vector<int>{0});
  const Array x = ramp({128, 784}, 1);
  const Array y = lax::convert_element_type(
      lax::eq(lax::iota(DType::int32, {128, 10}, 1),
              lax::rem(lax::iota(DType::int32, {128, 10}, 0), Array::literal(10, DType::int32))),
      DType::float32);
  if (argc > 1 && std::strcmp(argv[1], "explain") == 0)
    std::puts(compile(make_jaxpr(step, state, x, y).jaxpr)->explain().c_str());
  const auto jitted = jit(step);
  double start = seconds();
  auto [value, next] = jitted(state, x, y);
  const double first = seconds() - start;
  const Plain plain = plain_loss(state.params, x, y);
  const double loss = value.item<double>();
  require_near(loss, plain.loss, 1e-4, "the loss");
  const Numbers bias = numbers_of(next.params.back().b);
  for (std::size_t c = 0; c < bias.size(); ++c)  // the first step of Adam has the gradient's signs
    require_near(bias[c], plain.gradient[c] > 0 ? -1e-3 : 1e-3, 1e-5, "the step of the last bias");
  std::printf("first_ms %.3f\n", first * 1e3);
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    start = seconds();
    std::tie(value, next) = jitted(next, x, y);
    times.push_back(seconds() - start);
  }
  require(value.item<double>() < loss, "the loss does not sink");
  std::sort(times.begin(), times.end());
  std::printf("step_ms %.4f\nbest_ms %.4f\nloss %.6f\n", times[times.size() / 2] * 1e3,
              times[0] * 1e3, value.item<double>());
}
