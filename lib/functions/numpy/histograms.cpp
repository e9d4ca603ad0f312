// plait.numpy: histograms of one or more variables.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_analysis.h>

#include <cmath>

#include "functions/functions.h"
#include "functions/known_numbers.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

// NaN and infinite ends make no bins, and neither do ends in the wrong order.
void require_ends(const Array& low, const Array& high, bool are_given) {
  const auto first = known_numbers<double>(low), last = known_numbers<double>(high);
  if (!first || !last) return;
  const double from = first->at(0), to = last->at(0);
  const std::string ends = std::to_string(from) + " to " + std::to_string(to);
  if (!std::isfinite(from) || !std::isfinite(to))
    throw ValueError("histogram: bins from " + ends,
                     are_given ? "give finite ends" : "give a range, or drop what is not finite");
  if (from > to) throw ValueError("histogram: bins from " + ends, "give the lower end first");
}

}  // namespace

Array numpy::histogram_bin_edges(Operand a, Operand bins, const std::optional<Arrays>& range,
                                 const OptionalArray&) {
  const Array x = raveled(floating_only("histogram", a));
  Array edges = bins;
  if (bins.ndim() == 0) {
    if (!is_integer(bins.dtype()))
      throw DtypeError("histogram: a number of bins of dtype " + std::string(name_of(bins.dtype())),
                       "give an integer, or a vector of edges");
    const auto count = bins.item<std::int64_t>();
    if (count < 1)
      throw ValueError("histogram: " + std::to_string(count) + " bins", "give at least one");
    if (range && range->size() != 2)
      throw ValueError("histogram: a range of " + std::to_string(range->size()) + " numbers",
                       "give (low, high)");
    const bool empty = x.shape(0) == Dim(0);
    Array low = range ? (*range)[0] : empty ? Array::literal(0, x.dtype()) : min(x);
    Array high = range ? (*range)[1] : empty ? Array::literal(1, x.dtype()) : max(x);
    require_ends(low, high, range.has_value());
    const Array same = equal(low, high);
    low = where(same, subtract(low, 0.5), low);
    high = where(same, add(high, 0.5), high);
    edges = linspace(astype(low, x.dtype()), astype(high, x.dtype()), Dim(count) + 1);
  } else if (bins.ndim() != 1 || less_equal(bins.shape(0), 1) == true) {
    throw ShapeError("histogram: edges of shape (" + bins.shape().to_string() + ")",
                     "give a vector of at least two, or a number of bins");
  } else if (!may_rise(bins)) {
    throw ValueError("histogram: the edges do not rise", "sort them");
  }
  return astype(edges, promote_types(to_inexact(edges).dtype(), x.dtype()));
}

namespace {

// In which bin each value lies, and where it lies in none. The last bin includes its upper edge.
struct BinPlaces {
  Array bin, outside;
};
BinPlaces bin_places(const Array& x, const Array& edges) {
  const Array points = astype(x, edges.dtype());
  const Dim count = edges.shape(0) - 1;
  const Array place =
      lax::sub(numpy::searchsorted(edges, points, "right"), Array::literal(1, default_int()));
  const Array is_last = numpy::equal(points, lax::index_in_dim(edges, -1, 0, false));
  const Array bin = numpy::where(is_last, number_of(count - 1, default_int()), place);
  Array outside = lax::lt(bin, Array::literal(0, default_int()));
  outside = lax::bitwise_or(
      outside, lax::ge(bin, plait::broadcast_to(number_of(count, default_int()), bin.shape())));
  return {bin, lax::bitwise_or(outside, numpy::isnan(points))};
}

// How many values, or which sum of weights, the bins of these numbers hold.
Array counts_of(const BinPlaces& places, Dim size, const std::optional<Array>& weights) {
  const Array target = numpy::where(places.outside, number_of(size, default_int()), places.bin);
  return numpy::bincount(target, weights ? std::optional<Array>(raveled(*weights)) : std::nullopt,
                         0, size);
}

}  // namespace

std::pair<Array, Array> numpy::histogram(Operand a, Operand bins,
                                         const std::optional<Arrays>& range,
                                         const OptionalArray& weights, bool density) {
  const Array edges = histogram_bin_edges(a, bins, range);
  Arrays inputs{raveled(floating_only("histogram", a)), edges};
  if (weights) inputs.push_back(*weights);
  Array counts = in_one_program(
      "histogram", inputs, {}, inputs[0].shape(0), [](std::span<const Array> inputs) {
        std::optional<Array> weights;
        if (inputs.size() > 2) weights = inputs[2];
        const Dim size = inputs[1].shape(0) - 1;
        return Arrays{counts_of(bin_places(inputs[0], inputs[1]), size, weights)};
      });
  if (density) counts = divide(counts, multiply(diff(edges), sum(counts)));
  return {counts, edges};
}

std::pair<Array, std::vector<Array>> numpy::histogramdd(Operand sample, Operands bins,
                                                        const std::optional<Arrays>& range,
                                                        const OptionalArray& weights,
                                                        bool density) {
  if (sample.ndim() != 2 || !sample.shape(1).is_constant())
    throw ShapeError("histogramdd: a sample of shape (" + sample.shape().to_string() + ")",
                     "give a matrix with a column for each variable");
  const std::size_t rank = std::size_t(sample.shape(1).constant());
  if (rank == 0 || (bins.size() != 1 && bins.size() != rank) || (range && range->size() != rank))
    throw ValueError("histogramdd: " + std::to_string(rank) + " variables with " +
                         std::to_string(bins.size()) + " bins",
                     "give bins for all or for each, and a range for each or none");
  std::vector<Array> edges;
  BinPlaces all;
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) {
    const Array x = lax::index_in_dim(sample, std::int64_t(i), 1, false);
    std::optional<Arrays> ends;
    if (range && (*range)[i].is_valid()) {
      if ((*range)[i].ndim() != 1 || !((*range)[i].shape(0) == Dim(2)))
        throw ShapeError("histogramdd: range " + std::to_string(i) + " of shape (" +
                             (*range)[i].shape().to_string() + ")",
                         "give (low, high) for each variable");
      ends = Arrays(unstack((*range)[i]));
    }
    edges.push_back(histogram_bin_edges(x, bins[bins.size() == 1 ? 0 : i], ends));
    const Dim count = edges[i].shape(0) - 1;
    const BinPlaces places = bin_places(floating_only("histogramdd", x), edges[i]);
    all = i == 0 ? places
                 : BinPlaces{add(multiply(all.bin, number_of(count, default_int())), places.bin),
                             lax::bitwise_or(all.outside, places.outside)};
    shape.push_back(count);
  }
  Array counts = lax::reshape(counts_of(all, shape.num_elements(), weights), shape);
  if (density) {
    const Array total = sum(counts);
    for (std::size_t i = 0; i < rank; ++i) {
      Shape widths(rank, 1);
      widths[i] = shape[i];
      counts = divide(counts, lax::reshape(diff(edges[i]), widths));
    }
    counts = divide(counts, total);
  }
  return {counts, edges};
}

std::tuple<Array, Array, Array> numpy::histogram2d(Operand x, Operand y, Operands bins,
                                                   const std::optional<Arrays>& range,
                                                   const OptionalArray& weights, bool density) {
  if (x.ndim() != 1 || !(x.shape() == y.shape()))
    throw ShapeError("histogram2d: x and y of shapes (" + x.shape().to_string() + ") and (" +
                         y.shape().to_string() + ")",
                     "give two vectors of one size");
  const auto [counts, edges] = histogramdd(stack({x, y}, 1), bins, range, weights, density);
  return {counts, edges[0], edges[1]};
}

namespace {

// bins in Python's forms: a number or edges for all variables, or one of these for each.
Arrays bins_of(std::string_view function, const Argument& bins, std::size_t rank) {
  if (std::optional<Array> array = detail::as_array(bins)) {
    if (array->ndim() == 1 && array->shape(0) == Dim(std::int64_t(rank)) && rank > 1 &&
        is_integer(array->dtype()))
      return numpy::unstack(*array);
    return {*array};
  }
  const auto* list = std::get_if<Argument::List>(&bins.value);
  Arrays result;
  bool numbers = true;
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const Argument& part = (*list)[i];
    numbers = numbers && !std::holds_alternative<Argument::List>(part.value);
    if (std::optional<Array> one = detail::as_array(part)) {
      numbers = numbers && one->ndim() == 0;
      result.push_back(*one);
    } else if (std::optional<Arrays> several = detail::as_arrays(part)) {
      result.push_back(numpy::stack(*several));
    }
  }
  if (!list || result.empty() || result.size() != list->size())
    throw DtypeError(std::string(function) + ": bins are no numbers and no edges",
                     "give a number, edges, or one of these for each variable");
  // A list of numbers is the edges of all, unless it has as many as there are variables.
  if (numbers && result.size() != rank) return {numpy::stack(result)};
  return result;
}

// A range for each variable, or None for that of its numbers, which is no valid array here.
std::optional<Arrays> ranges_of(std::string_view function, const Argument& range) {
  if (range.is_none()) return std::nullopt;
  const std::optional<Array> table = detail::as_array(range);
  if (table && table->ndim() == 2) return numpy::unstack(*table);
  const auto* list = std::get_if<Argument::List>(&range.value);
  if (!list)
    throw DtypeError(std::string(function) + ": argument 'range' is no sequence",
                     "give (low, high) or None for each variable");
  Arrays ranges;
  for (const Argument& part : *list) {
    Array ends;
    if (std::optional<Array> pair = detail::as_array(part))
      ends = *pair;
    else if (const auto* numbers = std::get_if<Argument::List>(&part.value)) {
      Arrays both;
      for (const Argument& number : *numbers)
        if (std::optional<Array> end = detail::as_array(number)) both.push_back(*end);
      ends = numpy::stack(both);
    }
    ranges.push_back(ends);
  }
  return ranges;
}

std::pair<Array, std::vector<Array>> histogramdd_of(Operand sample, const Argument& bins,
                                                    const Argument& range,
                                                    const std::optional<Array>& weights,
                                                    bool density) {
  const std::size_t rank = sample.ndim() == 2 && sample.shape(1).is_constant()
                               ? std::size_t(sample.shape(1).constant())
                               : 0;
  return numpy::histogramdd(sample, bins_of("histogramdd", bins, rank),
                            ranges_of("histogramdd", range), weights, density);
}
std::tuple<Array, Array, Array> histogram2d_of(Operand x, Operand y, const Argument& bins,
                                               const Argument& range,
                                               const std::optional<Array>& weights, bool density) {
  return numpy::histogram2d(x, y, bins_of("histogram2d", bins, 2), ranges_of("histogram2d", range),
                            weights, density);
}

[[maybe_unused]] const FunctionInfo* const histogram_functions[] = {
    function("numpy", "histogram(a, bins=10, range=None, weights=None, density=False)",
             "(counts, edges): how many elements lie in each bin, of so many between the extremes "
             "(or in range), or between given edges.",
             &numpy::histogram),
    function(
        "numpy", "histogram_bin_edges(a, bins=10, range=None, weights=None)",
        "The edges of the bins of histogram; weights have no say. ValueError for fewer bins than "
        "one, known ends that are not finite or in order, and known edges that do not rise.",
        &numpy::histogram_bin_edges),
    function("numpy", "histogramdd(sample, bins=10, range=None, weights=None, density=False)",
             "(counts, edges of each variable) of the rows of a matrix, whose columns are the "
             "variables. bins: a number or edges, for all or for each; range: (low, high) for "
             "each.",
             &histogramdd_of),
    function("numpy", "histogram2d(x, y, bins=10, range=None, weights=None, density=False)",
             "(counts, edges of x, edges of y) of pairs; bins and range as in histogramdd.",
             &histogram2d_of),
};

}  // namespace
}  // namespace plait
