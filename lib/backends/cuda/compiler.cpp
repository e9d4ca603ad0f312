// See compiler.h.
// SPDX-License-Identifier: Apache-2.0
#include "compiler.h"

#include <plait/base/error.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "api.h"
#include "base/before_exit.h"
#include "library.h"
#include "texts.h"

namespace plait::cuda {
namespace {

// Numbers are those of the CPU: each operation is rounded, to nearest, and denormals are kept.
constexpr const char* options[] = {
    "--std=c++20",         "-fmad=false",     "-ftz=false",      "-prec-div=true",
    "-prec-sqrt=true",     "-default-device", "--device-int128",
    "--minimal",            // without what CUDA's runtime declares, which takes long to read
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

// --- Texts together ------------------------------------------------------------------------------

// The lines of the preprocessor that a text begins with, and what follows them.
struct Parts {
  std::string definitions;
  std::vector<std::string_view> includes;
  std::string_view kernels;
};
Parts parts_of(std::string_view source) {
  Parts parts;
  while (source.starts_with('#')) {
    const std::size_t end = std::min(source.find('\n'), source.size() - 1) + 1;
    const std::string_view line = source.substr(0, end);
    if (line.starts_with("#include"))
      parts.includes.push_back(line);
    else
      parts.definitions += line;
    source.remove_prefix(end);
  }
  parts.kernels = source;
  return parts;
}

// With an ending behind the name of each kernel.
std::string with_names_ending(std::string_view kernels, const std::string& ending) {
  constexpr std::string_view before = "__global__ void ";
  std::string text;
  for (std::size_t at = kernels.find(before); at != kernels.npos; at = kernels.find(before)) {
    std::size_t parameters = kernels.find('(', at);
    if (kernels.substr(at + before.size()).starts_with("__launch_bounds__"))
      parameters = kernels.find('(', kernels.find(')', at));
    text.append(kernels.substr(0, parameters)).append(ending);
    kernels.remove_prefix(std::min(parameters, kernels.size()));
  }
  return text.append(kernels);
}

std::string ending_of(std::size_t number) { return "_of_" + std::to_string(number); }

std::string program_of(std::span<const std::string> sources) {
  if (sources.size() == 1) return sources[0];
  std::string includes, kernels;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Parts parts = parts_of(sources[i]);
    if (i == 0) includes = parts.definitions;
    for (const std::string_view line : parts.includes)
      if (includes.find(line) == includes.npos) includes += line;
    kernels += with_names_ending(parts.kernels, ending_of(i));
  }
  return includes + kernels;
}

// What the file of a text has in place of machine code, where that is in the file of a program:
// this, the program's key, and the ending of names there.
constexpr std::string_view part_of_program = "part of program ";

std::string text_of(const FileCache::Key& key, const std::string& ending) {
  char digits[33];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(key[0]),
                static_cast<unsigned long long>(key[1]));
  return std::string(part_of_program) + digits + ending;
}

// Machine code that somebody holds is not read again.
using Held = std::map<FileCache::Key, std::weak_ptr<const Cubin>>;
std::shared_ptr<const Cubin> held(const FileCache::Key& key, std::optional<Cubin> made) {
  static std::mutex& mutex = *new std::mutex;
  static Held& all = *new Held;
  const std::lock_guard lock(mutex);
  if (auto known = all.find(key); known != all.end() && !made)
    if (auto cubin = known->second.lock()) return cubin;
  if (!made) return nullptr;
  std::erase_if(all, [](const auto& each) { return each.second.expired(); });
  auto cubin = std::make_shared<const Cubin>(std::move(*made));
  all[key] = cubin;
  return cubin;
}

std::optional<Compiled> found_in_program(std::string_view record) {
  record.remove_prefix(part_of_program.size());
  if (record.size() < 32) return {};
  Compiled found;
  for (std::size_t i = 0; i < 2; ++i)
    found.key[i] = std::strtoull(std::string(record.substr(16 * i, 16)).c_str(), nullptr, 16);
  found.ending = record.substr(32);
  found.cubin = held(found.key, {});
  if (found.cubin) return found;
  std::optional<std::string> bytes = files().read(found.key);
  if (!bytes) return {};
  found.cubin = held(found.key, Cubin{std::move(*bytes), {}});
  return found;
}

FileCache::Key key_of(const NvrtcApi& api, const std::string& source, const std::string& arch) {
  return FileCache::key_of(identity_of(api, source, arch));
}

bool are_compiled_together() {
  const char* const asked = std::getenv("PLAIT_CUDA_TOGETHER");
  return !asked || std::string_view(asked) != "0";
}

}  // namespace

std::optional<Compiled> find_compiled(const std::string& source, std::string_view architecture) {
  const LibraryUse use;
  if (use.is_refused()) throw BackendError("cuda: the process ends", "compile earlier");
  const FileCache::Key key = key_of(require_nvrtc(), source, std::string(architecture));
  dump(key, ".cu", source);
  std::optional<std::string> kept = files().read(key);
  if (!kept) return {};
  if (kept->starts_with(part_of_program)) return found_in_program(*kept);
  return Compiled{held(key, Cubin{std::move(*kept), {}}), key, {}};
}

std::vector<Compiled> compile_together(std::span<const std::string> sources,
                                       std::string_view architecture) {
  const LibraryUse use;
  if (use.is_refused()) throw BackendError("cuda: the process ends", "compile earlier");
  const NvrtcApi& api = require_nvrtc();
  const std::string arch(architecture), program = program_of(sources);
  const FileCache::Key key = key_of(api, program, arch);
  dump(key, ".cu", program);
  load_builtins(api);
  Cubin made = Program(api, program).compile(arch);
  dump(key, ".cubin", made.bytes);
  files().write(key, made.bytes);
  const std::shared_ptr<const Cubin> cubin = held(key, std::move(made));
  std::vector<Compiled> all;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    all.push_back({cubin, key, sources.size() == 1 ? "" : ending_of(i)});
    if (sources.size() > 1)
      files().write(key_of(api, sources[i], arch), text_of(key, all.back().ending));
  }
  return all;
}

Cubin compile(const std::string& source, std::string_view architecture) {
  if (const std::optional<Compiled> found = find_compiled(source, architecture))
    return *found->cubin;
  return *compile_together({&source, 1}, architecture)[0].cubin;
}

// Reading what is included takes as long as compiling some characters of kernels. Programs are read
// one after the other, and compiled side by side: n of them take n times the former and an n-th of
// the latter.
std::vector<std::vector<std::size_t>> programs_of(std::span<const std::string> sources,
                                                  std::size_t most_threads) {
  constexpr double included = 1600;  // in characters of kernels
  std::map<std::string, std::vector<std::size_t>> by_definitions;
  std::vector<std::size_t> sizes;
  const bool are_together = are_compiled_together();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Parts parts = parts_of(sources[i]);
    sizes.push_back(parts.kernels.size());
    by_definitions[are_together ? parts.definitions : std::to_string(i)].push_back(i);
  }
  std::vector<std::vector<std::size_t>> programs;
  for (auto& [definitions, group] : by_definitions) {
    std::ranges::stable_sort(group,
                             [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
    double total = 0;
    for (const std::size_t number : group) total += double(sizes[number]);
    const std::size_t count =
        std::clamp<std::size_t>(std::size_t(std::lround(std::sqrt(total / included))), 1,
                                std::max<std::size_t>(1, std::min(most_threads, group.size())));
    // The largest first, each to the program that is smallest by then.
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> shared(count);
    for (const std::size_t number : group) {
      auto& smallest =
          *std::ranges::min_element(shared, {}, [](const auto& each) { return each.first; });
      smallest.first += sizes[number];
      smallest.second.push_back(number);
    }
    for (auto& [size, numbers] : shared) programs.push_back(std::move(numbers));
  }
  return programs;
}

}  // namespace plait::cuda
