// The catalogue of public functions: the name, signature, documentation and C++ function of each,
// once for both languages. Python's plait.numpy, plait.lax, plait.nn, plait.random, plait.optim and
// plait.tree are made by a loop over it.
//
//   static const auto sum_function =
//       function("numpy", "sum(a, axis=None, dtype=None, keepdims=False)",
//                "Sum of the elements over axes. ...", &numpy::sum);
//
// The signature is Python's text. `*` starts keyword-only parameters. `out=None!` is a parameter
// that programs for NumPy or JAX pass and the C++ function does not have: its value may only ask
// for what plait does anyway. Types come from the C++ function:
//
//   Operand, Array              an array, or a number
//   std::optional<Array>        or None
//   std::vector<Array>          a sequence of arrays (a parameter written *arrays collects the
//                               positional ones)
//   Tree<Array>                 any tree of arrays
//   Shape                       an integer, a size, or a sequence of them
//   std::vector<int>            axes: an integer, or a sequence; None where it is optional
//   DType, bool, int, std::int64_t, double, std::string, and optionals of them
//   Argument                    anything
//   a type T of its own         where T::from_argument(argument) is a T or nothing, and
//                               T::argument_type says what it takes (arguments.h)
//   Function                    a function of arrays
//
// Results: Array, std::vector<Array> (a tuple), std::pair and std::tuple of results, Tree<Array>,
// bool, integers, floats, Shape, DType.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/tree.h>
#include <plait/trace/devices.h>
#include <plait/trace/trace.h>

#include <functional>
#include <tuple>
#include <variant>

namespace plait {

// An argument on its way from one language to the other.
struct Argument {
  using List = std::vector<Argument>;
  // monostate is None. A list is a Python list or tuple.
  std::variant<std::monostate, bool, std::int64_t, double, complex128, std::string, DType, Dim,
               Array, Tree<Array>, List, Function>
      value;
  Argument() = default;
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Argument>)
  Argument(T&& given) : value(std::forward<T>(given)) {}  // NOLINT
  bool is_none() const { return value.index() == 0; }
};

// What a parameter takes, where a caller must know before converting.
enum class ParameterKind { array, arrays, tree, dtype, function, other };

struct Parameter {
  std::string name;
  ParameterKind kind = ParameterKind::other;
  std::string type;  // for documentation: "array", "int or sequence of int"
  bool keyword_only = false, variadic = false;
  bool accepted = false;             // for NumPy's sake: the C++ function does not have it
  std::optional<Argument> fallback;  // the default
  std::string fallback_text;         // as written
};

struct FunctionInfo {
  std::string module, name, signature, doc, result_type;
  std::vector<Parameter> parameters;
  std::function<Argument(std::span<const Argument>)> call;  // one argument for each parameter
};

// Every function, in order of module and name. Lookup by module and name gives nullptr when absent.
std::vector<const FunctionInfo*> all_functions();
const FunctionInfo* find_function(std::string_view module, std::string_view name);

namespace detail {

[[noreturn]] void throw_argument(const FunctionInfo& info, std::size_t index,
                                 const Argument& argument, const char* wanted);
FunctionInfo& add_function(std::string module, std::string signature, std::string doc);
// The indices of the parameters that the C++ function has; InternalError unless there are count of
// them.
std::vector<std::size_t> taken_parameters(const FunctionInfo& info, std::size_t count);
// What accepted parameters ask for: a device, for the result. Throws when they ask for something
// that plait does not do.
class Accepted {
 public:
  Accepted(const FunctionInfo& info, std::span<const Argument> arguments);
  Argument placed(Argument result) const;

 private:
  std::optional<DeviceScope> scope_;
};

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_pair : std::false_type {};
template <class A, class B>
struct is_pair<std::pair<A, B>> : std::true_type {};
template <class T>
struct is_tuple : std::false_type {};
template <class... T>
struct is_tuple<std::tuple<T...>> : std::true_type {};

std::optional<Array> as_array(const Argument& argument);
std::optional<std::int64_t> as_integer(const Argument& argument);
std::optional<double> as_double(const Argument& argument);
std::optional<std::vector<int>> as_ints(const Argument& argument);
std::optional<Shape> as_shape(const Argument& argument);
std::optional<Arrays> as_arrays(const Argument& argument);

template <class T>
T convert(const FunctionInfo& info, std::size_t index, const Argument& argument) {
  auto need = [&](auto&& converted, const char* wanted) {
    if (!converted) throw_argument(info, index, argument, wanted);
    return *std::move(converted);
  };
  if constexpr (requires { T::from_argument(argument); }) {
    return need(T::from_argument(argument), T::argument_type);
  } else if constexpr (is_optional<T>::value) {
    if (argument.is_none()) return std::nullopt;
    return convert<typename T::value_type>(info, index, argument);
  } else if constexpr (std::is_base_of_v<Array, T>) {
    return T(need(as_array(argument), "an array"));
  } else if constexpr (std::is_base_of_v<Arrays, T>) {
    return T(need(as_arrays(argument), "a sequence of arrays"));
  } else if constexpr (std::is_same_v<T, Tree<Array>>) {
    if (const auto* tree = std::get_if<Tree<Array>>(&argument.value)) return *tree;
    return {TreeDef(), {need(as_array(argument), "a tree of arrays")}};
  } else if constexpr (std::is_same_v<T, Shape>) {
    return need(as_shape(argument), "an integer or a sequence of integers");
  } else if constexpr (std::is_same_v<T, std::vector<int>>) {
    return need(as_ints(argument), "an integer or a sequence of integers");
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const bool* flag = std::get_if<bool>(&argument.value)) return *flag;
    throw_argument(info, index, argument, "True or False");
  } else if constexpr (std::is_integral_v<T>) {
    const std::int64_t value = need(as_integer(argument), "an integer");
    if constexpr (std::is_same_v<T, int>)
      return to_ints(Shape{Dim(value)})[0];
    else
      return T(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return T(need(as_double(argument), "a number"));
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (const auto* text = std::get_if<std::string>(&argument.value)) return *text;
    throw_argument(info, index, argument, "a string");
  } else if constexpr (std::is_same_v<T, DType>) {
    if (const DType* dtype = std::get_if<DType>(&argument.value)) return *dtype;
    throw_argument(info, index, argument, "a dtype");
  } else if constexpr (std::is_same_v<T, Function>) {
    if (const auto* function = std::get_if<Function>(&argument.value)) return *function;
    throw_argument(info, index, argument, "a function");
  } else if constexpr (std::is_same_v<T, Dim>) {
    if (const Dim* dim = std::get_if<Dim>(&argument.value)) return *dim;
    return Dim(need(as_integer(argument), "a size"));
  } else {
    static_assert(std::is_same_v<T, Argument>,
                  "a catalogued function has a parameter of an unknown type");
    return argument;
  }
}

template <class T>
Argument give(T&& result) {
  using R = std::decay_t<T>;
  if constexpr (std::is_same_v<R, Argument>)
    return result;
  else if constexpr (is_optional<R>::value)
    return result ? give(*std::forward<T>(result)) : Argument();
  else if constexpr (std::is_base_of_v<Array, R>)
    return Argument(Array(std::forward<T>(result)));
  else if constexpr (is_pair<R>::value || is_tuple<R>::value)
    return std::apply([](auto&&... parts) { return Argument(Argument::List{give(parts)...}); },
                      result);
  else if constexpr (std::is_same_v<R, Arrays> || std::is_same_v<R, Shape> ||
                     std::is_same_v<R, std::vector<int>> ||
                     std::is_same_v<R, std::vector<std::int64_t>>) {
    Argument::List list;
    for (const auto& part : result) list.push_back(give(part));
    return Argument(std::move(list));
  } else if constexpr (std::is_same_v<R, Dim>)
    return result.is_constant() ? Argument(result.constant()) : Argument(result);
  else if constexpr (std::is_same_v<R, bool>)
    return Argument(result);
  else if constexpr (std::is_integral_v<R>)
    return Argument(std::int64_t(result));
  else if constexpr (std::is_floating_point_v<R>)
    return Argument(double(result));
  else
    return Argument(std::forward<T>(result));
}

template <class T>
constexpr ParameterKind kind_of() {
  if constexpr (is_optional<T>::value)
    return kind_of<typename T::value_type>();
  else if constexpr (std::is_base_of_v<Array, T>)
    return ParameterKind::array;
  else if constexpr (std::is_base_of_v<Arrays, T>)
    return ParameterKind::arrays;
  else if constexpr (std::is_same_v<T, Tree<Array>>)
    return ParameterKind::tree;
  else if constexpr (std::is_same_v<T, DType>)
    return ParameterKind::dtype;
  else if constexpr (std::is_same_v<T, Function> || requires { T::takes_function; })
    return ParameterKind::function;
  else
    return ParameterKind::other;
}
template <class T>
std::string type_name() {
  if constexpr (requires { T::argument_type; })
    return T::argument_type;
  else if constexpr (is_optional<T>::value)
    return type_name<typename T::value_type>() + " or None";
  else if constexpr (std::is_base_of_v<Array, T>)
    return "array";
  else if constexpr (std::is_base_of_v<Arrays, T>)
    return "sequence of array";
  else if constexpr (std::is_same_v<T, Tree<Array>>)
    return "tree";
  else if constexpr (std::is_same_v<T, Shape>)
    return "int or sequence of int";
  else if constexpr (std::is_same_v<T, std::vector<int>>)
    return "int or sequence of int";
  else if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_integral_v<T>)
    return "int";
  else if constexpr (std::is_floating_point_v<T>)
    return "float";
  else if constexpr (std::is_same_v<T, std::string>)
    return "str";
  else if constexpr (std::is_same_v<T, DType>)
    return "dtype";
  else if constexpr (std::is_same_v<T, Dim>)
    return "int";
  else if constexpr (std::is_same_v<T, Function>)
    return "function";
  else if constexpr (is_pair<T>::value || is_tuple<T>::value)
    return "tuple";
  else
    return "object";
}

}  // namespace detail

// Adds a function to the catalogue; a signature that does not fit the C++ function is an
// InternalError when the library is loaded.
template <class R, class... A>
const FunctionInfo* function(const char* module, const char* signature, const char* doc,
                             R (*target)(A...)) {
  FunctionInfo& info = detail::add_function(module, signature, doc);
  const ParameterKind kinds[] = {detail::kind_of<std::decay_t<A>>()..., ParameterKind::other};
  const std::string types[] = {detail::type_name<std::decay_t<A>>()..., ""};
  std::vector<std::size_t> taken = detail::taken_parameters(info, sizeof...(A));
  for (std::size_t i = 0; i < sizeof...(A); ++i) {
    info.parameters[taken[i]].kind = kinds[i];
    info.parameters[taken[i]].type = types[i];
  }
  info.result_type = detail::type_name<std::decay_t<R>>();
  const FunctionInfo* stable = &info;
  info.call = [target, stable, taken = std::move(taken)](std::span<const Argument> arguments) {
    std::optional<detail::Accepted> accepted;
    if (arguments.size() != sizeof...(A)) accepted.emplace(*stable, arguments);
    Argument result = [&]<std::size_t... i>(std::index_sequence<i...>) {
      return detail::give(
          target(detail::convert<std::decay_t<A>>(*stable, taken[i], arguments[taken[i]])...));
    }(std::index_sequence_for<A...>{});
    return accepted ? accepted->placed(std::move(result)) : result;
  };
  return stable;
}

}  // namespace plait
