// What rules of primitives that hold jaxprs share: which tangents are zero, and programs made from
// other programs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ops_control.h>
#include <plait/transforms.h>

namespace plait {

using Flags = std::vector<bool>;

inline Arrays slice(std::span<const Array> arrays, std::size_t begin, std::size_t end) {
  return {arrays.begin() + std::ptrdiff_t(begin), arrays.begin() + std::ptrdiff_t(end)};
}

inline Flags nonzero(std::span<const Tangent> tangents) {
  Flags flags;
  for (const Tangent& tangent : tangents) flags.push_back(!tangent.is_zero());
  return flags;
}
inline Arrays nonzero_arrays(std::span<const Tangent> tangents) {
  Arrays arrays;
  for (const Tangent& tangent : tangents)
    if (!tangent.is_zero()) arrays.push_back(tangent.array());
  return arrays;
}
// Tangents of values of these avals: the arrays in order where marked, zero elsewhere.
inline Tangents spread(std::span<const Array> arrays, const Flags& flags,
                       std::span<const Aval> avals) {
  Tangents tangents;
  std::size_t next = 0;
  for (std::size_t i = 0; i < flags.size(); ++i)
    tangents.push_back(flags[i] ? Tangent(arrays[next++]) : Tangent(tangent_aval(avals[i])));
  return tangents;
}

// A result that depends on a jaxpr and a key, computed once.
template <class T, class Make>
std::shared_ptr<const T> memoised(const Jaxpr& jaxpr, const std::string& key, Make&& make) {
  return std::static_pointer_cast<const T>(jaxpr->memo.get(
      key, [&]() -> std::shared_ptr<const void> { return std::make_shared<T>(make()); }));
}
inline std::string text_of(const Flags& flags) {
  std::string text;
  for (bool flag : flags) text += flag ? '1' : '0';
  return text;
}

// Whether any carry became marked: marks those whose next value is.
inline bool widen(Flags& carry, const Flags& next, std::size_t num_carry) {
  bool changed = false;
  for (std::size_t i = 0; i < num_carry; ++i)
    if (next[i] && !carry[i]) carry[i] = changed = true;
  return changed;
}

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

// The same program for a second run, in which what it did must not happen again: without its
// effects, but with its results. MissingRuleError where a result is that of an effect.
Jaxpr without_effects(const Jaxpr& jaxpr);
Params without_effects(const Params& params);

// Which outputs depend on marked inputs.
Flags dependent_outputs(const Jaxpr& jaxpr, const Flags& inputs);

// Sizes as the body of an equation asks for them: made outside of it, whoever asks first.
SizeValues from_outside(const SizeValues& sizes);

// An equation of control flow whose examples go different ways, as one `lanes` equation. live, if
// valid: which of them take part.
std::vector<Batched> bind_lanes(const Primitive& primitive, Dim size,
                                std::span<const Batched> inputs, const Params& params,
                                const Array& live = {});

// A body of one example as a body of so many: (which of them take part, inputs) -> outputs, where
// batched marks those inputs that have a value for each example, along the first axis.
Jaxpr for_rows(const Jaxpr& body, const Flags& batched, Dim num_rows);

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
