// Size expressions as text, and the parser that is its inverse.
//
// The canonical form has neither % nor max (see NOTE: [canonical sizes]), so writing restores them.
// Wherever x - b*(x//b) or a + b - min(a, b) occurs, the shorter form is written, and summands that
// were taken out of a division or a minimum are put back when they would be subtracted. The text
// always equals the expression. Which of several equal texts is written is a matter of readability,
// because parsing restores the canonical form.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>

#include <algorithm>
#include <charconv>

#include "base/dim_node.h"

namespace plait::sizes {
namespace {

using Operation = Dim::Operation;

// Interned, so that the text of an operand is computed once, however deeply nested.
std::string text_of_operand(const Polynomial& polynomial) { return to_dim(polynomial).to_string(); }

std::int64_t coefficient_of(const Polynomial& polynomial,
                            const std::vector<const DimNode*>& factors) {
  for (const DimTerm& term : polynomial)
    if (term.factors == factors) return term.coefficient;
  return 0;
}

// The effect of writing an atom in another form: terms that replace the atom's, and the rest of the
// others.
struct Rewriting {
  std::vector<WrittenTerm> terms;
  Polynomial others;
};

// cofactor*(x//b) + others = t*(x%b) + (others - t*x), cofactor = -t*b.
std::optional<Rewriting> as_modulo(const DimNode* atom, const Linear& linear) {
  const Polynomial x = to_polynomial(atom->operands[0]), b = to_polynomial(atom->operands[1]);
  const auto t = exact_quotient(scaled(linear.cofactor, -1), b);
  if (!t) return std::nullopt;
  Rewriting result;
  result.others = difference(linear.others, product(*t, x));
  const std::size_t before = linear.cofactor.size() + linear.others.size();
  const std::size_t after = t->size() + result.others.size();
  const bool is_subtracting = std::any_of(result.others.begin(), result.others.end(),
                                          [](const DimTerm& term) { return term.coefficient < 0; });
  if (after > before || (after == before && is_subtracting)) return std::nullopt;
  // The remainder does not change when x does by a multiple of b: (m - n)%8 instead of (m + 7*n)%8.
  Polynomial shown = x;
  if (is_constant(b) && constant_term(b) > 2)
    for (DimTerm& term : shown)
      if (!term.factors.empty() && term.coefficient == constant_term(b) - 1) term.coefficient = -1;
  for (const DimTerm& term : *t)
    result.terms.push_back({term.coefficient, term.factors, Operation::modulo, {shown, b}});
  return result;
}

// t*(x//k) - t*y = t*((x - k*y)//k), for monomials y of x: (n - 1)//2 instead of (n + 1)//2 - 1.
std::optional<Rewriting> as_wider_division(const DimNode* atom, const Linear& linear) {
  Polynomial x = to_polynomial(atom->operands[0]);
  const Polynomial k = to_polynomial(atom->operands[1]);
  if (!is_constant(k) || linear.cofactor.size() != 1) return std::nullopt;
  const DimTerm& t = linear.cofactor[0];
  Rewriting result;
  result.others = linear.others;
  const Polynomial dividend = x;
  for (const DimTerm& term : dividend) {
    const Polynomial y = {{term.factors, 1}};
    const Polynomial scaled_y = product(y, linear.cofactor);
    if (term.coefficient < 0 ||
        coefficient_of(result.others, scaled_y[0].factors) != -t.coefficient)
      continue;
    x = difference(x, product(y, k));
    result.others = sum(result.others, scaled_y);
  }
  if (x == dividend || x[0].factors.empty() || x[0].coefficient < 0) return std::nullopt;
  result.terms.push_back({t.coefficient, t.factors, Operation::floor_divide, {x, k}});
  return result;
}

// t*min(s...) + others = |t|*max(h - s...) + (others - |t|*h) for t < 0, and
// t*min(s...) + others = t*min(s + h...) + (others - t*h) for any t, where h is a part of others.
std::optional<Rewriting> with_summand(const DimNode* atom, const Linear& linear,
                                      const Polynomial& h) {
  const DimTerm& t = linear.cofactor[0];
  const bool is_maximum = t.coefficient < 0;
  const std::int64_t size = std::abs(t.coefficient);
  Rewriting result;
  result.others = difference(linear.others, product(h, {{t.factors, size}}));
  WrittenTerm term{size, t.factors, is_maximum ? Operation::maximum : Operation::minimum, {}};
  for (const Dim operand : atom->operands)
    term.operands.push_back(is_maximum ? difference(h, to_polynomial(operand))
                                       : sum(to_polynomial(operand), h));
  // In order of text, constants last, like the operands of atoms.
  std::sort(term.operands.begin(), term.operands.end(),
            [](const Polynomial& a, const Polynomial& b) {
              return std::pair(is_constant(a), text_of_operand(a)) <
                     std::pair(is_constant(b), text_of_operand(b));
            });
  result.terms.push_back(std::move(term));
  return result;
}

std::optional<Rewriting> as_extreme(const DimNode* atom, const Linear& linear) {
  if (linear.cofactor.size() != 1) return std::nullopt;
  const DimTerm& t = linear.cofactor[0];
  // The candidates for h: the monomials of the operands, as often as they occur in others.
  Polynomial most, available, available_sizes;
  for (const Dim operand : atom->operands)
    for (const DimTerm& term : to_polynomial(operand)) {
      const Polynomial monomial = {{term.factors, 1}};
      const std::int64_t known = coefficient_of(most, term.factors);
      if (term.coefficient > known) most = sum(most, scaled(monomial, term.coefficient - known));
      std::vector<const DimNode*> outside = product(monomial, {{t.factors, 1}})[0].factors;
      const std::int64_t count = coefficient_of(linear.others, outside) / std::abs(t.coefficient);
      const bool is_wanted = t.coefficient < 0 ? count > 0 : count < 0 && !term.factors.empty();
      if (!is_wanted || coefficient_of(available, term.factors) != 0) continue;
      available = sum(available, scaled(monomial, count));
      if (!term.factors.empty()) available_sizes = sum(available_sizes, scaled(monomial, count));
    }
  std::optional<Rewriting> best;
  const std::vector<Polynomial> candidates =
      t.coefficient < 0 ? std::vector<Polynomial>{most, available_sizes, available}
                        : std::vector<Polynomial>{available};
  for (const Polynomial& h : candidates) {
    auto rewriting = with_summand(atom, linear, h);
    if (!best || rewriting->others.size() < best->others.size()) best = std::move(rewriting);
  }
  if (best->others.size() >= linear.others.size()) return std::nullopt;
  return best;
}

std::size_t num_parts(const WrittenTerm& term) {
  return (std::abs(term.coefficient) != 1 ? 1 : 0) + term.factors.size() +
         (term.operation != Operation::constant ? 1 : 0);
}

bool is_division(const WrittenTerm& term) {
  return term.operation == Operation::floor_divide || term.operation == Operation::modulo;
}

// An operand of // or %. The left one may be a product, because they associate to the left.
enum class Side { left, right };
std::string text_in_division(const Polynomial& polynomial, Side side) {
  const Dim dim = to_dim(polynomial);
  const DimNode* node = DimNode::of(dim);
  bool is_bare = !node && dim.constant() >= 0;
  if (node && node->kind == DimNode::Kind::polynomial) {
    const WrittenTerm& first = node->written[0];
    const bool is_product = node->written.size() == 1 && first.coefficient > 0;
    const bool is_single = is_product && num_parts(first) == 1;
    is_bare = is_single ? !is_division(first) : is_product && side == Side::left;
  } else if (node) {
    is_bare = node->kind != DimNode::Kind::floor_divide;
  }
  return is_bare ? dim.to_string() : "(" + dim.to_string() + ")";
}

std::string text_of_operation(Operation operation, const std::vector<Polynomial>& operands) {
  if (operation == Operation::floor_divide || operation == Operation::modulo)
    return text_in_division(operands[0], Side::left) +
           (operation == Operation::floor_divide ? "//" : "%") +
           text_in_division(operands[1], Side::right);
  std::string result = operation == Operation::minimum ? "min(" : "max(";
  for (std::size_t i = 0; i < operands.size(); ++i)
    result += (i > 0 ? ", " : "") + text_of_operand(operands[i]);
  return result + ")";
}

// Whether parsing gives the canonical form back: it may not, where simplification gave up.
bool is_equal(const Rewriting& rewriting, const Polynomial& polynomial) {
  try {
    Polynomial value = rewriting.others;
    for (const WrittenTerm& term : rewriting.terms) value = sum(value, value_of(term));
    return value == polynomial;
  } catch (DimFailure) {
    return false;
  }
}

// The term without its sign.
std::string text_of_term(const WrittenTerm& term, bool is_after_minus) {
  std::vector<std::string> parts;
  const std::int64_t size = std::abs(term.coefficient);
  if (size != 1 || num_parts(term) == 0) parts.push_back(std::to_string(size));
  // A division stands alone or in parentheses, because a unary minus would bind to its left
  // operand.
  const bool is_alone = num_parts(term) == 1 && !is_after_minus;
  for (const DimNode* factor : term.factors)
    parts.push_back(factor->kind == DimNode::Kind::floor_divide && !is_alone
                        ? "(" + factor->text + ")"
                        : factor->text);
  if (term.operation != Operation::constant) {
    const std::string text = text_of_operation(term.operation, term.operands);
    parts.push_back(is_division(term) && !is_alone ? "(" + text + ")" : text);
  }
  std::string result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) result += "*" + parts[i];
  return result;
}

// The order of the terms of a sum: products before single sizes, added terms before subtracted
// ones, the constant last; but "512-n" instead of "-n+512".
std::vector<WrittenTerm> in_written_order(std::vector<WrittenTerm> terms) {
  struct Ranked {
    int rank;
    std::size_t num_factors;
    std::string text;
    WrittenTerm term;
  };
  std::vector<Ranked> ranked;
  bool is_any_added = false;
  for (WrittenTerm& term : terms) {
    const std::size_t num_factors =
        term.factors.size() + (term.operation != Operation::constant ? 1 : 0);
    is_any_added = is_any_added || (num_factors > 0 && term.coefficient > 0);
    WrittenTerm unit = term;
    unit.coefficient = 1;
    ranked.push_back(
        {term.coefficient > 0 ? 1 : 2, num_factors, text_of_term(unit, false), std::move(term)});
  }
  for (Ranked& entry : ranked)
    if (entry.num_factors == 0) entry.rank = is_any_added || entry.term.coefficient < 0 ? 3 : 0;
  std::stable_sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.num_factors != b.num_factors) return a.num_factors > b.num_factors;
    return a.text < b.text;
  });
  std::vector<WrittenTerm> result;
  for (Ranked& entry : ranked) result.push_back(std::move(entry.term));
  return result;
}

// Recursive descent over Python's grammar for + - * // % and parentheses. Values are polynomials,
// so that only the result and its atoms are interned.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Polynomial parse_all() {
    if (text_.size() > longest_text)
      fail("it is longer than " + std::to_string(longest_text) + " characters");
    Polynomial result = parse_sum();
    if (position_ < text_.size()) fail("nothing is expected", position_);
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    constexpr std::size_t longest = 60;
    const std::string shown = text_.size() <= longest
                                  ? std::string(text_)
                                  : std::string(text_.substr(0, longest)) + "...";
    throw ValueError("\"" + shown + "\" is no size: " + reason,
                     "write sizes as \"n\", \"2*n+1\", \"min(n, 512)\", \"n//2\", \"n%8\"");
  }
  [[noreturn]] void fail(const std::string& reason, std::size_t position) const {
    fail(reason + " at position " + std::to_string(position));
  }

  // Arithmetic on parsed values, with failures reported as errors of the text.
  template <class Function>
  Polynomial compute(const Function& function, std::size_t position) const {
    try {
      return function();
    } catch (const DimFailure failure) {
      switch (failure) {
        case DimFailure::overflow:
          fail("an integer leaves 62 bits", position);
        case DimFailure::division_by_zero:
          fail("it divides by zero", position);
        default:
          fail("it is too long when multiplied out", position);
      }
    }
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }

  Polynomial parse_sum() {
    Polynomial result = parse_product();
    while (true) {
      skip_spaces();
      const std::size_t position = position_;
      if (take("+")) {
        const Polynomial right = parse_product();
        result = compute([&] { return sum(result, right); }, position);
      } else if (take("-")) {
        const Polynomial right = parse_product();
        result = compute([&] { return difference(result, right); }, position);
      } else {
        return result;
      }
    }
  }

  Polynomial parse_product() {
    Polynomial result = parse_factor();
    while (true) {
      skip_spaces();
      const std::size_t position = position_;
      if (take("*")) {
        const Polynomial right = parse_factor();
        result = compute([&] { return product(result, right); }, position);
      } else if (take("//")) {
        const Polynomial right = parse_factor();
        result = compute([&] { return quotient(result, right); }, position);
      } else if (take("%")) {
        const Polynomial right = parse_factor();
        result = compute(
            [&] { return difference(result, product(right, quotient(result, right))); }, position);
      } else {
        return result;
      }
    }
  }

  Polynomial parse_factor() {
    bool is_negative = false;
    while (take("-")) is_negative = !is_negative;
    const std::size_t position = position_;
    Polynomial result = parse_primary();
    if (!is_negative) return result;
    return compute([&] { return scaled(result, -1); }, position);
  }

  Polynomial parse_primary() {
    skip_spaces();
    const std::size_t position = position_;
    if (take("(")) {
      Polynomial result = parse_nested(position);
      if (!take(")")) fail("\")\" is expected", position_);
      return result;
    }
    if (position < text_.size() && text_[position] >= '0' && text_[position] <= '9')
      return parse_integer();
    const std::string_view name = take_name();
    if (name.empty()) fail("a number, a name or \"(\" is expected", position);
    if ((name == "min" || name == "max") && take("("))
      return parse_extreme(name == "max", position);
    return to_polynomial(Dim::size(name));
  }

  Polynomial parse_nested(std::size_t position) {
    if (++nesting_ > deepest_nesting)
      fail("more than " + std::to_string(deepest_nesting) + " parentheses are open", position);
    Polynomial result = parse_sum();
    --nesting_;
    return result;
  }

  // max(a, b) = -min(-a, -b)
  Polynomial parse_extreme(bool is_maximum, std::size_t position) {
    const std::int64_t sign = is_maximum ? -1 : 1;
    std::vector<Polynomial> operands;
    do {
      const Polynomial operand = parse_nested(position);
      operands.push_back(compute([&] { return scaled(operand, sign); }, position));
    } while (take(","));
    if (!take(")")) fail("\",\" or \")\" is expected", position_);
    if (operands.size() > most_operands)
      fail("more than " + std::to_string(most_operands) + " operands", position);
    return compute([&] { return scaled(minimum_of(std::move(operands)), sign); }, position);
  }

  Polynomial parse_integer() {
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value >= Interval::infinite)
      fail("an integer leaves 62 bits", position_);
    position_ += static_cast<std::size_t>(end - begin);
    return to_polynomial(value);
  }

  std::string_view take_name() {
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const std::size_t begin = position_;
    if (begin >= text_.size() || !is_letter(text_[begin])) return {};
    while (position_ < text_.size() && (is_letter(text_[position_]) || text_[position_] == '\'' ||
                                        (text_[position_] >= '0' && text_[position_] <= '9')))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int nesting_ = 0;
};

}  // namespace

std::vector<WrittenTerm> written_terms(const Polynomial& polynomial) {
  std::vector<WrittenTerm> result;
  Polynomial rest = polynomial;
  for (const DimNode* atom : compound_atoms(polynomial)) {
    const auto linear = linear_in(rest, atom);
    if (!linear || linear->cofactor.empty()) continue;
    std::optional<Rewriting> rewriting;
    try {
      if (atom->kind == DimNode::Kind::minimum)
        rewriting = as_extreme(atom, *linear);
      else
        rewriting = as_modulo(atom, *linear);
      if (!rewriting && atom->kind == DimNode::Kind::floor_divide)
        rewriting = as_wider_division(atom, *linear);
    } catch (DimFailure) {
      continue;  // the other form does not fit in 62 bits
    }
    if (!rewriting || !is_equal(*rewriting, rest)) continue;
    for (WrittenTerm& term : rewriting->terms) result.push_back(std::move(term));
    rest = std::move(rewriting->others);
  }
  for (DimTerm& term : rest) result.push_back({term.coefficient, std::move(term.factors), {}, {}});
  return in_written_order(std::move(result));
}

Polynomial value_of(const WrittenTerm& term) {
  Polynomial value = to_polynomial(1);
  if (term.operation == Operation::floor_divide || term.operation == Operation::modulo) {
    value = quotient(term.operands[0], term.operands[1]);
    if (term.operation == Operation::modulo)
      value = difference(term.operands[0], product(term.operands[1], value));
  } else if (term.operation != Operation::constant) {
    const std::int64_t sign = term.operation == Operation::maximum ? -1 : 1;
    std::vector<Polynomial> operands = term.operands;
    for (Polynomial& operand : operands) operand = scaled(operand, sign);
    value = scaled(minimum_of(std::move(operands)), sign);
  }
  return product(value, {{term.factors, term.coefficient}});
}

std::string text_of(const std::vector<WrittenTerm>& terms) {
  std::string result;
  for (const WrittenTerm& term : terms) {
    const bool is_first = result.empty();
    const bool is_subtracted = term.coefficient < 0;
    result += is_subtracted ? "-" : is_first ? "" : "+";
    result += text_of_term(term, is_first && is_subtracted);
  }
  return result;
}

std::string text_of_atom(const DimNode& atom) {
  std::vector<Polynomial> operands;
  for (const Dim operand : atom.operands) operands.push_back(to_polynomial(operand));
  const bool is_minimum = atom.kind == DimNode::Kind::minimum;
  return text_of_operation(is_minimum ? Operation::minimum : Operation::floor_divide, operands);
}

}  // namespace plait::sizes

namespace plait {

Dim Dim::parse(std::string_view text) {
  using namespace sizes;
  Parser parser(text);
  const Polynomial polynomial = parser.parse_all();
  try {
    return to_dim(polynomial);
  } catch (DimFailure) {
    throw ValueError("a size is too long: more than " + std::to_string(longest_text) +
                         " characters when multiplied out",
                     "give parts of it names of their own");
  }
}

}  // namespace plait
