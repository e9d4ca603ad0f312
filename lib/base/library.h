// Finding libraries at run time that plait is not linked with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace plait {

struct Library {
  void* handle = nullptr;  // null: not found
  std::string failure;     // why: "libnvrtc.so.13 is not installed"
  // An address, or null.
  void* find(const char* symbol) const;
};

// Folders, by patterns of the shell.
struct Places {
  const char* variable;                     // of the environment: folders, separated by ':'
  std::vector<std::string> first = {};      // before all others
  std::vector<std::string> in_wheels = {};  // below those of folders_of_packages
  std::vector<std::string> last = {};       // after those where the loader looks
};

// Looks in the folders of the variable, among what the process has loaded, and in the other places
// in the order above.
Library load_library(const std::string& name, const Places& places);
Library loaded_library(const std::string& name);  // by the process already
// Loads what a pattern of the shell names in a folder, for libraries that open it by name alone.
void load_all(const std::string& folder, const std::string& pattern);
// The folder of the library that holds this address; empty where that is not known.
std::string folder_of(const void* address);
// Where packages of Python may be installed: PLAIT_WHEELS, and the folders that plait is in.
std::vector<std::string> folders_of_packages();

}  // namespace plait
