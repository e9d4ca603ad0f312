// Profiles: a program runs under a recorder (run/recorder.h) several times, and the time of each
// step is divided among its equations.
//
// An equation of a fused step gets a share in proportion to its time at the machine's limits,
// counting the memory that it reads and writes outside the kernel.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/profile.h>

#include <plait/compile/compile.h>
#include <plait/trace/devices.h>
#include <plait/trace/wait.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "run/recorder.h"

namespace plait {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_double(DType dtype) { return dtype == DType::float64 || dtype == DType::complex128; }

// The least time of steps at these limits.
class Roofline {
 public:
  explicit Roofline(const MachineLimits& limits) : limits_(limits) {}
  double seconds(const Work& work, DType dtype) const {
    return std::max(arithmetic(work.flops, dtype), work.bytes() / limits_.copy);
  }
  double arithmetic(double flops, DType dtype) const {
    return flops / (is_double(dtype) ? limits_.flops64 : limits_.flops32);
  }
  double memory(double bytes) const { return bytes / limits_.copy; }

 private:
  const MachineLimits& limits_;
};

DType dtype_of(const JaxprData& program) {
  return program.outputs.empty() ? DType::float32 : program.aval(program.outputs[0]).dtype;
}

// A kernel reads its inputs once and writes its outputs; intermediate values stay inside.
Work work_of_step(const Jaxpr& program) {
  Work work;
  for (const Equation& equation : program->equations) work += work_of(*program, equation);
  if (program->equations.size() == 1) return work;
  work.bytes_read = work.bytes_written = 0;
  for (const Aval& aval : program->input_avals()) work.bytes_read += bytes_of(aval);
  for (const Aval& aval : program->output_avals()) work.bytes_written += bytes_of(aval);
  return work;
}

// The shares of a step's equations in its time.
std::vector<double> weights_of(const Jaxpr& program, const Roofline& roofline) {
  std::vector<bool> leaves(program->avals.size(), false);
  for (const Atom& atom : program->outputs)
    if (atom.is_var()) leaves[std::size_t(atom.var().id)] = true;
  std::vector<double> weights;
  double sum = 0;
  for (const Equation& equation : program->equations) {
    double bytes = 0;
    for (const Atom& atom : equation.inputs)
      if (atom.is_var() && atom.var().id < program->num_binders)
        bytes += bytes_of(program->aval(atom));
    for (Var var : equation.outputs)
      if (leaves[std::size_t(var.id)]) bytes += bytes_of(program->aval(var));
    const DType dtype =
        equation.outputs.empty() ? DType::float32 : program->aval(equation.outputs[0]).dtype;
    weights.push_back(roofline.memory(bytes) +
                      roofline.arithmetic(work_of(*program, equation).flops, dtype));
    sum += weights.back();
  }
  for (double& weight : weights) weight = sum > 0 ? weight / sum : 1.0 / double(weights.size());
  return weights;
}

ProfileStep describe(const Recorder::Step& step) {
  ProfileStep row;
  row.name = step.names;
  if (step.names.find(' ') != std::string::npos) row.name = "fused: " + row.name;
  row.backend = step.backend;
  row.note = step.note;
  const std::vector<Aval> outputs = step.program->output_avals();
  if (!outputs.empty()) row.type = outputs[0].to_string();
  if (outputs.size() > 1) row.type += " +" + std::to_string(outputs.size() - 1);
  return row;
}

class Profiler {
 public:
  Profiler(const Jaxpr& jaxpr, std::span<const Array> inputs, const ProfileOptions& options)
      : inputs_(inputs), options_(options) {
    check_inputs(jaxpr);
    const Waiting waiting;
    // Arrays that the function uses without taking them as arguments are among the inputs.
    Arrays there;
    for (const Array& input : inputs)
      if (!device_of(input).is_host()) there.push_back(input);
    const Device device =
        common_device("profile", there.empty() ? Arrays(inputs.begin(), inputs.end()) : there);
    executable_ = compile(jaxpr, {.device = device});
    for (const Array& input : inputs) owned_.push_back(input.buffer().on(device));
    for (const Buffer& buffer : owned_) buffers_.push_back(&buffer);
  }

  Profile run() {
    profile_.name = options_.name;
    profile_.limits = machine_limits();
    measure();
    fill();
    return std::move(profile_);
  }

 private:
  void check_inputs(const Jaxpr& jaxpr) const {
    if (!jaxpr->sizes.empty())
      throw ValueError("profile: the program has the named size " + jaxpr->sizes[0].to_string(),
                       "give arguments with values, or instantiate it");
    if (inputs_.size() != std::size_t(jaxpr->num_binders))
      throw ValueError("profile: " + std::to_string(inputs_.size()) + " inputs for a program of " +
                           std::to_string(jaxpr->num_binders),
                       "give one array for each input");
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].aval().shape != jaxpr->avals[i].shape ||
          inputs_[i].dtype() != jaxpr->avals[i].dtype)
        throw ShapeError("profile: input " + std::to_string(i) + " is " +
                             inputs_[i].aval().to_string() + " where the program takes " +
                             jaxpr->avals[i].to_string(),
                         "give arrays of the program's types");
  }

  double call() {
    std::vector<Buffer> outputs(executable_->outputs().size());
    const double start = now();
    executable_->run(buffers_, outputs);
    return now() - start;
  }

  void measure() {
    constexpr double enough = 0.3;  // seconds
    call();                         // allocates memory and fills caches
    const double once = std::max(call(), 1e-7);
    profile_.num_runs =
        options_.num_runs > 0 ? options_.num_runs : int(std::clamp(enough / once, 5.0, 200.0));
    std::vector<double> calls;
    recorder_.emplace();
    call();  // the first call of a recorder asks kernels what it shows
    recorder_->take();
    for (int run = 0; run < profile_.num_runs; ++run) {
      calls.push_back(call());
      steps_ = &recorder_->take();
      seconds_.resize(steps_->size());
      counts_.resize(steps_->size());
      for (std::size_t i = 0; i < steps_->size(); ++i) {
        seconds_[i].push_back((*steps_)[i].seconds);
        counts_[i].push_back((*steps_)[i].count);
      }
    }
    profile_.seconds = median(std::move(calls));
  }

  void fill() {
    const Roofline roofline(profile_.limits);
    // A body's steps are recorded after later ones of the enclosing program: restores the order of
    // a tree.
    std::vector<std::vector<int>> inner(steps_->size() + 1);
    for (std::size_t i = 0; i < steps_->size(); ++i)
      inner[std::size_t((*steps_)[i].parent + 1)].push_back(int(i));
    place_.assign(steps_->size(), -1);
    std::vector<int> open(inner[0].rbegin(), inner[0].rend());
    while (!open.empty()) {
      const int index = open.back();
      open.pop_back();
      add_step(index, roofline);
      const std::vector<int>& below = inner[std::size_t(index) + 1];
      open.insert(open.end(), below.rbegin(), below.rend());
    }
    for (std::size_t i = profile_.steps.size(); i-- > 0;) {
      const ProfileStep& step = profile_.steps[i];
      if (step.parent >= 0) profile_.steps[std::size_t(step.parent)].seconds -= step.total_seconds;
    }
    for (ProfileStep& step : profile_.steps) {
      step.seconds = std::max(step.seconds, 0.0);
      for (ProfileShare& share : step.shares) share.seconds *= step.seconds;
    }
    const double first = recorder_->events().empty() ? 0 : recorder_->events()[0].begin;
    for (const Recorder::Event& event : recorder_->events())
      profile_.events.push_back(
          {place_[std::size_t(event.step)], event.begin - first, event.seconds});
  }

  void add_step(int index, const Roofline& roofline) {
    const Recorder::Step& recorded = (*steps_)[std::size_t(index)];
    const Jaxpr& program = recorded.program;
    ProfileStep row = describe(recorded);
    row.parent = recorded.parent < 0 ? -1 : place_[std::size_t(recorded.parent)];
    row.depth = row.parent < 0 ? 0 : profile_.steps[std::size_t(row.parent)].depth + 1;
    row.count = median(std::move(counts_[std::size_t(index)]));
    row.seconds = row.total_seconds = median(std::move(seconds_[std::size_t(index)]));
    row.predicted_seconds = recorded.predicted * row.count;
    row.work = work_of_step(program).times(row.count);
    if (row.seconds > 0 && row.work.known)
      row.limit = roofline.seconds(row.work, dtype_of(*program)) / row.seconds;
    const std::vector<double> weights = weights_of(program, roofline);
    const Source outer =
        row.parent < 0 ? Source() : profile_.steps[std::size_t(row.parent)].shares[0].source;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Equation& equation = program->equations[i];
      Source source = equation.source;
      if (outer && !outer->scope.empty()) source = source.in_scope(outer->scope);
      row.shares.push_back({std::string(equation.primitive->name()), source, weights[i]});
    }
    if (row.shares.empty()) row.shares.push_back({row.name, {}, 1.0});
    place_[std::size_t(index)] = int(profile_.steps.size());
    profile_.steps.push_back(std::move(row));
  }

  std::span<const Array> inputs_;
  const ProfileOptions& options_;
  std::shared_ptr<const Executable> executable_;
  std::vector<Buffer> owned_;
  std::vector<const Buffer*> buffers_;
  std::optional<Recorder> recorder_;
  Profile profile_;
  const std::vector<Recorder::Step>* steps_ = nullptr;
  std::vector<std::vector<double>> seconds_, counts_;  // by step, of each run
  std::vector<int> place_;                             // by recorded step: its index in the profile
};

std::string key_of(const ProfileStep& step, const ProfileShare& share, ProfileBy what) {
  switch (what) {
    case ProfileBy::line:
      return share.source ? share.source.to_string() : "(no line)";
    case ProfileBy::scope:
      return share.source && !share.source->scope.empty() ? share.source->scope : "(no scope)";
    case ProfileBy::transforms:
      return share.source && !share.source->transforms.empty() ? share.source->transforms
                                                               : "(as written)";
    case ProfileBy::primitive:
      return share.primitive;
    case ProfileBy::backend:
      break;
  }
  return step.backend;
}

}  // namespace

Profile profile(const Jaxpr& jaxpr, std::span<const Array> inputs, const ProfileOptions& options) {
  return Profiler(jaxpr, inputs, options).run();
}

std::vector<std::pair<std::string, double>> Profile::by(ProfileBy what) const {
  // Many equations share a line, and its text is read from a file.
  std::map<const Source::Line*, std::string> lines;
  std::map<std::string, double> sums;
  for (const ProfileStep& step : steps)
    for (const ProfileShare& share : step.shares) {
      if (what != ProfileBy::line) {
        sums[key_of(step, share, what)] += share.seconds;
        continue;
      }
      const auto [place, is_new] =
          lines.try_emplace(share.source ? &*share.source : nullptr, std::string());
      if (is_new) place->second = key_of(step, share, what);
      sums[place->second] += share.seconds;
    }
  std::vector<std::pair<std::string, double>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

}  // namespace plait
