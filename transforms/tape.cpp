// Recording: what bind does with operations on variables outside every trace. The operation runs,
// and its results refer to a node: the derivative (made once per primitive, parameters and types),
// the values that it needs, and the nodes of its operands. transforms/backward.cpp walks them.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/trace/equation_cache.h>
#include <plait/trace/suspended.h>
#include <plait/transforms/tape_nodes.h>
#include <plait/transforms/transforms.h>

#include <algorithm>

namespace plait {
namespace {

thread_local bool recording = true;
std::atomic<std::int64_t> variables_alive{0};

bool is_active(const Array& array) { return array.node()->is_taped(); }

std::vector<bool> active_of(std::span<const Array> inputs) {
  std::vector<bool> active;
  active.reserve(inputs.size());
  for (const Array& input : inputs) active.push_back(is_active(input));
  return active;
}

std::vector<TapeEdge> edges_of(std::span<const Array> inputs) {
  std::vector<TapeEdge> edges;
  edges.reserve(inputs.size());
  for (const Array& input : inputs)
    if (const TapedNode* node = taped(input)) edges.push_back(node->edge);
  return edges;
}

// Integers and bools have no tangents, whatever a rule says.
Arrays nonzero_tangents(std::span<const Array> outputs, std::span<const Tangent> tangents,
                        std::vector<int>& place_of_output) {
  Arrays nonzero;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool has = is_differentiable(outputs[i].aval()) && !tangents[i].is_zero();
    place_of_output.push_back(has ? int(nonzero.size()) : -1);
    if (has) nonzero.push_back(tangents[i].array());
  }
  return nonzero;
}

// Tangents in the linear trace for the inputs that are on the tape.
template <class Values>
Tangents tangent_inputs(LinearTrace& linear, const Values& avals, const std::vector<bool>& active) {
  Tangents tangents;
  for (std::size_t i = 0; i < avals.size(); ++i)
    tangents.push_back(active[i] ? Tangent(linear.add_input(tangent_aval(avals[i])))
                                 : Tangent(avals[i]));
  return tangents;
}

// --- Derivatives of primitives -------------------------------------------------------------------

// Finds the binders to save, which the program reads. If it computes nothing, also finds which of
// them each residual is.
void set_saved(TapeProgram& program) {
  const Jaxpr& known = program.known;
  std::vector<int> place(known->num_binders, -1);
  auto read = [&](const Atom& atom) {
    if (atom.is_var() && atom.var().id < known->num_binders) place[atom.var().id] = 0;
  };
  for (const Equation& equation : known->equations)
    for (const Atom& atom : equation.inputs) read(atom);
  for (const Atom& atom : known->outputs) read(atom);
  const int num_values = known->num_binders - int(program.constants.size());
  for (int binder = 0; binder < num_values; ++binder) {
    if (place[binder] < 0) continue;
    place[binder] = int(program.saved.size());
    program.saved.push_back(binder);
  }
  if (!known->equations.empty() || !program.constants.empty()) return;
  for (const Atom& atom : known->outputs) program.residuals.push_back(place[atom.var().id]);
}

std::shared_ptr<const TapeProgram> make_program(const Primitive& primitive,
                                                std::span<const Array> inputs,
                                                const Params& params) {
  auto program = std::make_shared<TapeProgram>(primitive, inputs, params);
  program->active = active_of(inputs);
  if (!Jvp::table().find(primitive) && Decompose::table().find(primitive)) {
    program->decomposition = decomposition(primitive, program->inputs, params);
    return program;
  }
  const Jvp::Rule& jvp = rule<Jvp>(primitive);
  JaxprTrace known("the tape");
  TraceScope known_scope(&known);
  Arrays primals, outputs;
  for (const Aval& aval : program->inputs) primals.push_back(known.add_input(aval));
  for (const Aval& aval : infer(primitive, program->inputs, params))
    outputs.push_back(known.add_input(aval));
  LinearTrace linear("the tape");
  const Tangents tangents = tangent_inputs(linear, program->inputs, program->active);
  Tangents pushed;
  {
    TraceScope scope(&linear);
    pushed = jvp(primals, tangents, outputs, params);
  }
  const Arrays nonzero = nonzero_tangents(outputs, pushed, program->tangent_of_output);
  const Traced linear_traced = linear.close(nonzero);
  const Traced known_traced = known.close(linear_traced.captured);
  program->known = known_traced.jaxpr;
  program->constants = known_traced.captured;
  program->set_linear(linear_traced.jaxpr,
                      std::count(program->active.begin(), program->active.end(), true));
  set_saved(*program);
  return program;
}

std::shared_ptr<const TapeProgram> find_program(const Primitive& primitive,
                                                std::span<const Array> inputs,
                                                const Params& params) {
  static thread_local EquationCache<std::shared_ptr<const TapeProgram>> cache;
  std::shared_ptr<const TapeProgram>& place = cache.place_of(primitive, inputs, params);
  if (place && place->is(primitive, inputs, params) &&
      std::equal(inputs.begin(), inputs.end(), place->active.begin(),
                 [](const Array& input, bool active) { return is_active(input) == active; }))
    return place;
  std::shared_ptr<const TapeProgram> made = make_program(primitive, inputs, params);
  // Programs are released by their owners, as host functions are.
  return holds_bodies(params) || holds_callable(params) ? made : place = std::move(made);
}

// --- Recording -----------------------------------------------------------------------------------

// Puts the outputs that have a tangent on the tape.
Arrays put_on_tape(Arrays outputs, const TapeProgram& program, TapeNode* node) {
  const TapeRef ref(node);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Array& plain = untaped(outputs[i]);
    if (program.tangent_of_output[i] < 0)
      outputs[i] = Array(plain);
    else
      outputs[i] = Array(new TapedNode(plain, {ref, int(i)}));
  }
  return outputs;
}

Arrays off_tape(Arrays outputs) {
  for (Array& output : outputs) output = Array(untaped(output));
  return outputs;
}

// Linearizes a primitive that holds programs, with a linear trace of its own.
LinearizedOperation linearize_operation(const Primitive& primitive, std::span<const Array> primals,
                                        const Params& params, const std::vector<bool>& active) {
  LinearTrace linear("the tape");
  const std::vector<Aval> avals = avals_of(primals);
  const Tangents tangents = tangent_inputs(linear, avals, active);
  Differentiated result = rule<Linearize>(primitive)(primals, tangents, params, &linear);
  LinearizedOperation done;
  const Arrays nonzero = nonzero_tangents(result.outputs, result.tangents, done.tangent_of_output);
  done.linear = linear.close(nonzero);
  done.outputs = std::move(result.outputs);
  return done;
}

LinearizedOperation linearize_function(const Function& function, std::span<const Array> primals,
                                       const std::vector<bool>& active) {
  flat::LinearMap map = flat::linearize(function, primals, active);
  LinearizedOperation done{std::move(map.outputs), {map.jaxpr, std::move(map.residuals)}, {}};
  done.tangent_of_output.assign(done.outputs.size(), -1);
  for (std::size_t i = 0; i < map.outputs_with_tangent.size(); ++i)
    done.tangent_of_output[map.outputs_with_tangent[i]] = int(i);
  return done;
}

// Linearizes on the values of the inputs, off the tape, and puts the outputs on it.
Arrays record_again(std::span<const Array> inputs,
                    std::function<LinearizedOperation(std::span<const Array>)> linearize) {
  Arrays primals;
  for (const Array& input : inputs) primals.push_back(untaped(input));
  LinearizedOperation done = linearize(primals);
  if (done.linear.jaxpr->outputs.empty()) return off_tape(std::move(done.outputs));
  auto program = std::make_shared<TapeProgram>();
  program->tangent_of_output = std::move(done.tangent_of_output);
  std::vector<TapeEdge> parents = edges_of(inputs);
  program->set_linear(done.linear.jaxpr, parents.size());
  auto node = std::make_unique<TapeNode>();
  node->parents = std::move(parents);
  node->saved = std::move(done.linear.captured);
  node->again.reset(
      new TapeNode::Again{std::move(primals), active_of(inputs), std::move(linearize)});
  node->program = program;
  return put_on_tape(std::move(done.outputs), *program, node.release());
}

// Primitives whose Jvp rule reads values, so that it cannot be traced once to a program.
class ValueRules {
 public:
  bool has(const Primitive& primitive) const { return flags_[primitive.index()].load(); }
  void add(const Primitive& primitive) { flags_[primitive.index()].store(true); }

 private:
  std::array<std::atomic<bool>, max_primitives> flags_{};
};
ValueRules value_rules;

Arrays record_with_values(const Primitive& primitive, std::span<const Array> inputs,
                          const Params& params) {
  return record_again(
      inputs, [&primitive, params, active = active_of(inputs)](std::span<const Array> primals) {
        return linearize_function(
            [&](std::span<const Array> again) { return Arrays(bind(primitive, again, params)); },
            primals, active);
      });
}

// Nullptr if the rule reads values. In Python that raises a Python exception. Any other exception
// is raised again when the rule runs on values.
std::shared_ptr<const TapeProgram> program_of_types(const Primitive& primitive,
                                                    std::span<const Array> inputs,
                                                    const Params& params) {
  try {
    return find_program(primitive, inputs, params);
  } catch (const TracerError&) {
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
  }
  return nullptr;
}

Arrays record(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
  if (!recording) return off_tape(evaluator()(primitive, inputs, params));
  if (Linearize::table().find(primitive))
    return record_again(
        inputs, [&primitive, params, active = active_of(inputs)](std::span<const Array> primals) {
          return linearize_operation(primitive, primals, params, active);
        });
  if (value_rules.has(primitive)) return record_with_values(primitive, inputs, params);
  const std::shared_ptr<const TapeProgram> program = program_of_types(primitive, inputs, params);
  if (!program) {
    Arrays outputs = record_with_values(primitive, inputs, params);
    value_rules.add(primitive);
    return outputs;
  }
  if (program->decomposition) return eval_jaxpr(program->decomposition, inputs);
  Arrays outputs = evaluator()(primitive, inputs, params);
  if (!program->has_tangents) return off_tape(std::move(outputs));
  auto node = std::make_unique<TapeNode>();
  node->parents = edges_of(inputs);
  node->saved.reserve(program->saved.size());
  for (int binder : program->saved)
    node->saved.push_back(untaped(
        std::size_t(binder) < inputs.size() ? inputs[binder] : outputs[binder - inputs.size()]));
  node->program = program;
  return put_on_tape(std::move(outputs), *program, node.release());
}

const bool installed = (set_recorder(record), true);

[[noreturn]] void throw_no_variable(const char* what, const Array& x) {
  throw ValueError(
      std::string(what) + ": an array of type " + x.aval().to_string() + " is no variable",
      "make it one with x = plait.variable(x)");
}

}  // namespace

void TapeProgram::set_linear(Jaxpr jaxpr, std::size_t tangents) {
  linear = std::move(jaxpr);
  num_tangents = int(tangents);
  has_tangents = !linear->outputs.empty();
  definition.assign(linear->avals.size(), -1);
  for (std::size_t i = 0; i < linear->equations.size(); ++i)
    for (Var var : linear->equations[i].outputs) definition[var.id] = int(i);
}

Arrays record_linearized(Function function, std::span<const Array> inputs,
                         const std::string& name) {
  return record_again(inputs, [function = std::move(function), name,
                               active = active_of(inputs)](std::span<const Array> primals) {
    LinearizedOperation done = linearize_function(function, primals, active);
    // The inputs are off the tape, so results can be on it only by what the function captured.
    if (!is_recorded(primals))
      for (const Arrays* made : {&done.outputs, &done.linear.captured})
        for (const Array& array : *made)
          if (is_recorded({&array, 1})) throw_captured(array, name);
    return done;
  });
}

bool is_recorded(std::span<const Array> inputs) {
  return recording && std::any_of(inputs.begin(), inputs.end(), is_active);
}
std::int64_t num_variables() { return variables_alive; }
bool may_record() { return recording && num_variables() > 0; }

// --- Variables -----------------------------------------------------------------------------------

Variable::Variable() { ++variables_alive; }
Variable::~Variable() { --variables_alive; }

Array variable(Operand value) {
  if (!is_floating(value.dtype()))
    throw DtypeError("variable: the value has dtype " + std::string(name_of(value.dtype())) +
                         ", which has no " + (is_complex(value.dtype()) ? "real " : "") +
                         "derivative",
                     is_complex(value.dtype())
                         ? "make its real and imaginary parts variables"
                         : "convert it with .astype(float), or use it as it is: it is constant");
  if (!value.is_concrete())
    throw TracerError("variable: the value, of type " + value.aval().to_string() +
                          ", is traced, and the tape is for values",
                      "make the variable outside the function, or differentiate with grad");
  TapeRef leaf(new TapeNode);
  auto state = std::make_shared<Variable>();
  leaf->variable = state;
  leaf->aval = value.aval();
  return Array(new TapedNode(Array(untaped(value)), {leaf, 0}, std::move(state)));
}

bool requires_grad(const Array& x) { return x.aval(), is_active(x); }
bool is_variable(const Array& x) { return requires_grad(x) && taped(x)->variable; }

Array detach(const Array& x) {
  if (!x.is_concrete()) return lax::stop_gradient(x);
  return untaped(x);
}

Array same_value(const Array& x) {
  if (!is_variable(x)) return x;
  return Array(new TapedNode(untaped(x), taped(x)->edge));
}

std::optional<Array> grad_of(const Array& x) {
  if (!is_variable(x)) return std::nullopt;
  Variable& state = *taped(x)->variable;
  const std::lock_guard lock(state.mutex);
  return state.grad;
}

void set_grad(const Array& x, std::optional<Array> grad) {
  if (!is_variable(x)) throw_no_variable("grad", x);
  if (grad && !(grad->shape() == x.shape() && grad->dtype() == x.dtype()))
    throw ShapeError("grad: " + grad->aval().to_string() +
                         " is no gradient of a variable of type " + x.aval().to_string(),
                     "give an array of its shape and dtype, or none");
  Variable& state = *taped(x)->variable;
  const std::lock_guard lock(state.mutex);
  state.grad.swap(grad);
}

void assign(Array& x, const Array& value) {
  if (!(x.shape() == value.shape()))
    throw ShapeError("assign: a value of shape (" + value.shape().to_string() +
                         ") for an array of shape (" + x.shape().to_string() + ")",
                     "give a value of its shape");
  if (x.dtype() != value.dtype() && !x.aval().weak)
    throw DtypeError("assign: a value of dtype " + std::string(name_of(value.dtype())) +
                         " for an array of dtype " + std::string(name_of(x.dtype())),
                     "convert the value with astype");
  const TapedNode* node = taped(x);
  if (!node) {
    x = value;
  } else if (!recording) {
    x = Array(new TapedNode(Array(untaped(value)), node->edge, node->variable));
  } else if (node->variable) {
    throw ValueError(
        "a variable of type " + x.aval().to_string() +
            " was written to while the tape records, which would lose what it stood "
            "for",
        "update it under no_grad, or work on a new array, such as x + 0 or x.at[i].set(v)");
  } else {
    x = value;
  }
}

bool is_recording() { return recording; }
void set_recording(bool on) { recording = on; }

}  // namespace plait
