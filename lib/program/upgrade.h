// Files of older formats: a step from each format to the next rewrites the manifest and the texts
// of jaxprs, so that readers know the newest alone. A step stays for as long as plait does;
// tests/golden holds files of every format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace plait {

constexpr int program_format = 2;  // of the files that are written

// From a format in 1 .. program_format to the newest.
void upgrade_manifest(int format, nlohmann::json& manifest);
void upgrade_text(int format, std::string& jaxpr);

}  // namespace plait
