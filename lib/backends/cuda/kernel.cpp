// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>
#include <plait/rules/bodies.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

#include "compile/loop_programs.h"
#include "driver.h"
#include "frame.h"
#include "modules.h"
#include "work.h"

namespace plait::cuda {
namespace {

// Whether kernels with their sizes as parameters have too many.
bool takes_too_many(const ProgramText& text) {
  return std::any_of(text.kernels.begin(), text.kernels.end(), [](const KernelText& kernel) {
    return kernel.memories.size() + kernel.sizes.size() + 3 > most_parameters;
  });
}

// What the kernels of a call have of their own at the end of its frame, zeros at first: a word that
// says whether one has failed, and where blocks meet.
constexpr std::int64_t grid_at = 16, bytes_at_end = 32;

// As many blocks as there is work for, of those that are on the device at once.
unsigned blocks_at_once(CUfunction function, const KernelText& kernel, Device device) {
  int of_multiprocessor = 0;
  check(driver_api()->cuOccupancyMaxActiveBlocksPerMultiprocessor(&of_multiprocessor, function,
                                                                  kernel.threads, 0),
        "count the blocks of a kernel");
  const std::int64_t room = std::int64_t(of_multiprocessor) *
                            attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return unsigned(std::clamp<std::int64_t>(kernel.blocks, 1, std::max<std::int64_t>(1, room)));
}

// Values and memories, v3 and m0, are numbered in the order in which a kernel names them: then
// programs that differ in nothing else have the same text. Names that hold such a name, such as
// part_of_v3, follow.
std::string renumbered(const std::string& text) {
  constexpr std::string_view digits = "0123456789";
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::map<std::string, std::string> names;
  std::array<int, 2> counts{};
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of(digits, at + 1), text.size());
    const bool is_name = (text[at] == 'v' || text[at] == 'm') && end > at + 1 &&
                         (at == 0 || !is_word(text[at - 1])) &&
                         (end == text.size() || !is_word(text[end]));
    if (!is_name) {
      result += text[at++];
      continue;
    }
    std::string& name = names[text.substr(at, end - at)];
    if (name.empty()) name = text[at] + std::to_string(counts[text[at] == 'm']++);
    result += name;
    at = end;
  }
  return result;
}

ProgramText renumbered(ProgramText program) {
  for (KernelText& kernel : program.kernels) kernel.text = renumbered(kernel.text);
  return program;
}

// The bytes that a block may have in all, if it asks for them.
std::int64_t shared_of_block(Device device) {
  return attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

class ProgramKernel final : public Kernel {
 public:
  // backward: inputs, by number, that come in another order than the program reads them in, with
  // their avals.
  ProgramKernel(std::shared_ptr<const Staged> staged, std::string_view name, Sizes sizes,
                Device device, const std::vector<std::pair<std::size_t, Aval>>& backward)
      : staged_(std::move(staged)),
        text_(renumbered(text_of(*staged_, name, sizes, shared_of_block(device)))) {
    std::set<int> used;  // by kernels; blocks have others in their own memory
    for (const KernelText& kernel : text_.kernels)
      used.insert(kernel.memories.begin(), kernel.memories.end());
    for (const codegen::Memory& memory : staged_->program.memories) {
      const bool is_own = !memory.has_index();
      places_.push_back({memory.space, is_own ? frame_.bytes() : memory.index});
      if (is_own && used.contains(int(places_.size()) - 1))
        frame_.add(memory.size * size_of(memory.dtype));
    }
    for (const auto& [input, aval] : backward) {
      const Sizes64 sizes = aval.shape.to_sizes();
      copies_.push_back(
          {input, {nullptr, aval.dtype, sizes, dense_strides(sizes)}, frame_.bytes()});
      frame_.add(copies_.back().view.size() * size_of(aval.dtype));
    }
    for (const KernelText& kernel : text_.kernels) {
      may_fail_ |= kernel.may_fail;
      is_cooperative_ |= kernel.is_cooperative;
    }
    failed_at_ = frame_.bytes();
    if (may_fail_ || is_cooperative_) frame_.add(bytes_at_end);
  }
  const ProgramText& text() const { return text_; }
  void set_module(SharedModule module) { module_ = std::move(module); }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    const CurrentContext current(launch.stream.device());
    const CUstream stream = stream_of(launch.stream);
    std::call_once(loaded_, [&] {
      functions_.clear(), blocks_.clear();  // of a call that has failed
      for (const KernelText& kernel : text_.kernels) {
        const CUfunction function = module_->get().function(kernel.name);
        if (kernel.shared_bytes > 0)
          check(driver_api()->cuFuncSetAttribute(function,
                                                 CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 int(kernel.shared_bytes)),
                "give a kernel shared memory");
        functions_.push_back(function);
        blocks_.push_back(kernel.is_cooperative
                              ? blocks_at_once(function, kernel, launch.stream.device())
                              : unsigned(kernel.blocks));
      }
    });
    char* const frame = static_cast<char*>(scratch);
    const std::uint64_t failed = value_of(frame + failed_at_);
    if (may_fail_ || is_cooperative_) check(clear(stream, failed, bytes_at_end), "clear memory");
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
      if (kernel.is_cooperative) values.push_back(failed + grid_at);
      if (kernel.may_fail || kernel.is_guarded) values.push_back(failed);
      if (kernel.may_fail) values.insert(values.end(), {failure, step});
      for (const std::int64_t size : kernel.sizes) values.push_back(std::uint64_t(size));
      const LaunchShape shape{.blocks = blocks_[i],
                              .threads = unsigned(kernel.threads),
                              .shared_bytes = unsigned(kernel.shared_bytes),
                              .is_cooperative = kernel.is_cooperative};
      check(cuda::launch(stream, functions_[i], shape, values), "start a kernel");
    }
  }

  std::exception_ptr error_of(const Failure& failure) const override {
    try {
      if (failure.code == stopped_code)
        throw UserError("the call that was to compute this was interrupted", "call it again");
      codegen::raise(*text_.checks.at(std::size_t(failure.code - 1)), failure.values[0]);
    } catch (...) {
      return std::current_exception();
    }
  }
  std::int64_t scratch_bytes() const override { return frame_.bytes(); }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return may_fail_; }
  bool is_whole() const override { return true; }
  std::string note() const override {
    const std::size_t count = text_.kernels.size();
    const std::string kernels = count == 1 ? "one kernel" : std::to_string(count) + " kernels";
    for (const Stage& stage : staged_->stages)
      if (stage.is_cooperative)
        return kernels + ", whose blocks meet: up to " +
               std::to_string(width_of(stage.body).steps) + " elements at once";
    return kernels;
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

  const std::shared_ptr<const Staged> staged_;
  const ProgramText text_;
  std::vector<Place> places_;  // by memory
  std::vector<Copy> copies_;
  Frame frame_;
  std::int64_t failed_at_ = 0;
  bool may_fail_ = false, is_cooperative_ = false;
  std::optional<SharedModule> module_;
  mutable std::once_flag loaded_;
  mutable std::vector<CUfunction> functions_;
  mutable std::vector<unsigned> blocks_;  // of them
};

}  // namespace

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
  // One operation has the same text for arrays of other sizes, but for loops: what is known of
  // theirs is worth more.
  const bool is_operation = group->equations.size() == 1 && !has_loop_body(group->equations[0]) &&
                            !runs_examples(group->equations[0]);
  const auto sizes = is_operation ? Sizes::given : Sizes::written;
  auto kernel = std::make_unique<ProgramKernel>(program.staged, "stage", sizes, device, backward);
  if (sizes == Sizes::given && takes_too_many(kernel->text()))
    kernel =
        std::make_unique<ProgramKernel>(program.staged, "stage", Sizes::written, device, backward);
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
                                                   sizes, device,
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
