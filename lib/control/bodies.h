// Shared by the blocks of control flow: checks of operands, and dead-code elimination in bodies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control/primitives.h>
#include <plait/rules/prune.h>
#include <plait/transforms/bodies.h>

#include <algorithm>

namespace plait {

inline constexpr const char* runs_elsewhere =
    "it holds jaxprs, and runs by the kernels of lib/backends/control";

// Checks the operands of an equation that the library makes. User input is checked earlier, so a
// mismatch is a bug in plait, or wrong program text that was parsed.
void require_inputs(const char* name, std::span<const Aval> given, std::span<const Aval> wanted,
                    const Jaxpr& body);

inline Flags part(const Flags& flags, std::size_t begin, std::size_t end) {
  return {flags.begin() + std::ptrdiff_t(begin), flags.begin() + std::ptrdiff_t(end)};
}
inline std::size_t count(const Flags& flags) {
  return std::size_t(std::count(flags.begin(), flags.end(), true));
}
inline Flags none_of(const Jaxpr& body) { return Flags(std::size_t(body->num_binders), false); }

// Prunes a loop's body to the marked outputs, of which the first are its carries. A carry that is
// used marks the carries that it depends on. `inputs` marks inputs that are kept in any case.
std::shared_ptr<const PrunedJaxpr> prune_loop(const Jaxpr& body, Flags& outputs,
                                              std::size_t num_carry, Flags inputs);

// Marks the carries of a loop's body that get a tangent, among its inputs that have one, by
// fixed-point iteration. Returns the outputs whose zero tangents must be instantiated: those
// carries.
Flags mark_tangents(const Jaxpr& body, Flags& inputs, std::size_t num_carry, bool is_forward);

// Loop-invariant outputs of a loop's body, from first_output on: they depend only on its consts,
// the inputs after the first num_varying. They are computed once, in the current trace.
struct Invariants {
  Flags is_invariant;  // by output, from first_output on
  Arrays values;       // of the invariant ones, in order
};
Invariants eval_invariants(const Jaxpr& body, std::size_t num_varying, std::size_t first_output,
                           std::span<const Array> consts);

// Binds an equation of control flow whose examples diverge as one `lanes` equation. live, if valid,
// marks the examples that take part.
std::vector<Batched> bind_lanes(const Primitive& primitive, Dim size,
                                std::span<const Batched> inputs, const Params& params,
                                const Array& live = {});

// Vectorises a body of one example over num_rows examples: (live flags, inputs) -> outputs. batched
// marks the inputs that have a batch axis, as their first.
Jaxpr for_rows(const Jaxpr& body, const Flags& batched, Dim num_rows);

// Arrays of values with the batch axis moved to the front, and such arrays as values.
Arrays to_front(std::span<const Batched> values, Dim size);
std::vector<Batched> in_front(const Arrays& arrays);
// Selects by example: a where the flag is set, else b. The axes of flags are the first axes of
// both.
Array choose_examples(const Array& flags, const Array& a, const Array& b);
// The marked examples that are live.
Array live_and(const LiveExamples& examples, const Array& marks);
// Whether no value is a stack: kernels of lanes carry no stacks.
bool are_arrays(std::span<const Aval> avals);
// Whether an equation states that all examples run all of it.
bool selects(const Params& params);

// A scan with the parameters of another, over a function of slices that may capture arrays. The
// carries and xs fit the parameters.
flat::Scanned scan_like(const ScanParams& like, const Function& body, std::span<const Array> init,
                        std::span<const Array> xs, std::string_view name = "scan");
// A scan whose body runs several steps: unrolled, or under checkpoint.
flat::Scanned scan_in_chunks(const Function& body, std::span<const Array> init,
                             std::span<const Array> xs, std::int64_t length,
                             const flat::ScanOptions& options, std::string_view name);
// A while loop whose body may push to stacks. Returns the carry, then the stacks.
Arrays pushing_while(const Function& cond, const Function& body, std::span<const Array> init,
                     const flat::WhileOptions& options, std::string_view name);
// Linearizes a while loop with checkpoints. The tangents are those of the carry, instantiated where
// they become nonzero, and those of the body's consts.
Differentiated linearize_segmented(const WhileParams& loop, std::span<const Array> primals,
                                   const Tangents& carry_tangents, const Tangents& const_tangents,
                                   Trace* linear);
void require_checkpoints(std::optional<std::int64_t> checkpoints, std::string_view name);

// Where places go different ways along these axes: operands that vary along them, and the program
// for such. So no sum over places, in which some would take no part, is in its derivative.
Jaxpr differing(const Jaxpr& program, Arrays& operands, MeshAxes axes);

// Traces the body of a loop: a function of a carry and more inputs that returns the carry and more.
// A weak initial carry is converted to the type that it has in the loop. If types cannot agree, a
// DtypeError or ShapeError names the carry and both types.
Traced trace_carried(const Function& body, Arrays& carry, std::span<const Aval> more,
                     std::string_view name);

}  // namespace plait
