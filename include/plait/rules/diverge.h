// The rule kind Diverge: equations that hold jaxprs, and whose examples may go different ways under
// vmap. It says when kernels run such an equation for the examples that need it alone, and what the
// equation is where they do not: all examples take part in all of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/bodies.h>
#include <plait/rules/rules.h>

namespace plait {

// The examples of a batch, of which some are live: nobody reads what the others compute.
struct LiveExamples {
  Dim size;
  Array live;     // bool[size]; none: all of them
  bool together;  // whether all examples take part where they go different ways

  explicit LiveExamples(Dim num_examples, Array live_ones = {}, bool all_together = false)
      : size(num_examples), live(std::move(live_ones)), together(all_together) {}
  virtual ~LiveExamples() = default;
  // What a body of one example gives for these; and where only the marked ones are live, together.
  virtual std::vector<Batched> run(const Jaxpr& body, std::span<const Batched> inputs) const = 0;
  virtual std::vector<Batched> run_marked(const Array& marks, const Jaxpr& body,
                                          std::span<const Batched> inputs) const = 0;
};

struct Diverge {
  static constexpr auto name = "diverge";
  struct Rule {
    // The equation for all examples at once.
    std::function<std::vector<Batched>(const LiveExamples& examples,
                                       std::span<const Batched> inputs, const Params& params)>
        batch;
    // Whether kernels can and shall run it for the examples that need it, where the marked operands
    // have one for each example; none: never.
    std::function<bool(const Params& params, const Flags& batched)> diverges = {};
    // Whether all of it for every example costs little more than finding out who needs what; none:
    // never.
    std::function<bool(const Params& params)> is_cheap_together = {};
  };
  static RuleTable<Diverge>& table();
};

// What the rule of an equation says; false where it has none.
bool diverges(const Equation& equation, const Flags& batched);
bool is_cheap_together(const Equation& equation);

}  // namespace plait
