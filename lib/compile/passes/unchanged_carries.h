// Makes operands of carries that no step changes. See unchanged_carries.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The scan, or the while, as a program of its operands, in which such carries are consts of the
// loop. Empty if there are none.
Jaxpr forward_unchanged_in_scan(const Params& params, std::span<const Aval> operands,
                                const std::function<Jaxpr(const Jaxpr&)>& simplified);
Jaxpr forward_unchanged_in_while(const Params& params, std::span<const Aval> operands,
                                 const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::compile_passes
