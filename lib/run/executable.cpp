// Executables of the CPU: a flat list of steps over one arena. See run/executable.h.
//
// A call takes a frame: a copy of the steps' views that points at the memory of one call at a time.
// So concurrent calls do not interfere, and the usual call allocates nothing but the arena and its
// outputs.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/interrupt.h>

#include "run/executable.h"
#include "run/frame.h"
#include "run/planned.h"
#include "run/recorder.h"

namespace plait {
namespace {

class StepExecutable final : public Planned {
 public:
  StepExecutable(Plan plan, const Jaxpr& program) : Planned(std::move(plan), program) {}
  ~StepExecutable() override { delete spare_.load(); }

  void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const override {
    check_inputs(inputs, outputs.size());
    Call call(*this);
    Frame& frame = *call.frame;
    read_inputs(inputs, call);
    for (std::size_t i = 0; i < plan_.storages.size(); ++i) {
      const auto& wanted = plan_.storages[i];
      const bool is_given = wanted.donor && !wanted.is_carry && can_donate(*inputs[*wanted.donor]);
      frame.storages[i] = is_given ? inputs[*wanted.donor]->storage() : allocate_output(wanted);
      frame.outputs[i] = frame.storages[i].data();
    }
    run_steps(frame, static_cast<char*>(call.arena));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = result(i, frame, inputs, call.copies);
  }

  void run_into(std::span<const Buffer* const> inputs,
                std::span<const Buffer* const> outputs) const override {
    check_inputs(inputs, outputs.size());
    Call call(*this);
    Frame& frame = *call.frame;
    read_inputs(inputs, call);
    for (std::size_t i = 0; i < plan_.storages.size(); ++i) {
      if (written_as_[i] >= 0) {
        frame.outputs[i] = outputs[written_as_[i]]->view().data;
      } else {
        frame.storages[i] = allocate_output(plan_.storages[i]);
        frame.outputs[i] = frame.storages[i].data();
      }
    }
    run_steps(frame, static_cast<char*>(call.arena));
    for (std::size_t i : copied_)
      copy_elements(result_view(plan_.results[i], frame), outputs[i]->view());
  }

  std::unique_ptr<Session> open() const override;

 private:
  friend class StepSession;

  void run_steps(Frame& frame, char* arena) const {
    frame.patch(arena);
    const View* view = frame.views.data();
    auto run_step = [&](const Step& step) {
      const View* results = view + step.inputs.size();
      step.kernel->enqueue({view, step.inputs.size()}, {results, step.outputs.size()},
                           arena + step.scratch_offset, launch_);
      view = results + step.outputs.size();
    };
    if (Recorder* recorder = Recorder::current()) [[unlikely]]
      return recorder->run(plan_, run_step);
    for (const Step& step : plan_.steps) {
      if (view != frame.views.data()) check_interrupts();
      run_step(step);
    }
  }

  // The resources of one call, released on every exit.
  struct Call {
    explicit Call(const StepExecutable& executable) : executable(executable) {
      frame = executable.spare_.exchange(nullptr, std::memory_order_acquire);
      if (!frame) frame = new Frame(executable.plan_);
      try {
        if (executable.plan_.arena_bytes > 0) arena = allocate(executable.plan_.arena_bytes);
        make_handles(executable.plan_, arena);
      } catch (...) {
        delete frame;
        throw;
      }
    }
    ~Call() {
      release_handles(executable.plan_, arena);
      if (arena) deallocate(arena, executable.plan_.arena_bytes);
      for (Storage& storage : frame->storages) storage = Storage();
      Frame* expected = nullptr;
      if (!executable.spare_.compare_exchange_strong(expected, frame, std::memory_order_release))
        delete frame;
    }
    Call(const Call&) = delete;
    const StepExecutable& executable;
    Frame* frame = nullptr;
    void* arena = nullptr;
    std::vector<Buffer> copies;
  };

  // Points the frame at the inputs, or at dense copies where steps expect dense inputs.
  void read_inputs(std::span<const Buffer* const> inputs, Call& call) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const View& view = inputs[i]->view();
      if (!is_read_[i] || view.is_dense()) {
        call.frame->inputs[i] = view.data;
      } else {
        call.copies.push_back(Buffer::copy_of(view));
        call.frame->inputs[i] = call.copies.back().mutable_data();
      }
    }
  }

  // A result in the memory of a completed frame.
  View result_view(const PlannedView& planned, const Frame& frame) const {
    View view = planned.view;
    void* base = planned.segment == Segment::constant ? plan_.constants[planned.index].view().data
                 : planned.segment == Segment::input  ? frame.inputs[planned.index]
                                                      : frame.outputs[planned.index];
    view.data = static_cast<char*>(base) + planned.byte_offset;
    return view;
  }

  Buffer result(std::size_t number, Frame& frame, std::span<const Buffer* const> inputs,
                const std::vector<Buffer>& copies) const {
    const PlannedView& planned = plan_.results[number];
    if (planned.segment == Segment::constant) return plan_.constants[planned.index];
    if (planned.segment == Segment::output) {
      char* const data = static_cast<char*>(frame.outputs[planned.index]) + planned.byte_offset;
      Storage& storage = frame.storages[planned.index];
      return Buffer(is_last_[number] ? std::move(storage) : storage, planned.view, data);
    }
    const Buffer* source = inputs[planned.index];
    for (const Buffer& copy : copies)
      if (copy.data() == frame.inputs[planned.index]) source = &copy;
    return Buffer(source->storage(), planned.view,
                  static_cast<char*>(source->view().data) + planned.byte_offset);
  }

  const Launch launch_;  // on the CPU
  mutable std::atomic<Frame*> spare_{nullptr};
};

// A session keeps a frame, and its memory where that is small. Large memory returns to the
// allocator after each run. Many sessions, such as those for each size of a ragged batch, then
// share it, and a new one causes no page faults.
class StepSession final : public Session {
 public:
  explicit StepSession(const StepExecutable& executable)
      : plan_(executable.plan_),
        executable_(executable),
        in_place_(executable.carries_in_place()),
        frame_(plan_) {
    if (keeps_memory()) take_memory();
  }
  ~StepSession() override { give_memory(); }

  void run(std::span<const View> inputs, std::span<const View> outputs, const Stream&) override {
    struct Lease {
      explicit Lease(StepSession& session) : session(session) {
        if (!session.keeps_memory()) session.take_memory();
      }
      ~Lease() {
        if (!session.keeps_memory()) {
          session.give_memory();
          return;
        }
        for (std::int64_t offset : session.plan_.arena_stacks)
          handle_at(session.arena_.data(), offset)->reset();
      }
      StepSession& session;
    };
    const Lease lease(*this);
    for (std::size_t i = 0; i < inputs.size(); ++i) frame_.inputs[i] = inputs[i].data;
    std::vector<Buffer> copies;
    for (std::size_t i = 0; i < plan_.num_carries; ++i)
      if (inputs[i].data == outputs[i].data && !in_place_[i]) {
        copies.push_back(Buffer::copy_of(inputs[i]));
        frame_.inputs[i] = copies.back().mutable_data();
      }
    const std::vector<int>& written_as = executable_.written_as_;
    for (std::size_t i = 0; i < written_as.size(); ++i)
      if (written_as[i] >= 0) frame_.outputs[i] = outputs[written_as[i]].data;
    executable_.run_steps(frame_, static_cast<char*>(arena_.data()));
    for (std::size_t i : executable_.copied_) {
      const View view = executable_.result_view(plan_.results[i], frame_);
      if (plan_.outputs[i].stack > 0)
        *outputs[i].as<Stack::Handle>() = *view.as<Stack::Handle>();
      else if (view.data != outputs[i].data || i >= in_place_.size() || !in_place_[i])
        copy_elements(view, outputs[i]);
    }
  }

 private:
  static constexpr std::int64_t largest_kept = 256 << 10;

  bool keeps_memory() const { return plan_.arena_bytes <= largest_kept; }

  void take_memory() {
    Storage arena = keeps_memory() ? Storage::allocate(std::size_t(plan_.arena_bytes))
                                   : allocate_shared_arena(plan_.arena_bytes);
    for (std::size_t i = 0; i < plan_.storages.size(); ++i) {
      if (executable_.written_as_[i] >= 0) continue;
      frame_.storages[i] = allocate_output(plan_.storages[i]);
      frame_.outputs[i] = frame_.storages[i].data();
    }
    make_handles(plan_, arena.data());
    arena_ = std::move(arena);
  }
  void give_memory() {
    if (!arena_) return;
    release_handles(plan_, arena_.data());
    for (Storage& storage : frame_.storages) storage = Storage();
    arena_ = Storage();
  }

  const compile_passes::Plan& plan_;
  const StepExecutable& executable_;
  const std::vector<bool> in_place_;  // by carry
  Frame frame_;
  Storage arena_;  // including handles of stacks; empty between runs where memory is not kept
};

std::unique_ptr<Session> StepExecutable::open() const {
  return std::make_unique<StepSession>(*this);
}

}  // namespace

std::vector<Buffer> Executable::run(std::span<const Buffer> inputs) const {
  std::vector<const Buffer*> pointers;
  for (const Buffer& input : inputs) pointers.push_back(&input);
  std::vector<Buffer> results(outputs().size());
  run(pointers, results);
  return results;
}

std::shared_ptr<PlannedExecutable> make_executable(compile_passes::Plan plan, Device device,
                                                   const Jaxpr& program) {
  if (!device.is_host()) return make_stream_executable(std::move(plan), device, program);
  return std::make_shared<StepExecutable>(std::move(plan), program);
}

}  // namespace plait
