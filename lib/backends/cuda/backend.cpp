// The cuda backend, of loop programs: whatever has one runs on a GPU, as one or several kernels. It
// is there where a driver of CUDA and a device are; see driver.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include <plait/rules/bodies.h>

#include <algorithm>

#include "codegen/lower.h"
#include "compile/loop_programs.h"
#include "driver.h"
#include "kernel.h"

namespace plait::cuda {
namespace {

constexpr std::size_t largest_group = 192;
// Beyond, to lower a group at every step of its growth takes longer than a launch that it saves.
constexpr std::size_t largest_lowered = 64;

bool is_elementwise(const Jaxpr& program, std::span<const int> equations) {
  return std::all_of(equations.begin(), equations.end(), [&](int index) {
    return Pointwise::table().find(*program->equations[std::size_t(index)].primitive);
  });
}
const Shape& shape_of(const Jaxpr& program, int equation) {
  return program->avals[std::size_t(program->equations[std::size_t(equation)].outputs[0].id)].shape;
}

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  bool runs_on(Device device) const override { return is_cuda(device); }
  bool runs_eagerly() const override { return false; }
  bool takes_views() const override { return true; }

  Support supports(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval>,
                   Device device) const override {
    const Jaxpr group = codegen::program_of(equation, inputs);
    const Lowered program = lowered(group, compile_passes::dense_inputs(group), device);
    if (!program.staged) return Support::no("no loop program: " + program.reason);
    return Support::yes();
  }

  // Groups become one where that saves a kernel.
  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    if (group.size() + more.size() > largest_group) return false;
    if (is_elementwise(program, group) && is_elementwise(program, more))
      return shape_of(program, group[0]) == shape_of(program, more[0]);
    if (group.size() + more.size() > largest_lowered) return false;
    std::vector<int> all(group.begin(), group.end());
    all.insert(all.end(), more.begin(), more.end());
    const std::optional<std::size_t> first =
                                         kernels_of(program, uses, {group.begin(), group.end()}),
                                     second = kernels_of(program, uses, {more.begin(), more.end()}),
                                     both = kernels_of(program, uses, all);
    return first && second && both && *both < *first + *second;
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return make_program_kernel(group, target.strides, target.device);
  }

 private:
  // How many kernels equations are, as one group.
  static std::optional<std::size_t> kernels_of(const Jaxpr& program, std::span<const int> uses,
                                               std::vector<int> equations) {
    std::sort(equations.begin(), equations.end());  // views stand behind
    const Jaxpr group = codegen::program_of(*program, equations,
                                            compile_passes::results_of(program, uses, equations));
    constexpr Device any{Device::Kind(1), 0};  // loop programs of devices do not differ
    const Lowered known = lowered(group, compile_passes::dense_inputs(group), any);
    if (!known.staged) return {};
    return known.staged->stages.size();
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace plait::cuda
