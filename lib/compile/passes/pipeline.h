// The passes from a user's program to the one that backends are given. See pipeline.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::compile_passes {

// Whether an equation that holds a body stays whole, because a backend claims it.
using KeepWhole = std::function<bool(const Equation&, std::span<const Aval> inputs,
                                     std::span<const Aval> outputs)>;

// The same program, to the bit. An equation whose body one of these backends runs as a whole is
// kept.
Jaxpr prepare(const Jaxpr& program, std::span<const Backend* const> backends, Device device);

// The same program, to the bit, in simplified form: the first step of prepare.
Jaxpr simplify_program(const Jaxpr& program, const KeepWhole& keep);

// A scan with these parameters as a program of its operands, part of which runs around a smaller
// scan. Empty if no pass over loops changes it.
Jaxpr simplify_loop(const Params& params, std::span<const Aval> operands, const KeepWhole& keep);

bool is_claimed(std::span<const Backend* const> backends, const Equation& equation,
                std::span<const Aval> inputs, std::span<const Aval> outputs, Device device);

}  // namespace plait::compile_passes
