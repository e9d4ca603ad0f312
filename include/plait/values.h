// C++ values as trees: tuples, pairs, vectors, maps, optionals, and any aggregate of such, down to
// Arrays.
//
//   struct Weights { plait::Array w, b; };      // is a tree with two leaves
//
// The fields of an aggregate are found by structured bindings, up to twelve; paths show them by
// position.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/base/tree.h>
#include <plait/trace/array.h>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace plait {
namespace detail {

struct AnyField {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... i>
constexpr bool takes_fields(std::index_sequence<i...>) {
  return requires { T{((void)i, AnyField{})...}; };
}
template <class T, std::size_t n = 12>
constexpr std::size_t num_fields() {
  if constexpr (n == 0)
    return 0;
  else if constexpr (takes_fields<T>(std::make_index_sequence<n>()))
    return n;
  else
    return num_fields<T, n - 1>();
}

// The fields of an aggregate as a tuple of references.
template <class T>
auto fields_of(T& t) {
  constexpr std::size_t n = num_fields<std::remove_const_t<T>>();
  static_assert(
      n > 0,
      "this type is no tree: give an Array, a container, or an aggregate of up to twelve of them");
  if constexpr (n == 1) {
    auto& [a] = t;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = t;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = t;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = t;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = t;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = t;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = t;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = t;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = t;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_std_array : std::false_type {};
template <class T, std::size_t n>
struct is_std_array<std::array<T, n>> : std::true_type {};
template <class T>
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};
template <class T>
struct is_maybe : std::false_type {};
template <class T>
struct is_maybe<std::optional<T>> : std::true_type {};
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; } && !is_std_array<T>::value;

inline std::vector<std::string> field_names(std::size_t n) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < n; ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace detail

// Appends the leaves of a value and returns its structure.
template <class T>
TreeDef flatten(const T& value, Arrays& leaves) {
  if constexpr (std::is_base_of_v<Array, T>) {
    leaves.push_back(value);
    return TreeDef();
  } else if constexpr (detail::is_vector<T>::value || detail::is_std_array<T>::value) {
    std::vector<TreeDef> children;
    for (const auto& part : value) children.push_back(flatten(part, leaves));
    return TreeDef::list(std::move(children));
  } else if constexpr (detail::is_map<T>::value) {
    std::vector<std::string> keys;
    std::vector<TreeDef> children;
    for (const auto& [key, part] : value) {
      keys.push_back(key);
      children.push_back(flatten(part, leaves));
    }
    return TreeDef::dict(std::move(keys), std::move(children));
  } else if constexpr (detail::is_maybe<T>::value) {
    return value ? flatten(*value, leaves) : TreeDef::none();
  } else {
    auto flatten_parts = [&](const auto&... parts) {
      std::vector<TreeDef> children;
      (children.push_back(flatten(parts, leaves)), ...);
      return children;
    };
    if constexpr (detail::TupleLike<T>)
      return TreeDef::tuple(std::apply(flatten_parts, value));
    else {
      std::vector<TreeDef> children = std::apply(flatten_parts, detail::fields_of(value));
      std::vector<std::string> names = detail::field_names(children.size());
      return TreeDef::record({"struct", nullptr, nullptr, nullptr}, std::move(names),
                             std::move(children));
    }
  }
}

// The value of this structure, taking leaves from the front of the list. TreeError when T cannot
// have it.
template <class T>
T unflatten(const TreeDef& structure, std::span<const Array>& leaves) {
  auto require = [&](bool good) {
    if (!good)
      throw TreeError(
          "a value of structure " + structure.to_string() + " does not fit the C++ type",
          "use one structure throughout");
  };
  if constexpr (std::is_base_of_v<Array, T>) {
    require(structure.kind() == TreeDef::Kind::leaf && !leaves.empty());
    T leaf = T(leaves.front());
    leaves = leaves.subspan(1);
    return leaf;
  } else if constexpr (detail::is_vector<T>::value) {
    T value;
    for (const TreeDef& child : structure.children())
      value.push_back(unflatten<typename T::value_type>(child, leaves));
    return value;
  } else if constexpr (detail::is_std_array<T>::value) {
    T value;
    require(structure.children().size() == value.size());
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] = unflatten<typename T::value_type>(structure.children()[i], leaves);
    return value;
  } else if constexpr (detail::is_map<T>::value) {
    T value;
    for (std::size_t i = 0; i < structure.children().size(); ++i)
      value.emplace(structure.keys()[i],
                    unflatten<typename T::mapped_type>(structure.children()[i], leaves));
    return value;
  } else if constexpr (detail::is_maybe<T>::value) {
    if (structure.kind() == TreeDef::Kind::none) return std::nullopt;
    return unflatten<typename T::value_type>(structure, leaves);
  } else if constexpr (detail::TupleLike<T>) {
    require(structure.children().size() == std::tuple_size_v<T>);
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return T{unflatten<std::decay_t<std::tuple_element_t<i, T>>>(
          structure.children()[i], leaves)...};  // braces: left to right
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    T value;
    auto fields = detail::fields_of(value);
    require(structure.children().size() == std::tuple_size_v<decltype(fields)>);
    std::size_t next = 0;
    std::apply(
        [&](auto&... parts) {
          ((parts = unflatten<std::decay_t<decltype(parts)>>(structure.children()[next++], leaves)),
           ...);
        },
        fields);
    return value;
  }
}

template <class T>
T unflatten(const TreeDef& structure, const Arrays& leaves) {
  std::span<const Array> rest(leaves);
  return unflatten<T>(structure, rest);
}

}  // namespace plait
