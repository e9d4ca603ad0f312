// A stand-in for NVRTC: it compiles the text of kernels with the C++ compiler, for the CPU, by the
// second definition of their language in on_cpu. What it makes is a shared library, whose bytes
// are what the stand-in of the driver (libcuda.cpp) loads.
//
// The compiler is the variable CXX, or c++. Headers that a program brings are those of the GPU and
// are not used: see kernel_options in meson.build for what is, by PLAIT_OPTIONS.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

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

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// A folder for one compilation.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "plait-kernel-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Of comments nothing is left but their lines.
std::string without_comments(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i + 2), text.size() - 1) + 1;
      continue;
    }
    if (i < text.size()) result += text[i];
  }
  return result;
}

// A list of the kernels, behind them.
std::string with_list(const std::string& source) {
  static const std::regex kernel(
      R"(__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(?:void\s+)?(\w+)\s*\()");
  const std::string text = without_comments(source);
  std::string list;
  for (std::sregex_iterator match(text.begin(), text.end(), kernel), end; match != end; ++match) {
    const std::string name = (*match)[2], bound = (*match)[1].matched ? (*match)[1].str() : "0";
    list += "    on_cpu::entry<&" + name + ">(\"" + name + "\", " + bound + ", &" + name + "),\n";
  }
  return "\nextern \"C\" {\n[[gnu::visibility(\"default\")]] on_cpu::Entry plait_kernel_list[] = "
         "{\n" +
         list + "    {}};\n}\n";
}

// The options of g++ that are equal in meaning; false: there are none. The first one says whether
// products and sums are contracted.
bool translate(const std::string& option, std::vector<std::string>& options) {
  const auto begins = [&](const char* prefix) { return option.rfind(prefix, 0) == 0; };
  if (begins("--fmad=") || begins("-fmad=")) {
    options[0] = option.ends_with("false") ? "-ffp-contract=off" : "-ffp-contract=fast";
    return true;
  }
  if (begins("-D") || begins("-U")) return options.push_back(option), true;
  if (begins("--define-macro=")) return options.push_back("-D" + option.substr(15)), true;
  for (const char* known : {"--gpu-architecture=sm_90",
                            "-arch=sm_90",
                            "--std=c++20",
                            "-std=c++20",
                            "-I",
                            "--include-path=",
                            "--device-as-default-execution-space",
                            "-default-device",
                            "--generate-line-info",
                            "-lineinfo",
                            "--ftz=false",
                            "-ftz=false",
                            "--prec-div=true",
                            "-prec-div=true",
                            "--prec-sqrt=true",
                            "-prec-sqrt=true",
                            "--restrict",
                            "-restrict",
                            "--disable-warnings",
                            "-w",
                            "--no-source-include",
                            "--minimal",
                            "-minimal",
                            "--diag-suppress=",
                            "-diag-suppress=",
                            "--split-compile=",
                            "--dopt=",
                            "--ptxas-options=",
                            "--Ofast-compile=",
                            "--device-int128",
                            "-device-int128",
                            "--extra-device-vectorization"})
    if (begins(known)) return true;
  return false;
}

// Whether the compiler was content; what it says is in the file log.
bool compile(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int status = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) {
    std::ofstream(log) << "cannot run " << command[0] << ": " << std::strerror(status) << "\n";
    return false;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

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
  const char* cxx = std::getenv("CXX");
  std::vector<std::string> command = words(cxx != nullptr && *cxx != '\0' ? cxx : "c++");
  if (command.size() > 1 && command[0].ends_with("ccache")) command.erase(command.begin());
  for (const std::string& option : words(PLAIT_OPTIONS)) command.push_back(option);
  // Which takes longer to read than the language alone.
  if (program->source.find("plait/functions.h") != std::string::npos)
    for (const char* option : {"-include", PLAIT_PRECOMPILED}) command.push_back(option);
  std::vector<std::string> translated{"-ffp-contract=fast"};  // NVRTC's default
  for (int i = 0; i < num_options; ++i)
    if (!translate(options[i], translated)) {
      program->log = std::string("the stand-in of NVRTC has no option ") + options[i] + "\n";
      return invalid_option;
    }
  const Folder folder;
  const std::string source = folder / "kernel.cpp", library = folder / "kernel.so",
                    log = folder / "log";
  std::ofstream(source) << "#line 1 \"" << program->name << "\"\n"
                        << program->source << with_list(program->source);
  command.insert(command.end(), translated.begin(), translated.end());
  for (const char* option : {"-shared", "-o"}) command.push_back(option);
  command.push_back(library);
  command.push_back(source);
  // Linking what kernels do not need takes as long as compiling a small one.
  for (const char* option : {"-nostdlib", "-lm", "-lc", "-lgcc"}) command.push_back(option);
  const bool is_content = compile(command, log);
  program->log = contents(log);
  if (!is_content) return compilation;
  program->library = contents(library);
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
