// Composites, their registry, and the store of their traced bodies; and the primitive composite:
//
//   body         the jaxpr that the composite decomposes to
//   symbol       its registered name ("softmax"), which a backend may claim whole; with a
//                suffix, a part of its derivative ("softmax.lin")
//   sizes        values of the body's named sizes, in order
//   all others   attributes of the composite
//
// Every eager call looks into the store. So its key is what a call has at hand, the avals, and it
// returns parameters that are ready to bind.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/hash.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/applied.h>
#include <plait/transforms/composites.h>
#include <plait/transforms/custom_rules.h>

#include <map>
#include <unordered_map>

namespace plait {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, Composite, std::less<>> composites;
};
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

struct StoredEquation {
  const Composite* composite;
  DefaultDTypes around;  // of integers that the body makes floats
  Params attributes;
  std::vector<Aval> avals;
  Params params;
};
struct Store {
  static constexpr std::size_t capacity = 4096;
  std::mutex mutex;
  std::unordered_multimap<std::size_t, StoredEquation> equations;
};
Store& store() {
  static Store* instance = new Store;
  return *instance;
}

// A composite with its own rule applies one custom_derivative: linearize goes into the composite
// and finds the rule. The parts keep the symbol.
Arrays apply_body(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes, const std::vector<Dim>& sizes) {
  if (!composite.jvp) return composite.body(inputs, attributes);
  std::vector<Aval> avals = avals_of(inputs);
  const Jaxpr body = make_closed_jaxpr(
      [&](std::span<const Array> x) { return composite.body(x, attributes); }, avals, sizes);
  const std::vector<Aval> tangents = avals;
  avals.insert(avals.end(), tangents.begin(), tangents.end());
  const Jaxpr jvp = make_closed_jaxpr(
      [&](std::span<const Array> x) { return composite.jvp(x, attributes); }, avals, sizes);
  CustomDerivative custom;
  custom.body = body, custom.jvp = jvp, custom.name = composite.symbol;
  return bind(custom_derivative_p, inputs, custom.to_params());
}

Params trace_body(const Composite& composite, std::span<const Aval> avals,
                  const Params& attributes) {
  std::vector<Dim> sizes;
  for (const Aval& aval : avals) collect_sizes(aval.shape, sizes);
  for (const Params::Entry& entry : attributes.entries()) collect_sizes(entry.second, sizes);
  const Jaxpr body = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        return apply_body(composite, inputs, attributes, sizes);
      },
      avals, sizes);
  return with_body(attributes.with("symbol", composite.symbol), body);
}

// --- The primitive -------------------------------------------------------------------------------

Arrays apply_part_of_composite(const Params& of, const Jaxpr& part, std::string_view suffix,
                               std::span<const Array> operands) {
  const std::string symbol = of.text("symbol") + std::string(suffix);
  return bind(composite_p, operands, with_body(of.with("symbol", symbol), part));
}

// --- Derivatives ---------------------------------------------------------------------------------

// NOTE: [derivatives that a library knows]
// A library that computes a composite as a whole may compute its gradient as a whole, too, from
// inputs, outputs and a few numbers more: of attention, the logarithm of the sum of each row.
// Residuals of the body would hide that, and may be far larger. So a composite with statistics is
// linearized to
//   symbol.fwd     inputs -> outputs, statistics
//   symbol.lin     tangents, inputs, outputs, statistics -> tangents of outputs
// and the parameter wrt says of which inputs there are tangents. The body of symbol.lin computes
// the residuals again from the inputs, and reads nothing else. Where nobody claims the parts, these
// are the equations of symbol.fwd, with which they are merged, and the statistics are dead code.

struct Parts {
  Jaxpr forward, linear;
  Flags nonzero_outputs;
};
struct PartsWithStatistics {
  using Result = std::optional<Parts>;
  const Composite* composite;
  Params attributes;
  Flags nonzero;
  bool operator==(const PartsWithStatistics&) const = default;
};

// Empty where there are no statistics.
std::optional<Parts> parts_with_statistics(const Composite& composite, const Params& attributes,
                                           const Jaxpr& body, const Flags& nonzero) {
  const std::shared_ptr<const LinearizedJaxpr> jaxprs = linearize_jaxpr(body, nonzero);
  const std::size_t num_outputs = body->outputs.size();
  Parts parts;
  parts.forward = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const Arrays known = eval_jaxpr(jaxprs->known, inputs);
        return concatenate(slice(known, 0, num_outputs), composite.statistics(inputs, attributes));
      },
      body->input_avals(), body->sizes);
  if (parts.forward->outputs.size() == num_outputs) return std::nullopt;
  std::vector<Aval> operands;
  for (std::size_t i = 0; i < nonzero.size(); ++i)
    if (nonzero[i]) operands.push_back(tangent_aval(body->avals[i]));
  const std::size_t num_tangents = operands.size();
  operands = concatenate(concatenate(operands, body->input_avals()), parts.forward->output_avals());
  parts.linear = make_closed_jaxpr(
      [&](std::span<const Array> given) {
        const Arrays known = eval_jaxpr(jaxprs->known, given.subspan(num_tangents, nonzero.size()));
        return eval_jaxpr(jaxprs->linear, concatenate(given.first(num_tangents),
                                                      slice(known, num_outputs, known.size())));
      },
      operands, body->sizes);
  parts.nonzero_outputs = jaxprs->nonzero_outputs;
  return parts;
}

Shape marked(const Flags& flags) {
  Shape indices;
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) indices.push_back(Dim(std::int64_t(i)));
  return indices;
}

Differentiated linearize_composite(std::span<const Array> primals,
                                   std::span<const Tangent> tangents, const Params& params,
                                   Trace* linear) {
  const Composite* const composite = find_composite(params.text("symbol"));
  const bool is_forward_mode = linear == Trace::current();
  const auto of_body = [&] {
    return linearize_body(apply_part_of_composite)(primals, tangents, params, linear);
  };
  if (!composite || !composite->statistics || is_forward_mode) return of_body();
  const Jaxpr body = open_body(params);
  const Params attributes = attributes_of(params);
  const Flags has_tangent = nonzero(tangents);
  const auto parts = body->memo.get(PartsWithStatistics{composite, attributes, has_tangent}, [&] {
    return parts_with_statistics(*composite, attributes, body, has_tangent);
  });
  if (!*parts) return of_body();
  const std::size_t num_outputs = body->outputs.size();
  const Arrays computed = apply_part_of_composite(params, (*parts)->forward, ".fwd", primals);
  Differentiated result{slice(computed, 0, num_outputs), {}};
  const Arrays operands = concatenate(concatenate(nonzero_arrays(tangents), primals), computed);
  TraceScope scope(linear);
  const Arrays pushed = apply_part_of_composite(params.with("wrt", marked(has_tangent)),
                                                (*parts)->linear, ".lin", operands);
  result.tangents = spread(pushed, (*parts)->nonzero_outputs, body->output_avals());
  return result;
}

// The body on padded arrays; nullopt if masking changes more than sizes, or reads real sizes.
std::optional<Jaxpr> padded_body(const Jaxpr& body, std::span<const Masked> inputs,
                                 std::span<const std::pair<Dim, Dim>> bounds,
                                 const SizeValues& sizes) {
  bool reads_sizes = false;
  const SizeValues blind{[&](Dim) {
                           reads_sizes = true;
                           return Array::literal(Literal{DType::int32, false, 0, 0, 0});
                         },
                         sizes.bound, sizes.checked};
  std::vector<Aval> avals;
  for (const Masked& input : inputs) avals.push_back(input.padded.aval());
  const Jaxpr padded = make_closed_jaxpr(
      [&](std::span<const Array> arrays) {
        std::vector<Masked> values;
        for (std::size_t i = 0; i < arrays.size(); ++i)
          values.push_back({arrays[i], inputs[i].aval});
        Arrays outputs;
        for (const Masked& output : eval_masked(body, values, blind))
          outputs.push_back(output.padded);
        return outputs;
      },
      avals);
  if (reads_sizes || !(padded == instantiate(body, bounds))) return std::nullopt;
  return padded;
}

// A composite stays whole, for a backend, if its padded body is the same function.
Arrays mask_composite(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                      const SizeValues& sizes) {
  const Jaxpr body = open_body(params);
  std::vector<std::pair<Dim, Dim>> bounds;
  for (Dim size : body->sizes) bounds.emplace_back(size, sizes.bound(size));
  const std::optional<Jaxpr> padded = padded_body(body, inputs, bounds, sizes);
  if (!padded) return mask_body(inputs, params, sizes);
  Arrays arrays;
  for (const Masked& input : inputs) arrays.push_back(input.padded);
  return bind(composite_p, arrays, with_body(substitute(params, bounds), *padded));
}

}  // namespace

constinit const Primitive composite_p{"composite"};
static const auto composite_def =
    define(composite_p,
           "Applies a function of a registered symbol, which a backend may claim whole; its body "
           "is what it decomposes to.")
        .family(applies_body({Inline::When::unclaimed, "symbol"}))
        .refuse<Prune>("it is what its symbol says, as a whole")
        .rule<Linearize>(linearize_composite)
        .rule<Transpose>(transpose_body(apply_part_of_composite))
        .rule<Batch>(batch_body(composite_p, BatchAxis::in_front))  // attributes refer to axes
        .rule<Mask>(mask_composite)
        .rule<Samples>([] { return std::vector{sample_of_body({{"symbol", std::string("f")}})}; });

Params attributes_of(const Params& composite_params) {
  return composite_params.without("body").without("symbol").without("sizes");
}

Equation map_bodies(const Equation& equation, const std::function<Jaxpr(const Jaxpr&)>& f) {
  Equation result = equation;
  result.params = map_bodies(equation.params, f);
  if (!(*equation.primitive == composite_p) || result.params == equation.params) return result;
  result.primitive = &call_p;
  result.params = {{"body", result.params.get<Jaxpr>("body")},
                   {"name", equation.params.text("symbol")}};
  if (const ParamValue* sizes = equation.params.find("sizes"))
    result.params = result.params.with("sizes", *sizes);
  return result;
}

const Composite& define_composite(Composite composite) {
  std::lock_guard lock(registry().mutex);
  std::string symbol = composite.symbol;
  auto [entry, added] = registry().composites.try_emplace(std::move(symbol), std::move(composite));
  if (!added) throw InternalError("the composite " + entry->first + " is defined twice");
  return entry->second;
}

const Composite* find_composite(std::string_view symbol) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().composites.find(symbol);
  return found == registry().composites.end() ? nullptr : &found->second;
}

Params composite_params(const Composite& composite, std::span<const Aval> inputs,
                        const Params& attributes) {
  std::size_t hash = hash_combine(attributes.hash(), std::hash<const void*>{}(&composite));
  for (const Aval& aval : inputs) hash = hash_combine(hash, aval.hash());
  {
    std::lock_guard lock(store().mutex);
    auto [entry, end] = store().equations.equal_range(hash);
    for (; entry != end; ++entry) {
      const StoredEquation& stored = entry->second;
      if (stored.composite == &composite && stored.around == DefaultDTypes::current() &&
          stored.attributes == attributes &&
          std::equal(stored.avals.begin(), stored.avals.end(), inputs.begin(), inputs.end()))
        return stored.params;
    }
  }
  StoredEquation made{&composite,
                      DefaultDTypes::current(),
                      attributes,
                      {inputs.begin(), inputs.end()},
                      trace_body(composite, inputs, attributes)};
  Params params = made.params;
  std::lock_guard lock(store().mutex);
  if (store().equations.size() >= Store::capacity) store().equations.clear();
  store().equations.emplace(hash, std::move(made));
  return params;
}

Results composite(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes) {
  const std::vector<Aval> avals = avals_of(inputs);
  return bind(composite_p, inputs, composite_params(composite, avals, attributes));
}

}  // namespace plait
