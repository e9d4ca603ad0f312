// The canonical forms of floor divisions and minima, see NOTE: [canonical sizes].
//
// Every step is an identity over the integers: for all values where the operation is defined, the
// result has the value of the operation on the operands as given.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/dim_node.h"

namespace plait::sizes {
namespace {

// An atom, or its value where that is the same for all sizes: (-1)//n is -1.
Polynomial make_atom(DimNode::Kind kind, std::vector<Dim> operands) {
  const DimNode* atom = intern({.kind = kind,
                                .name = {},
                                .operands = std::move(operands),
                                .terms = {},
                                .mentioned = {},
                                .bounds = {},
                                .written = {},
                                .weight = 1,
                                .text = {}});
  const Interval bounds = atom->bounds;
  return bounds.lower == bounds.upper ? to_polynomial(bounds.lower) : to_polynomial(atom);
}

Polynomial quotient_atom(const Polynomial& a, const Polynomial& b) {
  return make_atom(DimNode::Kind::floor_divide, {to_dim(a), to_dim(b)});
}

bool has_division(const DimTerm& term) {
  return std::any_of(term.factors.begin(), term.factors.end(), [](const DimNode* factor) {
    return factor->kind == DimNode::Kind::floor_divide;
  });
}

struct Division {
  Polynomial quotient, rest;
};

// a = quotient * (coefficient * factors) + rest, where the remainders of the divisible terms have
// coefficients in [0, coefficient). Terms with a division in them move only when they divide
// exactly: with x%6 = x - 6*(x//6), (x%6)//4 would otherwise become (x + 2*(x//6))//4 - 2*(x//6).
Division divide_terms(const Polynomial& a, std::int64_t coefficient,
                      const std::vector<const DimNode*>& factors) {
  Division result;
  for (const DimTerm& term : a) {
    const auto left = without_factors(term.factors, factors);
    std::int64_t whole = left ? floor_divide_integers(term.coefficient, coefficient) : 0;
    if (has_division(term) && term.coefficient % coefficient != 0) whole = 0;
    if (whole != 0) result.quotient = sum(result.quotient, {{*left, whole}});
    const std::int64_t rest = term.coefficient - whole * coefficient;
    if (rest != 0) result.rest.push_back({term.factors, rest});
  }
  return result;
}

// The division x // j among the terms, if it is the only one and its coefficient is 1.
const DimNode* only_division(const Polynomial& polynomial) {
  const DimNode* found = nullptr;
  for (const DimTerm& term : polynomial) {
    if (!has_division(term)) continue;
    if (found || term.coefficient != 1 || term.factors.size() != 1) return nullptr;
    found = term.factors[0];
  }
  return found;
}

Polynomial quotient_by_constant(const Polynomial& a, std::int64_t k) {
  // (k*q + r) // k = q + r // k
  auto [whole, rest] = divide_terms(a, k, {});
  if (is_constant(rest)) return whole;
  // Computed only now: of equal expressions, bounds may be found for one and not for the other.
  const Interval bounds = bounds_of(rest);
  if (bounds.lower != -Interval::infinite && bounds.upper != Interval::infinite) {
    const std::int64_t lowest = floor_divide_integers(bounds.lower, k);
    if (lowest == floor_divide_integers(bounds.upper, k)) return sum(whole, to_polynomial(lowest));
  }
  // (g*x + c) // (g*k) = (x + c//g) // k
  std::int64_t divisor = k;
  for (const DimTerm& term : rest)
    if (!term.factors.empty()) divisor = std::gcd(divisor, term.coefficient);
  if (divisor > 1) {
    for (DimTerm& term : rest) term.coefficient = floor_divide_integers(term.coefficient, divisor);
    std::erase_if(rest, [](const DimTerm& term) { return term.coefficient == 0; });
    return sum(whole, quotient(rest, to_polynomial(k / divisor)));
  }
  // (x//j + y) // k = (x + j*y) // (j*k) for k > 0
  if (const DimNode* inner = only_division(rest)) {
    const Polynomial x = to_polynomial(inner->operands[0]), j = to_polynomial(inner->operands[1]);
    const Polynomial y = difference(rest, to_polynomial(inner));
    if (is_constant(j) || y.empty())
      return sum(whole, quotient(sum(x, product(j, y)), scaled(j, k)));
  }
  if (!whole.empty()) return sum(whole, quotient(rest, to_polynomial(k)));
  return quotient_atom(rest, to_polynomial(k));
}

void divide_by_factors(Polynomial& polynomial, const std::vector<const DimNode*>& factors,
                       std::int64_t coefficient) {
  for (DimTerm& term : polynomial) {
    term.factors = *without_factors(term.factors, factors);
    term.coefficient /= coefficient;
  }
}

std::int64_t common_coefficient(std::span<const Polynomial> polynomials) {
  std::int64_t divisor = 0;
  for (const Polynomial& polynomial : polynomials)
    for (const DimTerm& term : polynomial) divisor = std::gcd(divisor, term.coefficient);
  return std::max<std::int64_t>(divisor, 1);
}

Polynomial quotient_by_sizes(const Polynomial& a, const Polynomial& b) {
  if (auto exact = exact_quotient(a, b)) return *exact;
  Polynomial whole, rest = a;
  if (b.size() == 1) {
    auto [quotient, left] = divide_terms(a, b[0].coefficient, b[0].factors);
    whole = std::move(quotient);
    rest = std::move(left);
  }
  if (rest.empty()) return whole;
  // A common factor of dividend and divisor cancels.
  Polynomial shared[] = {rest, b};
  const std::vector<const DimNode*> factors = common_factors(shared);
  const std::int64_t coefficient = common_coefficient(shared);
  if (!factors.empty() || coefficient > 1) {
    for (Polynomial& polynomial : shared) divide_by_factors(polynomial, factors, coefficient);
    return sum(whole, quotient(shared[0], shared[1]));
  }
  // 0 <= x < b gives 0, -b <= x < 0 gives -1.
  if (is_at_least(rest, 0) && is_at_least(difference(b, rest), 1)) return whole;
  if (is_at_least(scaled(rest, -1), 1) && is_at_least(sum(b, rest), 0))
    return difference(whole, to_polynomial(1));
  // (x//j) // b = x // (j*b) for b > 0
  if (const DimNode* inner = only_division(rest); inner && rest.size() == 1 && is_at_least(b, 0))
    return sum(whole, quotient(to_polynomial(inner->operands[0]),
                               product(to_polynomial(inner->operands[1]), b)));
  if (!whole.empty()) return sum(whole, quotient(rest, b));
  return quotient_atom(rest, b);
}

// The summand that all operands share: of each monomial the smallest coefficient, where absent ones
// count as 0. min(n - m, 0) is min(n, m) - m, so that it matches -max(m - n, 0). Monomials that
// hold minima are taken out only when every operand has them; otherwise each maximum of two would
// turn into a larger minimum.
Polynomial common_summand(const std::vector<Polynomial>& operands) {
  Polynomial all;
  for (const Polynomial& operand : operands)
    for (const DimTerm& term : operand) all.push_back(term);
  Polynomial result;
  for (const DimTerm& term : all) {
    std::int64_t smallest = term.coefficient, largest = term.coefficient;
    for (const Polynomial& operand : operands) {
      const auto found = std::find_if(operand.begin(), operand.end(), [&](const DimTerm& other) {
        return other.factors == term.factors;
      });
      const std::int64_t coefficient = found == operand.end() ? 0 : found->coefficient;
      smallest = std::min(smallest, coefficient);
      largest = std::max(largest, coefficient);
    }
    const bool has_minimum =
        std::any_of(term.factors.begin(), term.factors.end(),
                    [](const DimNode* factor) { return factor->kind == DimNode::Kind::minimum; });
    if (has_minimum) smallest = smallest > 0 ? smallest : std::min<std::int64_t>(largest, 0);
    const bool is_seen = std::any_of(result.begin(), result.end(), [&](const DimTerm& other) {
      return other.factors == term.factors;
    });
    if (smallest != 0 && !is_seen) result = sum(result, {{term.factors, smallest}});
  }
  return result;
}

// The minimum that operand = c*min(s...) + rest holds, with c >= 0; null if there is none.
const DimNode* outer_minimum(const Polynomial& operand) {
  for (const DimTerm& term : operand) {
    if (term.coefficient < 0) continue;
    for (const DimNode* atom : term.factors) {
      const auto linear = linear_in(operand, atom);
      if (atom->kind == DimNode::Kind::minimum && linear && linear->cofactor.size() == 1 &&
          interval_of(linear->cofactor).lower >= 0)
        return atom;
    }
  }
  return nullptr;
}

// c*min(s...) + rest becomes the operands c*s + rest, unless they become too many.
void flatten(std::vector<Polynomial>& operands) {
  for (std::size_t i = 0; i < operands.size();) {
    const DimNode* atom = outer_minimum(operands[i]);
    if (!atom || operands.size() + atom->operands.size() - 1 > most_operands) {
      ++i;
      continue;
    }
    const Linear linear = *linear_in(operands[i], atom);
    operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    for (const Dim inner : atom->operands)
      operands.push_back(sum(product(linear.cofactor, to_polynomial(inner)), linear.others));
  }
}

// Drops operands that are never smaller than another.
void drop_bounded(std::vector<Polynomial>& operands) {
  for (std::size_t i = 0; i < operands.size();) {
    bool is_bounded = false;
    for (std::size_t j = 0; j < operands.size() && !is_bounded; ++j)
      is_bounded = j != i && is_at_least(difference(operands[i], operands[j]), 0);
    if (is_bounded)
      operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

std::vector<Polynomial> to_polynomials(const std::vector<Dim>& dims) {
  std::vector<Polynomial> result;
  for (const Dim dim : dims) result.push_back(to_polynomial(dim));
  return result;
}

// In order of text, constants last, so that min(a, b) and min(b, a) are the same.
std::vector<Dim> in_order(const std::vector<Polynomial>& operands) {
  std::vector<Dim> dims;
  for (const Polynomial& operand : operands) dims.push_back(to_dim(operand));
  std::sort(dims.begin(), dims.end(), [](Dim a, Dim b) {
    if (a.is_constant() != b.is_constant()) return b.is_constant();
    if (a.is_constant()) return a.constant() < b.constant();
    return compare_nodes(DimNode::of(a), DimNode::of(b)) < 0;
  });
  dims.erase(std::unique(dims.begin(), dims.end()), dims.end());
  return dims;
}

}  // namespace

Polynomial quotient(Polynomial a, Polynomial b) {
  if (b.empty()) throw DimFailure::division_by_zero;
  if (a.empty()) return {};
  if (b[0].coefficient < 0) {
    a = scaled(a, -1);
    b = scaled(b, -1);
  }
  return is_constant(b) ? quotient_by_constant(a, constant_term(b)) : quotient_by_sizes(a, b);
}

Polynomial minimum_of(std::vector<Polynomial> operands) {
  // Before any operand is rewritten: min(n, 3) <= min(n, 10) is decided here.
  operands = to_polynomials(in_order(operands));
  drop_bounded(operands);
  if (operands.size() == 1) return operands[0];
  const Polynomial summand = common_summand(operands);
  for (Polynomial& operand : operands) operand = difference(operand, summand);
  flatten(operands);
  operands = to_polynomials(in_order(operands));
  drop_bounded(operands);
  if (operands.size() == 1) return sum(summand, operands[0]);
  // Flattening and dropping may leave a larger common summand.
  if (!common_summand(operands).empty()) return sum(summand, minimum_of(std::move(operands)));
  // min(c*x, c*y) = c*min(x, y) for c >= 0
  std::vector<const DimNode*> factors = common_factors(operands);
  std::erase_if(factors, [](const DimNode* factor) { return factor->bounds.lower < 0; });
  const std::int64_t coefficient = common_coefficient(operands);
  for (Polynomial& operand : operands) divide_by_factors(operand, factors, coefficient);
  if (!factors.empty() || coefficient > 1) {
    const Polynomial inner = minimum_of(std::move(operands));
    return sum(summand, product(inner, {{factors, coefficient}}));
  }
  return sum(summand, make_atom(DimNode::Kind::minimum, in_order(operands)));
}

}  // namespace plait::sizes
