// plait conformance: the laws on a backend. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/conformance.h>

#include <cstdio>

#include "tool/command.h"

namespace plait::tool {

int conformance(const Arguments& arguments) {
  const std::vector<std::string> modules = arguments.values("--module");
  if (!arguments.has("--backend")) throw Usage("conformance needs --backend NAME");
  const Backend& backend = backend_named(arguments.value("--backend"), modules);
  ConformanceOptions options;
  options.programs = !arguments.has("--kernels");
  options.runs = !arguments.has("--claims");
  if (arguments.has("--device")) options.device = Device::named(arguments.value("--device"));
  for (std::size_t i = 0; i < arguments.size(); ++i) options.primitives.push_back(arguments[i]);
  const ConformanceReport report = plait::conformance(backend, options);
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}

}  // namespace plait::tool
