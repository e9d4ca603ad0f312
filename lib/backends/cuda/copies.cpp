// See copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

#include <plait/base/error.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "driver.h"
#include "modules.h"
#include "work.h"

namespace plait::cuda {
namespace {

constexpr unsigned threads = 256;

// A dimension of both arrays; strides in elements.
struct Dim {
  std::int64_t size, from, to;
};

// The dimensions, outermost in the target first, where neighbours that are one in both arrays are
// merged: as few as can be.
std::vector<Dim> merged_dims(const View& from, const View& to) {
  std::vector<Dim> all, merged;
  for (std::size_t i = 0; i < from.shape.size(); ++i)
    if (from.shape[i] != 1) all.push_back({from.shape[i], from.strides[i], to.strides[i]});
  std::stable_sort(all.begin(), all.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.to) > std::abs(b.to); });
  for (const Dim& dim : all) {
    if (!merged.empty() && merged.back().from == dim.from * dim.size &&
        merged.back().to == dim.to * dim.size)
      merged.back() = {merged.back().size * dim.size, dim.from, dim.to};
    else
      merged.push_back(dim);
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

// Loaded when the device first needs it, for the life of the process.
CUfunction kernel_of(Device device, std::size_t bytes, bool is_wide) {
  struct Known {
    SharedModule module;
    CUfunction function = nullptr;
  };
  using All = std::map<std::tuple<int, std::size_t, bool>, Known>;
  static std::mutex& mutex = *new std::mutex;
  static All& all = *new All;
  Known* known = nullptr;
  {
    const std::lock_guard lock(mutex);
    const std::tuple key(int(device.index), bytes, is_wide);
    const auto found = all.find(key);
    known = found != all.end()
                ? &found->second
                : &all.emplace(key, Known{SharedModule(device, text_of_copy(bytes, is_wide))})
                       .first->second;
    if (known->function) return known->function;
  }
  const CUfunction function = known->module.get().function("copy");
  const std::lock_guard lock(mutex);
  return known->function = function;
}

struct Copy {
  Device device;
  CUstream stream;
  std::size_t bytes;  // of an element

  // By one kernel.
  void run(char* from, char* to, const Dim* dims, std::size_t rank) const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) count *= dims[i].size;
    const bool is_wide = count >= std::int64_t{1} << 31;
    std::array<std::uint64_t, 4 + 3 * most_copied_dims> values{value_of(from), value_of(to),
                                                               std::uint64_t(count), rank};
    for (std::size_t i = 0; i < rank; ++i) {
      values[4 + i] = std::uint64_t(dims[i].size);
      values[4 + most_copied_dims + i] = std::uint64_t(dims[i].from);
      values[4 + 2 * most_copied_dims + i] = std::uint64_t(dims[i].to);
    }
    const std::int64_t most =
        8 * std::int64_t{attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
    const auto blocks = unsigned(std::min((count + threads - 1) / threads, most));
    check(launch(stream, kernel_of(device, bytes, is_wide), {.blocks = blocks, .threads = threads},
                 values),
          "start a copy");
  }

  // More dimensions than a kernel has are loops here, outermost first.
  void run_loops(char* from, char* to, const Dim* dims, std::size_t rank) const {
    if (rank <= most_copied_dims) return run(from, to, dims, rank);
    for (std::int64_t i = 0; i < dims->size; ++i)
      run_loops(from + i * dims->from * std::int64_t(bytes),
                to + i * dims->to * std::int64_t(bytes), dims + 1, rank - 1);
  }
};

}  // namespace

bool are_one_run(const View& from, const View& to) {
  const std::vector<Dim> dims = merged_dims(from, to);
  return dims.size() == 1 && (dims[0].size == 1 || (dims[0].from == 1 && dims[0].to == 1));
}

void copy_strided(Device device, CUstream stream, const View& from, const View& to) {
  const std::vector<Dim> dims = merged_dims(from, to);
  const Copy copy{device, stream, std::size_t(size_of(from.dtype))};
  copy.run_loops(from.as<char>(), to.as<char>(), dims.data(), dims.size());
}

}  // namespace plait::cuda
