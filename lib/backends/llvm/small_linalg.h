// lu, cholesky and triangular_solve of small arrays: the code of
// lib/primitives/linalg/small_factors.h over registers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "small.h"

namespace plait::llvm {

bool is_factorization(const Equation& equation);
// Why an equation has no form here; empty where it has.
std::string factorization_refusal(std::span<const Aval> inputs, const Equation& equation);
// Roughly the instructions for one example.
double factorization_weight(const Equation& equation, std::span<const Aval> inputs);
// All results.
std::vector<Small> lower_factorization(const Equation& equation,
                                       std::span<const Small* const> inputs,
                                       std::span<const Aval> outputs, std::span<const int> axes);

}  // namespace plait::llvm
