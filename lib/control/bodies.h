// What the blocks of control flow share: checks of operands, and dead code in bodies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control/primitives.h>
#include <plait/rules/prune.h>
#include <plait/transforms/bodies.h>

#include <algorithm>

namespace plait {

inline constexpr const char* runs_elsewhere =
    "it holds jaxprs, and runs by the kernels of lib/backends/control";

// The library makes these equations, and checks what users give it before: what does not fit here
// is our bug, or a wrong text that was parsed.
void require_inputs(const char* name, std::span<const Aval> given, std::span<const Aval> wanted,
                    const Jaxpr& body);

inline Flags part(const Flags& flags, std::size_t begin, std::size_t end) {
  return {flags.begin() + std::ptrdiff_t(begin), flags.begin() + std::ptrdiff_t(end)};
}
inline std::size_t count(const Flags& flags) {
  return std::size_t(std::count(flags.begin(), flags.end(), true));
}
inline Flags none_of(const Jaxpr& body) { return Flags(std::size_t(body->num_binders), false); }

// A loop's body with the marked outputs, of which the first are its carries. A carry that is needed
// makes those needed that it depends on. Further inputs may be marked as needed in any case.
std::shared_ptr<const PrunedJaxpr> prune_loop(const Jaxpr& body, Flags& outputs,
                                              std::size_t num_carry, Flags inputs);

// Marks the carries of a loop's body that get a tangent, among its inputs that have one, until
// nothing changes. The result says for which outputs zeros must be made explicit: those carries.
Flags mark_tangents(const Jaxpr& body, Flags& inputs, std::size_t num_carry, bool is_forward);

// Outputs of a loop's body, from first_output on, that depend on its constants alone: what follows
// the first num_varying inputs. They are computed once, in the current trace.
struct Invariants {
  Flags is_invariant;  // by output, from first_output on
  Arrays values;       // of those that are, in order
};
Invariants eval_invariants(const Jaxpr& body, std::size_t num_varying, std::size_t first_output,
                           std::span<const Array> consts);

// An equation of control flow whose examples go different ways, as one `lanes` equation. live, if
// valid: which of them take part.
std::vector<Batched> bind_lanes(const Primitive& primitive, Dim size,
                                std::span<const Batched> inputs, const Params& params,
                                const Array& live = {});

// A body of one example as a body of so many: (which of them take part, inputs) -> outputs, where
// batched marks those inputs that have a value for each example, along the first axis.
Jaxpr for_rows(const Jaxpr& body, const Flags& batched, Dim num_rows);

// Values of examples with their axis in front, and back.
Arrays to_front(std::span<const Batched> values, Dim size);
std::vector<Batched> in_front(const Arrays& arrays);
// By example: a where the flag is set, else b. Flags of several lanes are of the first axes.
Array choose_examples(const Array& flags, const Array& a, const Array& b);
// The marked examples among those that are live.
Array live_and(const LiveExamples& examples, const Array& marks);
// Whether all values are arrays: kernels of lanes carry no stacks.
bool are_arrays(std::span<const Aval> avals);
// Whether an equation states that all examples take part in all of it.
bool selects(const Params& params);

// A scan like another one, of a function that takes slices and may capture arrays; carries and xs
// are given, and fit it.
flat::Scanned scan_like(const ScanParams& like, const Function& body, std::span<const Array> init,
                        std::span<const Array> xs, std::string_view name = "scan");
// A scan whose body is several steps, unrolled or under checkpoint.
flat::Scanned scan_in_pieces(const Function& body, std::span<const Array> init,
                             std::span<const Array> xs, std::int64_t length,
                             const flat::ScanOptions& options, std::string_view name);
// A while loop that may push: the carry, then stacks.
Arrays pushing_while(const Function& cond, const Function& body, std::span<const Array> init,
                     const flat::WhileOptions& options, std::string_view name);
// Linearizes a while loop with checkpoints. Tangents are those of the carry, made explicit where
// they become nonzero, and of the body's constants.
Differentiated linearize_segmented(const WhileParams& loop, std::span<const Array> primals,
                                   const Tangents& carry_tangents, const Tangents& const_tangents,
                                   Trace* linear);
void require_checkpoints(std::optional<std::int64_t> checkpoints, std::string_view name);

// Traces the body of a loop: a function of a carry and more inputs, that returns the carry and
// more. A carry that is weak, or becomes strong, is converted before; where types cannot agree, a
// DtypeError or ShapeError names the carry and both.
Traced trace_carried(const Function& body, Arrays& carry, std::span<const Aval> more,
                     std::string_view name);

}  // namespace plait
