// The rule kind Separate: whether an equation treats the places along an axis separately: its
// result for each of them is made from what its operands hold there alone, and does not depend on
// where it is. Several examples may then lie one after another along that axis, and run as one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>
#include <plait/ir/primitive.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

namespace plait {

struct Separate {
  static constexpr auto name = "separate";
  // An equation, and where each value has the axis. An operand without it is the same for all
  // places; a result without it is a sum over the places.
  struct Along {
    std::span<const Aval> inputs, outputs;
    std::span<const std::optional<int>> from, to;
  };
  // At least one result or operand has the axis. No other axis of them is as long.
  using Rule = std::function<bool(const Along& along, const Params& params)>;
  static RuleTable<Separate>& table();
};

namespace separate {
// Wherever the results have the axis.
inline bool always(const Separate::Along&, const Params&) { return true; }
// Along every axis but the one of the parameter `axis`.
bool beside_axis(const Separate::Along& along, const Params& params);
}  // namespace separate

}  // namespace plait
