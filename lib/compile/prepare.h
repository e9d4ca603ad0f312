// The passes from the program of a user to the one that backends are given. See prepare.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::compile_passes {

// The same program, to the bit. An equation whose body one of these backends runs as a whole
// stays.
Jaxpr prepare(const Jaxpr& program, std::span<const Backend* const> backends);

bool is_claimed(std::span<const Backend* const> backends, const Equation& equation,
                std::span<const Aval> inputs, std::span<const Aval> outputs);

}  // namespace plait::compile_passes
