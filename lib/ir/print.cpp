// The text form of a jaxpr; parse.cpp reads it back exactly. See jaxpr.h for the form.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ir/jaxpr.h>

namespace plait {

// a, b, ..., z, aa, ab, ... without the words of the text form.
std::string var_name(int id) {
  // The places of "in" and "let", words of the form that a long program would meet.
  constexpr int in_place = 9 * 26 + 14 - 1, let_place = 12 * 676 + 5 * 26 + 20 - 1;
  if (id >= in_place) ++id;
  if (id >= let_place) ++id;
  std::string name;
  for (++id; id > 0; id = (id - 1) / 26) name.insert(name.begin(), char('a' + (id - 1) % 26));
  return name;
}

namespace {

void print_body(const Jaxpr& jaxpr, ShowSources sources, const std::string& indent,
                std::string& out);

std::string indented(std::string text, const std::string& indent) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 1 + indent.size())
    text.insert(at + 1, indent);
  return text;
}

std::string atom_text(const Atom& atom) {
  return atom.is_var() ? var_name(atom.var().id) : atom.literal().to_string();
}

void print_body(const Jaxpr& jaxpr, ShowSources sources, const std::string& indent,
                std::string& out) {
  out += "{ lambda";
  for (Dim size : jaxpr->sizes) out += " " + size.to_string();
  out += " ;";
  for (int i = 0; i < jaxpr->num_binders; ++i)
    out += " " + var_name(i) + ":" + jaxpr->avals[i].to_string();
  if (!jaxpr->constraints.empty()) {
    out += " where";
    for (std::size_t i = 0; i < jaxpr->constraints.size(); ++i)
      out += (i ? ", " : " ") + jaxpr->constraints[i].left.to_string() +
             "<=" + jaxpr->constraints[i].right.to_string();
  }
  out += " . let";
  for (const Equation& equation : jaxpr->equations) {
    out += "\n" + indent + "    ";
    for (std::size_t i = 0; i < equation.outputs.size(); ++i)
      out += (i ? " " : "") + var_name(equation.outputs[i].id) + ":" +
             jaxpr->aval(equation.outputs[i]).to_string();
    out += " = " + std::string(equation.primitive->name());
    if (!equation.params.entries().empty())
      out += "[" + indented(equation.params.to_string(), indent + "      ") + "]";
    for (const Atom& atom : equation.inputs) out += " " + atom_text(atom);
    if (sources == ShowSources::yes && equation.source) out += "  # " + equation.source.to_string();
  }
  out += jaxpr->equations.empty() ? " in (" : "\n" + indent + "  in (";
  for (std::size_t i = 0; i < jaxpr->outputs.size(); ++i)
    out += (i ? ", " : "") + atom_text(jaxpr->outputs[i]);
  out += jaxpr->outputs.size() == 1 ? ",) }" : ") }";
}

}  // namespace

std::string print(const Jaxpr& jaxpr, ShowSources sources) {
  std::string out;
  print_body(jaxpr, sources, "", out);
  return out;
}

}  // namespace plait
