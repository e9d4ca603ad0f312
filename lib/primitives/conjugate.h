// The conjugate of complex numbers, as rules and functions write it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

inline Array conjugate(const Array& z) {
  return lax::complex(lax::real(z), lax::neg(lax::imag(z)));
}

}  // namespace plait
