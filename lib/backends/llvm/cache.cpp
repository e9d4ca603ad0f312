// See cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

namespace plait::llvm {
namespace {

FileCache& files() {
  static FileCache& files = *new FileCache(".o", "llvm");
  return files;
}

}  // namespace

std::optional<Object> read_object(const Key& key) {
  if (std::optional<std::string> bytes = files().read(key)) return Object{std::move(*bytes)};
  return {};
}

void write_object(const Key& key, const Object& object) {
  if (object.is_portable) files().write(key, object.bytes);
}

}  // namespace plait::llvm
