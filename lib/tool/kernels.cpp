// Generated loops for a compiled object: the llvm backend compiles here the kernels that the object
// runs.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>
#include <plait/compile/compile.h>
#include <plait/trace/wait.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tool/deploy.h"

namespace plait::tool {
namespace {

std::uint64_t hexadecimal(std::string_view digits) {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

void append(std::string& bytes, std::uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

void prepare_kernels(const std::string& folder) {
  setenv("PLAIT_LLVM_EXPORT", folder.c_str(), 1);
  setenv("PLAIT_CACHE_DIR", "0", 1);  // cached kernels are not exported
}

std::string kernels_for(std::span<const DeployedEntry> entries, const std::string& folder) {
  if (!find_backend("llvm"))
    throw BackendError("compile: --with llvm needs the llvm backend, which cannot be used here",
                       "install libLLVM, or leave --with llvm out");
  const Waiting waiting;
  for (const DeployedEntry& deployed : entries) {
    if (!deployed.bounds.empty()) continue;
    const std::string steps = plait::compile(deployed.jaxpr)->explain();
    if (const std::size_t at = steps.find("generated loops failed"); at != std::string::npos)
      std::fprintf(stderr, "plait compile: %s runs without generated loops: %s\n",
                   deployed.entry.name().c_str(), steps.c_str() + at);
  }
  std::string bytes;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().stem().string();
    if (file.path().extension() != ".o" || name.size() != 32) continue;
    std::ifstream stream(file.path(), std::ios::binary);
    const std::string object{std::istreambuf_iterator<char>(stream), {}};
    append(bytes, hexadecimal(std::string_view(name).substr(0, 16)));
    append(bytes, hexadecimal(std::string_view(name).substr(16)));
    append(bytes, object.size());
    bytes += object;
    bytes.resize((bytes.size() + 15) / 16 * 16);
  }
  return bytes;
}

}  // namespace plait::tool
