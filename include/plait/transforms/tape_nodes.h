// The nodes of the tape, for the transforms that record functions on it. Nodes point backwards, to
// their operands, and never forwards.
//
// NOTE: [tape order] backward visits the linear equations of all nodes depth-first from the output,
// as a Builder closes the jaxpr that linearize makes of the whole function. Sums of three or more
// cotangents are then taken in the same order, and gradients by tape and by grad are equal to the
// bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>
#include <plait/trace/equation_cache.h>
#include <plait/transforms/tape.h>

namespace plait {

class TapeNode;

// A counted pointer. Dropping the last pointer to a long chain frees it without recursion.
class TapeRef {
 public:
  TapeRef() = default;
  explicit TapeRef(TapeNode* node);
  TapeRef(const TapeRef& other);
  TapeRef(TapeRef&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  TapeRef& operator=(TapeRef other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~TapeRef();
  TapeNode* get() const { return node_; }
  TapeNode* operator->() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  TapeNode* node_ = nullptr;
};

// One result of a node.
struct TapeEdge {
  TapeRef node;
  int output = 0;
};

// The data of a variable besides its value; its leaf refers to it weakly.
struct Variable {
  Variable();
  ~Variable();
  std::mutex mutex;
  std::optional<Array> grad;
};

// A concrete value on the tape.
class TapedNode final : public ConcreteNode {
 public:
  TapedNode(Array value, TapeEdge from, std::shared_ptr<Variable> leaf = nullptr)
      : ConcreteNode(value.aval(), static_cast<const ConcreteNode*>(value.node())->buffer, false),
        plain(std::move(value)),
        edge(std::move(from)),
        variable(std::move(leaf)) {
    trace_id_ = 1;
  }
  const Array plain;  // the value off the tape: a taped one would keep its own node alive
  const TapeEdge edge;
  const std::shared_ptr<Variable> variable;  // of a leaf
};

inline const TapedNode* taped(const Array& array) {
  return array.node()->is_taped() ? static_cast<const TapedNode*>(array.node()) : nullptr;
}
inline const Array& untaped(const Array& array) {
  const TapedNode* node = taped(array);
  return node ? node->plain : array;
}

// The derivative of one operation, made once for a primitive, its parameters and types.
struct TapeProgram : TypedEquation {
  using TypedEquation::TypedEquation;
  std::vector<bool> active;  // inputs that are on the tape
  Jaxpr decomposition;       // for a primitive without a derivative: its equations are recorded

  Jaxpr linear;  // tangents of the active inputs, residuals -> tangents of outputs
  std::vector<int> tangent_of_output;  // the index among linear's outputs, -1: none
  std::vector<int> definition;         // by var of linear: its equation, -1: a binder
  int num_tangents = 0;
  bool has_tangents = false;
  // Inputs, outputs, constants -> residuals. Without equations, residuals are among those.
  Jaxpr known;
  Arrays constants;
  std::vector<int> saved;      // the inputs and outputs that known reads, outputs after inputs
  std::vector<int> residuals;  // without equations in known: the index of each among those saved

  void set_linear(Jaxpr jaxpr, std::size_t tangents);
};

// The results of an operation, and its derivative, whose captures are the residuals.
struct LinearizedOperation {
  Arrays outputs;
  Traced linear;
  std::vector<int> tangent_of_output;
};

// An operation that ran: its derivative, the residuals, and its operands. Without a program it is
// the leaf of a variable.
class TapeNode {
 public:
  std::shared_ptr<const TapeProgram> program;
  std::vector<TapeEdge> parents;  // for the tangents that program->linear takes
  Arrays saved;                   // see TapeProgram; guarded by the lock of backward
  bool is_freed = false;          // whether a backward has freed saved
  // An operation that holds programs, or has its own rules, is rerun for a derivative that is
  // recorded: only then are its residuals on the tape.
  struct Again {
    Arrays primals;
    std::vector<bool> active;
    std::function<LinearizedOperation(std::span<const Array> primals)> linearize;
  };
  std::unique_ptr<const Again> again;
  std::weak_ptr<Variable> variable;  // of a leaf
  Aval aval;                         // of a leaf

  bool is_leaf() const { return !program; }
  HookHandle add_hook(int output, GradientHook hook);
  std::vector<GradientHook> hooks_of(int output) const;
  bool has_hooks() const { return has_hooks_; }

  // Marks of the backward in progress: guarded by its lock.
  std::uint64_t visit = 0;
  int visited_as = 0;

 private:
  friend class TapeRef;
  static void free(TapeNode* node);
  std::atomic<std::int64_t> references_{0};
  TapeNode* next_freed_ = nullptr;
  mutable std::mutex hooks_mutex_;
  std::vector<std::shared_ptr<HookHandle::Entry>> hooks_;
  std::atomic<bool> has_hooks_{false};
};

// Whether an operation on these inputs, outside every trace, would be recorded.
bool is_recorded(std::span<const Array> inputs);
std::int64_t num_variables();  // alive in the process
// Whether anything could be recorded on this thread: whether there are variables.
bool may_record();
// Runs function on inputs of which some are on the tape, linearizes it as a whole, and records
// that: so are functions with their own rules recorded. The function is kept, to be rerun, and must
// own what it refers to. name is for the error about what it captures from the tape.
Arrays record_linearized(Function function, std::span<const Array> inputs, const std::string& name);

}  // namespace plait
