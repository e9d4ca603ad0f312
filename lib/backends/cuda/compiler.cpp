// See compiler.h.
// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <plait/base/error.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "api.h"
#include "base/before_exit.h"
#include "compile/file_cache.h"
#include "library.h"
#include "texts.h"

namespace plait::cuda {
namespace {

// Numbers are those of the CPU: each operation is rounded, to nearest, and denormals are kept.
constexpr const char* options[] = {
    "--std=c++20",         "-fmad=false",     "-ftz=false",      "-prec-div=true",
    "-prec-sqrt=true",     "-default-device", "--device-int128",
    "--ptxas-options=-v",   // registers and spills in the log
    "-diag-suppress=1097",  // attributes of the CPU's compilers in headers that both share
};

FileCache& files() {
  static FileCache& files = *new FileCache(".cubin", "cuda");
  return files;
}

const NvrtcApi& require_nvrtc() {
  if (const NvrtcApi* api = nvrtc_api()) return *api;
  throw BackendError("kernels cannot be compiled for CUDA: " + why_no_nvrtc(),
                     "pip install nvidia-cuda-nvrtc, or name its folder in PLAIT_CUDA_LIBRARIES");
}

// NVRTC opens its second library by name alone, and finds it among what is loaded.
void load_builtins(const NvrtcApi& api) {
  static std::once_flag once;
  std::call_once(once, [&] { load_all(api.folder, "libnvrtc-builtins.so.*"); });
}

// Stands for all that kernels may include.
const FileCache::Key& headers_key() {
  static const FileCache::Key key = [] {
    std::string all;
    for (const Text& text : device_texts())
      all.append(text.name).append(1, '\0').append(text.text).append(1, '\0');
    return FileCache::key_of(all);
  }();
  return key;
}

std::string identity_of(const NvrtcApi& api, const std::string& source,
                        const std::string& architecture) {
  std::string text =
      "nvrtc " + std::to_string(api.major) + "." + std::to_string(api.minor) + " " + architecture;
  for (std::uint64_t word : headers_key()) text += " " + std::to_string(word);
  for (const char* option : options) text += std::string(" ") + option;
  return text + "\n" + source;
}

// Where the variable PLAIT_CUDA_DUMP names a folder, texts and their machine code go there, by key.
void dump(const FileCache::Key& key, const std::string& ending, const std::string& bytes) {
  static const char* const folder = std::getenv("PLAIT_CUDA_DUMP");
  if (folder == nullptr || *folder == '\0') return;
  char name[40];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(key[0]));
  std::ofstream(std::string(folder) + "/" + name + ending, std::ios::binary) << bytes;
}

std::string numbered(const std::string& source) {
  std::string text;
  std::size_t begin = 0;
  for (int line = 1; begin < source.size(); ++line) {
    const std::size_t end = std::min(source.find('\n', begin), source.size());
    char number[16];
    std::snprintf(number, sizeof number, "%4d  ", line);
    text += number + source.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

class Program {
 public:
  Program(const NvrtcApi& api, const std::string& source) : api_(api), source_(source) {
    std::vector<const char*> texts, names;
    for (const Text& text : device_texts()) {
      texts.push_back(text.text.data());
      names.push_back(text.name.data());
    }
    require(api_.nvrtcCreateProgram(&program_, source.c_str(), "kernel.cu", int(texts.size()),
                                    texts.data(), names.data()),
            "make a program");
  }
  ~Program() { api_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;

  Cubin compile(const std::string& architecture) {
    std::vector<const char*> all(std::begin(options), std::end(options));
    const std::string arch = "-arch=" + architecture;
    all.push_back(arch.c_str());
    const nvrtcResult result = api_.nvrtcCompileProgram(program_, int(all.size()), all.data());
    std::string log = text_of(api_.nvrtcGetProgramLogSize, api_.nvrtcGetProgramLog);
    while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
    if (result == NVRTC_ERROR_COMPILATION)
      throw InternalError("NVRTC refuses a kernel:\n" + log + "\n" + numbered(source_));
    require(result, "compile for " + architecture + (log.empty() ? "" : " (" + log + ")"));
    return {text_of(api_.nvrtcGetCUBINSize, api_.nvrtcGetCUBIN), std::move(log)};
  }

 private:
  template <class Size, class Get>
  std::string text_of(Size* size_of, Get* get) {
    std::size_t size = 0;
    require(size_of(program_, &size), "tell what it has made");
    std::string text(size, '\0');
    if (size > 0) require(get(program_, text.data()), "give what it has made");
    return text;
  }
  void require(nvrtcResult result, const std::string& action) {
    if (result != NVRTC_SUCCESS)
      throw BackendError("NVRTC " + std::to_string(api_.major) + "." + std::to_string(api_.minor) +
                             " cannot " + action + ": " + api_.nvrtcGetErrorString(result),
                         "another version of NVRTC may know this device: see PLAIT_CUDA_LIBRARIES");
  }

  const NvrtcApi& api_;
  const std::string& source_;
  nvrtcProgram program_ = nullptr;
};

}  // namespace

Cubin compile(const std::string& source, std::string_view architecture) {
  const LibraryUse use;
  if (use.is_refused()) throw BackendError("cuda: the process ends", "compile earlier");
  const NvrtcApi& api = require_nvrtc();
  const std::string arch(architecture);
  const FileCache::Key key = FileCache::key_of(identity_of(api, source, arch));
  dump(key, ".cu", source);
  if (std::optional<std::string> kept = files().read(key)) return {std::move(*kept), {}};
  load_builtins(api);
  Cubin cubin = Program(api, source).compile(arch);
  dump(key, ".cubin", cubin.bytes);
  files().write(key, cubin.bytes);
  return cubin;
}

}  // namespace plait::cuda
