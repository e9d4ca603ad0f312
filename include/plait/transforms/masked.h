// The `masked` equation, which mask makes: a function over named sizes applied to padded arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/lanes.h>

namespace plait {

extern const Primitive masked_p;

// The parameters of a masked equation, which applies a body of real shapes to padded arrays:
//
//   body      the jaxpr. Its last sizes are ragged: their values are the equation's first operands,
//             in order, int32 scalars. Its other sizes belong to the enclosing program
//   bounds    the padded size of each ragged size
//   sizes     values of the other sizes, in order
//   lanes     sizes of the lanes, outermost first; batched: for each lane, 1 for each operand that
//             has it; summed: for each lane, 1 for each output that is summed over its examples
//   checked   whether sizes outside their bounds are errors at run time
//   from_data whether the ragged sizes are sizes from data, which are within their bounds
struct MaskedParams {
  MaskedParams() = default;
  explicit MaskedParams(const Params& params);
  Params to_params() const;

  Jaxpr body;
  std::vector<Dim> ragged;  // the body's own names
  Shape bounds, sizes;
  std::vector<Lane> lanes;
  bool checked = true, from_data = false;

  std::size_t num_ragged() const { return bounds.size(); }
  // The body over the enclosing program's sizes; and the names of its ragged sizes there, with
  // their bounds.
  Jaxpr open_body() const;
  std::vector<std::pair<Dim, Dim>> open_bounds() const;
  // The padded aval of a value of the body, without lanes.
  Aval padded(const Aval& real) const;
  // Whether an output is summed over the examples of a lane.
  bool sums(std::size_t output) const {
    return std::any_of(lanes.begin(), lanes.end(),
                       [&](const Lane& lane) { return lane.sums(output); });
  }

 private:
  std::vector<std::pair<Dim, Dim>> opening() const;  // from the body's sizes to those of open_body
};

// What it decomposes to: the program of one example with a batch axis for each lane.
Jaxpr padded_program(const MaskedParams& masked);

// The program of one example on padded arrays. The padding of results is zero, or, where they are
// not summed, whatever was computed there.
enum class Padding { zero, unread };
Jaxpr program_of_example(const MaskedParams& masked, Padding padding);
// A program of one example with a batch axis for each lane.
Jaxpr with_lanes(Jaxpr program, std::span<const Lane> lanes);

}  // namespace plait
