// Loop programs written by hand (programs/*.loop): serial and parallel loops, computed bounds,
// while loops, calls, memories that change places. Each runs in the interpreter and as generated
// code, beside the same in C++.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/pool.h>
#include <plait/plait.h>

#include <cmath>
#include <fstream>
#include <random>

#include "../backends/backend_here.h"
#include "compile/loop_programs.h"
#include "run_program.h"

using namespace plait;
using codegen::Numbers;

namespace {

std::string text_of_program(const std::string& name) {
  std::ifstream file("tests/codegen/programs/" + name + ".loop");
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

Numbers some(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Numbers numbers(count);
  for (double& number : numbers) number = uniform(generator);
  return numbers;
}

void check_close(const std::vector<Numbers>& got, const std::vector<Numbers>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].size() == wanted[i].size());
    for (std::size_t e = 0; e < got[i].size(); ++e)
      CHECK(got[i][e] == doctest::Approx(wanted[i][e]).epsilon(1e-12));
  }
}

// Runs the program of a file in every way, and compares.
void check_program(const std::string& name, const std::vector<Numbers>& operands,
                   const std::vector<Numbers>& wanted) {
  CAPTURE(name);
  const codegen::LoopProgram program =
      codegen::parse(text_of_program(name), codegen::reference_kernel);
  const std::vector<Numbers> interpreted = codegen::interpret(program, operands);
  check_close(interpreted, wanted);
  const std::string printed = print(program, ShowSources::yes);
  const codegen::LoopProgram again = codegen::parse(printed, codegen::reference_kernel);
  CHECK(print(again, ShowSources::yes) == printed);
  CHECK(codegen::interpret(again, operands) == interpreted);
  const auto* llvm = dynamic_cast<const compile_passes::ProgramCompiler*>(find_backend("llvm"));
  const std::unique_ptr<Kernel> kernel = llvm ? llvm->compile_program(program) : nullptr;
  CHECK((kernel || !is_required("llvm")));
  if (kernel)
    CHECK(codegen::run(program, *kernel, kernel->scratch_bytes(), operands) == interpreted);
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

constexpr std::size_t rows = 6, columns = 8;  // of Gauss-Seidel

}  // namespace

TEST_CASE("Gauss-Seidel by hand") {
  const Numbers start = some(rows * columns, 1), f = some(rows * columns, 2);
  Numbers u = start;
  for (int sweep = 0; sweep < 3; ++sweep)
    for (std::size_t i = 1; i + 1 < rows; ++i)
      for (std::size_t j = 1; j + 1 < columns; ++j) {
        const std::size_t at = i * columns + j;
        u[at] = 0.25 * (u[at - columns] + u[at + columns] + u[at - 1] + u[at + 1] - f[at]);
      }
  check_program("gauss_seidel", {start, f}, {u});
}

// Sweeps are linear: <sweeps(u, f), c> = <u, du> + <f, df> for the cotangents of c.
TEST_CASE("the gradient of Gauss-Seidel by hand") {
  const Numbers cotangent = some(rows * columns, 3);
  const codegen::LoopProgram sweeps = codegen::parse(text_of_program("gauss_seidel"));
  const std::size_t size = rows * columns;
  Numbers of_u(size), of_f(size);
  for (std::size_t at = 0; at < 2 * size; ++at) {
    std::vector<Numbers> unit(2, Numbers(size, 0));
    unit[at / size][at % size] = 1;
    const Numbers made = codegen::interpret(sweeps, unit)[0];
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += made[i] * cotangent[i];
    (at < size ? of_u : of_f)[at % size] = sum;
  }
  check_program("gauss_seidel_gradient", {cotangent}, {of_u, of_f});
}

TEST_CASE("sparse rows by hand") {
  const Numbers start{0, 3, 3, 4, 9, 11}, columns{0, 6, 2, 5, 1, 1, 0, 3, 6, 4, 2};
  const Numbers numbers = some(11, 4), x = some(7, 5);
  Numbers y(5, 0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (auto k = std::size_t(start[i]); k < std::size_t(start[i + 1]); ++k)
      y[i] += numbers[k] * x[std::size_t(columns[k])];
  check_program("sparse_rows", {start, columns, numbers, x}, {y});
  Numbers wrong = columns;
  wrong[4] = 7;
  const auto run = [&] {
    codegen::interpret(codegen::parse(text_of_program("sparse_rows")), {start, wrong, numbers, x});
  };
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("index 7 is outside of 0 to 6"), IndexError);
}

TEST_CASE("softmax by hand") {
  constexpr std::size_t width = 70;
  const Numbers x = some(3 * width, 6);
  Numbers y(x.size());
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += std::exp(x[row * width + i]);
    for (std::size_t i = 0; i < width; ++i) y[row * width + i] = std::exp(x[row * width + i]) / sum;
  }
  check_program("softmax", {x}, {y});
}

TEST_CASE("the cotangents of layer norm by hand") {
  constexpr std::size_t height = 4, width = 6;
  const Numbers x = some(height * width, 7), weight = some(width, 8), dy = some(height * width, 9);
  Numbers dx(x.size()), dweight(width, 0), dbias(width, 0);
  for (std::size_t row = 0; row < height; ++row) {
    const auto at = [&](const Numbers& of, std::size_t i) { return of[row * width + i]; };
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < width; ++i) mean += at(x, i) / width;
    for (std::size_t i = 0; i < width; ++i)
      variance += (at(x, i) - mean) * (at(x, i) - mean) / width;
    const double deviation = std::sqrt(variance + 1e-5);
    // d n[j] / d x[i] = (1[i = j] - 1 / width - n[i] n[j] / width) / deviation
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t j = 0; j < width; ++j) {
        const double n_i = (at(x, i) - mean) / deviation, n_j = (at(x, j) - mean) / deviation;
        dx[row * width + i] +=
            at(dy, j) * weight[j] * (double(i == j) - 1.0 / width - n_i * n_j / width) / deviation;
      }
    for (std::size_t i = 0; i < width; ++i) {
      dweight[i] += at(dy, i) * (at(x, i) - mean) / deviation;
      dbias[i] += at(dy, i);
    }
  }
  check_program("layer_norm_vjp", {x, weight, dy}, {dx, dweight, dbias});
}

TEST_CASE("an LSTM by hand, with calls") {
  constexpr std::size_t steps = 3, batch = 2, inputs = 5, units = 4, gates = 4 * units;
  const Numbers x = some(steps * batch * inputs, 10), w = some(inputs * gates, 11),
                u = some(units * gates, 12);
  const Numbers first_h = some(batch * units, 13), first_c = some(batch * units, 14);
  Numbers h = first_h, c = first_c, all;
  for (std::size_t t = 0; t < steps; ++t) {
    Numbers next = h;
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t j = 0; j < units; ++j) {
        double a[4] = {};
        for (std::size_t gate = 0; gate < 4; ++gate) {
          for (std::size_t k = 0; k < inputs; ++k)
            a[gate] += x[(t * batch + b) * inputs + k] * w[k * gates + gate * units + j];
          for (std::size_t k = 0; k < units; ++k)
            a[gate] += h[b * units + k] * u[k * gates + gate * units + j];
        }
        double& cell = c[b * units + j];
        cell = logistic(a[1]) * cell + logistic(a[0]) * std::tanh(a[2]);
        next[b * units + j] = logistic(a[3]) * std::tanh(cell);
      }
    h = next;
    all.insert(all.end(), h.begin(), h.end());
  }
  check_program("lstm", {x, w, u, first_h, first_c}, {all, c});
}

TEST_CASE("a masked while loop by hand") {
  Numbers x = some(70, 15), roots, steps;
  for (double& number : x) {
    number = std::exp(5 * number);
    double root = number;
    int count = 0;
    for (; std::abs(root * root - number) > number * 1e-12; ++count)
      root = (root + number / root) * 0.5;
    roots.push_back(root);
    steps.push_back(count);
  }
  check_program("masked_while", {x}, {roots, steps});
}

TEST_CASE("examples that end when they do by hand") {
  const Numbers x = some(50, 22);
  Numbers y = x;
  for (std::size_t e = 0; e < 50; e += 10)
    while (y[e] > 0.1)
      for (std::size_t i = 0; i < 10; ++i) y[e + i] *= 0.5;
  check_program("own_ends", {x}, {y});
}

TEST_CASE("memory of its own for each step by hand") {
  constexpr std::size_t n = 300, steps = 10;
  const Numbers x = some(n * steps, 12);
  Numbers y(x.size());
  for (std::size_t i = 0; i < n; ++i) {
    Numbers sums(steps);
    double sum = 0, difference = 1;
    for (std::size_t t = 0; t < steps; ++t) sums[t] = sum += x[t * n + i];
    for (std::size_t t = 0; t < steps; ++t)
      y[t * n + i] = difference = sums[steps - 1 - t] - difference;
  }
  const int before = num_threads();
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    check_program("own_memory", {x}, {y});
  }
  set_num_threads(before);
}

TEST_CASE("a cumulative sum by hand") {
  const Numbers x = some(60, 16);
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = i % 20 == 0 ? x[i] : y[i - 1] + x[i];
  check_program("cumsum", {x}, {y});
}

TEST_CASE("roll by hand") {
  const Numbers x = some(200, 17);
  Numbers y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i / 50 * 50 + (i % 50 + 4 * 13) % 50] = x[i];
  check_program("roll", {x}, {y});
}

TEST_CASE("a product of a matrix and a vector by hand") {
  const Numbers a = some(360, 18), x = some(40, 19);
  Numbers y(9, 0);
  for (std::size_t i = 0; i < a.size(); ++i) y[i / 40] += a[i] * x[i % 40];
  check_program("matrix_vector", {a, x}, {y});
}
