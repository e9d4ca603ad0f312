// plait.numpy: elements replaced by place, index and diagonal, and what selects them.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_edits.h>
#include <plait/functions/subscript.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

void refuse_inplace(std::string_view function, bool inplace) {
  if (inplace)
    throw ValueError(std::string(function) + ": arrays are not written to",
                     "pass inplace=False and use the result");
}

// The modes of put as those of a subscript; indices are brought inside for "clip" and "wrap".
SubscriptOptions put_options(std::string_view function, const std::optional<std::string>& mode) {
  if (!mode || *mode == "raise") return {};
  if (*mode == "fill" || *mode == "drop") return {lax::GatherScatterMode::fill, {}, false, false};
  if (*mode == "clip" || *mode == "wrap")
    return {lax::GatherScatterMode::promise, {}, false, false};
  if (*mode == "promise" || *mode == "promise_in_bounds")
    return {lax::GatherScatterMode::promise, {}, false, false};
  throw ValueError(std::string(function) + ": mode is '" + *mode + "'",
                   "choose 'raise', 'clip', 'wrap', 'drop' or 'promise'");
}
Array brought_inside(const Array& index, Dim size, const std::optional<std::string>& mode) {
  if (mode && *mode == "wrap") return numpy::remainder(index, number_of(size, index.dtype()));
  if (mode && *mode == "clip")
    return numpy::clip(index, constant(0, index), number_of(size - 1, index.dtype()));
  if (mode && (*mode == "promise" || *mode == "promise_in_bounds"))  // also from the end
    return numpy::where(numpy::less(index, 0), numpy::add(index, number_of(size, index.dtype())),
                        index);
  return index;
}
void require_put_indices(std::string_view function, const Array& indices) {
  if (!is_integer(indices.dtype()))
    throw DtypeError(
        std::string(function) + ": indices of dtype " + std::string(name_of(indices.dtype())),
        "give integers");
}

// A vector's elements in order and over again.
Array cycled(const Array& values, Dim size) {
  const Array row = raveled(values);
  if (row.shape(0) == Dim(1)) return plait::broadcast_to(row, Shape{size});
  return numpy::resize(row, Shape{size});
}

}  // namespace

Array numpy::resize(Operand a, const Shape& new_shape) {
  const Array row = raveled(a);
  const Dim size = new_shape.num_elements(), n = row.shape(0);
  if (n == Dim(0)) return lax::full(new_shape, 0, a.dtype());
  if (size == n) return lax::reshape(row, new_shape);
  if (less_equal(size, n) == true) return lax::reshape(part(row, 0, 0, size), new_shape);
  if (!Trace::current() && size.is_constant() && n.is_constant())  // copies, not indices
    return lax::reshape(part(tile(row, Shape{ceil_divide(size, n)}), 0, 0, size), new_shape);
  const Array places = remainder(counting(size), number_of(n, default_int()));
  return lax::reshape(take(row, places, 0, "clip"), new_shape);
}

Array numpy::place(Operand arr, Operand mask, Operand vals, bool inplace) {
  refuse_inplace("place", inplace);
  const Array where_true = truth(mask), row = raveled(vals);
  if (!(where_true.shape().num_elements() == arr.shape().num_elements()))
    throw ShapeError("place: a mask of shape (" + mask.shape().to_string() +
                         ") for an array of shape (" + arr.shape().to_string() + ")",
                     "give one of its shape");
  const Dim n = row.shape(0);
  if (n == Dim(0)) {
    const std::vector<complex128> flags = mask.to_vector<complex128>();
    if (std::any_of(flags.begin(), flags.end(), [](const complex128& flag) { return flag != 0.0; }))
      throw ShapeError("place: no values to place", "give at least one");
    return arr;
  }
  const Array flags = raveled(where_true);
  const Array number = lax::sub(lax::cumsum(plait::functions::astype(flags, default_int()), 0),
                                filled(1, counting(flags.shape(0))));
  const Array picked = take(row, remainder(number, number_of(n, default_int())), 0, "clip");
  const Array fitted = plait::functions::astype(picked, arr.dtype());
  return lax::reshape(where(flags, fitted, raveled(arr)), arr.shape());
}

Array numpy::put(Operand a, Operand ind, Operand v, const std::optional<std::string>& mode,
                 bool inplace) {
  refuse_inplace("put", inplace);
  if (ind.shape().num_elements() == Dim(0) || v.shape().num_elements() == Dim(0)) return a;
  require_put_indices("put", ind);
  const Array row = raveled(a), index = brought_inside(raveled(ind), row.shape(0), mode);
  const Array values = cycled(v, index.shape(0));
  const Array updated = update_item(row, {index}, plait::functions::astype(values, a.dtype()),
                                    UpdateKind::set, put_options("put", mode));
  return lax::reshape(updated, a.shape());
}

Array numpy::put_along_axis(Operand arr, Operand indices, Operand values, std::optional<int> axis,
                            bool inplace, const std::optional<std::string>& mode) {
  refuse_inplace("put_along_axis", inplace);
  if (!axis)
    return lax::reshape(
        put_along_axis(raveled(arr), raveled(indices), raveled(values), 0, false, mode),
        arr.shape());
  require_put_indices("put_along_axis", indices);
  if (indices.ndim() != arr.ndim())
    throw ShapeError("put_along_axis: indices of shape (" + indices.shape().to_string() +
                         ") for an array of shape (" + arr.shape().to_string() + ")",
                     "give indices of as many axes");
  const int dim = normalize_axis(*axis, arr.ndim(), "put_along_axis");
  // Other axes broadcast.
  Shape shape = arr.shape();
  shape[dim] = indices.shape(dim);
  Subscripts subscripts;
  for (int i = 0; i < arr.ndim(); ++i)
    subscripts.push_back(
        i == dim ? plait::broadcast_to(brought_inside(indices, arr.shape(i), mode), shape)
                 : lax::iota(default_int(), shape, i));
  const Array fitted = plait::functions::astype(plait::broadcast_to(values, shape), arr.dtype());
  return update_item(arr, subscripts, fitted, UpdateKind::set, put_options("put_along_axis", mode));
}

Array numpy::fill_diagonal(Operand a, Operand val, bool wrap, bool inplace) {
  refuse_inplace("fill_diagonal", inplace);
  if (a.ndim() < 2)
    throw ShapeError("fill_diagonal: an array of shape (" + a.shape().to_string() + ")",
                     "give one of at least 2 axes");
  for (int i = 1; i < a.ndim() && a.ndim() > 2; ++i)
    if (!(a.shape(i) == a.shape(0)))
      throw ShapeError("fill_diagonal: axes of different sizes in (" + a.shape().to_string() + ")",
                       "give axes of one size");
  // In the flattened array the diagonal is every stepth element.
  Dim step = 1, stride = 1;
  for (int i = a.ndim() - 1; i > 0; --i) stride = stride * a.shape(i), step = step + stride;
  const Dim size = a.shape().num_elements();
  const Dim end = a.ndim() == 2 && !wrap ? minimum(size, a.shape(1) * a.shape(1)) : size;
  const Dim count = floor_divide(end + step - 1, step);
  const Array updated =
      update_item(raveled(a), {Range{0, end, step}},
                  plait::functions::astype(cycled(val, count), a.dtype()), UpdateKind::set);
  return lax::reshape(updated, a.shape());
}

// --- Selection -----------------------------------------------------------------------------------

Array numpy::extract(Operand condition, Operand arr, std::optional<Dim> size, double fill_value) {
  return compress(raveled(condition), raveled(arr), 0, size, fill_value);
}

std::vector<Array> numpy::diag_indices(Dim n, int ndim) {
  if (ndim < 0)
    throw ValueError("diag_indices: ndim is " + std::to_string(ndim), "give a count >= 0");
  return std::vector<Array>(std::size_t(ndim), counting(n));
}
std::vector<Array> numpy::diag_indices_from(Operand arr) {
  for (int i = 0; i < arr.ndim(); ++i)
    if (arr.ndim() < 2 || !(arr.shape(i) == arr.shape(0)))
      throw ShapeError("diag_indices_from: an array of shape (" + arr.shape().to_string() + ")",
                       "give one of at least 2 axes of one size");
  return diag_indices(arr.shape(0), arr.ndim());
}

namespace {
void require_two_axes(std::string_view function, const Array& arr) {
  if (arr.ndim() != 2)
    throw ShapeError(
        std::string(function) + ": an array of shape (" + arr.shape().to_string() + ")",
        "give a matrix");
}
}  // namespace

std::vector<Array> numpy::tril_indices_from(Operand arr, int k) {
  require_two_axes("tril_indices_from", arr);
  return tril_indices(arr.shape(0), k, arr.shape(1));
}
std::vector<Array> numpy::triu_indices_from(Operand arr, int k) {
  require_two_axes("triu_indices_from", arr);
  return triu_indices(arr.shape(0), k, arr.shape(1));
}

namespace {

[[maybe_unused]] const FunctionInfo* const edit_functions[] = {
    function("numpy", "place(arr, mask, vals, *, inplace=True)",
             "arr with vals, in order and over again, where mask is true. Arrays are not written "
             "to: ValueError unless inplace=False.",
             &numpy::place),
    function("numpy", "put(a, ind, v, mode=None, *, inplace=True)",
             "a with v, in order and over again, at indices of its elements in a row. An index "
             "outside is an IndexError, dropped ('drop'), the nearest ('clip') or counted modulo "
             "the size ('wrap'). ValueError unless inplace=False.",
             &numpy::put),
    function("numpy", "put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None)",
             "arr with values at indices along an axis (None: of all in a row), of which each row "
             "has its own; the other axes broadcast. mode is as in put. ValueError unless "
             "inplace=False.",
             &numpy::put_along_axis),
    function("numpy", "fill_diagonal(a, val, wrap=False, *, inplace=True)",
             "a with val, a number or elements over again, on its main diagonal, which with wrap "
             "begins anew below the end of a tall matrix. ValueError unless inplace=False.",
             &numpy::fill_diagonal),
    function("numpy", "resize(a, new_shape)",
             "The elements in order and over again under a shape; zeros if there are none.",
             &numpy::resize),
    function("numpy", "extract(condition, arr, *, size=None, fill_value=0)",
             "The elements of arr in a row where the condition is true. With size so many, filled "
             "up with fill_value.",
             &numpy::extract),
    function("numpy", "diag_indices(n, ndim=2)",
             "The indices of the main diagonal of an array of ndim axes of size n, int32.",
             &numpy::diag_indices),
    function("numpy", "diag_indices_from(arr)", "diag_indices for an array's shape.",
             &numpy::diag_indices_from),
    function("numpy", "tril_indices_from(arr, k=0)", "tril_indices for a matrix's shape.",
             &numpy::tril_indices_from),
    function("numpy", "triu_indices_from(arr, k=0)", "triu_indices for a matrix's shape.",
             &numpy::triu_indices_from),
};

}  // namespace
}  // namespace plait
