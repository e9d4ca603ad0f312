// bind, the current trace, and staging to jaxprs. See trace.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/own_scopes.h"
#include "ir/possible.h"
#include "trace/usable.h"

#include <plait/base/progress.h>
#include <plait/trace/constants.h>
#include <plait/trace/data_sizes.h>
#include <plait/trace/donated.h>
#include <plait/trace/sizes.h>
#include <plait/trace/suspended.h>
#include <plait/trace/trace.h>
#include <plait/trace/varying.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace plait {
namespace {

thread_local Trace* current_trace = nullptr;
thread_local SuspendedTrace* innermost_suspended = nullptr;
std::atomic<std::uint64_t> traces_made{0};
std::atomic<Evaluator> installed_evaluator{nullptr};
std::atomic<Evaluator> installed_recorder{nullptr};

// Adds an undecided constraint to the innermost program being traced on this thread.
bool add_to_program(const Constraint& constraint) {
  for (Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (auto* program = dynamic_cast<JaxprTrace*>(trace);
        program && !dynamic_cast<LinearTrace*>(trace)) {
      program->add_constraint(constraint);
      return true;
    }
  return false;
}
const bool sink_installed = (set_constraint_sink(add_to_program), true);

}  // namespace

constinit ConstantMaker make_constant = nullptr;

Trace::Trace(std::string_view name) : parent_(current_trace), id_(++traces_made), name_(name) {}
Trace::~Trace() = default;
Trace* Trace::current() { return current_trace; }

Array Trace::adopt(ArrayNode* node) const {
  node->trace_ = this;
  node->trace_id_ = id_;
  node->birth_ = Source::current();
  return Array(node);
}

TraceScope::TraceScope(Trace* trace) : previous_(current_trace) { current_trace = trace; }
TraceScope::~TraceScope() { current_trace = previous_; }

void check_usable(const Array& array) {
  if (array.is_concrete()) return;  // throws for one that holds nothing
  for (Trace* trace = current_trace; trace; trace = trace->parent())
    if (trace->owns(array)) return;
  for (const SuspendedTrace* scope = innermost_suspended; scope; scope = scope->outer_)
    if (scope->trace_.owns(array)) throw_captured(array, scope->function_);
  const std::string birth = array.birth() ? "\n  made at " + array.birth().to_string() : "";
  if (const auto* donated = dynamic_cast<const DonatedNode*>(array.node()))
    throw ValueError(
        "an array of type " + array.aval().to_string() +
            " was used after it had been donated to `" + donated->function + "`" +
            (birth.empty() ? ""
                           : "\n  donated at" + birth.substr(std::string("\n  made at").size())),
        "use what the function returned, or leave the argument out of donate_argnums");
  throw TracerError("a traced value of type " + array.aval().to_string() +
                        " was used after its trace had ended" + birth,
                    "return the value from the traced function instead of storing it outside");
}

SuspendedTrace::SuspendedTrace(const Trace& trace, std::string_view function)
    : trace_(trace), function_(function), outer_(std::exchange(innermost_suspended, this)) {}
SuspendedTrace::~SuspendedTrace() { innermost_suspended = outer_; }

void throw_captured(const Array& array, std::string_view function) {
  throw TracerError("the function `" + std::string(function) +
                        "` has a custom derivative and captures a value of type " +
                        array.aval().to_string() + " that is being differentiated",
                    "pass the value to the function as an argument");
}

DonatedNode::DonatedNode(Aval aval, std::string function)
    : ArrayNode(std::move(aval), reinterpret_cast<const Trace*>(this)),
      function(std::move(function)) {
  birth_ = Source::current();
}

Array donate(Array& handle, const std::string& function) {
  Array left(new DonatedNode(handle.aval(), function));
  return std::exchange(handle, std::move(left));
}

void Trace::check_alive(const Array& array) const { check_usable(array); }

void throw_unknown_value(const Array& array) {
  check_usable(array);
  std::string why = "it is traced";
  for (Trace* trace = current_trace; trace; trace = trace->parent())
    if (trace->owns(array)) {
      std::optional<Array> beneath = trace->known(*array.node());
      if (beneath && !beneath->is_concrete()) throw_unknown_value(*beneath);
      why = trace->why_unknown();
      break;
    }
  throw TracerError(
      "the value of an array of type " + array.aval().to_string() + " is needed, but " + why,
      Source::is_python() ? "use plait.script on the function, or where instead of an `if`; mark "
                            "the argument static; or keep this code outside"
                          : "use numpy::where or lax::cond instead of an `if`, or keep this code "
                            "outside");
}

void set_evaluator(Evaluator evaluator) { installed_evaluator = evaluator; }
Evaluator evaluator() {
  Evaluator evaluator = installed_evaluator;
  if (!evaluator) throw InternalError("no evaluator is installed");
  return evaluator;
}
void set_recorder(Evaluator recorder) { installed_recorder = recorder; }

constinit Varier make_varying = nullptr;

MeshAxes varying_of(std::span<const Array> arrays) {
  MeshAxes varying;
  for (const Array& array : arrays) varying |= array.aval().varying;
  return varying;
}

namespace {

// The operands of an operation on values of which some vary, each as one that varies where any
// does; none where they agree. Numbers, and what states its own types, may stay as they are.
std::optional<Arrays> agreeing(const Primitive& primitive, std::span<const Array> inputs) {
  if (primitive.states_varying() || inputs.size() < 2) return {};
  const MeshAxes varying = varying_of(inputs);
  std::optional<Arrays> agreed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].aval().varying == varying || inputs[i].as_literal()) continue;
    if (!agreed) agreed.emplace(inputs.begin(), inputs.end());
    (*agreed)[i] = make_varying(inputs[i], varying.without(inputs[i].aval().varying));
  }
  return agreed;
}

}  // namespace

Results bind(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
  if (MeshAxes::are_used()) [[unlikely]]
    if (const std::optional<Arrays> agreed = agreeing(primitive, inputs))
      return bind(primitive, *agreed, params);
  Trace* const trace = current_trace;
  bool taped = false;
  for (const Array& input : inputs) {
    if (input.is_valid() && input.node()->is_plain()) continue;
    if (!input.is_valid() || (!trace && !input.is_concrete())) check_usable(input);
    taped |= input.node()->is_taped();
  }
  if (trace) return trace->bind(primitive, inputs, params);
  if (taped) return installed_recorder.load()(primitive, inputs, params);
  return evaluator()(primitive, inputs, params);
}

// --- Staging -------------------------------------------------------------------------------------

namespace {

// How to recompute a scalar that depends on named sizes alone.
struct Recipe {
  const Primitive* primitive;
  Arrays inputs;
  Params params;
};

class StagedNode final : public ArrayNode {
 public:
  StagedNode(Aval aval, const Trace* trace, Var var)
      : ArrayNode(std::move(aval), trace), var(var) {}
  const Var var;
  std::shared_ptr<const Recipe> recipe;
};

bool is_of_sizes(const Array& array) {
  if (array.is_concrete()) return array.as_literal().has_value();
  const auto* staged = dynamic_cast<const StagedNode*>(array.node());
  return staged && staged->recipe;
}

// A trace that may capture nothing: few known elements are constants of its program.
class Constants {
 public:
  explicit Constants(JaxprTrace& trace) : trace_(trace), outer_(innermost_) { innermost_ = this; }
  ~Constants() { innermost_ = outer_; }
  Constants(const Constants&) = delete;
  static Constants* of(const Trace& trace) {
    Constants* found = innermost_;
    while (found && &found->trace_ != &trace) found = found->outer_;
    return found;
  }
  bool may_hold(const Array& array) const {
    return make_constant && array.is_concrete() && array.aval().stack == 0 &&
           num_elements(array.shape().to_sizes()) <= max_constant;
  }
  Array made(const Array& array) {
    for (const auto& [theirs, ours] : made_)
      if (theirs.is_same(array)) return ours;
    const TraceScope scope(&trace_);
    made_.emplace_back(array, make_constant(array.aval(), array.host_buffer()));
    return made_.back().second;
  }

 private:
  JaxprTrace& trace_;
  Constants* const outer_;
  std::vector<std::pair<Array, Array>> made_;
  inline static thread_local Constants* innermost_ = nullptr;
};

// The recipe of an equation's result, where it has one.
std::shared_ptr<const Recipe> recipe_of(const Primitive& primitive, std::span<const Array> inputs,
                                        const Params& params, const std::vector<Aval>& outputs) {
  const bool scalar = outputs.size() == 1 && outputs[0].rank() == 0;
  if (!scalar || !std::all_of(inputs.begin(), inputs.end(), is_of_sizes)) return nullptr;
  if (primitive.is_effectful() || holds_bodies(params)) return nullptr;
  return std::make_shared<const Recipe>(
      Recipe{&primitive, Arrays(inputs.begin(), inputs.end()), params});
}

}  // namespace

JaxprTrace::JaxprTrace(std::string_view name) : Trace(name) {}

Array JaxprTrace::add_input(const Aval& aval) {
  require_possible(aval, name());
  ++num_inputs_;
  return adopt(new StagedNode(aval, this, builder_.add_binder(aval)));
}

Atom JaxprTrace::atom_of(const Array& array) {
  if (owns(array)) return static_cast<const StagedNode*>(array.node())->var;
  check_alive(array);
  if (std::optional<Literal> literal = array.as_literal()) return *literal;
  // Where sizes are numbers, recomputing it here gives a literal instead of an operand.
  if (const auto* staged = dynamic_cast<const StagedNode*>(array.node());
      staged && staged->recipe) {
    for (const auto& [theirs, ours] : remade_)
      if (theirs.is_same(array)) return static_cast<const StagedNode*>(ours.node())->var;
    const Recipe& recipe = *staged->recipe;
    remade_.emplace_back(array, record(*recipe.primitive, recipe.inputs, recipe.params)[0]);
    return static_cast<const StagedNode*>(remade_.back().second.node())->var;
  }
  if (Constants* constants = Constants::of(*this); constants && constants->may_hold(array))
    return atom_of(constants->made(array));
  const auto [captured, is_first] = captured_as_.try_emplace(array.node());
  if (is_first) {
    captured->second = builder_.add_binder(array.aval());
    captures_.push_back(array);
  }
  return captured->second;
}

Arrays JaxprTrace::record(const Primitive& primitive, std::span<const Array> inputs,
                          const Params& params) {
  ProgressScope::step_of_unknown();
  std::vector<Atom> atoms;
  std::vector<Aval> avals;
  atoms.reserve(inputs.size());
  avals.reserve(inputs.size());
  for (const Array& input : inputs) {
    atoms.push_back(atom_of(input));
    avals.push_back(input.aval());
  }
  // First, so that equations that simplify away are checked too.
  std::vector<Aval> output_avals = infer(primitive, avals, params);
  Arrays results;
  if (auto simplified = simplify(primitive, atoms, avals, params)) {
    for (const Atom& atom : *simplified) {
      if (atom.is_var() && !inputs.empty() && atom == atoms[0])
        results.push_back(inputs[0]);
      else
        results.push_back(Array::literal(atom.literal()));
    }
    return results;
  }
  const std::vector<Var> vars =
      builder_.add(primitive, std::move(atoms), params, Source::current(), output_avals);
  std::shared_ptr<const Recipe> recipe = recipe_of(primitive, inputs, params, output_avals);
  results.reserve(vars.size());
  for (std::size_t i = 0; i < vars.size(); ++i) {
    auto* node = new StagedNode(std::move(output_avals[i]), this, vars[i]);
    node->recipe = recipe;
    results.push_back(adopt(node));
  }
  return results;
}

Arrays JaxprTrace::bind(const Primitive& primitive, std::span<const Array> inputs,
                        const Params& params) {
  return record(primitive, inputs, params);
}

std::string JaxprTrace::why_unknown() const {
  return "it is not known while " + std::string(name()) +
         " traces the function, which happens once for all values";
}

void JaxprTrace::add_constraint(Constraint constraint) { builder_.add_constraint(constraint); }

Traced JaxprTrace::close(std::span<const Array> outputs, std::vector<Dim> sizes) {
  std::vector<Atom> atoms;
  for (const Array& output : outputs) atoms.push_back(atom_of(output));
  Traced traced;
  // An operand that only dead equations used is dropped.
  traced.jaxpr = builder_.close(std::move(atoms), std::move(sizes));
  traced.captured = captures_;
  return traced;
}

Arrays LinearTrace::bind(const Primitive& primitive, std::span<const Array> inputs,
                         const Params& params) {
  if (std::none_of(inputs.begin(), inputs.end(), [&](const Array& input) { return owns(input); })) {
    TraceScope scope(parent());
    return plait::bind(primitive, inputs, params);
  }
  return record(primitive, inputs, params);
}

namespace {
enum class Captures { become_inputs, become_constants };

Traced trace_function(const Function& function, std::span<const Aval> inputs, std::string_view name,
                      std::vector<Dim> sizes, Captures captures) {
  const OwnScopes scopes;
  JaxprTrace trace(name);
  std::optional<Constants> constants;
  if (captures == Captures::become_constants) constants.emplace(trace);
  Arrays arguments;
  std::vector<Dim> bound = sizes;
  for (const Aval& aval : inputs) {
    arguments.push_back(trace.add_input(aval));
    collect_sizes(aval.shape, bound);
  }
  SizeScope size_scope(bound);
  TraceScope scope(&trace);
  DataSizes from_data(trace);
  ProgressScope progress("tracing, equation", 0);
  Arrays outputs = function(arguments);
  return from_data.close(outputs, std::move(sizes));
}
}  // namespace

Traced make_jaxpr(const Function& function, std::span<const Aval> inputs, std::string_view name,
                  std::vector<Dim> sizes) {
  return trace_function(function, inputs, name, std::move(sizes), Captures::become_inputs);
}

Jaxpr make_closed_jaxpr(const Function& function, std::span<const Aval> inputs,
                        std::vector<Dim> sizes) {
  const Traced traced =
      trace_function(function, inputs, "make_jaxpr", std::move(sizes), Captures::become_constants);
  if (!traced.captured.empty())
    throw ValueError("a rule uses an array of type " + traced.captured[0].aval().to_string() +
                         " that it was not given",
                     "pass it to the primitive as an operand, or make it inside the rule");
  return traced.jaxpr;
}

}  // namespace plait
