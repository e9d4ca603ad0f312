// NumPy's subscripts: integers and slices first, then all index arrays at once. See subscript.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/subscript.h>
#include <plait/trace/concrete.h>

#include <plait/primitives/narrow.h>

#include <algorithm>
#include <numeric>

#include "functions/functions.h"
#include "functions/numpy/known_values.h"
#include "functions/numpy/subscript_plan.h"

namespace plait {

using namespace subscripting;
using lax::GatherScatterMode, lax::IndexDimensions, lax::NegativeIndices, lax::ScatterKind,
    lax::ScatterOptions;

namespace {

// Applies slices; if the plan has arrays, integers are left to the gather.
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

// The same for a known array, as a view: the effect of slice, rev and reshape.
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
  return make_concrete({Shape::of(shape), operand.dtype(), operand.aval().weak},
                       buffer.view_as(shape, strides, offset * size_of(operand.dtype())));
}

// The same for integers and slices alone, which need no plan; nothing where an integer is out of
// bounds.
std::optional<Array> view_at(const Array& operand, const Subscripts& subscripts) {
  const Shape& shape = operand.shape();
  if (int(subscripts.size()) > shape.rank()) return std::nullopt;
  const Buffer& buffer = static_cast<const ConcreteNode*>(operand.node())->buffer;
  std::int64_t offset = 0;
  int axis = 0;
  Sizes64 sizes, strides;
  for (const Subscript& subscript : subscripts) {
    const std::int64_t stride = buffer.strides()[axis];
    if (const Range* const range = std::get_if<Range>(&subscript)) {
      for (const std::optional<Dim>& bound : {range->start, range->stop, range->step})
        if (bound && !bound->is_constant()) return std::nullopt;
      const AxisCut cut = cut_range(*range, shape[axis]);
      const std::int64_t size = cut.size.constant();
      if (size > 0) offset += cut.start.constant() * stride;
      sizes.push_back(size);
      strides.push_back(stride * cut.step.constant());
    } else {
      const Dim* const given = std::get_if<Dim>(&subscript);
      if (!given || !given->is_constant()) return std::nullopt;
      const std::int64_t size = shape[axis].constant(), index = given->constant(),
                         place = index < 0 ? index + size : index;
      if (place < 0 || place >= size) return std::nullopt;
      offset += place * stride;
    }
    ++axis;
  }
  for (; axis < shape.rank(); ++axis) {
    sizes.push_back(shape[axis].constant());
    strides.push_back(buffer.strides()[axis]);
  }
  return make_concrete({Shape::of(sizes), operand.dtype(), operand.aval().weak},
                       buffer.view_as(sizes, strides, offset * size_of(operand.dtype())));
}

Array count_from_start(const Array& index, Dim size) {
  DType dtype = is_unsigned_integer(index.dtype()) ? DType::int64 : index_dtype(index);
  if (size_of(dtype) < 4) dtype = DType::int32;
  const Array wide = lax::convert_element_type(index, dtype);
  if (is_unsigned_integer(index.dtype())) return wide;
  if (functions::is_known(wide) && !functions::has_negative(wide)) return wide;
  const Array zero = Array::literal(0, dtype);
  const Array total = lax::convert_element_type(Array(size), dtype);
  return lax::select(lax::lt(wide, zero), lax::add(wide, total), wide);
}

// The index arrays of a plan as rows of one array, and the parameters of gather.
struct IndexArrays {
  Array indices;
  IndexDimensions dimensions;
  Shape slice_sizes, batch;  // batch: the broadcast shape of the index arrays
  int first = 0;             // the position of the batch axes in the result, in kept axes
};

IndexArrays make_index_arrays(const Array& operand, const Plan& plan) {
  IndexArrays rows;
  Arrays columns;
  std::vector<Shape> shapes;
  for (std::size_t axis = 0; axis < plan.cuts.size(); ++axis) {
    const AxisCut& cut = plan.cuts[axis];
    const bool indexed = cut.kind == AxisCut::Kind::array || cut.kind == AxisCut::Kind::integer;
    rows.slice_sizes.push_back(indexed ? Dim(1) : operand.shape(int(axis)));
    if (!indexed) continue;
    rows.dimensions.axes.push_back(int(axis));
    const Array index = cut.kind == AxisCut::Kind::array ? cut.index
                        : cut.start.is_constant()        ? Array(cut.start)
                                                  : functions::number_of(cut.start, default_int());
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
  // NumPy: adjacent index arrays keep their position; otherwise their axes come first.
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
Shape result_shape(const Plan& plan, const IndexArrays* rows, const Array& cut) {
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

// The number of operand axes kept before the batch axes (new axes do not count).
int kept_before(const Plan& plan, const IndexArrays& rows) {
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

// Moves `count` leading axes after the `after` axes that follow them, or back.
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

// With a mode for indices out of range, integers follow it too.
Outside outside_of(const SubscriptOptions& options) {
  const GatherScatterMode mode = options.mode.value_or(
      options.fill_value ? GatherScatterMode::fill : GatherScatterMode::check);
  return mode == GatherScatterMode::check || mode == GatherScatterMode::promise ? Outside::error
                                                                                : Outside::index;
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

Array fit_values(const Array& values, const Shape& shape, const Array& operand) {
  const DType dtype = operand.dtype();
  if (is_complex(values.dtype()) && !is_complex(dtype))
    throw DtypeError(
        "x.at[...]: a complex value for an array of dtype " + std::string(name_of(dtype)),
        "take its .real first, or make the array complex");
  Array cast = yielded(values, dtype, values.aval().weak && operand.aval().weak, "x.at[...]");
  // NumPy allows surplus leading axes of size 1 in the values.
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

}  // namespace

// Known elements in memory, of which a part is a view.
static bool is_viewed(const Array& array) {
  return array.node()->is_plain() && !Trace::current() && array.aval().varying.empty();
}

Array getitem(Operand operand, const Subscripts& subscripts, const SubscriptOptions& options) {
  if (is_viewed(operand))
    if (std::optional<Array> view = view_at(operand, subscripts)) return *std::move(view);
  if (std::any_of(subscripts.begin(), subscripts.end(), is_scalar_mask)) {
    Subscripts lifted = subscripts;
    lift_scalar_mask(operand, lifted);
    return getitem(operand, lifted, options);
  }
  const Plan plan = make_plan(operand, subscripts, outside_of(options));
  if (!plan.has_arrays && is_viewed(operand)) return view_of(operand, plan);
  const Array cut = cut_ranges(operand, plan);
  if (!plan.has_arrays) return lax::reshape(cut, result_shape(plan, nullptr, cut));
  const IndexArrays rows = make_index_arrays(cut, plan);
  const GatherScatterMode mode = options.fill_value ? GatherScatterMode::fill
                                 : plan.are_inside  ? GatherScatterMode::promise
                                                    : GatherScatterMode::check;
  Array result = lax::gather(cut, rows.indices, rows.dimensions, rows.slice_sizes,
                             options.mode.value_or(mode), options.fill_value);
  if (const int after = kept_before(plan, rows); after > 0 && rows.batch.rank() > 0)
    result = lax::transpose(result, moved_axes(result.ndim(), rows.batch.rank(), after, false));
  return lax::reshape(result, result_shape(plan, &rows, cut));
}

namespace {
// A weak array yields to the values that are written to it, within their category of dtypes.
Array yielding_to(const Array& operand, const Array& values) {
  const WeakDType both = promote_weak(operand.aval().type(), values.aval().type());
  const bool yields = operand.aval().weak && !values.aval().weak && both.dtype == values.dtype() &&
                      is_inexact(operand.dtype()) == is_inexact(both.dtype) &&
                      is_complex(operand.dtype()) == is_complex(both.dtype);
  return yields ? narrowed(operand, both.dtype, "x.at[...]") : operand;
}

// The update by a mask of leading axes, if its values are not known, of values that are the same
// for all its places: no size depends on the mask then.
std::optional<Array> update_where(const Array& operand, const Subscripts& subscripts,
                                  const Array& values, UpdateKind kind) {
  const auto* mask = subscripts.size() == 1 ? std::get_if<Array>(&subscripts[0]) : nullptr;
  if (!mask || mask->dtype() != DType::bool_ || mask->known_buffer() ||
      values.ndim() > operand.ndim() - mask->ndim() ||
      !std::equal(mask->shape().begin(), mask->shape().end(), operand.shape().begin()))
    return std::nullopt;
  std::vector<int> axes(std::size_t(mask->ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  const Array chosen = lax::broadcast_in_dim(*mask, operand.shape(), axes);
  const Array updated = combine(kind, operand, fit_values(values, operand.shape(), operand));
  return lax::select(chosen, updated, operand);
}
}  // namespace

Array update_item(Operand array, const Subscripts& subscripts, Operand values, UpdateKind kind,
                  const SubscriptOptions& options) {
  Array operand = yielding_to(array, values);
  if (std::optional<Array> updated = update_where(operand, subscripts, values, kind))
    return *updated;
  if (Subscripts lifted = subscripts; lift_scalar_mask(operand, lifted)) {
    const Array updated = update_item(operand, lifted, values, kind, options);
    return lax::reshape(updated, Shape(updated.shape().begin() + 1, updated.shape().end()));
  }
  const Plan plan = make_plan(operand, subscripts, outside_of(options));
  const bool contiguous = std::all_of(plan.cuts.begin(), plan.cuts.end(), [](const AxisCut& cut) {
    return cut.kind != AxisCut::Kind::array &&
           (cut.kind != AxisCut::Kind::range || cut.step == Dim(1));
  });
  if (contiguous) {
    const Array old = cut_ranges(operand, plan);
    const Array fitted =
        lax::reshape(fit_values(values, result_shape(plan, nullptr, old), operand), old.shape());
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
  const bool are_inside =
      plan.has_arrays && plan.are_inside;  // of masks, and name no element twice
  const ScatterOptions scatter_options{
      options.mode.value_or(are_inside ? GatherScatterMode::promise : GatherScatterMode::check),
      options.unique_indices || are_inside, options.indices_are_sorted};
  const bool no_ranges = std::none_of(plan.cuts.begin(), plan.cuts.end(), [](const AxisCut& cut) {
    return cut.kind == AxisCut::Kind::range;
  });
  if (no_ranges) {
    const IndexArrays rows = make_index_arrays(operand, plan);
    const int after = kept_before(plan, rows), batch = rows.batch.rank();
    Array fitted = fit_values(values, result_shape(plan, &rows, operand), operand);
    // The shape that gather gives, then with the batch axes moved as in getitem.
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
  // Slices with steps combined with index arrays: the positions are read from an array of element
  // numbers.
  const Dim count = operand.shape().num_elements();
  const Array numbered = lax::reshape(lax::iota(DType::int64, Shape{count}, 0), operand.shape());
  const double outside = count.is_constant() ? double(count.constant()) : 4611686018427387904.0;
  const GatherScatterMode mode = scatter_options.mode;
  // Slices name no element twice, and none outside.
  const bool is_apart = scatter_options.unique_indices || !plan.has_arrays;
  const bool fills = mode == GatherScatterMode::fill || mode == GatherScatterMode::promise;
  const Array places =
      getitem(numbered, subscripts,
              {fills ? GatherScatterMode::fill : mode,
               fills ? std::optional<double>(outside) : std::nullopt, false, false});
  const Array fitted = fit_values(values, places.shape(), operand);
  const Dim updates = places.shape().num_elements();
  const Array updated =
      lax::scatter(lax::reshape(operand, Shape{count}), lax::reshape(places, Shape{updates, 1}),
                   lax::reshape(fitted, Shape{updates}), IndexDimensions{{0}, {0}, 0}, scatter_kind,
                   {plan.has_arrays ? mode : GatherScatterMode::promise, is_apart,
                    scatter_options.indices_are_sorted});
  return lax::reshape(updated, operand.shape());
}

bool write_item(const Array& array, const Subscripts& subscripts, const Array& values) {
  if (!array.buffer().device().is_host() ||
      std::any_of(subscripts.begin(), subscripts.end(),
                  [](const Subscript& entry) { return std::holds_alternative<Array>(entry); }))
    return false;
  const Array place = view_of(array, make_plan(array, subscripts, Outside::error));
  const Array fitted = fit_values(values, place.shape(), array);
  copy_elements(fitted.host_buffer().view(), place.buffer().view());
  return true;
}

}  // namespace plait
