// vmap: a function of one example becomes a function of a batch, by the Batch rule of each
// equation. A primitive without a rule or a decomposition runs example by example, and explain says
// so.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/progress.h>
#include <plait/primitives/mesh.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/collect.h>
#include <plait/rules/interpret.h>
#include <plait/trace/data_sizes.h>
#include <plait/trace/named_axes.h>
#include <plait/transforms/transforms.h>

namespace plait {
namespace {

const std::string& no_name = *new const std::string;

struct BatchInterpreter {
  static constexpr std::string_view name = "vmap";
  using Value = Batched;
  Dim size;
  std::string axis = {};  // its name, if it has one

  Value lift(const Array& array) { return {array, std::nullopt}; }
  Aval aval(const Value& value) { return example_aval(value); }
  std::optional<Array> known(const Value& value) {
    if (value.dim) return std::nullopt;
    return value.array;
  }
  std::string why_unknown() const {
    return "it has a value for each of the " + size.to_string() + " examples of vmap";
  }
  static bool has_rule(const Primitive& primitive) {
    return Batch::table().find(primitive) || Decompose::table().find(primitive) == nullptr;
  }

  bool wants(const Primitive& primitive, const Params& params) const {
    return !axis.empty() && is_over_axis(primitive, params, axis);
  }
  static bool is_batched(const Value& value) { return value.dim.has_value(); }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    if (wants(*equation.primitive, equation.params)) return communicate(equation, inputs);
    if (std::none_of(inputs.begin(), inputs.end(), is_batched)) {
      Arrays arrays;
      for (const Value& input : inputs) arrays.push_back(input.array);
      std::vector<Value> results;
      for (Array& output : bind(*equation.primitive, arrays, equation.params))
        results.push_back({std::move(output), std::nullopt});
      return results;
    }
    const BatchedAxis unnamed(no_name);
    if (const Batch::Rule* batch = Batch::table().find(*equation.primitive))
      return (*batch)(size, inputs, equation.params);
    return loop(equation, inputs);
  }

  // An equation over this axis, or one that holds such. The latter is batched whatever its operands
  // are, since its bodies may be.
  std::vector<Value> communicate(const Equation& equation, std::span<const Value> inputs) {
    if (const Collect::Rule* collect = Collect::table().find(*equation.primitive))
      return (*collect)(size, inputs, equation.params);
    const Batch::Rule* batch = Batch::table().find(*equation.primitive);
    if (!batch)
      throw MissingRuleError("`" + std::string(equation.primitive->name()) +
                                 "` has no batch rule and runs example by example, and its body is "
                                 "over the axis '" +
                                 axis + "' of all of them",
                             "add .rule<Batch> to its definition");
    std::vector<Value> values(inputs.begin(), inputs.end());
    if (!values.empty() && std::none_of(values.begin(), values.end(), is_batched))
      values.back() = {batch_to_front(values.back(), size), 0};
    const BatchedAxis named(axis);
    return (*batch)(size, values, equation.params);
  }

  std::vector<Value> loop(const Equation& equation, std::span<const Value> inputs) {
    if (!size.is_constant()) throw_missing_rule(Batch::table(), *equation.primitive);
    if (size.constant() == 0)
      throw MissingRuleError("`" + std::string(equation.primitive->name()) +
                                 "` has no batch rule, and there is no example to run it on",
                             "add .rule<Batch> to its definition");
    std::vector<Arrays> rows;  // by output, then by example, with a batch axis of one
    for (std::int64_t i = 0; i < size.constant(); ++i) {
      Arrays arguments;
      for (const Value& input : inputs) {
        if (!input.dim) {
          arguments.push_back(input.array);
          continue;
        }
        arguments.push_back(lax::index_in_dim(input.array, i, *input.dim, /*keepdims=*/false));
      }
      const Arrays outputs = bind(*equation.primitive, arguments, equation.params);
      rows.resize(outputs.size());
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        Shape shape{1};
        for (Dim dim : outputs[k].shape()) shape.push_back(dim);
        rows[k].push_back(lax::reshape(outputs[k], shape));
      }
    }
    std::vector<Value> results;
    for (const Arrays& examples : rows)
      results.push_back({Array(bind(concatenate_p, examples, {{"axis", Dim(0)}})), 0});
    return results;
  }
};

// Bodies that communicate, where examples go different ways: all take part in all of them.
struct CommunicatingExamples final : LiveExamples {
  CommunicatingExamples(Dim size, std::string name) : LiveExamples(size), axis(std::move(name)) {}
  const std::string axis;

  std::vector<Batched> run(const Jaxpr& body, std::span<const Batched> inputs) const override {
    return interpret(BatchInterpreter{size, axis}, body, {inputs.begin(), inputs.end()});
  }
  std::vector<Batched> run_marked(const Array&, const Jaxpr& body,
                                  std::span<const Batched> inputs) const override {
    return run(body, inputs);
  }
};

Array move_batch(const Batched& value, Dim size, int to) {
  const Array front = batch_to_front(value, size);
  if (to == 0) return front;
  std::vector<int> permutation;
  for (int i = 1; i < front.ndim(); ++i) permutation.push_back(i);
  permutation.insert(permutation.begin() + to, 0);
  return lax::transpose(front, permutation);
}

// Runs the batch in chunks of at most `chunk` examples, so that memory stays bounded.
Arrays vmap_chunks(const Function& function, std::span<const Array> inputs,
                   const flat::VmapOptions& options, std::int64_t size) {
  const std::int64_t chunk = *options.chunk;
  if (chunk < 1)
    throw ValueError("vmap: chunk is " + std::to_string(chunk),
                     "give the number of examples to run at once, at least 1");
  std::vector<Arrays> parts;  // by output
  std::vector<std::optional<int>> out_dims;
  ProgressScope progress("vmap, chunk", (size + chunk - 1) / chunk);
  for (std::int64_t begin = 0; begin < size; begin += chunk, progress.step()) {
    flat::VmapOptions part = options;
    part.chunk.reset();
    part.size = std::min(chunk, size - begin);
    part.out_dims = [&](std::size_t n) {
      out_dims = options.out_dims ? options.out_dims(n) : std::vector<std::optional<int>>(n, 0);
      return out_dims;
    };
    Arrays arguments;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      arguments.push_back(
          options.in_dims[i]
              ? lax::slice_in_dim(
                    inputs[i], Dim(begin), Dim(std::min(size, begin + chunk)), 1,
                    normalize_axis(*options.in_dims[i], inputs[i].ndim(), "vmap: in_axes"))
              : inputs[i]);
    const Arrays outputs = flat::vmap(function, arguments, part);
    parts.resize(outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) parts[i].push_back(outputs[i]);
  }
  Arrays results;
  for (std::size_t i = 0; i < parts.size(); ++i)
    results.push_back(
        out_dims[i] ? Array(bind(concatenate_p, parts[i],
                                 {{"axis", Dim(normalize_axis(*out_dims[i], parts[i][0].ndim(),
                                                              "vmap: out_axes"))}}))
                    : parts[i][0]);
  return results;
}

// The function as one equation, in whose program sizes may depend on the values of an example.
Arrays as_call(const Function& function, std::span<const Array> inputs) {
  const Traced traced = make_jaxpr(function, avals_of(inputs), "vmap");
  Arrays operands(inputs.begin(), inputs.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  return flat::call(traced.jaxpr, operands);
}

}  // namespace

Arrays flat::vmap(const Function& function, std::span<const Array> inputs,
                  const VmapOptions& options) {
  std::optional<Dim> size = options.size;
  int first = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!options.in_dims[i]) continue;
    const int axis = normalize_axis(*options.in_dims[i], inputs[i].ndim(), "vmap: in_axes");
    const Dim here = inputs[i].shape(axis);
    if (size && !(*size == here))
      throw ShapeError(first < 0 ? "vmap: " + ArgumentNames::of(i) + " has " + here.to_string() +
                                       " examples, and axis_size is " + size->to_string()
                                 : "vmap: inputs disagree on the size of the mapped axis: " +
                                       ArgumentNames::of(first) + " has " + size->to_string() +
                                       ", " + ArgumentNames::of(i) + " has " + here.to_string(),
                       first < 0
                           ? "make them equal"
                           : "map only " + ArgumentNames::of(first) + " with in_axes, giving " +
                                 std::string(none_text()) + " for the other");
    size = here;
    if (first < 0) first = int(i);
  }
  if (!size)
    throw ValueError("vmap: no argument is mapped",
                     "give in_axes an axis for at least one argument, or pass axis_size");
  if (options.chunk && !options.axis_name.empty())
    throw ValueError("vmap: the axis '" + options.axis_name + "' is run in chunks of " +
                         std::to_string(*options.chunk) + " examples, which cannot communicate",
                     "leave out chunk, or axis_name");
  if (options.chunk && size->is_constant() && size->constant() > *options.chunk)
    return vmap_chunks(function, inputs, options, size->constant());
  BatchInterpreter interpreter{*size, options.axis_name};
  OnlineTrace trace("vmap", interpreter);
  Arrays arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!options.in_dims[i])
      arguments.push_back(inputs[i]);
    else
      arguments.push_back(trace.wrap(
          {inputs[i], normalize_axis(*options.in_dims[i], inputs[i].ndim(), "vmap: in_axes")}));
  }
  Arrays outputs;
  {
    TraceScope scope(&trace);
    const NamedAxis axis{options.axis_name, *size};
    std::optional<NamedAxisScope> inside;
    if (!axis.name.empty()) inside.emplace(axis);
    bool is_run = false;
    try {
      outputs = function(arguments);
      is_run = true;
    } catch (...) {
      if (!sizes_differed(trace)) throw;
    }
    if (!is_run) outputs = as_call(function, arguments);
  }
  std::vector<std::optional<int>> out_dims =
      options.out_dims ? options.out_dims(outputs.size())
                       : std::vector<std::optional<int>>(outputs.size(), 0);
  Arrays results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Batched value = trace.value_of(outputs[i]);
    if (out_dims[i]) {
      results.push_back(move_batch(
          value, *size, normalize_axis(*out_dims[i], outputs[i].ndim() + 1, "vmap: out_axes")));
    } else if (value.dim) {
      throw ValueError("vmap: output " + std::to_string(i) + " has out_axes " +
                           std::string(none_text()) + ", but depends on the mapped axis",
                       "give out_axes an axis for it, or reduce it over the batch outside vmap");
    } else {
      results.push_back(value.array);
    }
  }
  return results;
}

std::unique_ptr<LiveExamples> communicating_examples(Dim size, const Params& params) {
  const std::string& axis = BatchedAxis::current();
  bool communicate = !axis.empty();
  if (MeshAxes::are_used())
    for_each_body(params, [&](const Jaxpr& body) { communicate |= !communicated(body).empty(); });
  return communicate ? std::make_unique<CommunicatingExamples>(size, axis) : nullptr;
}

std::shared_ptr<const BatchedJaxpr> batch_jaxpr(const Jaxpr& jaxpr, Dim size,
                                                const std::vector<std::optional<int>>& in_dims,
                                                const std::vector<bool>& force) {
  struct BatchedOver {
    using Result = BatchedJaxpr;
    Dim size;
    std::vector<std::optional<int>> in_dims;
    std::vector<bool> force;
    std::string axis;
    bool operator==(const BatchedOver&) const = default;
  };
  std::string axis = BatchedAxis::current();
  if (!axis.empty() && !is_over_axis(jaxpr, axis)) axis.clear();
  return jaxpr->memo.get(BatchedOver{size, in_dims, force, axis}, [&] {
    BatchedJaxpr result;
    std::vector<Aval> avals(jaxpr->input_avals().begin(), jaxpr->input_avals().end());
    for (std::size_t i = 0; i < avals.size(); ++i)
      if (in_dims[i]) avals[i].shape.insert(*in_dims[i], size);
    std::vector<Dim> sizes = jaxpr->sizes;
    collect_sizes(Shape{size}, sizes);
    result.jaxpr = make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          std::vector<Batched> values;
          for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back({inputs[i], in_dims[i]});
          Arrays outputs;
          for (const Batched& output : interpret(BatchInterpreter{size, axis}, jaxpr, values)) {
            const bool forced = force[outputs.size()];
            outputs.push_back(forced ? batch_to_front(output, size) : output.array);
            result.out_dims.push_back(forced ? std::optional<int>(0) : output.dim);
          }
          return outputs;
        },
        avals, sizes);
    return result;
  });
}

}  // namespace plait
