// Finding CUDA's libraries at run time: nothing of CUDA is linked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace plait::cuda {

struct Library {
  void* handle = nullptr;  // null: not found
  std::string failure;     // why: "libnvrtc.so.13 is not installed"
  // An address, or null.
  void* find(const char* symbol) const;
};

// Where it may be. A driver belongs to the system; the rest also comes in wheels of Python.
enum class Origin { system, wheels };

// Looks in the folders of PLAIT_CUDA_LIBRARIES (separated by ':'), among what the process has
// loaded, in wheels (nvidia/*/lib in the folders of PLAIT_WHEELS, and beside plait's own package),
// where the loader looks, and in /usr/local/cuda*/lib64.
Library load_library(const std::string& name, Origin origin);
// Loads what a pattern of the shell names in a folder, for libraries that open it by name alone.
void load_all(const std::string& folder, const std::string& pattern);
// The folder of the library that holds this address; empty where that is not known.
std::string folder_of(const void* address);

}  // namespace plait::cuda
