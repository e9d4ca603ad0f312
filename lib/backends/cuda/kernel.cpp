// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>

#include <algorithm>
#include <mutex>

#include "codegen/walk.h"
#include "compile/loop_programs.h"
#include "driver.h"
#include "modules.h"
#include "work.h"

namespace plait::cuda {
namespace {

// Longer ones take seconds to compile.
constexpr std::size_t most_statements_of_text = 4000;
constexpr std::int64_t alignment = 256;
constexpr std::size_t most_parameters = 480;  // of 4 KiB

// Whether kernels with their sizes as parameters have too many.
bool takes_too_many(const ProgramText& text) {
  return std::any_of(text.kernels.begin(), text.kernels.end(), [](const KernelText& kernel) {
    return kernel.memories.size() + kernel.sizes.size() + 3 > most_parameters;
  });
}

// Whether a loop in order has steps with more in any order than one block does well: it is run step
// by step then, each of which uses all processors.
bool has_wide_steps(const codegen::Block& block, bool is_in_loop = false) {
  constexpr std::int64_t widest = 1 << 15;
  return std::any_of(block.begin(), block.end(), [&](const codegen::Statement& s) {
    using Kind = codegen::Statement::Kind;
    const bool in_any_order = codegen::runs_in_any_order(s);
    if (is_in_loop && in_any_order && s.steps >= widest) return true;
    if (is_in_loop && s.kind == Kind::copy && num_elements(s.shape) >= widest) return true;
    const bool is_loop = s.kind == Kind::loop || (s.kind == Kind::repeat && !in_any_order);
    return std::any_of(s.blocks.begin(), s.blocks.end(), [&](const codegen::Block& inner) {
      return has_wide_steps(inner, is_in_loop || is_loop);
    });
  });
}

class ProgramKernel final : public Kernel {
 public:
  // backward: inputs, by number, that come in another order than the program reads them in, with
  // their avals.
  ProgramKernel(std::shared_ptr<const Staged> staged, std::string_view name, Sizes sizes,
                const std::vector<std::pair<std::size_t, Aval>>& backward)
      : staged_(std::move(staged)), text_(text_of(*staged_, name, sizes)) {
    for (const codegen::Memory& memory : staged_->program.memories) {
      const bool is_own = !memory.has_index();
      places_.push_back({memory.space, is_own ? frame_bytes_ : memory.index});
      if (!is_own) continue;
      add_to_frame(memory.size * size_of(memory.dtype));
    }
    for (const auto& [input, aval] : backward) {
      const Sizes64 sizes = aval.shape.to_sizes();
      copies_.push_back({input, {nullptr, aval.dtype, sizes, dense_strides(sizes)}, frame_bytes_});
      add_to_frame(copies_.back().view.size() * size_of(aval.dtype));
    }
    has_checks_ = !text_.checks.empty();
    failed_at_ = frame_bytes_;
    if (has_checks_) frame_bytes_ += alignment;
  }
  const ProgramText& text() const { return text_; }
  void set_module(SharedModule module) { module_ = std::move(module); }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    const CurrentContext current(launch.stream.device());
    const CUstream stream = stream_of(launch.stream);
    std::call_once(loaded_, [&] {
      for (const KernelText& kernel : text_.kernels)
        functions_.push_back(module_->get().function(kernel.name));
    });
    char* const frame = static_cast<char*>(scratch);
    const std::uint64_t failed = value_of(frame + failed_at_);
    if (has_checks_) check(clear(stream, failed, sizeof(int)), "clear memory");
    std::vector<std::uint64_t> memory;
    for (const Place& place : places_)
      memory.push_back(value_of(
          place.space == codegen::Memory::Space::operand  ? inputs[std::size_t(place.at)].data
          : place.space == codegen::Memory::Space::result ? outputs[std::size_t(place.at)].data
                                                          : frame + place.at));
    for (const Copy& each : copies_) {
      View dense = each.view;
      dense.data = frame + each.at;
      copy(inputs[each.input], dense, launch.stream);
      for (std::size_t i = 0; i < places_.size(); ++i)
        if (places_[i].space == codegen::Memory::Space::operand &&
            places_[i].at == std::int64_t(each.input))
          memory[i] = value_of(dense.data);
    }
    const std::uint64_t failure = value_of(launch.failure), step = std::uint64_t(launch.step + 1);
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < text_.kernels.size(); ++i) {
      const KernelText& kernel = text_.kernels[i];
      values.clear();
      for (const int number : kernel.memories) values.push_back(memory[std::size_t(number)]);
      if (kernel.has_checks || kernel.is_guarded) values.push_back(failed);
      if (kernel.has_checks) values.insert(values.end(), {failure, step});
      for (const std::int64_t size : kernel.sizes) values.push_back(std::uint64_t(size));
      const LaunchShape shape{.blocks = unsigned(kernel.blocks),
                              .threads = unsigned(kernel.threads)};
      check(cuda::launch(stream, functions_[i], shape, values), "start a kernel");
    }
  }

  std::exception_ptr error_of(const Failure& failure) const override {
    try {
      codegen::raise(*text_.checks.at(std::size_t(failure.code - 1)), failure.values[0]);
    } catch (...) {
      return std::current_exception();
    }
  }
  std::int64_t scratch_bytes() const override { return frame_bytes_; }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return has_checks_; }
  bool is_whole() const override { return true; }
  std::string note() const override {
    const std::size_t count = text_.kernels.size();
    return count == 1 ? "one kernel" : std::to_string(count) + " kernels";
  }

 private:
  struct Place {
    codegen::Memory::Space space;
    std::int64_t at;  // the number of an operand or a result, or an offset in the frame
  };
  struct Copy {
    std::size_t input;
    View view;  // dense
    std::int64_t at;
  };
  void add_to_frame(std::int64_t bytes) {
    frame_bytes_ += (bytes + alignment - 1) / alignment * alignment;
  }

  const std::shared_ptr<const Staged> staged_;
  const ProgramText text_;
  std::vector<Place> places_;  // by memory
  std::vector<Copy> copies_;
  std::int64_t frame_bytes_ = 0, failed_at_ = 0;
  bool has_checks_ = false;
  std::optional<SharedModule> module_;
  mutable std::once_flag loaded_;
  mutable std::vector<CUfunction> functions_;
};

}  // namespace

Lowered lowered(const Jaxpr& group, std::span<const Sizes64> strides, Device device) {
  const compile_passes::SharedLowered program =
      compile_passes::loop_program(group, strides, device);
  if (!program->program) return {nullptr, program->reason};
  if (codegen::num_statements(program->program->body) > most_statements_of_text)
    return {nullptr, "too many statements"};
  if (program->program->memories.size() > most_parameters) return {nullptr, "too many arrays"};
  auto staged = std::make_shared<const Staged>(stages_of(*program->program));
  for (const Stage& stage : staged->stages)
    if (stage.grid.empty() && has_wide_steps(stage.body))
      return {nullptr, "its steps are wide: each is kernels of its own"};
  return {std::move(staged), {}};
}

std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group, std::span<const Sizes64> given,
                                            Device device) {
  std::vector<Sizes64> strides = compile_passes::dense_inputs(group);
  std::vector<std::pair<std::size_t, Aval>> backward;
  if (!given.empty()) {
    strides = compile_passes::inputs_as_read(group, given);
    for (std::size_t i = 0; i < given.size(); ++i)
      if (strides[i] != given[i]) backward.emplace_back(i, group->input_avals()[i]);
  }
  const Lowered program = lowered(group, strides, device);
  if (!program.staged) throw InternalError("a group has no loop program: " + program.reason);
  // One operation has the same text for arrays of other sizes.
  const auto sizes = group->equations.size() == 1 ? Sizes::given : Sizes::written;
  auto kernel = std::make_unique<ProgramKernel>(program.staged, "stage", sizes, backward);
  if (sizes == Sizes::given && takes_too_many(kernel->text()))
    kernel = std::make_unique<ProgramKernel>(program.staged, "stage", Sizes::written, backward);
  const ProgramText* const texts[] = {&kernel->text()};
  kernel->set_module(SharedModule(device, source_of(texts)));
  return kernel;
}

std::vector<std::unique_ptr<Kernel>> make_program_kernels(
    std::span<const std::shared_ptr<const Staged>> programs, Device device, Sizes sizes) {
  std::vector<std::unique_ptr<ProgramKernel>> made;
  std::vector<const ProgramText*> texts;
  for (const auto& program : programs) {
    made.push_back(std::make_unique<ProgramKernel>(program, "program" + std::to_string(made.size()),
                                                   sizes,
                                                   std::vector<std::pair<std::size_t, Aval>>()));
    texts.push_back(&made.back()->text());
  }
  const SharedModule module(device, source_of(texts));
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (auto& kernel : made) {
    kernel->set_module(module);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace plait::cuda
