// plait check: verifies a file. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tool/command.h"

namespace plait::tool {

int check(const Arguments& arguments) {
  const std::vector<Entry> entries =
      entries_of(load(arguments[0], {.map_memory = false}), arguments, 1);
  int code = 0;
  for (const Entry& entry : entries) {
    plait::check(entry.jaxpr());
    std::string verdict = "no test vector";
    try {
      if (entry.has_example()) {
        entry.verify();
        verdict = "computes what it did";
      }
    } catch (const Error& error) {
      verdict = error.problem();
      code = 1;
    }
    std::printf("%s: %s, %s\n", entry.name().c_str(),
                counted(std::int64_t(entry.jaxpr()->equations.size()), "equation").c_str(),
                verdict.c_str());
  }
  return code;
}

}  // namespace plait::tool
