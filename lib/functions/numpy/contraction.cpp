// plait.numpy: products of vectors, matrices and tensors, as dot_general.
// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using OptionalDType = std::optional<DType>;

Arrays one_dtype(std::string_view function, const Array& a, const Array& b) {
  Arrays x{a, b};
  promote_dtypes(x, function);
  return x;
}

Array contract(const Arrays& x, std::vector<int> a_axes, std::vector<int> b_axes,
               OptionalDType dtype) {
  return lax::dot_general(x[0], x[1], {std::move(a_axes), std::move(b_axes), {}, {}}, dtype);
}

void require_axes(std::string_view function, const Array& a, const Array& b) {
  if (a.ndim() == 0 || b.ndim() == 0)
    throw ShapeError(std::string(function) + ": operands of shapes (" + a.shape().to_string() +
                         ") and (" + b.shape().to_string() + "), of which one is a scalar",
                     "use multiply");
}

void require_equal_sizes(std::string_view function, const Array& a, int a_axis, const Array& b,
                         int b_axis) {
  if (a.shape(a_axis) == b.shape(b_axis)) return;
  throw ShapeError(std::string(function) + ": shapes (" + a.shape().to_string() + ") and (" +
                       b.shape().to_string() + ") do not fit: sizes " +
                       a.shape(a_axis).to_string() + " and " + b.shape(b_axis).to_string() +
                       " meet",
                   "transpose an operand, or make the sizes equal");
}

// a[..., n, k] b[..., k, m] whose leading axes broadcast. Axes that only one operand has, or that
// have size 1 in the other, are free; the rest are batch axes.
Array batched_matmul(const Array& a, const Array& b, OptionalDType dtype) {
  const int a_batch = a.ndim() - 2, b_batch = b.ndim() - 2, batch = std::max(a_batch, b_batch);
  const Shape shapes[] = {Shape(a.shape().begin(), a.shape().end() - 2),
                          Shape(b.shape().begin(), b.shape().end() - 2)};
  plait::broadcast_shapes(shapes, "matmul");
  lax::DotDimensions d;
  Shape a_shape, b_shape, unit;             // without the axes of size 1 that broadcast
  std::vector<int> shared, from_a, from_b;  // axes of the result by origin
  std::vector<int> units;
  for (int i = 0; i < batch; ++i) {
    const int ia = i - (batch - a_batch), ib = i - (batch - b_batch);
    const bool in_a = ia >= 0 && !(a.shape(ia) == Dim(1)),
               in_b = ib >= 0 && !(b.shape(ib) == Dim(1));
    if (in_a && in_b) {
      d.lhs_batch.push_back(a_shape.rank());
      d.rhs_batch.push_back(b_shape.rank());
      shared.push_back(i);
    } else if (in_a) {
      from_a.push_back(i);
    } else if (in_b) {
      from_b.push_back(i);
    } else {
      units.push_back(i);
    }
    if (in_a) a_shape.push_back(a.shape(ia));
    if (in_b) b_shape.push_back(b.shape(ib));
  }
  d.lhs_contract = {a_shape.rank() + 1};
  d.rhs_contract = {b_shape.rank()};
  for (int i : {2, 1}) {
    a_shape.push_back(a.shape(a.ndim() - i));
    b_shape.push_back(b.shape(b.ndim() - i));
  }
  const Array product =
      lax::dot_general(lax::reshape(a, a_shape), lax::reshape(b, b_shape), d, dtype);
  // Axes of the product: the shared ones, those of a, n, those of b, m.
  std::vector<int> places = shared;
  places.insert(places.end(), from_a.begin(), from_a.end());
  places.push_back(batch);
  places.insert(places.end(), from_b.begin(), from_b.end());
  places.push_back(batch + 1);
  std::vector<int> order(places.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = int(i);
  std::sort(order.begin(), order.end(), [&](int i, int j) { return places[i] < places[j]; });
  const Array result = lax::transpose(product, order);
  if (units.empty()) return result;
  Shape shape = result.shape();
  for (int i : units) shape.insert(i, 1);
  return lax::reshape(result, shape);
}

}  // namespace

Array numpy::matmul(Operand a, Operand b, OptionalDType preferred_element_type) {
  require_axes("matmul", a, b);
  const Arrays x = one_dtype("matmul", a, b);
  const int a_last = a.ndim() - 1, b_inner = std::max(0, b.ndim() - 2);
  require_equal_sizes("matmul", a, a_last, b, b_inner);
  // One operand without batch axes: the rows of the other form one matrix.
  if (b.ndim() <= 2 || a.ndim() == 1) {
    return contract(x, {a_last}, {b_inner}, preferred_element_type);
  }
  if (a.ndim() == 2) {  // [n, k] with [..., k, m]: n belongs before m
    return moved(contract(x, {1}, {b_inner}, preferred_element_type), 0, b.ndim() - 2);
  }
  return batched_matmul(x[0], x[1], preferred_element_type);
}

Array numpy::dot(Operand a, Operand b, OptionalDType preferred_element_type) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
  const int b_inner = std::max(0, b.ndim() - 2);
  require_equal_sizes("dot", a, a.ndim() - 1, b, b_inner);
  return contract(one_dtype("dot", a, b), {a.ndim() - 1}, {b_inner}, preferred_element_type);
}

Array numpy::inner(Operand a, Operand b, OptionalDType preferred_element_type) {
  if (a.ndim() == 0 || b.ndim() == 0) return multiply(a, b);
  require_equal_sizes("inner", a, a.ndim() - 1, b, b.ndim() - 1);
  return contract(one_dtype("inner", a, b), {a.ndim() - 1}, {b.ndim() - 1}, preferred_element_type);
}

Array numpy::vdot(Operand a, Operand b, OptionalDType preferred_element_type) {
  return dot(conj(raveled(a)), raveled(b), preferred_element_type);
}

Array numpy::vecdot(Operand x1, Operand x2, int axis, OptionalDType preferred_element_type) {
  const auto with_last = [axis](const Array& x) {
    return axis == -1 || axis == x.ndim() - 1 ? x : moveaxis(x, {axis}, {-1});
  };
  const Array a = with_last(conj(x1)), b = with_last(x2);
  require_axes("vecdot", a, b);
  require_equal_sizes("vecdot", a, a.ndim() - 1, b, b.ndim() - 1);
  if (a.shape() == b.shape()) {
    std::vector<int> batch(std::size_t(a.ndim() - 1));
    std::iota(batch.begin(), batch.end(), 0);
    const Arrays x = one_dtype("vecdot", a, b);
    const int last = a.ndim() - 1;
    return lax::dot_general(x[0], x[1], {{last}, {last}, batch, batch}, preferred_element_type);
  }
  const Array product = matmul(expand_dims(a, {-2}), expand_dims(b, {-1}), preferred_element_type);
  return squeeze(product, {-2, -1});
}

Array numpy::outer(Operand a, Operand b) {
  return multiply(lax::reshape(a, {a.shape().num_elements(), 1}), raveled(b));
}

Array numpy::matvec(Operand x1, Operand x2) {
  require_axes("matvec", x1, x2);
  return squeeze(matmul(x1, expand_dims(x2, {-1})), -1);
}
Array numpy::vecmat(Operand x1, Operand x2) {
  require_axes("vecmat", x1, x2);
  return squeeze(matmul(expand_dims(conj(x1), {-2}), x2), -2);
}

Array numpy::tensordot(Operand a, Operand b, int axes, OptionalDType preferred_element_type) {
  if (axes < 0 || axes > std::min(a.ndim(), b.ndim()))
    throw ValueError("tensordot: " + std::to_string(axes) + " axes of arrays of shapes (" +
                         a.shape().to_string() + ") and (" + b.shape().to_string() + ")",
                     "give at most as many as either array has");
  std::vector<int> a_axes, b_axes;
  for (int i = 0; i < axes; ++i) {
    a_axes.push_back(a.ndim() - axes + i);
    b_axes.push_back(i);
  }
  return tensordot(a, b, a_axes, b_axes, preferred_element_type);
}

Array numpy::tensordot(Operand a, Operand b, const std::vector<int>& a_axes,
                       const std::vector<int>& b_axes, OptionalDType preferred_element_type) {
  if (a_axes.size() != b_axes.size())
    throw ValueError("tensordot: " + std::to_string(a_axes.size()) + " axes of one array and " +
                         std::to_string(b_axes.size()) + " of the other",
                     "name as many axes of each");
  std::vector<int> left = a_axes, right = b_axes;
  for (int& axis : left) axis = normalize_axis(axis, a.ndim(), "tensordot");
  for (int& axis : right) axis = normalize_axis(axis, b.ndim(), "tensordot");
  for (std::size_t i = 0; i < left.size(); ++i)
    require_equal_sizes("tensordot", a, left[i], b, right[i]);
  return contract(one_dtype("tensordot", a, b), left, right, preferred_element_type);
}

Array numpy::kron(Operand a, Operand b) {
  const int rank = std::max(a.ndim(), b.ndim());
  Shape a_shape, b_shape, result;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.ndim()), ib = i - (rank - b.ndim());
    const Dim n = ia < 0 ? Dim(1) : a.shape(ia), m = ib < 0 ? Dim(1) : b.shape(ib);
    for (Dim dim : {n, Dim(1)}) a_shape.push_back(dim);
    for (Dim dim : {Dim(1), m}) b_shape.push_back(dim);
    result.push_back(n * m);
  }
  return lax::reshape(multiply(lax::reshape(a, a_shape), lax::reshape(b, b_shape)), result);
}

Array numpy::cross(Operand a, Operand b, int axis) {
  const Array x = moveaxis(a, {axis}, {-1}), y = moveaxis(b, {axis}, {-1});
  const Dim n = x.shape(x.ndim() - 1), m = y.shape(y.ndim() - 1);
  const bool flat = n == Dim(2) && m == Dim(2);
  if (!(n == Dim(2) || n == Dim(3)) || !(m == Dim(2) || m == Dim(3)))
    throw ShapeError("cross: vectors of " + n.to_string() + " and " + m.to_string() + " elements",
                     "give vectors of 2 or 3 elements");
  auto at = [](const Array& v, int i) {
    const int last = v.ndim() - 1;
    if (v.shape(last) == Dim(i)) {  // the third component of a two-dimensional vector
      Shape shape = v.shape();
      shape.pop_back();
      return lax::full(shape, 0, v.dtype());
    }
    return lax::index_in_dim(v, i, last, false);
  };
  auto minor = [&](int i, int j) {
    return subtract(multiply(at(x, i), at(y, j)), multiply(at(x, j), at(y, i)));
  };
  if (flat) return minor(0, 1);
  const Array result = stack({minor(1, 2), minor(2, 0), minor(0, 1)}, -1);
  return moveaxis(result, {-1}, {axis});
}

// --- Convolution ---------------------------------------------------------------------------------

namespace {
// The sums of products of a, padded by these numbers, with v at every position inside it.
Array slide(const Array& a, const Array& v, Dim before, Dim after, OptionalDType dtype) {
  const Array product = lax::conv_general_dilated(lax::reshape(a, {1, 1, a.shape(0)}),
                                                  lax::reshape(v, {1, 1, v.shape(0)}), {1},
                                                  {{before, after}}, {}, {}, {}, 1, 1, dtype);
  return raveled(product);
}
}  // namespace

Array numpy::convolve(Operand a, Operand v, const std::string& mode,
                      OptionalDType preferred_element_type) {
  if (a.ndim() != 1 || v.ndim() != 1 || a.shape(0) == Dim(0) || v.shape(0) == Dim(0))
    throw ShapeError("convolve: arrays of shapes (" + a.shape().to_string() + ") and (" +
                         v.shape().to_string() + ")",
                     "give two vectors of at least one element");
  Arrays x = one_dtype("convolve", a, v);
  if (is_bool(x[0].dtype()))
    for (Array& array : x) array = astype(array, default_int());
  if (less_equal(x[1].shape(0), x[0].shape(0)) == false) std::swap(x[0], x[1]);
  const Dim n = x[0].shape(0), m = x[1].shape(0), shorter = minimum(n, m), longer = maximum(n, m);
  const Array flipped = lax::rev(x[1], std::vector<int>{0});
  if (mode == "full") return slide(x[0], flipped, m - 1, m - 1, preferred_element_type);
  if (mode != "same" && mode != "valid")
    throw ValueError("convolve: mode is '" + mode + "'", "choose 'full', 'same' or 'valid'");
  const bool same = mode == "same";
  if (longer == n)
    return slide(x[0], flipped, same ? floor_divide(m, 2) : 0, same ? floor_divide(m - 1, 2) : 0,
                 preferred_element_type);
  // Named sizes do not decide which is longer: a part of the full result.
  const Dim first = same ? floor_divide(shorter - 1, 2) : shorter - 1;
  return part(slide(x[0], flipped, m - 1, m - 1, preferred_element_type), 0, first,
              same ? first + longer : longer);
}

Array numpy::correlate(Operand a, Operand v, const std::string& mode,
                       OptionalDType preferred_element_type) {
  if (v.ndim() != 1)
    throw ShapeError("correlate: an array of shape (" + v.shape().to_string() + ")",
                     "give two vectors");
  return convolve(a, lax::rev(conj(v), std::vector<int>{0}), mode, preferred_element_type);
}

// --- Polynomials and integrals -------------------------------------------------------------------

Array numpy::polyval(Operand p, Operand x) {
  if (p.ndim() < 1 || !p.shape(0).is_constant())
    throw ShapeError("polyval: coefficients of shape (" + p.shape().to_string() + ")",
                     "give a vector, or a vector of arrays, without a named size");
  Array value = multiply(x, constant(0, x));
  if (p.shape(0) == Dim(0)) return value;
  value = add(value, lax::index_in_dim(p, 0, 0, false));
  for (std::int64_t i = 1; i < p.shape(0).constant(); ++i)  // Horner's rule
    value = add(multiply(value, x), lax::index_in_dim(p, i, 0, false));
  return value;
}

Array numpy::trapezoid(Operand y, const OptionalArray& x, Operand dx, int axis) {
  const int dim = normalize_axis(axis, y.ndim(), "trapezoid");
  const Dim n = y.shape(dim);
  const Array values = to_inexact(y);
  const Array sums = lax::add(part(values, dim, 1, n), part(values, dim, 0, n - 1));
  if (!x) return sum(multiply(sums, multiply(0.5, dx)), dim);
  if (x->ndim() == 1 && !(x->shape(0) == n))
    throw ShapeError("trapezoid: x of shape (" + x->shape().to_string() + ") for y of shape (" +
                         y.shape().to_string() + ")",
                     "give a place for each element along the axis");
  Array steps = diff(*x, 1, x->ndim() == 1 ? 0 : axis);
  if (x->ndim() == 1) {
    Shape shape(y.ndim(), 1);
    shape[dim] = steps.shape(0);
    steps = lax::reshape(steps, shape);
  }
  return sum(multiply(multiply(sums, steps), 0.5), dim);
}

Array numpy::vander(Operand x, std::optional<Dim> N, bool increasing) {
  if (x.ndim() != 1)
    throw ShapeError("vander: an array of shape (" + x.shape().to_string() + ")", "give a vector");
  const Dim n = N.value_or(x.shape(0));
  Array exponents = counting(n);
  if (!increasing) exponents = lax::sub(number_of(n - 1, default_int()), exponents);
  const Array column = lax::reshape(x, {x.shape(0), 1});
  return power(column, exponents);
}

namespace {

// axes in Python's form: a number, or two lists.
Array tensordot_of(Operand a, Operand b, const Argument& axes, OptionalDType dtype) {
  if (std::optional<std::int64_t> count = detail::as_integer(axes))
    return numpy::tensordot(a, b, int(*count), dtype);
  const auto* lists = std::get_if<Argument::List>(&axes.value);
  if (lists && lists->size() == 2) {
    const std::optional<std::vector<int>> left = detail::as_ints((*lists)[0]),
                                          right = detail::as_ints((*lists)[1]);
    if (left && right) return numpy::tensordot(a, b, *left, *right, dtype);
  }
  throw DtypeError("tensordot: axes are neither a number nor two sequences of integers",
                   "call it as tensordot(a, b, axes=2)");
}

[[maybe_unused]] const FunctionInfo* const contraction_functions[] = {
    function("numpy", "matmul(a, b, *, precision=None!, preferred_element_type=None)",
             "The product of matrices in the last two axes; other axes broadcast; vectors are rows "
             "or columns that the result "
             "lacks. ShapeError for scalars.",
             &numpy::matmul),
    function("numpy", "dot(a, b, *, precision=None!, preferred_element_type=None)",
             "Sums over the last axis of a and the last but one of b; with a scalar, multiply.",
             &numpy::dot),
    function("numpy", "inner(a, b, *, precision=None!, preferred_element_type=None)",
             "Sums over the last axes of both; with a scalar, multiply.", &numpy::inner),
    function("numpy", "vdot(a, b, *, precision=None!, preferred_element_type=None)",
             "The sum of conj(a) * b over all elements.", &numpy::vdot),
    function("numpy", "vecdot(x1, x2, *, axis=-1, precision=None!, preferred_element_type=None)",
             "Sums conj(x1) * x2 over an axis; other axes broadcast.", &numpy::vecdot),
    function("numpy", "outer(a, b, out=None!)",
             "The products of all elements of a with all of b, a matrix.", &numpy::outer),
    function("numpy", "matvec(x1, x2)", "Matrices times vectors; other axes broadcast.",
             &numpy::matvec),
    function("numpy", "vecmat(x1, x2)", "Conjugated vectors times matrices; other axes broadcast.",
             &numpy::vecmat),
    function("numpy", "tensordot(a, b, axes=2, *, precision=None!, preferred_element_type=None)",
             "Sums over the last axes of a and the first of b, so many, or over two lists of axes.",
             &tensordot_of),
    function(
        "numpy.linalg", "tensordot(x1, x2, *, axes=2)", "The same as numpy.tensordot.",
        +[](Operand x1, Operand x2, const Argument& axes) {
          return tensordot_of(x1, x2, axes, std::nullopt);
        }),
    function("numpy", "kron(a, b)", "Blocks of b, each times an element of a.", &numpy::kron),
    function("numpy",
             "convolve(a, v, mode='full', *, precision=None!, preferred_element_type=None)",
             "The convolution of two vectors: all of it, of the longer one's size ('same'), or "
             "where they overlap wholly ('valid').",
             &numpy::convolve),
    function("numpy",
             "correlate(a, v, mode='valid', *, precision=None!, preferred_element_type=None)",
             "The convolution of a with v reversed and conjugated.", &numpy::correlate),
    function("numpy", "polyval(p, x, *, unroll=16!)",
             "The polynomial with these coefficients, highest power first, at x; arrays of them, "
             "along the first axis of p, broadcast against x.",
             &numpy::polyval),
    function("numpy", "trapezoid(y, x=None, dx=1.0, axis=-1)",
             "The integral along an axis by the trapezoidal rule.", &numpy::trapezoid),
    function("numpy", "vander(x, N=None, increasing=False)",
             "The powers of a vector's elements as rows, highest first.", &numpy::vander),
};

}  // namespace
}  // namespace plait
