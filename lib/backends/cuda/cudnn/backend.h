// See backend.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait::cuda {

std::unique_ptr<Backend> make_cudnn_backend();

}  // namespace plait::cuda
