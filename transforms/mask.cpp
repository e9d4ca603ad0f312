// mask: a function of named sizes runs on arrays padded to fixed sizes. It is traced with its sizes
// open, and becomes one `masked` equation around that program. The rules of masked are in
// masked.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/size_facts.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/trace/multiples.h>
#include <plait/trace/varying.h>
#include <plait/transforms/masked.h>
#include <plait/transforms/specs.h>

#include <deque>
#include <mutex>

namespace plait {
namespace {

// The first of equal programs, so that what is memoized on it is found again. Bounded.
Jaxpr interned(const Jaxpr& jaxpr) {
  constexpr std::size_t limit = 256;
  static std::mutex mutex;
  static auto* seen = new std::deque<Jaxpr>;  // most recent first
  std::lock_guard lock(mutex);
  for (auto at = seen->begin(); at != seen->end(); ++at)
    if (*at == jaxpr) {
      std::rotate(seen->begin(), at, at + 1);
      return seen->front();
    }
  seen->push_front(jaxpr);
  if (seen->size() > limit) seen->pop_back();
  return jaxpr;
}

std::string list_of(std::span<const Dim> sizes) {
  std::string text;
  for (Dim size : sizes) text += (text.empty() ? "" : ", ") + size.to_string();
  return text.empty() ? "none" : text;
}

// The operand for a size that the caller gives, checked as far as its value is known.
Array size_operand(const std::string& name, const Array& value, Dim bound) {
  if (value.ndim() != 0 || !is_integer(value.dtype()))
    throw ValueError(
        "mask: the size " + name + " is " + value.aval().to_string() + ", and should be an integer",
        value.ndim() == 1 ? "for an array of lengths, vmap the masked function over it"
                          : "give an integer");
  if (const std::optional<Buffer> known = value.known_buffer()) {
    const std::int64_t size = value.item<std::int64_t>();
    if (size < 0)
      throw ValueError("mask: the size " + name + " is " + std::to_string(size),
                       "give a size of 0 or more");
    if (bound.is_constant() && size > bound.constant())
      throw ValueError("mask: the size " + name + " is " + std::to_string(size) +
                           ", and the arrays are padded to " + bound.to_string(),
                       "give a size that is at most that, or pad the arrays to a larger one");
  }
  if (std::optional<Literal> literal = value.as_literal())
    return Array::literal(cast(*literal, DType::int32, false));
  return lax::convert_element_type(value, DType::int32);
}

// The names of sizes in the specs of a call, and their names in the trace. A name that an enclosing
// program uses is another size, so sizes of the specs are renamed while tracing.
class SizeNames {
 public:
  SizeNames(std::span<const Spec> specs, std::span<const Aval> actual) {
    std::vector<Dim> taken(sizes_in_scope().begin(), sizes_in_scope().end()), names;
    for (const Aval& aval : actual) collect_sizes(aval.shape, taken);
    for (const Spec& spec : specs) spec.collect_sizes(names);
    for (Dim size : names) {
      traced_.emplace_back(size, fresh_size(size, taken));
      own_.emplace_back(traced_.back().second, size);
      taken.push_back(traced_.back().second);
    }
  }
  SizeSubstitution traced() const { return traced_; }  // from own names
  SizeSubstitution own() const { return own_; }        // and back
  std::vector<Dim> own_names() const { return firsts(traced_); }
  std::vector<Dim> traced_names() const { return firsts(own_); }

 private:
  using Pairs = std::vector<std::pair<Dim, Dim>>;
  static std::vector<Dim> firsts(const Pairs& pairs) {
    std::vector<Dim> result;
    for (const auto& [first, second] : pairs) result.push_back(first);
    return result;
  }
  Pairs traced_, own_;
};

// The traced sizes of one call, and what they are padded to. Sizes that the call does not give are
// those of the arrays.
struct CallSizes {
  std::vector<std::pair<Dim, Dim>> fixed;
  std::vector<Dim> ragged;
  Shape bounds;     // of the ragged ones
  Arrays operands;  // their values
};

// A call without any size would take all padding for data. Axes whose sizes an enclosing program
// names have no padding.
void require_given(std::span<const Dim> own, const CallSizes& call) {
  const bool all_numbers =
      std::ranges::all_of(call.fixed, [](const auto& pair) { return pair.second.is_constant(); });
  if (own.empty() || !call.ragged.empty() || !all_numbers) return;
  const std::string name(own[0].name());
  throw ValueError("mask: the call gives no size, and in_shapes names " + list_of(own),
                   "call it with " + name +
                       "= and the number of elements that are data, or write "
                       "_ for an axis that is never padded");
}

CallSizes sizes_of_call(const SizeNames& names, SizeSubstitution solved, const Sizes& given) {
  const std::vector<Dim> own = names.own_names();
  for (const auto& [name, value] : given)
    if (std::none_of(own.begin(), own.end(),
                     [&, &name = name](Dim size) { return size.name() == name; }))
      throw ValueError("mask: there is no size named '" + name + "' in in_shapes",
                       "give values for some of its sizes: " + list_of(own));
  CallSizes call;
  for (const auto& [size, traced] : names.traced()) {
    const auto found =
        std::find_if(solved.begin(), solved.end(),
                     [&, &traced = traced](const auto& pair) { return pair.first == traced; });
    if (found == solved.end())
      throw ValueError(
          "mask: the shapes do not tell to which size " + size.to_string() + " is padded",
          "let an argument have an axis of this size alone");
    const Dim bound = found->second;
    const std::string name(size.name());
    if (const auto value = given.find(name); value != given.end()) {
      call.ragged.push_back(traced);
      call.bounds.push_back(bound);
      call.operands.push_back(size_operand(name, value->second, bound));
    } else {
      call.fixed.emplace_back(traced, bound);
    }
  }
  require_given(own, call);
  return call;
}

// Whether the shapes are equal if all declared dims are sizes, 0 or more: n-1 is max(n-1, 0) then.
// Records this condition in the program being traced.
bool are_equal(const Shape& declared, const Shape& traced) {
  if (declared == traced) return true;
  if (declared.rank() != traced.rank()) return false;
  std::vector<std::pair<Dim, Dim>> are_sizes;
  for (Dim size : declared) are_sizes.emplace_back(0, size);
  {
    const SizeFacts facts(are_sizes);
    for (int axis = 0; axis < declared.rank(); ++axis)
      if (equal(declared[axis], traced[axis]) != true) return false;
  }
  for (Dim size : declared)
    require_less_equal(0, size, [&] {
      return ShapeError("mask: out_shapes says that " + size.to_string() + " is a size",
                        "correct out_shapes, or leave it away");
    });
  return true;
}

// Runs in the trace of the function, after it.
void check_outputs(const std::vector<Aval>& outputs,
                   const std::function<std::vector<Spec>(std::size_t)>& out_shapes,
                   const SizeNames& names, const CallSizes& call) {
  const std::vector<Spec> specs = out_shapes(outputs.size());
  if (outputs.size() != specs.size())
    throw ValueError("mask: " + std::to_string(specs.size()) + " specs in out_shapes for " +
                         std::to_string(outputs.size()) + " outputs",
                     "give one spec for each output");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::optional<Aval> declared;
    try {
      declared = specs[i].substitute(names.traced()).resolve(outputs[i]);
    } catch (const ShapeError&) {  // a different rank
    }
    const Shape& traced = outputs[i].shape;
    const Shape shape = declared ? substitute(declared->shape, call.fixed) : Shape();
    if (declared && are_equal(shape, traced)) continue;
    for (int axis = 0; axis < std::min(shape.rank(), traced.rank()); ++axis)
      ask_equal(shape[axis], traced[axis]);
    throw ShapeError("mask: output " + std::to_string(i) + " has shape (" +
                         substitute(traced, names.own()).to_string() + "), and out_shapes says \"" +
                         specs[i].to_string() + "\"",
                     "correct out_shapes, or leave it away");
  }
}

// The parameters of the equation. Its body has the ragged sizes under their own names again, and
// renames sizes of the enclosing program that clash with them.
MaskedParams masked_params(const Jaxpr& program, const SizeNames& names, const CallSizes& call) {
  MaskedParams masked;
  masked.bounds = call.bounds;
  for (Dim size : call.ragged) masked.ragged.push_back(size.substitute(names.own()));
  std::vector<Dim> body_names, used = masked.ragged;
  std::vector<std::pair<Dim, Dim>> naming;
  for (Dim size : program->sizes) {
    if (std::find(call.ragged.begin(), call.ragged.end(), size) != call.ragged.end()) continue;
    masked.sizes.push_back(size);
    body_names.push_back(fresh_size(size, used));
    used.push_back(body_names.back());
    naming.emplace_back(size, body_names.back());
  }
  for (std::size_t i = 0; i < call.ragged.size(); ++i)
    naming.emplace_back(call.ragged[i], masked.ragged[i]);
  body_names.insert(body_names.end(), masked.ragged.begin(), masked.ragged.end());
  const bool clash = std::any_of(naming.begin(), naming.end(),
                                 [](const auto& pair) { return !(pair.first == pair.second); });
  masked.body = interned(with_sizes(clash ? instantiate(program, naming) : program, body_names));
  return masked;
}

// The order constraints, with traced names of sizes and the numbers of the call.
std::vector<Constraint> orders_of_call(const Constraints& constraints, const SizeNames& names,
                                       const CallSizes& call) {
  std::vector<Constraint> orders;
  for (const auto& [left, right] : constraints.orders())
    orders.push_back({left.substitute(names.traced()).substitute(call.fixed),
                      right.substitute(names.traced()).substitute(call.fixed)});
  return orders;
}

// naming receives the traced names of the specs' sizes.
// A program of one place, in which nothing says that values vary along axes of a mesh.
struct InOnePlace {
  using Value = Array;
  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    if (*equation.primitive == pvary_p) return {inputs[0]};
    return bind(*equation.primitive, inputs, map_bodies(equation.params, rewritten));
  }
  static Jaxpr rewritten(const Jaxpr& body) {
    std::vector<Aval> avals(body->input_avals().begin(), body->input_avals().end());
    for (Aval& aval : avals) aval.varying = {};
    return make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          InOnePlace interpreter;
          return interpret(interpreter, body, Arrays(inputs.begin(), inputs.end()));
        },
        avals, body->sizes);
  }
};

// Inside shard_map all operands vary as any of them does, and so do the results. What operands that
// places share get back is thus summed over the places outside of the body, in which values do not
// vary.
Jaxpr in_one_place(const Jaxpr& body, Arrays& operands) {
  const MeshAxes varying = varying_of(operands);
  if (varying.empty()) return body;
  if (!communicated(body).empty())
    throw ValueError(
        "mask: places of a mesh communicate in the function",
        "call lax.psum and its kind, and lax.axis_index, outside of the masked function");
  for (Array& operand : operands) operand = varying_along(operand, varying);
  return InOnePlace::rewritten(body);
}

Arrays mask_with(const Function& function, std::span<const Array> inputs,
                 const flat::MaskOptions& options, const Constraints& constraints,
                 SizeNaming& naming) {
  if (options.in_shapes.size() != inputs.size())
    throw ValueError("mask: " + std::to_string(options.in_shapes.size()) + " specs for " +
                         std::to_string(inputs.size()) + " arrays",
                     "give in_shapes one spec for each array; " + std::string(none_text()) +
                         " takes all from the call");
  std::vector<Aval> actual, formal;
  for (const Array& input : inputs) actual.push_back(input.aval());
  const SizeNames names(options.in_shapes, actual);
  for (const auto& [size, traced] : names.traced()) naming.emplace_back(size, traced);
  for (const auto& [whole, multiple] : constraints.multiples())
    naming.emplace_back(whole, multiple.substitute(names.traced()));
  const SizesInErrors in_errors(size_multiples(naming));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    formal.push_back(options.in_shapes[i]
                         .substitute(names.traced())
                         .resolve(actual[i], "mask: " + ArgumentNames::of(i) + ": "));
  const std::vector<std::pair<Dim, Dim>> solved =
      solve_sizes(names.traced_names(), formal, actual, "mask");
  const CallSizes call = sizes_of_call(names, solved, options.sizes);
  for (Aval& aval : formal) aval.shape = substitute(aval.shape, call.fixed);

  const Function checked = [&](std::span<const Array> arrays) {
    Arrays outputs = function(arrays);
    std::vector<Aval> avals;
    for (const Array& output : outputs) avals.push_back(output.aval());
    if (options.out_shapes) check_outputs(avals, options.out_shapes, names, call);
    return outputs;
  };
  const Traced traced = make_jaxpr(with_orders(checked, orders_of_call(constraints, names, call)),
                                   formal, "mask", call.ragged);
  Arrays operands = call.operands;
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  const Jaxpr body = in_one_place(traced.jaxpr, operands);
  return bind(masked_p, operands, masked_params(body, names, call).to_params());
}

// Replaces the value of a size that is a multiple by the value of its part: n by n_8 = n//8.
void give_part(Sizes& sizes, Dim whole, Dim multiple) {
  const auto given = sizes.find(std::string(whole.name()));
  if (given == sizes.end()) return;
  const Dim part = multiple.sizes()[0];
  const Array value = given->second,
              factor = Array::literal(multiple.operands().first.constant(), value.dtype());
  const std::string name(whole.name());
  sizes.erase(given);
  if (value.ndim() != 0 || !is_integer(value.dtype())) {  // mask raises
    sizes.emplace(part.name(), value);
    return;
  }
  const Array rest = lax::convert_element_type(lax::rem(value, factor), DType::int32);
  bind(check_sizes_p, Arrays{rest, Array::literal(0, DType::int32)},
       {{"names", std::string()},
        {"bounds", Shape{}},
        {"constraints", name + " % " + multiple.operands().first.to_string() + " == 0;"}});
  sizes.emplace(part.name(), lax::div(value, factor));
}

// The options with 8*t_8 in place of t, for every size that is known to be a multiple.
flat::MaskOptions in_parts(const flat::MaskOptions& options, const Constraints& constraints) {
  auto in_parts = [&](std::vector<Spec> specs) {
    for (Spec& spec : specs) spec = spec.substitute(constraints.multiples());
    return specs;
  };
  flat::MaskOptions parts = options;
  parts.in_shapes = in_parts(options.in_shapes);
  if (options.out_shapes)
    parts.out_shapes = [&, in_parts](std::size_t count) {
      return in_parts(options.out_shapes(count));
    };
  for (const auto& [whole, multiple] : constraints.multiples())
    give_part(parts.sizes, whole, multiple);
  return parts;
}

}  // namespace

Arrays flat::mask(const Function& function, std::span<const Array> inputs,
                  const MaskOptions& options) {
  return mask(function, inputs, options, {});
}

Arrays flat::mask(const Function& function, std::span<const Array> inputs,
                  const MaskOptions& options, const Constraints& constraints) {
  std::vector<Dim> named;
  for (const Spec& spec : options.in_shapes) spec.collect_sizes(named);
  constraints.require_sizes(named, "mask");
  Arrays results;
  trace_with_multiples(constraints, [&](const Constraints& known, SizeNaming& naming) {
    results = mask_with(function, inputs, in_parts(options, known), known, naming);
  });
  return results;
}

}  // namespace plait
