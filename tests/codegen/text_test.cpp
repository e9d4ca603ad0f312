// Loop programs give the same bits interpreted, as generated code, and as C++ text that a compiler
// reads: what emitters may not decide.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "../backends/backend_here.h"
#include "codegen/own.h"
#include "cpp_text.h"
#include "loop_cases.h"
#include "planted_errors.h"
#include "text_library.h"
#include "written_programs.h"

using namespace plait;
using namespace plait::codegen;

namespace {

// The backend is asked for before the first program of this process is compiled.
[[maybe_unused]] const bool asked = setenv("PLAIT_LLVM", "1", 0) == 0;

doctest::skip needs_compiler() { return doctest::skip(!TextLibrary::compiler()); }

struct Compared {
  std::size_t loops = 0, generated = 0, failing = 0;
};

std::string lines_of(const std::map<std::string, int>& counts, const std::string& what) {
  std::string text;
  for (const auto& [reason, count] : counts)
    text += "\n  " + std::to_string(count) + " " + what + ": " + reason;
  return text;
}

// The loops in all ways; says what differs.
Compared compare(const LoopCases& cases) {
  Compared compared;
  std::map<std::string, int> without;
  TextLibrary texts;
  for (const LoopCase& one : cases.loops) texts.add(one.program());
  texts.compile();
  for (std::size_t i = 0; i < cases.loops.size(); ++i) {
    const LoopCase& one = cases.loops[i];
    const Outcome expected = interpreted(one.program(), one.operands, one.results());
    const auto say = [&](const std::string& way, const std::string& what) {
      FAIL_CHECK(one.name << " as " << way << ": " << what << "\n"
                          << print(one.group) << "\n"
                          << print(one.program()));
    };
    if (const auto what = difference(texts.run(i, one.operands, one.results()), expected))
      say("text", *what);
    const Generated generated = codegen::generated(one.group, one.operands);
    if (!generated.outcome)
      ++without[generated.reason];
    else if (const auto what = difference(*generated.outcome, expected))
      say("generated code", *what);
    ++compared.loops;
    compared.generated += generated.outcome.has_value();
    compared.failing += !expected.error.empty();
  }
  MESSAGE(compared.loops << " loops, " << compared.generated << " of them generated, "
                         << compared.failing << " that fail"
                         << lines_of(without, "without generated code")
                         << lines_of(cases.refused, "without a loop program"));
  return compared;
}

}  // namespace

// Texts that differ are written anew with PLAIT_UPDATE=1, and fail all the same.
TEST_CASE("texts read as people write loops") {
  for (const WrittenProgram& one : {smoothed(), chosen_rows(), halved()}) {
    check(one.program);
    const std::string path = "tests/codegen/texts/" + one.name + ".txt",
                      text = cpp_text(one.program, one.name);
    std::stringstream expected;
    expected << std::ifstream(path).rdbuf();
    CHECK(text == expected.str());
    const char* const update = std::getenv("PLAIT_UPDATE");
    if (update && *update && text != expected.str()) std::ofstream(path) << text;
  }
}

TEST_CASE("what the texts say runs" * needs_compiler()) {
  TextLibrary texts;
  for (const WrittenProgram& one : {smoothed(), chosen_rows(), halved()}) {
    CAPTURE(one.name);
    texts.add(one.program);
  }
  texts.compile();
  std::size_t number = 0;
  for (const WrittenProgram& one : {smoothed(), chosen_rows(), halved()}) {
    CAPTURE(one.name);
    const Outcome expected = interpreted(one.program, one.operands, one.results);
    CHECK(expected.error.empty());
    CHECK_FALSE(difference(texts.run(number++, one.operands, one.results), expected));
  }
}

TEST_CASE("loops as people write them" * needs_compiler()) {
  const Compared compared = compare(written_loops());
  CHECK(compared.loops >= 80);
  CHECK(compared.failing >= 5);
}

TEST_CASE("loops that have become one" * needs_compiler()) {
  const LoopCases cases = united_loops();
  for (const LoopCase& one : cases.loops)
    CHECK_MESSAGE(!memories_of_steps(one.program()).empty(), print(one.program()));
  CHECK(compare(cases).loops == 3);
}

TEST_CASE("loops of every primitive" * needs_compiler()) {
  CHECK(compare(loops_of_primitives()).loops >= 1000);
}

TEST_CASE("random loops" * needs_compiler()) {
  // PLAIT_FIRST_SEED=2000 tries others.
  const char* first = std::getenv("PLAIT_FIRST_SEED");
  const LoopCases cases = random_loops(first ? unsigned(std::atoi(first)) : 0, 80);
  CHECK(compare(cases).loops >= 60);
}

namespace {

// Loops with a mistake each, in one library.
class Planted {
 public:
  explicit Planted(LoopCases cases) : cases_(std::move(cases)) {}
  // add(loop): adds its text with the mistake, if it can have it.
  template <class Add>
  void in(const std::vector<std::string>& loops, const std::string& error, const Add& add) {
    std::size_t planted = 0;
    for (const LoopCase& loop : cases_.loops)
      if (std::find(loops.begin(), loops.end(), loop.name) != loops.end() && add(loop)) {
        planted_.push_back({error, &loop});
        ++planted;
      }
    CHECK_MESSAGE(planted >= loops.size(), error << " is not in each of its loops");
  }
  void find_all() {
    texts.compile();
    for (std::size_t i = 0; i < planted_.size(); ++i) {
      const LoopCase& loop = *planted_[i].loop;
      const Outcome expected = interpreted(loop.program(), loop.operands, loop.results());
      CHECK_MESSAGE(difference(texts.run(i, loop.operands, loop.results()), expected),
                    planted_[i].error << " in " << loop.name << " is not found");
    }
    MESSAGE(planted_.size() << " mistakes are planted");
  }

  TextLibrary texts;

 private:
  struct One {
    std::string error;
    const LoopCase* loop;
  };
  const LoopCases cases_;
  std::vector<One> planted_;
};

std::string replaced(std::string text, const std::string& right, const std::string& wrong) {
  for (std::size_t at = 0; (at = text.find(right, at)) != std::string::npos; at += wrong.size())
    text.replace(at, right.size(), wrong);
  return text;
}

}  // namespace

TEST_CASE("every mistake that is planted in a text is found" * needs_compiler()) {
  Planted planted(written_loops());
  for (const PlantedError& error : planted_errors())
    planted.in(error.loops, error.name, [&](const LoopCase& loop) {
      LoopProgram program = loop.program();
      if (!error.plant(program)) return false;
      planted.texts.add(program);
      return true;
    });
  for (const PlantedText& error : planted_texts())
    planted.in(error.loops, error.name, [&](const LoopCase& loop) {
      const std::string text = cpp_text(loop.program(), "f");
      if (text.find(error.right) == std::string::npos) return false;
      planted.texts.add(loop.program(), [&](std::string right) {
        return replaced(std::move(right), error.right, error.wrong);
      });
      return true;
    });
  planted.find_all();
}
