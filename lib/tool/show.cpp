// plait show: programs as text, which plait::parse reads. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "program/look.h"
#include "tool/command.h"

namespace plait::tool {

int show(const Words& words) {
  const std::vector<Entry> entries = entries_of(load_to_look_at(words[0]), words, 1);
  const ShowSources sources = words.has("--sources") ? ShowSources::yes : ShowSources::no;
  for (const Entry& entry : entries) {
    if (entries.size() > 1) std::printf("# %s\n", entry.name().c_str());
    std::printf("%s\n", print(entry.jaxpr(), sources).c_str());
  }
  return 0;
}

}  // namespace plait::tool
