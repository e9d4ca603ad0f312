// plait conformance: the laws on a backend. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/conformance.h>

#include <dlfcn.h>

#include <cstdio>

#include "tool/command.h"

namespace plait::tool {

int conformance(const Words& words) {
  for (const std::string& path : words.values("--module"))
    if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      const char* reason = dlerror();
      throw ValueError(
          "the module " + path + " cannot be loaded: " + (reason ? reason : "nobody says why"),
          "give the path of a shared object that registers a backend");
    }
  if (!words.has("--backend")) throw Usage("conformance needs --backend NAME");
  const std::string name = words.value("--backend");
  const Backend* backend = find_backend(name);
  if (!backend) {
    std::string known;
    for (const Backend* one : backends_of())
      known += (known.empty() ? "" : ", ") + std::string(one->name());
    for (const MissingBackend& missing : missing_backends())
      if (missing.name == name)
        throw BackendError("the backend " + name + " cannot be used here: " + missing.reason,
                           "install what it needs, or name one of " + known);
    throw ValueError("there is no backend '" + name + "'",
                     "name one of " + known + ", or load a module with --module");
  }
  ConformanceOptions options;
  options.programs = !words.has("--kernels");
  for (std::size_t i = 0; i < words.size(); ++i) options.primitives.push_back(words[i]);
  const ConformanceReport report = plait::conformance(*backend, options);
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}

}  // namespace plait::tool
