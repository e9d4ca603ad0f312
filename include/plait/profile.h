// Profiles: what the steps of a program take when it runs, against what the machine can do, and
// which lines, named scopes and transforms they come from.
//
//   const plait::Profile profile = plait::profile(step, state, batch);
//   std::puts(profile.to_string().c_str());
//   profile.write_flame("step.html");
//
// The program is compiled by every backend and runs as jit runs it, a number of times; figures are
// medians over these. A step that is several equations in one kernel shares its time among them in
// proportion to what each costs at the machine's limits, and tables say so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/api.h>
#include <plait/cost.h>

namespace plait {

// What the machine does at most, by all threads: measured once, in about 0.1 s.
struct MachineLimits {
  int num_threads = 1;
  double copy = 1;                  // bytes a second that copies read and write
  double flops32 = 1, flops64 = 1;  // operations a second of float32 and float64
};
const MachineLimits& machine_limits();

// The part of a step that an equation is.
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
  Work work;                 // in a call
  // The share of the machine's limit that it reaches: more than 1 where it reads what caches hold,
  // 0 where its work is not known.
  double limit = 0;
  std::vector<ProfileShare> shares;
};

struct ProfileEvent {
  int step;
  double begin, seconds;  // begin: since the call began
};

enum class ProfileBy { line, scope, transforms, primitive, backend };

struct Profile {
  std::string name;
  int num_runs = 0;
  double seconds = 0;  // of a call
  MachineLimits limits;
  std::vector<ProfileStep> steps;    // each before those that it runs
  std::vector<ProfileEvent> events;  // of one call, up to 50,000

  // Seconds by line, scope, ..., the most first. Sums of shares: what a call does besides its steps
  // is in none.
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

// Runs a program of no named sizes on these inputs. ValueError where sizes are named, or inputs are
// not its.
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
