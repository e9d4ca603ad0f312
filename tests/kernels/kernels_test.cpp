// Loop programs as CUDA kernels give the bits that they give interpreted. The identical text that a
// GPU gets runs on the CPU here, by the stand-ins of tests/cuda, which check every access; many
// programs are one text, so that it is quick to compile.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/error.h>
#include <plait/base/stream.h>
#include <plait/inspect/samples.h>
#include <plait/plait.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <set>

#include "../codegen/loop_cases.h"
#include "../codegen/text_library.h"
#include "../cuda/here.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/strips.h"
#include "base/staging.h"
#include "codegen/calls.h"
#include "codegen/walk.h"
#include "run_kernel.h"
#include "wide_loops.h"

using namespace plait;
using namespace plait::codegen;
using kernels::device;

namespace {

bool has_complex(const Outcome& outcome) {
  return std::any_of(outcome.results.begin(), outcome.results.end(),
                     [](const Array& array) { return is_complex(array.dtype()); });
}
// Sums whose order is that of NOTE: [order of long combinations].
bool has_long_sums(const LoopProgram& program) {
  bool has = false;
  for_each_statement(program.body, [&](const Statement& s) {
    has = has || (cuda::is_long(s) && is_inexact(program.dtypes[std::size_t(s.value)]) &&
                  *s.primitive != max_p && *s.primitive != min_p);
  });
  return has;
}
// Functions of complex numbers are the C library's on the CPU, and plait's own on a device. What
// calls kernels there has sums in their order.
std::optional<std::string> differs(const Outcome& actual, const Outcome& expected,
                                   const LoopProgram& program) {
  const bool is_other =
      has_complex(expected) || has_long_sums(program) || Calls(program).size() > 0;
  if (actual.error.empty() && expected.error.empty() && is_other)
    return laws::difference(actual.results, expected.results);
  return difference(actual, expected);
}

std::string source_of_one(const cuda::Staged& staged, cuda::Sizes sizes) {
  const cuda::ProgramText text = cuda::text_of(staged, "stage", sizes);
  const cuda::ProgramText* const texts[] = {&text};
  return cuda::source_of(texts);
}

bool is_cooperative(const cuda::Staged& staged) {
  return std::any_of(staged.stages.begin(), staged.stages.end(),
                     [](const cuda::Stage& stage) { return stage.is_cooperative; });
}

enum class Which { all, cooperative };

// The loops as kernels: those of one block are for fewer steps at once. Returns how many there
// were.
std::size_t compare(const LoopCases& cases, cuda::Sizes sizes, Which which = Which::all,
                    std::int64_t fewest_of_cooperative = cuda::fewest_of_cooperative) {
  constexpr std::size_t of_text = 48, most_units = 4;
  struct Unit {
    std::vector<const LoopCase*> loops = {};
    std::vector<std::shared_ptr<const cuda::Staged>> programs = {};
    std::vector<std::unique_ptr<Kernel>> kernels = {};
  };
  std::deque<Unit> units;  // that compilers have, but for the last one
  std::map<std::string, int> refused;
  std::size_t count = 0;
  const auto run_first = [&] {
    const Unit& unit = units.front();
    for (std::size_t i = 0; i < unit.kernels.size(); ++i) {
      const LoopCase& one = *unit.loops[i];
      const Outcome expected = interpreted(one.program(), one.operands, one.results());
      const auto what = differs(kernels::run(*unit.kernels[i], one.operands, one.results()),
                                expected, one.program());
      if (what)
        FAIL_CHECK(one.name << ": " << *what << "\n"
                            << source_of_one(*unit.programs[i], sizes) << print(one.group));
    }
    count += unit.kernels.size();
    units.pop_front();
  };
  const auto compile_last = [&] {
    units.back().kernels = cuda::make_program_kernels(units.back().programs, device(), sizes);
  };
  units.emplace_back();
  for (const LoopCase& one : cases.loops) {
    cuda::Lowered program = cuda::lowered(one.group, compile_passes::dense_inputs(one.group),
                                          device(), fewest_of_cooperative);
    if (!program.staged) {
      ++refused[program.reason];
      continue;
    }
    if (which == Which::cooperative && !is_cooperative(*program.staged)) continue;
    units.back().loops.push_back(&one);
    units.back().programs.push_back(std::move(program.staged));
    if (units.back().programs.size() < of_text) continue;
    compile_last();
    units.emplace_back();
    if (units.size() > most_units) run_first();
  }
  if (!units.back().programs.empty()) compile_last();
  while (!units.empty()) run_first();
  std::string text;
  for (const auto& [reason, times] : refused)
    text += "\n  " + std::to_string(times) + " without kernels: " + reason;
  MESSAGE(count << " loops" << text);
  return count;
}

}  // namespace

TEST_CASE("loops as people write them, as kernels") {
  REQUIRE(kernels::is_apart);
  for (const cuda::Sizes sizes : {cuda::Sizes::written, cuda::Sizes::given})
    CHECK(compare(written_loops(), sizes) >= 100);
}

TEST_CASE("loops as people write them, whose blocks meet") {
  const LoopCases loops = written_loops();
  CHECK(compare(loops, cuda::Sizes::written, Which::cooperative, 2) >= 40);
  CHECK(compare(loops, cuda::Sizes::given, Which::cooperative, 16) >= 30);
  CHECK(compare(loops, cuda::Sizes::written, Which::cooperative, 64) >= 10);
}

TEST_CASE("loops of wide steps, whose blocks meet") {
  CHECK(compare(kernels::wide_loops(1500), cuda::Sizes::written, Which::cooperative, 256) >= 14);
  CHECK(compare(kernels::wide_loops(600), cuda::Sizes::given, Which::cooperative, 128) >= 14);
}

// Their sums are of many parts, which pairs of pairs add up.
TEST_CASE("loops of more steps than there is room for, whose blocks meet") {
  LoopCases few;
  for (LoopCase& one : kernels::wide_loops(70'000).loops)
    if (one.name == "heat" || one.name == "halved until small") few.loops.push_back(std::move(one));
  CHECK(compare(few, cuda::Sizes::written, Which::cooperative) == 2);
}

TEST_CASE("loops that have become one, as kernels") {
  CHECK(compare(united_loops(), cuda::Sizes::written) == 3);
}

TEST_CASE("loops of every primitive, as kernels") {
  CHECK(compare(loops_of_primitives(), cuda::Sizes::written) > 1000);
}

TEST_CASE("loops of random programs, as kernels") {
  CHECK(compare(random_loops(1, 60), cuda::Sizes::written) > 40);
}

namespace {

// Loops in which lanes, blocks and checks take part.
LoopCases few_loops() {
  const std::set<std::string> wanted = {"examples with own ends", "branches and loops",
                                        "columns and rows", "reductions"};
  LoopCases all = written_loops(), few;
  for (LoopCase& one : all.loops)
    if (wanted.contains(one.name)) few.loops.push_back(std::move(one));
  return few;
}

LoopCases few_wide_loops() {
  const std::set<std::string> wanted = {"heat", "steady heat", "conjugate gradients"};
  LoopCases all = kernels::wide_loops(300), few;
  for (LoopCase& one : all.loops)
    if (wanted.contains(one.name)) few.loops.push_back(std::move(one));
  return few;
}
constexpr std::int64_t few_at_once = 64;

// What this program says, run anew with an error in its kernels, if it says that loops are wrong.
std::string seen(const std::string& mutant, const std::string& test) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "STANDIN_MUTANT='" + mutant + "' PLAIT_CACHE_DIR=0 timeout 60 '" +
                              program + "' -tc='" + test + "' 2>&1";
  std::FILE* const output = popen(command.c_str(), "r");
  std::string text;
  for (char line[512]; std::fgets(line, sizeof line, output) != nullptr;) text += line;
  return pclose(output) == 0 ? std::string() : text + "wrong";
}
bool is_seen(const std::string& mutant) {
  return !seen(mutant, "a few loops of lanes and blocks").empty();
}

}  // namespace

TEST_CASE("a few loops of lanes and blocks") {
  CHECK(compare(few_loops(), cuda::Sizes::written) >= 4);
}

TEST_CASE("a few loops whose blocks meet") {
  CHECK(compare(few_wide_loops(), cuda::Sizes::written, Which::cooperative, few_at_once) == 3);
}

TEST_CASE("blocks that do not meet are seen") {
  std::string source;
  for (const LoopCase& one : few_wide_loops().loops)
    source += source_of_one(
        *cuda::lowered(one.group, compile_passes::dense_inputs(one.group), device(), few_at_once)
             .staged,
        cuda::Sizes::written);
  const std::string meeting = "sync_grid(grid);";
  int num_meetings = 0;
  for (auto at = source.find(meeting); at != source.npos; at = source.find(meeting, at + 1))
    ++num_meetings;
  REQUIRE(num_meetings >= 6);
  for (int i = 0; i < num_meetings; ++i)
    CHECK(seen(std::to_string(i) + ":" + meeting + ":", "a few loops whose blocks meet")
              .find("a race: ") != std::string::npos);
}

TEST_CASE("errors in kernels are seen") {
  std::string source;
  for (const LoopCase& one : few_loops().loops) {
    const cuda::Lowered program =
        cuda::lowered(one.group, compile_passes::dense_inputs(one.group), device());
    source += source_of_one(*program.staged, cuda::Sizes::written);
  }
  const auto count = [&](const std::string& text) {
    int times = 0;
    for (auto at = source.find(text); at != source.npos; at = source.find(text, at + 1)) ++times;
    return times;
  };
  CHECK_FALSE(is_seen("0:no such text:"));
  struct Error {
    std::string what, text, other;
  };
  constexpr int tries = 3;  // a barrier may be one too many
  for (const Error& error :
       {Error{"a barrier is missing", "__syncthreads()", ""}, Error{"a wrong lane", ", 4)", ", 2)"},
        Error{"a part twice", "threadIdx.x & 7u", "threadIdx.x & 3u"},
        Error{"a stride is wrong", "+= 8)", "+= 7)"}, Error{"off by one", "[v", "[1 + v"}}) {
    const int times = count(error.text);
    REQUIRE(times >= tries);
    bool is_caught = false;
    for (int i = 0; i < tries && !is_caught; ++i)
      is_caught =
          is_seen(std::to_string(i * (times / tries)) + ":" + error.text + ":" + error.other);
    CHECK_MESSAGE(is_caught, error.what);
  }
}
