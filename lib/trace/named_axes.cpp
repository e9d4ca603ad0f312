// See named_axes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/trace/named_axes.h>

#include <utility>

namespace plait {
namespace {
thread_local const NamedAxisScope* innermost = nullptr;
}

NamedAxisScope::NamedAxisScope(const NamedAxis& axis)
    : axis_(axis), outer_(std::exchange(innermost, this)) {}
NamedAxisScope::~NamedAxisScope() { innermost = outer_; }

NamedAxes NamedAxes::current() {
  NamedAxes result;
  for (const NamedAxisScope* scope = innermost; scope; scope = scope->outer_)
    result.axes.push_back(scope->axis_);
  return result;
}

bool NamedAxes::are_current() const {
  const NamedAxisScope* scope = innermost;
  for (const NamedAxis& axis : axes) {
    if (!scope || !(scope->axis_ == axis)) return false;
    scope = scope->outer_;
  }
  return scope == nullptr;
}

const NamedAxis& named_axis(std::string_view function, std::string_view name) {
  std::string others;
  for (const NamedAxisScope* scope = innermost; scope; scope = scope->outer_) {
    if (scope->axis_.name == name) return scope->axis_;
    others += (others.empty() ? "; the axes here are '" : ", '") + scope->axis_.name + "'";
  }
  throw ValueError(std::string(function) + ": the axis name '" + std::string(name) +
                       "' is unbound here" + others,
                   "call it inside vmap(..., axis_name='" + std::string(name) +
                       "'), or inside shard_map over a mesh with that axis");
}

Dim size_of_axis(std::string_view function, std::string_view name) {
  return named_axis(function, name).size;
}

}  // namespace plait
