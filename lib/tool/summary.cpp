// plait summary: the cost of the parts of a program. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/inspect.h>

#include <cstdio>

#include "program/inspection.h"
#include "tool/inputs.h"

namespace plait::tool {

int summary(const Arguments& arguments) {
  const std::vector<Entry> entries = entries_of(load_for_inspection(arguments[0]), arguments, 1);
  check_sizes(entries, arguments);
  const bool is_json = arguments.has("--json");
  std::string text;
  for (const Entry& entry : entries) {
    const Summary table = plait::summary(sized_whole(entry, arguments), entry.name());
    if (!text.empty()) text += is_json ? ", " : "\n";
    text += is_json ? "\"" + entry.name() + "\": " + table.to_json() : table.to_string();
  }
  std::printf(is_json ? "{%s}\n" : "%s", text.c_str());
  return 0;
}

}  // namespace plait::tool
