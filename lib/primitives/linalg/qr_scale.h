// The scale of a matrix whose squares would overflow or vanish in float64, as LAPACK has it. Powers
// of two: other matrices keep their bits. Kernels and generated loops scale alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait::matrices {

// The factor for matrices whose largest part of an element is above (or below) a limit; that of the
// last such row holds. It brings the largest no further down than it must, for the sake of columns
// that are much smaller.
struct ScaleRow {
  double limit, factor;
};
inline constexpr ScaleRow scale_down[] = {
    {0x1p480, 0x1p-240}, {0x1p720, 0x1p-480}, {0x1p960, 0x1p-544}};
inline constexpr ScaleRow scale_up[] = {{0x1p-480, 0x1p480}, {0x1p-960, 0x1p960}};

}  // namespace plait::matrices
