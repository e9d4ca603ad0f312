// Makes executables from plans. See executable.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/plan.h"

namespace plait {

class PlannedExecutable : public Executable {
 public:
  virtual bool has_host_calls() const = 0;
  // Adds a line to the end of the text of explain. It must precede the first call.
  virtual void remark(const std::string& text) = 0;
};
// program: the source of the plan, with its source lines.
std::shared_ptr<PlannedExecutable> make_executable(compile_passes::Plan plan, Device device,
                                                   const Jaxpr& program);

// The same for a device: its calls submit work to the device's current stream.
std::shared_ptr<PlannedExecutable> make_stream_executable(compile_passes::Plan plan, Device device,
                                                          const Jaxpr& program);

}  // namespace plait
