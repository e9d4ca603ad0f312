// Profiles: the time of each step of a running program, compared with the limits of the machine, by
// source line, named scope and transform.
//
//   const plait::Profile profile = plait::profile(step, state, batch);
//   std::puts(profile.to_string().c_str());
//   profile.write_flame("step.html");
//
// The program is compiled with all backends and runs as under jit, a number of times; figures are
// medians over the runs. Where one kernel runs several equations, its time is divided among them in
// proportion to their cost at the machine's limits, and tables say so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/cost.h>
#include <plait/transforms/api.h>

namespace plait {

// The peak rates of the machine over all threads, measured once in about 0.1 s.
struct MachineLimits {
  int num_threads = 1;
  double copy = 1;                  // bytes a second that copies read and write
  double flops32 = 1, flops64 = 1;  // operations a second of float32 and float64
};
const MachineLimits& machine_limits();

// The share of a step that belongs to one equation.
struct ProfileShare {
  std::string primitive;
  Source source;
  double seconds = 0;
};

// A step of the executable, or of a body that another step runs.
struct ProfileStep {
  std::string name;                 // "dot_general", "fused: mul add tanh"
  std::string backend, type, note;  // type: of the first result
  int parent = -1, depth = 0;
  double count = 0;          // how often it runs in a call
  double seconds = 0;        // in a call, without the steps that it runs
  double total_seconds = 0;  // with them
  // In a call, by the cost model of loop programs; 0 for other kernels.
  double predicted_seconds = 0;
  Work work;  // in a call
  // The fraction of the machine's limit that it reaches: more than 1 where it reads from caches, 0
  // where its work is not known.
  double limit = 0;
  std::vector<ProfileShare> shares;
};

struct ProfileEvent {
  int step;
  double begin, seconds;  // begin: from the start of the call
};

enum class ProfileBy { line, scope, transforms, primitive, backend };

struct Profile {
  std::string name;
  int num_runs = 0;
  double seconds = 0;  // of a call
  MachineLimits limits;
  std::vector<ProfileStep> steps;    // each before the steps that it runs
  std::vector<ProfileEvent> events;  // of one call, up to 50,000

  // Seconds by line, scope, ..., in descending order: sums of shares. Time of the call outside its
  // steps is not included.
  std::vector<std::pair<std::string, double>> by(ProfileBy what) const;
  std::string to_string() const;  // tables
  std::string json() const;
  std::string trace() const;  // for Perfetto (ui.perfetto.dev) and chrome://tracing
  std::string flame() const;  // a page
  // The same in files. FileError where they cannot be written.
  void write_trace(const std::string& path) const;
  void write_flame(const std::string& path) const;
};

struct ProfileOptions {
  std::string name = "program";
  int num_runs = 0;  // 0: as many as take about 0.3 s, from 5 to 200
};

// Runs a program without named sizes on these inputs. ValueError where sizes are named, or the
// inputs do not fit.
Profile profile(const Jaxpr& jaxpr, std::span<const Array> inputs,
                const ProfileOptions& options = {});

// Traces a function of trees of Arrays on these arguments, and profiles it.
template <class F, class... A>
  requires(!std::is_same_v<F, Jaxpr>)
Profile profile(F f, const A&... arguments) {
  const detail::Flat<F> flat(f, typename std::decay_t<A>(arguments)...);
  const Traced traced = make_jaxpr(flat.function, avals_of(flat.inputs), "profile");
  Arrays inputs = flat.inputs;
  inputs.insert(inputs.end(), traced.captured.begin(), traced.captured.end());
  return profile(traced.jaxpr, inputs);
}

}  // namespace plait
