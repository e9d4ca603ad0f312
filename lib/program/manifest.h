// The manifest of a saved program: everything in the file besides jaxprs and arrays, as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/tree.h>

#include <map>
#include <string>
#include <vector>

#include "upgrade.h"

namespace plait {

struct Manifest {
  struct Entry {
    std::string name;
    TreeDef arguments, result;
    std::vector<std::string> argument_names, constants;
    bool has_example = false;
  };
  int format = program_format;  // of the file from which it was read
  std::vector<Entry> entries;
  std::map<std::string, std::string> meta;
  std::string licence;
  std::map<std::string, std::string> checksums;  // of constants, by name (checksum.h)
};

std::string to_json(const Manifest& manifest);
// ValueError, which begins with `where`, names a field that is missing or of another kind.
Manifest parse_manifest(const std::string& text, const std::string& where);

}  // namespace plait
