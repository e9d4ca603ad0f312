// The rule kind Share: results that lie in the memory of the operand, where Alias cannot say so:
// their dtype is another, or they are several.
//
// Eager calls give views of that memory in place of copies, as NumPy does. Programs compute the
// results: there the copy is part of what reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait {

struct Share {
  static constexpr auto name = "share";
  // Where each result lies, for results of these shapes.
  using Rule = std::function<std::vector<View>(const View& input, std::span<const Sizes64> shapes,
                                               const Params& params)>;
  static RuleTable<Share>& table();
};

}  // namespace plait
