// x[...] and x.at[...]: NumPy's subscripts, for any language.
//
// A subscript is a list of entries: integers, slices, new axes, one ellipsis, and integer or
// boolean arrays. Integers and slices are cut out by slice and rev; arrays of integers become one
// gather or scatter over all of them together, as in NumPy. A boolean array must have a known
// value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ops_indexing.h>

#include <variant>

namespace plait {

// start:stop:step, each of which may be absent and may be named.
struct Range {
  std::optional<Dim> start, stop;
  std::optional<Dim> step;
};
struct NewAxis {};
struct Ellipsis {};
using Subscript = std::variant<Dim, Range, NewAxis, Ellipsis, Array>;
using Subscripts = std::vector<Subscript>;

struct SubscriptOptions {
  // What an index that points outside does. Absent: an IndexError (check), or with a fill value
  // fill. Updates drop what fill would fill.
  std::optional<lax::GatherScatterMode> mode;
  std::optional<double> fill_value;
  bool unique_indices = false, indices_are_sorted = false;
};

Array getitem(Operand operand, const Subscripts& subscripts, const SubscriptOptions& options = {});

enum class UpdateKind { set, add, multiply, min, max };
// operand with the elements that getitem would read updated by values, which are broadcast to them.
Array update_item(Operand operand, const Subscripts& subscripts, Operand values, UpdateKind kind,
                  const SubscriptOptions& options = {});

}  // namespace plait
