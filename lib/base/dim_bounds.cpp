// Bounds of size expressions: what can be proven about an expression for all values of its named
// sizes, which are integers >= 0.
//
// The interval of each term alone is not enough: n - n//2 would have no bounds. So divisions and
// minima are replaced by their bounds, one after the other, and the sum is simplified in between:
//   k*(x//k) = x - r with 0 <= r < k;   min(a, b) <= a, <= b, and is one of them.
// The search is bounded in steps, so an answer may be weaker than the truth, never wrong, and is
// the same in every process.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/dim_node.h"

namespace plait::sizes {
namespace {

constexpr std::int64_t infinite = Interval::infinite;

// The bound itself or, outside 62 bits, the nearest one that is not stronger.
std::int64_t saturated(__int128 value) {
  return static_cast<std::int64_t>(
      std::clamp<__int128>(value, -__int128{infinite}, __int128{infinite}));
}

Interval sum_of(Interval a, Interval b) {
  const bool has_lower = a.lower != -infinite && b.lower != -infinite;
  const bool has_upper = a.upper != infinite && b.upper != infinite;
  return {has_lower ? saturated(__int128{a.lower} + b.lower) : -infinite,
          has_upper ? saturated(__int128{a.upper} + b.upper) : infinite};
}

Interval product_of(Interval a, Interval b) {
  const auto corner = [](std::int64_t x, std::int64_t y) { return saturated(__int128{x} * y); };
  const auto [lower, upper] = std::minmax({corner(a.lower, b.lower), corner(a.lower, b.upper),
                                           corner(a.upper, b.lower), corner(a.upper, b.upper)});
  return {lower, upper};
}

Interval square_of(Interval a) {
  const Interval corners = product_of(a, a);
  const std::int64_t low = saturated(__int128{a.lower} * a.lower);
  const std::int64_t high = saturated(__int128{a.upper} * a.upper);
  return {a.lower <= 0 && a.upper >= 0 ? 0 : std::min(low, high), corners.upper};
}

Interval interval_of_factors(const std::vector<const DimNode*>& factors) {
  Interval result{1, 1};
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const bool is_square = i + 1 < factors.size() && factors[i] == factors[i + 1];
    const Interval bounds = factors[i]->bounds;
    result = product_of(result, is_square ? square_of(bounds) : bounds);
    if (is_square) ++i;
  }
  return result;
}

struct Search {
  std::int64_t target;  // a bound this good is enough
  int steps;
};

std::int64_t lower_bound(const Polynomial& p, Search& search);

// Adds amount to a lower bound, which may be absent.
std::int64_t shifted(std::int64_t bound, __int128 amount) {
  return bound == -infinite ? bound : saturated(bound + amount);
}

// p = cofactor * min(s...) + others.
std::int64_t lower_bound_through_minimum(const DimNode* atom, const Linear& p, Search& search) {
  std::vector<Polynomial> replaced;
  for (const Dim operand : atom->operands)
    replaced.push_back(sum(p.others, product(p.cofactor, to_polynomial(operand))));
  if (interval_of(p.cofactor).upper > 0) {
    std::int64_t smallest = infinite;
    for (const Polynomial& candidate : replaced) {
      smallest = std::min(smallest, lower_bound(candidate, search));
      if (smallest == -infinite) break;
    }
    return smallest;
  }
  // A cofactor <= 0 makes every operand a bound, and their mean: -2*min(a, b) >= -a - b.
  const auto count = static_cast<std::int64_t>(atom->operands.size());
  if (const auto share = exact_quotient(p.cofactor, to_polynomial(count))) {
    Polynomial mean = p.others;
    for (const Dim operand : atom->operands)
      mean = sum(mean, product(*share, to_polynomial(operand)));
    replaced.push_back(std::move(mean));
  }
  std::int64_t best = -infinite;
  for (const Polynomial& candidate : replaced) best = std::max(best, interval_of(candidate).lower);
  for (const Polynomial& candidate : replaced) {
    if (best >= search.target) break;
    best = std::max(best, lower_bound(candidate, search));
  }
  return best;
}

// p = cofactor * (x // b) + others.
std::int64_t lower_bound_through_division(const DimNode* atom, const Linear& p, Search& search) {
  const Polynomial x = to_polynomial(atom->operands[0]), b = to_polynomial(atom->operands[1]);
  const Interval divisor = interval_of(b);
  if (divisor.lower < 0) return -infinite;
  if (const auto multiple = exact_quotient(p.cofactor, b); multiple && is_constant(*multiple)) {
    // p = t*(x - r) + others, 0 <= r <= b - 1.
    const std::int64_t t = constant_term(*multiple);
    Polynomial replaced = sum(p.others, scaled(x, t));
    if (t > 0) replaced = sum(difference(replaced, scaled(b, t)), to_polynomial(t));
    return lower_bound(replaced, search);
  }
  std::int64_t best = -infinite;
  if (is_constant(b) && is_constant(p.cofactor)) {
    // k*p = c*(x - r) + k*others, 0 <= r <= k - 1.
    const std::int64_t k = constant_term(b), c = constant_term(p.cofactor);
    const std::int64_t bound = lower_bound(sum(scaled(p.others, k), scaled(x, c)), search);
    const std::int64_t with_rest = c > 0 ? shifted(bound, -__int128{c} * (k - 1)) : bound;
    if (with_rest != -infinite) best = -floor_divide_integers(-with_rest, k);
  }
  // x // b <= x when x >= 0.
  if (best < search.target && interval_of(p.cofactor).upper <= 0 && interval_of(x).lower >= 0)
    best = std::max(best, lower_bound(sum(p.others, product(p.cofactor, x)), search));
  return best;
}

std::int64_t lower_bound(const Polynomial& p, Search& search) {
  std::int64_t best = interval_of(p).lower;
  if (best >= search.target || search.steps <= 0 || p.size() < 2) return best;
  search.steps -= 1 + static_cast<int>(p.size() / 8);  // about proportional to the time
  const std::vector<const DimNode*> common = common_factors({&p, 1});
  const Interval factor = interval_of_factors(common);
  if (!common.empty() && factor.lower >= 0) {
    Polynomial rest;
    for (const DimTerm& term : p)
      rest.push_back({*without_factors(term.factors, common), term.coefficient});
    Search inner{std::max<std::int64_t>(search.target, 0), search.steps};
    const std::int64_t bound = lower_bound(rest, inner);
    search.steps = inner.steps;
    return std::max(best, product_of(factor, {bound, std::max<std::int64_t>(bound, 0)}).lower);
  }
  for (const DimNode* atom : compound_atoms(p)) {
    const auto linear = linear_in(p, atom);
    if (!linear) continue;
    try {
      best = std::max(best, atom->kind == DimNode::Kind::minimum
                                ? lower_bound_through_minimum(atom, *linear, search)
                                : lower_bound_through_division(atom, *linear, search));
    } catch (DimFailure) {
      // A step that overflows 62 bits proves nothing.
    }
    if (best >= search.target || search.steps <= 0) break;
  }
  return best;
}

constexpr int most_steps = 60;

}  // namespace

Interval interval_of(const Polynomial& polynomial) {
  Interval result{0, 0};
  for (const DimTerm& term : polynomial)
    result = sum_of(result, product_of(interval_of_factors(term.factors),
                                       {term.coefficient, term.coefficient}));
  return result;
}

Interval bounds_of(const Polynomial& polynomial) {
  Search below{infinite, most_steps}, above{infinite, most_steps};
  const std::int64_t lower = lower_bound(polynomial, below);
  return {lower, -lower_bound(scaled(polynomial, -1), above)};
}

bool is_at_least(const Polynomial& polynomial, std::int64_t value) {
  Search search{value, most_steps};
  return lower_bound(polynomial, search) >= value;
}

}  // namespace plait::sizes
