// Composites: functions made of primitives that keep a name, a symbol, which a backend may claim
// whole (softmax, layer_norm, attention, ...).
//
//   static const Composite& softmax_composite = define_composite({"softmax", "doc", body});
//   Array y = composite(softmax_composite, {x}, {{"axes", Shape{-1}}});
//
// A composite is a call equation whose parameters are its body as a jaxpr, its symbol and its
// attributes. It has no rules: every transform rewrites the body. vmap puts the batch axis first
// and keeps the symbol, so attributes that are axes count from the back; linearize and transpose
// name their parts symbol.fwd, symbol.lin, symbol.lin.t. The body is traced once for the avals of
// the inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

struct Composite {
  using Body = std::function<Arrays(std::span<const Array> inputs, const Params& attributes)>;
  std::string symbol, doc;
  Body body;
  // Optional: primals, then as many tangents, to outputs, then as many tangents. Stated where the
  // derivative of the body would be inexact or slow.
  Body jvp;
};

// Adds a composite to the registry, which is never destroyed; a symbol is registered once.
const Composite& define_composite(Composite composite);
const Composite* find_composite(std::string_view symbol);  // nullptr when there is none
std::vector<const Composite*> all_composites();            // in order of symbol

// Applies a composite as one call equation in the current trace.
Results composite(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes = {});
inline Results composite(const Composite& c, std::initializer_list<Array> inputs,
                         const Params& attributes = {}) {
  return composite(c, std::span<const Array>(inputs.begin(), inputs.size()), attributes);
}

// The parameters of that call: what load compares with, and a backend's tests.
Params composite_params(const Composite& composite, std::span<const Aval> inputs,
                        const Params& attributes = {});

}  // namespace plait
