// Whether cuBLASLt's relu is plait's, in which NaN stays. Its documentation does not say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait::cuda {

// Found out once, by small products on the first device.
bool relu_keeps_nan();

}  // namespace plait::cuda
