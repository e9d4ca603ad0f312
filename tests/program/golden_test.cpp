// Files of every format that plait has written load, compute what they did, and are saved again.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/program.h>
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
