// See rules/motion.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/motion.h>

namespace plait {

bool moves_as(const Primitive& primitive, Motion::Rule rule) {
  const Motion::Rule* found = Motion::table().find(primitive);
  return found && *found == rule;
}

bool may_move(const Primitive& primitive) { return Motion::table().find(primitive) != nullptr; }

}  // namespace plait
