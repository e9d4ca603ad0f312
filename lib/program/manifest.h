// The manifest of a saved program: what is in the file besides jaxprs and arrays, as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/tree.h>

#include <map>
#include <string>
#include <vector>

namespace plait {

constexpr int program_format = 1;  // of the files that are written

struct Manifest {
  struct Entry {
    std::string name;
    TreeDef arguments, result;
    std::vector<std::string> argument_names, constants;
    bool has_example = false;
  };
  std::vector<Entry> entries;
  std::map<std::string, std::string> meta;
  std::string licence;
};

std::string to_json(const Manifest& manifest);
// ValueError, which begins with `where`, says what is missing or of another kind.
Manifest parse_manifest(const std::string& text, const std::string& where);

}  // namespace plait
