// Integers wrap: they are computed as unsigned ones, whose overflow is defined and gives the same
// bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace plait {

template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>)
    return std::make_unsigned_t<decltype(x + x)>(x);  // narrow types are promoted to int first
  else
    return x;
}

}  // namespace plait
