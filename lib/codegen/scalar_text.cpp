// See scalar_text.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/scalar_text.h"

#include <plait/base/internal_error.h>
#include <plait/base/pack.h>
#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/spelling.h>
#include <plait/trace/array.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

namespace plait::codegen {

std::string type_text(DType dtype) {
  constexpr const char* names[] = {"bool",     "int8_t",   "int16_t",  "int",       "long",
                                   "uint8_t",  "uint16_t", "unsigned", "uint64_t",  "float16",
                                   "bfloat16", "float",    "double",   "complex64", "complex128"};
  static_assert(std::size(names) == std::size_t(num_computing_dtypes));
  return names[int(dtype)];
}

namespace {

// --- Numbers -------------------------------------------------------------------------------------

template <class Number, class... Base>
std::string digits_of(Number number, Base... base) {
  char digits[40];
  return {digits, std::to_chars(digits, std::end(digits), number, base...).ptr};
}

template <class T>
std::string real_text(T value) {
  constexpr bool is_float = sizeof(T) == 4;
  if (std::isnan(value))
    return "std::bit_cast<" + type_text(dtype_of<T>()) + ">(0x" +
           digits_of(std::bit_cast<BitsOf<T>>(value), 16) + ")";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + (is_float ? "HUGE_VALF" : "HUGE_VAL");
  const std::string text = digits_of(value);
  const bool is_whole = text.find_first_of(".e") == std::string::npos;
  return text + (is_whole ? ".0" : "") + (is_float ? "f" : "");
}

template <class T>
std::string integer_text(T value) {
  const std::string type = type_text(dtype_of<T>());
  if (std::is_signed_v<T> && value == std::numeric_limits<T>::min())
    return "std::numeric_limits<" + type + ">::min()";
  if (sizeof(T) < 4) return type + "(" + digits_of(value) + ")";
  return digits_of(value) + (std::is_signed_v<T> ? "" : "u") + (sizeof(T) == 8 ? "L" : "");
}

// With the type that the text has for them, so that functions find theirs.
template <class T>
std::string text_of(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return integer_text(value);
  else if constexpr (std::is_floating_point_v<T>)
    return real_text(value);
  else if constexpr (is_complex_v<T>)
    return type_text(dtype_of<T>()) + "(" + text_of(value.real()) + ", " + text_of(value.imag()) +
           ")";
  else
    return type_text(dtype_of<T>()) + "(" + text_of(float(value)) + ")";
}

// --- Elementwise primitives ----------------------------------------------------------------------

// As C++ writes them that has an operator for them; the others are functions of the same names.
const std::map<std::string, std::string>& operators() {
  static const auto& operators = *new std::map<std::string, std::string>{
      {"add", "+"},         {"sub", "-"},        {"mul", "*"},        {"div", "/"}, {"eq", "=="},
      {"ne", "!="},         {"lt", "<"},         {"le", "<="},        {"gt", ">"},  {"ge", ">="},
      {"bitwise_and", "&"}, {"bitwise_or", "|"}, {"bitwise_xor", "^"}};
  return operators;
}

// An expression of numbers from the function of plait::lax that makes the equation.
class ScalarWriter final : public EquationWriter {
 public:
  ScalarWriter(const JaxprData& jaxpr, const Equation& equation,
               const std::vector<std::string>& names, Overflow overflow)
      : EquationWriter(jaxpr, equation), names_(names), overflow_(overflow) {}

  bool is_python() const override { return false; }
  std::string call(const std::string& function,
                   const std::vector<std::string>& arguments) const override {
    const DType dtype = operand_dtype(0);
    if (function == "select") return arguments[0] + " ? " + arguments[1] + " : " + arguments[2];
    if (function == "convert_element_type") {
      const bool by_type = converts(params().get<DType>("dtype"));
      return (by_type ? arguments[1] : "lax::convert<" + arguments[1] + ">") + "(" + arguments[0] +
             ")";
    }
    if (function == "bitcast_convert_type")
      return "std::bit_cast<" + arguments[1] + ">(" + arguments[0] + ")";
    if (function == "bitwise_not") return (is_bool(dtype) ? "!" : "~") + arguments[0];
    const bool wraps = overflow_ == Overflow::undefined && is_signed_integer(dtype);
    if (function == "neg" && !wraps)
      return arguments[0].starts_with('-') ? "-(" + arguments[0] + ")" : "-" + arguments[0];
    const auto found = operators().find(function);
    if (found != operators().end() && !(wraps && is_linear(function)) &&
        has_operator(function, dtype))
      return arguments[0] + " " + found->second + " " + arguments[1];
    return "lax::" + function + "(" + joined(arguments) + ")";
  }
  std::string atom(const Atom& atom) const override { return names_[std::size_t(atom.var().id)]; }
  std::string number(const Atom& number) const override { return atom(number); }
  std::string list(const std::vector<std::string>& items) const override {
    return "{" + joined(items) + "}";
  }
  std::string text(Dim dim) const override { return std::to_string(dim.constant()); }
  std::string text(DType dtype) const override { return type_text(dtype); }
  std::string shape(const Shape& shape) const override { return integers(shape); }
  std::string integers(const Shape& shape) const override { return shape.to_string(); }
  std::string truth(bool value) const override { return value ? "true" : "false"; }

 private:
  // Whether C++ converts the operand as cast does.
  bool converts(DType to) const {
    const auto is_plain = [](DType dtype) {
      return is_integer(dtype) || dtype == DType::float32 || dtype == DType::float64;
    };
    const DType from = operand_dtype(0);
    return is_plain(from) && is_plain(to) && (is_integer(from) || is_floating(to));
  }
  static bool is_linear(const std::string& function) {
    return function == "add" || function == "sub";
  }
  // Whether the operator of C++ means the same.
  static bool has_operator(const std::string& function, DType dtype) {
    if (function == "div") return is_floating(dtype);
    return !is_complex(dtype) || is_linear(function) || function == "eq" || function == "ne";
  }
  static std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
    return text;
  }
  const std::vector<std::string>& names_;
  const Overflow overflow_;
};

}  // namespace

std::string literal_text(const Literal& literal) {
  const Buffer buffer = Array::literal(literal).buffer();
  return visit_dtype(literal.dtype, [&](auto zero) {
    return text_of(*static_cast<const decltype(zero)*>(buffer.data()));
  });
}

std::string integer_text(std::int64_t value) {
  const bool is_least = value == std::numeric_limits<std::int64_t>::min();
  return is_least ? text_of(value) : std::to_string(value);
}

std::string scalar_text(const Primitive& primitive, const Params& params,
                        const std::vector<DType>& dtypes, const std::vector<std::string>& names,
                        Overflow overflow) {
  JaxprData jaxpr;
  Equation equation;
  equation.primitive = &primitive;
  // A number is what it is: weakness is of arrays.
  equation.params = params.find("weak") ? params.with("weak", false) : params;
  for (std::size_t i = 0; i < names.size(); ++i) {
    jaxpr.avals.push_back({{}, dtypes[i], false});
    equation.inputs.push_back(Var{int(i)});
  }
  const Spelling::Rule* rule = Spelling::table().find(primitive);
  const ScalarWriter writer(jaxpr, equation, names, overflow);
  // What no function of users binds is a function of its name.
  if (primitive == fma_p || primitive == threefry_p)
    return writer.call(std::string(primitive.name()), names);
  const auto spelt = rule ? (*rule)(writer) : std::nullopt;
  if (!spelt)
    throw InternalError("the primitive " + std::string(primitive.name()) + " has no text in C++");
  return *spelt;
}

}  // namespace plait::codegen
