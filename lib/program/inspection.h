// Loads programs that are inspected and not run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program/program.h>

namespace plait {

// Like load, except that constants without which the file was saved are zeros, of their types and
// without memory.
Program load_for_inspection(const std::string& path);
// Whether the file was saved without its constants.
bool lacks_constants(const std::string& path);

}  // namespace plait
