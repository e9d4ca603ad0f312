// The public interface of size expressions: integers first, then the canonical forms of dim_node.h.
// Errors name the operation that was asked for.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/dim.h>

#include <plait/base/error.h>

#include <algorithm>
#include <ostream>
#include <unordered_map>

#include "base/dim_node.h"

namespace plait {
namespace {

using namespace sizes;
using Kind = DimNode::Kind;

[[noreturn, gnu::cold]] void throw_failure(DimFailure failure, const std::string& expression) {
  switch (failure) {
    case DimFailure::overflow:
      throw ShapeError("size overflows 62 bits: " + expression,
                       "use smaller sizes: no array has this many elements");
    case DimFailure::division_by_zero:
      throw ShapeError("a size is divided by zero: " + expression,
                       "divide by a size of at least 1");
    default:
      throw ShapeError("a size is too long: more than " + std::to_string(longest_text) +
                           " characters when multiplied out",
                       "give parts of it names of their own");
  }
}

std::string parenthesised(Dim dim) {
  constexpr std::size_t longest = 80;
  std::string text = dim.to_string();
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return dim.is_size() || (dim.is_constant() && dim.constant() >= 0) ? text : "(" + text + ")";
}

// Computes on polynomials; operation names it in errors: "(n+1) * m".
template <class Function>
Dim compute(Dim a, const char* operation, Dim b, const Function& function) {
  try {
    return to_dim(function(to_polynomial(a), to_polynomial(b)));
  } catch (const DimFailure failure) {
    throw_failure(failure, parenthesised(a) + " " + operation + " " + parenthesised(b));
  }
}

struct Decomposition {
  Dim::Operation operation;
  Dim left, right;
};

Dim::Operation operation_of(const std::vector<WrittenTerm>& terms) {
  if (terms.size() > 1) return Dim::Operation::add;
  const bool is_product = terms[0].coefficient != 1 || !terms[0].factors.empty();
  return is_product || terms[0].operation == Dim::Operation::constant ? Dim::Operation::multiply
                                                                      : terms[0].operation;
}

// All but the last part of a sum, product or n-ary operation, and the last part.
Decomposition split_last(const Polynomial& polynomial, const std::vector<WrittenTerm>& terms) {
  const Dim::Operation operation = operation_of(terms);
  WrittenTerm term = terms.back();
  Polynomial last = value_of(term);
  if (terms.size() > 1) return {operation, to_dim(difference(polynomial, last)), to_dim(last)};
  if (operation == Dim::Operation::multiply && term.operation == Dim::Operation::constant) {
    last = to_polynomial(term.factors.back());
    term.factors.pop_back();
  } else if (operation == Dim::Operation::multiply) {
    last = value_of({1, {}, term.operation, term.operands});
    term.operation = Dim::Operation::constant;
  } else {
    last = term.operands.back();
    term.operands.pop_back();
    if (term.operands.size() == 1) return {operation, to_dim(term.operands[0]), to_dim(last)};
  }
  return {operation, to_dim(value_of(term)), to_dim(last)};
}

// The decomposition in the form of the text, if that leads to smaller sizes. A part of a sum may be
// written differently on its own, so following the text could recurse forever. The terms of the
// canonical form are always smaller.
Decomposition decompose(Dim dim) {
  const DimNode& node = *DimNode::of(dim);
  if (node.kind != Kind::polynomial) {
    Dim left = node.operands[0];
    for (std::size_t i = 1; i + 1 < node.operands.size(); ++i)
      left = minimum(left, node.operands[i]);
    const bool is_minimum = node.kind == Kind::minimum;
    return {is_minimum ? Dim::Operation::minimum : Dim::Operation::floor_divide, left,
            node.operands.back()};
  }
  const Decomposition written = split_last(node.terms, node.written);
  if (std::max(weight_of(written.left), weight_of(written.right)) < node.weight) return written;
  std::vector<WrittenTerm> terms;
  for (const DimTerm& term : node.terms) terms.push_back({term.coefficient, term.factors, {}, {}});
  return split_last(node.terms, terms);
}

using ValueOf = std::function<std::optional<std::int64_t>(std::string_view)>;

class SizeEvaluator {
 public:
  explicit SizeEvaluator(const ValueOf& value_of) : value_of_(value_of) {}

  __int128 evaluate(Dim dim) {
    const DimNode* node = DimNode::of(dim);
    return node ? evaluate(node) : dim.constant();
  }

 private:
  __int128 evaluate(const DimNode* node) {
    if (const auto found = values_.find(node); found != values_.end()) return found->second;
    const __int128 value = compute(*node);
    if (value >= Interval::infinite || value < -Interval::infinite)
      throw_failure(DimFailure::overflow, node->text);
    values_.emplace(node, static_cast<std::int64_t>(value));
    return value;
  }

  __int128 compute(const DimNode& node) {
    if (node.kind == Kind::size) return value_of_size(node.name);
    if (node.kind == Kind::polynomial) return sum_of_terms(node);
    __int128 value = evaluate(node.operands[0]);
    if (node.kind == Kind::floor_divide) {
      const auto divisor = static_cast<std::int64_t>(evaluate(node.operands[1]));
      if (divisor == 0)
        throw ValueError(
            "the size " + node.text + " divides by zero",
            "call with a size for which " + node.operands[1].to_string() + " is not 0");
      return floor_divide_integers(static_cast<std::int64_t>(value), divisor);
    }
    for (const Dim operand : node.operands) value = std::min(value, evaluate(operand));
    return value;
  }

  // Sums of terms may overflow 62 bits where the result does not: 128 bits suffice.
  __int128 sum_of_terms(const DimNode& node) {
    __int128 total = 0;
    bool overflows = false;
    for (const DimTerm& term : node.terms) {
      __int128 value = term.coefficient;
      for (const DimNode* factor : term.factors)
        overflows |= __builtin_mul_overflow(value, evaluate(factor), &value);
      overflows |= __builtin_add_overflow(total, value, &total);
    }
    if (overflows) throw_failure(DimFailure::overflow, node.text);
    return total;
  }

  std::int64_t value_of_size(const std::string& name) const {
    const auto value = value_of_(name);
    if (!value) throw ValueError("the size " + name + " has no value", "give a value for " + name);
    if (*value < 0)
      throw ValueError("the size " + name + " is " + std::to_string(*value),
                       "give a value of at least 0");
    return *value;
  }

  const ValueOf& value_of_;
  std::unordered_map<const DimNode*, std::int64_t> values_;
};

class Substitution {
 public:
  explicit Substitution(std::span<const std::pair<Dim, Dim>> replacements)
      : replacements_(replacements) {}

  Dim apply(Dim dim) {
    const DimNode* node = DimNode::of(dim);
    if (!node) return dim;
    const auto [found, is_first] = results_.try_emplace(node, dim);
    if (!is_first) return found->second;
    const Dim result = compute(dim, *node);
    results_[node] = result;
    return result;
  }

 private:
  Dim compute(Dim dim, const DimNode& node) {
    if (node.kind == Kind::size) {
      for (const auto& [size, replacement] : replacements_)
        if (size == dim) return replacement;
      return dim;
    }
    if (node.kind == Kind::polynomial) {
      Dim total = 0;
      for (const DimTerm& term : node.terms) {
        Dim product = term.coefficient;
        for (const DimNode* factor : term.factors)
          product = product * apply(DimNode::to_dim(factor));
        total = total + product;
      }
      return total;
    }
    Dim result = apply(node.operands[0]);
    if (node.kind == Kind::floor_divide) return floor_divide(result, apply(node.operands[1]));
    for (std::size_t i = 1; i < node.operands.size(); ++i)
      result = minimum(result, apply(node.operands[i]));
    return result;
  }

  std::span<const std::pair<Dim, Dim>> replacements_;
  std::unordered_map<const DimNode*, Dim> results_;
};

bool is_proven_at_least(Dim a, Dim b, std::int64_t value) {
  try {
    const Polynomial rest = difference(to_polynomial(a), to_polynomial(b));
    return is_at_least(rest, value) || follows_from_facts(rest, value);
  } catch (DimFailure) {
    return false;
  }
}

}  // namespace

void Dim::throw_overflow(std::int64_t value) {
  throw_failure(DimFailure::overflow, std::to_string(value));
}

Dim Dim::size(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool is_name =
      !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '\'';
      });
  if (!is_name || name.size() > longest_text)
    throw ValueError("\"" + std::string(name.substr(0, 80)) + "\" is no name of a size",
                     "write a letter or \"_\", then letters, digits, \"_\" and \"'\"");
  return DimNode::to_dim(intern({.kind = Kind::size,
                                 .name = std::string(name),
                                 .operands = {},
                                 .terms = {},
                                 .mentioned = {},
                                 .bounds = {},
                                 .written = {},
                                 .weight = 1,
                                 .text = {}}));
}

std::int64_t Dim::constant() const {
  if (!is_constant()) throw InternalError("the size " + to_string() + " is taken for a constant");
  return word_ / 2;
}

bool Dim::is_size() const {
  const DimNode* node = DimNode::of(*this);
  return node && node->kind == Kind::size;
}

std::string_view Dim::name() const {
  if (!is_size()) throw InternalError("the size " + to_string() + " is taken for a named size");
  return DimNode::of(*this)->name;
}

std::optional<std::int64_t> Dim::lower_bound() const {
  const DimNode* node = DimNode::of(*this);
  if (!node) return constant();
  if (node->bounds.lower == -Interval::infinite) return std::nullopt;
  return node->bounds.lower;
}

std::optional<std::int64_t> Dim::upper_bound() const {
  const DimNode* node = DimNode::of(*this);
  if (!node) return constant();
  if (node->bounds.upper == Interval::infinite) return std::nullopt;
  return node->bounds.upper;
}

std::vector<Dim> Dim::sizes() const {
  std::vector<Dim> result;
  if (const DimNode* node = DimNode::of(*this))
    for (const DimNode* size : node->mentioned) result.push_back(DimNode::to_dim(size));
  return result;
}

Dim Dim::substitute(std::span<const std::pair<Dim, Dim>> replacements) const {
  return Substitution(replacements).apply(*this);
}

std::int64_t Dim::evaluate(const ValueOf& value_of) const {
  if (is_constant()) return constant();
  return static_cast<std::int64_t>(SizeEvaluator(value_of).evaluate(*this));
}

Dim::Operation Dim::operation() const {
  const DimNode* node = DimNode::of(*this);
  if (!node) return Operation::constant;
  if (node->kind == Kind::size) return Operation::size;
  return decompose(*this).operation;
}

std::pair<Dim, Dim> Dim::operands() const {
  if (is_constant() || is_size())
    throw InternalError("the size " + to_string() + " has no operands");
  const Decomposition decomposition = decompose(*this);
  return {decomposition.left, decomposition.right};
}

std::string Dim::to_string() const {
  const DimNode* node = DimNode::of(*this);
  return node ? node->text : std::to_string(constant());
}

Dim Dim::add(Dim a, Dim b) { return compute(a, "+", b, sum); }
Dim Dim::subtract(Dim a, Dim b) { return compute(a, "-", b, difference); }
Dim Dim::multiply(Dim a, Dim b) { return compute(a, "*", b, product); }

Dim floor_divide(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant() && b != 0)
    return floor_divide_integers(a.constant(), b.constant());
  return compute(a, "//", b, quotient);
}

Dim modulo(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant() && b != 0)
    return a - b * floor_divide_integers(a.constant(), b.constant());
  return compute(a, "%", b, [](const Polynomial& x, const Polynomial& y) {
    return difference(x, product(y, quotient(x, y)));
  });
}

Dim ceil_divide(Dim a, Dim b) {
  // The first form is how users write it, and holds for b > 0 only.
  const bool is_positive = b.lower_bound().value_or(-1) >= 0;
  return is_positive ? floor_divide(a + b - 1, b) : -floor_divide(-a, b);
}

Dim minimum(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant(), b.constant());
  if (a == b) return a;
  return compute(a, "min", b,
                 [](const Polynomial& x, const Polynomial& y) { return minimum_of({x, y}); });
}

Dim maximum(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant(), b.constant());
  if (a == b) return a;
  return compute(a, "max", b, [](const Polynomial& x, const Polynomial& y) {
    return scaled(minimum_of({scaled(x, -1), scaled(y, -1)}), -1);
  });
}

std::optional<bool> less_equal(Dim a, Dim b) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  if (a == b || is_proven_at_least(b, a, 0)) return true;
  if (is_proven_at_least(a, b, 1)) return false;
  return std::nullopt;
}

std::optional<bool> equal(Dim a, Dim b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  if (is_proven_at_least(a, b, 1) || is_proven_at_least(b, a, 1)) return false;
  if (is_proven_at_least(a, b, 0) && is_proven_at_least(b, a, 0)) return true;
  return std::nullopt;
}

std::ostream& operator<<(std::ostream& out, Dim dim) { return out << dim.to_string(); }

}  // namespace plait
