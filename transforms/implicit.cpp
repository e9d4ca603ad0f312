// Implicit differentiation: the rules of linear_solve, and custom_root.
//
// linear_solve keeps its system under every transform but evaluation. A x = b has the derivative
// A dx = db - dA x and the transpose A^T. So jvp, transpose and batch give linear_solve again, and
// the iterations of the solver are never differentiated. custom_root is a custom_jvp whose rule
// does the same for f(c, x) = 0: (df/dx) dx = -(df/dc) dc.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/bodies.h>
#include <plait/transforms/custom_rules.h>
#include <plait/transforms/implicit.h>
#include <plait/transforms/tape_nodes.h>

namespace plait {
namespace {

// --- linear_solve --------------------------------------------------------------------------------

// A dx = db - dA x.
Tangents jvp_linear_solve(std::span<const Array> primals, std::span<const Tangent> tangents,
                          std::span<const Array> outputs, const Params& params) {
  const LinearSystem system(params);
  const auto db = system.unknowns(tangents), captured = system.of_matvec(tangents);
  Tangents rhs(db.begin(), db.end());
  if (std::any_of(captured.begin(), captured.end(),
                  [](const Tangent& tangent) { return !tangent.is_zero(); })) {
    Tangents directions;
    for (const Array& output : outputs) directions.push_back(Tangent(output.aval()));
    directions.insert(directions.end(), captured.begin(), captured.end());
    const Differentiated moved =
        flat::jvp([&](std::span<const Array> inputs) { return eval_jaxpr(system.matvec, inputs); },
                  concatenate(outputs, system.of_matvec(primals)), directions);
    for (std::size_t i = 0; i < rhs.size(); ++i)
      if (!moved.tangents[i].is_zero())
        rhs[i] = add_tangents(rhs[i], lax::neg(moved.tangents[i].array()));
  }
  if (std::all_of(rhs.begin(), rhs.end(), [](const Tangent& tangent) { return tangent.is_zero(); }))
    return rhs;  // the solution does not depend on what only solve captures
  Arrays operands;
  for (const Tangent& tangent : rhs) operands.push_back(tangent.instantiate());
  const Arrays dx =
      bind(linear_solve_p, concatenate(operands, primals.subspan(system.num_unknowns())), params);
  return {dx.begin(), dx.end()};
}

// matvec transposed in its unknowns: (cotangents, captured) -> cotangents.
Jaxpr transposed_matvec(const LinearSystem& system) {
  const auto given = system.matvec->input_avals();
  const std::vector<Aval> avals(given.begin(), given.end());
  const std::size_t n = std::size_t(system.num_unknowns());
  return make_closed_jaxpr(
      [&](std::span<const Array> operands) {
        std::vector<TransposeInput> inputs;
        for (std::size_t i = 0; i < avals.size(); ++i)
          inputs.push_back(i < n ? TransposeInput(avals[i]) : TransposeInput(operands[i]));
        const Tangents cotangents(operands.begin(), operands.begin() + n);
        const Tangents pulled = flat::transpose(system.matvec, inputs, cotangents);
        Arrays results;
        for (std::size_t i = 0; i < n; ++i) results.push_back(pulled[i].instantiate());
        return results;
      },
      avals, system.matvec->sizes);
}

Tangents transpose_linear_solve(std::span<const Tangent> cotangents,
                                std::span<const TransposeInput> inputs, const Params& params) {
  const LinearSystem system(params);
  const int n = system.num_unknowns();
  Arrays ct;
  for (const Tangent& cotangent : cotangents) ct.push_back(cotangent.instantiate());
  Arrays captured;
  for (const TransposeInput& input : inputs.subspan(n)) {
    if (input.is_linear())
      throw InternalError("linear_solve: it is not linear in what its functions captured");
    captured.push_back(input.known());
  }
  LinearSystem other = system;
  Arrays operands = concatenate(ct, captured);
  if (!system.symmetric) {
    if (!system.transpose_solve)
      throw MissingRuleError(
          "custom_linear_solve: reverse mode solves the transposed system, and transpose_solve is "
          "not given",
          "give transpose_solve, or symmetric=True where the matrix is its own transpose");
    other.matvec = transposed_matvec(system);
    std::swap(other.solve, other.transpose_solve);
    std::swap(other.num_solve, other.num_transpose);
    const Arrays before = std::move(operands);
    const std::span<const Array> all = before;
    operands = concatenate(concatenate(ct, system.of_matvec(all)),
                           concatenate(system.of_transpose(all), system.of_solve(all)));
  }
  const Arrays x = bind(linear_solve_p, operands, other.to_params());
  Tangents results;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    results.push_back(inputs[i].is_linear() ? Tangent(x[i]) : Tangent(inputs[i].aval()));
  return results;
}

// Unknowns are always batched. Captured arrays are batched only where they were before.
std::vector<Batched> batch_linear_solve(Dim size, std::span<const Batched> inputs,
                                        const Params& params) {
  LinearSystem system(params);
  const int n = system.num_unknowns();
  Arrays operands;
  std::vector<std::optional<int>> dims;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool batched = int(i) < n || inputs[i].dim;
    operands.push_back(batched ? batch_to_front(inputs[i], size) : inputs[i].array);
    dims.push_back(batched ? std::optional<int>(0) : std::nullopt);
  }
  using Dims = std::span<const std::optional<int>>;
  auto batch = [&](Jaxpr& jaxpr, Dims captured) {
    if (!jaxpr) return;
    std::vector<std::optional<int>> all(n, 0);
    all.insert(all.end(), captured.begin(), captured.end());
    jaxpr = batch_jaxpr(jaxpr, size, all, true)->jaxpr;
  };
  const Dims all = dims;
  const auto of_matvec = system.of_matvec(all), of_solve = system.of_solve(all),
             of_transpose = system.of_transpose(all);
  batch(system.matvec, of_matvec);
  batch(system.solve, of_solve);
  batch(system.transpose_solve, of_transpose);
  std::vector<Batched> results;
  for (Array& output : bind(linear_solve_p, operands, system.to_params()))
    results.push_back({std::move(output), 0});
  return results;
}

const auto linear_solve_jvp = rules<Jvp>().on(linear_solve_p, jvp_linear_solve);
const auto linear_solve_transpose = rules<Transpose>().on(linear_solve_p, transpose_linear_solve);
const auto linear_solve_batch = rules<Batch>().on(linear_solve_p, batch_linear_solve);

// --- custom_root ---------------------------------------------------------------------------------

// A part of Root::operator() or Root::jvp that runs a solver of the user's: traced first, where
// traces take part, so that what the solver captures is an operand, which has no derivative.
struct SolverCall {
  Function run;
  Jaxpr program;  // instead of run
  std::size_t num_captured = 0;

  // The captured arrays. A solver that fails when it is traced, since it reads values, stays as it
  // is; a failure of another kind is raised again when it runs.
  Arrays trace(std::span<const Aval> avals, bool (*is_failure)()) {
    try {
      Traced traced = make_jaxpr(run, avals, "custom_root");
      program = std::move(traced.jaxpr);
      num_captured = traced.captured.size();
      return std::move(traced.captured);
    } catch (...) {
      if (!is_failure()) throw;
    }
    return {};
  }
  Arrays operator()(std::span<const Array> inputs, std::span<const Array> captured) const {
    return program ? eval_jaxpr(program, concatenate(inputs, captured)) : run(inputs);
  }
};

// The root as a function of what f captures, what the solvers capture, and of the guess.
struct Root {
  Jaxpr f;  // x, captured -> f(x)
  std::size_t num_captured = 0;
  SolverCall solve;          // captured, guess -> x
  SolverCall tangent_solve;  // captured, x, y -> the t with (df/dx) t = y
  std::string name;
  // Derivatives beyond this order differentiate the solver itself. Without a limit, tracing a rule
  // to a program would not end: its program of the root holds the rule of the next order.
  static constexpr int deepest = 3;
  inline static thread_local int depth = 0;

  // Numbers that a solver gives have the dtypes of the unknowns.
  Arrays as_unknowns(std::span<const Array> given) const {
    Arrays arrays(given.begin(), given.end());
    const auto avals = f->input_avals();
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (arrays[i].aval().weak) arrays[i] = lax::convert_element_type(arrays[i], avals[i].dtype);
    return arrays;
  }
  Function f_with(std::span<const Array> captured) const {
    return [root = *this,
            captured = Arrays(captured.begin(), captured.end())](std::span<const Array> x) {
      return eval_jaxpr(root.f, concatenate(root.as_unknowns(x), captured));
    };
  }
  std::size_t num_operands() const {
    return num_captured + solve.num_captured + tangent_solve.num_captured;
  }
  Arrays operator()(std::span<const Array> inputs) const {
    // The tape keeps function and rule beyond this call.
    const Function solved = [root = *this](std::span<const Array> inputs) {
      const std::size_t n = root.num_captured;
      return root.solve(concatenate(inputs.first(n), inputs.subspan(root.num_operands())),
                        inputs.subspan(n, root.solve.num_captured));
    };
    if (depth > deepest) return solved(inputs);
    const Function rule = [root = *this](std::span<const Array> both) { return root.jvp(both); };
    return flat::custom_jvp(solved, rule, inputs, name);
  }
  // captured, x, y -> solver(df/dx, y)
  Arrays solve_linear(const flat::Solver& solver, std::span<const Array> inputs) const {
    const std::size_t size = (inputs.size() - num_captured) / 2;
    const std::span<const Array> x = inputs.subspan(num_captured, size);
    const flat::LinearMap map =
        flat::linearize(f_with(inputs.first(num_captured)), x, std::vector<bool>(size, true));
    const Function g = [map, root = *this](std::span<const Array> given) {
      const Arrays direction = root.as_unknowns(given);
      Arrays operands;
      for (int input : map.inputs) operands.push_back(direction[std::size_t(input)]);
      const Arrays pushed = eval_jaxpr(map.jaxpr, concatenate(operands, map.residuals));
      Arrays outputs;
      for (const Array& output : map.outputs) outputs.push_back(lax::zeros_like(output.aval()));
      for (std::size_t i = 0; i < pushed.size(); ++i)
        outputs[std::size_t(map.outputs_with_tangent[i])] = pushed[i];
      return outputs;
    };
    return solver(g, inputs.subspan(num_captured + size));
  }
  // (df/dx) dx = -(df/dc) dc.
  Arrays jvp(std::span<const Array> both) const {
    struct Deeper {
      Deeper() { ++depth; }
      ~Deeper() { --depth; }
    } const deeper;
    const std::size_t n = both.size() / 2;
    const Arrays captured(both.begin(), both.begin() + num_captured);
    const Arrays x = (*this)(both.first(n));
    Tangents directions;
    bool any = false;
    for (std::size_t i = 0; i < num_captured; ++i) {
      const bool moves = is_differentiable(captured[i].aval());
      directions.push_back(moves ? Tangent(both[n + i]) : Tangent(captured[i].aval()));
      any |= moves;
    }
    Arrays results = x;
    if (!any) {
      for (const Array& part : x) results.push_back(lax::zeros_like(part.aval()));
      return results;
    }
    const Differentiated moved =
        flat::jvp([&](std::span<const Array> c) { return eval_jaxpr(f, concatenate(x, c)); },
                  captured, directions);
    Arrays operands = concatenate(captured, x);
    for (const Tangent& tangent : moved.tangents) operands.push_back(tangent.instantiate());
    const std::span<const Array> of_solvers =
        both.subspan(num_captured + solve.num_captured, tangent_solve.num_captured);
    for (const Array& dx : tangent_solve(operands, of_solvers)) results.push_back(lax::neg(dx));
    return results;
  }
};

}  // namespace

Arrays flat::custom_linear_solve(const Function& matvec, std::span<const Array> b,
                                 const Solver& solve, const Solver& transpose_solve,
                                 bool symmetric) {
  const TransformScope scope("custom_linear_solve", "matvec");
  const Function solved = [&](std::span<const Array> y) { return solve(matvec, y); };
  Function transposed;
  if (transpose_solve && !symmetric)
    transposed = [&](std::span<const Array> y) {
      const Traced traced = make_jaxpr(matvec, strong_avals_of(y), "custom_linear_solve");
      std::vector<TransposeInput> inputs;
      for (const Aval& aval : strong_avals_of(y)) inputs.push_back(TransposeInput(aval));
      for (const Array& array : traced.captured) inputs.push_back(array);
      const Function vecmat = [inputs, jaxpr = traced.jaxpr](std::span<const Array> cotangents) {
        const Tangents all(cotangents.begin(), cotangents.end());
        const Tangents pulled = flat::transpose(jaxpr, inputs, all);
        Arrays results;
        for (std::size_t i = 0; i < all.size(); ++i) results.push_back(pulled[i].instantiate());
        return results;
      };
      return transpose_solve(vecmat, y);
    };
  return linear_solve(matvec, b, solved, transposed, symmetric);
}

Arrays flat::custom_root(const Function& f, std::span<const Array> initial_guess,
                         const Solver& solve, const Solver& tangent_solve, const std::string& name,
                         bool (*is_failure)()) {
  const Traced traced = make_jaxpr(f, strong_avals_of(initial_guess), "custom_root");
  const std::vector<Aval> outputs = traced.jaxpr->output_avals();
  bool equal = outputs.size() == initial_guess.size();
  for (std::size_t i = 0; equal && i < outputs.size(); ++i)
    equal = outputs[i].shape == initial_guess[i].shape();
  if (!equal)
    throw ShapeError("custom_root: `" + name + "` gives " + std::to_string(outputs.size()) +
                         " arrays that do not have the shapes of the " +
                         std::to_string(initial_guess.size()) + " of the guess",
                     "return as many equations as there are unknowns");
  Root root{traced.jaxpr, traced.captured.size(), {}, {}, name};
  const Root equation = root;
  root.solve.run = [equation, solve](std::span<const Array> inputs) {
    const std::size_t n = equation.num_captured;
    return solve(equation.f_with(inputs.first(n)), inputs.subspan(n));
  };
  root.tangent_solve.run = [equation, tangent_solve](std::span<const Array> inputs) {
    return equation.solve_linear(tangent_solve, inputs);
  };
  Arrays operands = traced.captured;
  if (Trace::current() || may_record()) {
    std::vector<Aval> avals = strong_avals_of(traced.captured);
    const std::vector<Aval> unknowns = strong_avals_of(initial_guess);
    for (SolverCall* call : {&root.solve, &root.tangent_solve}) {
      avals.insert(avals.end(), unknowns.begin(), unknowns.end());
      const Arrays captured =
          call->trace(avals, is_failure ? is_failure : CustomRules{}.is_failure);
      operands.insert(operands.end(), captured.begin(), captured.end());
    }
  }
  return root(concatenate(operands, initial_guess));
}

}  // namespace plait
