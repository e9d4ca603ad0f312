// Whether cuDNN's relu is plait's, in which NaN stays: it is asked to, but not every engine may.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plait::cuda {

// Found out once, by small convolutions on the first device.
bool convolution_relu_keeps_nan();

}  // namespace plait::cuda
