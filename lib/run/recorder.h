// The time of each step of executables, on a thread that records: the raw data of profiles.
//
// A call checks once whether its thread records. If so, it runs its steps through the recorder, and
// otherwise it adds no cost. Time is read once between steps, from the processor's counter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>

#include "run/plan.h"

namespace plait {

class Recorder {
 public:
  // A step, under the step that runs it: a body that two steps hold has separate steps under each.
  // Its data is copied, because programs that a host call runs may be freed before take.
  struct Step {
    std::string names, note;
    std::string_view backend;
    Jaxpr program;
    int parent;                     // the step that runs it, or -1
    double predicted = 0;           // seconds of a run, by the kernel's prediction
    double count = 0, seconds = 0;  // since the last take
  };
  struct Event {
    int step;
    double begin, seconds;  // begin: since the recorder was made
  };

  Recorder();  // records this thread, and restores the previous recorder when it is destroyed
  ~Recorder();
  Recorder(const Recorder&) = delete;

  // The recorder of this thread, or nullptr.
  static Recorder* current() {
    return num_recorders.load(std::memory_order_relaxed) ? of_thread() : nullptr;
  }
  // Runs the steps of a plan in order, each by run_step.
  void run(const compile_passes::Plan& plan,
           const std::function<void(const compile_passes::Step&)>& run_step);

  // What was recorded since the last call: the sums by step, and events, up to a limit. The indices
  // of steps remain valid.
  const std::vector<Step>& take();
  const std::vector<Event>& events() const { return events_; }

 private:
  struct Program {
    const compile_passes::Plan* plan;
    int parent, first, num_steps;
  };
  static Recorder* of_thread();
  int first_step_of(const compile_passes::Plan& plan);

  static std::atomic<int> num_recorders;
  Recorder* const outer_;
  const std::uint64_t start_;
  const double start_seconds_;
  int running_ = -1;
  std::vector<Program> programs_;
  std::vector<Step> steps_;
  struct Sum {
    std::uint64_t ticks = 0, count = 0;
  };
  struct Span {
    int step;
    std::uint64_t begin, end;
  };
  std::vector<Sum> sums_;
  std::vector<Span> spans_;
  std::vector<Event> events_;
};

}  // namespace plait
