// The transforms over C++ functions: free functions, lambdas, function objects, over Arrays and
// trees of Arrays (values.h). Each takes a function and returns a function, so they nest:
//
//   struct Weights { plait::Array w, b; };
//   plait::Array loss(const Weights& p, const plait::Array& x, const plait::Array& y);
//   auto step = plait::jit(plait::value_and_grad(loss));
//   std::pair<Array, Weights> result = step(weights, x, y);
//
// Where Python has argnums, C++ has template arguments: grad<0, 2>(f) returns a std::tuple.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/trace/devices.h>
#include <plait/trace/values.h>
#include <plait/trace/wait.h>
#include <plait/transforms/transforms.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace plait {
// The result of a transform: a function that errors locate by the line of its call.
template <class Result, class... A>
class Transformed {
 public:
  using Signature = Result(A...);
  template <class F>
    requires std::is_invocable_r_v<Result, const F&, const A&...>
  explicit Transformed(F f) : function_(std::move(f)) {}
  Result operator()(const A&... arguments, Here here = PLAIT_HERE) const {
    here.remember();
    return function_(arguments...);
  }

 private:
  std::function<Result(const A&...)> function_;
};

namespace detail {

template <class A>
using ArgumentOf = std::conditional_t<std::is_base_of_v<Array, std::decay_t<A>>, Array,
                                      std::decay_t<A>>;  // an Operand becomes an Array
template <class T>
struct signature;
template <class R, class... A>
struct signature<std::function<R(A...)>> {
  using Result = ArgumentOf<R>;
  using Arguments = std::tuple<ArgumentOf<A>...>;
  template <template <class, class...> class Template>
  using As = Template<Result, ArgumentOf<A>...>;
  // A function with the same leading arguments and further ones.
  template <class Out, class... More>
  using Returning = Transformed<Out, ArgumentOf<A>..., More...>;
};
template <class F>
concept SaysSignature = requires { typename F::Signature; };
template <class F>
concept HasSignature =
    SaysSignature<F> || requires { std::function{std::declval<std::decay_t<F>>()}; };
template <class F>
auto signature_type() {
  if constexpr (SaysSignature<F>)
    return std::type_identity<std::function<typename F::Signature>>();
  else
    return std::type_identity<decltype(std::function{std::declval<std::decay_t<F>>()})>();
}
template <class F>
using signature_of = signature<typename decltype(signature_type<F>())::type>;
template <class F>
using result_of = typename signature_of<F>::Result;
template <class F>
using arguments_of = typename signature_of<F>::Arguments;

// The result of a transform that refuses its function, so that the compiler reports no further
// errors.
struct Refused {
  template <class... A>
  Refused operator()(const A&...) const;
  template <class T>
  operator T() const;
};

template <class A>
constexpr bool is_argument() {
  static_assert(!std::is_arithmetic_v<A>,
                "plait: an argument of a transformed function is a number: take it as `const "
                "plait::Array&`, or, where each value is a program of its own, within a struct");
  static_assert(std::is_arithmetic_v<A> || TreeType<A>,
                "plait: an argument of a transformed function is no tree: use plait::Array, a "
                "container of such, or a struct of such (up to 32 fields; a class with private "
                "members or a base class declares plait_fields)");
  return TreeType<A>;
}
template <class R>
constexpr bool is_result() {
  static_assert(!std::is_arithmetic_v<R> && !std::is_void_v<R>,
                "plait: a transformed function returns no array: return a plait::Array, or a "
                "container or struct of such");
  static_assert(std::is_arithmetic_v<R> || std::is_void_v<R> || TreeType<R>,
                "plait: the result of a transformed function is no tree: use plait::Array, a "
                "container of such, or a struct of such (up to 32 fields; a class with private "
                "members or a base class declares plait_fields)");
  return TreeType<R>;
}
// Whether transforms accept a function; if not, one compile error says why.
template <class F>
constexpr bool is_transformable() {
  if constexpr (std::is_same_v<F, Refused>) {
    return false;
  } else {
    static_assert(HasSignature<F>,
                  "plait: the types of this function's arguments are not known, as those of a "
                  "generic lambda, of overloads and of std::bind_front: write a lambda that says "
                  "them, [](const plait::Array& x) { ... }");
    if constexpr (HasSignature<F>)
      return []<class... A>(std::type_identity<std::tuple<A...>>) {
        return (is_argument<A>() && ... && is_result<result_of<F>>());
      }(std::type_identity<arguments_of<F>>());
    else
      return false;
  }
}
template <class F>
concept Transformable = is_transformable<F>();

// Calls f with arguments built from leaves, and returns the leaves of its result.
template <class F>
Arrays call_flat(const F& f, std::span<const TreeDef> structures, std::span<const Array> leaves,
                 TreeDef& result) {
  using Arguments = arguments_of<F>;
  const Arguments arguments = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return Arguments{unflatten<std::tuple_element_t<i, Arguments>>(structures[i], leaves)...};
  }(std::make_index_sequence<std::tuple_size_v<Arguments>>());
  Arrays outputs;
  result = flatten<result_of<F>>(std::apply(f, arguments), outputs);
  return outputs;
}

// A flattened call of a C++ function: inputs with their structures, and a flat function that
// records the structure of the result of its last call.
template <class F>
struct Flat {
  using Arguments = arguments_of<F>;
  std::vector<TreeDef> structures;
  Arrays inputs;
  std::vector<int> argument_of;  // of each input
  std::shared_ptr<TreeDef> result = std::make_shared<TreeDef>();
  Function function;

  template <class... A>
  explicit Flat(const F& f, const A&... arguments) {
    int index = 0;
    auto add = [&](const auto& argument) {
      structures.push_back(flatten(argument, inputs));
      argument_of.resize(inputs.size(), index++);
    };
    (add(arguments), ...);
    function = [f, structures = structures, result = result](std::span<const Array> leaves) {
      return call_flat(f, structures, leaves, *result);
    };
  }
  template <std::size_t... argnums>
  std::vector<bool> wrt() const {
    std::vector<bool> flags;
    for (int argument : argument_of) flags.push_back(((argument == int(argnums)) || ...));
    return flags;
  }
};

// The leaves of the arguments argnums, as one value or a tuple.
template <class F, std::size_t... argnums>
auto gather_arguments(const Flat<F>& flat, std::span<const Array> leaves) {
  using Arguments = arguments_of<F>;
  if constexpr (sizeof...(argnums) == 1)
    return unflatten<std::tuple_element_t<(argnums, ...), Arguments>>(
        flat.structures[(argnums, ...)], leaves);
  else
    return std::tuple{
        unflatten<std::tuple_element_t<argnums, Arguments>>(flat.structures[argnums], leaves)...};
}
template <class F, std::size_t... argnums>
using Gradient = decltype(gather_arguments<F, argnums...>(std::declval<const Flat<F>&>(),
                                                          std::declval<std::span<const Array>>()));

// The positions in argnums; empty means the first argument.
template <std::size_t... argnums>
struct Argnums {
  template <class F>
  using Of = Gradient<F, argnums...>;
  template <class F>
  static auto gather(const Flat<F>& flat, std::span<const Array> leaves) {
    return gather_arguments<F, argnums...>(flat, leaves);
  }
  template <class F>
  static std::vector<bool> wrt(const Flat<F>& flat) {
    return flat.template wrt<argnums...>();
  }
};
template <>
struct Argnums<> : Argnums<0> {};

}  // namespace detail

// A value for each part of a tree: one for the whole tree, or a list for its parts.
template <class Value>
class PrefixTree {
 public:
  template <class V>
    requires(std::is_convertible_v<V, Value> && !std::is_same_v<std::remove_cvref_t<V>, PrefixTree>)
  PrefixTree(V&& value) : value_(std::forward<V>(value)) {}                               // NOLINT
  PrefixTree(std::initializer_list<PrefixTree> parts) : parts_(parts), is_list_(true) {}  // NOLINT
  bool is_list() const { return is_list_; }
  // One value for each leaf of structure; a list that does not fit is a TreeError, which begins
  // with what.
  void spread(const std::string& what, const TreeDef& structure, std::vector<Value>& values) const {
    if (!is_list_) {
      values.insert(values.end(), structure.num_leaves(), value_);
      return;
    }
    if (parts_.size() != structure.children().size())
      throw TreeError(what + " does not fit: a list of " + std::to_string(parts_.size()) +
                          " for the " + std::to_string(structure.children().size()) + " parts of " +
                          structure.to_string(),
                      "give one value for all of it, or one for each part");
    for (std::size_t i = 0; i < parts_.size(); ++i)
      parts_[i].spread(what, structure.children()[i], values);
  }

 private:
  Value value_;
  std::vector<PrefixTree> parts_;
  bool is_list_ = false;
};

// The batch axis of each argument or output: an axis, std::nullopt (not mapped), or a list for the
// parts.
using AxisTree = PrefixTree<std::optional<int>>;

// The gradient of a real scalar function with respect to arguments argnums (the first by default),
// real or complex: df/dx - i df/dy for x + iy. With {.holomorphic = true} it is the derivative of a
// holomorphic function.
template <std::size_t... argnums, class F>
auto grad(F f, flat::GradOptions options = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Args = detail::Argnums<argnums...>;
    using Result = typename Args::template Of<F>;
    return typename detail::signature_of<F>::template Returning<Result>(
        [f, options](const auto&... arguments) -> Result {
          TransformScope scope("grad", "");
          const detail::Flat<F> flat(f, arguments...);
          return Args::gather(
              flat,
              flat::value_and_grad(flat.function, flat.inputs, Args::wrt(flat), options).gradients);
        });
  }
}

// The value and the gradient. f may return a pair of the value and auxiliary results.
template <std::size_t... argnums, class F>
auto value_and_grad(F f, flat::GradOptions options = {}) {
  options.transform = "value_and_grad";
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Args = detail::Argnums<argnums...>;
    using Result = std::pair<detail::result_of<F>, typename Args::template Of<F>>;
    return typename detail::signature_of<F>::template Returning<Result>(
        [f, options](const auto&... arguments) -> Result {
          TransformScope scope("value_and_grad", "");
          const detail::Flat<F> flat(f, arguments...);
          flat::ValueAndGrad result =
              flat::value_and_grad(flat.function, flat.inputs, Args::wrt(flat), options);
          return {unflatten<detail::result_of<F>>(*flat.result, result.outputs),
                  Args::gather(flat, result.gradients)};
        });
  }
}

// The outputs and their tangents: jvp(f)(primals tuple, tangents tuple).
template <class F>
auto jvp(F f) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Arguments = detail::arguments_of<F>;
    using Result = detail::result_of<F>;
    return Transformed<std::pair<Result, Result>, Arguments, Arguments>(
        [f](const Arguments& primals, const Arguments& directions) {
          TransformScope scope("jvp", "");
          const auto flat = std::apply(
              [&](const auto&... arguments) { return detail::Flat<F>(f, arguments...); }, primals);
          Arrays given;
          const TreeDef structure = flatten(directions, given);
          const Tangents tangents = flat::fitting(
              "jvp", "tangent", flat.inputs, TreeDef::tuple(flat.structures), given, structure);
          const Differentiated result = flat::jvp(flat.function, flat.inputs, tangents);
          Arrays pushed;
          for (const Tangent& tangent : result.tangents) pushed.push_back(tangent.instantiate());
          return std::pair{unflatten<Result>(*flat.result, result.outputs),
                           unflatten<Result>(*flat.result, pushed)};
        });
  }
}

// The outputs, and the function from their cotangents to the cotangents of all arguments, as a
// tuple.
template <class F, class... A>
auto vjp(F f, const A&... arguments) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Arguments = detail::arguments_of<F>;
    using Result = detail::result_of<F>;
    const Arguments values(arguments...);
    const auto flat = std::apply(
        [&](const auto&... parts) { return std::make_shared<detail::Flat<F>>(f, parts...); },
        values);
    const flat::Pullback pullback =
        flat::vjp(flat->function, flat->inputs, std::vector<bool>(flat->inputs.size(), true));
    std::function<Arguments(const Result&)> pull =
        [flat, outputs = pullback.outputs, structure = *flat->result,
         pull = pullback.pull](const Result& cotangents) {
          Arrays given, results;
          const TreeDef of_given = flatten(cotangents, given);
          for (const Tangent& tangent :
               pull(flat::fitting("vjp", "cotangent", outputs, structure, given, of_given)))
            results.push_back(tangent.instantiate());
          return unflatten<Arguments>(TreeDef::tuple(flat->structures), results);
        };
    return std::pair{unflatten<Result>(*flat->result, pullback.outputs), pull};
  }
}

// The outputs, and their derivative at these arguments: a linear function from tangents of the
// arguments to tangents of the result, which recomputes nothing of f.
template <class F, class... A>
auto linearize(F f, const A&... arguments) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Arguments = detail::arguments_of<F>;
    using Result = detail::result_of<F>;
    const auto flat = std::apply(
        [&](const auto&... parts) { return std::make_shared<detail::Flat<F>>(f, parts...); },
        Arguments(arguments...));
    const auto map = std::make_shared<flat::LinearMap>(flat::linearize(
        flat->function, flat->inputs, std::vector<bool>(flat->inputs.size(), true)));
    auto push = typename detail::signature_of<F>::template Returning<Result>(
        [flat, map](const auto&... directions) {
          Arrays given, operands, tangents;
          const TreeDef structure = TreeDef::tuple({flatten(directions, given)...});
          const Tangents fitted = flat::fitting("linearize", "tangent", flat->inputs,
                                                TreeDef::tuple(flat->structures), given, structure);
          for (int input : map->inputs)
            operands.push_back(fitted[std::size_t(input)].instantiate());
          operands.insert(operands.end(), map->residuals.begin(), map->residuals.end());
          const Arrays pushed = eval_jaxpr(map->jaxpr, operands);
          for (const Array& output : map->outputs)
            tangents.push_back(lax::zeros_like(tangent_aval(output.aval())));
          for (std::size_t i = 0; i < pushed.size(); ++i)
            tangents[map->outputs_with_tangent[i]] = pushed[i];
          return unflatten<Result>(*flat->result, tangents);
        });
    return std::pair{unflatten<Result>(*flat->result, map->outputs), push};
  }
}

namespace detail {

using Jacobian = flat::Jacobian (*)(const Function&, std::span<const Array>,
                                    const std::vector<bool>&, const flat::JacobianOptions&);

// The Jacobian of an Array is shaped like the argument; of another result, one for each output
// leaf.
template <std::size_t argnum, class F>
auto jacobian(F f, Jacobian transform, const char* name, flat::JacobianOptions options) {
  using One = Gradient<F, argnum>;
  using Result = std::conditional_t<std::is_base_of_v<Array, result_of<F>>, One, std::vector<One>>;
  return
      typename signature_of<F>::template Returning<Result>([=](const auto&... arguments) -> Result {
        TransformScope scope(name, "");
        const Flat<F> flat(f, arguments...);
        const Arrays all =
            transform(flat.function, flat.inputs, flat.template wrt<argnum>(), options).derivatives;
        std::span<const Array> leaves(all);
        if constexpr (std::is_base_of_v<Array, result_of<F>>)
          return unflatten<One>(flat.structures[argnum], leaves);
        else {
          Result results;
          while (!leaves.empty())
            results.push_back(unflatten<One>(flat.structures[argnum], leaves));
          return results;
        }
      });
}

}  // namespace detail

// Derivatives with respect to argument argnum, by forward mode, by reverse mode, and of second
// order (forward over reverse). Options are {.chunk, .holomorphic}.
template <std::size_t argnum = 0, class F>
auto jacfwd(F f, flat::JacobianOptions options = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    return detail::jacobian<argnum>(std::move(f), flat::jacfwd, "jacfwd", std::move(options));
  }
}
template <std::size_t argnum = 0, class F>
auto jacrev(F f, flat::JacobianOptions options = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    return detail::jacobian<argnum>(std::move(f), flat::jacrev, "jacrev", std::move(options));
  }
}
template <std::size_t argnum = 0, class F>
auto hessian(F f, flat::JacobianOptions options = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    return jacfwd<argnum>(jacrev<argnum>(std::move(f), options), options);
  }
}

// The product of the Hessian of a scalar function of one argument with a direction, without forming
// the Hessian.
template <class F>
auto hvp(F f) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using X = std::tuple_element_t<0, detail::arguments_of<F>>;
    return Transformed<X, X, X>([f](const X& x, const X& direction) {
      return jvp(grad(f))(std::tuple<X>(x), std::tuple<X>(direction)).second;
    });
  }
}

// f applied to every example of a batch, which psum and its kind know by the name of the axis
// (primitives/collectives.h).
template <class F>
auto vmap(F f, AxisTree in_axes = 0, AxisTree out_axes = 0, std::optional<std::int64_t> chunk = {},
          std::string axis_name = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Result = detail::result_of<F>;
    return typename detail::signature_of<F>::template Returning<Result>(
        [=](const auto&... arguments) -> Result {
          TransformScope scope("vmap", "");
          const detail::Flat<F> flat(f, arguments...);
          flat::VmapOptions options;
          options.chunk = chunk;
          options.axis_name = axis_name;
          in_axes.spread("vmap: in_axes", TreeDef::tuple(flat.structures), options.in_dims);
          options.out_dims = [&](std::size_t) {
            std::vector<std::optional<int>> axes;
            out_axes.spread("vmap: out_axes", *flat.result, axes);
            return axes;
          };
          return unflatten<Result>(*flat.result, flat::vmap(flat.function, flat.inputs, options));
        });
  }
}

struct JitOptions {
  std::string name = "f";  // its name in errors and programs
  // Whether generated loops are compiled before the first call instead of later.
  bool wait = false;
  // Where it runs, whatever the current device is. What moves by itself goes there at each call:
  // numbers, and arrays made of numbers alone or captured. BackendError for an argument that lies
  // elsewhere. Absent: where the arguments lie.
  std::optional<Device> device = {};
};

namespace detail {

// While it lives, a device of JitOptions is the current one, and the arguments of a call lie there.
class JitDevice {
 public:
  JitDevice(const JitOptions& options, std::span<Array> arguments) {
    if (options.device) enter(options, arguments);
  }

 private:
  void enter(const JitOptions& options, std::span<Array> arguments);
  std::optional<DeviceScope> scope_;
};

}  // namespace detail

// The result of jit: f traced once per signature and run as one compiled executable.
template <class Result, class... A>
class Jitted {
 public:
  template <class F>
  Jitted(F f, JitOptions options)
      : jit_(flat::Jit::Structured([f = std::move(f)](std::span<const TreeDef> structures,
                                                      std::span<const Array> leaves,
                                                      TreeDef& result) {
               const std::array<TreeDef, sizeof...(A)> arrays{};
               if constexpr (takes_arrays) structures = arrays;
               return detail::call_flat(f, structures, leaves, result);
             }),
             options.name),
        options_(std::move(options)) {}

  using Signature = Result(A...);

  Result operator()(const A&... arguments, Here here = PLAIT_HERE) const {
    here.remember();
    Call call(arguments...);
    const detail::JitDevice there(options_, call.leaves);
    const auto waiting = this->waiting();
    const flat::Jit::EntryPointer entry = jit_.entry(call.leaves, call.structures);
    Arrays outputs = flat::Jit::call(*entry, call.leaves);
    if constexpr (std::is_same_v<Result, Array>)
      return std::move(outputs[0]);
    else
      return unflatten<Result>(entry->result, outputs);
  }

  // The same with a result written over the values of the arrays in `result`, in their memory: a
  // call allocates no arrays. An empty Array gets memory, and a result of only empty arrays, such
  // as Result(), may have another structure, for the first call. Nothing else may hold these
  // arrays. Errors as in trace/run_into.h, and TreeError for a result of another structure.
  void run_into(Result& result, const A&... arguments, Here here = PLAIT_HERE) const {
    here.remember();
    Call call(arguments...);
    const detail::JitDevice there(options_, call.leaves);
    const auto waiting = this->waiting();
    const flat::Jit::EntryPointer entry = jit_.entry(call.leaves, call.structures);
    if constexpr (std::is_same_v<Result, Array>) {
      jit_.run_into(*entry, call.leaves, std::span(&result, 1));
    } else {
      Arrays outputs;
      const TreeDef structure = flatten(result, outputs);
      if (!(structure == entry->result)) {
        if (std::any_of(outputs.begin(), outputs.end(), [](auto& x) { return x.is_valid(); }))
          throw TreeError("run_into: the result that was given is " + structure.to_string() +
                              ", and the function returns " + entry->result.to_string(),
                          "give a result of that structure, or one whose arrays hold nothing");
        Arrays empty(std::size_t(entry->result.num_leaves()));
        jit_.run_into(*entry, call.leaves, empty);
        result = unflatten<Result>(entry->result, empty);
        return;
      }
      result = Result();  // so that outputs are the only owners; restored in any case
      try {
        jit_.run_into(*entry, call.leaves, outputs);
      } catch (...) {
        result = unflatten<Result>(structure, outputs);
        throw;
      }
      result = unflatten<Result>(entry->result, outputs);
    }
  }

  // Compiles it for such arguments now, by every backend, without running it: later calls run at
  // full speed.
  void compile_for(const A&... arguments) const {
    Call call(arguments...);
    const detail::JitDevice there(options_, call.leaves);
    detail::compile_calls(
        [&](std::span<const Array> leaves) {
          return flat::Jit::call(*jit_.entry(leaves, call.structures), leaves);
        },
        call.leaves);
  }

 private:
  static constexpr bool takes_arrays = (std::is_base_of_v<Array, A> && ...);

  // The arguments of a call, flattened. Arrays have but one structure, which is left out, so that
  // dispatch neither allocates for it nor compares it.
  struct Call {
    std::conditional_t<takes_arrays, std::array<Array, sizeof...(A)>, Arrays> leaves;
    std::array<TreeDef, takes_arrays ? 0 : sizeof...(A)> structures;

    explicit Call(const A&... arguments) {
      if constexpr (takes_arrays)
        leaves = {arguments...};
      else
        structures = {flatten(arguments, leaves)...};
    }
  };

  std::optional<Waiting> waiting() const {
    return options_.wait ? std::optional<Waiting>(std::in_place) : std::nullopt;
  }

  flat::Jit jit_;
  JitOptions options_;
};

// f traced once per signature and run as one compiled executable. Arrays that a lambda captures are
// frozen.
template <class F>
auto jit(F f, JitOptions options = {}) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    return typename detail::signature_of<F>::template As<Jitted>(std::move(f), std::move(options));
  }
}
template <class F, std::convertible_to<std::string> Name>
auto jit(F f, Name name) {
  return jit(std::move(f), JitOptions{.name = std::move(name)});
}

// f with rematerialisation: its derivatives recompute intermediate results instead of keeping them,
// except those that the policy keeps.
template <class F>
auto checkpoint(F f, Callable policy = flat::nothing_saveable()) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Result = detail::result_of<F>;
    return typename detail::signature_of<F>::template Returning<Result>(
        [=](const auto&... arguments) -> Result {
          const detail::Flat<F> flat(f, arguments...);
          return unflatten<Result>(*flat.result,
                                   flat::checkpoint(flat.function, flat.inputs, policy, "f"));
        });
  }
}

}  // namespace plait
