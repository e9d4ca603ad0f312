// NumPy's functions that replace and select elements, and sets. Part of numpy.h.
//
// Arrays are not written to: with inplace, which is NumPy's way and JAX's default, functions that
// replace elements throw a ValueError that says so. Without it they give the new array.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy {

// --- Replacement ---------------------------------------------------------------------------------

// arr with vals, in order and over again, where mask is true.
Array place(Operand arr, Operand mask, Operand vals, bool inplace = true);
// mode, of indices in the flattened array: as in take.
Array put(Operand a, Operand ind, Operand v, const std::optional<std::string>& mode = {},
          bool inplace = true);
Array put_along_axis(Operand arr, Operand indices, Operand values, std::optional<int> axis,
                     bool inplace = true, const std::optional<std::string>& mode = {});
Array fill_diagonal(Operand a, Operand val, bool wrap = false, bool inplace = true);
Array resize(Operand a, const Shape& new_shape);

// --- Selection -----------------------------------------------------------------------------------

Array extract(Operand condition, Operand arr, std::optional<Dim> size = {}, double fill_value = 0);
std::vector<Array> diag_indices(Dim n, int ndim = 2);
std::vector<Array> diag_indices_from(Operand arr);
std::vector<Array> tril_indices_from(Operand arr, int k = 0);
std::vector<Array> triu_indices_from(Operand arr, int k = 0);

// --- Indices and axes ----------------------------------------------------------------------------

// What an index outside does: "raise", "wrap" or "clip".
Array choose(Operand a, Operands choices, const std::string& mode);
Array ravel_multi_index(Operands multi_index, const Shape& dims, const std::string& mode,
                        const std::string& order = "C");
Array cross(Operand a, Operand b, int axisa, int axisb, int axisc, std::optional<int> axis = {});

// --- Order ---------------------------------------------------------------------------------------

// The elements before the places kth are not greater than those there, and the others not less.
Array partition(Operand a, const std::vector<int>& kth, std::optional<int> axis = -1);
Array argpartition(Operand a, const std::vector<int>& kth, std::optional<int> axis = -1);

// --- Sets, as vectors of distinct elements in order. With size results have so many elements:
// those in excess are left out, and fill_value stands for missing ones, by default the first
// element ----

Array union1d(Operand ar1, Operand ar2, std::optional<Dim> size = {},
              std::optional<double> fill_value = {});
Array setdiff1d(Operand ar1, Operand ar2, bool assume_unique = false, std::optional<Dim> size = {},
                double fill_value = 0);
Array setxor1d(Operand ar1, Operand ar2, std::optional<Dim> size = {},
               std::optional<double> fill_value = {});
// The common elements, and where each is first in both.
struct Intersection {
  Array values, indices1, indices2;
};
Intersection intersection(Operand ar1, Operand ar2, std::optional<Dim> size = {},
                          std::optional<double> fill_value = {});
Array intersect1d(Operand ar1, Operand ar2, std::optional<Dim> size = {},
                  std::optional<double> fill_value = {});
// The distinct slices along an axis, in order of their elements.
Unique unique_slices(Operand ar, int axis, std::optional<Dim> size = {},
                     std::optional<double> fill_value = {});

}  // namespace plait::numpy
