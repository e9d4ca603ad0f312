// Programs as calls. See staged.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/own_scopes.h"

#include <plait/trace/sizes.h>
#include <plait/trace/staged.h>

namespace plait {

Array literal(std::string_view text) {
  try {
    const Jaxpr jaxpr = parse("{ lambda ; . let in (" + std::string(text) + ",) }");
    if (jaxpr->outputs.size() == 1 && !jaxpr->outputs[0].is_var())
      return Array::literal(jaxpr->outputs[0].literal());
  } catch (const ValueError&) {  // the error below names the literal alone
  }
  throw ValueError("literal: '" + std::string(text) + "' is no literal",
                   "write one as jaxprs do: 2.0:f32, 1:i32, true:bool, (0.0,1.0):c64");
}

const Primitive& primitive_named(std::string_view name) {
  if (const Primitive* found = find_primitive(name)) return *found;
  throw ValueError("there is no primitive `" + std::string(name) + "`",
                   "plait.rules('abstract') lists them");
}

Results bind(std::string_view primitive, const Arrays& inputs, const Params& params) {
  const Primitive& found = primitive_named(primitive);
  if (int(inputs.size()) < found.min_operands())
    throw ValueError(
        "`" + std::string(primitive) + "` was given " + std::to_string(inputs.size()) + " operands",
        "give at least " + std::to_string(found.min_operands()));
  return bind(found, inputs, params);
}

Jaxpr staged(std::string_view header, const SizedFunction& function) {
  const Jaxpr types = parse("{ lambda " + std::string(header) + " . let in () }");
  const OwnScopes scopes_of_its_own;
  JaxprTrace trace("staged");
  Arrays inputs;
  for (const Aval& aval : types->input_avals()) inputs.push_back(trace.add_input(aval));
  for (const Constraint& constraint : types->constraints) trace.add_constraint(constraint);
  const GrantedConstraints granted(types->constraints);
  const SizeScope sizes(types->sizes);
  const TraceScope scope(&trace);
  Traced traced = trace.close(function(types->sizes, inputs), types->sizes);
  if (!traced.captured.empty())
    throw ValueError("staged: the function uses an array of type " +
                         traced.captured[0].aval().to_string() + " that it was not given",
                     "make it an input of the header");
  return traced.jaxpr;
}

}  // namespace plait
