// NumPy's subscripts: integers and slices first, then all index arrays at once. See subscript.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/subscript.h>

#include <algorithm>

#include "ops/functions.h"

namespace plait {

using lax::GatherScatterMode, lax::IndexDimensions, lax::NegativeIndices, lax::ScatterKind,
    lax::ScatterOptions;

namespace {

// What happens along one axis of the operand.
struct AxisCut {
  enum class Kind { whole, range, integer, array } kind = Kind::whole;
  Dim start = 0, size = 0, step = 1;  // of a range, within bounds
  Array index;                        // of an array
  std::optional<Dim> stop = {};       // of a range that is known to go from start to stop
};

// The subscript in order of the result: axes of the operand and new axes.
struct Plan {
  std::vector<AxisCut> cuts;  // one for each axis of the operand
  std::vector<int> order;     // axis numbers, or -1 for a new axis
  bool has_arrays = false;
};

std::string ordinal(std::size_t axis) { return "axis " + std::to_string(axis); }

Dim clip(Dim value, Dim low, Dim high) {
  // A named size is at least 0, so that most comparisons are decided.
  const std::optional<bool> above = less_equal(low, value), below = less_equal(value, high);
  if (above == true && below == true) return value;
  if (above == false) return low;
  if (below == false) return high;
  return minimum(maximum(value, low), high);
}

// A place counted from either end. A size whose sign is open counts from the start.
Dim from_start(Dim place, Dim size) {
  return less_equal(Dim(0), place) == false ? place + size : place;
}

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

Dim checked_integer(Dim index, Dim size, std::size_t axis, const Array& operand) {
  const Dim place = from_start(index, size);
  if (less_equal(Dim(0), place) == false || less_equal(place + 1, size) == false)
    throw IndexError("index " + index.to_string() + " is out of range for " + ordinal(axis) +
                         " of size " + size.to_string() + " of " + operand.aval().to_string(),
                     "use an index from " + (-size).to_string() + " to " + (size - 1).to_string());
  return place;
}

// Positions of true elements, as one array of integers for each axis.
Arrays positions(const Array& mask) {
  std::optional<Buffer> known = mask.known_buffer();
  if (!known)
    throw TracerError("a boolean array of type " + mask.aval().to_string() +
                          " as an index needs its values, which a trace does not know: the shape "
                          "of the result depends on them",
                      "use where(mask, x, other), or index outside the transform");
  const Buffer values = known->dense();
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
    std::copy(list.begin(), list.end(), static_cast<std::int64_t*>(buffer.data()));
    arrays.push_back(Array(buffer));
  }
  return arrays;
}

Plan make_plan(const Array& operand, const Subscripts& subscripts) {
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
      const Dim place = checked_integer(*index, operand.shape(int(axis)), axis, operand);
      add({AxisCut::Kind::integer, place, 1, 1, {}});
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

// Applies slices; with arrays in the plan integers stay for the gather.
Array cut_ranges(const Array& operand, const Plan& plan) {
  Shape start, limit, strides;
  std::vector<int> before, after;  // axes to reverse
  bool cuts = false;
  for (std::size_t axis = 0; axis < plan.cuts.size(); ++axis) {
    const AxisCut& cut = plan.cuts[axis];
    const Dim size = operand.shape(int(axis));
    if (cut.kind == AxisCut::Kind::range) {
      const std::int64_t step = cut.step.constant();
      const Dim stride(std::abs(step));
      strides.push_back(stride);
      cuts = true;
      if (cut.size == Dim(0)) {
        start.push_back(0);
        limit.push_back(0);
      } else if (cut.stop && step > 0) {
        start.push_back(cut.start);
        limit.push_back(*cut.stop);
      } else if (cut.stop && step < -1) {  // the same counted from the end
        start.push_back(size - 1 - cut.start);
        limit.push_back(size - 1 - *cut.stop);
        before.push_back(int(axis));
      } else {  // a negative step takes the elements in order, then reverses them
        const Dim first = step > 0 ? cut.start : cut.start - (cut.size - 1) * stride;
        start.push_back(first);
        limit.push_back(first + (cut.size - 1) * stride + 1);
        if (step < 0) after.push_back(int(axis));
      }
    } else if (cut.kind == AxisCut::Kind::integer && !plan.has_arrays) {
      start.push_back(cut.start);
      limit.push_back(cut.start + 1);
      strides.push_back(1);
      cuts = true;
    } else {
      start.push_back(0);
      limit.push_back(size);
      strides.push_back(1);
    }
  }
  Array result = operand;
  if (!before.empty()) result = lax::rev(result, before);
  if (cuts) result = lax::slice(result, start, limit, strides);
  if (!after.empty()) result = lax::rev(result, after);
  return result;
}

// The same of a known array, as a view: what slice, rev and reshape come to.
Array view_of(const Array& operand, const Plan& plan) {
  const Buffer& buffer = operand.buffer();
  Sizes64 shape, strides;
  std::int64_t offset = 0;
  for (int axis : plan.order) {
    if (axis < 0) {
      shape.push_back(1);
      strides.push_back(0);
      continue;
    }
    const AxisCut& cut = plan.cuts[axis];
    const std::int64_t stride = buffer.strides()[axis], size = cut.size.constant();
    if (size > 0) offset += cut.start.constant() * stride;
    if (cut.kind == AxisCut::Kind::integer) continue;
    shape.push_back(size);
    strides.push_back(stride * cut.step.constant());
  }
  return Array(buffer.view_as(shape, strides, offset * size_of(operand.dtype())),
               operand.aval().weak);
}

Array count_from_start(const Array& index, Dim size) {
  DType dtype = is_unsigned_integer(index.dtype()) ? DType::int64 : index.dtype();
  if (index.aval().weak || size_of(dtype) < 4) dtype = DType::int32;
  const Array wide = lax::convert_element_type(index, dtype);
  if (is_unsigned_integer(index.dtype())) return wide;
  const Array zero = Array::literal(0, dtype);
  const Array total = lax::convert_element_type(Array(size), dtype);
  return lax::select(lax::lt(wide, zero), lax::add(wide, total), wide);
}

// The index arrays of a plan as rows of one array, and what gather must know.
struct Rows {
  Array indices;
  IndexDimensions dimensions;
  Shape slice_sizes, batch;  // batch: the shape that the index arrays have together
  int first = 0;             // where the batch axes stand in the result, counted in kept axes
};

Rows make_rows(const Array& operand, const Plan& plan) {
  Rows rows;
  Arrays columns;
  std::vector<Shape> shapes;
  for (std::size_t axis = 0; axis < plan.cuts.size(); ++axis) {
    const AxisCut& cut = plan.cuts[axis];
    const bool indexed = cut.kind == AxisCut::Kind::array || cut.kind == AxisCut::Kind::integer;
    rows.slice_sizes.push_back(indexed ? Dim(1) : operand.shape(int(axis)));
    if (!indexed) continue;
    rows.dimensions.axes.push_back(int(axis));
    const Array index = cut.kind == AxisCut::Kind::integer ? Array(cut.start) : cut.index;
    columns.push_back(count_from_start(index, operand.shape(int(axis))));
    shapes.push_back(columns.back().shape());
  }
  rows.dimensions.collapse = rows.dimensions.axes;
  promote_dtypes(columns, "index");
  rows.batch = broadcast_shapes(shapes, "index");
  Shape column_shape = rows.batch;
  column_shape.push_back(1);
  for (Array& column : columns)
    column = lax::reshape(broadcast_to(column, rows.batch), column_shape);
  rows.indices =
      columns.size() == 1 ? columns[0] : lax::concatenate(columns, int(rows.batch.size()));
  // NumPy: index arrays that stand together keep their place; otherwise their axes come first.
  int first = -1, last = -1, kept = 0;
  bool together = true;
  for (std::size_t place = 0; place < plan.order.size(); ++place) {
    const int axis = plan.order[place];
    const bool indexed = axis >= 0 && (plan.cuts[axis].kind == AxisCut::Kind::array ||
                                       plan.cuts[axis].kind == AxisCut::Kind::integer);
    if (indexed) {
      if (first < 0)
        first = int(place), rows.first = kept;
      else if (last != int(place) - 1)
        together = false;
      last = int(place);
    } else {
      ++kept;
    }
  }
  if (!together) rows.first = 0;
  return rows;
}

// Shape of the result with kept axes (and new ones) around the batch axes of index arrays.
Shape result_shape(const Plan& plan, const Rows* rows, const Array& cut) {
  Shape shape;
  bool placed = false;
  int kept = 0;
  auto place_batch = [&] {
    if (!rows || placed || kept < rows->first) return;
    for (Dim dim : rows->batch) shape.push_back(dim);
    placed = true;
  };
  for (int axis : plan.order) {
    const bool indexed = axis >= 0 && (plan.cuts[axis].kind == AxisCut::Kind::array ||
                                       plan.cuts[axis].kind == AxisCut::Kind::integer);
    place_batch();
    if (indexed) continue;
    shape.push_back(axis < 0 ? Dim(1) : cut.shape(axis));
    ++kept;
  }
  place_batch();
  return shape;
}

// How many axes of the operand are kept before the batch axes (new axes do not count).
int kept_before(const Plan& plan, const Rows& rows) {
  int kept = 0, real = 0;
  for (int axis : plan.order) {
    if (kept == rows.first) break;
    const bool indexed = axis >= 0 && (plan.cuts[axis].kind == AxisCut::Kind::array ||
                                       plan.cuts[axis].kind == AxisCut::Kind::integer);
    if (indexed) continue;
    ++kept;
    if (axis >= 0) ++real;
  }
  return real;
}

// Moves `count` leading axes behind the `after` axes that follow them, or back.
std::vector<int> moved_axes(int rank, int count, int after, bool back) {
  std::vector<int> permutation;
  if (!back) {
    for (int i = 0; i < after; ++i) permutation.push_back(count + i);
    for (int i = 0; i < count; ++i) permutation.push_back(i);
  } else {
    for (int i = 0; i < count; ++i) permutation.push_back(after + i);
    for (int i = 0; i < after; ++i) permutation.push_back(i);
  }
  for (int i = count + after; i < rank; ++i) permutation.push_back(i);
  return permutation;
}

Array combine(UpdateKind kind, const Array& old, const Array& value) {
  switch (kind) {
    case UpdateKind::set:
      return value;
    case UpdateKind::add:
      return old.dtype() == DType::bool_ ? lax::bitwise_or(old, value) : lax::add(old, value);
    case UpdateKind::multiply:
      return old.dtype() == DType::bool_ ? lax::bitwise_and(old, value) : lax::mul(old, value);
    case UpdateKind::min:
      return lax::min(old, value);
    default:
      return lax::max(old, value);
  }
}

Array fit_values(const Array& values, const Shape& shape, DType dtype) {
  functions::require_fits(values, dtype, "x.at[...]");
  if (is_complex(values.dtype()) && !is_complex(dtype))
    throw DtypeError(
        "x.at[...]: a complex value for an array of dtype " + std::string(name_of(dtype)),
        "take its .real first, or make the array complex");
  Array cast = lax::convert_element_type(values, dtype);
  // NumPy lets the values have leading axes of size 1 too many.
  while (cast.ndim() > shape.rank() && cast.shape(0) == Dim(1)) {
    Shape shorter(cast.shape().begin() + 1, cast.shape().end());
    cast = lax::reshape(cast, shorter);
  }
  bool broadcasts = cast.ndim() <= shape.rank();
  for (int i = 1; broadcasts && i <= cast.ndim(); ++i) {
    const Dim size = cast.shape(cast.ndim() - i);
    broadcasts = size == Dim(1) || size == shape[shape.rank() - i];
  }
  if (!broadcasts)
    throw ShapeError("x.at[...]: values of shape (" + values.shape().to_string() +
                         ") do not broadcast to the shape (" + shape.to_string() + ") of x[...]",
                     "give one value, or as many as are named");
  return broadcast_to(cast, shape);
}

bool is_scalar_mask(const Subscript& entry) {
  const auto* mask = std::get_if<Array>(&entry);
  return mask && mask->dtype() == DType::bool_ && mask->ndim() == 0;
}

// True or False as an index: a new axis in front of which everything or nothing is taken.
bool lift_scalar_mask(Array& operand, Subscripts& subscripts) {
  for (Subscript& entry : subscripts) {
    if (!is_scalar_mask(entry)) continue;
    const auto* mask = std::get_if<Array>(&entry);
    const std::optional<Buffer> known = mask->known_buffer();
    if (!known) positions(*mask);  // throws
    Buffer places = Buffer::empty(DType::int64, {mask->item<bool>() ? 1 : 0});
    if (places.bytes() > 0) *static_cast<std::int64_t*>(places.data()) = 0;
    subscripts.erase(subscripts.begin() + (&entry - subscripts.data()));
    subscripts.insert(subscripts.begin(), Array(places));
    Shape shape{1};
    for (Dim dim : operand.shape()) shape.push_back(dim);
    operand = lax::reshape(operand, shape);
    return true;
  }
  return false;
}

}  // namespace

Array getitem(Operand operand, const Subscripts& subscripts, const SubscriptOptions& options) {
  if (std::any_of(subscripts.begin(), subscripts.end(), is_scalar_mask)) {
    Subscripts lifted = subscripts;
    lift_scalar_mask(operand, lifted);
    return getitem(operand, lifted, options);
  }
  const Plan plan = make_plan(operand, subscripts);
  if (!plan.has_arrays && operand.node()->is_plain() && !Trace::current())
    return view_of(operand, plan);
  const Array cut = cut_ranges(operand, plan);
  if (!plan.has_arrays) return lax::reshape(cut, result_shape(plan, nullptr, cut));
  const Rows rows = make_rows(cut, plan);
  Array result = lax::gather(cut, rows.indices, rows.dimensions, rows.slice_sizes,
                             options.mode.value_or(options.fill_value ? GatherScatterMode::fill
                                                                      : GatherScatterMode::check),
                             options.fill_value);
  if (const int after = kept_before(plan, rows); after > 0 && rows.batch.rank() > 0)
    result = lax::transpose(result, moved_axes(result.ndim(), rows.batch.rank(), after, false));
  return lax::reshape(result, result_shape(plan, &rows, cut));
}

Array update_item(Operand operand, const Subscripts& subscripts, Operand values, UpdateKind kind,
                  const SubscriptOptions& options) {
  if (Subscripts lifted = subscripts; lift_scalar_mask(operand, lifted)) {
    const Array updated = update_item(operand, lifted, values, kind, options);
    return lax::reshape(updated, Shape(updated.shape().begin() + 1, updated.shape().end()));
  }
  const Plan plan = make_plan(operand, subscripts);
  const bool contiguous = std::all_of(plan.cuts.begin(), plan.cuts.end(), [](const AxisCut& cut) {
    return cut.kind != AxisCut::Kind::array &&
           (cut.kind != AxisCut::Kind::range || cut.step == Dim(1));
  });
  if (contiguous) {
    const Array old = cut_ranges(operand, plan);
    const Array fitted = lax::reshape(
        fit_values(values, result_shape(plan, nullptr, old), operand.dtype()), old.shape());
    if (less_equal(old.shape().num_elements(), Dim(0)) == true) return operand;
    Arrays starts;
    for (const AxisCut& cut : plan.cuts)
      starts.push_back(lax::convert_element_type(Array(cut.start), DType::int32));
    return lax::dynamic_update_slice(operand, combine(kind, old, fitted), starts,
                                     NegativeIndices::clamp);
  }
  const ScatterKind scatter_kind = kind == UpdateKind::set        ? ScatterKind::set
                                   : kind == UpdateKind::add      ? ScatterKind::add
                                   : kind == UpdateKind::multiply ? ScatterKind::mul
                                   : kind == UpdateKind::min      ? ScatterKind::min
                                                                  : ScatterKind::max;
  const ScatterOptions scatter_options{options.mode.value_or(GatherScatterMode::check),
                                       options.unique_indices, options.indices_are_sorted};
  const bool no_ranges = std::none_of(plan.cuts.begin(), plan.cuts.end(), [](const AxisCut& cut) {
    return cut.kind == AxisCut::Kind::range;
  });
  if (no_ranges) {
    const Rows rows = make_rows(operand, plan);
    const int after = kept_before(plan, rows), batch = rows.batch.rank();
    Array fitted = fit_values(values, result_shape(plan, &rows, operand), operand.dtype());
    // The shape that gather gives, then with the batch axes moved as getitem moves them.
    Shape gathered = rows.batch;
    for (const AxisCut& cut : plan.cuts)
      if (cut.kind == AxisCut::Kind::whole) gathered.push_back(cut.size);
    Shape moved;
    for (int axis : moved_axes(gathered.rank(), batch, after, false))
      moved.push_back(gathered[axis]);
    fitted = lax::reshape(fitted, moved);
    if (after > 0 && batch > 0)
      fitted = lax::transpose(fitted, moved_axes(gathered.rank(), batch, after, true));
    return lax::scatter(operand, rows.indices, fitted, rows.dimensions, scatter_kind,
                        scatter_options);
  }
  // Slices with steps beside index arrays: the places themselves are read from a numbered array.
  const Dim count = operand.shape().num_elements();
  const Array numbered = lax::reshape(lax::iota(DType::int64, Shape{count}, 0), operand.shape());
  const double outside = count.is_constant() ? double(count.constant()) : 4611686018427387904.0;
  const GatherScatterMode mode = scatter_options.mode;
  const bool fills = mode == GatherScatterMode::fill || mode == GatherScatterMode::promise;
  const Array places =
      getitem(numbered, subscripts,
              {fills ? GatherScatterMode::fill : mode,
               fills ? std::optional<double>(outside) : std::nullopt, false, false});
  const Array fitted = fit_values(values, places.shape(), operand.dtype());
  const Dim updates = places.shape().num_elements();
  const Array updated =
      lax::scatter(lax::reshape(operand, Shape{count}), lax::reshape(places, Shape{updates, 1}),
                   lax::reshape(fitted, Shape{updates}), IndexDimensions{{0}, {0}, 0}, scatter_kind,
                   scatter_options);
  return lax::reshape(updated, operand.shape());
}

}  // namespace plait
