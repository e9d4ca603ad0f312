// The first pass of compilation: the same program with fewer and plainer equations. See
// simplify.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules.h>

namespace plait::compile_passes {

// Whether an equation that holds a body stays whole, because a backend claims it.
using KeepWhole = std::function<bool(const Equation&, std::span<const Aval> inputs,
                                     std::span<const Aval> outputs)>;

// Calls inlined, primitives without kernels decomposed, common subexpressions merged, dead
// equations dropped, those of loops and branches too, scalars folded, rewrite rows applied. Every
// result has the same bits as before.
Jaxpr simplify_program(const Jaxpr& program, const KeepWhole& keep);

// An equation about to be added, and what it can see of those before it.
struct Candidate {
  const Primitive& primitive;
  std::span<const Atom> inputs;
  const Params& params;
  std::span<const Aval> avals;                             // of the inputs
  std::function<const Equation*(const Atom&)> definition;  // nullptr: a binder or a literal
  std::function<Aval(const Atom&)> aval;
};
// What to put in its place: another equation, or an atom that is there already.
struct Replacement {
  const Primitive* primitive = nullptr;
  std::vector<Atom> inputs;
  Params params;
  std::optional<Atom> atom;
  std::optional<Shape> splat_to =
      {};  // the result of the equation, a scalar, is broadcast to this shape
};
// One bit-exact law. The result may be rewritten again.
struct Row {
  const char* law;
  std::optional<Replacement> (*apply)(const Candidate&);
};
std::span<const Row> rewrite_rows();

}  // namespace plait::compile_passes
