// Equations as calls of plait::lax, by the Spelling rules of their primitives. See code.h.
//
// Python's functions convert numbers and weak operands, so equations of weak operands are written
// as bind.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/spelling.h>

#include <algorithm>

#include "inspect/code.h"

namespace plait {
namespace {

class LaxWriter final : public EquationWriter {
 public:
  LaxWriter(const JaxprData& jaxpr, const Equation& equation, const CodeSyntax& syntax)
      : EquationWriter(jaxpr, equation), syntax_(syntax) {}

  bool is_python() const override { return syntax_.is_python(); }
  std::string call(const std::string& function,
                   const std::vector<std::string>& arguments) const override {
    std::string name = function;
    if (is_python()) return "lax." + name + "(" + joined(arguments) + ")";
    for (std::size_t at = 0; (at = name.find('.')) != std::string::npos;) name.replace(at, 1, "::");
    return "plait::lax::" + name + "(" + joined(arguments) + ")";
  }
  std::string atom(const Atom& atom) const override { return syntax_.atom(atom); }
  std::string number(const Atom& atom) const override { return syntax_.number(atom); }
  std::string list(const std::vector<std::string>& items) const override {
    return syntax_.list(items);
  }
  std::string text(Dim dim) const override { return syntax_.dim(dim); }
  std::string text(DType dtype) const override { return syntax_.dtype(dtype); }
  std::string shape(const Shape& shape) const override { return syntax_.shape(shape); }
  std::string integers(const Shape& shape) const override { return syntax_.ints(shape); }
  std::string truth(bool value) const override { return syntax_.flag(value); }

 private:
  const CodeSyntax& syntax_;
};

}  // namespace

std::optional<std::string> lax_call(const JaxprData& jaxpr, const Equation& equation,
                                    const CodeSyntax& syntax) {
  const Spelling::Rule* rule = Spelling::table().find(*equation.primitive);
  const bool has_weak = std::any_of(equation.inputs.begin(), equation.inputs.end(),
                                    [&](const Atom& atom) { return jaxpr.aval(atom).weak; });
  if (!rule || has_weak) return {};
  return (*rule)(LaxWriter(jaxpr, equation, syntax));
}

}  // namespace plait
