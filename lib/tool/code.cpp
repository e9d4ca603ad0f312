// plait code: a saved program as text that rebuilds it. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/inspect.h>

#include <cstdio>

#include "program/inspection.h"
#include "tool/command.h"

namespace plait::tool {

int code(const Arguments& arguments) {
  const Language language = arguments.has("--cpp") ? Language::cpp : Language::python;
  for (const Entry& entry : entries_of(load_for_inspection(arguments[0]), arguments, 1))
    std::printf("%s\n", plait::code(entry.jaxpr(), language, entry.name()).text.c_str());
  return 0;
}

}  // namespace plait::tool
