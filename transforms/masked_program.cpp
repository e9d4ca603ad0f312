// Functions on padded arrays: the interpreter that applies the Mask rule of every equation of a
// body, the values of sizes at run time, and the program to which a `masked` equation decomposes.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/size_facts.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/masked.h>
#include <plait/transforms/transforms.h>

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
    // Integer division rounds to zero, and sizes round down: the quotient is one less if the
    // remainder and the divisor have different signs.
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

// Whether a constraint holds for all sizes up to their bounds.
bool holds_within(const Constraint& constraint, std::span<const std::pair<Dim, Dim>> bounds) {
  const SizeFacts within(bounds);
  return less_equal(constraint.left, constraint.right) == true;
}

void check_sizes(const MaskedParams& masked, const Jaxpr& body, std::span<const Array> values,
                 RuntimeSizes& sizes) {
  std::string names, constraints;
  Arrays operands;
  if (!masked.from_data) {
    for (Dim size : masked.ragged) names += std::string(size.name()) + ";";
    operands.assign(values.begin(), values.end());
  }
  const std::vector<std::pair<Dim, Dim>> bounds = masked.open_bounds();
  for (const Constraint& constraint : body->constraints) {
    if (masked.from_data && holds_within(constraint, bounds)) continue;
    constraints += constraint.left.to_string() + " <= " + constraint.right.to_string() + ";";
    operands.push_back(sizes.value(constraint.left));
    operands.push_back(sizes.value(constraint.right));
  }
  const Params params{{"names", names},
                      {"bounds", masked.from_data ? Shape{} : masked.bounds},
                      {"constraints", constraints}};
  if (!masked.from_data)
    bind(check_sizes_p, operands, params);
  else if (!constraints.empty())
    bind(check_sizes_p, operands, params.with("from_data", true));
}

// Sums a value of a program over its first axis, the batch axis. A batched matrix product becomes
// one product that also contracts the batch axis, and needs no memory for each example.
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

}  // namespace

Jaxpr program_of_example(const MaskedParams& masked, Padding padding) {
  const std::size_t num_ragged = masked.num_ragged();
  const Jaxpr body = masked.open_body();
  const std::vector<std::pair<Dim, Dim>> bounds = masked.open_bounds();
  std::vector<Aval> avals(num_ragged, Aval{{}, DType::int32});
  for (const Aval& real : masked.body->input_avals()) avals.push_back(masked.padded(real));
  return make_closed_jaxpr(
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
          const bool is_read = padding == Padding::zero || masked.sums(outputs.size());
          if (!is_read || aval.stack > 0) {
            outputs.push_back(output.padded);
            continue;
          }
          outputs.push_back(
              fill_padding(output, Array::literal(Literal{aval.dtype, aval.weak, 0, 0, 0}), sizes));
        }
        return outputs;
      },
      avals);
}

Jaxpr with_lanes(Jaxpr program, std::span<const Lane> lanes) {
  for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
    std::vector<std::optional<int>> dims;
    for (bool batched : lane->batched)
      dims.push_back(batched ? std::optional<int>(0) : std::nullopt);
    program = batch_jaxpr(program, lane->size, dims, true)->jaxpr;
    if (lane->sums_any()) program = summed_program(program, *lane);
  }
  return program;
}

Jaxpr padded_program(const MaskedParams& masked) {
  return with_lanes(program_of_example(masked, Padding::zero), masked.lanes);
}

std::vector<Masked> eval_masked(const Jaxpr& body, std::span<const Masked> inputs,
                                const SizeValues& sizes) {
  return interpret(MaskInterpreter{sizes}, body, {inputs.begin(), inputs.end()});
}

}  // namespace plait
