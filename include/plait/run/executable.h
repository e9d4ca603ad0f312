// Executables: compiled programs, and sessions that run one many times.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/ir/aval.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plait {

// Runs an executable many times on memory of the caller, as loops do. One thread at a time.
class Session {
 public:
  virtual ~Session() = default;
  // Inputs are dense. Results are written to outputs, which are dense and do not overlap the
  // inputs, except that a carry's next value may be given the carry's memory.
  // On a device the work is submitted to the stream; stacks' handles lie on the host.
  virtual void run(std::span<const View> inputs, std::span<const View> outputs,
                   const Stream& stream) = 0;
  void run(std::span<const View> inputs, std::span<const View> outputs) {
    run(inputs, outputs, {});
  }
};

// A compiled jaxpr: immutable, safe to call from many threads, never touches Python.
class Executable {
 public:
  virtual ~Executable() = default;
  // outputs has room for one Buffer per output. Propagates IndexError and MemoryError of kernels.
  virtual void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const = 0;
  std::vector<Buffer> run(std::span<const Buffer> inputs) const;
  // The same with results written to these: dense, of the outputs' shapes and dtypes, not
  // overlapping the inputs or each other.
  virtual void run_into(std::span<const Buffer* const> inputs,
                        std::span<const Buffer* const> outputs) const = 0;
  virtual std::unique_ptr<Session> open() const = 0;  // must not outlive the executable
  // By carry: whether its next value is written into its memory without a copy.
  virtual std::vector<bool> carries_in_place() const = 0;
  virtual const std::vector<Aval>& outputs() const = 0;
  // Whether results may lie on other devices than the inputs.
  virtual bool moves_values() const { return false; }
  // Bytes of the arena of one call, without inputs and outputs.
  virtual std::int64_t arena_bytes() const = 0;
  // Peak bytes of one call without its inputs: the arena, kernels' scratch in it, and the outputs
  // that do not reuse the memory of donated inputs.
  virtual std::int64_t peak_bytes() const = 0;
  // A table, one line a step: where it runs, how many bytes it writes, and why not elsewhere.
  virtual std::string explain() const = 0;
  // The executable that a call runs now: this one, or with tiers the current tier.
  virtual const Executable& current() const { return *this; }
};

}  // namespace plait
