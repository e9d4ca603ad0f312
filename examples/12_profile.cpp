// Lesson 12: what a program does with its time, and what it looks like.
//
// Prints the same as its twin, 12_profile.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

using plait::Array;
namespace jnp = plait::numpy;

struct Params {
  Array v, w;
};

Array loss(const Params& params, const Array& x, const Array& y) {
  Array h;
  {
    const plait::NamedScope scope("hidden");
    h = jnp::tanh(jnp::matmul(x, params.w));
  }
  const plait::NamedScope scope("output");
  return jnp::mean(jnp::square(jnp::matmul(h, params.v) - y));
}

int main() {
  const Params params{jnp::ones({256, 10}), jnp::ones({64, 256})};
  const Array x = jnp::ones({512, 64}), y = jnp::ones({512, 10});

  // profile compiles the program, runs it some times, and says what each of its steps took, against
  // what the machine can do. Times go to lines, to named scopes, and to the transforms that made an
  // equation.
  const plait::Profile p = plait::profile(plait::grad(loss), params, x, y);
  std::printf("it took time: %s\n", p.seconds > 0 ? "True" : "False");
  std::set<std::string> scopes;
  for (const auto& [scope, seconds] : p.by(plait::ProfileBy::scope)) scopes.insert(scope);
  std::string names;
  for (const std::string& scope : scopes) names += (names.empty() ? "" : ", ") + scope;
  std::printf("scopes: %s\n", names.c_str());
  const auto made = p.by(plait::ProfileBy::transforms);
  const bool found = std::any_of(made.begin(), made.end(), [](const auto& row) {
    return row.first.find("transpose") != std::string::npos;
  });
  std::printf("made by transposing: %s\n", found ? "True" : "False");
  int products = 0;
  double flops = 0;
  for (const plait::ProfileStep& step : p.steps) {
    if (step.name.find("dot_general") == std::string::npos) continue;
    ++products;
    flops += step.work.flops;
  }
  std::printf("products: %d\ntheir work: %.15g MFLOP\n", products, flops / 1e6);

  // p.to_string() is a table. The rest goes into files: a flame graph and a trace for
  // ui.perfetto.dev; a picture of the program, coloured by these times, whose boxes are the scopes,
  // and fold.
  const auto folder = std::filesystem::temp_directory_path() /
                      ("plait_profile_" + std::to_string(p.seconds).substr(2) + "_cpp");
  std::filesystem::create_directory(folder);
  p.write_flame(folder / "flame.html");
  p.write_trace(folder / "trace.json");
  const plait::Jaxpr program = plait::make_jaxpr(plait::grad(loss), params, x, y).jaxpr;
  plait::DrawOptions options;
  options.color = plait::DrawColor::time;
  options.profile = &p;
  plait::draw(program, folder / "loss.html", options);
  plait::draw(program, folder / "loss.svg");
  for (const char* name : {"flame.html", "loss.html", "loss.svg", "trace.json"})
    std::printf("%s is written: %s\n", name,
                std::filesystem::file_size(folder / name) > 1000 ? "True" : "False");
  std::filesystem::remove_all(folder);
}
