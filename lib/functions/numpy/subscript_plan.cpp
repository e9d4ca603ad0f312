// See subscript_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/numpy/subscript_plan.h"

#include <algorithm>

#include "functions/functions.h"
#include "functions/numpy/known_values.h"

namespace plait::subscripting {
namespace {

std::string ordinal(std::size_t axis) { return "axis " + std::to_string(axis); }

Dim clip(Dim value, Dim low, Dim high) {
  // A named size is at least 0, which decides most comparisons.
  const std::optional<bool> above = less_equal(low, value), below = less_equal(value, high);
  if (above == true && below == true) return value;
  if (above == false) return low;
  if (below == false) return high;
  return minimum(maximum(value, low), high);
}

// A position counted from either end. A size of unknown sign counts from the start.
Dim from_start(Dim place, Dim size) {
  return less_equal(Dim(0), place) == false ? place + size : place;
}

}  // namespace

AxisCut cut_range(const Range& range, Dim size) {
  AxisCut cut{AxisCut::Kind::range, 0, size, range.step.value_or(1), {}, {}};
  if (!cut.step.is_constant() || cut.step == Dim(0))
    throw ValueError("a slice has the step " + cut.step.to_string(),
                     "give an integer that is not 0");
  const std::int64_t step = cut.step.constant();
  const Dim low = step > 0 ? Dim(0) : Dim(-1), high = step > 0 ? size : size - 1;
  const Dim start = range.start ? clip(from_start(*range.start, size), low, high)
                    : step > 0  ? Dim(0)
                                : size - 1;
  const Dim stop = range.stop ? clip(from_start(*range.stop, size), low, high)
                   : step > 0 ? size
                              : Dim(-1);
  const Dim span = step > 0 ? stop - start : start - stop;
  cut.start = start;
  cut.size = step == 1 || step == -1 ? maximum(span, 0)
                                     : maximum(ceil_divide(span, Dim(std::abs(step))), 0);
  if (less_equal(Dim(0), span) == true) {
    cut.stop = stop;
    cut.size = step == 1 || step == -1 ? span : ceil_divide(span, Dim(std::abs(step)));
  }
  if (step == 1 && cut.size == size) cut.kind = AxisCut::Kind::whole;
  return cut;
}

namespace {

AxisCut cut_integer(Dim index, std::size_t axis, const Array& operand, Outside outside) {
  const Dim size = operand.shape(int(axis)), place = from_start(index, size);
  if (less_equal(Dim(0), place) != false && less_equal(place + 1, size) != false)
    return {AxisCut::Kind::integer, place, 1, 1, {}};
  if (outside == Outside::index) return {AxisCut::Kind::array, 0, 0, 1, Array(index)};
  throw IndexError("index " + index.to_string() + " is out of range for " + ordinal(axis) +
                       " of size " + size.to_string() + " of " + operand.aval().to_string(),
                   "use an index from " + (-size).to_string() + " to " + (size - 1).to_string());
}

// The positions of true elements, as one array of integers for each axis.
Arrays positions(const Array& mask) {
  if (mask.ndim() == 1 && functions::is_known(mask)) return {functions::places_of_true(mask)};
  std::optional<Buffer> known = mask.known_buffer();
  if (!known) return numpy::nonzero(mask);
  const Buffer values = known->on_host().dense();
  const Sizes64& shape = values.shape();
  std::vector<std::vector<std::int64_t>> places(shape.size());
  const bool* flags = static_cast<const bool*>(values.data());
  const std::int64_t count = num_elements(shape);
  Sizes64 at(shape.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    if (flags[i])
      for (std::size_t axis = 0; axis < shape.size(); ++axis) places[axis].push_back(at[axis]);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  Arrays arrays;
  for (const auto& list : places) {
    Buffer buffer = Buffer::empty(DType::int64, {std::int64_t(list.size())});
    std::copy(list.begin(), list.end(), static_cast<std::int64_t*>(buffer.mutable_data()));
    buffer.set_free(true);
    arrays.push_back(Array(buffer));
  }
  return arrays;
}

}  // namespace

Plan make_plan(const Array& operand, const Subscripts& subscripts, Outside outside) {
  std::size_t consumed = 0, ellipses = 0;
  for (const Subscript& entry : subscripts) {
    if (std::holds_alternative<Ellipsis>(entry))
      ++ellipses;
    else if (const auto* array = std::get_if<Array>(&entry))
      consumed += array->dtype() == DType::bool_ ? array->ndim() : 1;
    else if (!std::holds_alternative<NewAxis>(entry))
      ++consumed;
  }
  const std::size_t rank = operand.ndim();
  if (ellipses > 1) throw IndexError("an index holds more than one ...", "keep one ellipsis");
  if (consumed > rank)
    throw IndexError("too many indices: " + std::to_string(consumed) + " for an array of rank " +
                         std::to_string(rank) + ", " + operand.aval().to_string(),
                     "give at most " + std::to_string(rank));
  Plan plan;
  auto add = [&](AxisCut cut) {
    plan.order.push_back(int(plan.cuts.size()));
    plan.cuts.push_back(std::move(cut));
  };
  auto add_whole = [&](std::size_t count) {
    for (; count > 0; --count)
      add({AxisCut::Kind::whole, 0, operand.shape(int(plan.cuts.size())), 1, {}});
  };
  for (const Subscript& entry : subscripts) {
    const std::size_t axis = plan.cuts.size();
    if (std::holds_alternative<Ellipsis>(entry)) {
      add_whole(rank - consumed);
    } else if (std::holds_alternative<NewAxis>(entry)) {
      plan.order.push_back(-1);
    } else if (const auto* range = std::get_if<Range>(&entry)) {
      add(cut_range(*range, operand.shape(int(axis))));
    } else if (const auto* index = std::get_if<Dim>(&entry)) {
      AxisCut cut = cut_integer(*index, axis, operand, outside);
      plan.has_arrays |= cut.kind == AxisCut::Kind::array;
      plan.are_inside = false;
      add(std::move(cut));
    } else {
      const Array& array = std::get<Array>(entry);
      plan.has_arrays = true;
      if (array.dtype() == DType::bool_) {
        for (int i = 0; i < array.ndim(); ++i)
          if (!(array.shape(i) == operand.shape(int(axis) + i)))
            throw IndexError("a boolean index of shape (" + array.shape().to_string() +
                                 ") does not fit axes " + std::to_string(axis) + " to " +
                                 std::to_string(axis + array.ndim() - 1) + " of " +
                                 operand.aval().to_string(),
                             "make it as long as the axes that it selects from");
        for (Array& places : positions(array))
          add({AxisCut::Kind::array, 0, 0, 1, std::move(places)});
      } else if (is_integer(array.dtype())) {
        plan.are_inside = false;
        add({AxisCut::Kind::array, 0, 0, 1, array});
      } else {
        throw DtypeError("an index array has dtype " + std::string(name_of(array.dtype())),
                         "index with integers or booleans");
      }
    }
  }
  add_whole(rank - plan.cuts.size());
  return plan;
}

bool is_scalar_mask(const Subscript& entry) {
  const auto* mask = std::get_if<Array>(&entry);
  return mask && mask->dtype() == DType::bool_ && mask->ndim() == 0;
}

bool lift_scalar_mask(Array& operand, Subscripts& subscripts) {
  for (Subscript& entry : subscripts) {
    if (!is_scalar_mask(entry)) continue;
    const auto* mask = std::get_if<Array>(&entry);
    Array selected;
    if (mask->known_buffer()) {
      Buffer places = Buffer::empty(DType::int64, {mask->item<bool>() ? 1 : 0});
      if (places.bytes() > 0) *static_cast<std::int64_t*>(places.mutable_data()) = 0;
      places.set_free(true);
      selected = Array(places);
    } else {
      selected = lax::reshape(*mask, {1});
    }
    subscripts.erase(subscripts.begin() + (&entry - subscripts.data()));
    subscripts.insert(subscripts.begin(), selected);
    Shape shape{1};
    for (Dim dim : operand.shape()) shape.push_back(dim);
    operand = lax::reshape(operand, shape);
    return true;
  }
  return false;
}

}  // namespace plait::subscripting
