// The rule kind PictureGroup: the kind of work by which pictures colour an equation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

struct PictureGroup {
  static constexpr auto name = "group";
  using Rule = std::string_view;  // one of these
  static constexpr Rule product = "product", elementwise = "elementwise", reduction = "reduction",
                        movement = "movement", control = "control", effect = "effect",
                        other = "other";  // the default without a rule
  static RuleTable<PictureGroup>& table();
};

}  // namespace plait
