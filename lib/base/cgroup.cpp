// Reads control group limits. A limit may be set on any ancestor of the group of the process, and
// inside a container the path that the kernel names may not be mounted. So every folder from the
// group up to the mount point is read; one that cannot be read sets no limit.
// SPDX-License-Identifier: Apache-2.0
#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace plait {
namespace {

// The folders of the control group of controller ("" is version 2), innermost first.
std::vector<std::string> group_folders(std::string_view controller) {
  std::ifstream groups("/proc/self/cgroup");  // lines "4:memory:/path"; version 2 is "0::/path"
  std::string line;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find("," + std::string(controller) + ",") == std::string::npos) continue;
    const std::string root =
        "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + std::string(controller));
    std::string path = line.substr(second + 1);
    std::vector<std::string> folders;
    while (path.size() > 1) {
      folders.push_back(root + path);
      path.erase(path.find_last_of('/'));
    }
    folders.push_back(root);
    return folders;
  }
  return {};
}

// The first two words of a file as numbers; nullopt for "max" and for what cannot be read.
std::vector<double> read_numbers(const std::string& path) {
  std::ifstream file(path);
  std::vector<double> numbers;
  for (double number; numbers.size() < 2 && file >> number;) numbers.push_back(number);
  return numbers;
}

constexpr double no_limit = 1LL << 60;  // version 1 says "none" by a number near 2^63

template <class T>
void keep_smaller(std::optional<T>& limit, T candidate) {
  limit = limit ? std::min(*limit, candidate) : candidate;
}

}  // namespace

std::optional<double> read_entry(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  double number = 0;
  for (std::string word, line; file >> word; std::getline(file, line))
    if (word == name && file >> number) return number;
  return std::nullopt;
}

std::optional<double> cgroup_cpus() {
  std::optional<double> limit;
  for (const std::string& folder : group_folders(""))
    if (const auto quota = read_numbers(folder + "/cpu.max"); quota.size() == 2 && quota[1] > 0)
      keep_smaller(limit, quota[0] / quota[1]);
  for (const std::string& folder : group_folders("cpu")) {
    const auto quota = read_numbers(folder + "/cpu.cfs_quota_us");  // -1 sets no limit
    const auto period = read_numbers(folder + "/cpu.cfs_period_us");
    if (!quota.empty() && !period.empty() && quota[0] > 0 && period[0] > 0)
      keep_smaller(limit, quota[0] / period[0]);
  }
  return limit;
}

std::optional<std::int64_t> cgroup_memory_left() {
  std::optional<std::int64_t> least;
  for (const auto& [controller, limit_file, use_file] :
       {std::tuple{"", "/memory.max", "/memory.current"},
        std::tuple{"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes"}})
    for (const std::string& folder : group_folders(controller)) {
      const auto limit = read_numbers(folder + limit_file);
      if (limit.empty() || limit[0] >= no_limit) continue;
      const auto use = read_numbers(folder + use_file);
      if (use.empty()) continue;
      // Cached files can be dropped, but those in use are costly to read again, so half of them
      // count.
      const std::string stat = folder + "/memory.stat";
      const double files = read_entry(stat, "inactive_file").value_or(0) +
                           read_entry(stat, "active_file").value_or(0) / 2;
      keep_smaller(least, static_cast<std::int64_t>(limit[0] - use[0] + files));
    }
  return least;
}

std::optional<std::int64_t> cgroup_memory() {
  std::optional<std::int64_t> limit;
  for (const auto& [controller, file] :
       {std::pair{"", "/memory.max"}, std::pair{"memory", "/memory.limit_in_bytes"}})
    for (const std::string& folder : group_folders(controller))
      if (const auto bytes = read_numbers(folder + file); !bytes.empty() && bytes[0] < no_limit)
        keep_smaller(limit, static_cast<std::int64_t>(bytes[0]));
  return limit;
}

}  // namespace plait
