// Shared by the functions of plait::scipy: operands as floats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/functions.h"

#include <cmath>

namespace plait::functions {

// Operands in one real float dtype and, except for scalars, one shape.
Arrays floats(std::string_view function, std::initializer_list<Operand> operands);

}  // namespace plait::functions
