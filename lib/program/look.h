// Programs that are looked at and not run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program.h>

namespace plait {

// As load gives it, but that constants which the file was saved without are zeros: of their types,
// and of no memory.
Program load_to_look_at(const std::string& path);
// Whether the file was saved without its constants.
bool lacks_constants(const std::string& path);

}  // namespace plait
