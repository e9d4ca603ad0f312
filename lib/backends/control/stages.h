// How a masked function is cut so that most of its work needs no padding.
//
// NOTE: [packed places] Much of what a function does to a sequence it does to each place of it
// separately: products with weights, normalisation, activations. Such equations need not know where
// an example ends. They run on all examples of a batch packed one after another along the size, as
// if these were one long example. What mixes places, attention and scans, runs on groups of
// examples of about the same sizes, see NOTE: [groups of sizes]. A function is thus a list of
// stages, packed and grouped in turn.
//
// An equation is packed, or is not, by what it is, and by nothing else in the function, if its
// result depends on it: the products and the sums over places. So a function and its derivative,
// apart or in one, still do the same sums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/masked.h>

namespace plait {

// The one axis of a value that is as long as a ragged size; its other axes are constant.
struct RaggedAxis {
  std::size_t name;  // of the size, among those of the masked equation
  int axis;
  bool operator==(const RaggedAxis&) const = default;
};

// What of a value of a stage goes where.
struct StageOutput {
  int var;                            // of the whole body; -1: a literal
  std::optional<std::size_t> result;  // of the whole body; none: for later stages
};

struct Stage {
  bool is_packed;
  Jaxpr body;
  std::vector<int> inputs;  // vars of the whole body
  std::vector<StageOutput> outputs;
};

// Vars are those of the whole body: the equation's, with the functions that it calls written out.
struct Stages {
  std::vector<Stage> stages;
  int num_binders = 0;                          // vars 0 .. num_binders-1 are operands
  std::vector<Aval> avals;                      // by var
  std::vector<std::optional<RaggedAxis>> axes;  // by var
  std::vector<bool> shared;                     // by var: the same for all examples
  std::vector<int> last_use;                    // by var: the last stage that reads it
};

// Products with fewer weights than least_weights are not worth a stage. A function without any
// worth it is one grouped stage.
Stages stages_of(const MaskedParams& masked, std::int64_t least_weights);

}  // namespace plait
