// The rule kind Collect: what an equation over a named axis is when vmap gives that axis its
// examples. psum sums over the batch dimension, axis_index is 0, 1, 2, ...
//
// Such equations name their axis in the parameter "axis". An equation that holds bodies is over the
// axes of theirs. vmap of that name processes them all, those without batched inputs too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/diverge.h>

#include <memory>
#include <string>

namespace plait {

struct Collect {
  static constexpr auto name = "collect";
  using Rule = std::function<std::vector<Batched>(Dim size, std::span<const Batched> inputs,
                                                  const Params& params)>;
  static RuleTable<Collect>& table();
};

bool is_over_axis(const Primitive& primitive, const Params& params, const std::string& axis);
bool is_over_axis(const Jaxpr& program, const std::string& axis);

// Rules of Batch run in it: batch_jaxpr gives the axis that vmap batches over this name, or none.
class BatchedAxis {
 public:
  explicit BatchedAxis(const std::string& name);  // which outlives it
  explicit BatchedAxis(std::string&&) = delete;
  ~BatchedAxis();
  BatchedAxis(const BatchedAxis&) = delete;
  static const std::string& current();  // "" without a name

 private:
  const std::string* const outer_;
};

// The examples of vmap over the current named axis, for equations whose examples go different ways:
// since their bodies communicate, all take part in all of it. The same where these parameters hold
// bodies in which places of a mesh communicate. Null else.
std::unique_ptr<LiveExamples> communicating_examples(Dim size, const Params& params);

}  // namespace plait
