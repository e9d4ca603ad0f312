// plait.scipy.stats: ranks, the most frequent element, the standard error.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/stats.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

void require_propagate(std::string_view function, const std::string& nan_policy) {
  if (nan_policy != "propagate")
    throw ValueError(std::string(function) + ": nan_policy '" + nan_policy + "'",
                     "leave it out: NaN propagates");
}
// An array of at least one axis, and the axis; without one the flattened array.
std::pair<Array, int> along(std::string_view function, const Array& a, std::optional<int> axis) {
  if (!axis || a.ndim() == 0) return {raveled(a), 0};
  return {a, normalize_axis(*axis, a.ndim(), function)};
}
Array positions(const Array& like, int axis) {
  Shape sizes(std::size_t(like.ndim()), 1);
  sizes[std::size_t(axis)] = like.shape(axis);
  return plait::broadcast_to(lax::reshape(counting(like.shape(axis)), sizes), like.shape());
}
// Where a run of equal elements of a sorted array begins.
Array begins_run(const Array& sorted, int axis) {
  const Dim size = sorted.shape(axis);
  const Array first = numpy::equal(part(positions(sorted, axis), axis, 0, 1), 0);
  const Array changes =
      numpy::not_equal(part(sorted, axis, 1, size), part(sorted, axis, 0, size - 1));
  return numpy::concatenate({first, changes}, axis);
}

}  // namespace

Array stats::rankdata(Operand a, const std::string& method, const std::optional<int>& axis,
                      const std::string& nan_policy) {
  require_propagate("rankdata", nan_policy);
  const auto [x, dim] = along("rankdata", a, axis);
  const Array order = numpy::argsort(x, dim, true), place = numpy::argsort(order, dim, true);
  if (method == "ordinal") return place + 1;
  const Array sorted = numpy::take_along_axis(x, order, dim);
  const Array begins = begins_run(sorted, dim), index = positions(sorted, dim);
  const auto of_places = [&place, axis = dim](const Array& ranks) {
    return numpy::take_along_axis(ranks, place, axis);
  };
  const Array dense = numpy::cumsum(astype(begins, default_int()), dim);
  if (method == "dense") return of_places(dense);
  const Array first = lax::cummax(numpy::where(begins, index, 0), dim);
  // The last of a run is one before the next run's first.
  const Dim size = sorted.shape(dim);
  const Array end = plait::broadcast_to(number_of(size, default_int()), index.shape());
  const Array next = numpy::concatenate(
      {part(numpy::where(begins, index, end), dim, 1, size), part(end, dim, 0, 1)}, dim);
  const Array last = lax::cummin(next, dim, true);
  if (method == "min") return of_places(first + 1);
  if (method == "max") return of_places(last);
  if (method != "average")
    throw ValueError("rankdata: method '" + method + "'",
                     "give 'average', 'min', 'max', 'dense' or 'ordinal'");
  const DType to = size_of(to_inexact(x).dtype()) == 8 ? DType::float64 : default_float();
  const Array ranks = astype(of_places(first + 1 + last), to) * 0.5;
  return is_inexact(x.dtype()) ? numpy::where(numpy::any(numpy::isnan(x), {dim}, true), NAN, ranks)
                               : ranks;
}

std::pair<Array, Array> stats::mode(Operand a, const std::optional<int>& axis,
                                    const std::string& nan_policy, bool keepdims) {
  require_propagate("mode", nan_policy);
  const auto [x, dim] = along("mode", a, axis);
  if (x.shape(dim) == Dim(0)) throw ValueError("mode: of no elements", "give at least one");
  const Array sorted = numpy::sort(x, dim), index = positions(sorted, dim);
  const Array first = lax::cummax(numpy::where(begins_run(sorted, dim), index, 0), dim);
  const Array lengths = index - first + 1;
  const Array best = numpy::expand_dims(lax::argmax(lengths, dim), {dim});
  Array values = numpy::take_along_axis(sorted, best, dim);
  Array counts = numpy::take_along_axis(lengths, best, dim);
  if (!keepdims) values = numpy::squeeze(values, {dim}), counts = numpy::squeeze(counts, {dim});
  return {values, counts};
}

Array stats::sem(Operand a, const std::optional<int>& axis, int ddof, const std::string& nan_policy,
                 bool keepdims) {
  require_propagate("sem", nan_policy);
  const auto [x, dim] = along("sem", floating_only("sem", a), axis);
  const Array deviation = numpy::std(x, {dim}, {}, ddof, keepdims);
  return deviation / lax::sqrt(number_of(x.shape(dim), deviation.dtype()));
}

namespace {

[[maybe_unused]] const FunctionInfo* const ranks_functions[] = {
    function("scipy.stats", "rankdata(a, method='average', *, axis=None, nan_policy='propagate')",
             "Ranks from 1 of the elements along an axis, or of all; equal ones get the 'average', "
             "the 'min' or 'max', one rank without gaps ('dense') or their order ('ordinal').",
             &stats::rankdata),
    function("scipy.stats", "mode(a, axis=0, nan_policy='propagate', keepdims=False)",
             "The most frequent element along an axis, the smallest of several, and how often it "
             "occurs, as a pair.",
             &stats::mode),
    function("scipy.stats", "sem(a, axis=0, ddof=1, nan_policy='propagate', *, keepdims=False)",
             "The standard error of the mean along an axis: std(ddof) / sqrt(n).", &stats::sem),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
