// Loops over single numbers, each as one loop program: a step that changes an element of an array
// takes nanoseconds for every operation, and the array stays where it is.
//
// It serves until code is generated, and where none can be.
// SPDX-License-Identifier: Apache-2.0
#include "interpreter.h"

#include <algorithm>

#include "backends/control/lane_counts.h"
#include "codegen/copies.h"
#include "codegen/in_place.h"
#include "codegen/interpreter.h"
#include "codegen/work.h"
#include "compile/loop_programs.h"
#include "compile/tiers.h"

namespace plait {
namespace {

class LoopKernel final : public Kernel {
 public:
  // strides: by which the program reads its inputs.
  LoopKernel(const codegen::LoopProgram& program, Jaxpr group, std::span<const Sizes64> strides)
      : interpreter_(program), group_(std::move(group)) {
    for (std::size_t i = 0; i < strides.size(); ++i)
      is_read_as_it_is_.push_back(strides[i] !=
                                  dense_strides(group_->input_avals()[i].shape.to_sizes()));
  }

  std::int64_t scratch_bytes() const override { return interpreter_.frame_bytes(); }
  bool is_whole() const override { return true; }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return codegen::may_overwrite(interpreter_.program(), input, output);
  }
  std::string note() const override {
    const std::string copies = codegen::copies_in_loops(interpreter_.program());
    return "one loop program, interpreted" + (copies.empty() ? "" : "; " + copies);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    const auto is_read = [&](std::size_t i) {
      return is_read_as_it_is_[i] || inputs[i].is_dense();
    };
    bool are_all_read = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) are_all_read = are_all_read && is_read(i);
    if (are_all_read) return run_placed(inputs, inputs, outputs, scratch, launch);
    std::vector<Buffer> copies;
    std::vector<View> operands(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_read(i)) continue;
      copies.push_back(Buffer::copy_of(inputs[i]));
      operands[i] = copies.back().view();
    }
    run_placed(operands, inputs, outputs, scratch, launch);
  }

 private:
  // operands: the inputs as the program reads them.
  void run_placed(std::span<const View> operands, std::span<const View> inputs,
                  std::span<const View> outputs, void* scratch, const Launch& launch) const {
    try {
      interpreter_.run(operands, outputs, scratch, launch);
    } catch (const Error&) {
      if (interpreter_.program().fails_by_example)
        compile_passes::raise_step_by_step(group_, inputs, launch);
      throw;
    }
    if (compile_passes::counts_lane_work(interpreter_.program()))
      count_lane_work(interpreter_.program(), interpreter_.memories(operands, outputs, scratch));
  }

  const codegen::Interpreter interpreter_;
  const Jaxpr group_;
  std::vector<bool> is_read_as_it_is_;  // by input that is not dense
};

// Whether a program is too long to be one kernel of generated code, where there is such code: step
// by step, it becomes several.
bool becomes_several(const codegen::LoopProgram& program) {
  constexpr int vector_bytes = 32;
  return codegen::is_long_code(program, vector_bytes) &&
         !backends_of({}, Preference::loops).empty();
}

class InterpreterBackend final : public Backend {
 public:
  std::string_view name() const override { return "interpreter"; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    if (!has_loop_body(equation) && !runs_examples(equation)) return Support::no();
    // A loop of unknown length changes over to generated code within a call: see control.cpp.
    if (!bodies_of(equation)[0].is_known)
      for (const Backend* slow : tiers::FirstTier::slow_backends())
        if (slow->supports(equation, inputs, outputs, device)) return Support::no();
    const compile_passes::SharedLowered lowered = compile_passes::loop_program(equation, inputs);
    if (!lowered->program) return Support::no("no loop program: " + lowered->reason);
    if (becomes_several(*lowered->program)) return Support::no("its steps become several kernels");
    if (runs_examples(equation) && compile_passes::counts_lane_work(*lowered->program))
      return Support::no("examples stay together until code is generated");
    return Support::yes();
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target&) const override {
    return make_interpreted(group);
  }
};

const bool is_registered =
    register_backend(std::make_unique<InterpreterBackend>(), Preference::interpreted);

}  // namespace

std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group, std::span<const Sizes64> given) {
  const std::vector<Sizes64> strides = compile_passes::inputs_as_read(group, given);
  const compile_passes::SharedLowered lowered = compile_passes::loop_program(group, strides);
  if (!lowered->program)
    throw InternalError("no loop program of a group: " + lowered->reason + "\n" + print(group));
  return std::make_unique<LoopKernel>(*lowered->program, group, strides);
}
std::unique_ptr<Kernel> make_interpreted(const Jaxpr& group) {
  return make_interpreted(group, compile_passes::dense_inputs(group));
}

}  // namespace plait
