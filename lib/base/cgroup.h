// The limits that control groups (containers, batch systems) set on this process, versions 1 and 2.
//
// The machine's cores and memory are not what a container may use: the pool and the allocator ask
// here first, once each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace plait {

std::optional<double> cgroup_cpus();          // the smallest quota, in cores
std::optional<std::int64_t> cgroup_memory();  // the smallest limit, in bytes

}  // namespace plait
