// The cublaslt backend: products of matrices on CUDA devices, by cuBLASLt where it is installed,
// with the equations behind them that it computes too.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/backend.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/cublaslt/epilogue.h"
#include "backends/cuda/cublaslt/kernel.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/kernel.h"
#include "codegen/lower.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Products of a small product, in all; below, a loop runs as fast as the library starts.
constexpr std::int64_t small_work = 1 << 14;
constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();

bool have_loops(const Equation& equation, std::span<const Aval> inputs, Device device) {
  const Jaxpr group = codegen::program_of(equation, inputs);
  return lowered(group, compile_passes::dense_inputs(group), device).staged != nullptr;
}

// Why generated loops are better, if they take it; empty where they are not.
std::string why_loops(const Problem& problem) {
  const std::int64_t work = problem.batch * problem.rows * problem.columns * problem.terms;
  if (problem.terms == 1) return "nothing to add up";
  if (work < small_work) return "small: " + std::to_string(work) + " products";
  if (is_small_product(problem.rows, problem.terms, problem.columns)) return "small matrices";
  return {};
}

class ProductBackend final : public Backend {
 public:
  std::string_view name() const override { return "cublaslt"; }
  bool runs_on(Device device) const override { return is_cuda(device); }
  bool runs_eagerly() const override { return false; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    if (!(*equation.primitive == dot_general_p)) return Support::no();
    for (const Atom& atom : equation.inputs)
      if (!atom.is_var()) return Support::no("a scalar operand");
    const std::optional<Problem> problem =
        problem_of(equation.params, inputs[0], inputs[1], outputs[0].dtype);
    if (!problem)
      return Support::no("no product of " + std::string(name_of(inputs[0].dtype)) + " as " +
                         std::string(name_of(outputs[0].dtype)));
    for (const std::int64_t size :
         {problem->batch, problem->rows, problem->columns, problem->terms}) {
      if (size == 0) return Support::no("nothing to compute");
      if (size > largest_size) return Support::no("more than 2^31 rows or columns");
    }
    const bool is_8_bit = problem->types.operands == CUDA_R_8I;
    if (is_8_bit && (problem->columns % 4 != 0 || problem->terms % 4 != 0))
      return Support::no("int8 that does not fill words");
    if (const std::string why = why_loops(*problem);
        !why.empty() && have_loops(equation, inputs, device))
      return Support::no(why);
    if (!cublaslt_api()) return Support::no(why_no_cublaslt());
    if (!algorithm_for(device, *problem)) return Support::no("no algorithm");
    return Support::yes();
  }

  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    if (more.size() != 1) return false;
    const int product = *std::min_element(group.begin(), group.end());
    const Equation& equation = program->equations[std::size_t(product)];
    if (!(*equation.primitive == dot_general_p)) return false;
    const std::vector<int> behind = epilogue_of(*program, uses, product, Rows::known).equations;
    return std::find(behind.begin(), behind.end(), more[0]) != behind.end();
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return make_product_kernel(group, target);
  }
};

}  // namespace

std::unique_ptr<Backend> make_product_backend() { return std::make_unique<ProductBackend>(); }

}  // namespace plait::cuda
