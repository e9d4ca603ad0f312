// Files of older formats. A step from each format to the next rewrites the manifest and the
// equations of jaxprs, so that readers handle only the newest. Steps are kept forever; tests/golden
// holds files of every format.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <nlohmann/json_fwd.hpp>

namespace plait {

constexpr int program_format = 3;  // of newly written files

// From a format in 1 .. program_format to the newest.
void upgrade_manifest(int format, nlohmann::json& manifest);
// A jaxpr is what its text says, of primitives and parameters that were the format's.
Jaxpr upgrade_jaxpr(int format, const Jaxpr& jaxpr);

}  // namespace plait
