// Axes of examples with names: psum(x, "i") inside vmap(f, axis_name="i") sums over the examples.
// Code that runs on one example sees the axes of the vmaps around it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

#include <string>
#include <string_view>
#include <vector>

namespace plait {

struct NamedAxis {
  std::string name;
  Dim size;
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
  friend Dim size_of_axis(std::string_view, std::string_view);
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

// The number of examples along an axis. ValueError, which names the function, outside of it.
Dim size_of_axis(std::string_view function, std::string_view name);

}  // namespace plait
