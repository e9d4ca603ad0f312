// The programs that stages of masked functions run as. See stage_program.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/masked.h>

namespace plait {

// The padded program of a masked function for a caller that reads no padding of results, but those
// that are summed. After the sizes, it takes for each of them which places are real: bool[bound].
// zero_padded says which operands of the body are 0 in their padding.
Jaxpr stage_program(const MaskedParams& masked, const std::vector<bool>& zero_padded);

}  // namespace plait
