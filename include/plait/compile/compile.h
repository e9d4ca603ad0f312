// compile: from a jaxpr to an executable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>
#include <plait/run/executable.h>

namespace plait {

struct CompileOptions {
  // By input: whether an output may reuse its memory, provided that the caller's Buffer is its only
  // owner. The caller must not read such an input again.
  std::vector<bool> donate = {};
  // How many leading inputs are carries of a loop: a session may be given the memory of such an
  // input for the output of the same number, which is its next value.
  std::size_t num_carries = 0;
  Device device = {};
  // Where the inputs lie, one by one, if not all on that device.
  std::vector<Device> input_devices = {};
  // Asked in this order instead of the registered backends; empty means those.
  std::vector<const Backend*> backends = {};
  bool operator==(const CompileOptions&) const = default;
};

// Compiles a jaxpr without named sizes; memoised on the jaxpr.
std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr);
std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr, const CompileOptions& options);

}  // namespace plait
