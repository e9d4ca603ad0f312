// The structure of an interned size expression, for the files that implement Dim.
//
// NOTE: [canonical sizes] An expression is a polynomial: integer coefficients, and monomials over
// three kinds of atoms: a named size, a floor division, a minimum. The rest is written with these:
// x%b is x - b*(x//b), and max(a, b) is -min(-a, -b), which comes to a + b - min(a, b) unless a or
// b hold minima. So identities between the operations, such as 8*(n//8) + n%8 == n, hold without
// rules of their own. Atoms are normalised:
//   - x//k with a constant k has coefficients in [0, k) (but for those of atoms x//j, see
//     dim_simplify.cpp), no divisor common with k, and no inner division by a constant alone;
//   - min(...) is flat, without bounded operands, without a common summand or factor.
// Text shows % and max where that is shorter (dim_text.cpp).
//
// Order is by text, never by address: it is the same in every process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plait::sizes {

// Failures inside size arithmetic; the public functions turn them into errors with values.
enum class DimFailure { overflow, division_by_zero, too_long };

struct DimTerm {
  std::vector<const DimNode*> factors;  // sorted, repeated for powers; empty for the constant term
  std::int64_t coefficient;             // not 0
  bool operator==(const DimTerm&) const = default;
};

// Sorted by degree, highest first, then by factors; no monomial twice. Empty is 0.
using Polynomial = std::vector<DimTerm>;

struct Interval {
  static constexpr std::int64_t infinite = std::int64_t{1} << 62;
  std::int64_t lower = -infinite, upper = infinite;
};

// A term as it is written: coefficient * factors, times at most one operation that is not an atom
// or whose operands are shown differently.
struct WrittenTerm {
  std::int64_t coefficient;
  std::vector<const DimNode*> factors;
  Dim::Operation operation = Dim::Operation::constant;  // constant: no further operation
  std::vector<Polynomial> operands;
};

}  // namespace plait::sizes

namespace plait {

struct DimNode {
  enum class Kind : std::uint8_t { size, floor_divide, minimum, polynomial };
  Kind kind;
  std::string name;           // of a size
  std::vector<Dim> operands;  // dividend and divisor; two or more operands of minimum
  sizes::Polynomial terms;    // of a polynomial

  // Derived from the above.
  std::vector<const DimNode*> mentioned;  // named sizes, by name
  sizes::Interval bounds;
  std::vector<sizes::WrittenTerm> written;  // of a polynomial, in order
  std::int64_t weight = 1;                  // nodes of the tree of binary operations it stands for
  std::string text;

  static const DimNode* of(Dim dim) {  // null for a constant
    return dim.is_constant() ? nullptr : reinterpret_cast<const DimNode*>(dim.word_ - 1);
  }
  static Dim to_dim(const DimNode* node) {
    return Dim::from_word(reinterpret_cast<std::int64_t>(node) | 1);
  }
};

}  // namespace plait

namespace plait::sizes {

// dim_polynomial.cpp: arithmetic that throws DimFailure, and interning.
std::int64_t floor_divide_integers(std::int64_t a, std::int64_t b);  // b not 0
std::int64_t weight_of(Dim dim);
int compare_nodes(const DimNode* a, const DimNode* b);
Polynomial to_polynomial(Dim dim);
Polynomial to_polynomial(std::int64_t value);
Polynomial to_polynomial(const DimNode* atom);
Dim to_dim(const Polynomial& polynomial);
const DimNode* intern(DimNode node);  // computes the derived members
bool is_constant(const Polynomial& polynomial);
std::int64_t constant_term(const Polynomial& polynomial);
Polynomial sum(const Polynomial& a, const Polynomial& b);
Polynomial difference(const Polynomial& a, const Polynomial& b);
Polynomial product(const Polynomial& a, const Polynomial& b);
Polynomial scaled(const Polynomial& a, std::int64_t factor);
std::optional<Polynomial> exact_quotient(Polynomial a, const Polynomial& b);
// The rest of a monomial divided by factor; nullopt if factor does not divide it.
std::optional<std::vector<const DimNode*>> without_factors(
    const std::vector<const DimNode*>& monomial, const std::vector<const DimNode*>& factors);
std::vector<const DimNode*> common_factors(std::span<const Polynomial> polynomials);
// The floor divisions and minima of a polynomial, largest text first.
std::vector<const DimNode*> compound_atoms(const Polynomial& polynomial);
// polynomial = cofactor * atom + others; nullopt unless atom occurs to the first power only.
struct Linear {
  Polynomial cofactor, others;
};
std::optional<Linear> linear_in(const Polynomial& polynomial, const DimNode* atom);

// dim_bounds.cpp.
Interval interval_of(const Polynomial& polynomial);  // term by term
Interval bounds_of(const Polynomial& polynomial);    // with dependences between terms
bool is_at_least(const Polynomial& polynomial, std::int64_t value);  // proven

// dim_facts.cpp: the same by what the user declared (size_facts.h).
bool follows_from_facts(const Polynomial& polynomial, std::int64_t value);

// dim_simplify.cpp: the canonical forms.
Polynomial quotient(Polynomial a, Polynomial b);
Polynomial minimum_of(std::vector<Polynomial> operands);

// dim_text.cpp.
std::vector<WrittenTerm> written_terms(const Polynomial& polynomial);
Polynomial value_of(const WrittenTerm& term);
std::string text_of(const std::vector<WrittenTerm>& terms);
std::string text_of_atom(const DimNode& atom);

constexpr std::size_t longest_text = 10'000;
constexpr int deepest_nesting = 200;       // of parentheses
constexpr std::size_t most_operands = 16;  // of one minimum

}  // namespace plait::sizes
