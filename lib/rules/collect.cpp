// See rules/collect.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>
#include <plait/rules/collect.h>

#include <set>
#include <utility>

namespace plait {
namespace {

const std::string& no_name = *new const std::string;
thread_local const std::string* current_axis = nullptr;

std::set<std::string> axes_of(const Jaxpr& program) {
  struct NamedAxesOf {
    using Result = std::set<std::string>;
    bool operator==(const NamedAxesOf&) const = default;
  };
  return *program->memo.get(NamedAxesOf{}, [&] {
    std::set<std::string> axes;
    for (const Equation& equation : program->equations) {
      if (Collect::table().find(*equation.primitive))
        axes.insert(equation.params.get<std::string>("axis"));
      for_each_body(equation.params, [&](const Jaxpr& body) { axes.merge(axes_of(body)); });
    }
    return axes;
  });
}

}  // namespace

PLAIT_RULE_TABLE(Collect)

bool is_over_axis(const Primitive& primitive, const Params& params, const std::string& axis) {
  if (Collect::table().find(primitive)) return params.get<std::string>("axis") == axis;
  bool is_over = false;
  for_each_body(params, [&](const Jaxpr& body) { is_over |= is_over_axis(body, axis); });
  return is_over;
}
bool is_over_axis(const Jaxpr& program, const std::string& axis) {
  return axes_of(program).count(axis) > 0;
}

BatchedAxis::BatchedAxis(const std::string& name) : outer_(std::exchange(current_axis, &name)) {}
BatchedAxis::~BatchedAxis() { current_axis = outer_; }
const std::string& BatchedAxis::current() { return current_axis ? *current_axis : no_name; }

}  // namespace plait
