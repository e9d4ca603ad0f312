// See upgrade.h.
// SPDX-License-Identifier: Apache-2.0
#include "upgrade.h"

#include <plait/rewriting/edit.h>
#include <plait/transforms/composites.h>
#include <plait/transforms/custom_rules.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace plait {
namespace {

using Json = nlohmann::json;

// The change from one format to the next, in order; null where there is none. Bodies of an equation
// are changed before it is.
struct Step {
  void (*manifest)(Json& manifest);
  void (*equation)(Equation& equation);
};

// Format 2 adds a checksum for each constant. Its texts add scopes and transforms to line comments,
// and lines to the bodies of equations; the texts of format 1 are read unchanged.
void add_checksums(Json& manifest) { manifest["checksums"] = Json::object(); }

Params only(const Params& params, std::initializer_list<const char*> names) {
  Params result;
  for (const char* name : names)
    if (const ParamValue* value = params.find(name)) result = result.with(name, *value);
  return result;
}

// 3 has primitives of their own for composites and for functions with derivative rules. Before,
// they were calls with more parameters, never with both, and a call was named like the composite. A
// call that was a composite before its body changed had kept the attributes.
void split_call(Equation& equation) {
  if (!(*equation.primitive == call_p)) return;
  Params& params = equation.params;
  if (params.has("symbol")) {
    equation.primitive = &composite_p;
    params = params.without("name");
  } else if (params.has("jvp") || params.has("bwd")) {
    equation.primitive = &custom_derivative_p;
    params = only(params, {"body", "jvp", "fwd", "bwd", "name", "num_captured", "sizes"});
    if (!params.has("name")) params = params.with("name", std::string("f"));
    if (params.has("num_captured") && params.integer("num_captured") == 0)
      params = params.without("num_captured");
  } else {
    params = only(params, {"body", "name", "sizes"});
  }
}

constexpr Step steps[] = {
    {add_checksums, nullptr},  // 1 -> 2
    {nullptr, split_call},     // 2 -> 3
};
static_assert(std::size(steps) == program_format - 1);

}  // namespace

void upgrade_manifest(int format, Json& manifest) {
  for (int from = format; from < program_format; ++from)
    if (const auto change = steps[from - 1].manifest) change(manifest);
}

Jaxpr upgrade_jaxpr(int format, const Jaxpr& jaxpr) {
  Jaxpr result = jaxpr;
  for (int from = format; from < program_format; ++from)
    if (const auto change = steps[from - 1].equation)
      result = rebuild(
          result,
          [&](ProgramBuilder& builder, const Equation& old, std::span<const Atom> inputs) {
            Equation equation = old;
            change(equation);
            return std::optional(builder.add(*equation.primitive, {inputs.begin(), inputs.end()},
                                             equation.params, equation.source));
          },
          Nested::yes);
  return result;
}

}  // namespace plait
