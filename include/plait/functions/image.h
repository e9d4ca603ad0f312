// plait::image: images of another size, under JAX's names.
//
// method: "nearest", "linear", "cubic" (Keys, a = -1/2), "lanczos3", "lanczos5", and JAX's other
// words for them. With antialias, kernels widen where the image shrinks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

namespace plait::image {

Array resize(Operand image, const Shape& shape, const std::string& method, bool antialias = true);
// Element i of axis spatial_dims[k] of the result lies at (i + 1/2 - translation[k]) / scale[k] -
// 1/2 of the image; 0 where that is outside.
Array scale_and_translate(Operand image, const Shape& shape, const std::vector<int>& spatial_dims,
                          Operand scale, Operand translation, const std::string& method,
                          bool antialias = true);

}  // namespace plait::image
