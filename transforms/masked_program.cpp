// Functions on padded arrays: the interpreter that applies the Mask rule of every equation of a
// body, the values of sizes at run time, and the program to which a `masked` equation decomposes.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/environment.h>
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

enum class Padding { zero, unread };

Jaxpr program_of_example(const MaskedParams& masked, Padding padding) {
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
  return program;
}

// Rewrites the program of one example for the caller of unfilled_program. Comparisons of all places
// with a size become operands. What is filled with zeros anywhere is so wherever it is read, and
// made so at once; what is so already is not filled.
class GivenPlaces {
 public:
  GivenPlaces(const Jaxpr& program, const MaskedParams& masked,
              const std::vector<bool>& zero_padded)
      : program_(program),
        masked_(masked),
        zero_padded_(zero_padded),
        made_by_(program->avals.size()),
        masks_(program->avals.size()),
        fills_(program->avals.size()),
        is_clear_(is_ragged_by_length()) {}

  Jaxpr run() {
    for (const Equation& equation : program_->equations) {
      for (Var var : equation.outputs) made_by_[std::size_t(var.id)] = &equation;
      masks_[std::size_t(equation.outputs[0].id)] = mask_made(equation);
      if (const auto mask = mask_of_fill(equation)) {
        std::vector<PlacesMask>& fills = fills_[std::size_t(equation.inputs[1].var().id)];
        if (std::find(fills.begin(), fills.end(), *mask) == fills.end()) fills.push_back(*mask);
      }
    }
    return rebuild();
  }

 private:
  // Which places along an axis are real.
  struct PlacesMask {
    std::size_t name;
    int axis;
    bool operator==(const PlacesMask&) const = default;
  };

  // Whether an axis of the body's values is as long as a bound only where it is that size.
  bool is_ragged_by_length() const {
    for (int i = 0; i < masked_.bounds.rank(); ++i)
      for (int j = 0; j < i; ++j)
        if (masked_.bounds[i] == masked_.bounds[j]) return false;
    return has_clear_lengths(masked_.body);
  }
  bool has_clear_lengths(const Jaxpr& body) const {
    for (const Aval& aval : body->avals)
      for (Dim dim : aval.shape)
        if (dim.is_constant() ? std::find(masked_.bounds.begin(), masked_.bounds.end(), dim) !=
                                    masked_.bounds.end()
                              : !dim.is_size())
          return false;
    bool clear = true;
    for (const Equation& equation : body->equations)
      for_each_body(equation.params,
                    [&](const Jaxpr& inner) { clear &= has_clear_lengths(inner); });
    return clear;
  }

  std::optional<PlacesMask> mask_made(const Equation& equation) const {
    const auto is_var = [&](std::size_t i) { return equation.inputs[i].is_var(); };
    if (*equation.primitive == broadcast_in_dim_p && is_var(0)) {
      const auto& spread = masks_[std::size_t(equation.inputs[0].var().id)];
      const std::vector<int> dims = equation.params.ints("dims");
      if (!spread || dims.size() != 1) return std::nullopt;
      return PlacesMask{spread->name, dims[0]};
    }
    if (!(*equation.primitive == cmp_p) || equation.params.text("direction") != "lt" ||
        !is_var(0) || !is_var(1))
      return std::nullopt;
    const Equation* places = made_by_[std::size_t(equation.inputs[0].var().id)];
    const std::size_t size = std::size_t(equation.inputs[1].var().id);
    if (!places || !(*places->primitive == iota_p) || size >= masked_.num_ragged() ||
        !(program_->aval(places->outputs[0]).shape == Shape{masked_.bounds[int(size)]}))
      return std::nullopt;
    return PlacesMask{size, 0};
  }

  // Of an equation that puts zeros beside the real places of a value.
  std::optional<PlacesMask> mask_of_fill(const Equation& equation) const {
    if (!(*equation.primitive == select_p) || !equation.inputs[0].is_var() ||
        !equation.inputs[1].is_var() || equation.inputs[2].is_var())
      return std::nullopt;
    const Literal& fill = equation.inputs[2].literal();
    if (!(fill == Literal{fill.dtype, fill.weak, 0, 0, 0})) return std::nullopt;
    return masks_[std::size_t(equation.inputs[0].var().id)];
  }

  bool is_zero_beside(int var, const PlacesMask& mask) const {
    const int operand = var - int(masked_.num_ragged());
    if (operand < 0 || operand >= masked_.body->num_binders) return false;
    const Shape& real = masked_.body->avals[std::size_t(operand)].shape;
    return zero_padded_[std::size_t(operand)] && real[mask.axis] == masked_.ragged[mask.name];
  }

  Jaxpr rebuild() {
    const std::size_t num_ragged = masked_.num_ragged();
    Builder builder;
    std::vector<Atom> binders, real;
    auto add_binder = [&](std::size_t i) {
      binders.push_back(builder.add_binder(program_->avals[i]));
    };
    for (std::size_t i = 0; i < num_ragged; ++i) add_binder(i);
    for (Dim bound : masked_.bounds) real.push_back(builder.add_binder({{bound}, DType::bool_}));
    for (std::size_t i = num_ragged; i < std::size_t(program_->num_binders); ++i) add_binder(i);
    Environment environment(program_, std::move(binders));

    // What stands for a var: filled at once with what fills it anywhere.
    auto keep = [&](Var var, Atom value, const Source& source) {
      const Aval& aval = program_->aval(var);
      const Literal zero{aval.dtype, aval.weak, 0, 0, 0};
      for (const PlacesMask& mask : fills_[std::size_t(var.id)]) {
        if (!is_clear_) break;
        Atom places = real[mask.name];
        if (aval.rank() > 1)
          places = builder.add(broadcast_in_dim_p, {places},
                               {{"shape", aval.shape}, {"dims", Shape{mask.axis}}}, source)[0];
        value = builder.add(select_p, {places, value, zero}, {}, source)[0];
      }
      environment.set(var, value);
    };
    for (const Equation& equation : program_->equations) {
      const Var made = equation.outputs[0];
      if (*equation.primitive == cmp_p && masks_[std::size_t(made.id)]) {
        environment.set(made, real[masks_[std::size_t(made.id)]->name]);
        continue;
      }
      if (const auto mask = mask_of_fill(equation)) {
        const Var value = equation.inputs[1].var();
        const bool is_made = is_clear_ && made_by_[std::size_t(value.id)];
        if (is_made || is_zero_beside(value.id, *mask)) {
          keep(made, environment.read(value), equation.source);
          continue;
        }
      }
      const std::vector<Var> results =
          builder.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                      equation.source, output_avals(*program_, equation));
      for (std::size_t i = 0; i < results.size(); ++i)
        keep(equation.outputs[i], results[i], equation.source);
    }
    return builder.close(environment.read(program_->outputs));
  }

  const Jaxpr& program_;
  const MaskedParams& masked_;
  const std::vector<bool>& zero_padded_;
  std::vector<const Equation*> made_by_;          // by var; null: an operand
  std::vector<std::optional<PlacesMask>> masks_;  // by var
  std::vector<std::vector<PlacesMask>> fills_;    // by var: what fills it anywhere
  const bool is_clear_;
};

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

}  // namespace

Jaxpr padded_program(const MaskedParams& masked) {
  return with_lanes(program_of_example(masked, Padding::zero), masked.lanes);
}

Jaxpr unfilled_program(const MaskedParams& masked, const std::vector<bool>& zero_padded) {
  std::vector<Lane> lanes = masked.lanes;
  for (Lane& lane : lanes) {
    const std::vector<bool> sizes(lane.batched.begin(),
                                  lane.batched.begin() + std::ptrdiff_t(masked.num_ragged()));
    lane.batched.insert(lane.batched.begin(), sizes.begin(), sizes.end());
  }
  const Jaxpr program = program_of_example(masked, Padding::unread);
  return with_lanes(GivenPlaces(program, masked, zero_padded).run(), lanes);
}

std::vector<Masked> eval_masked(const Jaxpr& body, std::span<const Masked> inputs,
                                const SizeValues& sizes) {
  return interpret(MaskInterpreter{sizes}, body, {inputs.begin(), inputs.end()});
}

}  // namespace plait
