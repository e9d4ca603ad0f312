// See loop_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "loop_plan.h"

#include <plait/compile/backend.h>
#include <plait/primitives/indexing.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <set>

#include "compile/passes/pipeline.h"
#include "flat_loop.h"
#include "small_windows.h"

namespace plait::llvm {
namespace {

// Instructions of all bodies, which compile in milliseconds.
constexpr double largest_weight = 4000;
constexpr std::int64_t largest_updated = 64;  // elements of an example
constexpr std::int64_t fewest_examples = 16;
constexpr double usual_steps = 16;  // of a while

struct Refusal {
  std::string reason;
};

// Walks bodies; throws the first Refusal.
class Planner {
 public:
  explicit Planner(std::int64_t examples) : examples_(examples) {}
  double weight() const { return weight_; }
  double work() const { return work_; }

  // The axes of the outputs of a body, from those of its binders.
  ExampleAxes walk(const Jaxpr& body, const ExampleAxes& binders) {
    ExampleAxes axes = binders;
    axes.resize(body->avals.size(), -1);
    for (const Equation& equation : body->equations) walk(body, equation, axes);
    ExampleAxes outputs;
    for (const Atom& atom : body->outputs) {
      outputs.push_back(atom.is_var() ? axes[atom.var().id] : -1);
      require_small(body->aval(atom), outputs.back());
    }
    return outputs;
  }

  void walk_loop(const Equation& equation, const ExampleAxes& operands, ExampleAxes& results) {
    if (is_effectful(equation)) throw Refusal{"effects"};
    if (*equation.primitive == while_p) return walk_while(equation, operands, results);
    const ScanParams scan(equation.params);
    if (!scan.length) throw Refusal{"a scan over stacks"};
    if (*scan.length == Dim(0)) throw Refusal{"no steps"};
    ExampleAxes binders = operands;
    const std::size_t first_const = scan.num_carry + scan.num_xs;
    for (std::size_t i = scan.num_carry; i < scan.num_carry + scan.num_xs; ++i) {
      if (binders[i] == 0) throw Refusal{"steps that are examples"};
      if (binders[i] > 0) --binders[i];
    }
    for (std::size_t i = 0; i < first_const; ++i) require_small(scan.body->avals[i], binders[i]);
    repeats_ *= double(scan.length->constant());
    results = walk(plain_body(scan.body), binders);
    repeats_ /= double(scan.length->constant());
    require_carries(operands, results, scan.num_carry);
    for (std::size_t i = scan.num_carry; i < results.size(); ++i) results[i] += results[i] >= 0;
  }

 private:
  void require_small(const Aval& aval, int axis) const {
    if (aval.stack > 0) throw Refusal{"a stack"};
    const std::int64_t size = example_size(aval, axis);
    if (size == 0 || size > largest_value)
      throw Refusal{"a value of " + std::to_string(size) + " elements"};
  }

  // What windows are taken of, and constants of loops and branches.
  static bool may_be_large(const Equation& equation, std::size_t operand) {
    const Primitive& primitive = *equation.primitive;
    if (primitive == dynamic_slice_p || primitive == gather_p) return operand == 0;
    if (primitive == cond_p) return operand > 0;
    if (!is_loop(equation)) return false;
    const auto xs = primitive == scan_p ? equation.params.integer("xs") : 0;
    return std::int64_t(operand) >= equation.params.integer("carry") + xs;
  }

  static void require_carries(const ExampleAxes& operands, const ExampleAxes& results,
                              std::size_t num_carry) {
    if (!std::equal(operands.begin(), operands.begin() + std::ptrdiff_t(num_carry),
                    results.begin()))
      throw Refusal{"examples that change their axis"};
  }

  void walk_while(const Equation& equation, const ExampleAxes& operands, ExampleAxes& results) {
    const WhileParams loop(equation.params);
    if (loop.num_pushes() > 0) throw Refusal{"a loop that keeps its steps"};
    const auto carry = operands.begin(), first_const = carry + std::ptrdiff_t(loop.num_carry),
               of_body = first_const + std::ptrdiff_t(loop.num_cond_consts);
    repeats_ *= usual_steps;
    walk(plain_body(loop.cond), ExampleAxes(carry, of_body));
    ExampleAxes binders(carry, first_const);
    binders.insert(binders.end(), of_body, operands.end());
    results = walk(plain_body(loop.body), binders);
    repeats_ /= usual_steps;
    require_carries(operands, results, loop.num_carry);
  }

  void walk_cond(const Equation& equation, const ExampleAxes& operands, ExampleAxes& results) {
    const CondParams cond(equation.params);
    for (const Jaxpr& branch : cond.branches) {
      ExampleAxes axes = walk(plain_body(branch), {operands.begin() + 1, operands.end()});
      if (results.empty()) results = axes;
      if (results != axes) throw Refusal{"branches of other axes"};
    }
  }

  void walk(const Jaxpr& body, const Equation& equation, ExampleAxes& axes) {
    std::vector<Aval> inputs, outputs;
    ExampleAxes operands;
    for (const Atom& atom : equation.inputs) {
      inputs.push_back(body->aval(atom));
      operands.push_back(atom.is_var() ? axes[atom.var().id] : -1);
    }
    for (Var var : equation.outputs) outputs.push_back(body->aval(var));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!may_be_large(equation, i)) require_small(inputs[i], operands[i]);
    ExampleAxes results;
    if (is_loop(equation)) {
      walk_loop(equation, operands, results);
    } else if (*equation.primitive == cond_p) {
      walk_cond(equation, operands, results);
    } else {
      if (is_effectful(equation)) throw Refusal{"effects"};
      require_few_updated(equation, inputs, operands);
      require_claimed(equation, inputs, outputs);
      if (const std::string reason = small_refusal(equation, inputs, outputs, operands);
          !reason.empty())
        throw Refusal{reason};
      const auto found = example_axes(equation, inputs, outputs, operands, examples_);
      if (!found) throw Refusal{"`" + std::string(equation.primitive->name()) + "` of examples"};
      results = *found;
      const double weight = small_weight(equation, inputs, outputs, operands, results);
      work_ += repeats_ * weight;
      weight_ += weight;
      if (weight_ > largest_weight) throw Refusal{"a long body"};
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      require_small(outputs[i], results[i]);
      axes[equation.outputs[i].id] = results[i];
    }
  }

  // In registers an update by computed places writes all elements; in memory, those that change.
  static void require_few_updated(const Equation& equation, std::span<const Aval> inputs,
                                  const ExampleAxes& axes) {
    const int updated = equation.primitive->overwritten();
    if (updated < 0) return;
    const std::int64_t size =
        example_size(inputs[std::size_t(updated)], axes[std::size_t(updated)]);
    if (size > largest_updated) throw Refusal{"an update of " + std::to_string(size) + " elements"};
  }

  // What a library would run has the library's bits.
  static void require_claimed(const Equation& equation, std::span<const Aval> inputs,
                              std::span<const Aval> outputs) {
    for (const Backend* backend : backends_of()) {
      if (backend->name() == "llvm") return;
      if (backend->supports(equation, inputs, outputs))
        throw Refusal{"`" + std::string(equation.primitive->name()) + "` of " +
                      std::string(backend->name())};
    }
  }

  const std::int64_t examples_;
  double weight_ = 0, work_ = 0, repeats_ = 1;
};

// Sizes that may count examples, largest first, then none.
std::vector<std::int64_t> candidates(std::span<const Jaxpr> bodies) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const Jaxpr& body : bodies)
    for (const Aval& aval : body->input_avals())
      for (Dim dim : aval.shape)
        if (dim.constant() >= fewest_examples) sizes.insert(dim.constant());
  sizes.insert(0);
  return {sizes.begin(), sizes.end()};
}

ExampleAxes binder_axes(const Jaxpr& body, std::int64_t examples) {
  ExampleAxes axes;
  for (const Aval& aval : body->input_avals()) axes.push_back(example_axis(aval, examples));
  return axes;
}

std::int64_t carried_values(const Equation& equation, const ExampleAxes& axes) {
  const auto num_carry = std::size_t(equation.params.integer("carry"));
  const Jaxpr body = open_bodies(equation.params).get<Jaxpr>("body");
  std::int64_t values = 0;
  for (std::size_t i = 0; i < num_carry; ++i) values += example_size(body->avals[i], axes[i]);
  return values;
}

}  // namespace

ExampleAxes operand_axes(const Equation& equation, std::int64_t examples) {
  if (*equation.primitive == scan_p) {
    const ScanParams scan(equation.params);
    ExampleAxes axes = binder_axes(scan.body, examples);
    for (std::size_t i = scan.num_carry; i < scan.num_carry + scan.num_xs; ++i)
      axes[i] += axes[i] >= 0;
    return axes;
  }
  const WhileParams loop(equation.params);
  ExampleAxes axes = binder_axes(loop.cond, examples);
  const ExampleAxes body = binder_axes(loop.body, examples);
  axes.insert(axes.end(), body.begin() + std::ptrdiff_t(loop.num_carry), body.end());
  return axes;
}

ExampleAxes loop_axes(const Equation& equation, const ExampleAxes& operands,
                      std::int64_t examples) {
  ExampleAxes results;
  Planner(examples).walk_loop(equation, operands, results);
  return results;
}

bool is_loop(const Equation& equation) {
  return *equation.primitive == scan_p || *equation.primitive == while_p;
}

namespace {

LoopPlan plan_bodies(const Equation& equation, std::span<const Jaxpr> bodies) {
  LoopPlan plan;
  for (std::int64_t examples : candidates(bodies)) {
    try {
      Planner planner(examples);
      ExampleAxes results;
      const ExampleAxes operands = operand_axes(equation, examples);
      planner.walk_loop(equation, operands, results);
      if (examples > 0 && std::all_of(results.begin(), results.end(), [](int a) { return a < 0; }))
        continue;
      return {{}, examples, planner.weight(), planner.work(), carried_values(equation, operands)};
    } catch (const Refusal& refusal) {
      plan.refusal = refusal.reason;
    }
  }
  return plan;
}

}  // namespace

LoopPlan plan_loop(const Equation& equation) {
  LoopPlan plan;
  bool is_small = true;  // of arrays whose sizes are known
  std::vector<Jaxpr> bodies;
  for_each_body(open_bodies(equation.params), [&](const Jaxpr& body) {
    bodies.push_back(body);
    for (const Aval& aval : body->avals) is_small &= aval.stack == 0 && aval.shape.is_constant();
  });
  if (!is_small) {
    plan.refusal = "stacks";
    return plan;
  }
  if (const std::optional<Params> flat = flat_loop(equation.params)) {
    Equation on_vectors = equation;
    on_vectors.params = *flat;
    std::vector<Jaxpr> flat_bodies;
    for_each_body(*flat, [&](const Jaxpr& body) { flat_bodies.push_back(body); });
    LoopPlan of_vectors = plan_bodies(on_vectors, flat_bodies);
    of_vectors.is_flat = true;
    if (of_vectors.refusal.empty() && of_vectors.examples > 0) return of_vectors;
  }
  return plan_bodies(equation, bodies);
}

Jaxpr plain_body(const Jaxpr& body) {
  // Nothing where it is the body itself, which must not keep itself alive.
  struct PlainBody : Property<Jaxpr> {};
  const Jaxpr found = *body->memo.get(PlainBody{}, [&] {
    const Jaxpr plain = compile_passes::simplify_program(
        body,
        [](const Equation& equation, std::span<const Aval> inputs, std::span<const Aval> outputs) {
          const std::vector<const Backend*> all = backends_of();
          return std::any_of(all.begin(), all.end(), [&](const Backend* backend) {
            return backend->runs_eagerly() && backend->supports(equation, inputs, outputs);
          });
        });
    return plain == body ? Jaxpr() : plain;
  });
  return found ? found : body;
}

}  // namespace plait::llvm
