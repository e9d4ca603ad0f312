// plait.numpy: sets of two arrays, and distinct slices.
//
// Both arrays are sorted as one, so that equal elements are neighbours: a run. What a run holds of
// either array says whether its first element belongs to the result. All of that has known sizes;
// the size of the result alone depends on values.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_edits.h>
#include <plait/functions/subscript.h>

#include "functions/functions.h"
#include "functions/numpy/runs.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// The elements of two arrays in order.
struct Runs {
  Array values;    // sorted
  Array order;     // where each was: below n1 in the first array
  Array is_first;  // of its run
  Array run;       // its number
  Dim n1;
};

Array numbers_of_runs(const Array& is_first) {
  return lax::sub(lax::cumsum(astype(is_first, default_int()), 0),
                  Array::literal(1, default_int()));
}

Runs runs_of(std::string_view function, const Array& ar1, const Array& ar2) {
  Arrays x{raveled(ar1), raveled(ar2)};
  promote_dtypes(x, function);
  const Dim n1 = x[0].shape(0), n = n1 + x[1].shape(0);
  const Arrays sorted = lax::sort(Operands{lax::concatenate(x, 0), counting(n)}, 0, true, 1);
  const Array& values = sorted[0];
  const Array is_first = starts_of_runs(lax::ne(values, shifted_by_one(values)));
  return {values, sorted[1], is_first, numbers_of_runs(is_first), n1};
}

// Whether the run of each element has one that belongs to a mask.
Array run_has(const Runs& runs, const Array& mask) {
  const Array counts =
      numpy::bincount(runs.run, astype(mask, default_int()), 0, runs.values.shape(0));
  return lax::gt(numpy::take(counts, runs.run, 0, "clip"), filled(0, runs.run));
}
struct Sides {
  Array in_first, in_second;
};
Sides sides_of(const Runs& runs) {
  const Array first = numpy::less(runs.order, number_of(runs.n1, default_int()));
  return {run_has(runs, first), run_has(runs, lax::bitwise_not(first))};
}

// The elements of a mask, or so many of them, filled up with the first one or fill_value.
struct Chosen {
  Array places, values;
  std::optional<Array> is_real;  // of so many
};
Chosen chosen(const Array& values, const Array& mask, std::optional<Dim> size,
              std::optional<double> fill_value) {
  Chosen result;
  result.places = numpy::flatnonzero(mask, size, 0);
  if (!size) {
    result.values = numpy::take(values, result.places, 0, "fill");
    return result;
  }
  const Array total = numpy::count_nonzero(mask);
  const Array is_real = numpy::less(counting(result.places.shape(0)), total);
  result.is_real = is_real;
  const Array first = numpy::minimum(numpy::take(result.places, 0, 0, "fill", 0.0),
                                     number_of(values.shape(0), default_int()));
  result.places = numpy::where(is_real, result.places, first);
  result.values = numpy::take(values, result.places, 0, "fill", 0.0);
  if (fill_value)
    result.values = lax::select(is_real, result.values, filled(*fill_value, result.values));
  return result;
}

}  // namespace

Array numpy::union1d(Operand ar1, Operand ar2, std::optional<Dim> size,
                     std::optional<double> fill_value) {
  return unique(concatenate({raveled(ar1), raveled(ar2)}), true, size, fill_value);
}

Array numpy::setdiff1d(Operand ar1, Operand ar2, bool assume_unique, std::optional<Dim> size,
                       double fill_value) {
  if (assume_unique)  // in the order of the array
    return chosen(raveled(ar1), isin(raveled(ar1), ar2, true), size, fill_value).values;
  const Runs runs = runs_of("setdiff1d", ar1, ar2);
  const Sides sides = sides_of(runs);
  const Array mask = lax::bitwise_and(
      runs.is_first, lax::bitwise_and(sides.in_first, lax::bitwise_not(sides.in_second)));
  return as_weak_as(ar1, astype(chosen(runs.values, mask, size, fill_value).values, ar1.dtype()));
}

Array numpy::setxor1d(Operand ar1, Operand ar2, std::optional<Dim> size,
                      std::optional<double> fill_value) {
  const Runs runs = runs_of("setxor1d", ar1, ar2);
  const Sides sides = sides_of(runs);
  const Array mask =
      lax::bitwise_and(runs.is_first, lax::bitwise_xor(sides.in_first, sides.in_second));
  return chosen(runs.values, mask, size, fill_value).values;
}

numpy::Intersection numpy::intersection(Operand ar1, Operand ar2, std::optional<Dim> size,
                                        std::optional<double> fill_value) {
  const Runs runs = runs_of("intersect1d", ar1, ar2);
  const Sides sides = sides_of(runs);
  const Array mask =
      lax::bitwise_and(runs.is_first, lax::bitwise_and(sides.in_first, sides.in_second));
  const Chosen found = chosen(runs.values, mask, size, fill_value);
  // The sort is stable, so that a run begins with its first element in the first array. Its first
  // element in the second one has the least number among those from n1 on.
  const Dim n = runs.values.shape(0), n2 = n - runs.n1;
  const Array n1 = number_of(runs.n1, default_int()), outside = number_of(n, default_int());
  const Array in_second = where(less(runs.order, n1), outside, runs.order);
  const Array rows = lax::reshape(runs.run, {n, 1});
  const Array least =
      lax::scatter(plait::broadcast_to(outside, Shape{n}), rows, in_second, {{0}, {0}, 0},
                   lax::ScatterKind::min, {lax::GatherScatterMode::promise, false, true});
  auto at_places = [&](const Array& from, Dim none) {
    const Array index = take(from, found.places, 0, "clip");
    return found.is_real ? where(*found.is_real, index, number_of(none, default_int())) : index;
  };
  const Array second = take(least, runs.run, 0, "clip");
  return {found.values, at_places(runs.order, runs.n1), at_places(subtract(second, n1), n2)};
}

Array numpy::intersect1d(Operand ar1, Operand ar2, std::optional<Dim> size,
                         std::optional<double> fill_value) {
  return intersection(ar1, ar2, size, fill_value).values;
}

numpy::Unique numpy::unique_slices(Operand ar, int axis, std::optional<Dim> size,
                                   std::optional<double> fill_value) {
  const int dim = normalize_axis(axis, ar.ndim(), "unique");
  const Array x = moved(ar, dim, 0);
  const Dim n = x.shape(0);
  const Dim width =
      size_of_axes(x.shape(), Axes().of(x.ndim(), "unique")).is_constant() && !(n == Dim(0))
          ? Dim(x.shape().num_elements().constant() / n.constant())
          : Dim(0);
  if (!n.is_constant() || width == Dim(0))
    throw ShapeError("unique: slices along axis " + std::to_string(axis) + " of shape (" +
                         ar.shape().to_string() + ")",
                     "give slices of at least one element, of sizes that are numbers");
  // Slices are ordered by their first elements, then by the next ones: one sort with a key for
  // each.
  const Array rows = lax::reshape(x, {n, width});
  Arrays keys;
  for (std::int64_t i = 0; i < width.constant(); ++i)
    keys.push_back(lax::index_in_dim(rows, i, 1, false));
  keys.push_back(counting(n));
  const Array order = lax::sort(Operands(keys), 0, true, int(keys.size()) - 1).back();
  const Array sorted = take(rows, order, 0, "clip");
  const Array differs = any(lax::ne(sorted, shifted_by_one(sorted)), 1);
  const Array is_first = starts_of_runs(differs), run = numbers_of_runs(is_first);
  const Chosen found = chosen(order, is_first, size, {});
  Unique result;
  const Dim count = found.places.shape(0);
  Array values = take(rows, found.values, 0, "clip");
  if (size && fill_value)
    values = where(expand_dims(*found.is_real, {1}), values, constant(*fill_value, values));
  Shape shape = x.shape();
  shape[0] = count;
  result.values = moved(lax::reshape(values, shape), 0, dim);
  result.indices = found.values;
  result.inverse = lax::scatter(lax::full({n}, 0, default_int()), lax::reshape(order, {n, 1}), run,
                                {{0}, {0}, 0}, lax::ScatterKind::set,
                                {lax::GatherScatterMode::promise, true, false});
  result.counts = bincount(run, {}, 0, count);
  return result;
}

namespace {

Argument intersect1d_of(Operand ar1, Operand ar2, bool return_indices, std::optional<Dim> size,
                        std::optional<double> fill_value) {
  const numpy::Intersection found = numpy::intersection(ar1, ar2, size, fill_value);
  if (!return_indices) return Argument(found.values);
  return Argument(Argument::List{found.values, found.indices1, found.indices2});
}

[[maybe_unused]] const FunctionInfo* const set_functions[] = {
    function("numpy", "union1d(ar1, ar2, *, size=None, fill_value=None)",
             "The distinct elements of either array, in order. With size so many, filled up with "
             "fill_value or the first.",
             &numpy::union1d),
    function("numpy", "setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=0)",
             "The distinct elements of ar1 that are not in ar2, in order, or with assume_unique in "
             "that of ar1. With size so many, filled up with fill_value.",
             &numpy::setdiff1d),
    function("numpy", "setxor1d(ar1, ar2, assume_unique=False!, *, size=None, fill_value=None)",
             "The distinct elements of one array that are not in the other, in order. size and "
             "fill_value are as in union1d.",
             &numpy::setxor1d),
    function("numpy",
             "intersect1d(ar1, ar2, assume_unique=False!, return_indices=False, *, size=None, "
             "fill_value=None)",
             "The distinct elements of both arrays, in order; with return_indices also where each "
             "is first in ar1 and in ar2, flattened. size and fill_value are as in union1d; the "
             "indices of what fills up are the sizes of the arrays.",
             &intersect1d_of),
};

}  // namespace
}  // namespace plait
