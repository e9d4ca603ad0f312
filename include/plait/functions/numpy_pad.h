// NumPy's pad with all its options. Part of numpy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy {

// What the modes ask for. Values are a number, (before, after), or a pair for each axis.
struct PadOptions {
  Array constant_values = 0;            // "constant"
  Array end_values = 0;                 // "linear_ramp": the outermost ones
  std::optional<PadWidth> stat_length;  // "maximum", "mean", "median", "minimum": of how many
  std::string reflect_type = "even";    // "reflect", "symmetric"; "odd": twice the edge less that
};
Array pad(Operand array, const PadWidth& pad_width, const std::string& mode,
          const PadOptions& options);

}  // namespace plait::numpy
