// The limits that control groups (containers, batch systems) set on this process, versions 1 and 2.
//
// The machine's cores and memory are not what a container may use: the pool and the allocator ask
// here first, once each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

std::optional<double> cgroup_cpus();          // the smallest quota, in cores
std::optional<std::int64_t> cgroup_memory();  // the smallest limit, in bytes
// What the group that is nearest to its limit may still take, pages of files that can be dropped
// included.
std::optional<std::int64_t> cgroup_memory_left();

// The number behind a name in a file of lines "name number", such as /proc/meminfo.
std::optional<double> read_entry(const std::string& path, std::string_view name);

}  // namespace plait
