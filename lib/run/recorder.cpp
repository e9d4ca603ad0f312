// See recorder.h.
// SPDX-License-Identifier: Apache-2.0
#include "run/recorder.h"

#include <plait/base/interrupt.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>

namespace plait {
namespace {

constexpr std::size_t most_spans = 50'000;  // per call; loops may have any number

thread_local Recorder* recorder = nullptr;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::atomic<int> Recorder::num_recorders{0};

Recorder* Recorder::of_thread() { return recorder; }

Recorder::Recorder() : outer_(recorder), start_(__rdtsc()), start_seconds_(now()) {
  recorder = this;
  ++num_recorders;
}

Recorder::~Recorder() {
  --num_recorders;
  recorder = outer_;
}

// A linear search suffices: there are few bodies, and a loop asks for the same one again. A new
// plan may have the address of an old one, so their first steps are compared, too.
int Recorder::first_step_of(const compile_passes::Plan& plan) {
  const int num_steps = int(plan.steps.size());
  const auto found = std::find_if(programs_.rbegin(), programs_.rend(), [&](const Program& p) {
    return p.plan == &plan && p.parent == running_ && p.num_steps == num_steps &&
           (num_steps == 0 || &*steps_[std::size_t(p.first)].program == &*plan.steps[0].program);
  });
  if (found != programs_.rend()) return found->first;
  programs_.push_back({&plan, running_, int(steps_.size()), num_steps});
  for (const compile_passes::Step& step : plan.steps) {
    const auto predicted = step.kernel->prediction();
    steps_.push_back({step.names, step.kernel->note(), step.backend, step.program, running_,
                      predicted ? predicted->seconds : 0});
  }
  sums_.resize(steps_.size());
  return programs_.back().first;
}

void Recorder::run(const compile_passes::Plan& plan,
                   const std::function<void(const compile_passes::Step&)>& run_step) {
  struct Restore {  // on every exit
    ~Restore() { running = outer; }
    int& running;
    const int outer;
  } const restore{running_, running_};
  const int first = first_step_of(plan);
  int number = first;
  std::uint64_t begin = __rdtsc();
  for (const compile_passes::Step& step : plan.steps) {
    if (number != first) check_interrupts();
    running_ = number;
    run_step(step);
    const std::uint64_t end = __rdtsc();
    Sum& sum = sums_[std::size_t(number)];
    sum.ticks += end - begin;
    ++sum.count;
    if (spans_.size() < most_spans) spans_.push_back({number, begin, end});
    begin = end;
    ++number;
  }
}

const std::vector<Recorder::Step>& Recorder::take() {
  const double per_tick = (now() - start_seconds_) / double(__rdtsc() - start_);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    steps_[i].seconds = double(sums_[i].ticks) * per_tick;
    steps_[i].count = double(sums_[i].count);
    sums_[i] = {};
  }
  events_.clear();
  for (const Span& span : spans_)
    events_.push_back({span.step, double(span.begin - start_) * per_tick,
                       double(span.end - span.begin) * per_tick});
  spans_.clear();
  return steps_;
}

}  // namespace plait
