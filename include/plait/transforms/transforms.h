// Transforms of functions, one line each. Each is a file in transforms/ that uses public headers
// only.
//
// Here they take and return flat functions (lists of arrays), for interpreters, bindings and other
// transforms. api.h wraps them for C++ functions over structs, containers and scalars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/tree.h>
#include <plait/rules/rules.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/trace_store.h>

namespace plait {

extern const Primitive call_p, checkpoint_p;
struct DataSizedOutputs;  // trace/data_sizes.h

}  // namespace plait

namespace plait::flat {

// The outputs of function, and their tangents for the given tangents of the primals.
Differentiated jvp(const Function& function, std::span<const Array> primals,
                   std::span<const Tangent> tangents);

// The outputs, and the linear map from tangents of the inputs to tangents of the outputs as a jaxpr
// whose operands are those tangents, then the residuals. Inputs not marked differentiable have no
// tangent.
struct LinearMap {
  Arrays outputs;
  Jaxpr jaxpr;  // (tangents of the wrt inputs, residuals) -> tangents of outputs that have one
  Arrays residuals;
  std::vector<int> inputs, outputs_with_tangent;  // the inputs and outputs that the jaxpr covers
};
LinearMap linearize(const Function& function, std::span<const Array> primals,
                    const std::vector<bool>& wrt);

// The tangent (or cotangent, as `what` says) of a float or complex value. A weak number takes the
// value's dtype. ShapeError or DtypeError, about `which`, where it does not fit.
Array fitting(const Aval& value, const Array& given, std::string_view what,
              const std::string& which);
// Those of a tree of values, a tree of the same structure. Those of integers are zeros, whatever is
// given. TreeError where the structures differ.
Tangents fitting(std::string_view transform, std::string_view what, std::span<const Array> values,
                 const TreeDef& structure, std::span<const Array> given,
                 const TreeDef& given_structure);

// Runs a linear jaxpr backwards: cotangents of its linear inputs from those of its outputs.
// Equations that do not depend on linear inputs run forward first. sums: by input, what its
// cotangent is added to; empty: nothing.
Tangents transpose(const Jaxpr& jaxpr, std::span<const TransposeInput> inputs,
                   std::span<const Tangent> cotangents, std::span<const Tangent> sums = {});

// The outputs, and the function from their cotangents to cotangents of the inputs marked in wrt.
struct Pullback {
  Arrays outputs;
  std::function<Tangents(std::span<const Tangent> cotangents)> pull;
};
Pullback vjp(const Function& function, std::span<const Array> primals,
             const std::vector<bool>& wrt);

// The outputs (outputs[0] a real scalar, the rest auxiliary) and the gradients of outputs[0] with
// respect to the inputs marked in wrt: df/dx - i df/dy for a complex x + iy. With holomorphic,
// inputs and outputs[0] are complex, and the gradient is the complex derivative. Integer inputs
// cannot be marked: DtypeError.
struct ValueAndGrad {
  Arrays outputs, gradients;
};
struct GradOptions {
  bool holomorphic = false;
  std::string transform = "grad";  // what errors call it
};
ValueAndGrad value_and_grad(const Function& function, std::span<const Array> inputs,
                            const std::vector<bool>& wrt, const GradOptions& options = {});

// Derivatives of each output with respect to each input marked in wrt, outputs outermost; each has
// the output's axes, then the input's. The function runs once. Then jacfwd pushes a basis of
// tangents through its linearization, and jacrev pulls back a basis of cotangents.
struct Jacobian {
  Arrays outputs, derivatives;
};
struct JacobianOptions {
  std::optional<std::int64_t> chunk = {};  // the largest number of directions at once
  // Inputs and outputs are complex. Otherwise outputs of jacrev and inputs of jacfwd are real.
  bool holomorphic = false;
  // The number of differentiated outputs, asked when the function has run; the rest are auxiliary.
  std::function<std::size_t()> num_differentiated = {};
  std::function<std::string(std::size_t index)> output_name = {};  // names of outputs in messages
};
Jacobian jacfwd(const Function& function, std::span<const Array> inputs,
                const std::vector<bool>& wrt, const JacobianOptions& options = {});
Jacobian jacrev(const Function& function, std::span<const Array> inputs,
                const std::vector<bool>& wrt, const JacobianOptions& options = {});

// function with its own rule for differentiation. jvp takes primals, then tangents (with explicit
// zeros), and returns outputs, then tangents.
Arrays custom_jvp(const Function& function, const Function& jvp, std::span<const Array> inputs,
                  const std::string& name);
// fwd returns the outputs, and residuals; bwd takes residuals, then cotangents of the outputs, and
// returns cotangents of the inputs (of every input; those of integer inputs are ignored).
struct Forward {
  Arrays outputs, residuals;
};
using ForwardRule = std::function<Forward(std::span<const Array>)>;
Arrays custom_vjp(const Function& function, const ForwardRule& fwd, const Function& bwd,
                  std::span<const Array> inputs, const std::string& name);
// Whether custom_jvp and custom_vjp trace function and rules to programs for these inputs. Where
// derivatives of the inputs are being taken, rules run on the values themselves; without
// derivatives, only the function runs.
bool stages_custom_rules(std::span<const Array> inputs);

// function with rematerialisation: its derivatives recompute results from its inputs instead of
// storing them. The policy says which equations' results are stored nevertheless.
using CheckpointPolicy = std::function<bool(const Equation& equation)>;
Arrays checkpoint(const Function& function, std::span<const Array> inputs, const Callable& policy,
                  const std::string& name);
Callable nothing_saveable();
Callable everything_saveable();
Callable dots_saveable();  // results of dot_general and conv
Callable save_only_these_names(const std::vector<std::string>& names);  // results of tag
Callable make_policy(std::string name, CheckpointPolicy policy);

// function applied to every example: in_dims[i] is the batch axis of input i (absent: unbatched).
// Outputs get their batch axis at out_dims[i]; absent: the output must not depend on the batch.
struct VmapOptions {
  std::vector<std::optional<int>> in_dims;
  // Called with the number of outputs; returns one entry each.
  std::function<std::vector<std::optional<int>>(std::size_t)> out_dims;
  std::optional<Dim> size;            // needed when no input is batched
  std::optional<std::int64_t> chunk;  // the largest number of examples at once
  std::string axis_name =
      {};  // by which psum and its kind speak of the examples; see collectives.h
};
Arrays vmap(const Function& function, std::span<const Array> inputs, const VmapOptions& options);

// function on arrays that are padded to fixed sizes. in_shapes gives the real shapes in named
// sizes, and sizes the values of some of them, which may be traced; the others are those of the
// arrays. Padding is never read, gets a gradient of zero, and is zero in outputs. out_shapes, when
// given, is checked.
struct MaskOptions {
  std::vector<Spec> in_shapes;
  std::function<std::vector<Spec>(std::size_t)>
      out_shapes;  // called with the number of outputs; returns one each
  Sizes sizes;
};
Arrays mask(const Function& function, std::span<const Array> inputs, const MaskOptions& options);

// Applies the branch that index, an integer scalar, chooses to the operands. Every branch must
// return arrays of the same types; output_name gives their names in messages. select says how it
// runs under vmap with an index for each example. true: all branches on all examples, each of which
// selects its own results. false: each branch on the examples that take it. Absent: the cheaper by
// estimate.
using OutputName = std::function<std::string(std::size_t index)>;
Arrays cond(const Array& index, const std::vector<Function>& branches,
            std::span<const Array> operands, std::string_view name = "cond",
            const OutputName& output_name = {}, std::optional<bool> select = {});

// Applies body to a carry while cond of it, a bool scalar, holds. A loop that has not ended after
// max_steps is a ValueError. With select, examples under vmap all take part until the last one
// ends, and ended ones keep their carry; else they leave. Reverse mode keeps the residuals of every
// step. With checkpoints it keeps about that many carries instead, and recomputes the steps
// between: see lib/control/while_checkpoints.cpp.
struct WhileOptions {
  std::optional<std::int64_t> max_steps = {};
  std::optional<bool> select = {};
  std::optional<std::int64_t> checkpoints = {};
};
Arrays while_loop(const Function& cond, const Function& body, std::span<const Array> init,
                  const WhileOptions& options = {}, std::string_view name = "while_loop");

// Applies body to a carry and each slice of the xs along their first axis. body returns the carry,
// then values that are stacked to ys. Reverse mode keeps the residuals of every step. With
// checkpoints it keeps at most that many carries instead, and recomputes the steps between. A scan
// whose length is a named size is not unrolled, and refuses checkpoints.
struct ScanOptions {
  std::optional<Dim> length = {};  // needed when there are no xs
  bool reverse = false;
  std::int64_t unroll = 1;  // steps of the body in one of the loop; 0: all, without a loop
  std::optional<std::int64_t> checkpoints = {};
};
struct Scanned {
  Arrays carry, ys;
};
Scanned scan(const Function& body, std::span<const Array> init, std::span<const Array> xs,
             const ScanOptions& options = {}, std::string_view name = "scan");

// Applies body to (index, carry) for each index from lower to upper: a scan where both are known
// while tracing, else a while, which cannot be unrolled.
Arrays fori_loop(const Array& lower, const Array& upper, const Function& body,
                 std::span<const Array> init, std::int64_t unroll = 1,
                 std::string_view name = "fori_loop");
// Applies function to each slice of the xs along their first axis, one after the other, or by vmap
// to batch_size of them at a time.
Arrays map(const Function& function, std::span<const Array> xs,
           std::optional<std::int64_t> batch_size = {}, std::string_view name = "map");
// Prefix results of an associative function of (elements, elements) along an axis, in logarithmic
// depth.
Arrays associative_scan(const Function& function, std::span<const Array> elements,
                        bool reverse = false, int axis = 0,
                        std::string_view name = "associative_scan");

// Applies a jaxpr as one `call` equation, which every transform sees through.
Arrays call(const Jaxpr& body, std::span<const Array> inputs,
            const std::optional<std::string>& name = {});

// A jitted function with its store of traces. Arrays that the function captured when it was traced
// are frozen with the entry.
class Jit {
 public:
  // One signature: the structures of the arguments, where they are told, and the avals of their
  // leaves; the trace, the parameters of the call that applies it, and the structure of what this
  // trace returned.
  struct Entry {
    std::vector<TreeDef> arguments;
    std::vector<Aval> avals;
    Traced traced;
    Params params;
    TreeDef result;
    std::shared_ptr<const DataSizedOutputs> data_sized;  // null: no output is of such sizes
  };
  using EntryPointer = std::shared_ptr<const Entry>;
  // A function of the leaves of such arguments that says the structure of what its outputs are the
  // leaves of.
  using Structured = std::function<Arrays(std::span<const TreeDef> arguments,
                                          std::span<const Array> leaves, TreeDef& result)>;

  Jit(Structured function, std::string name)
      : state_(std::make_shared<State>(std::move(function), std::move(name))) {}
  Jit(Function function, std::string name)
      : Jit(Structured([f = std::move(function)](std::span<const TreeDef>,
                                                 std::span<const Array> inputs,
                                                 TreeDef&) { return f(inputs); }),
            std::move(name)) {}
  // The signature of these inputs, traced when they are the first of it.
  EntryPointer entry(std::span<const Array> inputs, std::span<const TreeDef> arguments = {}) const;
  Arrays operator()(std::span<const Array> inputs) const { return call(*entry(inputs), inputs); }
  static Arrays call(const Entry& entry, std::span<const Array> inputs);
  // The same, with results written into the memory of `outputs`: see trace/run_into.h.
  void run_into(const Entry& entry, std::span<const Array> inputs, std::span<Array> outputs) const;

 private:
  struct State {
    State(Structured traced, std::string called)
        : function(std::move(traced)), name(std::move(called)) {}
    const Structured function;
    const std::string name;
    TraceStore<const Entry> traces;
    std::shared_ptr<Entry> trace(std::span<const Array> inputs,
                                 std::span<const TreeDef> arguments) const;
  };
  std::shared_ptr<State> state_;
};

}  // namespace plait::flat

namespace plait {

// Jaxpr to jaxpr, memoised on the jaxpr: used by rules of primitives that hold jaxprs.
struct LinearizedJaxpr {
  Jaxpr known;  // primals -> outputs, residuals
  Jaxpr
      linear;  // tangents of the inputs marked nonzero, residuals -> tangents of the outputs marked
  std::vector<bool> nonzero_outputs;
};
// instantiate: outputs whose tangents are never left out, but are zeros.
std::shared_ptr<const LinearizedJaxpr> linearize_jaxpr(const Jaxpr& jaxpr,
                                                       const std::vector<bool>& nonzero_inputs,
                                                       const std::vector<bool>& instantiate = {});

struct JvpJaxpr {
  Jaxpr jaxpr;  // primals, tangents of the inputs marked -> outputs, tangents of those marked
  std::vector<bool> nonzero_outputs;
};
std::shared_ptr<const JvpJaxpr> jvp_jaxpr(const Jaxpr& jaxpr,
                                          const std::vector<bool>& nonzero_inputs,
                                          const std::vector<bool>& instantiate = {});

// A jaxpr split in two: the part that does not depend on the marked inputs, and the rest.
struct SplitJaxpr {
  Jaxpr known;  // inputs not marked -> outputs that do not depend on marked ones, residuals
  Jaxpr rest;   // inputs marked, residuals -> the other outputs
  std::vector<bool> rest_outputs;
};
std::shared_ptr<const SplitJaxpr> split_jaxpr(const Jaxpr& jaxpr, const std::vector<bool>& inputs);

struct TransposedJaxpr {
  Jaxpr jaxpr;  // known inputs, cotangents of the outputs marked -> cotangents of the linear inputs
                // marked
  std::vector<bool> nonzero_inputs;
};
// sums: linear inputs whose cotangents are added to those that the jaxpr takes behind its other
// inputs.
std::shared_ptr<const TransposedJaxpr> transpose_jaxpr(const Jaxpr& jaxpr,
                                                       const std::vector<bool>& linear_inputs,
                                                       const std::vector<bool>& nonzero_cotangents,
                                                       const std::vector<bool>& sums = {});

struct BatchedJaxpr {
  Jaxpr jaxpr;
  std::vector<std::optional<int>> out_dims;
};
// force: outputs that must be batched, at axis 0; none, all, or those marked.
std::shared_ptr<const BatchedJaxpr> batch_jaxpr(const Jaxpr& jaxpr, Dim size,
                                                const std::vector<std::optional<int>>& in_dims,
                                                const std::vector<bool>& force);
inline std::shared_ptr<const BatchedJaxpr> batch_jaxpr(
    const Jaxpr& jaxpr, Dim size, const std::vector<std::optional<int>>& in_dims,
    bool force_outputs = false) {
  return batch_jaxpr(jaxpr, size, in_dims, std::vector<bool>(jaxpr->outputs.size(), force_outputs));
}

// A body on padded arrays, in the current trace.
std::vector<Masked> eval_masked(const Jaxpr& body, std::span<const Masked> inputs,
                                const SizeValues& sizes);

// Cotangents of one linear equation's inputs: by its Transpose rule, or of its decomposition.
Tangents transpose_equation(const Equation& equation, std::span<const TransposeInput> inputs,
                            std::span<const Tangent> cotangents);
// The sum of cotangents of its first input with that of this equation, by its Accumulate rule;
// nullopt where it has none, or where other inputs are linear too.
std::optional<Array> accumulated_cotangent(const Array& sum, const Equation& equation,
                                           std::span<const TransposeInput> inputs,
                                           std::span<const Tangent> cotangents);

}  // namespace plait
