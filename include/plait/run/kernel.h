// Kernels: backends compile groups of equations to them, and executables run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/base/stream.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>

namespace plait {

// Where a kernel on a device leaves word that its work has failed: memory that host and device see.
struct Failure {
  std::int32_t step = 0;  // 1 + the number of the step that failed; 0: none
  std::int32_t code = 0;  // the kernel's own
  std::int64_t values[7] = {};
};

// What a call of a kernel belongs to.
struct Launch {
  Stream stream = {};
  Failure* failure = nullptr;  // null on the CPU, where kernels throw
  std::int32_t step = 0;
};

// A compiled group: immutable, and called from many threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Submits the work of a call to the launch's stream. inputs and outputs are the group's, in
  // order, as memory of the stream's device; inputs may have any strides, outputs are dense.
  // scratch points to scratch_bytes() bytes, at a multiple of 64 bytes on the CPU and of 256 on
  // devices. On the CPU the work is done, or an error was thrown, when this returns. On a device
  // the spans are free again then; the memory once the stream has come past the work.
  virtual void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
                       const Launch& launch) const = 0;
  // On a device: operands that it reads, and results that it writes, in memory of the host. The
  // executable waits for the former, and brings both over.
  virtual bool reads_on_host(std::size_t input) const {
    (void)input;
    return false;
  }
  virtual bool writes_on_host(std::size_t output) const {
    (void)output;
    return false;
  }
  // On a device: the bytes to whose multiples the addresses of inputs and outputs must be aligned,
  // besides those of an element. The executable copies what is not: a view of a row, say.
  virtual std::int64_t operand_alignment() const { return 1; }
  // Whether a call only submits work, the same work for the same memory: such calls are captured,
  // and replayed (Driver::capture).
  virtual bool is_capturable() const { return false; }
  // On a device: whether its work may leave word of a failure.
  virtual bool can_fail() const { return true; }
  // The error that a failed call stands for. Called once the stream has come past the work.
  virtual std::exception_ptr error_of(const Failure& failure) const;
  virtual std::int64_t scratch_bytes() const { return 0; }
  // Whether the output may overwrite an input of as many bytes, when that input is dense and not
  // read later.
  virtual bool may_overwrite(std::size_t input, std::size_t output) const {
    (void)input, (void)output;
    return false;
  }
  // Whether it includes the bodies of its equations, instead of running them as programs with steps
  // of their own.
  virtual bool is_whole() const { return false; }
  // What explain shows beside the names of the equations: "tolerance 1e-6", "block 1024".
  virtual std::string note() const { return {}; }
  // How long a call takes by a model of this machine, where there is one: for explain and profiles.
  // text: "0.21 ms (bound by latency: 1600 steps x 128 ns)".
  struct Prediction {
    double seconds = 0;
    std::string text;
  };
  virtual std::optional<Prediction> prediction() const { return {}; }
};

}  // namespace plait
