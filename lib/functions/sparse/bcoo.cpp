// plait.sparse: arrays by coordinates, by gathers and scatters of their entries. See sparse.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/sparse.h>

#include <numeric>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using sparse::BCOO;

constexpr lax::ScatterOptions dropped{lax::GatherScatterMode::fill};

// data, indices and shape that fit; ShapeError or DtypeError otherwise.
BCOO checked(std::string_view function, BCOO mat) {
  const bool fits = mat.data.ndim() >= 1 && mat.indices.ndim() == 2 &&
                    mat.indices.shape(0) == mat.data.shape(0) &&
                    mat.indices.shape(1) == Dim(mat.n_sparse()) && [&] {
                      for (int i = 0; i < mat.n_dense(); ++i)
                        if (!(mat.data.shape(i + 1) == mat.shape[mat.n_sparse() + i])) return false;
                      return true;
                    }();
  if (!fits)
    throw ShapeError(std::string(function) + ": data of shape (" + mat.data.shape().to_string() +
                         ") and indices of shape (" + mat.indices.shape().to_string() +
                         ") for a sparse array of shape (" + mat.shape.to_string() + ")",
                     "give data [nse, *dense] and indices [nse, number of sparse axes]; batches "
                     "of sparse arrays are mapped by vmap");
  if (!is_integer(mat.indices.dtype()))
    throw DtypeError(
        std::string(function) + ": indices of dtype " + std::string(name_of(mat.indices.dtype())),
        "give integers");
  return mat;
}

std::vector<int> counted_from(int start, int size) {
  std::vector<int> axes(std::size_t(std::max(size, 0)));
  std::iota(axes.begin(), axes.end(), start);
  return axes;
}

// Columns of the indices.
Array columns_of(const BCOO& mat, const std::vector<int>& axes) {
  Arrays columns;
  for (int axis : axes) columns.push_back(lax::slice_in_dim(mat.indices, axis, axis + 1, 1, 1));
  return columns.size() == 1 ? columns[0] : lax::concatenate(columns, 1);
}

// The windows of x, whole along its axes from `depth` on, at rows of indices; 0 at padding.
Array rows_at(const Array& x, const Array& indices, int depth) {
  const std::vector<int> axes = counted_from(0, depth);
  Shape sizes = x.shape();
  for (int axis : axes) sizes[axis] = 1;
  return lax::gather(x, indices, {axes, axes, 0}, sizes, lax::GatherScatterMode::fill, 0.0);
}

// Entries with trailing axes, added into an array of zeros at rows of indices. Without columns of
// indices all go to one place.
Array added_at(const Array& entries, const std::optional<Array>& indices, const Shape& shape) {
  if (!indices) return lax::reduce_sum(entries, std::vector<int>{0});
  const std::vector<int> axes = counted_from(0, int(indices->shape(1).constant()));
  const Array zeros = lax::full(shape, 0, entries.dtype());
  return lax::scatter(zeros, *indices, entries, {axes, axes, 0}, lax::ScatterKind::add, dropped);
}

// Whether each entry is inside of the sparse shape.
Array inside(const BCOO& mat) {
  Array result;
  for (int axis = 0; axis < mat.n_sparse(); ++axis) {
    const Array index = lax::reshape(columns_of(mat, {axis}), {mat.nse()});
    const Array limit = number_of(mat.shape[axis], index.dtype());
    const Array fits =
        lax::bitwise_and(lax::ge(index, constant(0, index)), numpy::less(index, limit));
    result = result.is_valid() ? Array(lax::bitwise_and(result, fits)) : fits;
  }
  return result;
}

// The entries, with zeros for padding.
Array data_inside(const BCOO& mat) {
  Array fits = lax::reshape(inside(mat), Shape(std::size_t(1), mat.nse()));
  Shape ones(std::size_t(mat.data.ndim()), Dim(1));
  ones[0] = mat.nse();
  return numpy::where(lax::reshape(fits, ones), mat.data, Array::literal(0, mat.data.dtype()));
}

Dim number_kept(const char* function, const Array& count, std::optional<Dim> nse) {
  if (nse) return *nse;
  if (!count.known_buffer())
    throw TracerError(std::string(function) +
                          ": how many elements are kept depends on values, which are not known "
                          "while the function is traced",
                      "say how many with nse=");
  return count.item<std::int64_t>();
}

}  // namespace

std::optional<BCOO> BCOO::from_argument(const Argument& argument) {
  const auto* parts = std::get_if<Argument::List>(&argument.value);
  if (!parts || parts->size() != 3) return std::nullopt;
  std::optional<Array> data = detail::as_array((*parts)[0]),
                       indices = detail::as_array((*parts)[1]);
  std::optional<Shape> shape = detail::as_shape((*parts)[2]);
  if (!data || !indices || !shape) return std::nullopt;
  return checked("sparse", {*data, *indices, *shape});
}

BCOO sparse::bcoo_fromdense(Operand mat, std::optional<Dim> nse, int n_dense) {
  const int depth = mat.ndim() - n_dense;
  if (n_dense < 0 || depth < 1)
    throw ShapeError("bcoo_fromdense: " + std::to_string(n_dense) + " dense axes of " +
                         std::to_string(mat.ndim()),
                     "leave at least one axis sparse");
  Array kept = truth(mat);
  if (n_dense > 0) kept = numpy::any(kept, counted_from(depth, n_dense));
  const Dim size = number_kept("bcoo_fromdense", nse ? kept : numpy::count_nonzero(kept), nse);
  if (nse && size.is_constant() && kept.known_buffer() && !Trace::current())
    if (const auto held = numpy::count_nonzero(kept).item<std::int64_t>(); held > size.constant())
      throw ValueError("bcoo_fromdense: nse is " + size.to_string() + ", and " +
                           std::to_string(held) + " elements are not zero",
                       "give nse=" + std::to_string(held) + " at least, or none");
  Dim outside = 1;
  for (int i = 0; i < depth; ++i) outside = maximum(outside, mat.shape(i));
  if (!outside.is_constant())
    throw ShapeError("bcoo_fromdense: the shape (" + mat.shape().to_string() + ") has named sizes",
                     "convert arrays whose sizes are known");
  const Array indices =
      astype(numpy::argwhere(kept, size, double(outside.constant())), DType::int32);
  return {rows_at(mat, indices, depth), indices, mat.shape()};
}

Array sparse::bcoo_todense(const BCOO& mat) {
  const BCOO m = checked("bcoo_todense", mat);
  std::optional<Array> indices;
  if (m.n_sparse() > 0) indices = m.indices;
  return added_at(m.data, indices, m.shape);
}

BCOO sparse::bcoo_transpose(const BCOO& mat, const std::vector<int>& permutation) {
  const BCOO m = checked("bcoo_transpose", mat);
  std::vector<int> order = permutation;
  for (int& axis : order) axis = normalize_axis(axis, m.ndim(), "bcoo_transpose");
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool fits = sorted == counted_from(0, m.ndim());
  for (int i = 0; fits && i < m.ndim(); ++i)
    fits = (i < m.n_sparse()) == (order[std::size_t(i)] < m.n_sparse());
  if (!fits)
    throw ShapeError("bcoo_transpose: the permutation (" + to_shape(permutation).to_string() +
                         ") of " + std::to_string(m.n_sparse()) + " sparse and " +
                         std::to_string(m.n_dense()) + " dense axes",
                     "permute sparse axes among themselves, and dense axes");
  Shape shape;
  for (int axis : order) shape.push_back(m.shape[axis]);
  const std::vector<int> sparse_order(order.begin(), order.begin() + m.n_sparse());
  std::vector<int> data_order{0};
  for (int i = m.n_sparse(); i < m.ndim(); ++i)
    data_order.push_back(order[std::size_t(i)] - m.n_sparse() + 1);
  return {lax::transpose(m.data, data_order), columns_of(m, sparse_order), shape};
}

BCOO sparse::bcoo_reduce_sum(const BCOO& mat, const Axes& axes) {
  const BCOO m = checked("bcoo_reduce_sum", mat);
  const std::vector<int> gone = axes.of(m.ndim(), "bcoo_reduce_sum");
  auto is_gone = [&](int axis) { return std::binary_search(gone.begin(), gone.end(), axis); };
  std::vector<int> kept, summed;
  Shape shape;
  bool drops_padding = false;
  for (int axis = 0; axis < m.ndim(); ++axis) {
    if (!is_gone(axis)) shape.push_back(m.shape[axis]);
    if (axis >= m.n_sparse() && is_gone(axis)) summed.push_back(axis - m.n_sparse() + 1);
    if (axis < m.n_sparse() && !is_gone(axis)) kept.push_back(axis);
    drops_padding |= axis < m.n_sparse() && is_gone(axis);
  }
  // Where a column of indices goes, so does what says that an entry is padding.
  Array data = drops_padding ? data_inside(m) : m.data;
  if (!summed.empty()) data = lax::reduce_sum(data, summed);
  const Array indices =
      kept.empty() ? lax::full({m.nse(), 0}, 0, m.indices.dtype()) : columns_of(m, kept);
  return {data, indices, shape};
}

BCOO sparse::bcoo_sum_duplicates(const BCOO& mat, std::optional<Dim> nse) {
  const BCOO m = checked("bcoo_sum_duplicates", mat);
  if (m.n_sparse() == 0)
    return {numpy::expand_dims(bcoo_todense(m), {0}), lax::full({1, 0}, 0, m.indices.dtype()),
            m.shape};
  Shape sparse_shape(m.shape.begin(), m.shape.begin() + m.n_sparse());
  const Dim size = sparse_shape.num_elements();
  if (!size.is_constant())
    throw ShapeError("bcoo_sum_duplicates: the shape (" + m.shape.to_string() + ") has named sizes",
                     "convert arrays whose sizes are known");
  // The place of each entry in row-major order; that of padding is the last and one more.
  Array place = lax::full({m.nse()}, 0, DType::int64);
  for (int axis = 0; axis < m.n_sparse(); ++axis) {
    const Array index = astype(lax::reshape(columns_of(m, {axis}), {m.nse()}), DType::int64);
    place = lax::add(lax::mul(place, number_of(m.shape[axis], DType::int64)), index);
  }
  const Array outside = number_of(size, DType::int64);
  place = numpy::where(inside(m), place, outside);
  const Array order = numpy::argsort(place);
  const Array sorted = numpy::take(place, order, 0);
  const Array before = numpy::concatenate({lax::full({1}, -1, DType::int64), sorted});
  const Array is_new = numpy::not_equal(sorted, lax::slice_in_dim(before, 0, m.nse()));
  const Array fresh = lax::bitwise_and(is_new, numpy::less(sorted, outside));
  const Dim rows = nse                    ? *nse
                   : place.known_buffer() ? Dim(numpy::count_nonzero(fresh).item<std::int64_t>())
                                          : m.nse();
  // Entries of one place have one row; padding has one behind all.
  const Array counts = numpy::cumsum(astype(fresh, DType::int32));
  const Array row =
      numpy::where(numpy::less(sorted, outside), lax::sub(counts, constant(1, counts)),
                   number_of(rows, DType::int32));
  const Array at = lax::reshape(row, {m.nse(), 1});
  Shape shape = m.data.shape();
  shape[0] = rows;
  const Array data = added_at(numpy::take(m.data, order, 0), at, shape);
  const Array places = lax::scatter(lax::full({rows}, double(size.constant()), DType::int64), at,
                                    sorted, {{0}, {0}, 0}, lax::ScatterKind::set, dropped);
  // A place behind the last gives an index of the first axis behind its last.
  Arrays columns;
  Array rest = places;
  for (int axis = m.n_sparse() - 1; axis >= 0; --axis) {
    const Array limit = number_of(m.shape[axis], DType::int64);
    const Array index = axis == 0 ? rest : Array(numpy::remainder(rest, limit));
    columns.insert(columns.begin(), lax::reshape(astype(index, m.indices.dtype()), {rows, 1}));
    rest = numpy::floor_divide(rest, limit);
  }
  return {data, lax::concatenate(columns, 1), m.shape};
}

BCOO sparse::bcoo_multiply_dense(const BCOO& sp_mat, Operand v) {
  const BCOO m = checked("bcoo_multiply_dense", sp_mat);
  const int missing = m.ndim() - v.ndim();
  bool fits = missing >= 0;
  for (int i = 0; fits && i < v.ndim(); ++i)
    fits = v.shape(i) == Dim(1) || v.shape(i) == m.shape[i + missing];
  if (!fits)
    throw ShapeError("bcoo_multiply_dense: an array of shape (" + v.shape().to_string() +
                         ") for a sparse one of shape (" + m.shape.to_string() + ")",
                     "give an array that broadcasts to the shape of the sparse one");
  if (v.ndim() == 0) return {numpy::multiply(m.data, v), m.indices, m.shape};
  Shape shape(std::size_t(missing), Dim(1));
  for (Dim dim : v.shape()) shape.push_back(dim);
  // Axes of size 1 are dropped, so that the others alone are read.
  std::vector<int> read;
  Shape factor_shape;
  for (int axis = 0; axis < m.ndim(); ++axis) {
    const bool is_read = axis < m.n_sparse() && !(shape[axis] == Dim(1));
    if (is_read) read.push_back(axis);
    if (is_read || axis >= m.n_sparse()) factor_shape.push_back(shape[axis]);
  }
  const Array factor = lax::reshape(v, factor_shape);
  if (read.empty()) return {numpy::multiply(m.data, factor), m.indices, m.shape};
  const Array rows = rows_at(factor, columns_of(m, read), int(read.size()));
  return {numpy::multiply(m.data, rows), m.indices, m.shape};
}

BCOO sparse::bcoo_add(const BCOO& lhs, const BCOO& rhs) {
  const BCOO a = checked("bcoo_add", lhs), b = checked("bcoo_add", rhs);
  if (!(a.shape == b.shape) || a.n_dense() != b.n_dense())
    throw ShapeError("bcoo_add: sparse arrays of shapes (" + a.shape.to_string() + ") and (" +
                         b.shape.to_string() + "), with " + std::to_string(a.n_dense()) + " and " +
                         std::to_string(b.n_dense()) + " dense axes",
                     "add arrays of one shape");
  return {numpy::concatenate({a.data, b.data}),
          numpy::concatenate({a.indices, astype(b.indices, a.indices.dtype())}), a.shape};
}

BCOO sparse::eye(Dim N, std::optional<Dim> M, int k, std::optional<DType> dtype) {
  const Dim columns = M.value_or(N);
  if (less_equal(0, N) == false || less_equal(0, columns) == false)
    throw ShapeError("eye: the shape (" + Shape{N, columns}.to_string() + ") has a negative size",
                     "give sizes >= 0");
  const Dim down = std::max(-k, 0), right = std::max(k, 0);
  const Dim length = maximum(Dim(0), minimum(N - down, columns - right));
  const Array i = lax::iota(DType::int32, {length, 1}, 0);
  const Array row = lax::add(i, number_of(down, DType::int32)),
              column = lax::add(i, number_of(right, DType::int32));
  return {lax::full({length}, 1, dtype.value_or(default_float())),
          lax::concatenate({row, column}, 1),
          {N, columns}};
}

namespace {

// Contracts sparse axes of m with axes of x. The free axes of m come first.
Array contracted(const BCOO& mat, const std::vector<int>& mat_axes, const Array& x,
                 const std::vector<int>& x_axes) {
  const BCOO m = checked("bcoo_dot_general", mat);
  std::vector<int> order = x_axes, free;
  for (int axis = 0; axis < x.ndim(); ++axis)
    if (std::find(x_axes.begin(), x_axes.end(), axis) == x_axes.end()) order.push_back(axis);
  for (int axis = 0; axis < m.n_sparse(); ++axis)
    if (std::find(mat_axes.begin(), mat_axes.end(), axis) == mat_axes.end()) free.push_back(axis);
  bool fits = mat_axes.size() == x_axes.size() && m.n_dense() == 0;
  for (std::size_t i = 0; fits && i < mat_axes.size(); ++i)
    fits = mat_axes[i] < m.n_sparse() && m.shape[mat_axes[i]] == x.shape(x_axes[i]);
  if (!fits)
    throw ShapeError("bcoo_dot_general: a sparse array of shape (" + m.shape.to_string() +
                         ") with " + std::to_string(m.n_dense()) + " dense axes, along (" +
                         to_shape(mat_axes).to_string() + "), and an array of shape (" +
                         x.shape().to_string() + "), along (" + to_shape(x_axes).to_string() + ")",
                     "contract axes of equal sizes of an array without dense axes");
  const Array moved = lax::transpose(x, order);
  const int depth = int(x_axes.size());
  const Array data =
      free.size() == std::size_t(m.n_sparse()) || free.empty() ? m.data : data_inside(m);
  Shape column(std::size_t(moved.ndim() - depth + 1), Dim(1)), shape;
  column[0] = m.nse();
  const Array weights = lax::reshape(data, column);
  Array terms;
  if (depth == 0)
    terms = numpy::multiply(weights, numpy::expand_dims(moved, {0}));
  else
    terms = numpy::multiply(weights, rows_at(moved, columns_of(m, mat_axes), depth));
  for (int axis : free) shape.push_back(m.shape[axis]);
  for (int i = depth; i < moved.ndim(); ++i) shape.push_back(moved.shape(i));
  std::optional<Array> indices;
  if (!free.empty()) indices = columns_of(m, free);
  return added_at(terms, indices, shape);
}

}  // namespace

Array sparse::bcoo_dot_general(const Factor& lhs, const Factor& rhs,
                               const lax::DotDimensions& dimension_numbers) {
  const auto& d = dimension_numbers;
  const BCOO *left = std::get_if<BCOO>(&lhs), *right = std::get_if<BCOO>(&rhs);
  if (!d.lhs_batch.empty() || !d.rhs_batch.empty())
    throw ShapeError("bcoo_dot_general: batch axes", "map the product over them with vmap");
  if (bool(left) == bool(right))
    throw DtypeError(
        std::string("bcoo_dot_general: ") + (left ? "two sparse arrays" : "no sparse array"),
        left ? "make one of them dense: bcoo_todense" : "use lax.dot_general");
  if (left) return contracted(*left, d.lhs_contract, std::get<Array>(rhs), d.rhs_contract);
  const Array& x = std::get<Array>(lhs);
  const Array y = contracted(*right, d.rhs_contract, x, d.lhs_contract);
  // The free axes of x go to the front.
  const int free = right->ndim() - int(d.rhs_contract.size());
  std::vector<int> order = counted_from(free, y.ndim() - free);
  for (int axis : counted_from(0, free)) order.push_back(axis);
  return lax::transpose(y, order);
}

namespace {

using Parts = std::tuple<Array, Array, Shape>;  // which Python makes a BCOO of
Parts parts_of(const BCOO& mat) { return {mat.data, mat.indices, mat.shape}; }

struct SparseOrDense {
  sparse::Factor factor;
  static constexpr const char* argument_type = "array or sparse array";
  static std::optional<SparseOrDense> from_argument(const Argument& argument) {
    if (std::optional<BCOO> mat = BCOO::from_argument(argument)) return SparseOrDense{*mat};
    if (std::optional<Array> array = detail::as_array(argument)) return SparseOrDense{*array};
    return std::nullopt;
  }
};
struct DotNumbers {
  lax::DotDimensions dimensions;
  static constexpr const char* argument_type =
      "((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))";
  static std::optional<DotNumbers> from_argument(const Argument& argument) {
    DotNumbers result;
    auto& d = result.dimensions;
    std::vector<int>* lists[2][2] = {{&d.lhs_contract, &d.rhs_contract},
                                     {&d.lhs_batch, &d.rhs_batch}};
    const auto* both = std::get_if<Argument::List>(&argument.value);
    if (!both || both->size() != 2) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto* pair = std::get_if<Argument::List>(&(*both)[i].value);
      if (!pair || pair->size() != 2) return std::nullopt;
      for (std::size_t j = 0; j < 2; ++j) {
        std::optional<std::vector<int>> axes = detail::as_ints((*pair)[j]);
        if (!axes) return std::nullopt;
        *lists[i][j] = *std::move(axes);
      }
    }
    return result;
  }
};

[[maybe_unused]] const FunctionInfo* const sparse_functions[] = {
    function(
        "sparse", "bcoo_fromdense(mat, nse=None, n_dense=0, index_dtype=None!)",
        "The elements of an array that are not zero, as a BCOO. nse is how many are kept, all "
        "by default; it must be given under jit, and what is beyond is padding. The last "
        "n_dense axes are dense. ShapeError where no axis is sparse.",
        +[](Operand mat, std::optional<Dim> nse, int n_dense) {
          return parts_of(sparse::bcoo_fromdense(mat, nse, n_dense));
        }),
    function("sparse", "bcoo_todense(mat)",
             "The array of a BCOO's shape: the sum of its entries in each place.",
             &sparse::bcoo_todense),
    function(
        "sparse", "bcoo_transpose(mat, permutation)",
        "A BCOO with its axes permuted, sparse and dense ones among themselves. ShapeError "
        "otherwise.",
        +[](const BCOO& mat, const std::vector<int>& permutation) {
          return parts_of(sparse::bcoo_transpose(mat, permutation));
        }),
    function(
        "sparse", "bcoo_reduce_sum(mat, axes=None)",
        "The sums of a BCOO over axes, all by default, as a BCOO.",
        +[](const BCOO& mat, const Axes& axes) {
          return parts_of(sparse::bcoo_reduce_sum(mat, axes));
        }),
    function(
        "sparse", "bcoo_sum_duplicates(mat, nse=None)",
        "The same array with its indices in order and each once. nse is the number of "
        "entries: that of different indices, or, under jit, that of mat.",
        +[](const BCOO& mat, std::optional<Dim> nse) {
          return parts_of(sparse::bcoo_sum_duplicates(mat, nse));
        }),
    function(
        "sparse", "bcoo_multiply_dense(sp_mat, v)",
        "Elementwise products of a BCOO with an array that broadcasts to its shape, as a "
        "BCOO. ShapeError otherwise.",
        +[](const BCOO& sp_mat, Operand v) {
          return parts_of(sparse::bcoo_multiply_dense(sp_mat, v));
        }),
    function(
        "sparse", "bcoo_add(lhs, rhs)", "The sum of two BCOOs of one shape: the entries of both.",
        +[](const BCOO& lhs, const BCOO& rhs) { return parts_of(sparse::bcoo_add(lhs, rhs)); }),
    function(
        "sparse", "bcoo_dot_general(lhs, rhs, *, dimension_numbers, precision=None!)",
        "Sums of products of a BCOO and an array, in either order, over contracted axes: "
        "dimension_numbers is ((lhs_contract, rhs_contract), ((), ())). The operator @ is "
        "simpler. ShapeError for batch axes and dense ones.",
        +[](const SparseOrDense& lhs, const SparseOrDense& rhs,
            const DotNumbers& dimension_numbers) {
          return sparse::bcoo_dot_general(lhs.factor, rhs.factor, dimension_numbers.dimensions);
        }),
    function(
        "sparse", "eye(N, M=None, k=0, dtype=None, index_dtype=None!)",
        "Ones on the diagonal k of an N by M matrix, as a BCOO.",
        +[](Dim N, std::optional<Dim> M, int k, std::optional<DType> dtype) {
          return parts_of(sparse::eye(N, M, k, dtype));
        }),
};

}  // namespace
}  // namespace plait
