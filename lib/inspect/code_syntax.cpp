// Values as text in Python and C++. See code.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "inspect/code.h"

namespace plait {
namespace {

using Reserved = std::set<std::string_view>;

// Names that vars of a jaxpr may have but code may not, including names that the code uses.
const Reserved& python_words() {
  static const Reserved& words =
      *new const Reserved{"and",  "as",  "def",  "del",   "elif",  "else",  "for",   "from",
                          "if",   "in",  "is",   "lax",   "not",   "or",    "pass",  "try",
                          "with", "not", "bind", "plait", "raise", "while", "yield", "staged"};
  return words;
}
const Reserved& cpp_words() {
  static const Reserved& words = *new const Reserved{
      "and",  "asm",   "auto", "bool", "case",  "char", "do",    "else",  "enum",  "for",   "goto",
      "if",   "in",    "int",  "long", "new",   "not",  "or",    "plait", "short", "sizes", "std",
      "this", "throw", "true", "try",  "union", "void", "while", "xor",   "using"};
  return words;
}

// Sums and products only, which both languages write alike.
bool is_polynomial(Dim dim) {
  switch (dim.operation()) {
    case Dim::Operation::constant:
    case Dim::Operation::size:
      return true;
    case Dim::Operation::add:
    case Dim::Operation::multiply: {
      const auto [left, right] = dim.operands();
      return is_polynomial(left) && is_polynomial(right);
    }
    default:
      return false;
  }
}

}  // namespace

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

std::string CodeSyntax::word(std::string text) const {
  return (is_python() ? python_words() : cpp_words()).contains(text) ? text + "_" : text;
}
std::string CodeSyntax::name(const Var& var) const { return word(var_name(var.id)); }

// Names of sizes and of vars are kept apart.
std::string CodeSyntax::size_name(Dim size) const {
  std::string text = "size_" + std::string(size.name());
  std::replace(text.begin(), text.end(), '\'', '_');
  return text;
}

std::string CodeSyntax::quoted(std::string_view text) const {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) >= 0x20)
      result += c;
    else  // three digits, so that a following digit is not part of the escape
      for (const int shift : {9, 6, 3, 0})
        result += shift == 9 ? '\\' : char('0' + (static_cast<unsigned char>(c) >> shift & 7));
  }
  return result + "\"";
}

std::string CodeSyntax::atom(const Atom& atom) const {
  if (atom.is_var()) return name(atom.var());
  return (is_python() ? "plait.literal(" : "plait::literal(") + quoted(atom.literal().to_string()) +
         ")";
}

std::string CodeSyntax::number(const Atom& operand) const {
  if (operand.is_var() || !is_python()) return atom(operand);
  const Literal& literal = operand.literal();
  if (literal.weak) return atom(operand);
  if (is_floating(literal.dtype) && std::isfinite(literal.real)) return real(literal.real);
  if (is_integer(literal.dtype) && literal.dtype != DType::uint64)
    return std::to_string(literal.integer);
  return atom(operand);
}

std::string CodeSyntax::list(const std::vector<std::string>& items) const {
  if (!is_python()) return "{" + joined(items) + "}";
  return "(" + joined(items) + (items.size() == 1 ? ",)" : ")");
}

std::string CodeSyntax::dim(Dim dim) const {
  if (dim.is_constant()) return std::to_string(dim.constant());
  if (dim.is_size()) return size_name(dim);
  if (is_polynomial(dim)) {
    const auto [left, right] = dim.operands();
    const bool sum = dim.operation() == Dim::Operation::add;
    const auto factor = [&](Dim part) {
      const bool bare = part.is_size() || (part.is_constant() && part.constant() >= 0);
      return bare || (sum && !part.is_constant()) ? this->dim(part) : "(" + this->dim(part) + ")";
    };
    return factor(left) + (sum ? " + " : " * ") + factor(right);
  }
  return (is_python() ? "plait.size(" : "plait::Dim::parse(") + quoted(dim.to_string()) + ")";
}

std::string CodeSyntax::shape(const Shape& shape) const {
  std::vector<std::string> items;
  for (const Dim size : shape) items.push_back(dim(size));
  return (is_python() ? "" : "plait::Shape") + list(items);
}
std::string CodeSyntax::ints(const Shape& list_of_ints) const {
  return is_python() ? shape(list_of_ints) : "std::vector<int>" + shape(list_of_ints).substr(12);
}
std::string CodeSyntax::dtype(DType dtype) const {
  const std::string name(name_of(dtype));
  return (is_python() ? "plait." : "plait::DType::") + name + (dtype == DType::bool_ ? "_" : "");
}
std::string CodeSyntax::flag(bool value) const {
  if (is_python()) return value ? "True" : "False";
  return value ? "true" : "false";
}

std::string CodeSyntax::real(double value) const {
  if (!std::isfinite(value)) {
    const char* name = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return (is_python() ? "float(" : "std::stod(") + quoted(name) + ")";
  }
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  std::string result(text, end);
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

}  // namespace plait
