// The llvm backend, of loop programs: runs of elementwise equations, reductions of rows with what
// is computed from them, loops of the user's, and functions of places (reductions over other axes,
// movement, gathers, random bits). It is used where PLAIT_LLVM asks for it: `1` for the newest
// libLLVM that is installed, or the path of one.
//
// A kernel takes milliseconds to compile, which no call waits for: see lib/compile/tiers.h. libLLVM
// is loaded for the first kernel that no earlier process has compiled.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>
#include <plait/rules/bodies.h>
#include <plait/rules/cost.h>

#include <plait/primitives/primitives.h>

#include <cstdlib>
#include <unordered_map>

#include "backend.h"
#include "codegen/work.h"
#include "compile/loop_programs.h"
#include "jit.h"
#include "places.h"
#include "primitives.h"
#include "program_kernel.h"
#include "rows.h"

namespace plait {
namespace {

constexpr std::size_t largest_group = 192;
// Code over arrays of so few elements is one program, whatever it does.
constexpr std::int64_t few_elements = 256;
constexpr double most_small_work = 2000;  // in additions: what compiles within some tens of ms

class LlvmBackend final : public Backend, public compile_passes::ProgramCompiler {
 public:
  std::string_view name() const override { return "llvm"; }
  bool runs_eagerly() const override { return false; }

  bool takes_views() const override { return true; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device) const override {
    if (llvm::is_compiler_missing()) return Support::no();
    if (llvm::is_elementwise(equation, inputs, outputs)) return Support::yes();
    if (is_loop(equation)) return llvm::supports_program(equation, inputs);
    if (equation.inputs.size() == 1 && llvm::is_row_reduction(equation, inputs[0]))
      return Support::yes();
    const Support support = supports_places(equation, inputs, outputs);
    const bool has_complex = std::any_of(inputs.begin(), inputs.end(),
                                         [](const Aval& aval) { return is_complex(aval.dtype); });
    const bool computes =
        Pointwise::table().find(*equation.primitive) || *equation.primitive == reduce_p;
    if (!support && has_complex && computes)
      return Support::no("`" + std::string(equation.primitive->name()) + "` of complex numbers");
    return support;
  }

  // Elementwise equations of one shape, rows with their reductions, or functions of places.
  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    if (is_small_code(program, group) && is_small_code(program, more))
      return work_of(program, group) + work_of(program, more) <= most_small_work;
    if (group.size() + more.size() > largest_group) return false;
    // Views stand behind the equations of a group.
    const bool begins_with_loop = is_loop(program->equations[std::size_t(group[0])]);
    if (begins_with_loop != is_loop(program->equations[std::size_t(more[0])])) return false;
    if (begins_with_loop) return join_loops(program, uses, group, more);
    const bool reduces = has_reduction(program, group) || has_reduction(program, more);
    if (!reduces && joins_elementwise(program, group, more)) return true;
    std::vector<int> all(group.begin(), group.end());
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end());
    if (reduces && llvm::are_of_rows(*program, all)) return true;
    const std::vector<int> results = llvm::results_of(*program, all, uses);
    return llvm::are_of_places(*program, all, results) && has_program(program, all, results);
  }

  // Small elementwise groups of one shape.
  std::string sibling_key(const Jaxpr& program, std::span<const int> group) const override {
    constexpr std::int64_t small = 256;
    if (work_of(program, group) <= most_small_work && is_small_code(program, group)) return "small";
    const Shape& shape = program->avals[program->equations[group[0]].outputs[0].id].shape;
    if (shape.num_elements().constant() > small || group.size() > largest_group) return {};
    return joins_elementwise(program, group, group) ? shape.to_string() : std::string();
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    if (target.strides.empty())
      return llvm::make_program_kernel(group, compile_passes::dense_inputs(group));
    return llvm::make_program_kernel(group, target.strides);
  }

  std::unique_ptr<Kernel> compile_program(const codegen::LoopProgram& program) const override {
    return llvm::is_compiler_missing() ? nullptr : llvm::make_program_kernel(program);
  }

 private:
  static bool is_loop(const Equation& equation) {
    return has_loop_body(equation) || runs_examples(equation);
  }

  // Loops that become one, where what the first ones make for the others leaves the nearest cache.
  static bool join_loops(const Jaxpr& program, std::span<const int> uses,
                         std::span<const int> group, std::span<const int> more) {
    constexpr double fewest_bytes = 1 << 16;
    std::vector<int> all(group.begin(), group.end());
    all.insert(all.end(), more.begin(), more.end());
    std::unordered_map<int, double> made;  // bytes by var
    for (const int index : group)
      for (const Var var : program->equations[std::size_t(index)].outputs)
        made[var.id] = bytes_of(program->avals[std::size_t(var.id)]);
    double passed = 0;
    for (const int index : more)
      for (const Atom& atom : program->equations[std::size_t(index)].inputs)
        if (const auto found = atom.is_var() ? made.find(atom.var().id) : made.end();
            found != made.end())
          passed += std::exchange(found->second, 0.0);
    return passed >= fewest_bytes && are_loops(program, all) &&
           compile_passes::run_as_one(program, uses, std::move(all));
  }
  static bool are_loops(const Jaxpr& program, std::span<const int> group) {
    return std::all_of(group.begin(), group.end(), [&](int index) {
      const Equation& equation = program->equations[std::size_t(index)];
      return is_loop(equation) || Alias::table().find(*equation.primitive);
    });
  }

  // Of code, not of what it computes: a function is as long as many additions.
  static double work_of(const Jaxpr& program, std::span<const int> group) {
    constexpr double function = 20;
    double work = 0;
    for (const int index : group) {
      const Primitive& primitive = *program->equations[std::size_t(index)].primitive;
      work += Pointwise::table().find(primitive) && codegen::is_function(primitive) ? function : 1;
    }
    return work;
  }
  // Equations over few elements, which become one loop program. Those that joined before are known
  // to be lowered.
  static bool is_small_code(const Jaxpr& program, std::span<const int> group) {
    const auto are_few = [&](const Aval& aval) {
      const std::int64_t count = aval.shape.num_elements().constant();
      return 0 < count && count <= few_elements;
    };
    const bool are_all_few = std::all_of(group.begin(), group.end(), [&](int index) {
      const Equation& equation = program->equations[std::size_t(index)];
      return !is_loop(equation) &&
             std::all_of(equation.inputs.begin(), equation.inputs.end(),
                         [&](const Atom& atom) { return are_few(program->aval(atom)); }) &&
             std::all_of(equation.outputs.begin(), equation.outputs.end(),
                         [&](Var var) { return are_few(program->avals[std::size_t(var.id)]); });
    });
    if (!are_all_few || group.size() > 1) return are_all_few;
    const Equation& equation = program->equations[std::size_t(group[0])];
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
    for (const Var var : equation.outputs) outputs.push_back(program->avals[std::size_t(var.id)]);
    if (Pointwise::table().find(*equation.primitive))
      return llvm::is_elementwise(equation, inputs, outputs);
    return (*equation.primitive == dot_general_p || supports_places(equation, inputs, outputs)) &&
           llvm::supports_program(equation, inputs);
  }

  // Whether a group of functions of places has a loop program, which takes too long to find out of
  // each: only those of much code may have none.
  static bool has_program(const Jaxpr& program, std::span<const int> group,
                          std::span<const int> results) {
    constexpr double most_work = 200;
    double work = 0;
    for (const int index : group)
      work += codegen::instructions_of(*program->equations[std::size_t(index)].primitive);
    return work <= most_work || llvm::has_program(codegen::program_of(*program, group, results));
  }

  // Whether one equation is a group of functions of places.
  static Support supports_places(const Equation& equation, std::span<const Aval> inputs,
                                 std::span<const Aval> outputs) {
    if (outputs.size() != 1) return Support::no();
    JaxprData program;
    Equation mine = equation;
    for (const Aval& aval : inputs) program.avals.push_back(aval);
    program.num_binders = int(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (mine.inputs[i].is_var()) mine.inputs[i] = Var{int(i)};
    program.avals.push_back(outputs[0]);
    mine.outputs = {Var{int(inputs.size())}};
    program.equations.push_back(std::move(mine));
    const int only[] = {0}, results[] = {int(inputs.size())};
    return llvm::are_of_places(program, only, results) ? Support::yes() : Support::no();
  }

  static bool has_reduction(const Jaxpr& program, std::span<const int> equations) {
    return std::any_of(equations.begin(), equations.end(),
                       [&](int index) { return *program->equations[index].primitive == reduce_p; });
  }

  // Equations of one shape, of which the group's own are known to be claimed.
  static bool joins_elementwise(const Jaxpr& program, std::span<const int> group,
                                std::span<const int> more) {
    const Shape& shape = program->avals[program->equations[group[0]].outputs[0].id].shape;
    for (int index : group) {
      const Equation& equation = program->equations[index];
      if (!Pointwise::table().find(*equation.primitive) ||
          !(program->avals[equation.outputs[0].id].shape == shape))
        return false;
    }
    return std::all_of(more.begin(), more.end(), [&](int index) {
      const Equation& equation = program->equations[index];
      std::vector<Aval> inputs, outputs;
      for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
      for (Var var : equation.outputs) outputs.push_back(program->aval(var));
      return llvm::is_elementwise(equation, inputs, outputs) && outputs[0].shape == shape;
    });
  }
};

}  // namespace

std::unique_ptr<Backend> llvm::make_backend() { return std::make_unique<LlvmBackend>(); }

}  // namespace plait
