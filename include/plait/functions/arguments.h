// Types of arguments that NumPy's functions accept in several forms: axes, pad widths, split
// points, numbers that may be sizes. Part of numpy.h; catalogue.h converts arguments to them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace plait {

struct Argument;

// How much is added before and after each axis: one number for all, one pair for all, or a pair for
// each.
class PadWidth {
 public:
  static constexpr const char* argument_type = "int, (before, after), or a pair for each axis";
  static std::optional<PadWidth> from_argument(const Argument& argument);

  using Pair = std::pair<Dim, Dim>;
  PadWidth(int width) : pairs_({{width, width}}) {}                // NOLINT
  PadWidth(Dim width) : pairs_({{width, width}}) {}                // NOLINT
  PadWidth(std::initializer_list<Pair> pairs) : pairs_(pairs) {}   // NOLINT
  PadWidth(std::vector<Pair> pairs) : pairs_(std::move(pairs)) {}  // NOLINT
  // One pair for each axis; ValueError unless there is one pair or `rank` of them.
  std::vector<Pair> of(int rank, std::string_view function) const;

 private:
  std::vector<Pair> pairs_;
};

// How an array is split: into a number of sections, or before each of several indices.
class Sections {
 public:
  static constexpr const char* argument_type = "int or sequence of int";
  static std::optional<Sections> from_argument(const Argument& argument);

  Sections(int count) : count_(count) {}                               // NOLINT
  Sections(Dim count) : count_(count) {}                               // NOLINT
  Sections(std::initializer_list<Dim> indices) : indices_(indices) {}  // NOLINT
  Sections(Shape indices) : indices_(std::move(indices)) {}            // NOLINT
  std::optional<Dim> count() const { return count_; }
  const Shape& indices() const { return indices_; }

 private:
  std::optional<Dim> count_;
  Shape indices_;
};

// How often elements are repeated: all equally often, or each as an array of integers says.
class Repeats {
 public:
  static constexpr const char* argument_type = "int or array";
  static std::optional<Repeats> from_argument(const Argument& argument);

  Repeats(int count) : count_(count) {}                  // NOLINT
  Repeats(Dim count) : count_(count) {}                  // NOLINT
  Repeats(Array counts) : counts_(std::move(counts)) {}  // NOLINT
  const std::optional<Dim>& count() const { return count_; }
  const Array& counts() const { return *counts_; }  // where there is no count

 private:
  std::optional<Dim> count_;
  std::optional<Array> counts_;
};

// How far elements are moved along axes: integers, sizes, or scalars whose values are not known. A
// vector of integers counts as that many scalars.
class Shifts {
 public:
  static constexpr const char* argument_type = "int, array of integers or sequence of these";
  static std::optional<Shifts> from_argument(const Argument& argument);

  using Shift = std::variant<Dim, Array>;
  Shifts(int shift) : shifts_{Dim(shift)} {}                              // NOLINT
  Shifts(Dim shift) : shifts_{shift} {}                                   // NOLINT
  Shifts(std::initializer_list<Shift> shifts) : shifts_(shifts) {}        // NOLINT
  Shifts(const Shape& shifts) : shifts_(shifts.begin(), shifts.end()) {}  // NOLINT
  Shifts(const Array& shifts);  // NOLINT: DtypeError or ShapeError for other arrays
  const std::vector<Shift>& list() const { return shifts_; }

 private:
  std::vector<Shift> shifts_;
};

// A function of two arrays, such as lax::add: what lax::reduce folds with.
class BinaryFunction {
 public:
  static constexpr const char* argument_type = "function of two arrays";
  static constexpr bool takes_function = true;
  static std::optional<BinaryFunction> from_argument(const Argument& argument);

  template <class F>
    requires std::is_invocable_r_v<Array, F, Array, Array>
  BinaryFunction(F function) : function_(std::move(function)) {}  // NOLINT
  Array operator()(const Array& x, const Array& y) const { return function_(x, y); }

 private:
  std::function<Array(const Array&, const Array&)> function_;
};

// An integer, a size or a float, as arange takes it, or an array of one known element.
class Number {
 public:
  static constexpr const char* argument_type = "number";
  static std::optional<Number> from_argument(const Argument& argument);

  Number(int value) : value_(Dim(value)) {}           // NOLINT
  Number(std::int64_t value) : value_(Dim(value)) {}  // NOLINT
  Number(Dim value) : value_(value) {}                // NOLINT
  Number(double value) : value_(value) {}             // NOLINT
  bool is_float() const { return std::holds_alternative<double>(value_); }
  Dim dim() const { return std::get<Dim>(value_); }  // of one that is no float
  double as_double() const;                          // InternalError for a named size

 private:
  std::variant<Dim, double> value_;
};

}  // namespace plait
