// Elementwise primitives as instructions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

#include "emit.h"

namespace plait::llvm {

// One vector of a value. Bools are single bits; float16 and bfloat16 are float lanes that hold what
// was rounded to them.
struct Register {
  Value v = nullptr;
  DType dtype = DType::float32;
};

// How a register lies in memory, and back: a vector of Emitter::element(dtype).
Value to_memory(const Register& value);
Register from_memory(Value vector, DType dtype);
Register constant_of(const Literal& literal);

// Dense memory from an address on; only the first count lanes exist, the others are zero.
Register load_lanes(DType dtype, Value address, int count);
Value first_lanes(int count);  // a mask
// streams: past the caches, to memory aligned for that.
void store_lanes(const Register& value, Value address, int count, bool streams = false);
// float32 lanes rounded to a 16-bit dtype; others as they are.
Value rounded(DType dtype, Value v);

bool can_count(DType dtype);  // whether iota gives such numbers
// Whether it reduces numbers of this dtype in registers: complex ones as sums of their parts alone.
bool may_reduce(const Equation& reduction, DType dtype);
// Whether the equation is elementwise, and of complex numbers that are split where it has any.
bool is_elementwise(const Equation& equation, std::span<const Aval> inputs,
                    std::span<const Aval> outputs);
// Emits an equation: as instructions where its primitive has a row, else as a call of its loop for
// one vector, through memory.
Register lower(const Equation& equation, std::span<const Register> inputs, DType output);

}  // namespace plait::llvm
