// Executables of devices: a call submits the steps of its plan to a stream, and returns before they
// have run.
//
// Kernels keep nothing of the views that they are given, so that a frame is free again once the
// steps are submitted. The arena is given back in the order of the stream. What must outlive the
// call is kept by the stream: this executable, and where kernels leave word of a failure.
//
// Steps in a row that only submit work are captured by devices that can (captured_steps.h).
//
// A kernel may read operands, or write results, in memory of the host. The call then waits for the
// operands, and copies both.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/examples.h>
#include <plait/base/interrupt.h>
#include <plait/base/transfer.h>

#include <cstring>

#include "base/outcome.h"
#include "base/staging.h"
#include "base/stoppable.h"
#include "run/captured_steps.h"
#include "run/frame.h"
#include "run/planned.h"
#include "run/recorder.h"
#include "run/stop.h"

namespace plait {
namespace {

class StreamExecutable final : public Planned,
                               public std::enable_shared_from_this<StreamExecutable> {
 public:
  StreamExecutable(Plan plan, Device device, const Jaxpr& program)
      : Planned(std::move(plan), program), device_(device) {
    std::size_t first_view = 0;
    for (const Step& step : plan_.steps) {
      Needs needs;
      needs.first_view = first_view;
      first_view += step.inputs.size() + step.outputs.size();
      needs.alignment = std::max<std::int64_t>(1, step.kernel->operand_alignment());
      for (std::size_t i = 0; i < step.inputs.size(); ++i)
        if (step.kernel->reads_on_host(i) && !is_handle(step.inputs[i]))
          needs.host_inputs.push_back(i);
      for (std::size_t i = 0; i < step.outputs.size(); ++i)
        if (step.kernel->writes_on_host(i) && !is_handle(step.outputs[i]))
          needs.host_outputs.push_back(i);
      needs_.push_back(std::move(needs));
      can_fail_ |= step.kernel->can_fail();
    }
    find_parts();
  }
  ~StreamExecutable() override { delete spare_.load(); }

  void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const override {
    check_inputs(inputs, outputs.size());
    Call call(*this, Stream::current(device_));
    call.read(inputs);
    for (std::size_t i = 0; i < plan_.storages.size(); ++i) {
      const auto& wanted = plan_.storages[i];
      const bool is_given = wanted.donor && !wanted.is_carry && can_donate(*inputs[*wanted.donor]);
      call.write(i, is_given ? inputs[*wanted.donor]->storage() : call.allocate(wanted));
    }
    call.submit();
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = call.result(i, inputs);
  }

  void run_into(std::span<const Buffer* const> inputs,
                std::span<const Buffer* const> outputs) const override {
    check_inputs(inputs, outputs.size());
    Call call(*this, Stream::current(device_));
    call.read(inputs);
    for (std::size_t i = 0; i < plan_.storages.size(); ++i)
      if (written_as_[i] >= 0)
        call.write(i, outputs[std::size_t(written_as_[i])]->storage(),
                   outputs[std::size_t(written_as_[i])]->placed().data);
      else
        call.write(i, call.allocate(plan_.storages[i]));
    call.submit();
    for (std::size_t i : copied_) {
      outputs[i]->storage().wait_to_write(call.stream);
      copy(call.view_of(plan_.results[i]), outputs[i]->placed(), call.stream);
      outputs[i]->storage().note_written(call.stream);
    }
  }

  std::unique_ptr<Session> open() const override;
  std::string explain() const override {
    std::string steps;
    for (const Part& part : parts_)
      if (part.captured && part.num_steps > 1)
        steps += (steps.empty() ? "" : ", ") + std::to_string(part.first_step) + "-" +
                 std::to_string(part.first_step + part.num_steps - 1);
    std::string text = Planned::explain();
    if (!steps.empty())
      text += "captured where the device can, and started as one: steps " + steps + "\n";
    if (const auto memory = driver_of(device_.kind)->memory_statistics(device_))
      text += "memory of " + device_.to_string() + ": " + std::to_string(memory->limit) +
              " bytes may be in use\n";
    return text;
  }

 private:
  friend class StreamSession;

  // The operands of a step, and what its kernel asks of them: those in memory of the host, by
  // number, and the alignment of the others.
  struct Needs {
    std::vector<std::size_t> host_inputs, host_outputs;
    std::int64_t alignment = 1;
    std::size_t first_view = 0;  // of its operands, in a frame
    bool are_met(std::span<const View> inputs, std::span<const View> outputs) const {
      if (!host_inputs.empty() || !host_outputs.empty()) return false;
      return alignment == 1 ||
             (std::ranges::all_of(inputs, [&](const View& view) { return is_aligned(view); }) &&
              std::ranges::all_of(outputs, [&](const View& view) { return is_aligned(view); }));
    }
    bool is_aligned(const View& view) const {
      return reinterpret_cast<std::uintptr_t>(view.data) % std::uintptr_t(alignment) == 0;
    }
  };

  // Steps in a row: those that the device may capture, or one that it may not.
  struct Part {
    std::size_t first_step = 0, num_steps = 0;
    bool can_fail = false;
    std::unique_ptr<CapturedSteps> captured = {};
  };
  void find_parts() {
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      const bool is_captured = step.kernel->is_capturable() && needs_[i].host_inputs.empty() &&
                               needs_[i].host_outputs.empty();
      if (!is_captured || parts_.empty() || !parts_.back().captured) {
        parts_.push_back({.first_step = i});
        if (is_captured) parts_.back().captured = std::make_unique<CapturedSteps>();
      }
      ++parts_.back().num_steps;
      parts_.back().can_fail |= step.kernel->can_fail();
    }
  }
  std::size_t number_of(const Step& step) const { return std::size_t(&step - plan_.steps.data()); }

  // What the work of a call needs until it is done.
  struct Submitted final : Stoppable {
    Submitted(const StreamExecutable& of, const Stream& stream)
        : executable(of.shared_from_this()),
          word(of.can_fail_ ? std::make_shared<const Staging>(of.device_, sizeof(Failure))
                            : nullptr),
          scopes(SavedScopes::of_this_thread()),
          outcome(std::make_shared<Outcome>(
              stream, of.can_fail_ ? Outcome::Own::pending : Outcome::Own::fine)) {
      if (word) std::memset(word->data(), 0, sizeof(Failure));
    }
    ~Submitted() override { outcome->settle({}); }  // where nobody has asked
    // Null where no step can fail: none goes on for long then, either.
    Failure* failure_word() const { return word ? static_cast<Failure*>(word->data()) : nullptr; }
    // Only what reads its results says later that it has stopped: whoever interrupts it knows.
    void stop() const noexcept override {
      if (!word) return;
      ask_to_stop(*failure_word());
      (void)outcome->is_first_told();
    }
    std::exception_ptr failure() const override {
      std::exception_ptr thrown = own_failure();
      outcome->settle(thrown);
      return thrown && outcome->is_first_told() ? thrown : nullptr;
    }
    // Once the stream has been waited for: what has failed so far.
    void rethrow() const {
      std::exception_ptr thrown = own_failure();
      if (thrown)
        (void)outcome->is_first_told();
      else
        thrown = outcome->failure();
      if (thrown) std::rethrow_exception(thrown);
    }
    std::exception_ptr own_failure() const {
      if (!word) return {};
      Failure found;
      std::memcpy(&found, word->data(), sizeof found);
      if (found.step == 0) return {};
      const ScopesAgain again(scopes);
      return executable->plan_.steps[std::size_t(found.step - 1)].kernel->error_of(found);
    }
    const std::shared_ptr<const StreamExecutable> executable;
    const std::shared_ptr<const Staging> word;
    const SavedScopes scopes;
    const std::shared_ptr<Outcome> outcome;
  };

  // What calls use one after the other.
  struct CallFrame : Frame {
    using Frame::Frame;
    std::vector<Buffer> copies;
    std::vector<const Buffer*> sources;  // inputs, or copies of them
    std::vector<void*> addresses;        // see Call::addresses
  };

  // One call, while it submits its work. Whatever has been submitted when it ends, by an error too,
  // has what it needs.
  struct Call {
    Call(const StreamExecutable& executable, const Stream& stream)
        : executable(executable),
          stream(stream),
          submitted(std::make_shared<Submitted>(executable, stream)),
          scope(part_of_enclosing(submitted->outcome)),
          arena(executable.plan_.arena_bytes > 0
                    ? Storage::allocate(std::size_t(executable.plan_.arena_bytes), stream)
                    : Storage()),
          handles(executable.plan_.num_handles),
          frame(executable.spare_.exchange(nullptr, std::memory_order_acquire)) {
      if (!frame) frame.reset(new CallFrame(executable.plan_));
    }
    ~Call() {
      for (const Buffer* source : frame->sources) source->storage().note_read(stream);
      for (const Storage& storage : frame->storages) storage.note_written(stream);
      for (Storage& storage : frame->storages) storage = Storage();
      frame->sources.clear(), frame->copies.clear();
      CallFrame* expected = nullptr;
      if (executable.spare_.compare_exchange_strong(expected, frame.get(),
                                                    std::memory_order_release))
        frame.release();
      if (!is_done) submitted->stop();
      // What holds functions of the user's is not released by whoever waits.
      if (!executable.has_host_calls())
        stream.keep(std::move(submitted));
      else if (!is_done && submitted->word)
        stream.keep(submitted->word);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // What runs within another call, such as the body of a loop, fails for it.
    static const std::shared_ptr<Outcome>& part_of_enclosing(const std::shared_ptr<Outcome>& own) {
      if (const auto& enclosing = OutcomeScope::current()) enclosing->add_part(own);
      return own;
    }

    // Steps expect dense inputs.
    void read(std::span<const Buffer* const> inputs) {
      frame->copies.reserve(inputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Buffer* input = inputs[i];
        if (executable.plan_.inputs[i].stack == 0 && input->device() != executable.device_)
          throw InternalError("input " + std::to_string(i) + " of a program for " +
                              executable.device_.to_string() + " lies on " +
                              input->device().to_string());
        if (executable.is_read_[i] && !input->placed().is_dense()) {
          frame->copies.push_back(input->copy());
          input = &frame->copies.back();
        }
        input->storage().wait_to_read(stream);
        frame->sources.push_back(input);
        frame->inputs[i] = input->placed().data;
      }
    }
    Storage allocate(const compile_passes::OutputStorage& wanted) const {
      return wanted.is_stack ? allocate_handle()
                             : Storage::allocate(std::size_t(wanted.bytes), stream);
    }
    void write(std::size_t number, Storage storage) {
      void* const data = storage.data();
      write(number, std::move(storage), data);
    }
    void write(std::size_t number, Storage storage, void* data) {
      storage.wait_to_write(stream);
      frame->storages[number] = std::move(storage);
      frame->outputs[number] = data;
    }

    void submit() {
      if (Recorder* recorder = Recorder::current()) [[unlikely]]
        recorder->run(executable.plan_, [&](const Step& step) {
          patch();
          submit_step(executable.number_of(step));
          stream.synchronize();  // so that the time of a step is its own
        });
      else
        for (const Part& part : executable.parts_) {
          if (part.first_step > 0) check_interrupts();
          submit_part(part);
        }
      if (executable.has_host_calls()) {
        stream.synchronize();
        submitted->rethrow();
      }
      is_done = true;
    }
    void submit_part(const Part& part) {
      if (part.captured && part.captured->replay(stream, addresses(part))) return;
      patch();
      const auto submit_steps = [this, &part] {
        for (std::size_t i = 0; i < part.num_steps; ++i) submit_step(part.first_step + i);
      };
      bool is_captured = part.captured != nullptr;
      for (std::size_t i = 0; i < part.num_steps && is_captured; ++i) {
        const std::size_t number = part.first_step + i;
        is_captured = executable.needs_[number].are_met(inputs_of(number), outputs_of(number));
      }
      if (is_captured)
        part.captured->submit(stream, frame->addresses, submit_steps);
      else
        submit_steps();
    }
    void patch() {
      if (!is_patched) frame->patch(static_cast<char*>(arena.data()), handles.data());
      is_patched = true;
    }
    void submit_step(std::size_t number) const {
      const Step& step = executable.plan_.steps[number];
      executable.submit_step(step, inputs_of(number), outputs_of(number),
                             static_cast<char*>(arena.data()) + step.scratch_offset,
                             {stream, submitted->failure_word(), std::int32_t(number)}, *submitted);
    }
    std::span<const View> inputs_of(std::size_t number) const {
      return {frame->views.data() + executable.needs_[number].first_view,
              executable.plan_.steps[number].inputs.size()};
    }
    std::span<const View> outputs_of(std::size_t number) const {
      const std::span<const View> inputs = inputs_of(number);
      return {inputs.data() + inputs.size(), executable.plan_.steps[number].outputs.size()};
    }

    // All that what is submitted depends on, but constants.
    std::span<void* const> addresses(const Part& part) const {
      std::vector<void*>& all = frame->addresses;
      all.assign(1, arena.data());
      all.insert(all.end(), frame->inputs.begin(), frame->inputs.end());
      all.insert(all.end(), frame->outputs.begin(), frame->outputs.end());
      if (part.can_fail) all.push_back(submitted->failure_word());
      return all;
    }

    View view_of(const PlannedView& planned) const {
      const auto index = std::size_t(planned.index);
      View view = planned.view;
      void* base = planned.segment == Segment::constant
                       ? executable.plan_.constants[index].placed().data
                   : planned.segment == Segment::input ? frame->inputs[index]
                                                       : frame->outputs[index];
      view.data = static_cast<char*>(base) + planned.byte_offset;
      return view;
    }
    Buffer result(std::size_t number, std::span<const Buffer* const> inputs) const {
      const PlannedView& planned = executable.plan_.results[number];
      const auto index = std::size_t(planned.index);
      if (planned.segment == Segment::constant) return executable.plan_.constants[index];
      if (planned.segment == Segment::output)
        return Buffer(frame->storages[index], view_of(planned));
      const Buffer* source = inputs[index];
      for (const Buffer& copy : frame->copies)
        if (copy.placed().data == frame->inputs[index]) source = &copy;
      return Buffer(source->storage(), view_of(planned));
    }

    const StreamExecutable& executable;
    const Stream stream;
    std::shared_ptr<Submitted> submitted;
    const OutcomeScope scope;
    const Storage arena;
    std::vector<Stack::Handle> handles;
    std::unique_ptr<CallFrame> frame;
    bool is_patched = false;
    bool is_done = false;  // submitted, to the end
  };

  // Whether a view is of the handle of a stack, which lies on the host.
  bool is_handle(const PlannedView& planned) const {
    const auto index = std::size_t(planned.index);
    return planned.segment == Segment::handles ||
           (planned.segment == Segment::input && plan_.inputs[index].stack > 0) ||
           (planned.segment == Segment::output && plan_.storages[index].is_stack);
  }

  void submit_step(const Step& step, std::span<const View> inputs, std::span<const View> outputs,
                   void* scratch, const Launch& launch, const Submitted& submitted) const {
    const Needs& needs = needs_[number_of(step)];
    if (needs.are_met(inputs, outputs))
      return step.kernel->enqueue(inputs, outputs, scratch, launch);
    const Stream& stream = launch.stream;
    std::vector<View> from(inputs.begin(), inputs.end()), to(outputs.begin(), outputs.end());
    std::vector<Buffer> made;
    auto in_place_of = [&](View& view, const Stream& where) {
      made.push_back(Buffer::empty(view.dtype, view.shape, where));
      view = made.back().placed();
    };
    for (std::size_t i : needs.host_inputs) {
      in_place_of(from[i], {});
      download(inputs[i], from[i], stream);
    }
    if (!needs.host_inputs.empty()) submitted.rethrow();  // before the host sees what is wrong
    for (std::size_t i : needs.host_outputs) in_place_of(to[i], {});
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].data != inputs[i].data || is_handle(step.inputs[i]) || needs.is_aligned(from[i]))
        continue;
      made.push_back(aligned_copy(from[i], needs.alignment, stream));
      from[i] = made.back().placed();
    }
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i].data == outputs[i].data && !is_handle(step.outputs[i]) && !needs.is_aligned(to[i]))
        in_place_of(to[i], stream);
    step.kernel->enqueue(from, to, scratch, launch);
    for (std::size_t i : needs.host_outputs) upload(to[i], outputs[i], stream);
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i].data != outputs[i].data &&
          std::ranges::find(needs.host_outputs, i) == needs.host_outputs.end())
        copy(to[i], outputs[i], stream);
  }

  // With the same strides, for which the kernel is compiled.
  static Buffer aligned_copy(const View& view, std::int64_t alignment, const Stream& stream) {
    std::int64_t before = 0, behind = 1;  // elements
    for (std::size_t dim = 0; dim < view.shape.size(); ++dim) {
      const std::int64_t reach = (view.shape[dim] - 1) * view.strides[dim];
      (reach < 0 ? before : behind) += std::abs(reach);
    }
    if (view.size() == 0) before = behind = 0;
    const std::int64_t size = size_of(view.dtype), bytes = (before + behind) * size,
                       pad = (alignment - before * size % alignment) % alignment;
    const Buffer space = Buffer::empty(DType::uint8, {pad + bytes}, stream);
    char* const begin = space.placed().as<char>() + pad;
    copy({view.as<char>() - before * size, DType::uint8, {bytes}, {1}},
         {begin, DType::uint8, {bytes}, {1}}, stream);
    return Buffer(space.storage(), view, begin + before * size);
  }

  const Device device_;
  bool can_fail_ = false;     // whether any step can
  std::vector<Needs> needs_;  // by step
  std::vector<Part> parts_;
  mutable std::atomic<CallFrame*> spare_{nullptr};
};

// A session keeps nothing between runs: memory of a device comes from its pool.
class StreamSession final : public Session {
 public:
  explicit StreamSession(const StreamExecutable& executable) : executable_(executable) {}

  void run(std::span<const View> inputs, std::span<const View> outputs,
           const Stream& stream) override {
    const compile_passes::Plan& plan = executable_.plan_;
    StreamExecutable::Call call(executable_, stream);
    for (std::size_t i = 0; i < inputs.size(); ++i) call.frame->inputs[i] = inputs[i].data;
    std::vector<Buffer> copies;
    for (std::size_t i = 0; i < plan.num_carries; ++i)
      if (inputs[i].data == outputs[i].data && !executable_.is_in_place(i)) {
        copies.push_back(Buffer::empty(inputs[i].dtype, inputs[i].shape, stream));
        copy(inputs[i], copies.back().placed(), stream);
        call.frame->inputs[i] = copies.back().placed().data;
      }
    for (std::size_t i = 0; i < plan.storages.size(); ++i)
      if (const int output = executable_.written_as_[i]; output >= 0)
        call.frame->outputs[i] = outputs[std::size_t(output)].data;
      else
        call.write(i, call.allocate(plan.storages[i]));
    call.submit();
    for (std::size_t i : executable_.copied_) {
      const View view = call.view_of(plan.results[i]);
      if (plan.outputs[i].stack > 0)
        *outputs[i].as<Stack::Handle>() = *view.as<Stack::Handle>();
      else
        copy(view, outputs[i], stream);
    }
  }

 private:
  const StreamExecutable& executable_;
};

std::unique_ptr<Session> StreamExecutable::open() const {
  return std::make_unique<StreamSession>(*this);
}

}  // namespace

std::shared_ptr<PlannedExecutable> make_stream_executable(compile_passes::Plan plan, Device device,
                                                          const Jaxpr& program) {
  return std::make_shared<StreamExecutable>(std::move(plan), device, program);
}

}  // namespace plait
