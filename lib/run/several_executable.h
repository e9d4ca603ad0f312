// Executables of programs that are cut into parts of one device each: they run one after the other,
// and values are copied between them. See compile/several_devices.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>
#include <plait/run/executable.h>

#include <optional>

namespace plait {

// A value on a device, by number. The program's inputs are the first ones.
using Slot = int;

struct Transfer {
  Slot from, to;
  Device device;
  Aval aval;
};
struct Part {
  Device device;
  std::shared_ptr<const Executable> executable;
  std::vector<Slot> inputs, outputs;
};
// Copies, and then the part that needs them; the last ones are of results, and have no part.
struct Stage {
  std::vector<Transfer> transfers;
  std::optional<Part> part;
  std::vector<Slot> last_used;  // nothing later reads them; none is an input
};
struct Stages {
  std::vector<Stage> stages;
  std::size_t num_inputs = 0, num_slots = 0, num_carries = 0;
  std::vector<Slot> results;
  std::vector<Aval> outputs;
};
std::shared_ptr<const Executable> make_several_executable(Stages stages);

}  // namespace plait
