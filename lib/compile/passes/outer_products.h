// Products that add nothing up, as multiplications. See outer_products.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The same program with multiplications in the place of every dot_general of real numbers whose
// contracted axes hold one element; empty when there is none.
Jaxpr multiply_outer_products(const Jaxpr& program);

}  // namespace plait::compile_passes
