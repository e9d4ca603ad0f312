// Outer products as multiplications. See outer_products.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The program with a multiplication for every dot_general of real numbers whose contracted axes
// have one element. Empty if there is none.
Jaxpr multiply_outer_products(const Jaxpr& program);

}  // namespace plait::compile_passes
