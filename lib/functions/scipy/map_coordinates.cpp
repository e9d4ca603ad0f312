// plait.scipy.ndimage, integrate and cluster.vq: interpolation between elements, integrals, the
// nearest of several points.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/scipy_ndimage.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

// What lies outside of an array.
enum class Outside : std::uint8_t { constant, nearest, wrap, mirror, reflect };
Outside outside_of(const std::string& mode) {
  constexpr std::pair<std::string_view, Outside> modes[] = {
      {"constant", Outside::constant}, {"grid-constant", Outside::constant},
      {"nearest", Outside::nearest},   {"wrap", Outside::wrap},
      {"grid-wrap", Outside::wrap},    {"mirror", Outside::mirror},
      {"reflect", Outside::reflect},   {"grid-mirror", Outside::reflect}};
  for (const auto& [name, outside] : modes)
    if (mode == name) return outside;
  throw ValueError("map_coordinates: mode is '" + mode + "'",
                   "choose 'constant', 'nearest', 'wrap', 'mirror' or 'reflect'");
}

// The place inside of n elements that a place anywhere stands for.
Array inside(const Array& index, Dim n, Outside outside) {
  const Array size = number_of(n, index.dtype()), last = number_of(n - 1, index.dtype());
  if (outside == Outside::wrap) return numpy::remainder(index, size);
  if (outside == Outside::mirror) {  // 0 1 2 1 | 0 1 2 1
    const Array period = lax::max(last + last, constant(1, index));
    const Array turn = numpy::remainder(index, period);
    return numpy::minimum(turn, period - turn);
  }
  if (outside == Outside::reflect) {  // 0 1 2 2 1 0 | 0 1 2 2 1 0
    const Array turn = numpy::remainder(index, size + size);
    return numpy::minimum(turn, last + size - turn);
  }
  return numpy::clip(index, 0, last);
}

// Elements near places along one axis: where, how much they count (nothing: fully), and whether
// they are there.
struct Node {
  Array index;
  std::optional<Array> weight, is_there;
};

Node node_at(const Array& place, std::optional<Array> weight, Dim n, Outside outside) {
  const Array index = astype(place, DType::int32);
  std::optional<Array> is_there;
  if (outside == Outside::constant)
    is_there = lax::bitwise_and(numpy::greater_equal(index, 0),
                                numpy::less(index, number_of(n, index.dtype())));
  return {inside(index, n, outside), std::move(weight), std::move(is_there)};
}

// The nearest integer, the greater one of two: x + 0.5 may round up where x is just below a half.
Array nearest_whole(const Array& x) {
  const Array below = numpy::floor(x);
  return numpy::where(lax::sub(x, below) < 0.5, below, below + 1.0);
}

std::vector<Node> nodes_along(const Array& places, Dim n, int order, Outside outside) {
  if (!is_inexact(places.dtype())) return {node_at(places, std::nullopt, n, outside)};
  if (order == 0) return {node_at(nearest_whole(places), std::nullopt, n, outside)};
  const Array below = numpy::floor(places), above = numpy::subtract(places, below);
  return {node_at(below, numpy::subtract(1, above), n, outside),
          node_at(numpy::add(below, 1), above, n, outside)};
}

}  // namespace

Array ndimage::map_coordinates(Operand input, Operands coordinates, int order,
                               const std::string& mode, Operand cval) {
  const Outside outside = outside_of(mode);
  if (order != 0 && order != 1)
    throw ValueError("map_coordinates: order is " + std::to_string(order) +
                         ": there are no splines of higher order",
                     "give 0 for the nearest element, or 1 for linear interpolation");
  if (int(coordinates.size()) != input.ndim())
    throw ValueError("map_coordinates: " + std::to_string(coordinates.size()) +
                         " arrays of coordinates for an input of " + std::to_string(input.ndim()) +
                         " axes",
                     "give an array for each axis");
  if (input.shape().num_elements() == Dim(0))
    throw ShapeError("map_coordinates: an input of shape (" + input.shape().to_string() + ")",
                     "give an input with elements");
  if (coordinates.empty()) return input;
  Arrays places(coordinates.begin(), coordinates.end());
  promote_dtypes(places, "map_coordinates");
  broadcast_shapes(std::span<Array>(places), "map_coordinates");
  for (const Array& each : places) floating_only("map_coordinates", each);
  const Array values = is_inexact(input.dtype())       ? Array(input)
                       : is_inexact(places[0].dtype()) ? astype(input, places[0].dtype())
                                                       : to_inexact(input);
  std::vector<std::vector<Node>> nodes;
  for (std::size_t axis = 0; axis < places.size(); ++axis)
    nodes.push_back(nodes_along(places[axis], input.shape(int(axis)), order, outside));
  const DType weights = real_dtype_of(values.dtype());
  const Array around = astype(astype(cval, input.dtype()), values.dtype());
  std::optional<Array> sum;
  std::vector<std::size_t> chosen(nodes.size(), 0);
  for (bool more = true; more;) {
    Subscripts at;
    std::optional<Array> weight, is_there;
    for (std::size_t axis = 0; axis < nodes.size(); ++axis) {
      const Node& node = nodes[axis][chosen[axis]];
      at.push_back(node.index);
      if (node.weight) weight = weight ? lax::mul(*weight, *node.weight) : *node.weight;
      if (node.is_there)
        is_there = is_there ? lax::bitwise_and(*is_there, *node.is_there) : *node.is_there;
    }
    Array value = getitem(values, at, {lax::GatherScatterMode::clip, std::nullopt});
    if (is_there) value = numpy::where(*is_there, value, around);
    if (weight) value = numpy::multiply(value, astype(*weight, weights));
    sum = sum ? lax::add(*sum, value) : value;
    more = false;  // the next choice of a node for each axis
    for (std::size_t axis = 0; axis < nodes.size() && !more; ++axis) {
      more = ++chosen[axis] < nodes[axis].size();
      if (!more) chosen[axis] = 0;
    }
  }
  if (is_inexact(input.dtype())) return *sum;
  const Array rounded = lax::mul(lax::sign(*sum), nearest_whole(lax::abs(*sum)));
  return astype(rounded, input.dtype());
}

std::pair<Array, Array> cluster::vq::vq(Operand obs, Operand code_book, bool) {
  if (obs.ndim() != code_book.ndim() || obs.ndim() < 1 || obs.ndim() > 2 ||
      (obs.ndim() == 2 && !(obs.shape(1) == code_book.shape(1))) || code_book.shape(0) == Dim(0))
    throw ShapeError("vq: observations of shape (" + obs.shape().to_string() +
                         ") and a code book of shape (" + code_book.shape().to_string() + ")",
                     "give two matrices of as many columns, or two vectors, and at least one code");
  Arrays both{to_inexact(obs), to_inexact(code_book)};
  promote_dtypes(both, "vq");
  for (Array& x : both)
    if (x.ndim() == 1) x = numpy::expand_dims(x, {1});
  const Array between =
      numpy::subtract(numpy::expand_dims(both[0], {1}), numpy::expand_dims(both[1], {0}));
  const Array code = numpy::argmin(numpy::sum(numpy::square(numpy::abs(between)), {-1}), -1);
  const Array nearest = numpy::take(both[1], code, 0, "clip");
  return {code, numpy::linalg::norm(numpy::subtract(both[0], nearest), {}, {-1})};
}

namespace {

[[maybe_unused]] const FunctionInfo* const interpolation_functions[] = {
    function("scipy.ndimage",
             "map_coordinates(input, coordinates, order, mode='constant', cval=0.0)",
             "input at places between its elements: coordinates has an array of places for each "
             "axis. order: 0, the nearest element; 1, linear interpolation. Outside lies, by mode: "
             "'constant', cval (what SciPy calls 'grid-constant'); 'nearest', the edge; 'wrap', "
             "input again (SciPy's 'grid-wrap'); 'mirror' and 'reflect', its mirror image, without "
             "and with the edge. The result is of input's dtype. ValueError for another order or "
             "mode, or other numbers of coordinates than axes.",
             &ndimage::map_coordinates),
    function("scipy.integrate", "trapezoid(y, x=None, dx=1.0, axis=-1)",
             "The integral along an axis by the trapezoidal rule.", &integrate::trapezoid),
    function("scipy.cluster.vq", "vq(obs, code_book, check_finite=True)",
             "For each row of obs the number of the nearest row of code_book, and its distance. "
             "Vectors are columns of numbers. ShapeError for other shapes.",
             &cluster::vq::vq),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
