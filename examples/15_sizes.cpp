// Lesson 15: what is known of sizes, and how a program runs at those of a call.
//
// Prints the same as its twin, 15_sizes.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/numpy.h>
#include <plait/plait.h>
#include <plait/run.h>

#include <cstdio>
#include <filesystem>

using plait::Array, plait::Dim;
namespace jnp = plait::numpy;

// Sums of 8 steps each, and a layer on them.
Array pooled(const Array& x, const Array& w) {
  const Dim steps = x.shape(0);
  const Array groups = jnp::reshape(x, {floor_divide(steps, 8), 8, x.shape(1)});
  return jnp::tanh(jnp::matmul(jnp::sum(groups, 1), w));
}

Array tail(const Array& x) {
  const Dim n = x.shape(0);
  return less_equal(4, n) == true ? plait::lax::slice(x, {n - 4}, {n}) : x;
}

// The first line of a text.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

double total(const Array& x) { return double(jnp::sum(x).item<float>()); }

int main() {
  // That steps // 8 groups of 8 hold them all, t % 8 == 0, is what tracing finds that it needs.
  // Other things are declared.
  const std::vector<std::string> declared = {"0 < t <= 512"};
  const plait::Constraints constraints(declared);
  std::puts(print(plait::make_jaxpr(pooled, constraints, "t 2", "2 3").jaxpr).c_str());

  // An order decides a question on sizes, and what slices and gathers need.
  std::puts(print(plait::make_jaxpr(tail, plait::Constraints{"n >= 8"}, "n").jaxpr).c_str());

  // Each call is checked.
  const auto filled = [](Dim n, Dim d, double value) {
    return jnp::full({n, d}, value, plait::DType::float32);
  };
  const Array w = filled(2, 3, 0.25);
  const plait::SpecTree specs{"t 2", std::nullopt};
  const auto f = plait::jit(pooled, specs, {.constraints = declared}, "pooled");
  for (int t : {16, 12, 1024}) try {
      std::printf("t = %d: %s groups\n", t, f(filled(t, 2, 0.1), w).shape(0).to_string().c_str());
    } catch (const plait::Error& error) {
      std::printf("error: %s\n", error.problem().c_str());
    }

  // Without more, each size has an executable. Buckets pad to a few sizes, a bound pads to one; the
  // padding is masked: never read, and cut off again. explain says what it costs.
  const Array x = filled(40, 2, 0.1);
  for (const plait::SizeOptions& options :
       std::vector<plait::SizeOptions>{{.constraints = declared},
                                       {.constraints = declared, .buckets = plait::powers_of_two},
                                       {.constraints = declared, .buckets = {{"", {48, 96}}}},
                                       {.constraints = declared, .bound = {{"t", 160}}}}) {
    const auto run = plait::jit(pooled, specs, options, "pooled");
    std::printf("%.4f %s\n", total(run(x, w)), first_line(run.explain(x, w)).c_str());
  }

  // A file holds the program for every size with what it needs of them; a loaded function has the
  // same choice.
  const std::string path =
      (std::filesystem::temp_directory_path() / "lesson_15_cpp.plait").string();
  plait::save(path,
              {{"pooled", plait::traced_with_specs(pooled, {"t 2", "2 3"}, constraints, x, w)}});
  const plait::Program program = plait::load(path);
  const auto loaded = program.entry<Array(Array, Array)>("pooled");
  std::printf("%.4f\n", total(loaded(x, w)));
  try {
    loaded(filled(20, 2, 1), w);
  } catch (const plait::Error& error) {
    std::printf("error: %s\n", error.problem().c_str());
  }
  const auto bounded = program.entry<Array(Array, Array)>("pooled", {.bound = {{"t", 64}}});
  std::printf("%.4f\n", total(bounded(x, w)));
  std::filesystem::remove(path);
}
