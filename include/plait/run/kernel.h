// Kernels: backends compile groups of equations to them, and executables run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/base/device.h>

#include <optional>
#include <span>
#include <string>

namespace plait {

// A compiled group: immutable, and called from many threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // inputs and outputs are the group's, in order, as memory of the stream's device. Inputs may have
  // any strides, outputs are dense. scratch points to scratch_bytes() bytes, 64-byte aligned.
  virtual void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
                   const Stream& stream) const = 0;
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
