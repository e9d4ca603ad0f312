// Carriers in place of stored dtypes. See carriers.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/carriers.h"

#include <plait/primitives/primitives.h>
#include <plait/trace/trace.h>

#include <algorithm>

#include "compile/stored_casts.h"
#include "ir/splice.h"

namespace plait::compile_passes {
namespace {

bool holds_stored(const Jaxpr& program) {
  struct HoldsStored : Property<bool> {};
  return *program->memo.get(HoldsStored{}, [&] {
    const auto is_one = [](const Aval& aval) { return is_stored(aval.dtype); };
    if (std::ranges::any_of(program->avals, is_one)) return true;
    bool found = false;
    for (const Equation& equation : program->equations)
      for_each_body(equation.params,
                    [&](const Jaxpr& body) { found = found || holds_stored(body); });
    return found;
  });
}

Params carried(const Params& params) {
  std::vector<Params::Entry> entries(params.entries().begin(), params.entries().end());
  for (auto& [name, value] : entries)
    if (auto* dtype = std::get_if<DType>(&value)) *dtype = carrier_of(*dtype);
  return map_bodies(Params(std::move(entries)), with_carriers);
}

// What a gather out of bounds fills in, if the equation does not say so: of narrow integers the
// carrier's own is out of range.
Params filled(const Primitive& primitive, DType dtype, const Params& params) {
  const bool is_narrow = dtype == DType::int4 || dtype == DType::uint4;
  if (!(primitive == gather_p) || !is_narrow || params.find("fill")) return params;
  return params.with("fill", dtype == DType::int4 ? -8.0 : 15.0);
}

Aval carried(Aval aval) {
  aval.dtype = carrier_of(aval.dtype);
  return aval;
}

}  // namespace

Jaxpr with_carriers(const Jaxpr& program) {
  if (!holds_stored(program)) return program;
  Builder builder;
  std::vector<Atom> values(program->avals.size(), Var{});
  for (int i = 0; i < program->num_binders; ++i)
    values[std::size_t(i)] = builder.add_binder(carried(program->avals[std::size_t(i)]));
  const auto value_of = [&](const Atom& atom) {
    return atom.is_var() ? values[std::size_t(atom.var().id)] : atom;
  };
  for (const Constraint& constraint : program->constraints) builder.add_constraint(constraint);
  for (const Equation& equation : program->equations) {
    std::vector<Atom> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(value_of(atom));
    std::vector<Aval> avals;
    for (const Var var : equation.outputs) avals.push_back(carried(program->aval(var)));
    if (*equation.primitive == bitcast_p && builder.aval(inputs[0]).dtype == avals[0].dtype) {
      values[std::size_t(equation.outputs[0].id)] = inputs[0];
      continue;
    }
    if (*equation.primitive == cast_p) {
      const DType from = program->aval(equation.inputs[0]).dtype,
                  to = program->aval(equation.outputs[0]).dtype;
      if (is_stored(from) || is_stored(to)) {
        const Aval aval = builder.aval(inputs[0]);
        const Jaxpr conversion = make_closed_jaxpr(
            [&](std::span<const Array> in) { return Arrays{convert_carried(in[0], from, to)}; },
            std::span(&aval, 1), program->sizes);
        values[std::size_t(equation.outputs[0].id)] =
            splice(builder, conversion, std::move(inputs))[0];
        continue;
      }
    }
    const Params params = equation.inputs.empty()
                              ? carried(equation.params)
                              : filled(*equation.primitive, program->aval(equation.inputs[0]).dtype,
                                       carried(equation.params));
    const std::vector<Var> outputs = builder.add(*equation.primitive, std::move(inputs), params,
                                                 equation.source, std::move(avals));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      values[std::size_t(equation.outputs[i].id)] = outputs[i];
  }
  std::vector<Atom> results;
  for (const Atom& atom : program->outputs) results.push_back(value_of(atom));
  return builder.close(std::move(results), program->sizes);
}

}  // namespace plait::compile_passes
