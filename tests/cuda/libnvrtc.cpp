// A stand-in for NVRTC: it compiles the text of kernels with the C++ compiler, for the CPU, by the
// second definition of their language in on_cpu. What it makes is a shared library, whose bytes
// are what the stand-in of the driver (libcuda.cpp) loads.
//
// Headers that a program brings are those of the GPU and are not used: see kernel_options in
// meson.build for what is. Many texts may be compiled together: see cpu_compiler.h.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "cpu_compiler.h"

namespace {

enum Result {
  success = 0,
  invalid_input = 3,
  invalid_program = 4,
  invalid_option = 5,
  compilation = 6
};

struct Program {
  std::string source, name, log, library;
};

using cuda_standin::contents;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// No version of NVRTC's own: what is compiled may be kept by it. It changes with all that decides
// what a text becomes, but for the headers that plait brings.
Result nvrtcVersion(int* major, int* minor) {
  static const unsigned version = [] {
    const char* cxx = std::getenv("CXX");
    std::string all = cxx != nullptr ? cxx : "";
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&nvrtcVersion), &self) != 0) all += contents(self.dli_fname);
    for (const char* header : {"/interface.h", "/plait/kernel.h"})
      all += contents(std::string(PLAIT_ON_CPU) + header);
    return unsigned(std::hash<std::string>()(all));
  }();
  *major = 13;
  *minor = int(1000 + version % 1'000'000'000);
  return success;
}

const char* nvrtcGetErrorString(Result result) {
  switch (result) {
    case success:
      return "NVRTC_SUCCESS";
    case invalid_input:
      return "NVRTC_ERROR_INVALID_INPUT";
    case invalid_program:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case invalid_option:
      return "NVRTC_ERROR_INVALID_OPTION";
    case compilation:
      return "NVRTC_ERROR_COMPILATION";
  }
  return "NVRTC_ERROR unknown";
}

// The text with the error that STANDIN_MUTANT plants: "NUMBER:TEXT:OTHER" has another text in place
// of one, where it stands for the NUMBER-th time, from 0 on.
static std::string mutant_of(std::string source) {
  const char* const wanted = std::getenv("STANDIN_MUTANT");
  if (wanted == nullptr || *wanted == '\0') return source;
  const std::string mutant = wanted;
  const std::size_t first = mutant.find(':'), second = mutant.find(':', first + 1);
  const std::string text = mutant.substr(first + 1, second - first - 1);
  std::size_t at = source.find(text);
  for (int left = std::stoi(mutant); left > 0 && at != source.npos; --left)
    at = source.find(text, at + 1);
  if (at != source.npos) source.replace(at, text.size(), mutant.substr(second + 1));
  return source;
}

Result nvrtcCreateProgram(Program** program, const char* source, const char* name, int num_headers,
                          const char* const* headers, const char* const* names) {
  if (program == nullptr || source == nullptr || num_headers < 0 ||
      (num_headers > 0 && (headers == nullptr || names == nullptr)))
    return invalid_input;
  *program = new Program{mutant_of(source), name != nullptr ? name : "default_program", {}, {}};
  return success;
}

Result nvrtcDestroyProgram(Program** program) {
  if (program == nullptr || *program == nullptr) return invalid_program;
  delete *program;
  *program = nullptr;
  return success;
}

Result nvrtcCompileProgram(Program* program, int num_options, const char* const* options) {
  if (program == nullptr) return invalid_program;
  std::string unknown;
  const auto translated = cuda_standin::translated({options, options + num_options}, unknown);
  if (!translated) {
    program->log = "the stand-in of NVRTC has no option " + unknown + "\n";
    return invalid_option;
  }
  const cuda_standin::Text text{program->name, program->source, *translated};
  switch (cuda_standin::kept(text, program->library)) {
    case cuda_standin::Kept::yes:
      return success;
    case cuda_standin::Kept::collected:
      program->log = "the text is collected, and not compiled\n";
      return compilation;
    case cuda_standin::Kept::no:
      break;
  }
  cuda_standin::Compiled compiled = cuda_standin::compiled(text);
  program->log = std::move(compiled.log);
  if (!compiled.is_content) return compilation;
  program->library = std::move(compiled.library);
  return success;
}

Result nvrtcGetCUBINSize(Program* program, std::size_t* size) {
  if (program == nullptr) return invalid_program;
  *size = program->library.size();
  return success;
}

Result nvrtcGetCUBIN(Program* program, char* cubin) {
  if (program == nullptr) return invalid_program;
  std::memcpy(cubin, program->library.data(), program->library.size());
  return success;
}

// With the zero at its end.
Result nvrtcGetProgramLogSize(Program* program, std::size_t* size) {
  if (program == nullptr) return invalid_program;
  *size = program->log.size() + 1;
  return success;
}

Result nvrtcGetProgramLog(Program* program, char* log) {
  if (program == nullptr) return invalid_program;
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return success;
}

}  // extern "C"
#pragma GCC visibility pop
