// linear_solve. Its rules for the transforms are in transforms/implicit.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/linear_solve.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>
#include <plait/rules/diverge.h>
#include <plait/rules/interpret.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/prune.h>
#include <plait/rules/steps.h>
#include <plait/trace/sizes.h>

namespace plait {

LinearSystem::LinearSystem(const Params& params)
    : matvec(open_body(params, "matvec")),
      solve(open_body(params, "solve")),
      symmetric(params.flag("symmetric")),
      num_matvec(int(params.integer("num_matvec"))),
      num_solve(int(params.integer("num_solve"))),
      num_transpose(int(params.integer("num_transpose"))) {
  if (params.has("transpose_solve")) transpose_solve = open_body(params, "transpose_solve");
}

int LinearSystem::num_unknowns() const { return matvec->num_binders - num_matvec; }

Params LinearSystem::to_params() const {
  // The jaxprs list the same sizes, so that one list of values serves them all.
  std::vector<Dim> sizes;
  for (const Jaxpr* jaxpr : {&matvec, &solve, &transpose_solve})
    if (*jaxpr) collect_sizes(Shape((*jaxpr)->sizes.begin(), (*jaxpr)->sizes.end()), sizes);
  Params params{{"matvec", with_sizes(matvec, sizes)},
                {"solve", with_sizes(solve, sizes)},
                {"symmetric", symmetric},
                {"num_matvec", Dim(num_matvec)},
                {"num_solve", Dim(num_solve)},
                {"num_transpose", Dim(num_transpose)}};
  if (transpose_solve) params = params.with("transpose_solve", with_sizes(transpose_solve, sizes));
  return sizes.empty() ? params : params.with("sizes", Shape(sizes.begin(), sizes.end()));
}

namespace {

void require_like(std::span<const Aval> given, std::span<const Array> b, const char* what) {
  bool equal = given.size() == b.size();
  for (std::size_t i = 0; equal && i < b.size(); ++i)
    equal = given[i].shape == b[i].shape() && given[i].dtype == b[i].dtype();
  if (equal) return;
  auto text_of = [](auto begin, auto end, auto aval_of) {
    std::string text;
    for (auto it = begin; it != end; ++it)
      text += (text.empty() ? "" : ", ") + aval_of(*it).to_string();
    return "(" + text + ")";
  };
  throw ShapeError(std::string("custom_linear_solve: ") + what + " gives " +
                       text_of(given.begin(), given.end(), [](const Aval& aval) { return aval; }) +
                       " for b of " +
                       text_of(b.begin(), b.end(), [](const Array& array) { return array.aval(); }),
                   "return arrays of the shapes and dtypes of b: the system is square");
}

// Whether no transform and no tape sees these values.
bool all_plain(std::span<const Array> arrays) {
  return !Trace::current() && std::all_of(arrays.begin(), arrays.end(), [](const Array& array) {
    return array.node()->is_plain();
  });
}

}  // namespace

std::vector<Aval> strong_avals_of(std::span<const Array> unknowns) {
  std::vector<Aval> avals;
  for (const Array& array : unknowns) {
    avals.push_back({array.shape(), array.dtype()});
    avals.back().varying = array.aval().varying;
  }
  return avals;
}

Arrays linear_solve(const Function& matvec, std::span<const Array> b, const Function& solve,
                    const Function& transpose_solve, bool symmetric) {
  const std::vector<Aval> avals = strong_avals_of(b);
  LinearSystem system;
  Arrays operands(b.begin(), b.end());
  auto trace = [&](const Function& function, const char* what, Jaxpr& jaxpr, int& num_captured) {
    const Traced traced = make_jaxpr(function, avals, what);
    require_like(traced.jaxpr->output_avals(), b, what);
    jaxpr = traced.jaxpr;
    num_captured = int(traced.captured.size());
    operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  };
  system.symmetric = symmetric;
  trace(matvec, "matvec", system.matvec, system.num_matvec);
  if (all_plain(operands)) {  // only the solution is needed
    Arrays x = solve(b);
    require_like(avals_of(x), b, "solve");
    if (all_plain(x)) return x;
  }
  trace(solve, "solve", system.solve, system.num_solve);
  if (transpose_solve && !symmetric)
    trace(transpose_solve, "transpose_solve", system.transpose_solve, system.num_transpose);
  return bind(linear_solve_p, operands, system.to_params());
}

constinit const Primitive linear_solve_p{"linear_solve"};
static const auto linear_solve_def =
    define(
        linear_solve_p,
        "The x of matvec(x) = b, found by solve(b). Its derivatives are those of the system: they "
        "solve it again for other right-hand sides.")
        .family(holds_programs())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const LinearSystem system(params);
          const int wanted =
              system.num_unknowns() + system.num_matvec + system.num_solve + system.num_transpose;
          if (int(inputs.size()) != wanted)
            throw InternalError("linear_solve: " + std::to_string(inputs.size()) +
                                " operands where there should be " + std::to_string(wanted));
          std::vector<Aval> outputs = system.solve->output_avals();
          for (Aval& output : outputs)
            for (const Aval& input : inputs) output.varying |= input.varying;
          return outputs;
        })
        .refuse<Prune>("every unknown of a system depends on all of it")
        .refuse<Diverge>("every example runs all of its body")
        .refuse<Steps>("it decomposes to the only run")
        .rule<Bodies>([](const Params& params) {  // the others serve derivatives
          const LinearSystem system(params);
          std::vector<int> operands = operands_from(0, system.solve);
          for (std::size_t i = std::size_t(system.num_unknowns()); i < operands.size(); ++i)
            operands[i] += system.num_matvec;
          return std::vector<Body>{{system.solve, Body::Runs::once, 1, true, std::move(operands)}};
        })
        .rule<PictureGroup>(PictureGroup::product)
        .rule<Decompose>([](std::span<const Array> inputs, const Params& params) {
          const LinearSystem system(params);
          const auto b = system.unknowns(inputs), captured = system.of_solve(inputs);
          Arrays operands(b.begin(), b.end());
          operands.insert(operands.end(), captured.begin(), captured.end());
          return eval_jaxpr(system.solve, operands);
        })
        .rule<Samples>([] { return std::vector<Sample>{}; });  // the laws apply linear_solve

}  // namespace plait
