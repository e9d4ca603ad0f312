// plait conformance: the laws on a backend. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/conformance.h>

#include <cstdio>

#include "tool/command.h"

namespace plait::tool {

int conformance(const Words& words) {
  const std::vector<std::string> modules = words.values("--module");
  if (!words.has("--backend")) throw Usage("conformance needs --backend NAME");
  const Backend& backend = backend_named(words.value("--backend"), modules);
  ConformanceOptions options;
  options.programs = !words.has("--kernels");
  for (std::size_t i = 0; i < words.size(); ++i) options.primitives.push_back(words[i]);
  const ConformanceReport report = plait::conformance(backend, options);
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}

}  // namespace plait::tool
