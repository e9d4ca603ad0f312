// Mistakes to plant in rules of primitives that hold programs or decompose matrices: a mutant
// applies the right primitive, and one rule of it gives an edited version of what is right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>
#include <plait/rules/guard.h>
#include <plait/rules/interpret.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait::laws {

struct Mutant {
  const Primitive& primitive;
  std::vector<std::string> laws;  // each of which must find it
};
std::span<const Mutant> control_mutants();  // control_mutants_test.cpp

// What to do in place of an equation, in a program and in the programs that it holds; nothing: what
// it says.
using Edit = std::function<std::optional<Arrays>(const Equation&, std::span<const Array> inputs)>;

// The program with edits, in the current trace.
Arrays eval_edited(const Jaxpr& program, std::span<const Array> inputs, const Edit& edit);
// A function with edits: traced, then run.
Arrays run_edited(const Function& function, std::span<const Array> inputs, const Edit& edit);

// The definition of a mutant: right in all, through its decomposition.
Definition like(const Primitive& mutant, const Primitive& right, std::string doc,
                const char* file = __builtin_FILE(), int line = __builtin_LINE());

// Rules to plant.
Linearize::Rule linearize_negative(const Primitive& right);
// That takes one tangent for zero.
Linearize::Rule linearize_without(const Primitive& right, std::size_t input);
// In reverse mode the linear part is edited; forward mode is right.
Linearize::Rule linearize_edited(const Primitive& right, Edit edit);
Jvp::Rule jvp_without(const Primitive& right, std::size_t output);
Jvp::Rule jvp_scaled(const Primitive& right, std::size_t output, double factor);
Transpose::Rule transpose_negative(const Primitive& right);
// Examples are those of their neighbours.
Batch::Rule batch_rolled(const Primitive& right);
Batch::Rule batch_edited(const Primitive& right, Edit edit);
// Takes every size for its bound.
Mask::Rule mask_of_bounds(const Primitive& right);

// Edits inside of what `lanes` equations decompose to.
Edit in_lanes(Edit edit);
// `lanes` equations become those of a mutant of lanes.
Edit lanes_as(const Primitive& mutant);
// Elements of an array moved by one along an axis.
Array rolled(const Array& x, int axis = 0);

}  // namespace plait::laws
