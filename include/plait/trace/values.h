// C++ values as trees: tuples, pairs, vectors, arrays, maps, optionals, and any aggregate of these,
// down to Arrays.
//
//   struct Weights { plait::Array w, b; double lr; };      // is a tree with two leaves
//
// A part without Arrays (lr) belongs to the structure: a program is traced for its value. The
// fields of an aggregate are found automatically, up to 32. A class that is not such an aggregate,
// or has a base class with members, names them:
//
//   struct Scaled : Dense {
//     plait::Array scale;
//     static constexpr auto plait_fields =
//         plait::fields("w", &Scaled::w, "b", &Scaled::b, "scale", &Scaled::scale);
//   };
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/base/fields.h>
#include <plait/base/tree.h>
#include <plait/trace/array.h>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace plait {
namespace detail {

template <class... Members>
struct FieldList {
  static constexpr std::size_t size = sizeof...(Members);
  std::array<std::string_view, size> names;
  std::tuple<Members...> members;
};

template <class T>
concept DeclaresFields = requires { T::plait_fields.members; };

// The placeholder for a base class of T in the braces of T{...}.
template <class T, bool is_empty>
struct AnyBase {
  template <class Base>
    requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T> &&
             std::is_empty_v<Base> == is_empty)
  operator Base() const;
};
template <class T>
concept HasFullBase = requires { T{AnyBase<T, false>{}}; };
template <class T>
concept HasEmptyBase = requires { T{AnyBase<T, true>{}}; };

template <class T>
constexpr std::size_t field_count() {
  if constexpr (DeclaresFields<T>)
    return T::plait_fields.size;
  else
    return num_fields<T>() - (HasEmptyBase<T> ? 1 : 0);
}

// The names of the fields; empty where neither the class nor the compiler gives them.
template <class T>
std::span<const std::string_view> field_names() {
  if constexpr (DeclaresFields<T>) {
    return T::plait_fields.names;
  } else if constexpr (compiler_names_fields && field_count<T>() > 0) {
    static constexpr auto names = names_of_fields<T, field_count<T>()>();
    return names;
  } else {
    return {};
  }
}

// The fields as a tuple of references.
template <class T>
auto fields_of(T& t) {
  using Plain = std::remove_const_t<T>;
  if constexpr (DeclaresFields<Plain>)
    return std::apply([&](auto... members) { return std::tie(t.*members...); },
                      Plain::plait_fields.members);
  else
    return tie_fields<field_count<Plain>()>(t);
}

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_fixed_list : std::is_bounded_array<T> {};
template <class T, std::size_t n>
struct is_fixed_list<std::array<T, n>> : std::true_type {};
template <class T>
struct is_map : std::false_type {};
template <class T>
struct is_map<std::map<std::string, T>> : std::true_type {};
template <class T>
struct is_map<std::unordered_map<std::string, T>> : std::true_type {};
template <class T>
struct is_maybe : std::false_type {};
template <class T>
struct is_maybe<std::optional<T>> : std::true_type {};
template <class T>
concept TupleLike = requires { std::tuple_size<T>::value; } && !is_fixed_list<T>::value;
template <class T>
concept List = is_vector<T>::value || is_fixed_list<T>::value;
template <class T>
concept Container = List<T> || is_map<T>::value || is_maybe<T>::value || TupleLike<T>;
template <class T>
concept Record =
    DeclaresFields<T> || (std::is_class_v<T> && std::is_aggregate_v<T> && !Container<T> &&
                          !std::is_base_of_v<Array, T> && std::default_initializable<T> &&
                          !HasFullBase<T> && num_fields<T>() <= max_fields);

// Calls visitor.operator()<Part>() for the types of the parts, and returns whether any, or all, are
// true.
template <class T, class Visitor>
constexpr bool any_part(Visitor visitor) {
  if constexpr (std::is_bounded_array_v<T>)
    return visitor.template operator()<std::remove_extent_t<T>>();
  else if constexpr (is_map<T>::value)
    return visitor.template operator()<typename T::mapped_type>();
  else if constexpr (List<T> || is_maybe<T>::value)
    return visitor.template operator()<typename T::value_type>();
  else if constexpr (TupleLike<T>)
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (visitor.template operator()<std::decay_t<std::tuple_element_t<i, T>>>() || ...);
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  else if constexpr (Record<T>)
    return [&]<class... Field>(std::type_identity<std::tuple<Field&...>>) {
      return (visitor.template operator()<Field>() || ...);
    }(std::type_identity<decltype(fields_of(std::declval<T&>()))>());
  else
    return false;
}

// Whether a value of the type can hold an Array. A recursive type is visited once.
template <class T, class... Around>
constexpr bool has_arrays() {
  if constexpr (std::is_base_of_v<Array, T>)
    return true;
  else if constexpr ((std::is_same_v<T, Around> || ...))
    return false;
  else
    return any_part<T>([]<class Part>() { return has_arrays<Part, T, Around...>(); });
}

// Types that can be compared and so be part of a structure; excludes views of memory owned
// elsewhere.
template <class T>
constexpr bool is_constant() {
  constexpr bool points = requires(const T& value) { *value; } || std::ranges::borrowed_range<T>;
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>)
    return true;
  else if constexpr (Container<T> || (Record<T> && !std::equality_comparable<T>))
    return !any_part<T>([]<class Part>() { return !is_constant<Part>(); });
  else if constexpr (requires { typename T::value_type; })  // a list is compared by its elements
    return !points && is_constant<typename T::value_type>() && std::equality_comparable<T>;
  else
    return !points && std::equality_comparable<T> && std::copyable<T>;
}

// Whether a value is a tree, or a part of one that holds no Array.
template <class T, class... Around>
constexpr bool is_part() {
  if constexpr (std::is_base_of_v<Array, T> || (std::is_same_v<T, Around> || ...))
    return true;
  else if constexpr (!has_arrays<T>())
    return is_constant<T>();
  else
    return !any_part<T>([]<class Part>() { return !is_part<Part, T, Around...>(); });
}
// Types that flatten takes apart; all others are constant.
template <class T>
concept Structured =
    has_arrays<T>() || TupleLike<T> || is_maybe<T>::value || std::is_bounded_array_v<T>;

// A range whose iteration order is the same for equal values.
template <class T>
concept Ordered = std::ranges::input_range<const T> && !requires { typename T::hasher; } &&
                  !std::is_same_v<T, std::vector<bool>>;

// Equality of constants. Floats, inside any container, are compared by bits, because programs
// distinguish -0 from 0 and a NaN equals itself.
template <class T>
bool same_constant(const T& a, const T& b) {
  auto all_of = [](const auto& x, const auto& y) {
    return std::equal(std::begin(x), std::end(x), std::begin(y), std::end(y),
                      [](const auto& p, const auto& q) { return same_constant(p, q); });
  };
  auto each = []<class X>(const X& x, const X& y) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (same_constant(std::get<i>(x), std::get<i>(y)) && ...);
    }(std::make_index_sequence<std::tuple_size_v<X>>());
  };
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  else if constexpr (is_complex_v<T>)
    return same_constant(a.real(), b.real()) && same_constant(a.imag(), b.imag());
  else if constexpr (Ordered<T>)
    return all_of(a, b);
  else if constexpr (is_map<T>::value)
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
             const auto other = b.find(entry.first);
             return other != b.end() && same_constant(entry.second, other->second);
           });
  else if constexpr (is_maybe<T>::value)
    return a.has_value() == b.has_value() && (!a || same_constant(*a, *b));
  else if constexpr (TupleLike<T>)
    return each(a, b);
  else if constexpr (Record<T>)
    if constexpr (!any_part<T>([]<class Part>() { return !is_constant<Part>(); }))
      return each(fields_of(a), fields_of(b));
    else
      return a == b;
  else
    return a == b;
}
template <class T>
std::string constant_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_arithmetic_v<T>)
    return number_text(double(value));
  else if constexpr (std::is_same_v<T, std::string>)
    return '"' + value + '"';
  else
    return "constant";
}

// "Weights", in any namespace.
template <class T>
std::string_view class_name() {
#if defined(__GNUC__)
  std::string_view text = __PRETTY_FUNCTION__;  // "... [with T = ns::Weights; ...]", "[T = ns::W]"
  text.remove_prefix(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of("<;]"));
  if (const std::size_t colon = text.rfind(':'); colon != text.npos) text.remove_prefix(colon + 1);
  return text;
#else
  return "struct";
#endif
}

}  // namespace detail

// The fields of a class by name, as its member plait_fields declares them.
template <class... Pairs>
constexpr auto fields(Pairs... pairs) {
  static_assert(sizeof...(Pairs) % 2 == 0, "plait: fields takes a name and a member, each in turn");
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    const std::tuple all(pairs...);
    return detail::FieldList<std::tuple_element_t<2 * i + 1, std::tuple<Pairs...>>...>{
        {std::string_view(std::get<2 * i>(all))...}, {std::get<2 * i + 1>(all)...}};
  }(std::make_index_sequence<sizeof...(Pairs) / 2>());
}

// A type whose values are trees: an Array, or a container or struct of trees that may hold other
// values too.
template <class T>
concept TreeType = (detail::Structured<T> && detail::is_part<T>()) ||
                   (detail::Record<T> && detail::is_constant<T>());

namespace detail {

template <class T>
TreeDef flatten_part(const T& value, Arrays& leaves);

template <class T>
bool compare_constants(const void* a, const void* b) {
  return same_constant(*static_cast<const T*>(a), *static_cast<const T*>(b));
}
template <class T>
TreeDef flatten_constant(const T& value) {
  return TreeDef::record(
      {constant_text(value), nullptr, std::make_shared<T>(value), &compare_constants<T>}, {}, {});
}

template <class T>
TreeDef flatten_map(const T& value, Arrays& leaves) {
  std::vector<const typename T::value_type*> items;
  for (const auto& item : value) items.push_back(&item);
  std::sort(items.begin(), items.end(), [](auto* a, auto* b) { return a->first < b->first; });
  std::vector<std::string> keys;
  std::vector<TreeDef> children;
  for (const auto* item : items) {
    keys.push_back(item->first);
    children.push_back(flatten_part(item->second, leaves));
  }
  return TreeDef::dict(std::move(keys), std::move(children));
}

template <class T>
TreeDef flatten_part(const T& value, Arrays& leaves) {
  if constexpr (std::is_base_of_v<Array, T>) {
    leaves.push_back(value);
    return TreeDef();
  } else if constexpr (!Structured<T>) {
    return flatten_constant(value);
  } else if constexpr (List<T>) {
    std::vector<TreeDef> children;
    for (const auto& part : value) children.push_back(flatten_part(part, leaves));
    return TreeDef::list(std::move(children));
  } else if constexpr (is_map<T>::value) {
    return flatten_map(value, leaves);
  } else if constexpr (is_maybe<T>::value) {
    return value ? flatten_part(*value, leaves) : TreeDef::none();
  } else {
    auto flatten_parts = [&](const auto&... parts) {
      std::vector<TreeDef> children;
      (children.push_back(flatten_part(parts, leaves)), ...);
      return children;
    };
    if constexpr (TupleLike<T>)
      return TreeDef::tuple(std::apply(flatten_parts, value));
    else
      return TreeDef::fields(class_name<T>(), field_names<T>(),
                             std::apply(flatten_parts, fields_of(value)));
  }
}

// Takes the leaves of a tree from the front of a list.
template <class T>
void unflatten_into(T& value, const TreeDef& structure, std::span<const Array>& leaves);

template <class T>
void unflatten_constant(T& value, const TreeDef& structure) {
  const TreeDef::Type& type = structure.type();
  if (type.same_aux != &compare_constants<T>)  // a function of the type, which identifies it
    throw_misfit(structure, "holds no value of that type");
  value = *static_cast<const T*>(type.aux.get());
}

template <class T>
void unflatten_fields(T& value, const TreeDef& structure, std::span<const Array>& leaves) {
  auto fields = fields_of(value);
  constexpr std::size_t count = std::tuple_size_v<decltype(fields)>;
  const std::vector<int> places = structure.places_of(field_names<T>(), count);
  std::array<std::span<const Array>, count> parts;  // of each child
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = std::size_t(structure.children()[i].num_leaves());
    if (size > leaves.size()) throw_misfit(structure, "has more arrays than there are");
    parts[i] = leaves.first(size);
    leaves = leaves.subspan(size);
  }
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (unflatten_into(std::get<i>(fields), structure.children()[std::size_t(places[i])],
                    parts[std::size_t(places[i])]),
     ...);
  }(std::make_index_sequence<count>());
}

template <class T>
void unflatten_into(T& value, const TreeDef& structure, std::span<const Array>& leaves) {
  using Kind = TreeDef::Kind;
  const std::vector<TreeDef>& children = structure.children();
  auto require = [&](bool good, const char* what) {
    if (!good) throw_misfit(structure, what);
  };
  const bool is_sequence = structure.kind() == Kind::list || structure.kind() == Kind::tuple;
  if constexpr (std::is_base_of_v<Array, T>) {
    require(structure.kind() == Kind::leaf && !leaves.empty(), "is no array");
    value = T(leaves.front());
    leaves = leaves.subspan(1);
  } else if constexpr (!Structured<T>) {
    unflatten_constant(value, structure);
  } else if constexpr (is_vector<T>::value) {
    require(is_sequence, "is no list");
    value.clear();
    for (const TreeDef& child : children) {
      typename T::value_type part{};
      unflatten_into(part, child, leaves);
      value.push_back(std::move(part));
    }
  } else if constexpr (is_fixed_list<T>::value) {
    require(is_sequence && children.size() == std::size(value), "is no list of that length");
    for (std::size_t i = 0; i < children.size(); ++i) unflatten_into(value[i], children[i], leaves);
  } else if constexpr (is_map<T>::value) {
    require(structure.kind() == Kind::dict, "is no map");
    value.clear();
    for (std::size_t i = 0; i < children.size(); ++i)
      unflatten_into(value[structure.keys()[i]], children[i], leaves);
  } else if constexpr (is_maybe<T>::value) {
    if (structure.kind() == Kind::none)
      value.reset();
    else
      unflatten_into(value.emplace(), structure, leaves);
  } else if constexpr (TupleLike<T>) {
    require((is_sequence || structure.kind() == Kind::record) &&
                children.size() == std::tuple_size_v<T>,
            "is no tuple of that length");
    std::size_t next = 0;
    std::apply([&](auto&... parts) { (unflatten_into(parts, children[next++], leaves), ...); },
               value);
  } else {
    unflatten_fields(value, structure, leaves);
  }
}

}  // namespace detail

// Appends the leaves of a value and returns its structure.
template <class T>
TreeDef flatten(const T& value, Arrays& leaves) {
  static_assert(TreeType<T>,
                "plait: this type is no tree: use Array, a container of such, or a struct of such "
                "(of up to 32 fields; a class with a base class declares plait_fields)");
  if constexpr (TreeType<T>)
    return detail::flatten_part(value, leaves);
  else
    return TreeDef();
}

// The value of this structure, taking leaves from the front of the list. TreeError when T cannot
// hold it.
template <class T>
T unflatten(const TreeDef& structure, std::span<const Array>& leaves) {
  T value{};
  if constexpr (TreeType<T>) detail::unflatten_into(value, structure, leaves);
  return value;
}

template <class T>
T unflatten(const TreeDef& structure, const Arrays& leaves) {
  std::span<const Array> rest(leaves);
  return unflatten<T>(structure, rest);
}

}  // namespace plait
