// Complex numbers as two real ones. See split_complex.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// Whether an elementwise primitive of complex numbers, or one that makes them, is split.
bool is_split(const Primitive& primitive, const Params& params);

// The same program over real numbers; memory of complex numbers holds both parts of each. The
// reason why not, where it computes what is not split.
struct Split {
  std::optional<LoopProgram> program;
  std::string reason;
};
Split split_complex(const LoopProgram& program);

}  // namespace plait::codegen
