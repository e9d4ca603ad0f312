// The laws that every primitive must obey. A law is a function from a case to what is wrong, so
// that tests can also run it on mutants: primitives with one wrong rule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/inspect/samples.h>
#include <plait/plait.h>

namespace plait::laws {

using Verdict = std::optional<std::string>;  // nothing, or what is wrong

struct Law {
  std::string_view name;
  Verdict (*check)(const Case& one);
};

// --- Derivatives (derivative_laws.cpp) -----------------------------------------------------------

// jvp is the limit of differences.
Verdict jvp_is_difference(const Case& one);
// <J v, w> = <v, J' w>, for every input alone and all together, every output alone and all
// together.
Verdict vjp_is_adjoint(const Case& one);
// jvp of vjp is the limit of differences of vjp.
Verdict second_derivative_is_difference(const Case& one);
// Where the primitive is linear in some inputs, its Transpose rule gives its adjoint.
Verdict transpose_is_adjoint(const Case& one);

// --- Batches (batch_laws.cpp) --------------------------------------------------------------------

// vmap f is the stack of f, for every axis of every input and every choice of mapped inputs.
Verdict vmap_is_stack(const Case& one);
// vmap of the gradient, and the gradient of vmap, are the stack of gradients; for a shared input
// the latter is their sum.
Verdict gradient_of_vmap_is_stack(const Case& one);
// What has an effect happens for the examples that take a branch or a step, once each.
Verdict effects_are_of_live_examples(const Case& one);

// --- Running (run_laws.cpp) ----------------------------------------------------------------------

// jit f = f, compiled f = f, and jit of the gradient = the gradient, to the bit.
Verdict jit_is_eager(const Case& one);
// The Eval rule is what the primitive decomposes to, and a composite what its body gives.
Verdict eval_is_decomposition(const Case& one);
// Why there is nothing for that law to compare: nothing where there is.
std::optional<std::string> has_no_decomposition(const Case& one);
// Applying the primitive is running its Eval rule, whatever the strides of its inputs: identities,
// aliases and loops change nothing. To the bit, but where a library computes in another order.
Verdict bind_is_eval(const Case& one);
// Folding literals gives what the kernel gives, to the bit.
Verdict fold_is_eval(const Case& one);
// Other dtypes give what float64 gives.
Verdict dtypes_agree(const Case& one);
// Where the primitive commutes, its operands may change places, to the bit.
Verdict operands_commute(const Case& one);
// What is put into a view is what it shows then, and nothing else changes, to the bit.
Verdict put_is_shown(const Case& one);
Verdict accumulate_is_transpose(const Case& one);

// --- Programs (program_laws.cpp) -----------------------------------------------------------------

// The programs that transforms make of a case, by the name of the transform.
std::vector<std::pair<std::string, Jaxpr>> transformed(const Case& one);
// check() accepts them all.
Verdict programs_check(const Case& one);
// parse(print(j)) == j for them all.
Verdict text_is_exact(const Case& one);
// Results, tangents, batched results and decompositions have the avals that Abstract says.
Verdict abstract_is_true(const Case& one);

// What weak numbers alone give is weak, what a strong one is among is strong, and transforms of it
// are well-formed.
Verdict weakness_is_kept(const Case& one);

// --- Sizes (size_laws.cpp) -----------------------------------------------------------------------

// A way to write a case with a named size: those avals and parameters, at n = extent.
struct Renaming {
  std::vector<Aval> avals;
  Params params;
  std::vector<std::pair<Dim, Dim>> extents;
};
std::vector<Renaming> renamings_of(const Case& one);
// Instantiating a program of named sizes is tracing at those sizes, as text.
Verdict instantiate_is_trace(const Case& one);
// mask f (pad x) = f x, in values and gradients, whatever the padding holds.
Verdict mask_ignores_padding(const Case& one);
// What laws of masks share: a padded result has the expected real part, and zeros elsewhere;
// whether a case can be differentiated; the tolerance of its results; its text.
Verdict real_part_and_zeros(const Array& padded, const Array& expected, const std::string& what,
                            double tolerance);
bool is_differentiated(const Case& one);
double tolerance_of_case(const Arrays& values, const Arrays& expected);
std::string text_of(const Renaming& renaming);

// --- Ragged batches (ragged_laws.cpp) ------------------------------------------------------------

// vmap (mask f) is a loop over examples of different sizes, from 0 to their bounds, in values and
// gradients; its jit is traced once for all of them.
Verdict ragged_batch_is_loop(const Case& one);
// vmap in chunks is vmap.
Verdict chunks_are_vmap(const Case& one);

// --- The tape (tape_laws.cpp) --------------------------------------------------------------------

// backward gives what vjp gives, to the bit.
Verdict tape_is_vjp(const Case& one);
// The derivative of a recorded gradient is that of vjp.
Verdict recorded_gradient_is_vjp(const Case& one);

// --- Backends (backend_claims.cpp) ---------------------------------------------------------------

// Whether a backend takes the case: its primitive, or the composite that it is named after.
Support accepts(const Backend& backend, const Case& one);
// The library, no reference and no generated loops, that runs the case outside programs, if any.
const Backend* library_of(const Case& one);
// Results that must be the same to the bit, but of a composite that a library computes whole: what
// transforms make of it is its body's.
Verdict difference_in_results(const Case& one, const Arrays& actual, const Arrays& expected);

// --- All of them ---------------------------------------------------------------------------------

extern const std::vector<Law> all_laws;
const Law& law_named(std::string_view name);

// What a law finds wrong with a primitive, in any of its cases; an Error thrown is a violation too.
Verdict violation(const Law& law, const Primitive& primitive);
std::vector<std::string> violations(const Law& law, const Primitive& primitive);

// Where a law does not hold by design, and why: nothing when it must hold.
std::optional<std::string> reasoned_exception(const Law& law, const Primitive& primitive);

}  // namespace plait::laws
