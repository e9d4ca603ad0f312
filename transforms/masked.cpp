// The rules of `masked` equations (sizes.h), which mask.cpp makes: derivatives and batches rewrite
// body and lanes, so that they never meet padding, and the decomposition, which comes last, puts
// every equation of the body through its Mask rule.
//
// NOTE: [padding comes last] A rule that fills padding before differentiation would send a
// cotangent of zero through exp(NaN), and NaN to real gradients. So Linearize, Transpose and Batch
// give `masked` equations again. A vmap is a lane of the equation, and decomposes to a vmap of the
// padded program.
// SPDX-License-Identifier: Apache-2.0
#include <plait/guard.h>
#include <plait/laned.h>
#include <plait/ops.h>
#include <plait/trace/interpret.h>

#include <unordered_map>

namespace plait {
namespace {

// --- The interpreter -----------------------------------------------------------------------------

struct MaskInterpreter {
  static constexpr std::string_view name = "mask";
  using Value = Masked;
  const SizeValues& sizes;

  Value lift(const Array& array) { return {array, array.aval()}; }
  static bool has_rule(const Primitive& primitive) {
    return Mask::table().origin(primitive) || !Decompose::table().find(primitive);
  }

  Shape bounds_of(const Shape& shape) const {
    Shape bounds;
    for (Dim dim : shape) bounds.push_back(dim.is_constant() ? dim : sizes.bound(dim));
    return bounds;
  }
  bool is_ragged(const Shape& shape) const { return !(bounds_of(shape) == shape); }
  bool is_ragged(const Params& params) const {
    std::vector<Dim> used;
    for (const auto& [name, value] : params.entries()) collect_sizes(value, used);
    return is_ragged(Shape(used.begin(), used.end()));
  }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    const Primitive& primitive = *equation.primitive;
    std::vector<Aval> avals;
    Arrays padded;
    bool ragged = is_ragged(equation.params);
    for (const Value& input : inputs) {
      avals.push_back(input.aval);
      padded.push_back(input.padded);
      ragged = ragged || is_ragged(input.aval.shape);
    }
    const std::vector<Aval> outputs = infer(primitive, avals, equation.params);
    for (const Aval& output : outputs) ragged = ragged || is_ragged(output.shape);
    Arrays results;
    if (!ragged)
      results = bind(primitive, padded, equation.params);
    else if (const Mask::Rule* mask = Mask::table().find(primitive))
      results = (*mask)(inputs, outputs, equation.params, sizes);
    else
      throw_refused(equation, avals);
    std::vector<Value> values;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!(results[i].shape() == bounds_of(outputs[i].shape)))
        throw InternalError("the mask rule of `" + std::string(primitive.name()) + "` gave " +
                            results[i].aval().to_string() + " for " + outputs[i].to_string() +
                            ", which is padded to (" + bounds_of(outputs[i].shape).to_string() +
                            ")");
      values.push_back({results[i], outputs[i]});
    }
    return values;
  }

  [[noreturn]] static void throw_refused(const Equation& equation, const std::vector<Aval>& avals) {
    std::string text(equation.primitive->name());
    text += "[" + equation.params.to_string() + "]";
    for (const Aval& aval : avals) text += " " + aval.to_string();
    try {
      throw_missing_rule(Mask::table(), *equation.primitive);
    } catch (const MissingRuleError& error) {
      throw MissingRuleError(error.problem() + "; the equation is `" + text + "`", error.fix());
    }
  }
};

// --- Sizes at run time ---------------------------------------------------------------------------

// Values of size expressions as int32 scalars, each computed once.
class RuntimeSizes {
 public:
  explicit RuntimeSizes(std::vector<std::pair<Dim, Dim>> bounds) : bounds_(std::move(bounds)) {}
  void set(Dim size, Array value) { values_.insert_or_assign(size, std::move(value)); }

  Array value(Dim dim) {
    if (const auto found = values_.find(dim); found != values_.end()) return found->second;
    const Array made = compute(dim);
    values_.emplace(dim, made);
    return made;
  }
  SizeValues face(bool checked) {
    return {[this](Dim dim) { return value(dim); },
            [this](Dim dim) { return largest(dim, bounds_); }, checked};
  }

 private:
  static Array integer(std::int64_t value) {
    return Array::literal(Literal{DType::int32, false, value, 0, 0});
  }

  Array compute(Dim dim) {
    using Operation = Dim::Operation;
    if (dim.is_constant()) return integer(dim.constant());
    if (dim.is_size())
      return lax::convert_element_type(lax::dim_as_value(dim),
                                       DType::int32);  // the enclosing program's
    const auto [left, right] = dim.operands();
    const Array a = value(left), b = value(right);
    switch (dim.operation()) {
      case Operation::add:
        return lax::add(a, b);
      case Operation::multiply:
        return lax::mul(a, b);
      case Operation::minimum:
        return lax::min(a, b);
      case Operation::maximum:
        return lax::max(a, b);
      default:
        break;
    }
    // Integer division rounds to zero and sizes round down: where the remainder has the other sign
    // than the divisor, it is one less.
    const Array rest = lax::rem(a, b);
    if (less_equal(0, left).value_or(false) && less_equal(0, right).value_or(false))
      return dim.operation() == Operation::modulo ? rest : lax::div(a, b);
    const Array product = lax::mul(rest, b);
    const Array is_lower = lax::lt(product, integer(0));
    if (dim.operation() == Operation::modulo) {
      const Array moved = lax::add(rest, b);
      return lax::select(is_lower, moved, rest);
    }
    const Array quotient = lax::div(a, b);
    return lax::sub(quotient, lax::convert_element_type(is_lower, DType::int32));
  }

  std::vector<std::pair<Dim, Dim>> bounds_;
  std::unordered_map<Dim, Array> values_;
};

// --- Decomposition -------------------------------------------------------------------------------

// The same array with other sizes: cut at the end, or padded there with zeros.
Array resized(const Array& array, const Shape& shape) {
  Shape least = array.shape();
  std::vector<lax::Padding> padding(array.ndim());
  for (int i = 0; i < array.ndim(); ++i) {
    least[i] = minimum(shape[i], array.shape(i));
    padding[i].high = shape[i] - least[i];
  }
  const Array cut = lax::slice(array, Shape(array.ndim(), Dim(0)), least);
  return lax::pad(cut, Array::literal(0, array.dtype()), padding);
}

void check_sizes(const MaskedParams& masked, const Jaxpr& body, std::span<const Array> values,
                 RuntimeSizes& sizes) {
  std::string names, constraints;
  for (Dim size : masked.ragged) names += std::string(size.name()) + ";";
  Arrays operands(values.begin(), values.end());
  for (const Constraint& constraint : body->constraints) {
    constraints += constraint.left.to_string() + " <= " + constraint.right.to_string() + ";";
    operands.push_back(sizes.value(constraint.left));
    operands.push_back(sizes.value(constraint.right));
  }
  bind(check_sizes_p, operands,
       {{"names", names}, {"bounds", masked.bounds}, {"constraints", constraints}});
}

// A value of a program summed over its first axis, which is of examples. A product of each
// example's matrices becomes one product that contracts the examples too, and needs no memory for
// each.
class SumOverExamples {
 public:
  SumOverExamples(const Jaxpr& program, std::span<const Array> inputs)
      : values_(inputs.begin(), inputs.end()), definitions_(inputs.size()) {
    for (const Equation& equation : program->equations) {
      Arrays operands;
      for (const Atom& atom : equation.inputs) operands.push_back(value(atom));
      const SourceScope scope(equation.source);
      for (Array& result : bind(*equation.primitive, operands, equation.params)) {
        values_.push_back(std::move(result));
        definitions_.push_back(&equation);
      }
    }
  }

  Array value(const Atom& atom) const {
    return atom.is_var() ? values_[atom.var().id] : Array::literal(atom.literal());
  }
  Array sum(const Atom& atom) const {
    const Equation* equation = atom.is_var() ? definitions_[atom.var().id] : nullptr;
    if (equation && *equation->primitive == dot_general_p) {
      const Params& params = equation->params;
      std::vector<int> lhs_batch = params.ints("lhs_batch"), rhs_batch = params.ints("rhs_batch");
      if (!lhs_batch.empty()) {
        std::vector<int> lhs = params.ints("lhs_contract"), rhs = params.ints("rhs_contract");
        lhs.insert(lhs.begin(), lhs_batch[0]), rhs.insert(rhs.begin(), rhs_batch[0]);
        lhs_batch.erase(lhs_batch.begin()), rhs_batch.erase(rhs_batch.begin());
        const Params contracting = params.with("lhs_contract", to_shape(lhs))
                                       .with("rhs_contract", to_shape(rhs))
                                       .with("lhs_batch", to_shape(lhs_batch))
                                       .with("rhs_batch", to_shape(rhs_batch));
        return bind(dot_general_p, Arrays{value(equation->inputs[0]), value(equation->inputs[1])},
                    contracting)[0];
      }
    }
    if (equation && *equation->primitive == transpose_p) {
      std::vector<int> axes = equation->params.ints("permutation");
      if (axes[0] == 0) {
        axes.erase(axes.begin());
        for (int& axis : axes) --axis;
        return lax::transpose(sum(equation->inputs[0]), axes);
      }
    }
    return lax::reduce_sum(value(atom), std::vector<int>{0});
  }

 private:
  static Shape to_shape(const std::vector<int>& axes) { return Shape(axes.begin(), axes.end()); }
  Arrays values_;
  std::vector<const Equation*> definitions_;  // by var
};

Jaxpr summed_program(const Jaxpr& program, const Lane& lane) {
  const std::vector<Aval> avals(program->input_avals().begin(), program->input_avals().end());
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        const SumOverExamples values(program, inputs);
        Arrays outputs;
        for (std::size_t i = 0; i < program->outputs.size(); ++i)
          outputs.push_back(lane.sums(i) ? values.sum(program->outputs[i])
                                         : values.value(program->outputs[i]));
        return outputs;
      },
      avals);
}

// The program on padded arrays, with a batch axis for each lane.
Jaxpr padded_program(const MaskedParams& masked) {
  const std::size_t num_ragged = masked.num_ragged();
  const Jaxpr body = masked.open_body();
  const std::vector<std::pair<Dim, Dim>> bounds = masked.open_bounds();
  std::vector<Aval> avals(num_ragged, Aval{{}, DType::int32});
  for (const Aval& real : masked.body->input_avals()) avals.push_back(masked.padded(real));
  Jaxpr program = make_closed_jaxpr(
      [&](std::span<const Array> operands) {
        RuntimeSizes runtime(bounds);
        for (std::size_t i = 0; i < num_ragged; ++i) runtime.set(bounds[i].first, operands[i]);
        const SizeValues sizes = runtime.face(masked.checked);
        if (masked.checked) check_sizes(masked, body, operands.first(num_ragged), runtime);
        std::vector<Masked> values;
        for (int i = 0; i < body->num_binders; ++i)
          values.push_back({operands[num_ragged + i], body->avals[i]});
        Arrays outputs;
        for (const Masked& output : interpret(MaskInterpreter{sizes}, body, values)) {
          const Aval& aval = output.padded.aval();
          if (aval.stack > 0) {  // nobody sees what its padding holds
            outputs.push_back(output.padded);
            continue;
          }
          outputs.push_back(
              fill_padding(output, Array::literal(Literal{aval.dtype, aval.weak, 0, 0, 0}), sizes));
        }
        return outputs;
      },
      avals);
  for (auto lane = masked.lanes.rbegin(); lane != masked.lanes.rend(); ++lane) {
    std::vector<std::optional<int>> dims;
    for (bool batched : lane->batched)
      dims.push_back(batched ? std::optional<int>(0) : std::nullopt);
    program = batch_jaxpr(program, lane->size, dims, true)->jaxpr;
    if (lane->sums_any()) program = summed_program(program, *lane);
  }
  return program;
}

Arrays decompose_masked(std::span<const Array> inputs, const Params& params) {
  const Jaxpr& body = params.get<Jaxpr>("body");
  const Jaxpr program = *std::static_pointer_cast<const Jaxpr>(body->memo.get(
      "mask " + params.without("body").to_string(), [&]() -> std::shared_ptr<const void> {
        return std::make_shared<Jaxpr>(padded_program(MaskedParams(params)));
      }));
  return flat::call(program, inputs, {{"name", std::string("masked")}});
}

// --- Rewriting the body --------------------------------------------------------------------------

Differentiated linearize_masked(std::span<const Array> primals, std::span<const Tangent> tangents,
                                const Params& params, Trace* linear) {
  return linearize_laned(masked_p, MaskedParams(params), primals, tangents, linear);
}

Tangents transpose_masked(std::span<const Tangent> cotangents,
                          std::span<const TransposeInput> inputs, const Params& params) {
  return transpose_laned(masked_p, MaskedParams(params), cotangents, inputs);
}

std::vector<Batched> batch_masked(Dim size, std::span<const Batched> inputs, const Params& params) {
  return batch_laned(masked_p, MaskedParams(params), size, inputs);
}

// --- Masking what holds a body -------------------------------------------------------------------

// Which examples of lanes are real, where some are padding: a bool with an axis for each such lane.
struct RealExamples {
  Array real;
  std::vector<bool> lanes;  // which lanes have an axis
};
std::optional<RealExamples> real_examples(std::span<const Lane> lanes, const SizeValues& sizes) {
  RealExamples result;
  Shape real;
  for (const Lane& lane : lanes) {
    result.lanes.push_back(!(sizes.bound(lane.size) == lane.size));
    if (result.lanes.back()) real.push_back(lane.size);
  }
  const std::optional<Array> valid = validity(real, sizes);
  if (!valid) return std::nullopt;
  result.real = *valid;
  return result;
}

// The body where its last operand, a bool, is true; zeros elsewhere.
Jaxpr guarded_body(const Jaxpr& body) {
  std::vector<Aval> avals(body->input_avals().begin(), body->input_avals().end());
  avals.push_back({{}, DType::bool_});
  const Function real = [&](std::span<const Array> operands) { return eval_jaxpr(body, operands); };
  const Function padding = [&](std::span<const Array>) {
    Arrays zeros;
    for (const Aval& aval : body->output_avals()) zeros.push_back(lax::zeros_like(aval));
    return zeros;
  };
  return make_closed_jaxpr(
      [&](std::span<const Array> operands) {
        return flat::cond(operands.back(), {padding, real}, operands.first(operands.size() - 1));
      },
      avals, body->sizes);
}

// What a body raises, and its effects, are not for examples that are padding.
void guard_padded_lanes(MaskedParams& masked, Arrays& operands, const RealExamples& examples) {
  masked.body = guarded_body(masked.body);
  operands.push_back(examples.real);
  for (std::size_t lane = 0; lane < masked.lanes.size(); ++lane)
    masked.lanes[lane].batched.push_back(examples.lanes[lane]);
}

// An output that has every lane, summed over those that sum it. Padded examples add nothing.
Array sum_of_real(const Array& output, const Aval& sum, std::span<const Lane> lanes,
                  std::size_t index, const SizeValues& sizes) {
  std::vector<int> axes;
  Aval real = sum;
  for (int lane = 0; lane < int(lanes.size()); ++lane)
    if (lanes[lane].sums(index)) {
      axes.push_back(lane);
      real.shape.insert(lane, lanes[lane].size);
    }
  if (axes.empty()) return output;
  const Array zero = Array::literal(Literal{sum.dtype, sum.weak, 0, 0, 0});
  return lax::reduce_sum(fill_padding({output, real}, zero, sizes), axes);
}

// A masked function in a masked function: those sizes of the outer one that are ragged become
// ragged sizes of the inner one. Padded examples of a lane have sizes of 0.
Arrays mask_masked(std::span<const Masked> inputs, std::span<const Aval> outputs,
                   const Params& params, const SizeValues& sizes) {
  const MaskedParams inner(params);
  MaskedParams masked = inner;
  std::vector<Dim> names, ragged;
  Shape bounds;
  Arrays operands;
  masked.sizes.clear();
  masked.checked &= sizes.checked;
  for (std::size_t i = 0; i < inner.sizes.size(); ++i) {
    const Dim value = inner.sizes[i], bound = sizes.bound(value), name = inner.body->sizes[i];
    if (bound == value) {
      names.push_back(name);
      masked.sizes.push_back(value);
    } else {
      ragged.push_back(name);
      bounds.push_back(bound);
      operands.push_back(sizes.value(value));
    }
  }
  bool pads_lanes = false;
  for (Lane& lane : masked.lanes) {
    const Dim bound = sizes.bound(lane.size);
    pads_lanes |= !(bound == lane.size);
    lane.size = bound;
    lane.batched.insert(lane.batched.begin(), ragged.size(), false);
  }
  if (pads_lanes)  // examples that are padding take no part in sums
    for (Lane& lane : masked.lanes) lane.summed.clear();
  ragged.insert(ragged.end(), inner.ragged.begin(), inner.ragged.end());
  names.insert(names.end(), ragged.begin(), ragged.end());
  for (Dim bound : inner.bounds) bounds.push_back(sizes.bound(bound));
  masked.body = with_sizes(inner.body, names);
  masked.ragged = ragged;
  masked.bounds = bounds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Shape shape;
    if (i >= inner.num_ragged())
      shape = masked.padded(inner.body->avals[i - inner.num_ragged()]).shape;
    for (std::size_t lane = masked.lanes.size(); lane-- > 0;)
      if (inner.lanes[lane].batched[i]) shape.insert(0, masked.lanes[lane].size);
    const bool is_size = i < inner.num_ragged() && pads_lanes;
    const Array operand = is_size ? fill_padding(inputs[i], Array::literal(0, DType::int32), sizes)
                                  : inputs[i].padded;
    operands.push_back(resized(operand, shape));
  }
  if (pads_lanes) masked.checked &= inner.body->constraints.empty();  // sizes of 0 may break them
  if (needs_guard(masked.body))
    if (const std::optional<RealExamples> examples = real_examples(inner.lanes, sizes))
      guard_padded_lanes(masked, operands, *examples);
  Arrays results = bind(masked_p, operands, masked.to_params());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (pads_lanes) results[i] = sum_of_real(results[i], outputs[i], inner.lanes, i, sizes);
    Shape shape;
    for (Dim dim : outputs[i].shape) shape.push_back(sizes.bound(dim));
    results[i] = resized(results[i], shape);
  }
  return results;
}

// A call's body, masked. A composite stays one for a backend where masking changes nothing but
// sizes.
Arrays mask_call(std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                 const SizeValues& sizes) {
  const Jaxpr body = body_of_call(params);
  if (params.has("symbol") && !params.has("jvp") && !params.has("bwd")) {
    bool reads_sizes = false;
    const SizeValues blind{[&](Dim) {
                             return reads_sizes = true,
                                    Array::literal(Literal{DType::int32, false, 0, 0, 0});
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
          for (const Masked& output : interpret(MaskInterpreter{blind}, body, values))
            outputs.push_back(output.padded);
          return outputs;
        },
        avals);
    std::vector<std::pair<Dim, Dim>> bounds;
    for (Dim size : body->sizes) bounds.emplace_back(size, sizes.bound(size));
    if (!reads_sizes && padded == instantiate(body, bounds)) {
      Arrays arrays;
      for (const Masked& input : inputs) arrays.push_back(input.padded);
      Params kept = substitute(params, bounds).with("body", padded).without("sizes");
      if (!padded->sizes.empty())
        kept = kept.with("sizes", Shape(padded->sizes.begin(), padded->sizes.end()));
      return bind(call_p, arrays, kept);
    }
  }
  Arrays outputs;
  for (const Masked& output :
       interpret(MaskInterpreter{sizes}, body, {inputs.begin(), inputs.end()}))
    outputs.push_back(output.padded);
  return outputs;
}

const auto decompose_rules = rules<Decompose>().on(masked_p, decompose_masked);
const auto linearize_rules = rules<Linearize>().on(masked_p, linearize_masked);
const auto transpose_rules = rules<Transpose>().on(masked_p, transpose_masked);
const auto batch_rules = rules<Batch>().on(masked_p, batch_masked);
const auto mask_rules = rules<Mask>().on(masked_p, mask_masked).on(call_p, mask_call);

}  // namespace

std::vector<Masked> eval_masked(const Jaxpr& body, std::span<const Masked> inputs,
                                const SizeValues& sizes) {
  return interpret(MaskInterpreter{sizes}, body, {inputs.begin(), inputs.end()});
}

}  // namespace plait
