// The rules Emit of lu, det, cholesky and triangular_solve: small matrices, written out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/emit.h>

namespace plait {

loops::Tensors emit_lu(loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs);
loops::Tensors emit_det(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs);
loops::Tensors emit_cholesky(loops::Writer& w, const Equation& equation,
                             std::span<const loops::Tensor> inputs);
loops::Tensors emit_triangular_solve(loops::Writer& w, const Equation& equation,
                                     std::span<const loops::Tensor> inputs);

}  // namespace plait
