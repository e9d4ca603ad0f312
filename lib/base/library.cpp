// See library.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/before_exit.h"

namespace plait {
namespace {

using Folders = std::vector<std::string>;

Folders folders_in_variable(const char* name) {
  Folders found;
  const char* asked = std::getenv(name);
  std::string_view rest = asked ? asked : "";
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) found.emplace_back(folder);
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  return found;
}

// What patterns of the shell match, in reverse: newer versions come first.
Folders matches_of(const Folders& tops, const std::vector<std::string>& patterns) {
  Folders folders;
  for (const std::string& top : tops)
    for (const std::string& pattern : patterns) {
      glob_t matches{};
      if (glob((top + pattern).c_str(), GLOB_ONLYDIR, nullptr, &matches) == 0)
        for (std::size_t i = matches.gl_pathc; i-- > 0;) folders.emplace_back(matches.gl_pathv[i]);
      globfree(&matches);
    }
  return folders;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// RTLD_LOCAL: nothing else binds to its symbols.
constexpr int flags = RTLD_NOW | RTLD_LOCAL;

// A library that is there and cannot be loaded leaves the reason, if it is the first one.
void* load_from(const Folders& folders, const std::string& name, std::string& reason) {
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + name;
    if (access(path.c_str(), R_OK) != 0) continue;
    if (void* handle = open_library(path.c_str(), flags)) return handle;
    const char* said = dlerror();
    if (reason.empty()) reason = said ? said : "the process ends";
  }
  return nullptr;
}

void* load_from_anywhere(const std::string& name, const Places& places, std::string& reason) {
  if (void* handle = load_from(folders_in_variable(places.variable), name, reason)) return handle;
  if (void* handle = loaded_library(name).handle) return handle;
  if (void* handle = load_from(matches_of({""}, places.first), name, reason)) return handle;
  if (!places.in_wheels.empty())
    if (void* handle = load_from(matches_of(folders_of_packages(), places.in_wheels), name, reason))
      return handle;
  if (void* handle = open_library(name.c_str(), flags)) return handle;
  const char* said = dlerror();
  // The loader says this of a library that is missing, and of one that it needs.
  if (said && reason.empty() && !std::string_view(said).starts_with(name + ": cannot open"))
    reason = said;
  return load_from(matches_of({""}, places.last), name, reason);
}

}  // namespace

void* Library::find(const char* symbol) const { return handle ? dlsym(handle, symbol) : nullptr; }

Library load_library(const std::string& name, const Places& places) {
  Library library;
  library.handle = load_from_anywhere(name, places, library.failure);
  if (library.handle)
    library.failure.clear();
  else if (library.failure.empty())
    library.failure = name + " is not installed";
  return library;
}

Library loaded_library(const std::string& name) {
  Library library;
  library.handle = open_library(name.c_str(), flags | RTLD_NOLOAD);
  if (!library.handle) {
    dlerror();  // that it is not loaded is no reason
    library.failure = name + " is not loaded";
  }
  return library;
}

void load_all(const std::string& folder, const std::string& pattern) {
  glob_t matches{};
  if (glob((folder + "/" + pattern).c_str(), 0, nullptr, &matches) == 0)
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) open_library(matches.gl_pathv[i], flags);
  globfree(&matches);
}

std::string folder_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? parent_of(info.dli_fname) : "";
}

std::vector<std::string> folders_of_packages() {
  Folders sites = folders_in_variable("PLAIT_WHEELS");
  // The library lies some folders below the one in which packages are installed.
  std::string folder = folder_of(reinterpret_cast<const void*>(&folders_of_packages));
  for (; !folder.empty(); folder = parent_of(folder)) sites.push_back(folder);
  return sites;
}

}  // namespace plait
