// The table of verbs. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"

namespace plait::tool {

std::span<const Verb> verbs() {
  static const std::vector<Verb> all = {
      {"info",
       "FILE",
       1,
       1,
       "what a saved program holds: entries, arguments, constants",
       "",
       {},
       &info},
      {"show",
       "FILE [ENTRY]",
       1,
       2,
       "the program as text: one entry, or all",
       "",
       {{"--sources", nullptr, "with the lines of the code that it was traced from"}},
       &show},
      {"check",
       "FILE [ENTRY]",
       1,
       2,
       "whether a file is sound, and computes what it did when it was saved",
       "Reads the whole file, checks the invariants of every program in it and runs the test\n"
       "vectors: what does not fit is an error, and the exit code is 1.\n",
       {},
       &check},
  };
  return all;
}

}  // namespace plait::tool
