// Lesson 10: a training step in a file: saved, loaded, continued, differentiated again.
//
// Prints the same numbers as its twin, 10_saved.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>

#include <cstdio>
#include <filesystem>

using plait::Array;
namespace jnp = plait::numpy;

struct Weights {
  Array w, b;
};

Array predict(const Weights& weights, const Array& x) {
  return jnp::tanh(jnp::matmul(x, weights.w)) + weights.b;
}

double number(const Array& x) { return x.item<double>(); }

int main() {
  const Array x = jnp::reshape(jnp::arange(24) * 0.1 - 1.2, {8, 3});
  const Array y = jnp::sin(jnp::sum(x, 1));
  // Captured by train_step: a constant of the program.
  const Array rates = jnp::stack(std::vector<Array>{jnp::full({}, 0.2), jnp::full({}, 0.1)});

  auto train_step = [rates](const Weights& weights, const Array& x, const Array& y) {
    auto loss = [&](const Weights& w) { return jnp::mean(jnp::square(predict(w, x) - y)); };
    const auto [value, slope] = plait::value_and_grad(loss)(weights);
    const Array w = weights.w - jnp::take(rates, 0) * slope.w;
    const Array b = weights.b - jnp::take(rates, 1) * slope.b;
    return std::pair(Weights{w, b}, value);
  };

  Weights weights{jnp::zeros({3}), jnp::zeros({})};
  Array loss;
  for (int i = 0; i < 5; ++i) std::tie(weights, loss) = train_step(weights, x, y);
  std::printf("before saving %.6f\n", number(loss));

  // Functions are traced on arguments, and written with what they capture. The batch of predict is
  // a size with a name: the loaded function takes any.
  const std::string path = (std::filesystem::temp_directory_path() / "lesson_10.plait").string();
  plait::save(path,
              {{"train_step", plait::traced(train_step, weights, x, y)},
               {"predict", plait::traced_with_specs(predict, {"3", "", "n 3"}, weights, x)}},
              {.meta = {{"task", "a sine of a sum"}}, .licence = "Apache-2.0"});

  // verify runs the step once more on the arguments in the file, and compares.
  const plait::Program program = plait::load(path, {.verify = true});
  for (const plait::Entry& entry : program.entries())
    std::printf("%s%s", &entry == &program.entries()[0] ? "" : ", ", entry.name().c_str());
  std::printf(" | %s\n", program.meta().at("task").c_str());

  // What is loaded is a function: it is jitted, and training goes on.
  const auto loaded = program.entry<std::pair<Weights, Array>(Weights, Array, Array)>("train_step");
  const auto step = plait::jit(loaded);
  for (int i = 0; i < 20; ++i) std::tie(weights, loss) = step(weights, x, y);
  std::printf("after loading %.6f\n", number(loss));

  // It is differentiated and mapped like any other.
  const auto again = program.entry<Array(Weights, Array)>("predict");
  auto one = [&](const Array& row) {
    return jnp::reshape(again(weights, jnp::reshape(row, {1, 3})), {});
  };
  const Array slopes = plait::vmap(plait::grad(one))(plait::lax::slice(x, {0, 0}, {2, 3}));
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j)
      std::printf("%s%.6f", j ? " " : "",
                  number(jnp::reshape(plait::lax::slice(slopes, {plait::Dim(i), plait::Dim(j)},
                                                        {plait::Dim(i + 1), plait::Dim(j + 1)}),
                                      {})));
    std::printf("\n");
  }

  // Its constants have names, and can be others.
  const plait::Entry& entry = program["train_step"];
  const Array old = entry.constants()[0];
  const plait::Entry careful = entry.with_constants({{entry.constant_names()[0], old / 10}});
  const std::vector<Array> results = careful(std::vector<Array>{weights.w, weights.b, x, y});
  const Array moved = jnp::sum(jnp::abs(results[0] - weights.w));
  std::printf("rate %.2f, moved %.6f\n", number(jnp::take(old, 0)), number(moved));
  std::filesystem::remove(path);
}
