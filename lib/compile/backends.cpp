// The registry of backends and the loading of their modules. See compile/backend.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/before_exit.h"
#include "base/device_modules.h"
#include "compile/modules.h"

namespace plait {
namespace {

struct Registry {
  struct Entry {
    std::unique_ptr<Backend> backend;
    Preference preference;
  };
  std::mutex mutex;
  std::vector<Entry> entries;  // most preferred first; never shrinks
  std::vector<MissingBackend> missing;
  std::optional<std::vector<std::string>> wanted;  // names of the modules to load; absent: all
};

// Never destroyed: executables that outlive main hold kernels of its backends.
Registry& registry() {
  static Registry& registry = *new Registry;
  return registry;
}

// The folder of the modules, beside the library that holds this function.
std::string module_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&module_folder), &info) || !info.dli_fname) return {};
  const std::string library = info.dli_fname;
  const std::size_t slash = library.rfind('/');
  return (slash == std::string::npos ? "." : library.substr(0, slash)) + "/plait/backends";
}

std::vector<std::string> modules_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* directory = opendir(folder.c_str());
  if (!directory) return names;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.starts_with("plait_") && name.ends_with(".so")) names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void load_modules() {
  // Libraries read their own limit on instruction sets when they are loaded.
  if (const char* isa = std::getenv("PLAIT_MAX_ISA"); isa && *isa)
    setenv("ONEDNN_MAX_CPU_ISA", isa, 0);
  const std::string folder = module_folder();
  std::optional<std::vector<std::string>> wanted;
  {
    const std::lock_guard lock(registry().mutex);
    wanted = registry().wanted;
  }
  const auto is_wanted = [&](const std::string& file) {
    return !wanted || std::any_of(wanted->begin(), wanted->end(), [&](const std::string& name) {
      return file == "plait_" + name + ".so";
    });
  };
  for (const std::string& name : modules_in(folder)) {
    if (!is_wanted(name)) continue;
    // RTLD_LOCAL: nothing else binds to the symbols of a vendor library.
    if (open_library((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) {
      log_line("backend " + name.substr(6, name.size() - 9) + " is loaded from " + folder + "/" +
               name);
      continue;
    }
    const char* reason = dlerror();
    report_missing_backend(name.substr(6, name.size() - 9),
                           reason ? reason : "it could not be loaded");
  }
}

// A module that asks for backends or devices while it is loaded finds those that are there by then.
void load_modules_once() {
  static std::once_flag once;
  static thread_local bool is_loading = false;
  if (is_loading) return;
  std::call_once(once, [] {
    is_loading = true;
    load_modules();
    is_loading = false;
  });
}

// Devices come with the modules of their backends.
constexpr DeviceModules device_modules{load_modules_once, [](std::string_view kind) -> std::string {
                                         for (const MissingBackend& missing : missing_backends())
                                           if (missing.name == kind) return missing.reason;
                                         return {};
                                       }};
[[maybe_unused]] const bool are_devices_known = (set_device_modules(&device_modules), true);

}  // namespace

void load_modules_only(std::vector<std::string> names) {
  const std::lock_guard lock(registry().mutex);
  registry().wanted = std::move(names);
}

bool register_backend(std::unique_ptr<Backend> backend, Preference preference) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto place =
      std::find_if(all.entries.begin(), all.entries.end(),
                   [&](const Registry::Entry& entry) { return entry.preference > preference; });
  all.entries.insert(place, {std::move(backend), preference});
  return true;
}

bool report_missing_backend(std::string name, std::string reason, bool of_device) {
  log_line("backend " + name + " is not used: " + reason);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.missing.push_back({std::move(name), std::move(reason), of_device});
  return true;
}

namespace {
template <class Takes>
std::vector<const Backend*> backends_that(const Takes& takes) {
  load_modules_once();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<const Backend*> found;
  for (const Registry::Entry& entry : all.entries)
    if (takes(entry)) found.push_back(entry.backend.get());
  return found;
}
}  // namespace

std::vector<const Backend*> backends_of(Device device) {
  return backends_that(
      [&](const Registry::Entry& entry) { return entry.backend->runs_on(device); });
}

std::vector<const Backend*> backends_of(Device device, Preference preference) {
  return backends_that([&](const Registry::Entry& entry) {
    return entry.backend->runs_on(device) && entry.preference == preference;
  });
}

const Backend* find_backend(std::string_view name) {
  load_modules_once();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const Registry::Entry& entry : all.entries)
    if (entry.backend->name() == name) return entry.backend.get();
  return nullptr;
}

std::vector<MissingBackend> missing_backends() {
  load_modules_once();
  const std::lock_guard lock(registry().mutex);
  return registry().missing;
}

void log_line(const std::string& text) {
  const char* wanted = std::getenv("PLAIT_LOG");
  if (wanted && *wanted && std::string_view(wanted) != "0")
    std::fprintf(stderr, "plait: %s\n", text.c_str());
}

}  // namespace plait
