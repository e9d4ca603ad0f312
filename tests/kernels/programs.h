// Programs that users write, and the kernels that they are on a CUDA device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/text.h"

namespace plait::kernels {

struct Program {
  std::string name;
  Function function;
  std::vector<Aval> inputs;
};
std::vector<Program> programs();

// The groups of a program that the cuda backend takes, each as stages.
std::vector<std::shared_ptr<const cuda::Staged>> staged(const Program& program);
// Their kernels, in the order in which they run.
std::string source_of(const Program& program);

}  // namespace plait::kernels
