// The limits that control groups (containers, batch systems) set on this process, versions 1 and 2.
//
// A container may use fewer cores and less memory than the machine has: the pool and the allocator
// ask here first, once each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

std::optional<double> cgroup_cpus();          // the smallest quota, in cores
std::optional<std::int64_t> cgroup_memory();  // the smallest limit, in bytes
// The memory left to the group that is nearest to its limit, including file pages that can be
// dropped.
std::optional<std::int64_t> cgroup_memory_left();

// The number after a name in a file of lines "name number", such as /proc/meminfo.
std::optional<double> read_entry(const std::string& path, std::string_view name);

}  // namespace plait
