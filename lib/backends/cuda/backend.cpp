// The cuda backend, of loop programs: whatever has one runs on a GPU, as one or several kernels. It
// is there where a driver of CUDA and a device are; see driver.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

#include "codegen/lower.h"
#include "compile/loop_programs.h"
#include "driver.h"
#include "joins.h"
#include "kernel.h"
#include "loop_products.h"

namespace plait::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  bool runs_on(Device device) const override { return is_cuda(device); }
  bool runs_eagerly() const override { return false; }
  bool takes_views() const override { return true; }

  Support supports(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval>,
                   Device device) const override {
    if (has_library_products(equation, device))
      return Support::no("a library computes the products of its steps");
    const Jaxpr group = codegen::program_of(equation, inputs);
    const Lowered program = lowered(group, compile_passes::dense_inputs(group), device);
    if (!program.staged) return Support::no("no loop program: " + program.reason);
    return Support::yes();
  }

  // Groups become one where that saves a kernel.
  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    return are_better_as_one(program, uses, group, more);
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return make_program_kernel(group, target.strides, target.device);
  }
};

}  // namespace

std::unique_ptr<Backend> make_backend() { return std::make_unique<CudaBackend>(); }

}  // namespace plait::cuda
