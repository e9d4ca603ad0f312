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
#include <filesystem>
#include <map>
#include <set>

#include "../codegen/loop_cases.h"
#include "../codegen/text_library.h"
#include "../cuda/here.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kernel.h"
#include "base/staging.h"
#include "codegen/calls.h"

using namespace plait;
using namespace plait::codegen;

namespace {

// The devices are those of the parts that this program is linked with, not of the module.
const bool is_apart = setenv("PLAIT_CUDA", "0", 1) == 0 && cuda::register_cuda_driver();
Device device() { return Device::named("cuda:0"); }

Outcome run(const Kernel& kernel, const Arrays& operands, std::span<const Aval> results) {
  const Stream stream = Stream::current(device());
  std::vector<Buffer> in, out;
  std::vector<View> inputs, outputs;
  for (const Array& array : operands) in.push_back(array.buffer().dense().on(device()));
  for (const Aval& aval : results)
    out.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes(), stream));
  for (const Buffer& buffer : in) inputs.push_back(buffer.placed());
  for (const Buffer& buffer : out) outputs.push_back(buffer.placed());
  const Storage scratch = Storage::allocate(std::size_t(kernel.scratch_bytes()), stream);
  const Staging word(device(), sizeof(Failure));
  std::memset(word.data(), 0, sizeof(Failure));
  auto* const failure = static_cast<Failure*>(word.data());
  Outcome outcome;
  try {
    kernel.enqueue(inputs, outputs, scratch.data(), {stream, failure, 0});
    stream.synchronize();
    if (failure->step != 0) std::rethrow_exception(kernel.error_of(*failure));
    for (const Buffer& buffer : out) outcome.results.push_back(Array(buffer.on_host()));
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

bool has_complex(const Outcome& outcome) {
  return std::any_of(outcome.results.begin(), outcome.results.end(),
                     [](const Array& array) { return is_complex(array.dtype()); });
}
// Functions of complex numbers are the C library's on the CPU, and plait's own on a device. What
// calls kernels there has sums in their order.
std::optional<std::string> differs(const Outcome& actual, const Outcome& expected,
                                   const LoopProgram& program) {
  const bool is_other = has_complex(expected) || Calls(program).size() > 0;
  if (actual.error.empty() && expected.error.empty() && is_other)
    return laws::difference(actual.results, expected.results);
  return difference(actual, expected);
}

std::string source_of_one(const cuda::Staged& staged, cuda::Sizes sizes) {
  const cuda::ProgramText text = cuda::text_of(staged, "stage", sizes);
  const cuda::ProgramText* const texts[] = {&text};
  return cuda::source_of(texts);
}

// The loops as kernels. Returns how many there were.
std::size_t compare(const LoopCases& cases, cuda::Sizes sizes) {
  constexpr std::size_t of_text = 48;
  std::vector<const LoopCase*> lowered;
  std::vector<std::shared_ptr<const cuda::Staged>> programs;
  std::map<std::string, int> refused;
  std::size_t count = 0;
  const auto run_all = [&] {
    const auto kernels = cuda::make_program_kernels(programs, device(), sizes);
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const LoopCase& one = *lowered[i];
      const Outcome expected = interpreted(one.program(), one.operands, one.results());
      const auto what =
          differs(run(*kernels[i], one.operands, one.results()), expected, one.program());
      if (what)
        FAIL_CHECK(one.name << ": " << *what << "\n"
                            << source_of_one(*programs[i], sizes) << print(one.group));
    }
    count += kernels.size();
    lowered.clear();
    programs.clear();
  };
  for (const LoopCase& one : cases.loops) {
    cuda::Lowered program =
        cuda::lowered(one.group, compile_passes::dense_inputs(one.group), device());
    if (!program.staged) {
      ++refused[program.reason];
      continue;
    }
    lowered.push_back(&one);
    programs.push_back(std::move(program.staged));
    if (programs.size() == of_text) run_all();
  }
  if (!programs.empty()) run_all();
  std::string text;
  for (const auto& [reason, times] : refused)
    text += "\n  " + std::to_string(times) + " without kernels: " + reason;
  MESSAGE(count << " loops" << text);
  return count;
}

}  // namespace

TEST_CASE("loops as people write them, as kernels") {
  REQUIRE(is_apart);
  for (const cuda::Sizes sizes : {cuda::Sizes::written, cuda::Sizes::given})
    CHECK(compare(written_loops(), sizes) >= 100);
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

// Whether this program, run anew with an error in its kernels, says that the few loops are wrong.
bool is_seen(const std::string& mutant) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "STANDIN_MUTANT='" + mutant + "' PLAIT_CACHE_DIR=0 timeout 60 '" +
                              program + "' -tc='a few loops of lanes and blocks' > /dev/null 2>&1";
  return std::system(command.c_str()) != 0;
}

}  // namespace

TEST_CASE("a few loops of lanes and blocks") {
  CHECK(compare(few_loops(), cuda::Sizes::written) >= 4);
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
