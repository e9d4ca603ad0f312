// Kernels that were compiled on another machine: what plait compile takes out of this backend, and
// puts into an object that generates no code.
//
// While PLAIT_LLVM_EXPORT names a folder, every kernel is written there, as NAME.o, where NAME is
// the key of its description in hexadecimal. An object that holds such files runs them by their
// keys, and has none for other descriptions: programs with those stay on their first tier.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cache.h"

namespace plait::llvm {

// Whether kernels are embedded in this library.
bool is_embedded();
// Whether kernels are for any machine and memory: those that are exported or embedded.
bool is_for_elsewhere();
std::shared_ptr<const Code> embedded_code(const Key& key);  // nullptr where there is none

// Writes a kernel into that folder, if there is one.
void export_kernel(const Key& key, const Object& object);

}  // namespace plait::llvm

// Makes kernels known, and the backend that runs them; called once, before the first program is
// compiled. bytes holds, for each: key (16 bytes), size (8 bytes), object, padded to 16 bytes.
extern "C" void plait_embed_kernels(const char* bytes, std::size_t size);
