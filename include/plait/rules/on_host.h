// The rule kind OnHost: primitives whose Eval rule runs on the host, whatever device their program
// runs on, because they belong to the host: functions of the user's, errors, handles of stacks. A
// program waits there for its device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

struct OnHost {
  static constexpr auto name = "on_host";
  using Rule = std::string_view;  // why, for people
  static RuleTable<OnHost>& table();
};

}  // namespace plait
