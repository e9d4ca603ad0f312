// The passes from the program of a user to the one that backends are given. See pipeline.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::compile_passes {

// Whether an equation that holds a body stays whole, because a backend claims it.
using KeepWhole = std::function<bool(const Equation&, std::span<const Aval> inputs,
                                     std::span<const Aval> outputs)>;

// The same program, to the bit. An equation whose body one of these backends runs as a whole
// stays.
Jaxpr prepare(const Jaxpr& program, std::span<const Backend* const> backends);

// The same program, to the bit, in plain form: what prepare begins with.
Jaxpr simplify_program(const Jaxpr& program, const KeepWhole& keep);

// A scan of these parameters as a program of its operands, part of which stands around a smaller
// scan; empty when no pass over loops finds anything.
Jaxpr simplify_loop(const Params& params, std::span<const Aval> operands, const KeepWhole& keep);

bool is_claimed(std::span<const Backend* const> backends, const Equation& equation,
                std::span<const Aval> inputs, std::span<const Aval> outputs);

}  // namespace plait::compile_passes
