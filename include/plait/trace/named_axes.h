// Axes with names: psum(x, "i") inside vmap(f, axis_name="i") sums over the examples, and inside
// shard_map over the places of a mesh along its axis "i". Code that runs on one example, or in one
// place, sees the axes around it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>
#include <plait/ir/mesh_axes.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

struct NamedAxis {
  std::string name;
  Dim size;
  std::optional<MeshAxis> of_mesh = {};  // where it is an axis of a mesh
  // Whether types say there what varies; otherwise all that code inside makes of what varies does.
  bool is_checked = true;
  bool operator==(const NamedAxis&) const = default;
};

// While it lives, code of this thread is inside an axis, which hides an outer one of that name.
class NamedAxisScope {
 public:
  explicit NamedAxisScope(const NamedAxis& axis);
  ~NamedAxisScope();
  NamedAxisScope(const NamedAxisScope&) = delete;

 private:
  friend struct NamedAxes;
  friend const NamedAxis& named_axis(std::string_view, std::string_view);
  const NamedAxis& axis_;
  const NamedAxisScope* const outer_;
};

// The axes that this thread is inside of, the innermost first. What is traced there is traced for
// them.
struct NamedAxes {
  std::vector<NamedAxis> axes;
  static NamedAxes current();
  bool are_current() const;
};

// The innermost axis of this name, and the number of examples or places along it. ValueError, which
// names the function, outside of it.
const NamedAxis& named_axis(std::string_view function, std::string_view name);
Dim size_of_axis(std::string_view function, std::string_view name);

}  // namespace plait
