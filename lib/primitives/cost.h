// Shared by Cost rules. See rules/cost.h for what is counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/cost.h>

#include <cmath>

namespace plait::cost {

using Avals = std::span<const Aval>;

// Operations of a multiply and an add.
inline double multiply_add(DType dtype) { return is_complex(dtype) ? 8 : 2; }

// Comparisons per element when count elements are sorted.
inline double comparisons(double count) { return count < 2 ? 0 : std::ceil(std::log2(count)); }

// flops is a function of (inputs, outputs, params).
template <class Flops>
Cost::Rule arithmetic(Flops flops) {
  return [flops](Work& work, Avals inputs, Avals outputs, const Params& params) {
    work.flops = flops(inputs, outputs, params);
  };
}
inline Cost::Rule for_each_result(double flops) {
  return arithmetic([flops](Avals, Avals outputs, const Params&) {
    return outputs.empty() ? 0 : flops * elements_of(outputs[0]);
  });
}
inline Cost::Rule for_each_operand(double flops) {
  return arithmetic(
      [flops](Avals inputs, Avals, const Params&) { return flops * elements_of(inputs[0]); });
}

// Memory traffic alone.
inline Cost::Rule moves() {
  return [](Work&, Avals, Avals, const Params&) {};
}
// Memory traffic alone, which reads as many bytes of its first operand as it writes.
inline Cost::Rule moves_parts() {
  return [](Work& work, Avals inputs, Avals, const Params&) {
    work.bytes_read += work.bytes_written - bytes_of(inputs[0]);
  };
}
// The cost of a function of the host is not known.
inline Cost::Rule unknown() {
  return [](Work& work, Avals, Avals, const Params&) { work.known = false; };
}

}  // namespace plait::cost
