// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/run/kernel.h>

namespace plait {

std::exception_ptr Kernel::error_of(const Failure& failure) const {
  return std::make_exception_ptr(InternalError(
      "a kernel failed with code " + std::to_string(failure.code) + ", for which it has no error"));
}

}  // namespace plait
