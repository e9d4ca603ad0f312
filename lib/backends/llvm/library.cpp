// Finding and loading libLLVM. See library.h.
// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>

#include <vector>

namespace plait::llvm {
namespace {

constexpr int oldest = 15, newest = 21;  // before 15 the C API has no opaque pointers

Api& table() {
  static Api& api = *new Api;
  return api;
}

// Debian's and the project's own names, newest first.
std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (int version = newest; version >= oldest; --version) {
    const std::string number = std::to_string(version);
    names.push_back("libLLVM.so." + number + ".1");
    names.push_back("libLLVM-" + number + ".so.1");
    names.push_back("libLLVM-" + number + ".so");
  }
  return names;
}

}  // namespace

const Api& api() { return table(); }

std::string load(const std::string& path) {
  void* library = nullptr;
  // RTLD_LOCAL: other modules of this process may bring an LLVM of their own.
  for (const std::string& name : path.empty() ? known_names() : std::vector{path})
    if ((library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL))) break;
  if (!library)
    return path.empty() ? "libLLVM (version " + std::to_string(oldest) + " to " +
                              std::to_string(newest) + ") is not installed"
                        : dlerror();
  Api& api = table();
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
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(api.ContextCreate), &info) && info.dli_fname)
    api.path = info.dli_fname;
  if (!missing.empty()) return api.path + " has no " + missing + "; LLVM 15 or newer is needed";
  api.version = 15;
  if (auto* version = reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(
          dlsym(library, "LLVMGetVersion"))) {
    unsigned major = 0, minor = 0, patch = 0;
    version(&major, &minor, &patch);
    api.version = int(major);
  }
  return {};
}

}  // namespace plait::llvm
