// Programs written as code: the syntax of a language, and the function of plait::lax for each
// equation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/inspect/inspect.h>

#include <optional>

namespace plait {

// Values of parameters and operands as text in Python or C++. Vars are names; literals are in the
// form of staged.h.
class CodeSyntax {
 public:
  explicit CodeSyntax(Language language) : language_(language) {}
  bool is_python() const { return language_ == Language::python; }

  std::string name(const Var& var) const;  // not a keyword of the language
  std::string size_name(Dim size) const;
  std::string quoted(std::string_view text) const;
  std::string atom(const Atom& atom) const;
  // An operand that takes the dtype of others: in Python a strong literal is written as its number
  // alone.
  std::string number(const Atom& atom) const;
  std::string list(const std::vector<std::string>& items) const;  // (a, b) or {a, b}
  std::string dim(Dim dim) const;
  std::string shape(const Shape& shape) const;
  std::string ints(const Shape& list) const;  // where C++ takes a span of int
  std::string dtype(DType dtype) const;
  std::string flag(bool value) const;
  std::string real(double value) const;

 private:
  std::string word(std::string text) const;  // with a suffix where it is reserved
  Language language_;
};

// A call of a function of plait::lax that makes this equation, or nothing.
std::optional<std::string> lax_call(const JaxprData& jaxpr, const Equation& equation,
                                    const CodeSyntax& syntax);

// Separated by commas.
std::string joined(const std::vector<std::string>& items);

}  // namespace plait
