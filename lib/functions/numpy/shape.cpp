// plait.numpy: shapes, axes, joining and splitting. Sizes may be named wherever their arithmetic
// decides.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/data_sizes.h>
#include <plait/trace/multiples.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

Shape numpy::shape(Operand a) { return a.shape(); }
Dim numpy::size(Operand a, const Axes& axis) {
  return size_of_axes(a.shape(), axis.of(a.ndim(), "size"));
}
int numpy::ndim(Operand a) { return a.ndim(); }

// --- Shape ---------------------------------------------------------------------------------------

namespace {
// Whether columns come first, of "C" (they do not) and "F".
bool column_major(const std::string& order, std::string_view function) {
  if (order == "F") return true;
  if (order == "C" || order == "A" || order == "K") return false;
  throw ValueError(std::string(function) + ": order is '" + order + "'", "choose 'C' or 'F'");
}
}  // namespace

Array numpy::reshape(Operand a, const Shape& shape, const std::string& order) {
  if (column_major(order, "reshape")) {
    Shape reversed = shape;
    std::reverse(reversed.begin(), reversed.end());
    return transpose(reshape(transpose(a), reversed));
  }
  Shape sizes = shape;
  int unknown = -1;
  Dim known = 1;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (!(sizes[i] == Dim(-1))) {
      known = known * sizes[i];
    } else if (unknown >= 0) {
      throw ValueError("reshape: the shape (" + shape.to_string() + ") leaves two sizes open",
                       "give -1 once");
    } else {
      unknown = i;
    }
  }
  if (unknown >= 0) {
    const Dim total = a.shape().num_elements();
    const bool exact = !(known == Dim(0)) && modulo(total, known) == Dim(0);
    if (!exact) {
      ask_multiple(total, known);
      throw ShapeError("reshape: an array of shape (" + a.shape().to_string() + ") has " +
                           total.to_string() + " elements, which the shape (" + shape.to_string() +
                           ") does not divide",
                       a.shape().is_constant()
                           ? "give sizes whose product divides the number of elements"
                           : "give sizes whose product divides the number of elements, or declare "
                             "what makes it so: constraints=[\"n % 8 == 0\"]");
    }
    sizes[unknown] = floor_divide(total, known);
  }
  return lax::reshape(a, sizes);
}

Array numpy::ravel(Operand a, const std::string& order) {
  if (column_major(order, "ravel")) return raveled(transpose(a));
  return raveled(a);
}

Array numpy::transpose(Operand a, const std::optional<std::vector<int>>& axes) {
  std::vector<int> order;
  for (int i = 0; i < a.ndim(); ++i) order.push_back(a.ndim() - 1 - i);
  if (axes) {
    order = *axes;
    for (int& axis : order) axis = normalize_axis(axis, a.ndim(), "transpose");
  }
  return lax::transpose(a, order);
}
Array numpy::permute_dims(Operand a, const std::vector<int>& axes) { return transpose(a, axes); }
Array numpy::matrix_transpose(Operand x) {
  if (x.ndim() < 2)
    throw ShapeError(
        "matrix_transpose: an array of shape (" + x.shape().to_string() + ") is no matrix",
        "give an array of at least 2 axes");
  return swapaxes(x, -1, -2);
}

Array numpy::swapaxes(Operand a, int axis1, int axis2) {
  std::vector<int> order;
  for (int i = 0; i < a.ndim(); ++i) order.push_back(i);
  std::swap(order[normalize_axis(axis1, a.ndim(), "swapaxes")],
            order[normalize_axis(axis2, a.ndim(), "swapaxes")]);
  return lax::transpose(a, order);
}

Array numpy::moveaxis(Operand a, const std::vector<int>& source,
                      const std::vector<int>& destination) {
  const int rank = a.ndim();
  if (source.size() != destination.size())
    throw ValueError("moveaxis: " + std::to_string(source.size()) + " axes to move and " +
                         std::to_string(destination.size()) + " places to move them to",
                     "give as many of each");
  const std::vector<int> checked = Axes(source).of(rank, "moveaxis"),
                         places = Axes(destination).of(rank, "moveaxis");
  std::vector<int> order(rank, -1);
  for (std::size_t i = 0; i < source.size(); ++i)
    order[normalize_axis(destination[i], rank, "moveaxis")] =
        normalize_axis(source[i], rank, "moveaxis");
  int next = 0;
  for (int& axis : order) {
    if (axis >= 0) continue;
    while (std::find(checked.begin(), checked.end(), next) != checked.end()) ++next;
    axis = next++;
  }
  return lax::transpose(a, order);
}

Array numpy::rollaxis(Operand a, int axis, int start) {
  const int rank = a.ndim(), from = normalize_axis(axis, rank, "rollaxis");
  int to = start < 0 ? start + rank : start;
  if (to < 0 || to > rank)
    throw IndexError(
        "rollaxis: start " + std::to_string(start) + " for " + std::to_string(rank) + " axes",
        "give one from 0 to the number of axes");
  if (from < to) --to;
  return moved(a, from, to);
}

Array numpy::expand_dims(Operand a, const std::vector<int>& axis) {
  const int rank = a.ndim() + int(axis.size());
  const std::vector<int> added = Axes(axis).of(rank, "expand_dims");
  Shape shape;
  std::vector<int> dims;
  for (int i = 0, next = 0; i < rank; ++i) {
    const bool is_added = std::find(added.begin(), added.end(), i) != added.end();
    shape.push_back(is_added ? Dim(1) : a.shape(next++));
    if (!is_added) dims.push_back(i);
  }
  return lax::broadcast_in_dim(a, shape, dims);
}

Array numpy::squeeze(Operand a, const Axes& axis) {
  std::vector<int> removed;
  if (!axis.is_none()) removed = axis.of(a.ndim(), "squeeze");
  for (int i = 0; axis.is_none() && i < a.ndim(); ++i)
    if (a.shape(i) == Dim(1)) removed.push_back(i);
  Shape shape;
  for (int i = 0; i < a.ndim(); ++i) {
    if (std::find(removed.begin(), removed.end(), i) == removed.end())
      shape.push_back(a.shape(i));
    else if (!(a.shape(i) == Dim(1)))
      throw ShapeError("squeeze: axis " + std::to_string(i) + " of an array of shape (" +
                           a.shape().to_string() + ") has size " + a.shape(i).to_string(),
                       "name axes of size 1");
  }
  return lax::reshape(a, shape);
}

Array numpy::broadcast_to(Operand array, const Shape& shape) {
  const Shape shapes[] = {array.shape(), shape};
  if (array.ndim() > shape.rank() || !(plait::broadcast_shapes(shapes, "broadcast_to") == shape))
    throw ShapeError("broadcast_to: an array of shape (" + array.shape().to_string() +
                         ") does not broadcast to (" + shape.to_string() + ")",
                     "give a shape that ends with the array's sizes, where those are not 1");
  return plait::broadcast_to(array, shape);
}

std::vector<Array> numpy::broadcast_arrays(Operands args) {
  std::vector<Shape> shapes;
  for (const Array& array : args) shapes.push_back(array.shape());
  const Shape shape = plait::broadcast_shapes(shapes, "broadcast_arrays");
  std::vector<Array> result;
  for (const Array& array : args) result.push_back(plait::broadcast_to(array, shape));
  return result;
}
Shape numpy::broadcast_shapes(const std::vector<Shape>& shapes) {
  return plait::broadcast_shapes(shapes, "broadcast_shapes");
}

Array numpy::atleast_1d(Operand array) {
  return array.ndim() >= 1 ? Array(array) : lax::reshape(array, {1});
}
Array numpy::atleast_2d(Operand array) {
  return array.ndim() >= 2 ? Array(array) : lax::reshape(array, {1, array.shape().num_elements()});
}
Array numpy::atleast_3d(Operand array) {
  if (array.ndim() >= 3) return array;
  const Array matrix = atleast_2d(array);
  return lax::reshape(matrix, {matrix.shape(0), matrix.shape(1), 1});
}

// --- Joining -------------------------------------------------------------------------------------

namespace {
Arrays with_one_dtype(const Arrays& arrays, std::optional<DType> dtype, std::string_view function) {
  if (arrays.empty())
    throw ValueError(std::string(function) + ": no arrays to join", "give at least one");
  Arrays result(arrays);
  if (dtype)
    for (Array& array : result) array = astype(array, *dtype);
  else
    promote_dtypes(result, function);
  return result;
}
Arrays each(const Arrays& arrays, Array (*change)(Operand)) {
  Arrays result;
  for (const Array& array : arrays) result.push_back(change(array));
  return result;
}
}  // namespace

Array numpy::concatenate(Operands arrays, std::optional<int> axis, std::optional<DType> dtype) {
  Arrays parts = with_one_dtype(arrays, dtype, "concatenate");
  if (!axis) parts = each(parts, [](Operand x) { return raveled(x); });
  return lax::concatenate(parts, normalize_axis(axis.value_or(0), parts[0].ndim(), "concatenate"));
}
Array numpy::concat(Operands arrays, std::optional<int> axis) { return concatenate(arrays, axis); }

Array numpy::stack(Operands arrays, int axis, std::optional<DType> dtype) {
  Arrays parts = with_one_dtype(arrays, dtype, "stack");
  for (const Array& array : parts)
    if (!(array.shape() == parts[0].shape()))
      throw ShapeError("stack: arrays of shapes (" + parts[0].shape().to_string() + ") and (" +
                           array.shape().to_string() + ")",
                       "give arrays of equal shape, or use concatenate");
  for (Array& array : parts) array = expand_dims(array, {axis});
  return lax::concatenate(parts, normalize_axis(axis, parts[0].ndim(), "stack"));
}

Array numpy::vstack(Operands tup, std::optional<DType> dtype) {
  return concatenate(each(tup, atleast_2d), 0, dtype);
}
Array numpy::hstack(Operands tup, std::optional<DType> dtype) {
  const Arrays parts = each(tup, atleast_1d);
  return concatenate(parts, parts.empty() || parts[0].ndim() == 1 ? 0 : 1, dtype);
}
Array numpy::dstack(Operands tup, std::optional<DType> dtype) {
  return concatenate(each(tup, atleast_3d), 2, dtype);
}
Array numpy::column_stack(Operands tup) {
  Arrays columns;
  for (const Array& array : tup)
    columns.push_back(array.ndim() >= 2 ? Array(array)
                                        : lax::reshape(array, {array.shape().num_elements(), 1}));
  return concatenate(columns, 1);
}
Array numpy::append(Operand arr, Operand values, std::optional<int> axis) {
  return concatenate({arr, values}, axis);
}

// --- Splitting -----------------------------------------------------------------------------------

std::vector<Array> numpy::unstack(Operand x, int axis) {
  const int dim = normalize_axis(axis, x.ndim(), "unstack");
  if (!x.shape(dim).is_constant())
    throw ShapeError(
        "unstack: axis " + std::to_string(dim) + " has the named size " + x.shape(dim).to_string(),
        "give it a number");
  if (x.shape(dim) == Dim(0)) return {};
  std::vector<Array> rows = array_split(x, x.shape(dim), dim);
  for (Array& row : rows) row = squeeze(row, dim);
  return rows;
}

std::vector<Array> numpy::split(Operand ary, const Sections& indices_or_sections, int axis) {
  const int dim = normalize_axis(axis, ary.ndim(), "split");
  const std::optional<Dim> count = indices_or_sections.count();
  if (count && less_equal(1, *count) == true && !(modulo(ary.shape(dim), *count) == Dim(0))) {
    ask_multiple(ary.shape(dim), *count);
    throw ShapeError("split: axis " + std::to_string(dim) + " of an array of shape (" +
                         ary.shape().to_string() + ") does not split into " + count->to_string() +
                         " equal parts",
                     "use array_split, or give the indices to split at");
  }
  return array_split(ary, indices_or_sections, axis);
}

std::vector<Array> numpy::array_split(Operand ary, const Sections& indices_or_sections, int axis) {
  const int dim = normalize_axis(axis, ary.ndim(), "array_split");
  const Dim size = ary.shape(dim);
  Shape sizes;
  if (const std::optional<Dim> count = indices_or_sections.count()) {
    constexpr std::int64_t most = 1 << 20;
    if (!count->is_constant() || count->constant() < 1 || count->constant() > most)
      throw ValueError("array_split: " + count->to_string() + " sections",
                       "give a number from 1 to " + std::to_string(most));
    const Dim whole = floor_divide(size, *count), rest = size - whole * *count;
    for (std::int64_t i = 0; i < count->constant(); ++i)  // the first ones are longer by one
      sizes.push_back(rest == Dim(0) ? whole : whole + minimum(1, maximum(0, rest - i)));
    if (sizes.size() == 1) return {ary};
  } else {
    std::vector<Array> parts;
    Dim start = 0;
    Shape ends = indices_or_sections.indices();
    ends.push_back(size);
    for (Dim end : ends) {  // as slices: negative indices count from the end; ends are clamped
      if (less_equal(end, -1).value_or(false)) end = maximum(0, end + size);
      end = minimum(end, size);
      const Dim from = minimum(start, size);
      parts.push_back(part(ary, dim, from, maximum(from, end)));
      start = end;
    }
    return parts;
  }
  return lax::split(ary, sizes, dim);
}

std::vector<Array> numpy::hsplit(Operand ary, const Sections& indices_or_sections) {
  return split(ary, indices_or_sections, ary.ndim() > 1 ? 1 : 0);
}
std::vector<Array> numpy::vsplit(Operand ary, const Sections& indices_or_sections) {
  return split(ary, indices_or_sections, 0);
}
std::vector<Array> numpy::dsplit(Operand ary, const Sections& indices_or_sections) {
  return split(ary, indices_or_sections, 2);
}

// --- Repeating -----------------------------------------------------------------------------------

Array numpy::tile(Operand A, const Shape& reps) {
  const int rank = std::max(A.ndim(), reps.rank());
  Shape from(rank - A.ndim(), 1), counts(rank - reps.rank(), 1);
  for (Dim dim : A.shape()) from.push_back(dim);
  for (Dim count : reps) counts.push_back(count);
  // An axis of copies after each axis.
  Shape spread, result;
  std::vector<int> dims;
  for (int i = 0; i < rank; ++i) {
    spread.push_back(counts[i]);
    spread.push_back(from[i]);
    dims.push_back(2 * i + 1);
    result.push_back(counts[i] * from[i]);
  }
  return lax::reshape(lax::broadcast_in_dim(lax::reshape(A, from), spread, dims), result);
}

namespace {
// Repeats each element as often as its count: output i holds the element whose run contains i.
Array repeat_each(const Array& x, const Array& counts, int dim, std::optional<Dim> total) {
  if (!is_integer(counts.dtype()) || counts.ndim() > 1)
    throw DtypeError("repeat: counts of type " + counts.aval().to_string(),
                     "give an integer, or a vector of integers");
  if (counts.ndim() == 1 && !(counts.shape(0) == x.shape(dim)) && !(counts.shape(0) == Dim(1)))
    throw ShapeError("repeat: " + counts.shape(0).to_string() + " counts for " +
                         x.shape(dim).to_string() + " elements",
                     "give one count, or one for each");
  const Array each = plait::broadcast_to(astype(counts, default_int()), {x.shape(dim)});
  if (each.known_buffer() && numpy::any(lax::lt(each, numpy::zeros_like(each))).item<bool>())
    throw ValueError("repeat: a count is negative", "give counts >= 0");
  const Array ends = lax::cumsum(each, 0);
  if (!total)
    total =
        x.shape(dim) == Dim(0)
            ? Dim(0)
            : Dim(known_size(numpy::max(ends), "repeat", "say how many with total_repeat_length="));
  const Array source = numpy::searchsorted(ends, counting(*total), "right");
  return numpy::take(x, source, dim, "clip");
}
}  // namespace

Array numpy::repeat(Operand a, const Repeats& repeats, std::optional<int> axis,
                    std::optional<Dim> total_repeat_length) {
  const Array x = axis ? Array(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "repeat");
  if (!repeats.count()) return repeat_each(x, repeats.counts(), dim, total_repeat_length);
  const Dim count = *repeats.count();
  if (total_repeat_length && !(x.shape(dim) * count == *total_repeat_length))
    return repeat_each(x, number_of(count, default_int()), dim, total_repeat_length);
  if (less_equal(0, count) == false)
    throw ValueError("repeat: the count is " + count.to_string(), "give a count >= 0");
  Shape spread = x.shape(), result = x.shape();
  spread.insert(dim + 1, count);
  result[dim] = result[dim] * count;
  std::vector<int> dims;
  for (int i = 0; i < x.ndim(); ++i) dims.push_back(i <= dim ? i : i + 1);
  return lax::reshape(lax::broadcast_in_dim(x, spread, dims), result);
}

// --- Catalogue -----------------------------------------------------------------------------------

namespace {

Shape broadcast_shapes_of(const Argument& shapes) {
  std::vector<Shape> list;
  if (const auto* arguments = std::get_if<Argument::List>(&shapes.value))
    for (const Argument& argument : *arguments) {
      std::optional<Shape> shape = detail::as_shape(argument);
      if (!shape)
        throw DtypeError("broadcast_shapes: an argument is no shape", "give sequences of integers");
      list.push_back(*std::move(shape));
    }
  return numpy::broadcast_shapes(list);
}

// One array for one argument, a tuple for several.
template <Array (*change)(Operand)>
Argument one_or_all(Arrays arrays) {
  if (arrays.size() == 1) return detail::give(change(arrays[0]));
  return detail::give(each(arrays, change));
}

[[maybe_unused]] const FunctionInfo* const shape_functions[] = {
    function("numpy", "shape(a)", "The sizes of a's axes, as a tuple.", &numpy::shape),
    function("numpy", "size(a, axis=None)", "The number of elements, over all axes or some.",
             &numpy::size),
    function("numpy", "ndim(a)", "The number of axes of a.", &numpy::ndim),
    function("numpy", "reshape(a, shape, order='C', *, copy=None!)",
             "The elements under another shape, in row-major order ('F': column-major); one size "
             "may be -1: what is left. ShapeError when the number of elements differs.",
             &numpy::reshape),
    function("numpy", "ravel(a, order='C')",
             "The elements in one row, in row-major order ('F': column-major).", &numpy::ravel),
    function("numpy", "transpose(a, axes=None)",
             "Axis i of the result is axis axes[i] of a; reversed when axes is None.",
             &numpy::transpose),
    function("numpy", "permute_dims(a, axes)", "The same as transpose.", &numpy::permute_dims),
    function("numpy", "matrix_transpose(x)", "x with its last two axes exchanged.",
             &numpy::matrix_transpose),
    function("numpy", "swapaxes(a, axis1, axis2)", "a with two axes exchanged.", &numpy::swapaxes),
    function("numpy", "moveaxis(a, source, destination)",
             "a with some axes moved to other places; the others keep their order.",
             &numpy::moveaxis),
    function("numpy", "rollaxis(a, axis, start=0)", "a with one axis moved before another.",
             &numpy::rollaxis),
    function("numpy", "expand_dims(a, axis)",
             "a with axes of size 1, at these places of the result.", &numpy::expand_dims),
    function("numpy", "squeeze(a, axis=None)", "a without axes of size 1: these, or all of them.",
             &numpy::squeeze),
    function("numpy", "broadcast_to(array, shape)",
             "array repeated to a shape, whose last sizes are its own where those are not 1.",
             &numpy::broadcast_to),
    function("numpy", "broadcast_arrays(*args)", "Arrays broadcast against each other.",
             &numpy::broadcast_arrays),
    function("numpy", "broadcast_shapes(*shapes)",
             "The shape that arrays of these shapes broadcast to.", &broadcast_shapes_of),
    function("numpy", "atleast_1d(*arys)", "Arrays with an axis added to scalars.",
             &one_or_all<numpy::atleast_1d>),
    function("numpy", "atleast_2d(*arys)", "Arrays with axes added in front up to 2.",
             &one_or_all<numpy::atleast_2d>),
    function("numpy", "atleast_3d(*arys)", "Arrays with axes added up to 3, as NumPy adds them.",
             &one_or_all<numpy::atleast_3d>),
    function("numpy", "concatenate(arrays, axis=0, dtype=None)",
             "Arrays one after the other along an axis; None: all flattened.", &numpy::concatenate),
    function("numpy", "concat(arrays, *, axis=0)", "The same as concatenate.", &numpy::concat),
    function("numpy", "stack(arrays, axis=0, dtype=None)",
             "Arrays of equal shape along a new axis.", &numpy::stack),
    function("numpy", "vstack(tup, dtype=None)", "Arrays, rows among them, one below the other.",
             &numpy::vstack),
    function("numpy", "hstack(tup, dtype=None)",
             "Arrays side by side: along axis 1, or 0 for vectors.", &numpy::hstack),
    function("numpy", "dstack(tup, dtype=None)", "Arrays along the third axis.", &numpy::dstack),
    function("numpy", "column_stack(tup)", "Vectors as columns, matrices side by side.",
             &numpy::column_stack),
    function("numpy", "append(arr, values, axis=None)",
             "values after arr along an axis; None: both flattened.", &numpy::append),
    function("numpy", "unstack(x, *, axis=0)", "The parts of x along an axis, which they lose.",
             &numpy::unstack),
    function("numpy", "split(ary, indices_or_sections, axis=0)",
             "Equal parts along an axis, or the parts between indices. ShapeError when the parts "
             "cannot be equal.",
             &numpy::split),
    function("numpy", "array_split(ary, indices_or_sections, axis=0)",
             "The same, where the first parts may be longer by one.", &numpy::array_split),
    function("numpy", "hsplit(ary, indices_or_sections)",
             "The parts of an array along axis 1, or 0 for vectors, as split.", &numpy::hsplit),
    function("numpy", "vsplit(ary, indices_or_sections)",
             "The parts of an array along axis 0, as split.", &numpy::vsplit),
    function("numpy", "dsplit(ary, indices_or_sections)",
             "The parts of an array along axis 2, as split.", &numpy::dsplit),
    function("numpy", "tile(A, reps)",
             "A repeated reps times along each axis, the last ones matched.", &numpy::tile),
    function("numpy", "repeat(a, repeats, axis=None, *, total_repeat_length=None)",
             "Each element repeated along an axis (None: of all in a row), so often or as often as "
             "a vector of counts says. Under jit counts need total_repeat_length: what is more is "
             "cut, what lacks repeats the last element.",
             &numpy::repeat),
};

}  // namespace
}  // namespace plait
