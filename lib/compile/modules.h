// Which backends come from shared modules beside the library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace plait {

// From now on only these modules are loaded ("onednn"). It must be called before the first program
// is compiled. An executable that plait compile makes is complete, and loads nothing from its
// folder.
void load_modules_only(std::vector<std::string> names);

}  // namespace plait
