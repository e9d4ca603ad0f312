// The text of one equation: "c:f32[3] = tanh b".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

std::string text_of(const JaxprData& jaxpr, const Equation& equation);

}  // namespace plait
