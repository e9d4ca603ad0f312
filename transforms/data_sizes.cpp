// Programs with sizes from data, closed: what depends on such sizes becomes the body of a `masked`
// equation. Also cuts the results of such programs. See NOTE: [sizes from data].
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/trace/data_sizes.h>
#include <plait/transforms/masked.h>

#include <algorithm>

namespace plait {
namespace {

bool mentions(const Shape& dims, std::span<const DataSize> sizes) {
  std::vector<Dim> used;
  collect_sizes(dims, used);
  return std::any_of(sizes.begin(), sizes.end(), [&](const DataSize& one) {
    return std::find(used.begin(), used.end(), one.size) != used.end();
  });
}

bool mentions(const Params& params, std::span<const DataSize> sizes) {
  std::vector<Dim> used;
  for (const auto& [name, value] : params.entries()) collect_sizes(value, used);
  return mentions(Shape(used.begin(), used.end()), sizes);
}

// A program under construction with vars of another one.
class Part {
 public:
  explicit Part(const Jaxpr& program) : program_(program), vars_(program->avals.size()) {}

  Builder builder;

  void add_binder(Var var) { vars_[var.id] = builder.add_binder(program_->aval(var)); }
  bool has(Var var) const { return vars_[var.id].has_value(); }
  Atom atom(const Atom& theirs) const {
    return theirs.is_var() ? Atom(*vars_[theirs.var().id]) : theirs;
  }
  void give(Var theirs, Var ours) { vars_[theirs.id] = ours; }
  void add(const Equation& equation) {
    std::vector<Atom> inputs;
    std::vector<Aval> avals;
    for (const Atom& input : equation.inputs) inputs.push_back(atom(input));
    for (Var var : equation.outputs) avals.push_back(program_->aval(var));
    const std::vector<Var> results = builder.add(
        *equation.primitive, std::move(inputs), equation.params, equation.source, std::move(avals));
    for (std::size_t i = 0; i < results.size(); ++i) give(equation.outputs[i], results[i]);
  }

 private:
  const Jaxpr program_;
  std::vector<std::optional<Var>> vars_;  // by var of the program
};

// The closing of one program. Its last outputs are the values of the sizes.
class Closing {
 public:
  Closing(const Jaxpr& program, std::span<const DataSize> sizes)
      : program_(program),
        sizes_(sizes.begin(), sizes.end()),
        inside_(program->avals.size(), false),
        outer_(program),
        body_(program) {}

  Jaxpr close() {
    for (int i = 0; i < program_->num_binders; ++i) outer_.add_binder(Var{i});
    for (const Equation& equation : program_->equations) {
      if (!is_inside(equation)) {
        outer_.add(equation);
        continue;
      }
      for (const Atom& input : equation.inputs) take(input);
      body_.add(equation);
      for (Var var : equation.outputs) inside_[var.id] = true;
      has_effects_ |= is_effectful(equation);
    }
    for (const Constraint& constraint : program_->constraints)
      (mentions(Shape{constraint.left, constraint.right}, sizes_) ? body_ : outer_)
          .builder.add_constraint(constraint);
    std::vector<Atom> results = outputs();
    std::vector<Dim> left;
    for (Dim size : program_->sizes)
      if (!mentions(Shape{size}, sizes_)) left.push_back(size);
    return outer_.builder.close(std::move(results), std::move(left));
  }

 private:
  bool is_inside(const Atom& atom) const { return atom.is_var() && inside_[atom.var().id]; }

  // Whether an equation depends on the sizes. Effects stay in order.
  bool is_inside(const Equation& equation) const {
    return std::any_of(equation.inputs.begin(), equation.inputs.end(),
                       [&](const Atom& input) { return is_inside(input); }) ||
           std::any_of(equation.outputs.begin(), equation.outputs.end(),
                       [&](Var var) { return mentions(program_->aval(var).shape, sizes_); }) ||
           mentions(equation.params, sizes_) || (has_effects_ && is_effectful(equation));
  }

  // Makes a value from outside an operand of the body.
  void take(const Atom& atom) {
    if (!atom.is_var() || body_.has(atom.var())) return;
    body_.add_binder(atom.var());
    operands_.push_back(outer_.atom(atom));
  }

  // The program's outputs without the values of the sizes, after the masked equation.
  std::vector<Atom> outputs() {
    const std::size_t num_outputs = program_->outputs.size() - sizes_.size();
    std::vector<Atom> of_body, results;
    std::vector<Var> inside;  // vars of the program that the equation gives
    for (std::size_t i = 0; i < num_outputs; ++i)
      if (const Atom& output = program_->outputs[i]; is_inside(output)) {
        if (std::find(inside.begin(), inside.end(), output.var()) != inside.end()) continue;
        inside.push_back(output.var());
        of_body.push_back(body_.atom(output));
      }
    if (!inside.empty() || has_effects_) {
      const std::vector<Var> given = add_masked(std::move(of_body));
      for (std::size_t i = 0; i < inside.size(); ++i) outer_.give(inside[i], given[i]);
    }
    for (std::size_t i = 0; i < num_outputs; ++i)
      results.push_back(outer_.atom(program_->outputs[i]));
    return results;
  }

  // Sizes whose values depend on others of them are closed within the body, padded to bounds of its
  // sizes.
  std::vector<Var> add_masked(std::vector<Atom> of_body) {
    const std::size_t num_outputs = program_->outputs.size() - sizes_.size();
    std::vector<DataSize> ready, later;
    std::vector<Atom> values;  // of the sizes that are ready
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const Atom& value = program_->outputs[num_outputs + i];
      if (!is_inside(value) && !mentions(Shape{sizes_[i].bound}, sizes_)) {
        ready.push_back(sizes_[i]);
        values.push_back(outer_.atom(value));
      } else {
        later.push_back(sizes_[i]);
        take(value);
        of_body.push_back(body_.atom(value));
      }
    }
    Jaxpr body = body_.builder.close(std::move(of_body));
    if (!later.empty()) body = Closing(body, later).close();
    MaskedParams masked;
    masked.from_data = true;
    std::vector<Atom> inputs;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      masked.ragged.push_back(ready[i].size);
      masked.bounds.push_back(ready[i].bound);
      inputs.push_back(values[i]);
    }
    std::vector<Dim> names;
    for (Dim size : body->sizes)
      if (std::find(masked.ragged.begin(), masked.ragged.end(), size) == masked.ragged.end()) {
        names.push_back(size);
        masked.sizes.push_back(size);
      }
    names.insert(names.end(), masked.ragged.begin(), masked.ragged.end());
    masked.body = with_sizes(body, names);
    inputs.insert(inputs.end(), operands_.begin(), operands_.end());
    return outer_.builder.add(masked_p, std::move(inputs), masked.to_params(), Source::current());
  }

  const Jaxpr program_;
  const std::vector<DataSize> sizes_;
  std::vector<bool> inside_;  // by var: whether it depends on the sizes
  bool has_effects_ = false;  // inside
  Part outer_, body_;
  std::vector<Atom> operands_;  // of the body, in the outer program
};

Jaxpr close_data_sizes(const Jaxpr& program, std::span<const DataSize> sizes) {
  return Closing(program, sizes).close();
}
const bool closer_installed = (set_data_size_closer(close_data_sizes), true);

}  // namespace

Arrays cut_to_sizes(const DataSizedOutputs* outputs, Arrays results, std::string_view function) {
  if (!outputs) return results;
  const std::size_t num_outputs = outputs->axes.size();
  std::vector<std::optional<Dim>> sizes(outputs->num_sizes);
  for (std::size_t i = 0; i < num_outputs; ++i) {
    Shape limit = results[i].shape();
    for (int axis = 0; axis < limit.rank(); ++axis) {
      const int index = outputs->axes[i][std::size_t(axis)];
      if (index == DataSizedOutputs::fixed) continue;
      std::optional<Dim>& size = sizes[std::size_t(index)];
      if (!size)
        size = size_from_data(
            lax::convert_element_type(results[num_outputs + std::size_t(index)], DType::int32),
            limit[axis], function);
      limit[axis] = *size;
    }
    results[i] = lax::slice(results[i], Shape(limit.rank(), Dim(0)), limit);
  }
  results.resize(num_outputs);
  return results;
}

}  // namespace plait
