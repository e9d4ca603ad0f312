// The llvm backend: runs of elementwise equations as generated loops. It is used where PLAIT_LLVM
// asks for it: `1` for the newest libLLVM that is installed, or the path of one.
//
// Not by default: a kernel takes milliseconds to compile, which a first call should not wait for.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>

#include <cstdlib>

#include "kernel.h"
#include "primitives.h"

namespace plait {
namespace {

constexpr std::size_t largest_group = 192;

class LlvmBackend final : public Backend {
 public:
  std::string_view name() const override { return "llvm"; }
  bool runs_eagerly() const override { return false; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs) const override {
    return llvm::is_elementwise(equation, inputs, outputs) ? Support::yes() : Support::no();
  }

  // Elementwise equations of one shape; all of a group have it.
  bool joins(const Jaxpr& program, std::span<const int>, std::span<const int> group,
             std::span<const int> more) const override {
    if (group.size() + more.size() > largest_group) return false;
    const Equation& other = program->equations[more[0]];
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : other.inputs) inputs.push_back(program->aval(atom));
    for (Var var : other.outputs) outputs.push_back(program->aval(var));
    return llvm::is_elementwise(other, inputs, outputs) &&
           program->avals[program->equations[group[0]].outputs[0].id].shape == outputs[0].shape;
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group) const override {
    std::vector<Sizes64> strides;
    for (const Aval& aval : group->input_avals())
      strides.push_back(dense_strides(aval.shape.to_sizes()));
    return llvm::make_kernel(group, strides);
  }
  std::unique_ptr<Kernel> compile_for(const Jaxpr& group,
                                      std::span<const Sizes64> strides) const override {
    return llvm::make_kernel(group, strides);
  }
};

bool register_llvm() {
  const char* asked = std::getenv("PLAIT_LLVM");
  if (!asked || !*asked || std::string_view(asked) == "0") return false;
  std::string failure = llvm::load(std::string_view(asked) == "1" ? "" : asked);
  if (failure.empty()) failure = llvm::start();
  if (!failure.empty()) return report_missing_backend("llvm", failure);
  log_line("llvm: " + llvm::api().path + " makes code for " + llvm::machine().cpu);
  return register_backend(std::make_unique<LlvmBackend>(), Preference::loops);
}

const bool registered = register_llvm();

}  // namespace
}  // namespace plait
