// The fields of an aggregate: how many it has, references to them, and their names.
//
// Fields are found by structured bindings, for which C++20 needs one line for each number of
// fields. Names are read from the spelling of a field's address in __PRETTY_FUNCTION__, where the
// compiler gives it: g++ does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace plait::detail {

inline constexpr std::size_t max_fields = 32;

// The number of fields, where a base class with members counts as one; max_fields + 1 for more.
// Each field is initialised from {}, so that an array field counts as one too.
template <class T>
constexpr std::size_t num_fields() {
  if constexpr (!requires { T{{}}; })
    return 0;
  else if constexpr (!requires { T{{}, {}}; })
    return 1;
  else if constexpr (!requires { T{{}, {}, {}}; })
    return 2;
  else if constexpr (!requires { T{{}, {}, {}, {}}; })
    return 3;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}}; })
    return 4;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}}; })
    return 5;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}}; })
    return 6;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; })
    return 7;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 8;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 9;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 10;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 11;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 12;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 13;
  else if constexpr (!requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}; })
    return 14;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 15;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 16;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 17;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 18;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 19;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 20;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 21;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 22;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 23;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 24;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 25;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 26;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 27;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 28;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 29;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 30;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 31;
  else if constexpr (!requires {
                       T{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {},
                         {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
                     })
    return 32;
  else
    return max_fields + 1;
}

// References to the n fields of an aggregate.
template <std::size_t n, class T>
constexpr auto tie_fields(T& t) {
  static_assert(n <= max_fields);
  if constexpr (n == 0) {
    return std::tuple<>();
  } else if constexpr (n == 1) {
    auto& [f1] = t;
    return std::tie(f1);
  } else if constexpr (n == 2) {
    auto& [f1, f2] = t;
    return std::tie(f1, f2);
  } else if constexpr (n == 3) {
    auto& [f1, f2, f3] = t;
    return std::tie(f1, f2, f3);
  } else if constexpr (n == 4) {
    auto& [f1, f2, f3, f4] = t;
    return std::tie(f1, f2, f3, f4);
  } else if constexpr (n == 5) {
    auto& [f1, f2, f3, f4, f5] = t;
    return std::tie(f1, f2, f3, f4, f5);
  } else if constexpr (n == 6) {
    auto& [f1, f2, f3, f4, f5, f6] = t;
    return std::tie(f1, f2, f3, f4, f5, f6);
  } else if constexpr (n == 7) {
    auto& [f1, f2, f3, f4, f5, f6, f7] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7);
  } else if constexpr (n == 8) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8);
  } else if constexpr (n == 9) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9);
  } else if constexpr (n == 10) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10);
  } else if constexpr (n == 11) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11);
  } else if constexpr (n == 12) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12);
  } else if constexpr (n == 13) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13);
  } else if constexpr (n == 14) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14);
  } else if constexpr (n == 15) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15);
  } else if constexpr (n == 16) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16);
  } else if constexpr (n == 17) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17);
  } else if constexpr (n == 18) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                    f18);
  } else if constexpr (n == 19) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19] =
        t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19);
  } else if constexpr (n == 20) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20);
  } else if constexpr (n == 21) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21);
  } else if constexpr (n == 22) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22);
  } else if constexpr (n == 23) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23);
  } else if constexpr (n == 24) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24);
  } else if constexpr (n == 25) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25);
  } else if constexpr (n == 26) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26);
  } else if constexpr (n == 27) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27);
  } else if constexpr (n == 28) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27, f28] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27, f28);
  } else if constexpr (n == 29) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27, f28, f29] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29);
  } else if constexpr (n == 30) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30);
  } else if constexpr (n == 31) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31);
  } else if constexpr (n == 32) {
    auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19,
           f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32] = t;
    return std::tie(f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18,
                    f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32);
  }
}

// An object of the type that is declared and never defined: only the addresses of its fields are
// used.
template <class T>
struct Unmade {
  const T value;
};
template <class T>
extern const Unmade<T> unmade;

#if defined(__GNUC__) && !defined(__clang__)
inline constexpr bool compiler_names_fields = true;
template <auto pointer>
constexpr std::string_view name_of_pointee() {
  // "... [with auto pointer = (& unmade<T>.Unmade<T>::value.T::slope); std::string_view = ...]"
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find("); "));
  return text.substr(text.rfind(':') + 1);
}
template <std::size_t n, class T>
constexpr auto addresses_of_fields(const T& t) {
  return std::apply([](auto&... fields) { return std::tuple{&fields...}; }, tie_fields<n>(t));
}
// The names of the n fields, in order.
template <class T, std::size_t n>
constexpr auto names_of_fields() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<std::string_view, n>{
        name_of_pointee<std::get<i>(addresses_of_fields<n>(unmade<T>.value))>()...};
  }(std::make_index_sequence<n>());
}
#else
inline constexpr bool compiler_names_fields = false;
#endif

}  // namespace plait::detail
