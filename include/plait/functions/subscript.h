// x[...] and x.at[...]: NumPy's subscripts, for any language.
//
// A subscript is a list of entries: integers, slices, new axes, one ellipsis, and integer or
// boolean arrays. Integers and slices lower to slice and rev. The integer arrays together lower to
// one gather or scatter, as in NumPy. The value of a boolean array must be known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/indexing.h>

#include <variant>

namespace plait {

// start:stop:step, each of which may be absent and may be named.
struct Range {
  std::optional<Dim> start = {}, stop = {}, step = {};
};
struct NewAxis {};
struct Ellipsis {};
class Subscript : public std::variant<Dim, Range, NewAxis, Ellipsis, Array> {
 public:
  using variant::variant;
  template <std::integral Integer>
    requires(!std::is_same_v<Integer, bool>)
  Subscript(Integer index) : variant(Dim(std::int64_t(index))) {}  // NOLINT
};
using Subscripts = std::vector<Subscript>;

struct SubscriptOptions {
  // What an index out of range does. Absent: an IndexError (check), or fill where there is a fill
  // value. Updates drop what fill would fill.
  std::optional<lax::GatherScatterMode> mode;
  std::optional<double> fill_value;
  bool unique_indices = false, indices_are_sorted = false;
};

Array getitem(Operand operand, const Subscripts& subscripts, const SubscriptOptions& options = {});

enum class UpdateKind { set, add, multiply, min, max };
// operand with values, broadcast to shape, applied to the elements that getitem would read.
Array update_item(Operand operand, const Subscripts& subscripts, Operand values, UpdateKind kind,
                  const SubscriptOptions& options = {});
// Writes values over the elements that getitem would read, in the memory of an array whose value is
// known. Nothing else may see that memory, and nothing may be traced. Returns false, and does
// nothing, where an array is among the subscripts.
bool write_item(const Array& array, const Subscripts& subscripts, const Array& values);

// The contents of the brackets of x[...]: a subscript, or a list of them in braces.
class Brackets {
 public:
  template <class One>
    requires std::convertible_to<One&&, Subscript>
  Brackets(One&& one, const char* file = PLAIT_HERE_FILE, int line = PLAIT_HERE_LINE)  // NOLINT
      : subscripts_{Subscript(std::forward<One>(one))} {
    Here(file, line).remember();
  }
  Brackets(std::initializer_list<Subscript> several, const char* file = PLAIT_HERE_FILE,  // NOLINT
           int line = PLAIT_HERE_LINE)
      : subscripts_(several) {
    Here(file, line).remember();
  }
  const Subscripts& subscripts() const { return subscripts_; }

 private:
  Subscripts subscripts_;
};

// x.at(i): x with some elements updated, as a new value. `x = x.at({i, j}).add(1.0)`.
class At {
 public:
  At(Array array, Subscripts subscripts)
      : array_(std::move(array)), subscripts_(std::move(subscripts)) {}
  Array get(const SubscriptOptions& options = {}) const;
  Array set(Operand values, const SubscriptOptions& options = {}) const;
  Array add(Operand values, const SubscriptOptions& options = {}) const;
  Array multiply(Operand values, const SubscriptOptions& options = {}) const;
  Array min(Operand values, const SubscriptOptions& options = {}) const;
  Array max(Operand values, const SubscriptOptions& options = {}) const;

 private:
  Array array_;
  Subscripts subscripts_;
};

}  // namespace plait
