// Transforms of functions, one line each; every one is a file in transforms/ that uses public
// headers only.
//
// Here they take and give flat functions (lists of arrays): what interpreters, bindings and other
// transforms build on. api.h wraps them for C++ functions over structs, containers and scalars.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/tree.h>
#include <plait/rules.h>
#include <plait/sizes.h>

namespace plait::flat {

// Outputs of function and their tangents along the given tangents of the primals.
Differentiated jvp(const Function& function, std::span<const Array> primals,
                   std::span<const Tangent> tangents);

// The outputs, and the linear map from tangents of the inputs to tangents of the outputs as a jaxpr
// whose operands are those tangents, then the residuals. Inputs not marked differentiable have no
// tangent.
struct LinearMap {
  Arrays outputs;
  Jaxpr jaxpr;  // (tangents of the wrt inputs, residuals) -> tangents of outputs that have one
  Arrays residuals;
  std::vector<int> inputs, outputs_with_tangent;  // which inputs and outputs the jaxpr speaks of
};
LinearMap linearize(const Function& function, std::span<const Array> primals,
                    const std::vector<bool>& wrt);

// Tangents of values (or cotangents, as `what` says), a tree of the same structure: those of
// integers are zeros, whatever is given, and numbers of weaker kinds take the values' dtypes.
// TreeError, ShapeError or DtypeError where they do not fit.
Tangents fitting(std::string_view transform, std::string_view what, std::span<const Array> values,
                 const TreeDef& structure, std::span<const Array> given,
                 const TreeDef& given_structure);

// Runs a linear jaxpr backwards: cotangents of its linear inputs from those of its outputs.
// Equations that do not depend on linear inputs run forward first.
Tangents transpose(const Jaxpr& jaxpr, std::span<const TransposeInput> inputs,
                   std::span<const Tangent> cotangents);

// The outputs, and the function from their cotangents to cotangents of the inputs marked in wrt.
struct Pullback {
  Arrays outputs;
  std::function<Tangents(std::span<const Tangent> cotangents)> pull;
};
Pullback vjp(const Function& function, std::span<const Array> primals,
             const std::vector<bool>& wrt);

// The outputs (outputs[0] a real scalar, the rest auxiliary) and the gradients of outputs[0] by the
// inputs marked in wrt: df/dx - i df/dy by a complex x + iy. With holomorphic inputs and outputs[0]
// are complex, and the gradient is the complex derivative. Integer inputs cannot be marked:
// DtypeError.
struct ValueAndGrad {
  Arrays outputs, gradients;
};
struct GradOptions {
  bool holomorphic = false;
};
ValueAndGrad value_and_grad(const Function& function, std::span<const Array> inputs,
                            const std::vector<bool>& wrt, const GradOptions& options = {});

// Derivatives of each output by each input marked in wrt, outputs outermost; each has the output's
// axes, then the input's. The function runs once; then jacfwd pushes a basis of tangents through
// its linearization, and jacrev pulls one of cotangents.
struct Jacobian {
  Arrays outputs, derivatives;
};
struct JacobianOptions {
  std::optional<std::int64_t> chunk = {};  // at most so many directions at once
  // Inputs and outputs are complex. Otherwise outputs of jacrev and inputs of jacfwd are real.
  bool holomorphic = false;
  // How many outputs are differentiated, asked when the function has run; the rest are auxiliary.
  std::function<std::size_t()> num_differentiated = {};
  std::function<std::string(std::size_t index)> output_name = {};  // what messages call outputs
};
Jacobian jacfwd(const Function& function, std::span<const Array> inputs,
                const std::vector<bool>& wrt, const JacobianOptions& options = {});
Jacobian jacrev(const Function& function, std::span<const Array> inputs,
                const std::vector<bool>& wrt, const JacobianOptions& options = {});

// function with a rule of its own for differentiation: jvp takes primals, then tangents (zeros made
// explicit), and returns outputs, then tangents.
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
// Whether these inputs make custom_jvp and custom_vjp trace function and rules to programs now.
// Where derivatives of the inputs are being taken, rules run on the values themselves; where
// nothing asks for derivatives, the function alone does.
bool stages_custom_rules(std::span<const Array> inputs);

// function whose derivatives are computed from its inputs again instead of from stored results; the
// policy says which equations' results are kept all the same.
using CheckpointPolicy = std::function<bool(const Equation& equation)>;
Arrays checkpoint(const Function& function, std::span<const Array> inputs, const Callable& policy,
                  const std::string& name);
Callable nothing_saveable();
Callable everything_saveable();
Callable dots_saveable();  // results of dot_general and conv
Callable save_only_these_names(const std::vector<std::string>& names);  // results of tag
Callable make_policy(std::string name, CheckpointPolicy policy);

// function applied to every example: in_dims[i] is the batch axis of input i (absent: the same for
// all examples). Outputs get their batch axis at out_dims[i]; absent: the output must not depend on
// the batch.
struct VmapOptions {
  std::vector<std::optional<int>> in_dims;
  // Given the number of outputs; one entry each.
  std::function<std::vector<std::optional<int>>(std::size_t)> out_dims;
  std::optional<Dim> size;            // needed when no input is batched
  std::optional<std::int64_t> chunk;  // at most so many examples at once
};
Arrays vmap(const Function& function, std::span<const Array> inputs, const VmapOptions& options);

// function on arrays that are padded to fixed sizes: in_shapes says the real shapes in named sizes,
// and sizes gives values of some of them, which may be traced; the others are those of the arrays.
// Padding is never read, gets a gradient of zero, and is zero in outputs. out_shapes, when given,
// is checked.
struct MaskOptions {
  std::vector<Spec> in_shapes;
  std::function<std::vector<Spec>(std::size_t)>
      out_shapes;  // given the number of outputs; one each
  Sizes sizes;
};
Arrays mask(const Function& function, std::span<const Array> inputs, const MaskOptions& options);

// The branch that index, an integer scalar, chooses, applied to the operands. Every branch must
// return arrays of the same types; output_name says what messages call them. select says how it
// runs under vmap with an index for each example: true: all branches on all examples, each of which
// takes its own results; false: each branch on those that take it; none: the cheaper, as it seems.
using OutputName = std::function<std::string(std::size_t index)>;
Arrays cond(const Array& index, const std::vector<Function>& branches,
            std::span<const Array> operands, std::string_view name = "cond",
            const OutputName& output_name = {}, std::optional<bool> select = {});

// body applied to a carry while cond of it, a bool scalar, holds. A loop that has not ended after
// max_steps is a ValueError. With select, examples under vmap all take part until the last one
// ends, and those that have keep their carry; else they leave. For reverse mode every step keeps
// what its derivative needs; with checkpoints the loop keeps about so many carries instead, and
// computes the steps between them again: see transforms/while_checkpoints.cpp.
struct WhileOptions {
  std::optional<std::int64_t> max_steps = {};
  std::optional<bool> select = {};
  std::optional<std::int64_t> checkpoints = {};
};
Arrays while_loop(const Function& cond, const Function& body, std::span<const Array> init,
                  const WhileOptions& options = {}, std::string_view name = "while_loop");

// body applied to a carry and each slice of the xs along their first axis: it returns the carry,
// then what is stacked to ys. For reverse mode every step keeps what its derivative needs; with
// checkpoints the loop keeps at most so many carries instead, and computes the steps between them
// again. A length that is a named size is not unrolled, and refuses checkpoints.
struct ScanOptions {
  std::optional<Dim> length = {};  // needed when there are no xs
  bool reverse = false;
  std::int64_t unroll = 1;  // steps of the body in one of the loop; 0: all of them, and no loop
  std::optional<std::int64_t> checkpoints = {};
};
struct Scanned {
  Arrays carry, ys;
};
Scanned scan(const Function& body, std::span<const Array> init, std::span<const Array> xs,
             const ScanOptions& options = {}, std::string_view name = "scan");

// body applied to (index, carry) for each index from lower to upper: a scan where both are known
// while tracing, else a while, which cannot be unrolled.
Arrays fori_loop(const Array& lower, const Array& upper, const Function& body,
                 std::span<const Array> init, std::int64_t unroll = 1,
                 std::string_view name = "fori_loop");
// function applied to each slice of the xs along their first axis, one after the other, or by vmap
// to batch_size of them at a time.
Arrays map(const Function& function, std::span<const Array> xs,
           std::optional<std::int64_t> batch_size = {}, std::string_view name = "map");
// Running results of an associative function of (elements, elements) along an axis, in logarithmic
// depth.
Arrays associative_scan(const Function& function, std::span<const Array> elements,
                        bool reverse = false, int axis = 0,
                        std::string_view name = "associative_scan");

// Applies a jaxpr as one `call` equation, which every transform sees through.
Arrays call(const Jaxpr& body, std::span<const Array> inputs, const Params& extra = {});

// A jitted function with its cache of traces. Arrays that the function captured when it was traced
// are frozen with the entry.
class Jit {
 public:
  // One signature: its avals, the trace, the parameters of the call that applies it, and the
  // structure of what this trace returned.
  struct Entry {
    std::vector<Aval> avals;
    Traced traced;
    Params params;
    TreeDef result;
  };
  using EntryPointer = std::shared_ptr<const Entry>;
  // A function that says the structure of what its outputs are the leaves of.
  using Structured = std::function<Arrays(std::span<const Array> inputs, TreeDef& result)>;

  Jit(Structured function, std::string name)
      : state_(std::make_shared<State>(std::move(function), std::move(name))) {}
  Jit(Function function, std::string name)
      : Jit(Structured([f = std::move(function)](std::span<const Array> inputs, TreeDef&) {
              return f(inputs);
            }),
            std::move(name)) {}
  // The signature of these inputs, traced when they are the first of it.
  EntryPointer entry(std::span<const Array> inputs) const { return state_->find_or_trace(inputs); }
  Arrays operator()(std::span<const Array> inputs) const { return call(*entry(inputs), inputs); }
  static Arrays call(const Entry& entry, std::span<const Array> inputs);
  // The same with results that take the place of what `outputs` hold: see trace/run_into.h.
  void run_into(const Entry& entry, std::span<const Array> inputs, std::span<Array> outputs) const;

 private:
  struct State {
    State(Structured traced, std::string called)
        : function(std::move(traced)), name(std::move(called)) {}
    const Structured function;
    const std::string name;
    std::mutex mutex;
    std::vector<EntryPointer> entries;
    EntryPointer find(std::span<const Array> inputs);
    EntryPointer trace(std::span<const Array> inputs);
    EntryPointer find_or_trace(std::span<const Array> inputs) {
      EntryPointer found = find(inputs);
      return found ? found : trace(inputs);
    }
  };
  std::shared_ptr<State> state_;
};

}  // namespace plait::flat

namespace plait {

// Jaxpr to jaxpr, memoised on the jaxpr: what rules of primitives that hold jaxprs use.
struct JvpJaxpr {
  Jaxpr known;  // primals -> outputs, residuals
  Jaxpr
      linear;  // tangents of the inputs marked nonzero, residuals -> tangents of the outputs marked
  std::vector<bool> nonzero_outputs;
};
// instantiate: outputs whose tangents are zeros where they might be left out.
std::shared_ptr<const JvpJaxpr> linearize_jaxpr(const Jaxpr& jaxpr,
                                                const std::vector<bool>& nonzero_inputs,
                                                const std::vector<bool>& instantiate = {});

struct ForwardJaxpr {
  Jaxpr jaxpr;  // primals, tangents of the inputs marked -> outputs, tangents of those marked
  std::vector<bool> nonzero_outputs;
};
std::shared_ptr<const ForwardJaxpr> jvp_jaxpr(const Jaxpr& jaxpr,
                                              const std::vector<bool>& nonzero_inputs,
                                              const std::vector<bool>& instantiate = {});

// A jaxpr cut in two: what does not depend on the marked inputs, and the rest.
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
std::shared_ptr<const TransposedJaxpr> transpose_jaxpr(const Jaxpr& jaxpr,
                                                       const std::vector<bool>& linear_inputs,
                                                       const std::vector<bool>& nonzero_cotangents);

struct BatchedJaxpr {
  Jaxpr jaxpr;
  std::vector<std::optional<int>> out_dims;
};
// force: outputs that must carry the batch, at axis 0; none, all, or those marked.
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

// The body of a call, or another entry, with its sizes put in.
Jaxpr body_of_call(const Params& params, std::string_view entry = "body");

// The backward rule of a custom_vjp that runs as it is, without a program: see
// transforms/custom.cpp.
struct OnlineBackward {
  Function bwd;  // residuals, cotangents of every output -> cotangents of every input
  std::vector<Aval> inputs, outputs;  // of the function
  std::string name;
  // Cotangents of the inputs that have one, from residuals and cotangents of the outputs that have
  // one.
  Arrays pull(std::span<const Array> arguments) const;
};
// The linear map from tangents of the inputs to tangents of the outputs whose transpose it is.
// arguments are residuals, then tangents of the inputs that have one.
Arrays bind_custom_linear(const OnlineBackward& backward, std::span<const Array> arguments);

// Linearize of a call with a checkpoint policy.
Differentiated linearize_checkpoint(std::span<const Array> primals,
                                    std::span<const Tangent> tangents, const Params& params,
                                    Trace* linear);

}  // namespace plait
