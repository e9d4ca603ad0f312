// Sizes of arrays: integers, or expressions over named sizes ("n", "2*n+1", "min(n, 512)").
//
// A Dim is one machine word: an integer, or a pointer to an interned expression in canonical form, so
// that == is a comparison of words. Integers cost nothing. A named size stands for an integer >= 0
// and is bound by the jaxpr that uses it. Arithmetic that leaves 62 bits is a ShapeError.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plait {

struct DimNode;  // an interned expression; lives as long as the program

class Dim {
 public:
  constexpr Dim() = default;                               // 0
  constexpr Dim(std::int64_t value) : word_(value * 2) {}  // NOLINT: sizes are written as integers
  // A named size; the same name is the same size.
  static Dim size(std::string_view name);
  // Reads "n", "4*n+4", "min(n, 512)", "n//2", "n%8"; ValueError when text is no size.
  static Dim parse(std::string_view text);

  bool is_constant() const { return (word_ & 1) == 0; }
  std::int64_t constant() const;                 // InternalError for an expression
  bool is_size() const;                          // exactly one named size
  std::string_view name() const;                 // of a named size

  // Interval bounds that hold for every value (>= 0) of the named sizes.
  std::int64_t lower_bound() const;              // may be negative
  std::optional<std::int64_t> upper_bound() const;

  // The named sizes this expression mentions, in order of name.
  std::vector<Dim> sizes() const;
  // Replaces named sizes by expressions; sizes not in the list stay.
  Dim substitute(std::span<const std::pair<Dim, Dim>> replacements) const;
  // The value when each named size has the given value; ValueError names a size that has none.
  std::int64_t evaluate(const std::function<std::optional<std::int64_t>(std::string_view)>& value_of) const;

  // How an expression is built, for interpreters of sizes (mask): the operation and its operands.
  // A sum or product of k terms is a left-nested chain of binary operations.
  enum class Operation { constant, size, add, multiply, floor_divide, modulo, minimum, maximum };
  Operation operation() const;
  std::pair<Dim, Dim> operands() const;          // of the six binary operations

  std::string to_string() const;                 // parse(to_string()) == *this
  std::size_t hash() const { return std::hash<std::int64_t>{}(word_); }
  bool operator==(const Dim&) const = default;   // equality of canonical forms

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);
  friend Dim floor_divide(Dim a, Dim b);         // rounds down, as Python's //
  friend Dim modulo(Dim a, Dim b);               // sign of the divisor, as Python's %
  friend Dim minimum(Dim a, Dim b);
  friend Dim maximum(Dim a, Dim b);

  // Whether a <= b for all sizes, for no sizes, or undecided.
  friend std::optional<bool> less_equal(Dim a, Dim b);
  friend std::optional<bool> equal(Dim a, Dim b);

 private:
  std::int64_t word_ = 0;                        // value * 2, or pointer | 1
  friend struct DimNode;
  static Dim from_node(const DimNode* node);     // no constructor: Dim(0) would be ambiguous
  const DimNode* node() const;
};

Dim operator+(Dim a, Dim b);
Dim operator-(Dim a, Dim b);
Dim operator*(Dim a, Dim b);
inline Dim operator-(Dim a) { return Dim(0) - a; }
Dim floor_divide(Dim a, Dim b);
Dim modulo(Dim a, Dim b);
Dim minimum(Dim a, Dim b);
Dim maximum(Dim a, Dim b);
Dim ceil_divide(Dim a, Dim b);
std::optional<bool> less_equal(Dim a, Dim b);
std::optional<bool> equal(Dim a, Dim b);
std::ostream& operator<<(std::ostream& out, Dim dim);

}  // namespace plait

template <>
struct std::hash<plait::Dim> {
  std::size_t operator()(plait::Dim dim) const { return dim.hash(); }
};
