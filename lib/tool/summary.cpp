// plait summary: what the parts of a program cost. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect.h>

#include <cstdio>

#include "program/look.h"
#include "tool/inputs.h"

namespace plait::tool {

int summary(const Words& words) {
  const std::vector<Entry> entries = entries_of(load_to_look_at(words[0]), words, 1);
  check_sizes(entries, words);
  const bool is_json = words.has("--json");
  std::string text;
  for (const Entry& entry : entries) {
    const Summary table = plait::summary(sized_whole(entry, words), entry.name());
    if (!text.empty()) text += is_json ? ", " : "\n";
    text += is_json ? "\"" + entry.name() + "\": " + table.to_json() : table.to_string();
  }
  std::printf(is_json ? "{%s}\n" : "%s", text.c_str());
  return 0;
}

}  // namespace plait::tool
