// Integers wrap: arithmetic on them is that of unsigned ones, whose overflow is defined, with the
// same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace plait {

template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return std::make_unsigned_t<decltype(x + x)>(x);  // narrow ones as ints
  else
    return x;
}

}  // namespace plait
