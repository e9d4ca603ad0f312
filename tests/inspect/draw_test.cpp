// Pictures and profiles from C++: what the page holds, counted over the program, and times that are
// shared completely. What a browser makes of it is tested in tests/python/test_draw.py.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/progress.h>
#include <plait/functions/numpy.h>
#include <plait/inspect/draw.h>
#include <plait/inspect/profile.h>
#include <plait/transforms/api.h>
#include <plait/transforms/specs.h>

#include <chrono>
#include <thread>

using namespace plait;

namespace {

Array layer(const Array& w, const Array& x) {
  const NamedScope scope("layer");
  return numpy::tanh(numpy::matmul(x, w));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++found;
  return found;
}

}  // namespace

TEST_CASE("a picture names scopes, inputs and lines") {
  const Jaxpr program = make_jaxpr(layer, numpy::ones({3, 4}), numpy::ones({2, 3})).jaxpr;
  DrawOptions options;
  options.title = "one layer";
  options.input_names = {"w"};
  const std::string page = draw_html(program, options);
  for (const char* part : {"<title>one layer</title>", "\"layer\"", "\"w\"", "\"in[1]\"",
                           "\"f32[2,4]\"", "draw_test.cpp", "dot_general"})
    CHECK(page.find(part) != std::string::npos);
  const std::string svg = draw_svg(program, options);
  CHECK(count(svg, "<g>") == count(svg, "</g>"));
  CHECK(svg.find(">layer</text>") != std::string::npos);
}

TEST_CASE("colours that need a profile are refused without one") {
  const Jaxpr program = make_jaxpr(layer, numpy::ones({3, 4}), numpy::ones({2, 3})).jaxpr;
  DrawOptions options;
  options.color = DrawColor::backend;
  CHECK_THROWS_AS(draw_html(program, options), ValueError);
  CHECK_THROWS_AS(draw(program, "/no/such/folder/page.html"), FileError);
}

TEST_CASE("the time of steps is shared among their equations, lines and scopes") {
  const Array w = numpy::ones({64, 64}), x = numpy::ones({64, 64});
  const Profile p = profile(layer, w, x);
  REQUIRE(!p.steps.empty());
  CHECK(p.seconds > 0);
  double steps = 0, flops = 0;
  for (const ProfileStep& step : p.steps) {
    steps += step.seconds;
    flops += step.work.flops;
    double shares = 0;
    for (const ProfileShare& share : step.shares) shares += share.seconds;
    CHECK(shares == doctest::Approx(step.seconds));
  }
  CHECK(flops == 2.0 * 64 * 64 * 64 + 64 * 64);
  for (ProfileBy what : {ProfileBy::line, ProfileBy::scope, ProfileBy::backend}) {
    double sum = 0;
    for (const auto& [name, seconds] : p.by(what)) sum += seconds;
    CHECK(sum == doctest::Approx(steps));
  }
  CHECK(p.by(ProfileBy::scope)[0].first == "layer");
  CHECK(p.to_string().find("GFLOP/s") != std::string::npos);
}

TEST_CASE("profiles of other inputs than the program's are refused") {
  const Jaxpr program = make_jaxpr(layer, numpy::ones({3, 4}), numpy::ones({2, 3})).jaxpr;
  const Array w = numpy::ones({3, 4});
  CHECK_THROWS_AS(profile(program, std::vector<Array>{w}), ValueError);
  CHECK_THROWS_AS(profile(program, std::vector<Array>{w, w}), ShapeError);
  const Jaxpr named = make_jaxpr([](const Array& a) { return a + 1.0; }, "n").jaxpr;
  CHECK_THROWS_AS(profile(named, std::vector<Array>{w}), ValueError);
}

TEST_CASE("long work is told about until it ends, and only the outermost") {
  std::vector<Progress> told;
  set_progress([&](const Progress& progress) { told.push_back(progress); }, 0.02);
  {
    ProgressScope outer("outer", 8);
    for (int i = 0; i < 8; ++i) {
      ProgressScope inner("inner", 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      inner.step();
      outer.step();
    }
  }
  {
    const ProgressScope quick("quick", 1);
  }
  reset_progress();
  REQUIRE(told.size() >= 2);
  std::int64_t done = 0;
  for (const Progress& progress : told) {
    CHECK(progress.what == "outer");
    CHECK(progress.total == 8);
    CHECK(progress.done >= done);
    done = progress.done;
    CHECK(progress.is_last == (&progress == &told.back()));
  }
  CHECK(told.back().done == 8);
}
