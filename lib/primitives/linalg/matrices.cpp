// Shared by the decompositions of matrices. See matrices.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/matrices.h"

#include <plait/primitives/narrow.h>

#include "primitives/conjugate.h"
#include "primitives/indexing/indexing.h"
#include "primitives/reduction/order.h"

namespace plait::matrices {

// --- Kernels -------------------------------------------------------------------------------------

MatrixBatch::MatrixBatch(const View& view)
    : view_(view),
      count_(1),
      rows_(view.shape[view.rank() - 2]),
      columns_(view.shape[view.rank() - 1]),
      row_stride_(view.strides[view.rank() - 2]),
      column_stride_(view.strides[view.rank() - 1]) {
  for (int i = 0; i < view.rank() - 2; ++i) count_ *= view.shape[i];
}

std::int64_t MatrixBatch::offset(std::int64_t index) const {
  std::int64_t offset = 0;
  for (int i = view_.rank() - 2; i-- > 0; index /= view_.shape[i])
    offset += index % view_.shape[i] * view_.strides[i];
  return offset;
}

RealSizes::RealSizes(std::span<const View> inputs, std::size_t num_inputs) {
  for (const View& view : inputs.subspan(num_inputs)) sizes_.push_back(Buffer::copy_of(view));
}

std::int64_t RealSizes::at(std::size_t which, std::int64_t index, std::int64_t otherwise) const {
  if (sizes_.empty()) return otherwise;
  const Buffer& sizes = sizes_[which];
  const auto* values = static_cast<const std::int32_t*>(sizes.data());
  // The sizes of padded examples may have any value.
  return std::clamp<std::int64_t>(values[sizes.shape().empty() ? 0 : index], 0, otherwise);
}

// --- Rules ---------------------------------------------------------------------------------------

Dim rows_of(const Aval& aval) { return aval.shape[aval.rank() - 2]; }
Dim columns_of(const Aval& aval) { return aval.shape[aval.rank() - 1]; }

namespace {

Shape batch_of(const Aval& matrices) {
  return Shape(matrices.shape.begin(), matrices.shape.end() - 2);
}

}  // namespace

void require_matrices(std::string_view name, std::span<const Aval> inputs, std::size_t num_inputs) {
  for (const Aval& input : inputs.first(num_inputs)) {
    require_dtype(name, input, element_types);
    if (input.rank() < 2)
      throw ShapeError(
          std::string(name) + ": an array of shape (" + input.shape.to_string() + ") is no matrix",
          "give an array of two or more axes, whose last two are the matrices'");
  }
  for (const Aval& size : inputs.subspan(num_inputs))
    if (size.dtype != DType::int32 || (size.rank() > 0 && !(size.shape == batch_of(inputs[0]))))
      throw ShapeError(std::string(name) + ": real sizes of type " + size.to_string() +
                           " for matrices of type " + inputs[0].to_string(),
                       "give int32 scalars, or one for each matrix");
}

void require_square(std::string_view name, const Aval& aval) {
  if (!(rows_of(aval) == columns_of(aval)))
    throw ShapeError(
        std::string(name) + ": matrices of shape (" + aval.shape.to_string() + ") are not square",
        "give as many rows as columns");
}

Aval result_of(const Aval& matrices, std::initializer_list<Dim> sizes, std::optional<DType> dtype) {
  Aval aval{batch_of(matrices), dtype.value_or(matrices.dtype)};
  for (Dim size : sizes) aval.shape.push_back(size);
  return aval;
}

Batch::Rule batch_matrices(const Primitive& primitive) {
  return [&primitive](Dim size, std::span<const Batched> inputs, const Params& params) {
    const int batch_rank = example_aval(inputs[0]).rank() - 2;
    Arrays arrays;
    for (const Batched& input : inputs) {
      Array array = batch_to_front(input, size);
      // A real size for each example applies to each of its matrices.
      if (array.ndim() == 1 && batch_rank > 0) {
        Shape shape{size};
        for (int i = 0; i < batch_rank; ++i) shape.push_back(example_aval(inputs[0]).shape[i]);
        array = lax::broadcast_in_dim(array, shape, std::vector<int>{0});
      }
      arrays.push_back(std::move(array));
    }
    std::vector<Batched> results;
    for (Array& output : bind(primitive, arrays, params)) results.push_back({std::move(output), 0});
    return results;
  };
}

Mask::Rule mask_leading(const Primitive& primitive, std::vector<int> axes) {
  return [&primitive, axes = std::move(axes)](std::span<const Masked> inputs, std::span<const Aval>,
                                              const Params& params, const SizeValues& sizes) {
    Arrays operands;
    for (const Masked& input : inputs) operands.push_back(input.padded);
    const Shape& shape = inputs[0].aval.shape;
    bool ragged = false;
    for (int axis : axes) ragged |= !shape[shape.rank() - axis].is_constant();
    if (ragged)
      for (int axis : axes) operands.push_back(sizes.value(shape[shape.rank() - axis]));
    return Arrays(bind(primitive, operands, params));
  };
}

Jvp::Rule matrix_jvp(const Primitive& primitive, MatrixJvp jvp) {
  return [&primitive, jvp = std::move(jvp)](std::span<const Array> primals,
                                            std::span<const Tangent> tangents,
                                            std::span<const Array> outputs, const Params& params) {
    if (primals.size() != 1)
      throw InternalError(std::string(primitive.name()) + ": differentiated after masking");
    return jvp(primals[0], tangents[0].array(), outputs, params);
  };
}

// --- Algebra of derivative rules -----------------------------------------------------------------

Array transposed(const Array& x) {
  std::vector<int> order(x.ndim());
  for (int i = 0; i < x.ndim(); ++i) order[i] = i;
  std::swap(order[x.ndim() - 2], order[x.ndim() - 1]);
  return lax::transpose(x, order);
}
Array adjoint(const Array& x) { return transposed(is_complex(x.dtype()) ? conj(x) : x); }

Array matmul(const Array& x, const Array& y) {
  const int rank = x.ndim();
  lax::DotDimensions dimensions{{rank - 1}, {rank - 2}, {}, {}};
  for (int i = 0; i < rank - 2; ++i) {
    dimensions.lhs_batch.push_back(i);
    dimensions.rhs_batch.push_back(i);
  }
  return lax::dot_general(x, y, dimensions);
}

Array conj(const Array& x) { return conjugate(x); }

Array reciprocal(const Array& x) {
  return lax::div(as_weak_as(x, Array::literal(1, x.dtype())), x);
}

Array compare_places(Array (*compare)(Operand, Operand), Dim rows, Dim columns, int k) {
  const Shape shape{rows, columns};
  const auto counting = [&](Dim size) { return lax::iota(DType::int32, Shape{size}, 0); };
  const Array row = lax::add(counting(rows), Array::literal(k, DType::int32));
  return compare(lax::broadcast_in_dim(row, shape, std::vector<int>{0}),
                 lax::broadcast_in_dim(counting(columns), shape, std::vector<int>{1}));
}
Array keep_places(const Array& x, const Array& keep) {
  return lax::select(broadcast_to(keep, x.shape()), x, lax::zeros_like(x.aval()));
}
Array lower(const Array& x, int k) {
  return keep_places(x, compare_places(lax::ge, rows_of(x.aval()), columns_of(x.aval()), k));
}
Array upper(const Array& x, int k) {
  return keep_places(x, compare_places(lax::le, rows_of(x.aval()), columns_of(x.aval()), k));
}
Array eye(Dim rows, Dim columns, DType dtype) {
  return lax::convert_element_type(compare_places(lax::eq, rows, columns, 0), dtype);
}

namespace {

// The identity, broadcast to stacks of matrices.
Array identities(const Array& x) {
  const Aval& aval = x.aval();
  const Array one = eye(rows_of(aval), columns_of(aval), aval.dtype);
  return broadcast_to(as_weak_as(x, one), aval.shape);
}

// The product of every element by a scalar.
Array scaled(const Array& x, double factor) {
  return lax::mul(x, as_weak_as(x, Array::literal(factor, x.dtype())));
}

// The same with zeros off the diagonal.
Array diagonal_alone(const Array& x) {
  const Array on = lax::ne(identities(x), Array::literal(0, x.dtype()));
  return lax::select(on, x, lax::zeros_like(x.aval()));
}

}  // namespace

Array half_lower(const Array& x) {
  const Array ones = as_weak_as(x, lax::full(x.shape(), 1, x.dtype()));
  const Array halves = lax::sub(ones, scaled(identities(x), 0.5));
  return lax::mul(lower(x), halves);
}

Array hermitian_of(const Array& x, bool from_lower) {
  const Array half = half_lower(from_lower ? x : adjoint(x));
  return lax::add(half, adjoint(half));
}

Array symmetrized(const Array& x) { return scaled(lax::add(x, adjoint(x)), 0.5); }

Array diagonal_of(const Array& x) {
  return lax::reduce_sum(diagonal_alone(x), std::vector<int>{x.ndim() - 1});
}
Array real_diagonal(const Array& x) {
  return diagonal_of(is_complex(x.dtype()) ? lax::real(x) : x);
}
Array trace_of(const Array& x) {
  return lax::reduce_sum(diagonal_alone(x), std::vector<int>{x.ndim() - 2, x.ndim() - 1});
}

Array imaginary_diagonal(const Array& x) {
  const Array alone = diagonal_alone(x);
  return scaled(lax::sub(alone, conj(alone)), 0.5);
}

Array as_rows(const Array& v) { return indexing::move_batch({v, std::nullopt}, 1, v.ndim() - 1); }
Array as_columns(const Array& v) { return indexing::move_batch({v, std::nullopt}, 1, v.ndim()); }

Array broadcast_product(const Array& x, const Array& rows_or_columns) {
  return lax::mul(x, broadcast_to(in_dtype(rows_or_columns, x.dtype()), x.shape()));
}

Array leading(const Array& x, Dim rows, Dim columns) {
  Shape limit = x.shape();
  limit[x.ndim() - 2] = rows;
  limit[x.ndim() - 1] = columns;
  return lax::slice(x, Shape(limit.size(), Dim(0)), limit, Shape(limit.size(), Dim(1)));
}

Array take_rows(const Array& x, const Array& places) {
  Shape shape = places.shape();
  shape.push_back(x.shape(x.ndim() - 1));
  std::vector<int> dims(places.ndim());
  for (int i = 0; i < places.ndim(); ++i) dims[i] = i;
  return take_along(x, lax::broadcast_in_dim(places, shape, dims), x.ndim() - 2);
}

Array in_dtype(const Array& x, DType dtype) { return lax::convert_element_type(x, dtype); }

}  // namespace plait::matrices
