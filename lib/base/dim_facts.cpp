// Orders of sizes that follow from declared ones: p >= value follows where p - k*(right - left) >=
// value does, for a fact left <= right and k >= 0. Minima that the facts decide are replaced first.
// The search is bounded in depth, so an answer may be weaker than the truth, never wrong.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/size_facts.h>

#include <algorithm>
#include <optional>

#include "base/dim_node.h"

namespace plait {
namespace {

thread_local std::vector<std::pair<Dim, Dim>> known_orders;

constexpr int deepest = 3;

using namespace sizes;

// How often to subtract a fact so that its first term in common with p cancels; 0: no such term.
std::int64_t multiple_in(const Polynomial& p, const Polynomial& fact) {
  for (const DimTerm& term : fact) {
    if (term.factors.empty()) continue;
    for (const DimTerm& other : p)
      if (other.factors == term.factors && (other.coefficient > 0) == (term.coefficient > 0))
        return std::max<std::int64_t>(1, other.coefficient / term.coefficient);
  }
  return 0;
}

bool follows(const Polynomial& p, std::int64_t value, int depth);

bool is_known_at_least(const Polynomial& p, std::int64_t value, int depth) {
  return is_at_least(p, value) || follows(p, value, depth);
}

// The least operand of a minimum, where it is known.
std::optional<Polynomial> least_operand(const DimNode* minimum, int depth) {
  for (const Dim candidate : minimum->operands) {
    const Polynomial least = to_polynomial(candidate);
    const bool is_least =
        std::all_of(minimum->operands.begin(), minimum->operands.end(), [&](Dim other) {
          return is_known_at_least(difference(to_polynomial(other), least), 0, depth);
        });
    if (is_least) return least;
  }
  return std::nullopt;
}

// With 1 <= n known, min(n, 1) is 1.
Polynomial with_known_minima(Polynomial p, int depth) {
  for (const DimNode* atom : compound_atoms(p)) {
    if (atom->kind != DimNode::Kind::minimum) continue;
    const auto linear = linear_in(p, atom);
    if (!linear) continue;
    if (const auto least = least_operand(atom, depth))
      p = sum(linear->others, product(linear->cofactor, *least));
  }
  return p;
}

bool follows(const Polynomial& p, std::int64_t value, int depth) {
  if (depth == 0) return false;
  for (const auto& [left, right] : known_orders) {
    const Polynomial fact = difference(to_polynomial(right), to_polynomial(left));
    const std::int64_t k = multiple_in(p, fact);
    if (k == 0) continue;
    const Polynomial rest = difference(p, scaled(fact, k));
    if (is_at_least(rest, value) || follows(rest, value, depth - 1)) return true;
  }
  return false;
}

}  // namespace

bool sizes::follows_from_facts(const Polynomial& polynomial, std::int64_t value) {
  return !known_orders.empty() &&
         is_known_at_least(with_known_minima(polynomial, deepest), value, deepest);
}

SizeFacts::SizeFacts(std::span<const std::pair<Dim, Dim>> orders) : previous_(known_orders.size()) {
  known_orders.insert(known_orders.end(), orders.begin(), orders.end());
}
SizeFacts::~SizeFacts() { known_orders.resize(previous_); }

NoSizeFacts::NoSizeFacts() : kept_(std::exchange(known_orders, {})) {}
NoSizeFacts::~NoSizeFacts() { known_orders = std::move(kept_); }

}  // namespace plait
