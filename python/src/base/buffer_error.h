// The error of an exchange of memory with another library that is not possible as it was asked for:
// BufferError in Python, as DLPack and the buffer protocol want it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

namespace plait::python {

struct BufferError : BackendError {
  using BackendError::BackendError;
};

}  // namespace plait::python
