// The kernels of programs that users write: how they read, and that NVRTC compiles them for every
// architecture, within the registers that there are.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "../codegen/loop_cases.h"
#include "../kernels/programs.h"
#include "backends/cuda/compiler.h"
#include "backends/cuda/kernel.h"
#include "nvrtc_here.h"

using namespace plait;
using cuda::has_nvrtc;

namespace {

// What ptxas says of kernels: the most registers of one, and bytes that were spilled.
struct Usage {
  int registers = 0, spilled = 0;
};
Usage usage_of(const std::string& log) {
  Usage usage;
  static const std::regex used("Used ([0-9]+) registers"), spilled("([0-9]+) bytes spill stores");
  for (std::sregex_iterator it(log.begin(), log.end(), used), end; it != end; ++it)
    usage.registers = std::max(usage.registers, std::stoi((*it)[1]));
  for (std::sregex_iterator it(log.begin(), log.end(), spilled), end; it != end; ++it)
    usage.spilled += std::stoi((*it)[1]);
  return usage;
}

}  // namespace

// Texts that differ are written anew with PLAIT_UPDATE=1, and fail all the same.
TEST_CASE("kernels read as people write them") {
  for (const kernels::Program& program : kernels::programs()) {
    CAPTURE(program.name);
    const std::string path = "tests/nvrtc/texts/" + program.name + ".cu",
                      text = kernels::source_of(program);
    std::stringstream expected;
    expected << std::ifstream(path).rdbuf();
    CHECK(text == expected.str());
    const char* const update = std::getenv("PLAIT_UPDATE");
    if (update && *update && text != expected.str()) std::ofstream(path) << text;
  }
}

TEST_CASE("programs compile for every architecture") {
  if (!has_nvrtc()) return;
  std::string table;
  for (const kernels::Program& program : kernels::programs()) {
    const std::string source = kernels::source_of(program);
    table += "\n  " + program.name + ":";
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      const cuda::Cubin cubin = cuda::compile(source, architecture);
      CHECK(cubin.bytes.size() > 64);
      const Usage usage = usage_of(cubin.log);
      table +=
          " " + std::string(architecture) + " " + std::to_string(usage.registers) + " registers";
      if (usage.spilled > 0) table += ", " + std::to_string(usage.spilled) + " bytes spilled";
      CHECK_MESSAGE(usage.spilled == 0, program.name << " for " << architecture);
    }
  }
  MESSAGE(table);
}

// Two loops of each primitive: tests/kernels runs them all.
TEST_CASE("loops of every primitive compile") {
  if (!has_nvrtc()) return;
  constexpr std::size_t of_text = 48, of_primitive = 2;
  constexpr Device some_device{Device::Kind(1), 0};
  std::map<std::string, std::size_t> seen;
  std::vector<std::shared_ptr<const cuda::Staged>> programs;
  std::size_t count = 0;
  const auto compile_all = [&] {
    std::vector<cuda::ProgramText> texts;
    for (const auto& program : programs)
      texts.push_back(
          cuda::text_of(*program, "program" + std::to_string(texts.size()), cuda::Sizes::given));
    std::vector<const cuda::ProgramText*> pointers;
    for (const cuda::ProgramText& text : texts) pointers.push_back(&text);
    CHECK(cuda::compile(cuda::source_of(pointers), "sm_90").bytes.size() > 64);
    count += programs.size();
    programs.clear();
  };
  for (const codegen::LoopCase& one : codegen::loops_of_primitives().loops) {
    if (seen[one.name.substr(0, one.name.find('['))]++ >= of_primitive) continue;
    cuda::Lowered lowered =
        cuda::lowered(one.group, compile_passes::dense_inputs(one.group), some_device);
    if (!lowered.staged) continue;
    programs.push_back(std::move(lowered.staged));
    if (programs.size() == of_text) compile_all();
  }
  if (!programs.empty()) compile_all();
  MESSAGE(count << " loops");
}
