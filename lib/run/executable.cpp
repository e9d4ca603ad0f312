// Executables: a flat list of steps over one arena. See run/executable.h.
//
// A call takes a frame: a copy of the steps' views that points at the memory of one call at a time.
// So concurrent calls do not interfere, and the usual call allocates nothing but the arena and its
// outputs.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/interrupt.h>
#include <plait/primitives/host_call.h>
#include <plait/primitives/widening.h>

#include <array>

#include "run/executable.h"
#include "run/frame.h"
#include "run/recorder.h"

namespace plait {
namespace {

using compile_passes::Plan;
using compile_passes::PlannedView;
using compile_passes::Step;
using Segment = PlannedView::Segment;

using ExplainRow = std::array<std::string, 5>;  // a row of the table, by column

class StepExecutable final : public PlannedExecutable {
 public:
  StepExecutable(Plan plan, Device device, const Jaxpr& program)
      : plan_(std::move(plan)),
        stream_{device, nullptr},
        host_calls_(host_calls_of(program)),
        widenings_(widenings(program)) {
    for (const Aval& aval : plan_.inputs) {
      input_shapes_.push_back(in_memory(aval).shape.to_sizes());
      input_dtypes_.push_back(in_memory(aval).dtype);
    }
    is_read_.assign(plan_.inputs.size(), false);
    auto read = [&](const std::vector<PlannedView>& views) {
      for (const PlannedView& planned : views)
        if (planned.segment == Segment::input) is_read_[std::size_t(planned.index)] = true;
    };
    for (const Step& step : plan_.steps) read(step.inputs);
    read(plan_.results);
    find_whole_results();
  }
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
  std::vector<bool> carries_in_place() const override {
    std::vector<bool> in_place;
    for (std::size_t i = 0; i < plan_.num_carries; ++i) in_place.push_back(is_in_place(i));
    return in_place;
  }
  const std::vector<Aval>& outputs() const override { return plan_.outputs; }
  std::int64_t arena_bytes() const override { return plan_.arena_bytes; }
  std::int64_t peak_bytes() const override { return plan_.arena_bytes + output_bytes(); }
  std::string explain() const override;
  bool has_host_calls() const override { return !host_calls_.empty(); }
  void remark(const std::string& text) override { remarks_ += text + "\n"; }
  void add_rows(const std::string& indent, std::vector<ExplainRow>& rows) const;

 private:
  friend class StepSession;

  std::int64_t output_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& storage : plan_.storages)
      if (!storage.donor || storage.is_carry) bytes += storage.bytes;
    return bytes;
  }

  void run_steps(Frame& frame, char* arena) const {
    frame.patch(arena);
    if (Recorder* recorder = Recorder::current()) [[unlikely]]
      return recorder->run(plan_, frame.views.data(), arena, stream_);
    const View* view = frame.views.data();
    for (const Step& step : plan_.steps) {
      if (view != frame.views.data()) check_interrupts();
      const View* results = view + step.inputs.size();
      step.kernel->run({view, step.inputs.size()}, {results, step.outputs.size()},
                       arena + step.scratch_offset, stream_);
      view = results + step.outputs.size();
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

  // Results that fill a storage of their own may be written directly to the caller's memory. The
  // others are copied there.
  void find_whole_results() {
    written_as_.assign(plan_.storages.size(), -1);
    is_last_.assign(plan_.results.size(), false);
    std::vector<bool> is_taken(plan_.storages.size(), false);
    for (std::size_t i = plan_.results.size(); i-- > 0;)
      if (const PlannedView& planned = plan_.results[i]; planned.segment == Segment::output) {
        is_last_[i] = !is_taken[std::size_t(planned.index)];
        is_taken[std::size_t(planned.index)] = true;
      }
    for (std::size_t i = 0; i < plan_.results.size(); ++i) {
      const PlannedView& planned = plan_.results[i];
      const bool is_whole =
          planned.segment == Segment::output && planned.byte_offset == 0 &&
          planned.view.is_dense() && written_as_[planned.index] < 0 &&
          planned.view.size() * size_of(planned.view.dtype) == plan_.storages[planned.index].bytes;
      if (is_whole)
        written_as_[planned.index] = int(i);
      else
        copied_.push_back(i);
    }
  }

  // Whether a step writes the next value of a carry into the carry's memory, or it stays as it is.
  bool is_in_place(std::size_t carry) const {
    const PlannedView& next = plan_.results[carry];
    if (plan_.inputs[carry].stack > 0 || next.byte_offset != 0 || !next.view.is_dense())
      return false;
    if (next.segment == Segment::input) return std::size_t(next.index) == carry;
    if (next.segment != Segment::output || written_as_[next.index] != int(carry)) return false;
    const auto& storage = plan_.storages[next.index];
    return storage.is_carry && std::size_t(*storage.donor) == carry;
  }

  // Points the frame at the inputs, or at dense copies where steps expect dense inputs.
  void read_inputs(std::span<const Buffer* const> inputs, Call& call) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_read_[i] || inputs[i]->view().is_dense()) {
        call.frame->inputs[i] = inputs[i]->view().data;
      } else {
        call.copies.push_back(Buffer::copy_of(inputs[i]->view()));
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

  void check_inputs(std::span<const Buffer* const> inputs, std::size_t num_outputs) const {
    if (inputs.size() != plan_.inputs.size() || num_outputs != plan_.outputs.size())
      throw InternalError("an executable of " + std::to_string(plan_.inputs.size()) +
                          " inputs was called with " + std::to_string(inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i]->dtype() != input_dtypes_[i] || !(inputs[i]->shape() == input_shapes_[i]))
        throw InternalError("input " + std::to_string(i) + " of an executable is " +
                            Aval{Shape::of(inputs[i]->shape()), inputs[i]->dtype()}.to_string() +
                            " instead of " + plan_.inputs[i].to_string());
  }

  // Whether the caller alone owns the memory, and the buffer covers all of it.
  static bool can_donate(const Buffer& buffer) {
    return buffer.storage().is_unique() && !buffer.storage().is_foreign() &&
           buffer.data() == buffer.storage().data() && buffer.view().is_dense();
  }

  Buffer result(std::size_t number, Frame& frame, std::span<const Buffer* const> inputs,
                const std::vector<Buffer>& copies) const {
    const PlannedView& planned = plan_.results[number];
    if (planned.segment == Segment::constant) return plan_.constants[planned.index];
    View view = planned.view;
    if (planned.segment == Segment::output) {
      view.data = static_cast<char*>(frame.outputs[planned.index]) + planned.byte_offset;
      Storage& storage = frame.storages[planned.index];
      return Buffer(is_last_[number] ? std::move(storage) : storage, std::move(view),
                    stream_.device);
    }
    const Buffer* source = inputs[planned.index];
    for (const Buffer& copy : copies)
      if (copy.data() == frame.inputs[planned.index]) source = &copy;
    view.data = static_cast<char*>(source->view().data) + planned.byte_offset;
    return Buffer(source->storage(), std::move(view), stream_.device);
  }

  const Plan plan_;
  const Stream stream_;
  const std::vector<HostCallSite> host_calls_;
  std::string remarks_;
  const std::vector<Widening> widenings_;
  std::vector<Sizes64> input_shapes_;
  std::vector<DType> input_dtypes_;
  std::vector<bool> is_read_;        // by input
  std::vector<int> written_as_;      // by storage: the output that fills it, or -1
  std::vector<bool> is_last_;        // by result: whether no later one lies in its storage
  std::vector<std::size_t> copied_;  // outputs that do not fill their storage
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

  void run(std::span<const View> inputs, std::span<const View> outputs) override {
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

  const Plan& plan_;
  const StepExecutable& executable_;
  const std::vector<bool> in_place_;  // by carry
  Frame frame_;
  Storage arena_;  // including handles of stacks; empty between runs where memory is not kept
};

std::unique_ptr<Session> StepExecutable::open() const {
  return std::make_unique<StepSession>(*this);
}

// The rows of a loop's or a branch's program follow its step, indented.
void StepExecutable::add_rows(const std::string& indent, std::vector<ExplainRow>& rows) const {
  constexpr std::size_t width = 4;  // of "step"
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    std::int64_t bytes = 0;
    std::string types;
    for (const PlannedView& view : step.outputs) {
      bytes += view.view.size() * size_of(view.view.dtype);
      types += (types.empty() ? "" : " ") +
               Aval{Shape::of(view.view.shape), view.view.dtype}.to_string();
    }
    std::string what = step.names;
    if (step.names.find(' ') != std::string::npos) what = "fused: " + what;
    if (const std::string note = step.kernel->note(); !note.empty()) what += "  [" + note + "]";
    if (const auto predicted = step.kernel->prediction()) what += "  predicted " + predicted->text;
    if (!step.refusals.empty()) what += "  (" + step.refusals + ")";
    std::string number = std::to_string(i);
    number.insert(0, width - std::min(width, number.size()), ' ');
    rows.push_back(
        {indent + number, std::string(step.backend), types, std::to_string(bytes), what});
    for (const Step::Body& body : step.bodies) {
      rows.push_back({indent + std::string(width + 1, ' ') + body.label, "", "", "", ""});
      const std::shared_ptr<const Executable> executable = body.executable();
      if (const auto* steps = dynamic_cast<const StepExecutable*>(&executable->current()))
        steps->add_rows(indent + "  ", rows);
    }
  }
}

std::string StepExecutable::explain() const {
  std::vector<ExplainRow> rows{{"step", "backend", "output", "bytes", "equations"}};
  add_rows("", rows);
  std::array<std::size_t, 4> widths{};
  for (const ExplainRow& row : rows)
    for (std::size_t column = 0; column < 4; ++column)
      if (!row[1].empty()) widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const ExplainRow& row : rows) {
    if (row[1].empty()) {  // the label of a body
      text += row[0] + "\n";
      continue;
    }
    for (std::size_t column = 0; column < 4; ++column) {
      const std::string padding(widths[column] - row[column].size(), ' ');
      text += (column == 3 ? padding + row[column] : row[column] + padding) + "  ";
    }
    text += row[4] + "\n";
  }
  if (plan_.input_free_bytes > 0)
    text += "computed once, since no input changes it: " + std::to_string(plan_.input_free_bytes) +
            " bytes\n";
  text += "arena: " + std::to_string(plan_.arena_bytes) +
          " bytes; with outputs: " + std::to_string(peak_bytes()) + " bytes\n";
  for (const HostCallSite& site : host_calls_)
    text += std::string(site.ordered ? "ordered " : "") + "host call: `" + site.name + "`" +
            (site.source ? ", " + site.source.to_string() : "") + "\n";
  for (const Widening& widening : widenings_) text += widening.to_string() + "\n";
  return text + remarks_;
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
  return std::make_shared<StepExecutable>(std::move(plan), device, program);
}

}  // namespace plait
