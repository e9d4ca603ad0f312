// The rule Emit of sort: rows of few elements, written out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/emit.h>

namespace plait {

loops::Tensors emit_sort(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs);

}  // namespace plait
