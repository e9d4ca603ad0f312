// Arithmetic of polynomials over atoms, and the table of interned expressions.
//
// Polynomials are plain values, so that bounds and parsing compute without leaving nodes behind.
// Only to_dim and the making of atoms intern.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/hash.h>

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_set>

#include "base/dim_node.h"

namespace plait::sizes {
namespace {

constexpr std::int64_t smallest = -(std::int64_t{1} << 62);
constexpr std::int64_t largest = (std::int64_t{1} << 62) - 1;
constexpr std::size_t most_terms = 5'000;  // the text of a longer sum exceeds the limit

std::int64_t checked(__int128 value) {
  if (value < smallest || value > largest) throw DimFailure::overflow;
  return static_cast<std::int64_t>(value);
}

int compare_monomials(const std::vector<const DimNode*>& a, const std::vector<const DimNode*>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const int order = compare_nodes(a[i], b[i]); order != 0) return order;
  return 0;
}

// a + factor * b
Polynomial sum_scaled(const Polynomial& a, const Polynomial& b, std::int64_t factor) {
  Polynomial result;
  result.reserve(a.size() + b.size());
  auto left = a.begin(), right = b.begin();
  while (left != a.end() || right != b.end()) {
    const int order = left == a.end()    ? 1
                      : right == b.end() ? -1
                                         : compare_monomials(left->factors, right->factors);
    if (order < 0) {
      result.push_back(*left++);
      continue;
    }
    __int128 coefficient = static_cast<__int128>(right->coefficient) * factor;
    if (order == 0) coefficient += (left++)->coefficient;
    if (coefficient != 0) result.push_back({right->factors, checked(coefficient)});
    ++right;
  }
  if (result.size() > most_terms) throw DimFailure::too_long;
  return result;
}

// a * coefficient * factors
Polynomial product_with_term(const Polynomial& a, const DimTerm& term) {
  Polynomial result = a;
  for (DimTerm& t : result) {
    t.coefficient = checked(static_cast<__int128>(t.coefficient) * term.coefficient);
    std::vector<const DimNode*> factors;
    factors.reserve(t.factors.size() + term.factors.size());
    std::merge(t.factors.begin(), t.factors.end(), term.factors.begin(), term.factors.end(),
               std::back_inserter(factors),
               [](const DimNode* x, const DimNode* y) { return compare_nodes(x, y) < 0; });
    t.factors = std::move(factors);
  }
  return result;  // the order of monomials is kept: it is a monomial order
}

struct NodeHash {
  using is_transparent = void;
  std::size_t operator()(const DimNode& node) const {
    std::size_t hash = std::hash<std::string>{}(node.name) + static_cast<std::size_t>(node.kind);
    const auto mix = [&](std::size_t value) { hash = hash_combine(hash, value); };
    for (const Dim operand : node.operands) mix(operand.hash());
    for (const DimTerm& term : node.terms) {
      mix(static_cast<std::size_t>(term.coefficient));
      for (const DimNode* factor : term.factors) mix(reinterpret_cast<std::size_t>(factor));
    }
    return hash;
  }
  std::size_t operator()(const DimNode* node) const { return operator()(*node); }
};

struct NodeEqual {
  using is_transparent = void;
  static bool is_same(const DimNode& a, const DimNode& b) {
    return a.kind == b.kind && a.name == b.name && a.operands == b.operands && a.terms == b.terms;
  }
  bool operator()(const DimNode* a, const DimNode* b) const { return is_same(*a, *b); }
  bool operator()(const DimNode& a, const DimNode* b) const { return is_same(a, *b); }
  bool operator()(const DimNode* a, const DimNode& b) const { return is_same(*a, b); }
};

struct NodeTable {
  std::mutex mutex;
  std::unordered_set<const DimNode*, NodeHash, NodeEqual> nodes;
};

NodeTable& node_table() {
  // Never destroyed, and locked around fork, like the table of sources (source.cpp).
  static NodeTable& table = *[] {
    pthread_atfork([] { node_table().mutex.lock(); }, [] { node_table().mutex.unlock(); },
                   [] { node_table().mutex.unlock(); });
    return new NodeTable;
  }();
  return table;
}

void add_sizes(std::vector<const DimNode*>& sizes, const DimNode* node) {
  if (node) sizes.insert(sizes.end(), node->mentioned.begin(), node->mentioned.end());
}

std::vector<const DimNode*> mentioned_sizes(const DimNode& node) {
  std::vector<const DimNode*> sizes;
  for (const Dim operand : node.operands) add_sizes(sizes, DimNode::of(operand));
  for (const DimTerm& term : node.terms)
    for (const DimNode* factor : term.factors) add_sizes(sizes, factor);
  std::sort(sizes.begin(), sizes.end(),
            [](const DimNode* a, const DimNode* b) { return a->name < b->name; });
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Interval bounds_of_atom(const DimNode& atom) {
  constexpr std::int64_t infinite = Interval::infinite;
  const Interval a = bounds_of(to_polynomial(atom.operands[0]));
  if (atom.kind == DimNode::Kind::minimum) {
    Interval result = a;
    for (std::size_t i = 1; i < atom.operands.size(); ++i) {
      const Interval b = bounds_of(to_polynomial(atom.operands[i]));
      result = {std::min(result.lower, b.lower), std::min(result.upper, b.upper)};
    }
    return result;
  }
  Interval b = bounds_of(to_polynomial(atom.operands[1]));
  if (b.lower < 0) {
    // |x // b| <= |x| for every divisor, as 1 <= |b|.
    if (a.lower == -infinite || a.upper == infinite) return {};
    const std::int64_t most = std::max(std::abs(a.lower), std::abs(a.upper));
    return {-most, most};
  }
  b = {std::max<std::int64_t>(b.lower, 1), std::max<std::int64_t>(b.upper, 1)};
  Interval result;
  // x // b grows with x. In b it falls towards 0 for x >= 0, and rises towards -1 for x < 0.
  if (a.lower != -infinite)
    result.lower = floor_divide_integers(a.lower, a.lower < 0 ? b.lower : b.upper);
  if (a.upper != infinite)
    result.upper = floor_divide_integers(a.upper, a.upper < 0 ? b.upper : b.lower);
  return result;
}

// One binary operation between each two parts. Nested expressions count at each occurrence, so the
// number grows fast with depth: it saturates at 2^60.
std::int64_t weight_of_node(const DimNode& node) {
  std::int64_t weight = -1;
  const auto add = [&](std::int64_t more) {
    weight = std::min(weight + more, std::int64_t{1} << 60);
  };
  for (const Dim operand : node.operands) add(1 + weight_of(operand));
  for (const DimTerm& term : node.terms) {
    if (term.coefficient != 1 || term.factors.empty()) add(2);
    for (const DimNode* factor : term.factors) add(1 + factor->weight);
  }
  return weight;
}

void check_length(const std::string& text) {
  int nesting = 0, deepest = 0;
  for (const char c : text) {
    nesting += c == '(' ? 1 : c == ')' ? -1 : 0;
    deepest = std::max(deepest, nesting);
  }
  if (text.size() > longest_text || deepest > deepest_nesting) throw DimFailure::too_long;
}

}  // namespace

std::int64_t floor_divide_integers(std::int64_t a, std::int64_t b) {
  const std::int64_t towards_zero = a / b;
  return towards_zero - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t weight_of(Dim dim) {
  const DimNode* node = DimNode::of(dim);
  return node ? node->weight : 1;
}

int compare_nodes(const DimNode* a, const DimNode* b) {
  return a == b ? 0 : a->text.compare(b->text);
}

Polynomial to_polynomial(std::int64_t value) {
  if (value == 0) return {};
  return {{{}, value}};
}

Polynomial to_polynomial(const DimNode* atom) { return {{{atom}, 1}}; }

Polynomial to_polynomial(Dim dim) {
  const DimNode* node = DimNode::of(dim);
  if (!node) return to_polynomial(dim.constant());
  return node->kind == DimNode::Kind::polynomial ? node->terms : to_polynomial(node);
}

Dim to_dim(const Polynomial& polynomial) {
  if (is_constant(polynomial)) return {constant_term(polynomial)};
  const DimTerm& first = polynomial.front();
  if (polynomial.size() == 1 && first.coefficient == 1 && first.factors.size() == 1)
    return DimNode::to_dim(first.factors[0]);
  return DimNode::to_dim(intern({.kind = DimNode::Kind::polynomial,
                                 .name = {},
                                 .operands = {},
                                 .terms = polynomial,
                                 .mentioned = {},
                                 .bounds = {},
                                 .written = {},
                                 .weight = 1,
                                 .text = {}}));
}

const DimNode* intern(DimNode node) {
  NodeTable& table = node_table();
  {
    const std::lock_guard lock(table.mutex);
    if (const auto found = table.nodes.find(node); found != table.nodes.end()) return *found;
  }
  // Without the lock: if two threads do this, the second drops its node.
  auto* made = new DimNode(std::move(node));
  try {
    if (made->kind == DimNode::Kind::size) {
      made->mentioned = {made};
      made->bounds = {0, Interval::infinite};
      made->text = made->name;
    } else {
      made->mentioned = mentioned_sizes(*made);
      made->weight = weight_of_node(*made);
      const bool is_polynomial = made->kind == DimNode::Kind::polynomial;
      made->bounds = is_polynomial ? bounds_of(made->terms) : bounds_of_atom(*made);
      if (is_polynomial) made->written = written_terms(made->terms);
      made->text = is_polynomial ? text_of(made->written) : text_of_atom(*made);
    }
    check_length(made->text);
    const std::lock_guard lock(table.mutex);
    const auto [position, inserted] = table.nodes.insert(made);
    if (!inserted) delete made;
    return *position;
  } catch (...) {
    delete made;
    throw;
  }
}

bool is_constant(const Polynomial& polynomial) {
  return polynomial.empty() || polynomial.front().factors.empty();
}

std::int64_t constant_term(const Polynomial& polynomial) {
  return !polynomial.empty() && polynomial.back().factors.empty() ? polynomial.back().coefficient
                                                                  : 0;
}

Polynomial sum(const Polynomial& a, const Polynomial& b) { return sum_scaled(a, b, 1); }
Polynomial difference(const Polynomial& a, const Polynomial& b) { return sum_scaled(a, b, -1); }

Polynomial scaled(const Polynomial& a, std::int64_t factor) {
  if (factor == 0) return {};
  return product_with_term(a, {{}, factor});
}

Polynomial product(const Polynomial& a, const Polynomial& b) {
  if (a.size() > b.size()) return product(b, a);
  if (a.size() * b.size() > 20 * most_terms) throw DimFailure::too_long;
  // Summed pairwise, so that long factors cost n log n and not n^2.
  std::vector<Polynomial> partial;
  for (const DimTerm& term : a) partial.push_back(product_with_term(b, term));
  for (; partial.size() > 1; partial.resize((partial.size() + 1) / 2))
    for (std::size_t i = 0; 2 * i < partial.size(); ++i)
      partial[i] = 2 * i + 1 < partial.size() ? sum(partial[2 * i], partial[2 * i + 1])
                                              : std::move(partial[2 * i]);
  return partial.empty() ? Polynomial{} : std::move(partial[0]);
}

std::optional<std::vector<const DimNode*>> without_factors(
    const std::vector<const DimNode*>& monomial, const std::vector<const DimNode*>& factors) {
  std::vector<const DimNode*> rest;
  std::size_t next = 0;
  for (const DimNode* factor : monomial)
    if (next < factors.size() && factor == factors[next])
      ++next;
    else
      rest.push_back(factor);
  if (next < factors.size()) return std::nullopt;
  return rest;
}

std::optional<Polynomial> exact_quotient(Polynomial a, const Polynomial& b) {
  Polynomial result;
  if (b.empty()) return std::nullopt;
  // Long division: the first term of the rest is a multiple of the first term of b, or the quotient
  // is not exact.
  for (std::size_t steps = 0; !a.empty(); ++steps) {
    auto factors = without_factors(a[0].factors, b[0].factors);
    if (!factors || a[0].coefficient % b[0].coefficient != 0 || steps > 1000) return std::nullopt;
    DimTerm term{std::move(*factors), a[0].coefficient / b[0].coefficient};
    a = difference(a, product_with_term(b, term));
    result.push_back(std::move(term));
  }
  return result;
}

std::vector<const DimNode*> common_factors(std::span<const Polynomial> polynomials) {
  std::optional<std::vector<const DimNode*>> common;
  for (const Polynomial& polynomial : polynomials)
    for (const DimTerm& term : polynomial) {
      if (!common) {
        common = term.factors;
        continue;
      }
      std::vector<const DimNode*> both;
      std::set_intersection(
          common->begin(), common->end(), term.factors.begin(), term.factors.end(),
          std::back_inserter(both),
          [](const DimNode* x, const DimNode* y) { return compare_nodes(x, y) < 0; });
      common = std::move(both);
    }
  return common.value_or(std::vector<const DimNode*>{});
}

std::vector<const DimNode*> compound_atoms(const Polynomial& polynomial) {
  std::vector<const DimNode*> atoms;
  for (const DimTerm& term : polynomial)
    for (const DimNode* factor : term.factors)
      if (factor->kind != DimNode::Kind::size) atoms.push_back(factor);
  std::sort(atoms.begin(), atoms.end(), [](const DimNode* a, const DimNode* b) {
    if (a->text.size() != b->text.size()) return a->text.size() > b->text.size();
    return compare_nodes(a, b) < 0;
  });
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms;
}

std::optional<Linear> linear_in(const Polynomial& polynomial, const DimNode* atom) {
  Linear result;
  for (const DimTerm& term : polynomial) {
    auto rest = without_factors(term.factors, {atom});
    if (!rest) {
      result.others.push_back(term);
      continue;
    }
    if (without_factors(*rest, {atom})) return std::nullopt;
    result.cofactor.push_back({std::move(*rest), term.coefficient});
  }
  return result;
}

}  // namespace plait::sizes
