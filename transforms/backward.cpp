// backward: collects the linear equations that a value on the tape depends on, and transposes them
// in reverse order. They are first described by indices (slots for cotangents, steps for
// equations): nodes are accessed under one lock, and no lock is held while rules and hooks run.
//
// See NOTE: [tape order] for the order of the steps.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/jvp_interpreter.h>
#include <plait/transforms/tape_nodes.h>
#include <plait/transforms/transforms.h>

#include <pthread.h>

#include <algorithm>

namespace plait {

struct HookHandle::Entry {
  std::mutex mutex;
  int output;
  GradientHook hook;  // empty: removed
};

namespace {

// Guards the visit marks and the saved values of every node, and their release. It is held across
// fork, so that the child does not inherit it locked by a thread that the child does not have.
std::mutex& tape_mutex() {
  static std::mutex* const mutex = [] {
    pthread_atfork([] { tape_mutex().lock(); }, [] { tape_mutex().unlock(); },
                   [] { tape_mutex().unlock(); });
    return new std::mutex;
  }();
  return *mutex;
}
std::uint64_t num_visits = 0;

class Backward {
 public:
  Backward(const TapedNode& y, const BackwardOptions& options)
      : root_(y.edge),
        keeps_(options.retain_graph || options.create_graph),
        records_(options.create_graph) {
    const std::lock_guard lock(tape_mutex());
    visit_ = ++num_visits;
    const Place place = place_of(root_.node.get(), root_.output);
    order_from(place.step);
    root_slot_ = place.slot;
    take_saved();
  }

  void run(const Array& cotangent) {
    slots_.resize(num_slots_);
    accumulate(root_slot_, Tangent(cotangent));
    for (std::size_t i = order_.size(); i-- > 0;) {
      const Step& step = steps_[order_[i]];
      if (step.equation >= 0)
        transpose(step);
      else
        call_hooks(step);
      Visited& visited = visited_[step.visited];
      if (--visited.steps_left == 0) visited.residuals.clear();
    }
    finish();
  }

 private:
  // The slot that accumulates the cotangent of a tangent, and the step that computes the tangent;
  // -1: none.
  struct Place {
    int slot = -1, step = -1;
  };
  struct Visited {
    TapeNode* node;
    int first_slot, first_step, first_hook_slot;
    int steps_left = 0;
    bool is_ready = false;  // whether residuals are computed from saved
    Arrays saved, residuals;
  };
  // An equation of a node, or the hooks of one output.
  struct Step {
    int visited, equation, output, first_target;
    char state = 0;  // 0 unvisited, 1 on the stack, 2 ordered
  };

  int visit(TapeNode* node) {
    if (node->visit == visit_) return node->visited_as;
    node->visit = visit_;
    node->visited_as = int(visited_.size());
    Visited visited{node, num_slots_, int(steps_.size()), -1, 0, false, {}, {}};
    if (node->is_leaf()) {
      ++num_slots_;
      leaves_.push_back(node->visited_as);
    } else {
      const Jaxpr& linear = node->program->linear;
      num_slots_ += int(linear->avals.size());
      int target = int(targets_.size());
      for (std::size_t i = 0; i < linear->equations.size(); ++i) {
        steps_.push_back({node->visited_as, int(i), -1, target});
        target += int(linear->equations[i].inputs.size());
      }
      const int num_outputs = int(node->program->tangent_of_output.size());
      if (node->has_hooks()) {
        visited.first_hook_slot = num_slots_;
        num_slots_ += num_outputs;
        for (int i = 0; i < num_outputs; ++i) steps_.push_back({node->visited_as, -1, i, target++});
      }
      targets_.resize(target, -1);
    }
    visited_.push_back(std::move(visited));
    return node->visited_as;
  }

  Place place_of(TapeNode* node, int output) {
    for (;;) {
      const Visited& visited = visited_[visit(node)];
      if (node->is_leaf()) return {visited.first_slot, -1};
      if (visited.first_hook_slot >= 0) {
        const int equations = int(node->program->linear->equations.size());
        return {visited.first_hook_slot + output, visited.first_step + equations + output};
      }
      Place place;
      const TapeEdge* parent = follow(visited, output_atom(*node, output), place);
      if (!parent) return place;
      node = parent->node.get();
      output = parent->output;
    }
  }

  static const Atom& output_atom(const TapeNode& node, int output) {
    return node.program->linear->outputs[node.program->tangent_of_output[output]];
  }

  // Finds the place of a var of a node's linear jaxpr. If the var is a parent's output, returns
  // that edge.
  const TapeEdge* follow(const Visited& visited, const Atom& atom, Place& place) const {
    const TapeProgram& program = *visited.node->program;
    if (!atom.is_var()) return nullptr;
    const int var = atom.var().id;
    if (var < program.num_tangents) return &visited.node->parents[var];
    if (program.definition[var] >= 0)
      place = {visited.first_slot + var, visited.first_step + program.definition[var]};
    return nullptr;
  }

  Place place_in(int visited, const Atom& atom) {
    Place place;
    const TapeEdge* parent = follow(visited_[visited], atom, place);
    return parent ? place_of(parent->node.get(), parent->output) : place;
  }

  std::span<const Atom> inputs_of(const Step& step) const {
    const TapeNode& node = *visited_[step.visited].node;
    if (step.equation >= 0) return node.program->linear->equations[step.equation].inputs;
    return {&output_atom(node, step.output), 1};
  }

  // Depth-first, without recursion: see Builder::close.
  void order_from(int root) {
    if (root < 0) return;
    std::vector<std::pair<int, std::size_t>> stack{{root, 0}};
    steps_[root].state = 1;
    while (!stack.empty()) {
      auto& [index, next] = stack.back();
      const Step step = steps_[index];
      const std::span<const Atom> inputs = inputs_of(step);
      int child = -1;
      while (next < inputs.size() && child < 0) {
        const Place place = place_in(step.visited, inputs[next]);
        targets_[step.first_target + next++] = place.slot;
        if (place.step >= 0 && steps_[place.step].state == 0) child = place.step;
      }
      if (child >= 0) {
        steps_[child].state = 1;
        stack.emplace_back(child, 0);
      } else {
        steps_[index].state = 2;
        order_.push_back(index);
        ++visited_[step.visited].steps_left;
        stack.pop_back();
      }
    }
  }

  void take_saved() {
    for (const Visited& visited : visited_)
      if (visited.steps_left > 0 && visited.node->is_freed)
        throw ValueError(
            "backward: what the tape kept for this value was freed by an earlier backward",
            std::string("call the earlier one with ") +
                (Source::is_python() ? "retain_graph=True" : "{.retain_graph = true}") +
                ", or compute the value again");
    for (Visited& visited : visited_) {
      TapeNode& node = *visited.node;
      if (visited.steps_left == 0 || node.saved.empty()) continue;
      if (keeps_) {
        visited.saved = node.saved;
      } else {
        visited.saved.swap(node.saved);
        node.is_freed = true;
      }
    }
  }

  // --- Running -----------------------------------------------------------------------------------

  void accumulate(int slot, const Tangent& cotangent) {
    if (slot < 0 || cotangent.is_zero()) return;
    Array& sum = slots_[slot];
    sum = sum.is_valid() ? add_tangents(Tangent(sum), cotangent).array() : cotangent.array();
  }

  // A saved value. It is put back on the tape where derivatives are recorded.
  Array attached(const Array& plain, const TapeEdge& edge) const {
    return records_ && edge.node ? Array(new TapedNode(plain, edge)) : plain;
  }

  Arrays residuals_of(Visited& visited) const {
    TapeNode& node = *visited.node;
    const TapeProgram& program = *node.program;
    if (node.again) return records_ ? residuals_again(node) : std::move(visited.saved);
    if (records_) attach_values(visited);
    Arrays residuals;
    if (program.known->equations.empty() && program.constants.empty()) {
      for (int place : program.residuals) residuals.push_back(visited.saved[place]);
      return residuals;
    }
    Arrays values(program.known->num_binders - program.constants.size());
    for (std::size_t i = 0; i < program.saved.size(); ++i)
      values[program.saved[i]] = std::move(visited.saved[i]);
    values.insert(values.end(), program.constants.begin(), program.constants.end());
    return eval_jaxpr(program.known, values);
  }

  void attach_values(Visited& visited) const {
    const TapeProgram& program = *visited.node->program;
    const int num_inputs = int(program.inputs.size());
    for (std::size_t i = 0; i < program.saved.size(); ++i) {
      const int value = program.saved[i];
      TapeEdge edge;
      if (value >= num_inputs) {
        const int output = value - num_inputs;
        if (program.tangent_of_output[output] >= 0) edge = {TapeRef(visited.node), output};
      } else if (program.active[value]) {
        edge =
            visited.node
                ->parents[std::count(program.active.begin(), program.active.begin() + value, true)];
      }
      visited.saved[i] = attached(visited.saved[i], edge);
    }
  }

  Arrays residuals_again(const TapeNode& node) const {
    Arrays primals;
    std::size_t parent = 0;
    for (std::size_t i = 0; i < node.again->primals.size(); ++i)
      primals.push_back(node.again->active[i]
                            ? attached(node.again->primals[i], node.parents[parent++])
                            : node.again->primals[i]);
    LinearizedOperation done = node.again->linearize(primals);
    const Jaxpr &before = node.program->linear, &now = done.linear.jaxpr;
    const auto wanted = before->input_avals(), given = now->input_avals();
    if (!std::equal(wanted.begin(), wanted.end(), given.begin(), given.end()) ||
        before->equations.size() != now->equations.size())
      throw TracerError(
          "backward: a function that is done again, for a derivative that is "
          "recorded, has another derivative than before",
          "let it depend on its arguments alone");
    return std::move(done.linear.captured);
  }

  void transpose(const Step& step) {
    Visited& visited = visited_[step.visited];
    const TapeProgram& program = *visited.node->program;
    const Jaxpr& linear = program.linear;
    const Equation& equation = linear->equations[step.equation];
    Tangents cotangents;
    cotangents.reserve(equation.outputs.size());
    bool nonzero = false;
    for (Var var : equation.outputs) {
      Array& sum = slots_[visited.first_slot + var.id];
      nonzero |= sum.is_valid();
      cotangents.push_back(sum.is_valid() ? Tangent(std::move(sum)) : Tangent(linear->aval(var)));
      sum = Array();
    }
    if (!nonzero) return;
    if (!visited.is_ready) {
      visited.residuals = residuals_of(visited);
      visited.saved.clear();
      visited.is_ready = true;
    }
    std::vector<TransposeInput> inputs;
    inputs.reserve(equation.inputs.size());
    for (const Atom& atom : equation.inputs) {
      if (!atom.is_var())
        inputs.emplace_back(Array::literal(atom.literal()));
      else if (const int var = atom.var().id;
               var >= program.num_tangents && var < linear->num_binders)
        inputs.emplace_back(visited.residuals[var - program.num_tangents]);
      else
        inputs.emplace_back(linear->aval(atom.var()));
    }
    if (const int slot = targets_[step.first_target]; slot >= 0 && slots_[slot].is_valid())
      if (std::optional<Array> sum =
              accumulated_cotangent(slots_[slot], equation, inputs, cotangents)) {
        slots_[slot] = std::move(*sum);
        return;
      }
    const Tangents results = transpose_equation(equation, inputs, cotangents);
    for (std::size_t i = 0; i < results.size(); ++i)
      accumulate(targets_[step.first_target + i], results[i]);
  }

  void call_hooks(const Step& step) {
    const Visited& visited = visited_[step.visited];
    Array& sum = slots_[visited.first_hook_slot + step.output];
    if (!sum.is_valid()) return;
    Array gradient = std::exchange(sum, Array());
    gradient = hooked(*visited.node, step.output, std::move(gradient));
    accumulate(targets_[step.first_target], Tangent(std::move(gradient)));
  }

  static Array hooked(const TapeNode& node, int output, Array gradient) {
    for (const GradientHook& hook : node.hooks_of(output)) {
      const std::optional<Array> other = hook(gradient);
      if (!other) continue;
      if (!(other->shape() == gradient.shape() && other->dtype() == gradient.dtype()))
        throw ShapeError("a hook returned " + other->aval().to_string() +
                             " for a gradient of type " + gradient.aval().to_string(),
                         "return a gradient of the same shape and dtype, or nothing");
      gradient = *other;
    }
    return gradient;
  }

  // Every hook runs before any gradient is stored.
  void finish() {
    std::vector<std::pair<std::shared_ptr<Variable>, Array>> gradients;
    for (int leaf : leaves_) {
      const Visited& visited = visited_[leaf];
      const Array& sum = slots_[visited.first_slot];
      std::shared_ptr<Variable> variable = visited.node->variable.lock();
      if (!variable) continue;
      const Aval& aval = visited.node->aval;
      Array gradient =
          sum.is_valid() ? as_weak(sum, aval).array() : Tangent(tangent_aval(aval)).instantiate();
      gradients.emplace_back(std::move(variable), hooked(*visited.node, 0, std::move(gradient)));
    }
    for (const auto& [variable, gradient] : gradients) add_to(*variable, gradient);
  }

  static void add_to(Variable& variable, const Array& gradient) {
    std::optional<Array> before;
    for (;;) {
      const Array sum = before ? Array(lax::add(*before, gradient)) : gradient;
      const std::lock_guard lock(variable.mutex);
      const bool same = variable.grad ? before && variable.grad->is_same(*before) : !before;
      if (same) {
        variable.grad = sum;
        return;
      }
      before = variable.grad;  // another thread updated it first
    }
  }

  const TapeEdge root_;
  const bool keeps_, records_;
  std::uint64_t visit_;
  int num_slots_ = 0, root_slot_ = -1;
  std::vector<Visited> visited_;
  std::vector<int> leaves_;
  std::vector<Step> steps_;
  std::vector<int> targets_;  // slots of the inputs of steps
  std::vector<int> order_;
  Arrays slots_;
};

Array checked_cotangent(const Array& y, const std::optional<Array>& cotangent) {
  const Aval& aval = y.aval();
  if (!cotangent) {
    if (aval.rank() != 0)
      throw ShapeError("backward: the value has shape (" + aval.shape.to_string() +
                           "), and only a scalar has a gradient by itself",
                       "reduce it, for example by sum or mean, or give backward a cotangent of its "
                       "shape");
    return Array::literal(Literal{aval.dtype, aval.weak, 0, 1, 0});
  }
  if (!cotangent->is_concrete())
    throw TracerError("backward: the cotangent is traced, and the tape is for values",
                      "use vjp inside transforms");
  return flat::fitting(aval, *cotangent, "cotangent", "backward: the cotangent");
}

void check_place(const Array& y) {
  if (!y.is_concrete())
    throw TracerError("backward: the value, of type " + y.aval().to_string() +
                          ", is traced, and the tape is for values",
                      "differentiate a function with grad or vjp inside transforms");
  for (const Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (dynamic_cast<const JaxprTrace*>(trace) && !dynamic_cast<const LinearTrace*>(trace))
      throw TracerError("backward was called while " + std::string(trace->name()) +
                            " traces a function, which happens once for all calls",
                        "call it outside, or differentiate with grad inside the function");
  if (!requires_grad(y))
    throw ValueError("backward: the value, of type " + y.aval().to_string() +
                         ", is not on the tape: no variable leads to it by differentiable "
                         "operations",
                     "make x = plait.variable(...) and compute the value from x, outside no_grad");
}

}  // namespace

void backward(Operand y, const BackwardOptions& options) {
  check_place(y);
  // From here on, every value is concrete.
  TraceScope scope(nullptr);
  const RecordingScope recording(options.create_graph);
  const Array cotangent = checked_cotangent(y, options.cotangent);
  Backward pass(*taped(y), options);
  pass.run(options.create_graph ? cotangent : detach(cotangent));
}

// --- Nodes ---------------------------------------------------------------------------------------

TapeRef::TapeRef(TapeNode* node) : node_(node) {
  if (node) node->references_.fetch_add(1, std::memory_order_relaxed);
}
TapeRef::TapeRef(const TapeRef& other) : TapeRef(other.node_) {}
TapeRef::~TapeRef() {
  if (node_ && node_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    TapeNode::free(node_);
}

// Freeing a node releases its parents, which come here again. They wait in a list instead of
// recursing.
void TapeNode::free(TapeNode* node) {
  static thread_local bool is_freeing = false;
  static thread_local TapeNode* waiting = nullptr;
  node->next_freed_ = waiting;
  waiting = node;
  if (is_freeing) return;
  is_freeing = true;
  while (waiting) {
    TapeNode* next = waiting;
    waiting = next->next_freed_;
    delete next;
  }
  is_freeing = false;
}

HookHandle TapeNode::add_hook(int output, GradientHook hook) {
  auto entry = std::make_shared<HookHandle::Entry>();
  entry->output = output;
  entry->hook = std::move(hook);
  HookHandle handle;
  handle.entry_ = entry;
  const std::lock_guard lock(hooks_mutex_);
  hooks_.push_back(std::move(entry));
  has_hooks_ = true;
  return handle;
}

std::vector<GradientHook> TapeNode::hooks_of(int output) const {
  std::vector<GradientHook> hooks;
  if (!has_hooks_) return hooks;
  const std::lock_guard lock(hooks_mutex_);
  for (const auto& entry : hooks_) {
    const std::lock_guard entry_lock(entry->mutex);
    if (entry->output == output && entry->hook) hooks.push_back(entry->hook);
  }
  return hooks;
}

void HookHandle::remove() {
  const std::shared_ptr<Entry> entry = entry_.lock();
  if (!entry) return;
  GradientHook last;  // destroyed without the lock
  const std::lock_guard lock(entry->mutex);
  last.swap(entry->hook);
}

HookHandle register_hook(const Array& x, GradientHook hook) {
  if (!requires_grad(x))
    throw ValueError("register_hook: an array of type " + x.aval().to_string() +
                         " is not on the tape, and has no gradient",
                     "register the hook on a variable, or on what was computed from one");
  const TapeEdge& edge = taped(x)->edge;
  return edge.node->add_hook(edge.output, std::move(hook));
}

}  // namespace plait
