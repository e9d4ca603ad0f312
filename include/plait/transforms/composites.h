// Composites: functions made of primitives that keep a name, a symbol, which a backend may claim
// whole (softmax, layer_norm, attention, ...).
//
//   static const Composite& softmax_composite = define_composite({"softmax", "doc", body});
//   Array y = composite(softmax_composite, {x}, {{"axes", Shape{-1}}});
//
// A composite is one `composite` equation, whose parameters are its body as a jaxpr, its symbol and
// its attributes. Every transform rewrites the body. vmap puts the batch axis first and keeps the
// symbol, so attributes that are axes count from the end. linearize and transpose name their parts
// symbol.fwd, symbol.lin, symbol.lin.t. The body is traced once for the avals of the inputs; if the
// composite has a derivative of its own, that body is one custom_derivative.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/autocast.h>
#include <plait/trace/trace.h>

namespace plait {

struct Composite {
  using Body = std::function<Arrays(std::span<const Array> inputs, const Params& attributes)>;
  std::string symbol, doc;
  Body body;
  // Optional: (primals, tangents) -> (outputs, tangents), as flat lists. Stated where the
  // derivative of the body would be inexact or slow.
  Body jvp;
  Autocast::Rule autocast = Autocast::full;
  // Optional: inputs -> what a library's derivative reads beside inputs and outputs. See NOTE:
  // [derivatives that a library knows]. Empty results: none, for such inputs.
  Body statistics = {};
};

// Adds a composite to the registry permanently; a symbol is registered once.
const Composite& define_composite(Composite composite);
const Composite* find_composite(std::string_view symbol);  // nullptr when there is none

extern const Primitive composite_p;

// Applies a composite as one equation in the current trace.
Results composite(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes = {});
inline Results composite(const Composite& c, std::initializer_list<Array> inputs,
                         const Params& attributes = {}) {
  return composite(c, std::span<const Array>(inputs.begin(), inputs.size()), attributes);
}

// The parameters of that equation, and the attributes among them.
Params composite_params(const Composite& composite, std::span<const Aval> inputs,
                        const Params& attributes = {});
Params attributes_of(const Params& composite_params);

// The equation with f applied to each jaxpr that it holds. A composite is what its symbol says:
// with another body it is a call.
Equation map_bodies(const Equation& equation, const std::function<Jaxpr(const Jaxpr&)>& f);

}  // namespace plait
