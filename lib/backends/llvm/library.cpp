// Finding and loading libLLVM. See library.h.
// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/before_exit.h"

namespace plait::llvm {
namespace {

// Before 15 the C API has no opaque pointers, and the selects that 15 makes for AVX2 of masks that
// come from integers half as wide mix the halves of what they choose from.
constexpr int oldest = 16, newest = 21;

Api& table() {
  static Api& api = *new Api;
  return api;
}

// Where the loader would look, and Debian's own folders of each version.
std::vector<std::string> folders() {
  std::vector<std::string> found;
  const char* asked = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = asked ? asked : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) found.emplace_back(folder);
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  for (const char* folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"})
    found.emplace_back(folder);
  return found;
}

std::string find_newest() {
  const std::vector<std::string> all = folders();
  for (int version = newest; version >= oldest; --version) {
    const std::string number = std::to_string(version);
    for (const std::string& name :
         {"libLLVM.so." + number + ".1", "libLLVM-" + number + ".so.1", "libLLVM-" + number + ".so",
          "llvm-" + number + "/lib/libLLVM.so.1"})
      for (const std::string& folder : all)
        if (const std::string path = folder + "/" + name; access(path.c_str(), R_OK) == 0)
          return path;
  }
  return {};
}

// PLAIT_LLVM is a path, a name that the loader knows, or "1" for the newest.
std::string find_path() {
  const char* asked = std::getenv("PLAIT_LLVM");
  return asked && *asked && std::string_view(asked) != "1" ? asked : find_newest();
}

const std::string& path() {
  static const std::string& path = *new const std::string(find_path());
  return path;
}

}  // namespace

const Api& api() { return table(); }

std::string find_library() {
  if (path().empty())
    return "libLLVM (version " + std::to_string(oldest) + " to " + std::to_string(newest) +
           ") is not installed";
  if (path().find('/') != std::string::npos && access(path().c_str(), R_OK) != 0)
    return path() + " cannot be read";
  return {};
}

std::string library_identity() {
  struct stat file;
  if (stat(path().c_str(), &file) != 0) return path();
  return path() + " " + std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec);
}

std::string load() {
  if (std::string failure = find_library(); !failure.empty()) return failure;
  // RTLD_LOCAL: other modules of this process may bring an LLVM of their own.
  void* const library = open_library(path().c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    return reason ? reason : "the process ends";
  }
  Api& api = table();
  api.path = path();
  std::string missing;
  auto find = [&](const char* name) {
    void* const symbol = dlsym(library, name);
    if (!symbol && missing.empty()) missing = name;
    return symbol;
  };
#define PLAIT_LLVM_FIND(name, result, ...) \
  api.name = reinterpret_cast<decltype(api.name)>(find("LLVM" #name));
  PLAIT_LLVM_FUNCTIONS(PLAIT_LLVM_FIND)
#undef PLAIT_LLVM_FIND
  if (!missing.empty())
    return api.path + " has no " + missing + "; versions " + std::to_string(oldest) + " to " +
           std::to_string(newest) + " are known to work";
  api.version = oldest;
  if (auto* version = reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(
          dlsym(library, "LLVMGetVersion"))) {
    unsigned major = 0, minor = 0, patch = 0;
    version(&major, &minor, &patch);
    api.version = int(major);
  }
  return {};
}

}  // namespace plait::llvm
