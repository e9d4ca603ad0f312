// Texts of kernels compile, by the NVRTC that is installed; no device is needed. Where there is
// none, nothing is tested but that this is said.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/error.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/compiler.h"
#include "backends/cuda/copies.h"
#include "backends/cuda/texts.h"
#include "nvrtc_here.h"

using namespace plait;
using cuda::Cubin;
using cuda::has_nvrtc;

namespace {

constexpr const char* architectures[] = {"sm_80", "sm_90", "sm_100"};

// Kept files of this process alone, so that each run compiles.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / "plait_nvrtc_test") {
    std::filesystem::remove_all(path);
    setenv("PLAIT_CACHE_DIR", path.c_str(), 1);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  const std::filesystem::path path;
};
const Folder folder;

bool is_machine_code(const std::string& bytes) {
  constexpr unsigned char for_cuda = 190;  // e_machine: EM_CUDA
  return bytes.size() > 64 && bytes.starts_with("\177ELF") && bytes[18] == char(for_cuda);
}

std::string problem_of(const std::string& source) {
  try {
    cuda::compile(source, "sm_90");
  } catch (const InternalError& error) {
    return error.problem();
  }
  return "";
}

// A kernel for each function, for float and double.
std::string kernels_of(std::initializer_list<const char*> functions) {
  std::string text =
      "#include \"plait/kernel.h\"\n#include <plait/base/math.h>\n"
      "#include \"base/math.cpp\"\n";
  for (const char* function : functions)
    for (const char* type : {"float", "double"})
      text += "extern \"C\" __global__ void " + std::string(function) + "_" + type + "(In<" + type +
              "> x, Out<" + type + "> y, long n) {\n" +
              "  for (long i = blockIdx.x * 256L + threadIdx.x; i < n; i += gridDim.x * 256L)\n" +
              "    y[i] = plait::math::" + function + "(x[i]);\n}\n";
  return text;
}

}  // namespace

TEST_CASE("elementary functions compile for each architecture") {
  if (!has_nvrtc()) return;
  const std::string text = kernels_of({"exp", "log", "sin", "tanh", "erf_inv", "atan"});
  for (const char* architecture : architectures) {
    CAPTURE(architecture);
    const Cubin cubin = cuda::compile(text, architecture);
    CHECK(is_machine_code(cubin.bytes));
    CHECK(cubin.log.find("warning") == cubin.log.npos);
  }
}

TEST_CASE("complex functions compile") {
  if (!has_nvrtc()) return;
  std::string text =
      "#include \"plait/kernel.h\"\n#include <plait/base/math.h>\n#include \"base/math.cpp\"\n"
      "extern \"C\" __global__ void all(In<std::complex<float>> x, Out<std::complex<float>> y) {\n";
  for (const char* function : {"exp", "log", "sin", "cos", "tanh", "sqrt"})
    text += "  y[0] = y[0] / plait::math::" + std::string(function) + "(x[0]);\n";
  text += "  y[1] = plait::math::pow(x[0], x[1]);\n}\n";
  CHECK(is_machine_code(cuda::compile(text, "sm_90").bytes));
}

TEST_CASE("copies compile") {
  if (!has_nvrtc()) return;
  for (const std::size_t bytes : {1, 2, 4, 8, 16})
    for (const bool is_wide : {false, true}) {
      const Cubin cubin = cuda::compile(cuda::text_of_copy(bytes, is_wide), "sm_90");
      CHECK(is_machine_code(cubin.bytes));
      CHECK(cubin.log.find("warning") == cubin.log.npos);
    }
}

TEST_CASE("every header of kernels compiles alone") {
  if (!has_nvrtc()) return;
  for (const cuda::Text& text : cuda::device_texts()) {
    const std::string name(text.name);
    CAPTURE(name);
    CHECK(problem_of("#include <" + name + ">\nextern \"C\" __global__ void none() {}\n") == "");
  }
}

TEST_CASE("a wrong kernel is reported with its numbered text") {
  if (!has_nvrtc()) return;
  const std::string problem =
      problem_of("extern \"C\" __global__ void wrong(int* x) {\n  x[0] = nothing;\n}\n");
  CHECK(problem.find("identifier \"nothing\" is undefined") != std::string::npos);
  CHECK(problem.find("   2    x[0] = nothing;") != std::string::npos);
}

TEST_CASE("an architecture that does not exist is no fault of the kernel") {
  if (!has_nvrtc()) return;
  CHECK_THROWS_AS(cuda::compile("extern \"C\" __global__ void none() {}\n", "sm_1"), BackendError);
}

TEST_CASE("what was compiled is kept on disk") {
  if (!has_nvrtc()) return;
  // A warning is in the log of the compiler, which does not run again.
  const std::string text = "extern \"C\" __global__ void kept(int* x) { int unused; x[0] = 7; }\n";
  const Cubin first = cuda::compile(text, "sm_90"), again = cuda::compile(text, "sm_90");
  CHECK(first.log.find("unused") != std::string::npos);
  CHECK(again.log == "");
  CHECK(first.bytes == again.bytes);
  CHECK(cuda::compile(text, "sm_80").bytes != first.bytes);
}

TEST_CASE("texts that are compiled together are found one by one") {
  if (!has_nvrtc()) return;
  const auto text = [](const std::string& include, const std::string& value) {
    return "#define PLAIT_NO_COMPLEX\n#include <plait/kernel.h>\n" + include +
           "\n// a kernel\nextern \"C\" __global__ void stage_0(Out<float> m0, float x) {\n  m0[0] "
           "= " +
           value +
           ";\n}\n\nextern \"C\" __global__ void stage_1(Out<float> m0) {\n  m0[1] = 0;\n}\n";
  };
  const std::vector<std::string> texts{text("", "x + 1.5f"),
                                       text("#include <plait/functions.h>\n", "lax::tanh(x)"),
                                       text("#include <plait/lanes.h>\n", "from_lane_after(x, 4)")};
  for (const std::string& each : texts) CHECK(!cuda::find_compiled(each, "sm_90"));
  const std::vector<cuda::Compiled> compiled = cuda::compile_together(texts, "sm_90");
  REQUIRE(compiled.size() == 3);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(i);
    const cuda::Compiled& one = compiled[i];
    CHECK(is_machine_code(one.cubin->bytes));
    CHECK(one.key == compiled[0].key);
    for (const char* name : {"stage_0", "stage_1"})
      CHECK(one.cubin->bytes.find(name + one.ending) != std::string::npos);
    for (std::size_t j = 0; j < i; ++j) CHECK(one.ending != compiled[j].ending);
    const std::optional<cuda::Compiled> found = cuda::find_compiled(texts[i], "sm_90");
    REQUIRE(found);
    CHECK(found->key == one.key);
    CHECK(found->ending == one.ending);
    CHECK(found->cubin->bytes == one.cubin->bytes);
  }
  CHECK(!cuda::find_compiled(texts[0], "sm_80"));
}

TEST_CASE("a text is compiled again when the file of its program is gone") {
  if (!has_nvrtc()) return;
  const auto text = [](const char* value) {
    return "extern \"C\" __global__ void stage_0(int* x) { x[0] = " + std::string(value) + "; }\n";
  };
  const std::vector<std::string> texts{text("41"), text("43")};
  (void)cuda::compile_together(texts, "sm_90");
  CHECK(cuda::find_compiled(texts[1], "sm_90"));
  for (const auto& file : std::filesystem::directory_iterator(folder.path))
    if (std::filesystem::file_size(file) > 1000) std::filesystem::remove(file);
  CHECK(!cuda::find_compiled(texts[1], "sm_90"));
  CHECK(is_machine_code(cuda::compile(texts[1], "sm_90").bytes));
}

TEST_CASE("many texts are few programs, each of the same definitions") {
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i)
    texts.push_back((i % 4 ? "#define PLAIT_NO_COMPLEX\n" : "") +
                    std::string("#include <plait/kernel.h>\n") +
                    std::string(std::size_t(i) * 40, '\n'));
  const auto programs = cuda::programs_of(texts, 16);
  CHECK(programs.size() < 12);
  std::vector<int> times(texts.size());
  for (const std::vector<std::size_t>& program : programs) {
    REQUIRE(!program.empty());
    for (const std::size_t number : program) {
      ++times[number];
      CHECK((number % 4 == 0) == (program[0] % 4 == 0));
    }
  }
  CHECK(std::ranges::all_of(times, [](int count) { return count == 1; }));
  CHECK(cuda::programs_of(texts, 1).size() == 2);
  CHECK(cuda::programs_of({}, 16).empty());
}

TEST_CASE("a missing driver has a reason, and a present one has devices") {
  if (const cuda::DriverApi* api = cuda::driver_api()) {
    CHECK(api->num_devices > 0);
    CHECK(cuda::why_no_driver() == "");
  } else {
    CHECK(cuda::why_no_driver() != "");
    MESSAGE(cuda::why_no_driver());
  }
}
