// Shared by the rules of fft.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/fourier.h>
#include <plait/rules/emit.h>
#include <plait/rules/rules.h>

namespace plait::fourier {

// What the parameters of fft say.
struct Form {
  enum class Kind : std::uint8_t { fft, ifft, rfft, irfft };

  explicit Form(const Params& params);
  bool is_inverse() const { return kind == Kind::ifft || kind == Kind::irfft; }

  Kind kind;
  int axis;
  Dim length;  // points of the signal; its spectrum has length // 2 + 1 where it is real
};

void eval_fft(std::span<const View> inputs, std::span<const View> outputs, const Params& params);
loops::Tensors emit_fft(loops::Writer& writer, const Equation& equation,
                        std::span<const loops::Tensor> inputs);

}  // namespace plait::fourier
