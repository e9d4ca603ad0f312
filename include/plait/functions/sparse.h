// plait::sparse: arrays that hold their nonzero elements and where they are, under the names of
// jax.experimental.sparse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

#include <variant>

namespace plait::sparse {

// A sparse array by coordinates: data[i] is what the array holds at indices[i]. Entries that name
// one place are added; an entry whose index is outside of the shape is padding and counts nowhere.
// data is [nse, *dense], indices is [nse, number of sparse axes], and shape is that of the sparse
// axes followed by the dense ones. In Python it is a tree whose leaves are data and indices.
struct BCOO {
  static constexpr const char* argument_type = "sparse array";
  static std::optional<BCOO> from_argument(const Argument& argument);

  Array data, indices;
  Shape shape;

  int ndim() const { return shape.rank(); }
  int n_dense() const { return data.ndim() - 1; }
  int n_sparse() const { return ndim() - n_dense(); }
  Dim nse() const { return data.shape(0); }
};

// The elements of an array that are not zero. nse, how many are kept, is their number by default,
// and must be given where they are not known; the last n_dense axes are dense. The gradient with
// respect to mat is that of the elements kept.
BCOO bcoo_fromdense(Operand mat, std::optional<Dim> nse = {}, int n_dense = 0);
Array bcoo_todense(const BCOO& mat);
// Sparse axes among themselves, and dense axes among themselves.
BCOO bcoo_transpose(const BCOO& mat, const std::vector<int>& permutation);
// Sums over axes, which the result lacks.
BCOO bcoo_reduce_sum(const BCOO& mat, const Axes& axes = {});
// The same array with its indices in order and each once; nse as for bcoo_fromdense, mat.nse()
// where values are not known.
BCOO bcoo_sum_duplicates(const BCOO& mat, std::optional<Dim> nse = {});
// Elementwise products with an array that broadcasts to the shape.
BCOO bcoo_multiply_dense(const BCOO& sp_mat, Operand v);
// The sum of two arrays of one shape: the entries of both.
BCOO bcoo_add(const BCOO& lhs, const BCOO& rhs);
// Ones on a diagonal.
BCOO eye(Dim N, std::optional<Dim> M = {}, int k = 0, std::optional<DType> dtype = {});

// A factor of a product, sparse or dense.
using Factor = std::variant<Array, BCOO>;
// Sums of products of a sparse array and a dense one over contracted axes, which are sparse axes;
// there are no batch axes. The free axes of lhs come before those of rhs, as in lax::dot_general.
Array bcoo_dot_general(const Factor& lhs, const Factor& rhs,
                       const lax::DotDimensions& dimension_numbers);

}  // namespace plait::sparse
