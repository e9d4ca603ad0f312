// The tolerances of all numerical laws, by dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

namespace plait::laws {

// |actual - expected| <= factor * (1 + |expected|), for these factors.
struct Tolerance {
  double value;       // against the same function computed in another order, or in float64
  double step;        // of central differences
  double derivative;  // of central differences of the result
};

inline Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {1e-2, 1e-1, 1e-1};
    case DType::bfloat16:
      return {6e-2, 2e-1, 2e-1};
    case DType::float32:
    case DType::complex64:
      return {5e-5, 1e-2, 5e-3};
    case DType::float64:
    case DType::complex128:
      return {1e-11, 1e-5, 1e-6};
    default:
      return {0, 1, 0};  // integers and bools are exact
  }
}

// Two analytic derivatives in float64, computed in different orders.
inline constexpr double derivative_order = 1e-9;

}  // namespace plait::laws
