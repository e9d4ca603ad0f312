// The rule kind Spelling: the function of plait::lax whose call makes an equation, in code
// generated from a program (plait.code).
//
// A function is stated only where calling it makes exactly this equation: it must not convert or
// check more than the equation says. Otherwise the rule is refused, or gives nothing for these
// parameters, and the equation is written as bind with the name of its primitive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <optional>

namespace plait {

// An equation, and its parts as text in Python or C++.
class EquationWriter {
 public:
  EquationWriter(const JaxprData& program, const Equation& written)
      : jaxpr(program), equation(written) {}
  virtual ~EquationWriter() = default;

  const JaxprData& jaxpr;
  const Equation& equation;

  virtual bool is_python() const = 0;
  // "lax.linalg.lu(x)" from "linalg.lu" and {"x"}.
  virtual std::string call(const std::string& function,
                           const std::vector<std::string>& arguments) const = 0;
  virtual std::string atom(const Atom& atom) const = 0;
  // The number of a strong literal without its dtype, in Python: for an operand that takes the
  // dtype of others.
  virtual std::string number(const Atom& atom) const = 0;
  virtual std::string list(const std::vector<std::string>& items) const = 0;
  virtual std::string text(Dim dim) const = 0;
  virtual std::string text(DType dtype) const = 0;
  virtual std::string shape(const Shape& shape) const = 0;
  virtual std::string integers(const Shape& shape) const = 0;  // where C++ takes a span of int
  virtual std::string truth(bool value) const = 0;

  const Params& params() const { return equation.params; }
  DType operand_dtype(std::size_t index) const;
  std::string operand(std::size_t index) const { return atom(equation.inputs[index]); }
  std::string number(std::size_t index) const { return number(equation.inputs[index]); }
  std::vector<std::string> operands() const;
  // Operands; those from `first` on are bare numbers where another operand has their dtype.
  std::vector<std::string> numbers(std::size_t first = 0) const;
  // Parameters.
  std::string dims(const char* name) const { return shape(params().get<Shape>(name)); }
  std::string ints(const char* name) const { return integers(params().get<Shape>(name)); }
  std::string items(const char* name) const;  // of a Shape, as a list without a type
  std::string dim(const char* name) const { return text(params().get<Dim>(name)); }
  std::string flag(const char* name) const { return truth(params().flag(name)); }
  std::string dtype(const char* name) const { return text(params().get<DType>(name)); }
};

struct Spelling {
  static constexpr auto name = "spelling";
  using Rule = std::function<std::optional<std::string>(const EquationWriter& writer)>;
  static RuleTable<Spelling>& table();
};

// Reasons for a refusal: such an equation is written as bind by name.
namespace spelling {
inline constexpr auto no_function = "no function of plait::lax makes this equation and no other";
}  // namespace spelling

}  // namespace plait
