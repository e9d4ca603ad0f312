// See embedded.h.
// SPDX-License-Identifier: Apache-2.0
#include "embedded.h"

#include <plait/base/error.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include "backend.h"

namespace plait::llvm {
namespace {

// As long as the process: executables outlive main.
std::map<Key, std::string_view>& kernels() {
  static auto& all = *new std::map<Key, std::string_view>;
  return all;
}

// Where kernels are exported to; empty for nowhere.
const std::string& export_folder() {
  static const auto& folder = *new const std::string([] {
    const char* asked = std::getenv("PLAIT_LLVM_EXPORT");
    return std::string(asked ? asked : "");
  }());
  return folder;
}

}  // namespace

bool is_embedded() { return !kernels().empty(); }
bool is_for_elsewhere() { return is_embedded() || !export_folder().empty(); }

std::shared_ptr<const Code> embedded_code(const Key& key) {
  const auto found = kernels().find(key);
  if (found == kernels().end()) return nullptr;
  return std::make_shared<const Code>(Object{std::string(found->second)});
}

void export_kernel(const Key& key, const Object& object) {
  const std::string& folder = export_folder();
  if (folder.empty()) return;
  char name[48];
  std::snprintf(name, sizeof name, "/%016llx%016llx.o", static_cast<unsigned long long>(key[0]),
                static_cast<unsigned long long>(key[1]));
  std::ofstream file(folder + name, std::ios::binary);
  file.write(object.bytes.data(), std::streamsize(object.bytes.size()));
  file.close();
  if (!file)
    throw FileError("llvm: cannot write a kernel to " + folder,
                    "name a folder that can be written in PLAIT_LLVM_EXPORT");
}

}  // namespace plait::llvm

void plait_embed_kernels(const char* bytes, std::size_t size) {
  using namespace plait::llvm;
  static const bool registered = [&] {
    for (std::size_t at = 0; at + 24 <= size;) {
      Key key;
      std::uint64_t length = 0;
      std::memcpy(key.data(), bytes + at, 16);
      std::memcpy(&length, bytes + at + 16, 8);
      kernels()[key] = std::string_view(bytes + at + 24, length);
      at += (24 + length + 15) / 16 * 16;
    }
    return plait::register_backend(make_backend(), plait::Preference::loops);
  }();
  (void)registered;
}
