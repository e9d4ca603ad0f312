// What a type is to a call: enums are ints, and structs are told apart by their sizes alone. For
// comparing plait's declarations with those of other headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

template <std::size_t size>
struct Struct {};
struct Opaque {};
template <class T>
struct Plain {
  using type = T;
};
template <class T>
using PlainOf = typename Plain<T>::type;
template <class T>
  requires std::is_enum_v<T>
struct Plain<T> {
  static_assert(sizeof(T) == sizeof(int));
  using type = int;
};
template <class T>
  requires std::is_class_v<T>
struct Plain<T> {
  template <class U>
  static auto of() {
    if constexpr (requires { sizeof(U); })
      return Struct<sizeof(U)>();
    else
      return Opaque();
  }
  using type = decltype(of<T>());
};
template <class T>
struct Plain<const T> {
  using type = const PlainOf<T>;
};
template <class T>
struct Plain<T*> {
  using type = PlainOf<T>*;
};
template <class T>
struct Plain<T* const> {
  using type = PlainOf<T>* const;
};
template <class R, class... P>
struct Plain<R (*)(P...)> {
  using type = PlainOf<R> (*)(PlainOf<P>...);
};
