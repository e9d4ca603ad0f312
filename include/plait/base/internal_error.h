// Errors that are bugs when plait calls a rule, but mistakes of the caller when it passes unchecked
// input, such as the parameters of an equation or text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

namespace plait {

// The problem, without the prefix that calls it internal.
std::string problem_of(const InternalError& error);

}  // namespace plait
