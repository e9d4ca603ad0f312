// Files of every format that plait has written load, compute what they did, and are saved again.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/program/program.h>
#include <unistd.h>

#include <filesystem>

#include "program/upgrade.h"

using namespace plait;
namespace fs = std::filesystem;

namespace {

const fs::path golden = fs::path("tests") / "golden";

LoadOptions options_for(const fs::path& file, int format) {
  LoadOptions options{.verify = true};
  if (file.stem() == "bare")
    options.constants.emplace(format == 1 ? "c0" : "factor",
                              numpy::arange(1.0, 4.0, 1.0, DType::float32));
  return options;
}

}  // namespace

TEST_CASE("golden files of every format load and compute what they did") {
  for (int format = 1; format <= program_format; ++format) {
    const fs::path folder = golden / ("format_" + std::to_string(format));
    CAPTURE(folder.string());
    REQUIRE(fs::exists(folder));  // python tests/golden/make.py FORMAT writes it
    int count = 0, vectors = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
      CAPTURE(file.path().string());
      const Program program = load(file.path().string(), options_for(file.path(), format));
      ++count;
      for (const Entry& entry : program.entries()) {
        vectors += entry.has_example();
        const Source source = entry.jaxpr()->equations.back().source;
        REQUIRE(source);
        CHECK(source->file == "make.py");
        CHECK(parse(print(entry.jaxpr(), ShowSources::yes)) == entry.jaxpr());
      }
    }
    CHECK(count == 4);
    CHECK(vectors == 6);
  }
}

TEST_CASE("calls of format 2 become what they meant") {
  const std::string body = "{ lambda ; a:f32[3] . let\n    b:f32[3] = sin a\n  in (b) }";
  const std::string pushed =
      "{ lambda ; a:f32[3] b:f32[3] . let\n"
      "    c:f32[3] = sin a\n    d:f32[3] = mul a b\n  in (c, d) }";
  const std::string pulled =
      "{ lambda ; a:f32[3] b:f32[3] . let\n    c:f32[3] = mul a b\n  in (c) }";
  const std::string kept = "{ lambda ; a:f32[3] . let\n    b:f32[3] = sin a\n  in (b, a) }";
  auto program = [](const std::string& equation) {
    return parse("{ lambda ; a:f32[3] . let\n    b:f32[3] = " + equation + " a\n  in (b) }");
  };
  auto held = [](const std::string& equation) {
    return "{ lambda ; a:f32[3] . let\n    b:f32[3] = " + equation + " a\n  in (b) }";
  };
  const std::pair<std::string, std::string> changes[] = {
      {"call[body=" + body + ", name='f']", "call[body=" + body + ", name='f']"},
      {"call[axes=(-1), body=" + body + ", name='norm']", "call[body=" + body + ", name='norm']"},
      {"call[axes=(-1), body=" + body + ", name='norm', symbol='norm.fwd']",
       "composite[axes=(-1), body=" + body + ", symbol='norm.fwd']"},
      {"call[body=" + body + ", jvp=" + pushed + ", name='f', num_captured=0]",
       "custom_derivative[body=" + body + ", jvp=" + pushed + ", name='f']"},
      {"call[body=" + body + ", bwd=" + pulled + ", fwd=" + kept + ", num_captured=1]",
       "custom_derivative[body=" + body + ", bwd=" + pulled + ", fwd=" + kept +
           ", name='f', num_captured=1]"},
  };
  for (const auto& change : changes) {
    const std::string& before = change.first;
    const std::string& after = change.second;
    CAPTURE(before);
    CHECK(upgrade_jaxpr(2, program(before)) == program(after));
    CHECK(upgrade_jaxpr(1, program(before)) == program(after));
    CHECK(upgrade_jaxpr(program_format, program(after)) == program(after));
    // In the bodies of others, too.
    CHECK(upgrade_jaxpr(2, program("call[body=" + held(before) + "]")) ==
          program("call[body=" + held(after) + "]"));
    CHECK(upgrade_jaxpr(2, program("call[body=" + held(before) + ", symbol='s']")) ==
          program("composite[body=" + held(after) + ", symbol='s']"));
  }
}

TEST_CASE("named sizes of calls of format 2 are fed as they were") {
  const Jaxpr old = parse(R"({ lambda n ; a:f32[n] . let
    b:f32[n] = call[body={ lambda m ; a:f32[m] . let
          b:f32[m] = sin a
        in (b) }, name='norm', sizes=(n), symbol='norm'] a
  in (b) })");
  const Jaxpr now = upgrade_jaxpr(2, old);
  const Equation& equation = now->equations[0];
  CHECK(*equation.primitive == composite_p);
  CHECK(equation.params == old->equations[0].params.without("name"));
  CHECK(now->sizes == old->sizes);
}

TEST_CASE("a file of an old format is saved in the newest") {
  const std::string path =
      (fs::temp_directory_path() / ("plait_" + std::to_string(getpid()) + "_golden.plait"))
          .string();
  const Program old = load((golden / "format_1" / "training.plait").string());
  std::map<std::string, TracedFunction> functions;
  for (const Entry& entry : old.entries()) functions.emplace(entry.name(), entry.function());
  save(path, functions, {.meta = old.meta(), .licence = old.licence()});
  const Program now = load(path, {.verify = true});
  fs::remove(path);
  CHECK(now.meta() == old.meta());
  CHECK(now.licence() == old.licence());
  for (const Entry& entry : old.entries()) CHECK(now[entry.name()].jaxpr() == entry.jaxpr());
}
