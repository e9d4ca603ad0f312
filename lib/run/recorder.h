// What the steps of executables take, on a thread that records: what profile is made of.
//
// A call asks once whether its thread records, and runs its steps through the recorder if it does;
// else nothing is added to it. Time is read once between steps, from the processor's counter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "compile/plan.h"

namespace plait {

class Recorder {
 public:
  // A step where it is run from: a body that two steps hold has steps of its own under each.
  // What is known of it is copied: programs that a call of the host runs may be gone afterwards.
  struct Step {
    std::string names, note;
    std::string_view backend;
    Jaxpr program;
    int parent;                     // the step that runs it, or -1
    double count = 0, seconds = 0;  // since the last take
  };
  struct Event {
    int step;
    double begin, seconds;  // begin: since the recorder was made
  };

  Recorder();  // records this thread; the one before is back when it goes
  ~Recorder();
  Recorder(const Recorder&) = delete;

  // That of this thread, if it has one.
  static Recorder* current() {
    return num_recorders.load(std::memory_order_relaxed) ? of_thread() : nullptr;
  }
  void run(const compile_passes::Plan& plan, const View* views, char* arena, const Stream& stream);

  // Since the last time: the sums by step, and events, up to a limit. Steps stay where they are.
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
