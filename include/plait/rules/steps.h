// The rule kind Steps: the bodies that an equation runs on given values, one run after the other,
// for who looks into them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>
#include <plait/trace/array.h>

namespace plait {

struct Steps {
  static constexpr auto name = "steps";
  struct Run {
    Jaxpr body;
    Arrays inputs;
    std::string holder;      // what runs it: "scan", "vmap", the name of a function
    std::string where = {};  // which of its runs it is: "step 3", "branch 1"; empty: the only one
  };
  using Visit = std::function<Arrays(const Run& run)>;  // gives the outputs of a run
  // Of what runs for many examples, only that one which computes an element of the results.
  using Rule = std::function<void(std::span<const Array> inputs, const Params& params,
                                  std::span<const std::int64_t> element, const Visit& visit)>;
  static RuleTable<Steps>& table();
};

}  // namespace plait
