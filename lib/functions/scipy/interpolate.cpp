// plait.scipy.interpolate: linear and nearest interpolation on grids of any distances.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/scipy_interpolate.h>

#include "functions/functions.h"
#include "functions/known_numbers.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

// Where a place lies along an axis of a grid: after which of its points, and which share of the way
// to the next one.
struct Cell {
  Array below, share, is_outside;
};

Cell cell_of(const Array& grid, const Array& place) {
  const Dim n = grid.shape(0);
  const Array found = numpy::subtract(numpy::searchsorted(grid, place, "right"), 1);
  const Array below = numpy::clip(found, 0, number_of(n - 2, found.dtype()));
  const Array left = numpy::take(grid, below, 0, "clip");
  const Array right = numpy::take(grid, numpy::add(below, 1), 0, "clip");
  const Array first = lax::index_in_dim(grid, 0, 0, false);
  const Array last = lax::index_in_dim(part(grid, 0, n - 1, n), 0, 0, false);
  return {below, numpy::divide(numpy::subtract(place, left), numpy::subtract(right, left)),
          lax::bitwise_or(numpy::less(place, first), numpy::greater(place, last))};
}

void check_grid(const std::vector<Array>& points, const Array& values, const Array& xi) {
  if (int(points.size()) > values.ndim() || points.empty())
    throw ShapeError("interpn: " + std::to_string(points.size()) +
                         " axes of points for values of shape (" + values.shape().to_string() + ")",
                     "give values with an axis for each axis of the grid");
  for (std::size_t axis = 0; axis < points.size(); ++axis) {
    const Array& grid = points[axis];
    if (grid.ndim() != 1 || !(grid.shape(0) == values.shape(int(axis))))
      throw ShapeError("interpn: points of shape (" + grid.shape().to_string() + ") along axis " +
                           std::to_string(axis) + " of values of shape (" +
                           values.shape().to_string() + ")",
                       "give a point for each value");
    if (less_equal(Dim(2), grid.shape(0)) == false)
      throw ShapeError("interpn: one point along axis " + std::to_string(axis),
                       "give at least two points");
    if (!may_rise(grid, std::less_equal<>()))
      throw ValueError("interpn: the points along axis " + std::to_string(axis) + " do not rise",
                       "sort them, and the values with them");
  }
  if (xi.ndim() < 1 || !(xi.shape(xi.ndim() - 1) == Dim(std::int64_t(points.size()))))
    throw ShapeError("interpn: places of shape (" + xi.shape().to_string() + ") in a grid of " +
                         std::to_string(points.size()) + " axes",
                     "give places whose last axis has a number for each axis of the grid");
}

void require_inside(const Array& is_outside) {
  const Array any = numpy::any(is_outside);
  if (!any.known_buffer())
    throw TracerError(
        "interpn: whether a place is outside of the grid is not known while the "
        "function is traced",
        "leave out bounds_error=True; fill_value says what lies outside");
  if (any.item<bool>())
    throw ValueError("interpn: a place is outside of the grid",
                     "give places inside, or leave out bounds_error=True");
}

}  // namespace

Array interpolate::interpn(Operands points, Operand values, Operand xi, const std::string& method,
                           bool bounds_error, const std::optional<Array>& fill_value) {
  if (method != "linear" && method != "nearest")
    throw ValueError("interpn: method is '" + method + "'", "choose 'linear' or 'nearest'");
  const Array known = to_inexact(values);
  std::vector<Array> grids;
  for (const Array& each : points) grids.push_back(floating_only("interpn", each));
  check_grid(grids, known, xi);
  const int last = xi.ndim() - 1, behind = known.ndim() - int(grids.size());
  const DType real = real_dtype_of(known.dtype());
  std::vector<Cell> cells;
  std::optional<Array> is_outside;
  for (std::size_t axis = 0; axis < grids.size(); ++axis) {
    const Array place =
        lax::index_in_dim(floating_only("interpn", xi), std::int64_t(axis), last, false);
    cells.push_back(cell_of(grids[axis], place));
    is_outside = is_outside ? lax::bitwise_or(*is_outside, cells.back().is_outside)
                            : cells.back().is_outside;
  }
  if (bounds_error) require_inside(*is_outside);
  // Over the axes of vectors.
  const auto spread = [&](const Array& x) {
    Shape shape = x.shape();
    for (int axis = 0; axis < behind; ++axis) shape.push_back(1);
    return lax::reshape(x, shape);
  };
  const SubscriptOptions clipped{lax::GatherScatterMode::clip, std::nullopt};
  Array result;
  if (method == "nearest") {
    Subscripts at;
    for (const Cell& cell : cells)
      at.push_back(
          numpy::where(numpy::less_equal(cell.share, 0.5), cell.below, numpy::add(cell.below, 1)));
    result = getitem(known, at, clipped);
  } else {
    for (std::size_t corner = 0; corner >> cells.size() == 0; ++corner) {
      Subscripts at;
      std::optional<Array> weight;
      for (std::size_t axis = 0; axis < cells.size(); ++axis) {
        const bool is_above = corner >> axis & 1;
        const Cell& cell = cells[axis];
        at.push_back(is_above ? numpy::add(cell.below, 1) : cell.below);
        const Array share = is_above ? cell.share : numpy::subtract(1, cell.share);
        weight = weight ? numpy::multiply(*weight, share) : share;
      }
      const Array value =
          numpy::multiply(getitem(known, at, clipped), spread(astype(*weight, real)));
      result = corner == 0 ? value : lax::add(result, value);
    }
  }
  if (!fill_value) return result;
  return numpy::where(spread(*is_outside), astype(*fill_value, result.dtype()), result);
}

namespace {

[[maybe_unused]] const FunctionInfo* const interpolate_functions[] = {
    function("scipy.interpolate",
             "interpn(points, values, xi, method='linear', bounds_error=False, fill_value=nan)",
             "The function whose values at the points of a grid are given, at xi, whose last axis "
             "holds a place along each axis of the grid. points: the rising places of the grid "
             "along each axis; values: an array over the grid, with more axes behind for vectors. "
             "method: 'linear' or 'nearest'. Outside of the grid lies fill_value; with None the "
             "outermost cells go on. With bounds_error a place there is a ValueError, and a "
             "TracerError where places are not known. ShapeError for shapes that do not fit.",
             &interpolate::interpn),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
