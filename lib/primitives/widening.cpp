// See widening.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/widening.h>

#include <plait/primitives/primitives.h>

#include <algorithm>

namespace plait {
namespace {

bool doubles(DType from, DType to) {
  return (from == DType::float32 && to == DType::float64) ||
         (from == DType::int32 && to == DType::int64) ||
         (from == DType::complex64 && to == DType::complex128);
}

void collect(const Jaxpr& jaxpr, std::vector<Widening>& found) {
  for (const Equation& equation : jaxpr->equations) {
    for_each_body(equation.params, [&](const Jaxpr& body) { collect(body, found); });
    if (!(*equation.primitive == cast_p)) continue;
    const Widening widening{jaxpr->aval(equation.inputs[0]).dtype,
                            equation.params.get<DType>("dtype"), equation.source};
    if (!doubles(widening.from, widening.to)) continue;
    if (std::find(found.begin(), found.end(), widening) == found.end()) found.push_back(widening);
  }
}

}  // namespace

std::string Widening::to_string() const {
  return std::string(name_of(from)) + " becomes " + std::string(name_of(to)) +
         (source ? " at " + source.to_string() : "");
}

std::vector<Widening> widenings(const Jaxpr& jaxpr) {
  std::vector<Widening> found;
  collect(jaxpr, found);
  return found;
}

std::string where_it_widens(const Jaxpr& jaxpr, const Atom& output, DType expected) {
  if (!output.is_var()) return {};
  const DType wide = jaxpr->aval(output).dtype;
  if (promote_types(wide, expected) != wide) return {};
  std::vector<const Equation*> definition(jaxpr->avals.size(), nullptr);
  for (const Equation& equation : jaxpr->equations)
    for (Var var : equation.outputs) definition[std::size_t(var.id)] = &equation;
  const Equation* at = definition[std::size_t(output.var().id)];
  Source source;
  while (at) {
    if (at->source) source = at->source;
    const Equation* next = nullptr;
    for (const Atom& input : at->inputs)
      if (!next && input.is_var() && jaxpr->aval(input).dtype == wide)
        next = definition[std::size_t(input.var().id)];
    at = next;
  }
  const Source here = Source::current();
  if (!source || (here && here->file == source->file && here->line == source->line)) return {};
  return "; " + std::string(name_of(wide)) + " comes in at " + source.to_string();
}

}  // namespace plait
