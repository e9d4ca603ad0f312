// See rules/spelling.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/spelling.h>

#include <algorithm>

namespace plait {

DType EquationWriter::operand_dtype(std::size_t index) const {
  return jaxpr.aval(equation.inputs[index]).dtype;
}

std::vector<std::string> EquationWriter::operands() const {
  std::vector<std::string> list;
  for (const Atom& input : equation.inputs) list.push_back(atom(input));
  return list;
}

std::vector<std::string> EquationWriter::numbers(std::size_t first) const {
  std::vector<std::string> list;
  const auto is_var = [](const Atom& atom) { return atom.is_var(); };
  const bool some =
      std::any_of(equation.inputs.begin() + std::ptrdiff_t(first), equation.inputs.end(), is_var);
  for (std::size_t i = 0; i < equation.inputs.size(); ++i)
    list.push_back(i >= first && some ? number(i) : operand(i));
  return list;
}

std::string EquationWriter::items(const char* name) const {
  std::vector<std::string> texts;
  for (const Dim size : params().get<Shape>(name)) texts.push_back(text(size));
  return list(texts);
}

}  // namespace plait
