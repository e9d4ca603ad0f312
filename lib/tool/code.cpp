// plait code: a saved program as text that makes it again. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect.h>

#include <cstdio>

#include "program/look.h"
#include "tool/command.h"

namespace plait::tool {

int code(const Words& words) {
  const Language language = words.has("--cpp") ? Language::cpp : Language::python;
  for (const Entry& entry : entries_of(load_to_look_at(words[0]), words, 1))
    std::printf("%s\n", plait::code(entry.jaxpr(), language, entry.name()).text.c_str());
  return 0;
}

}  // namespace plait::tool
