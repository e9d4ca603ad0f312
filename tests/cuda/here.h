// The stand-ins for CUDA's libraries lie beside the programs of tests: what includes this runs on
// them, unless PLAIT_CUDA_LIBRARIES names others. Memory that is given back goes to the stand-in's
// pool, and blocks are not rounded up, so that it sees every access to what is no array's
// (memory_test.cpp has the rest).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>

namespace plait::cuda {

inline const bool is_on_stand_ins = [] {
  setenv("PLAIT_DEVICE_CACHE", "0", 0);
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  return setenv("PLAIT_CUDA_LIBRARIES", (program.parent_path() / "cuda").c_str(), 0) == 0;
}();

}  // namespace plait::cuda
