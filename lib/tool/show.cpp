// plait show: programs as text, which plait::parse accepts. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "program/inspection.h"
#include "tool/command.h"

namespace plait::tool {

int show(const Arguments& arguments) {
  const std::vector<Entry> entries = entries_of(load_for_inspection(arguments[0]), arguments, 1);
  const ShowSources sources = arguments.has("--sources") ? ShowSources::yes : ShowSources::no;
  for (const Entry& entry : entries) {
    if (entries.size() > 1) std::printf("# %s\n", entry.name().c_str());
    std::printf("%s\n", print(entry.jaxpr(), sources).c_str());
  }
  return 0;
}

}  // namespace plait::tool
