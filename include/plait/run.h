// Running: compiled jaxprs as executables, and the evaluator behind eager calls.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

namespace plait {

// Runs an executable many times on memory of the caller, as loops do; for one thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  // Inputs are dense; results are written to outputs, which are dense and apart from the inputs.
  virtual void run(std::span<const View> inputs, std::span<const View> outputs) = 0;
};

// A compiled jaxpr: immutable, safe to call from many threads, never touches Python.
class Executable {
 public:
  virtual ~Executable() = default;
  // outputs has room for one Buffer per output. IndexError and MemoryError of kernels pass through.
  virtual void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const = 0;
  std::vector<Buffer> run(std::span<const Buffer> inputs) const;
  // The same with results written to these: dense, of the outputs' shapes and dtypes, apart from
  // the inputs and from each other.
  virtual void run_into(std::span<const Buffer* const> inputs,
                        std::span<const Buffer* const> outputs) const = 0;
  virtual std::unique_ptr<Session> open() const = 0;  // must not outlive the executable
  virtual const std::vector<Aval>& outputs() const = 0;
  // Bytes of the arena that one call takes, besides inputs and outputs.
  virtual std::int64_t arena_bytes() const = 0;
  // The most that one call takes besides its inputs: the arena, kernels' scratch in it, and the
  // outputs, but for those that take over donated inputs.
  virtual std::int64_t peak_bytes() const = 0;
  // A table, one line a step: where it runs, how many bytes it makes, and why not elsewhere.
  virtual std::string explain() const = 0;
};

struct CompileOptions {
  // By input: whether an output may take over its memory, when the caller's Buffer is the only one
  // that holds it. The caller must not read such an input again.
  std::vector<bool> donate = {};
  // No kernel whose bits may differ from those of the eager program.
  bool exact = false;
  Device device = {};
  // Asked in this order in place of all that there are; none stands for those.
  std::vector<const Backend*> backends = {};
};

// Compiles a jaxpr without named sizes; memoised on the jaxpr.
std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr);
std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr, const CompileOptions& options);

// What vmapped control flow has cost, in all threads since the start of the process: how many times
// a body was applied to an example that needed it, and how many times in all. Bodies run on the
// live examples, rounded up to the batch's size halved some times.
struct LaneWork {
  std::int64_t live, all;
};
LaneWork lane_work();

}  // namespace plait
