// vmap: a function of one example becomes a function of a batch, by the Batch rule of each equation. A
// primitive without a rule or a decomposition is applied example by example, and explain says so.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/trace/interpret.h>
#include <plait/transforms.h>

namespace plait {
namespace {

struct BatchInterpreter {
  using Value = Batched;
  Dim size;

  Value lift(const Array& array) { return {array, std::nullopt}; }
  Aval aval(const Value& value) { return example_aval(value); }
  std::optional<Array> known(const Value& value) {
    if (value.dim) return std::nullopt;
    return value.array;
  }
  std::string why_unknown() const { return "it has a value for each of the " + size.to_string() + " examples of vmap"; }
  static bool has_rule(const Primitive& primitive) {
    return Batch::table().find(primitive) || Decompose::table().find(primitive) == nullptr;
  }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    if (std::none_of(inputs.begin(), inputs.end(), [](const Value& value) { return value.dim.has_value(); })) {
      Arrays arrays;
      for (const Value& input : inputs) arrays.push_back(input.array);
      std::vector<Value> results;
      for (Array& output : bind(*equation.primitive, arrays, equation.params)) results.push_back({std::move(output), std::nullopt});
      return results;
    }
    if (const Batch::Rule* batch = Batch::table().find(*equation.primitive)) return (*batch)(size, inputs, equation.params);
    return loop(equation, inputs);
  }

  std::vector<Value> loop(const Equation& equation, std::span<const Value> inputs) {
    if (!size.is_constant()) throw_missing_rule(Batch::table(), *equation.primitive);
    if (size.constant() == 0)
      throw MissingRuleError("`" + std::string(equation.primitive->name()) + "` has no batch rule, and there is no example to run it on",
                             "add .rule<Batch> to its definition");
    std::vector<Arrays> rows;  // per output, per example, with a batch axis of one
    for (std::int64_t i = 0; i < size.constant(); ++i) {
      Arrays arguments;
      for (const Value& input : inputs) {
        if (!input.dim) {
          arguments.push_back(input.array);
          continue;
        }
        Shape start(input.array.ndim(), 0), limit = input.array.shape(), strides(input.array.ndim(), 1);
        start[*input.dim] = i;
        limit[*input.dim] = i + 1;
        const Array one = bind(slice_p, {input.array}, {{"start", start}, {"limit", limit}, {"strides", strides}});
        arguments.push_back(lax::reshape(one, example_aval(input).shape));
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
    for (const Arrays& examples : rows) results.push_back({Array(bind(concatenate_p, examples, {{"axis", Dim(0)}})), 0});
    return results;
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

}  // namespace

Arrays flat::vmap(const Function& function, std::span<const Array> inputs, const VmapOptions& options) {
  std::optional<Dim> size = options.size;
  int first = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!options.in_dims[i]) continue;
    const int axis = normalize_axis(*options.in_dims[i], inputs[i].ndim(), "vmap: in_axes");
    const Dim here = inputs[i].shape(axis);
    if (size && !(*size == here))
      throw ShapeError(first < 0 ? "vmap: argument " + std::to_string(i) + " has " + here.to_string() + " examples, and axis_size is " + size->to_string()
                                 : "vmap: inputs disagree on the size of the mapped axis: argument " + std::to_string(first) + " has " +
                                       size->to_string() + ", argument " + std::to_string(i) + " has " + here.to_string(),
                       first < 0 ? "make them equal" : "map only argument " + std::to_string(first) + " with in_axes, giving None for the other");
    size = here;
    if (first < 0) first = int(i);
  }
  if (!size) throw ValueError("vmap: no argument is mapped", "give in_axes an axis for at least one argument, or pass axis_size");
  BatchInterpreter interpreter{*size};
  OnlineTrace trace("vmap", interpreter);
  Arrays arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!options.in_dims[i]) arguments.push_back(inputs[i]);
    else arguments.push_back(trace.wrap({inputs[i], normalize_axis(*options.in_dims[i], inputs[i].ndim(), "vmap: in_axes")}));
  }
  Arrays outputs;
  {
    TraceScope scope(&trace);
    outputs = function(arguments);
  }
  std::vector<std::optional<int>> out_dims = options.out_dims ? options.out_dims(outputs.size()) : std::vector<std::optional<int>>(outputs.size(), 0);
  Arrays results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Batched value = trace.value_of(outputs[i]);
    if (out_dims[i]) {
      results.push_back(move_batch(value, *size, normalize_axis(*out_dims[i], outputs[i].ndim() + 1, "vmap: out_axes")));
    } else if (value.dim) {
      throw ValueError("vmap: output " + std::to_string(i) + " has out_axes None, but depends on the mapped axis",
                       "give out_axes an axis for it, or reduce it over the batch outside vmap");
    } else {
      results.push_back(value.array);
    }
  }
  return results;
}

std::shared_ptr<const BatchedJaxpr> batch_jaxpr(const Jaxpr& jaxpr, Dim size, const std::vector<std::optional<int>>& in_dims,
                                                bool force_outputs) {
  std::string key = "vmap " + size.to_string() + (force_outputs ? " all" : "");
  for (const auto& dim : in_dims) key += dim ? " " + std::to_string(*dim) : " -";
  return std::static_pointer_cast<const BatchedJaxpr>(jaxpr->memo.get(key, [&]() -> std::shared_ptr<const void> {
    auto result = std::make_shared<BatchedJaxpr>();
    std::vector<Aval> avals(jaxpr->input_avals().begin(), jaxpr->input_avals().end());
    for (std::size_t i = 0; i < avals.size(); ++i)
      if (in_dims[i]) avals[i].shape.insert(*in_dims[i], size);
    std::vector<Dim> sizes = jaxpr->sizes;
    collect_sizes(Shape{size}, sizes);
    result->jaxpr = make_closed_jaxpr(
        [&](std::span<const Array> inputs) {
          std::vector<Batched> values;
          for (std::size_t i = 0; i < inputs.size(); ++i) values.push_back({inputs[i], in_dims[i]});
          Arrays outputs;
          for (const Batched& output : interpret(BatchInterpreter{size}, jaxpr, values)) {
            const bool batched = output.dim || force_outputs;
            outputs.push_back(force_outputs ? batch_to_front(output, size) : output.array);
            result->out_dims.push_back(!batched ? std::nullopt : force_outputs ? std::optional<int>(0) : output.dim);
          }
          return outputs;
        },
        avals, sizes);
    return result;
  }));
}

}  // namespace plait
