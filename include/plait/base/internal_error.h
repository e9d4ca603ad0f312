// What is a bug where plait calls a rule, and a mistake where a caller hands over what nobody has
// looked at: parameters of an equation, text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

namespace plait {

// What went wrong, without the words that call it internal.
std::string problem_of(const InternalError& error);

}  // namespace plait
