// Shared by the decompositions of matrices: stacks of matrices as Eigen sees them, the rules that
// follow from matrices being the last two axes, and the algebra of derivative rules.
//
// NOTE: [leading blocks] A masked decomposition takes additional int32 operands: the real sizes of
// its matrices, scalars or one for each matrix of the batch. The kernel then works on the leading
// block, as if there were no padding, and writes zeros elsewhere. So there is no need for padding
// values that leave a decomposition unchanged, signs and order included. Such equations exist only
// where masked ones are evaluated, after all differentiation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pool.h>
#include <plait/primitives/families.h>
#include <plait/primitives/linalg.h>

#include <Eigen/Core>

#include "primitives/linalg/places.h"
#include "primitives/tiles.h"

namespace plait::matrices {

inline constexpr DTypes element_types = dtypes<float, double, complex64, complex128>();

// --- Kernels -------------------------------------------------------------------------------------

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// Calls body(element) for the dtypes of matrices.
template <class Body>
void visit_element(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float32:
      return body(float{});
    case DType::float64:
      return body(double{});
    case DType::complex64:
      return body(complex64{});
    default:
      return body(complex128{});
  }
}

// The type that slow decompositions compute in: float64 for float32, rounded once. Eigen's
// decompositions are slow to compile, so each is compiled for two dtypes instead of four.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double,
                                std::conditional_t<std::is_same_v<T, complex64>, complex128, T>>;

// A view as a stack of matrices.
class MatrixBatch {
 public:
  explicit MatrixBatch(const View& view);
  std::int64_t count() const { return count_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  template <class T>
  tiles::Strided<const T> at(std::int64_t index) const {
    return {view_.as<const T>() + offset(index), row_stride_, column_stride_};
  }
  // The leading block of a matrix.
  template <class T, class W>
  void load(std::int64_t index, std::int64_t rows, std::int64_t columns, Matrix<W>& dst) const {
    const T* src = view_.as<const T>() + offset(index);
    dst.resize(rows, columns);
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        dst(i, j) = W(src[i * row_stride_ + j * column_stride_]);
  }

 private:
  std::int64_t offset(std::int64_t index) const;  // of a matrix, in elements
  View view_;
  std::int64_t count_, rows_, columns_, row_stride_, column_stride_;
};

// The real sizes of each matrix of a stack: operands after the first `num_inputs`, or the sizes of
// the matrices. See NOTE: [leading blocks].
class RealSizes {
 public:
  RealSizes(std::span<const View> inputs, std::size_t num_inputs);
  std::int64_t at(std::size_t which, std::int64_t index, std::int64_t otherwise) const;

 private:
  std::vector<Buffer> sizes_;
};

// Matrix `index` of a dense result, with zeros around the values.
template <class T, class Values>
void store(const Values& values, const View& dst, std::int64_t index) {
  const std::int64_t columns = dst.shape[dst.rank() - 1], rows = dst.shape[dst.rank() - 2];
  T* item = dst.as<T>() + index * rows * columns;
  std::fill_n(item, rows * columns, T(0));
  for (std::int64_t j = 0; j < values.cols(); ++j)
    for (std::int64_t i = 0; i < values.rows(); ++i) item[i * columns + j] = T(values(i, j));
}
// The same for the leading block of a matrix in tiles.
template <class T>
void store_tiles(const tiles::Tiles<T>& values, std::int64_t rows, std::int64_t columns,
                 const View& dst, std::int64_t index) {
  const std::int64_t n = dst.shape[dst.rank() - 1], m = dst.shape[dst.rank() - 2];
  T* const item = dst.as<T>() + index * m * n;
  if (rows < m || columns < n) std::fill_n(item, m * n, T(0));
  values.for_elements(rows, columns,
                      [&](std::int64_t i, std::int64_t j, T value) { item[i * n + j] = value; });
}
// The same for a vector.
template <class T, class Values>
void store_vector(const Values& values, const View& dst, std::int64_t index) {
  const std::int64_t size = dst.shape[dst.rank() - 1];
  T* item = dst.as<T>() + index * size;
  std::fill_n(item, size, T(0));
  for (std::int64_t i = 0; i < values.size(); ++i) item[i] = T(values[i]);
}

template <class T>
T not_a_number() {
  return T(std::numeric_limits<typename Eigen::NumTraits<T>::Real>::quiet_NaN());
}

// The phase factor that makes the first element of a vector that is at least half as large as the
// largest real and positive. It normalises vectors that a decomposition determines up to a phase,
// for every dtype and size.
template <class T, class Vector>
T phase_of(const Vector& vector) {
  if (vector.size() == 0) return T(1);
  const auto least = vector.cwiseAbs().maxCoeff() / 2;
  for (std::int64_t i = 0; i < vector.size(); ++i)
    if (const auto size = std::abs(vector[i]); size >= least && size > 0)
      return Eigen::numext::conj(T(vector[i])) / size;
  return T(1);
}

// body(begin, end) over ranges of a stack, in parallel; flops is the work of one matrix.
template <class Body>
void for_matrices(std::int64_t count, double flops, const Body& body) {
  parallel_for(count, std::max<std::int64_t>(1, std::int64_t(65536 / std::max(1.0, flops))), body);
}

// --- Rules ---------------------------------------------------------------------------------------

// The first input is matrices; num_inputs of the inputs are the primitive's own operands.
void require_matrices(std::string_view name, std::span<const Aval> inputs,
                      std::size_t num_inputs = 1);
void require_square(std::string_view name, const Aval& aval);
// The batch axes, then these sizes.
Aval result_of(const Aval& matrices, std::initializer_list<Dim> sizes,
               std::optional<DType> dtype = {});
Dim rows_of(const Aval& aval);
Dim columns_of(const Aval& aval);

// Batch for primitives whose operands all have the matrices' batch axes first.
Batch::Rule batch_matrices(const Primitive& primitive);
// Mask by leading blocks. axes are the axes of the first operand, counted from the end, whose real
// sizes are passed.
Mask::Rule mask_leading(const Primitive& primitive, std::vector<int> axes);
// A Jvp rule for a primitive of one operand, given its tangent.
using MatrixJvp = std::function<Tangents(const Array& x, const Array& dx,
                                         std::span<const Array> outputs, const Params& params)>;
Jvp::Rule matrix_jvp(const Primitive& primitive, MatrixJvp jvp);

// --- Algebra of derivative rules -----------------------------------------------------------------

Array transposed(const Array& x);  // the last two axes exchanged
Array adjoint(const Array& x);     // transposed and conjugated
Array matmul(const Array& x, const Array& y);
Array conj(const Array& x);        // of complex matrices
Array reciprocal(const Array& x);  // of floats and complex numbers
// The triangle below (or above) diagonal k, which is k columns to the right of the main one; zeros
// elsewhere.
Array lower(const Array& x, int k = 0);
Array upper(const Array& x, int k = 0);
Array eye(Dim rows, Dim columns, DType dtype);
// The lower triangle with half the diagonal: H = half_lower(H) + half_lower(H)^H for Hermitian H.
Array half_lower(const Array& x);
// The Hermitian matrix with the lower (or upper) triangle of x.
Array hermitian_of(const Array& x, bool from_lower);
Array symmetrized(const Array& x);    // (x + x^H) / 2
Array real_diagonal(const Array& x);  // of square matrices
Array diagonal_of(const Array& x);
Array trace_of(const Array& x);
Array imaginary_diagonal(const Array& x);  // i Im(x) on the diagonal, 0 elsewhere
Array as_rows(const Array& v);             // v[..., None, :]
Array as_columns(const Array& v);          // v[..., :, None]
Array broadcast_product(const Array& x, const Array& rows_or_columns);
Array leading(const Array& x, Dim rows, Dim columns);
Array take_rows(const Array& x, const Array& places);  // x[..., places, :]
Array in_dtype(const Array& x, DType dtype);

}  // namespace plait::matrices
