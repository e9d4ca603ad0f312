// The layout of a float: where its fraction ends and its exponent begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>

namespace plait::functions {

struct FloatLayout {
  DType word;    // the signed integer of its width
  int fraction;  // bits
  int bias;      // of the exponent
};

inline FloatLayout layout_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {DType::int16, 10, 15};
    case DType::bfloat16:
      return {DType::int16, 7, 127};
    case DType::float64:
      return {DType::int64, 52, 1023};
    default:
      return {DType::int32, 23, 127};
  }
}

}  // namespace plait::functions
