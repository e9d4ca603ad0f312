// Axes of meshes. See mesh_axes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/ir/mesh_axes.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>
#include <span>

namespace plait {
namespace {

// Filled in order; an axis stays where it is, so those that there are already are read without the
// lock.
struct Registry {
  std::mutex mutex;
  std::array<MeshAxis, 32> axes;
  std::atomic<std::size_t> count = 0;
  std::span<const MeshAxis> known() const { return {axes.data(), count.load()}; }
};
constinit std::atomic<bool> is_used = false;

Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

}  // namespace

std::string MeshAxis::to_string() const {
  return name + ":" + std::to_string(size) + (stride == 1 ? "" : "@" + std::to_string(stride));
}

MeshAxis MeshAxis::from_string(std::string_view text) {
  const std::size_t colon = text.rfind(':'), at = text.find('@', std::min(colon, text.size()));
  MeshAxis axis{std::string(text.substr(0, colon))};
  const auto read = [&](std::size_t begin, std::size_t end, std::int64_t& number) {
    end = std::min(end, text.size());
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    return error == std::errc() && stop == text.data() + end && number >= 1;
  };
  if (colon == text.npos || axis.name.empty() || !read(colon + 1, at, axis.size) ||
      (at != text.npos && !read(at + 1, text.size(), axis.stride)))
    throw ValueError("'" + std::string(text) + "' is no axis of a mesh",
                     "write its name and size, such as x:4, and @ its stride");
  return axis;
}

bool MeshAxes::are_used() { return is_used.load(std::memory_order_relaxed); }

MeshAxes::MeshAxes(const MeshAxis& axis) {
  Registry& all = registry();
  const auto find = [&]() -> std::optional<std::size_t> {
    const std::span<const MeshAxis> known = all.known();
    const auto place = std::ranges::find(known, axis);
    if (place == known.end()) return {};
    return std::size_t(place - known.begin());
  };
  std::optional<std::size_t> found = find();
  if (!found) {
    const std::lock_guard lock(all.mutex);
    found = find();  // another thread may have named it
    if (!found) {
      const std::size_t count = all.count;
      if (count == all.axes.size())
        throw ValueError(
            "a mesh: this process has named " + std::to_string(count) + " axes of meshes already",
            "use the same names and sizes in several meshes");
      all.axes[count] = axis;
      all.count = count + 1;
      is_used = true;
      found = count;
    }
  }
  bits_ = std::uint32_t(1) << *found;
}

std::vector<MeshAxis> MeshAxes::axes() const {
  const std::span<const MeshAxis> known = registry().known();
  std::vector<MeshAxis> result;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (bits_ >> i & 1) result.push_back(known[i]);
  // As in their mesh, whatever this process has named before: sums are taken in this order.
  std::ranges::sort(result, [](const MeshAxis& a, const MeshAxis& b) {
    return a.stride != b.stride ? a.stride > b.stride : a.name < b.name;
  });
  return result;
}

std::int64_t MeshAxes::num_places() const {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes()) product *= axis.size;
  return product;
}

std::string MeshAxes::to_string() const {
  std::string text;
  for (const MeshAxis& axis : axes()) text += (text.empty() ? "" : ",") + axis.to_string();
  return text;
}

}  // namespace plait
