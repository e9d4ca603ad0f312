// Traces, and bind, through which every primitive is applied.
//
// A thread has a current trace, or none. bind hands the equation to it. A trace's own process runs
// with the enclosing trace current. With no trace, the evaluator computes now. So one user function
// runs eagerly, is staged to a jaxpr, and is transformed, with one interface.
//
// NOTE: [no levels] Nothing compares integer levels. A tracer belongs to the trace that made it. To
// any other trace inside that one it is a constant, lifted or captured. Perturbation confusion
// cannot arise, because each trace has an identity and each jaxpr is closed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>

namespace plait {

class Trace {
 public:
  // Becomes the current trace of this thread in a TraceScope. parent is the trace that was current.
  explicit Trace(std::string_view name);
  virtual ~Trace();
  Trace(const Trace&) = delete;

  // Applies a primitive; called with this trace current.
  virtual Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
                      const Params& params) = 0;
  // The known value beneath one of this trace's own tracers, if there is one.
  virtual std::optional<Array> known(const ArrayNode& tracer) const {
    (void)tracer;
    return std::nullopt;
  }
  // Why a value is not known, for the error: "its value is not known while jit traces f".
  virtual std::string why_unknown() const = 0;

  Trace* parent() const { return parent_; }
  std::string_view name() const { return name_; }
  std::uint64_t id() const { return id_; }  // unique among all traces, dead or alive
  bool owns(const Array& array) const {
    if (!array.is_valid()) array.aval();  // throws
    return array.node()->trace_ == this && array.node()->trace_id_ == id_;
  }
  static Trace* current();

 protected:
  // Makes node a tracer of this trace.
  Array adopt(ArrayNode* node) const;
  // TracerError when the array belongs neither to this trace nor to one that encloses it.
  void check_alive(const Array& array) const;

 private:
  friend class TraceScope;
  friend void check_usable(const Array& array);
  Trace* parent_;
  std::uint64_t id_;
  std::string_view name_;
};

// TracerError when the value of a traced array is needed: says why it is not known, and the fix.
[[noreturn]] void throw_unknown_value(const Array& array);

// Makes a trace (or none) the current one of this thread for a scope.
class TraceScope {
 public:
  explicit TraceScope(Trace* trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;

 private:
  Trace* previous_;
};

// Applies a primitive in the current trace. One result converts to Array.
class Results : public Arrays {
 public:
  using Arrays::Arrays;
  Results(Arrays arrays) : Arrays(std::move(arrays)) {}  // NOLINT
  operator Array() && { return std::move(front()); }     // NOLINT: most primitives have one result
};
Results bind(const Primitive& primitive, std::span<const Array> inputs, const Params& params);
inline Results bind(const Primitive& primitive, std::initializer_list<Array> inputs,
                    const Params& params = {}) {
  return bind(primitive, std::span<const Array>(inputs.begin(), inputs.size()), params);
}
// A template, because argument-dependent lookup of bind on a vector also finds std::bind: this one
// is as exact and more specialised.
template <class Inputs, class P = Params>
  requires std::is_convertible_v<Inputs&&, std::span<const Array>> &&
           std::is_convertible_v<P&&, const Params&>
Results bind(const Primitive& primitive, Inputs&& inputs, P&& params = {}) {
  const Params& same = params;
  return bind(primitive, std::span<const Array>(inputs), same);
}

// Computes an equation on concrete arrays now. Set by lib/compile when the library is loaded.
using Evaluator = Arrays (*)(const Primitive& primitive, std::span<const Array> inputs,
                             const Params& params);
void set_evaluator(Evaluator evaluator);
Evaluator evaluator();
// Called by bind instead when an input is on the tape and nothing is being traced. Set by the tape.
void set_recorder(Evaluator recorder);

// A function over a flat list of arrays: what every transform takes and gives. Trees of arguments
// are flattened at the API, in C++ and in Python.
using Function = std::function<Arrays(std::span<const Array>)>;

// A traced function: the jaxpr's last inputs are the arrays that the function captured.
struct Traced {
  Jaxpr jaxpr;
  Arrays captured;
};

// Records every bind into a jaxpr.
class JaxprTrace : public Trace {
 public:
  explicit JaxprTrace(std::string_view name);
  Array add_input(const Aval& aval);
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override;
  std::string why_unknown() const override;
  // Outputs may be tracers of this trace, literals, or captured arrays.
  Traced close(std::span<const Array> outputs, std::vector<Dim> sizes = {});
  void add_constraint(Constraint constraint);

 protected:
  Atom atom_of(const Array& array);  // captures arrays that are not of this trace
  Arrays record(const Primitive& primitive, std::span<const Array> inputs, const Params& params);

 private:
  Builder builder_;
  Arrays captures_;  // the operands after the inputs, in this order
  std::unordered_map<const ArrayNode*, Var> captured_as_;
  std::vector<std::pair<Array, Array>>
      remade_;  // scalars of sizes alone: an enclosing trace's, and this trace's
  int num_inputs_ = 0;
};

// A staging trace that leaves known values out: an equation without inputs among its own tracers
// runs in the enclosing trace. Linear programs are traced so, and their captures are the residuals.
class LinearTrace final : public JaxprTrace {
 public:
  explicit LinearTrace(std::string_view name) : JaxprTrace(name) {}
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override;
};

// Traces a function once on inputs of these avals. name is the function's, for messages. sizes
// lists the named sizes to bind, in order.
Traced make_jaxpr(const Function& function, std::span<const Aval> inputs,
                  std::string_view name = "make_jaxpr", std::vector<Dim> sizes = {});
// The same for a function that captures no arrays (rules, rewritten jaxprs); InternalError
// otherwise.
Jaxpr make_closed_jaxpr(const Function& function, std::span<const Aval> inputs,
                        std::vector<Dim> sizes = {});

}  // namespace plait
