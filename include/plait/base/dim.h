// Sizes of arrays: integers, or expressions over named sizes ("n", "2*n+1", "min(n, 512)").
//
// A Dim is one machine word: an integer, or a pointer to an interned expression in canonical form,
// so that == is a comparison of words. Integers cost nothing. A named size stands for an integer >=
// 0 and is bound by the jaxpr that uses it. Arithmetic that leaves 62 bits is a ShapeError. A
// quotient is simplified as if its divisor were not zero: n*d//d is n.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
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
  constexpr Dim() = default;  // 0
  constexpr Dim(std::int64_t value)
      : word_(word_of(value)) {}  // NOLINT: sizes are written as integers
  // A named size; the same name is the same size. ValueError unless it is a letter or "_", then
  // letters, digits, "_" and "'".
  static Dim size(std::string_view name);
  // Reads "n", "4*n+4", "min(n, 512)", "n//2", "n%8" with Python's meaning; ValueError when the
  // text is not a size.
  static Dim parse(std::string_view text);

  bool is_constant() const { return (word_ & 1) == 0; }
  std::int64_t constant() const;  // InternalError for an expression
  bool is_size() const;           // exactly one named size
  std::string_view name() const;  // of a named size; InternalError for others

  // Interval bounds that hold for all values (>= 0) of the named sizes; nullopt where there is no
  // bound or none is known.
  std::optional<std::int64_t> lower_bound() const;
  std::optional<std::int64_t> upper_bound() const;

  // The named sizes this expression mentions, in order of name.
  std::vector<Dim> sizes() const;
  // Replaces named sizes by expressions; sizes not in the list stay.
  Dim substitute(std::span<const std::pair<Dim, Dim>> replacements) const;
  // The value when each named size has the given value; ValueError names a size that has none.
  std::int64_t evaluate(
      const std::function<std::optional<std::int64_t>(std::string_view)>& value_of) const;

  // How an expression is built, for interpreters of sizes (mask): the operation and its operands,
  // in the order of to_string. A sum or product of k terms is a left-nested chain of binary
  // operations.
  enum class Operation { constant, size, add, multiply, floor_divide, modulo, minimum, maximum };
  Operation operation() const;
  std::pair<Dim, Dim> operands() const;  // of the six binary operations

  std::string to_string() const;  // parse(to_string()) == *this
  std::size_t hash() const { return std::hash<std::int64_t>{}(word_); }
  bool operator==(const Dim&) const = default;  // equality of canonical forms

  friend Dim operator+(Dim a, Dim b);
  friend Dim operator-(Dim a, Dim b);
  friend Dim operator*(Dim a, Dim b);

 private:
  friend struct DimNode;
  std::int64_t word_ = 0;  // value * 2, or pointer | 1

  static constexpr Dim from_word(std::int64_t word) {
    Dim dim;
    dim.word_ = word;
    return dim;
  }
  static constexpr std::int64_t word_of(std::int64_t value) {
    std::int64_t word = 0;
    if (__builtin_mul_overflow(value, 2, &word)) throw_overflow(value);
    return word;
  }
  [[noreturn]] static void throw_overflow(std::int64_t value);
  static bool are_constant(Dim a, Dim b) { return ((a.word_ | b.word_) & 1) == 0; }
  static Dim add(Dim a, Dim b);
  static Dim subtract(Dim a, Dim b);
  static Dim multiply(Dim a, Dim b);
};

// A word is twice the value, so that its 64-bit overflow is that of a 63-bit integer.
inline Dim operator+(Dim a, Dim b) {
  std::int64_t word = 0;
  const bool done = Dim::are_constant(a, b) && !__builtin_add_overflow(a.word_, b.word_, &word);
  return done ? Dim::from_word(word) : Dim::add(a, b);
}
inline Dim operator-(Dim a, Dim b) {
  std::int64_t word = 0;
  const bool done = Dim::are_constant(a, b) && !__builtin_sub_overflow(a.word_, b.word_, &word);
  return done ? Dim::from_word(word) : Dim::subtract(a, b);
}
inline Dim operator*(Dim a, Dim b) {
  std::int64_t word = 0;
  const bool done = Dim::are_constant(a, b) && !__builtin_mul_overflow(a.word_ / 2, b.word_, &word);
  return done ? Dim::from_word(word) : Dim::multiply(a, b);
}
inline Dim operator-(Dim a) { return Dim(0) - a; }
Dim floor_divide(Dim a, Dim b);  // rounds down, as Python's //; ShapeError when b is 0
Dim modulo(Dim a, Dim b);        // sign of the divisor, as Python's %
Dim ceil_divide(Dim a, Dim b);   // rounds up
Dim minimum(Dim a, Dim b);
Dim maximum(Dim a, Dim b);

// Whether a <= b (a == b) for all sizes or for none; nullopt where it depends or cannot be decided.
std::optional<bool> less_equal(Dim a, Dim b);
std::optional<bool> equal(Dim a, Dim b);
std::ostream& operator<<(std::ostream& out, Dim dim);

}  // namespace plait

template <>
struct std::hash<plait::Dim> {
  std::size_t operator()(plait::Dim dim) const { return dim.hash(); }
};
