// NumPy's functions that make arrays, change their shape, join, split and index them. Part of
// numpy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

namespace plait::numpy {

// --- Creation ------------------------------------------------------------------------------------

// The default dtype is float32, and that of the fill value for full.
Array zeros(const Shape& shape, std::optional<DType> dtype = {});
Array ones(const Shape& shape, std::optional<DType> dtype = {});
Array empty(const Shape& shape, std::optional<DType> dtype = {});  // zeros
Array full(const Shape& shape, Operand fill_value, std::optional<DType> dtype = {});
Array zeros_like(Operand a, std::optional<DType> dtype = {},
                 const std::optional<Shape>& shape = {});
Array ones_like(Operand a, std::optional<DType> dtype = {}, const std::optional<Shape>& shape = {});
Array empty_like(Operand a, std::optional<DType> dtype = {},
                 const std::optional<Shape>& shape = {});
Array full_like(Operand a, Operand fill_value, std::optional<DType> dtype = {},
                const std::optional<Shape>& shape = {});
Array arange(Number start, std::optional<Number> stop = {}, std::optional<Number> step = {},
             std::optional<DType> dtype = {});
Array linspace(Operand start, Operand stop, Dim num = 50, bool endpoint = true,
               std::optional<DType> dtype = {}, int axis = 0);
Array logspace(Operand start, Operand stop, Dim num = 50, bool endpoint = true, double base = 10.0,
               std::optional<DType> dtype = {}, int axis = 0);
Array geomspace(Operand start, Operand stop, Dim num = 50, bool endpoint = true,
                std::optional<DType> dtype = {}, int axis = 0);
Array eye(Dim N, std::optional<Dim> M = {}, int k = 0, std::optional<DType> dtype = {});
Array identity(Dim n, std::optional<DType> dtype = {});
Array tri(Dim N, std::optional<Dim> M = {}, int k = 0, std::optional<DType> dtype = {});
Array tril(Operand m, int k = 0);
Array triu(Operand m, int k = 0);
Array diag(Operand v, int k = 0);
Array diagflat(Operand v, int k = 0);
Array diagonal(Operand a, int offset = 0, int axis1 = 0, int axis2 = 1);
std::vector<Array> meshgrid(Operands xi, bool sparse = false, const std::string& indexing = "xy");
Array indices(const Shape& dimensions, std::optional<DType> dtype = {});
std::vector<Array> tril_indices(Dim n, int k = 0, std::optional<Dim> m = {});
std::vector<Array> triu_indices(Dim n, int k = 0, std::optional<Dim> m = {});
Array astype(Operand x, DType dtype);
Array copy(Operand a);
Array hamming(Dim M);
Array hanning(Dim M);
Array bartlett(Dim M);
Array blackman(Dim M);

// --- Shape ---------------------------------------------------------------------------------------

Shape shape(Operand a);
Dim size(Operand a, const Axes& axis = {});
int ndim(Operand a);
// One size may be -1, which is inferred. order: "C" (row-major) or "F" (column-major).
Array reshape(Operand a, const Shape& shape, const std::string& order = "C");
Array ravel(Operand a, const std::string& order = "C");
Array transpose(Operand a, const std::optional<std::vector<int>>& axes = {});
Array permute_dims(Operand a, const std::vector<int>& axes);
Array matrix_transpose(Operand x);
Array swapaxes(Operand a, int axis1, int axis2);
Array moveaxis(Operand a, const std::vector<int>& source, const std::vector<int>& destination);
Array rollaxis(Operand a, int axis, int start = 0);
Array expand_dims(Operand a, const std::vector<int>& axis);
Array squeeze(Operand a, const Axes& axis = {});
Array broadcast_to(Operand array, const Shape& shape);
std::vector<Array> broadcast_arrays(Operands args);
Shape broadcast_shapes(const std::vector<Shape>& shapes);
Array atleast_1d(Operand array);
Array atleast_2d(Operand array);
Array atleast_3d(Operand array);

// --- Joining and splitting -----------------------------------------------------------------------

// axis is 0 by default; nullopt joins the flattened arrays.
Array concatenate(Operands arrays, std::optional<int> axis = 0, std::optional<DType> dtype = {});
Array concat(Operands arrays, std::optional<int> axis = 0);
Array stack(Operands arrays, int axis = 0, std::optional<DType> dtype = {});
Array vstack(Operands tup, std::optional<DType> dtype = {});
Array hstack(Operands tup, std::optional<DType> dtype = {});
Array dstack(Operands tup, std::optional<DType> dtype = {});
Array column_stack(Operands tup);
Array append(Operand arr, Operand values, std::optional<int> axis = {});
std::vector<Array> unstack(Operand x, int axis = 0);
std::vector<Array> split(Operand ary, const Sections& indices_or_sections, int axis = 0);
std::vector<Array> array_split(Operand ary, const Sections& indices_or_sections, int axis = 0);
std::vector<Array> hsplit(Operand ary, const Sections& indices_or_sections);
std::vector<Array> vsplit(Operand ary, const Sections& indices_or_sections);
std::vector<Array> dsplit(Operand ary, const Sections& indices_or_sections);
Array tile(Operand A, const Shape& reps);
// Where counts are traced, as under jit, the size of the result must be given.
Array repeat(Operand a, const Repeats& repeats, std::optional<int> axis = {},
             std::optional<Dim> total_repeat_length = {});

// --- Rearranging ---------------------------------------------------------------------------------

Array flip(Operand m, const Axes& axis = {});
Array fliplr(Operand m);
Array flipud(Operand m);
Array rot90(Operand m, int k = 1, const std::vector<int>& axes = {0, 1});
Array roll(Operand a, const Shifts& shift, const Axes& axis = {});
// mode: constant, edge, reflect, symmetric or wrap.
Array pad(Operand array, const PadWidth& pad_width, const std::string& mode = "constant",
          Operand constant_values = 0);

// --- Indexing ------------------------------------------------------------------------------------

// What an index out of range gives, by mode. Absent or "raise": an IndexError. "fill", or a
// fill_value without a mode: that value, or by default NaN or the extreme integer. "clip"; "wrap";
// "promise": the caller promises that there is none. Negative indices count from the end.
Array take(Operand a, Operand indices, std::optional<int> axis = {},
           const std::optional<std::string>& mode = {}, std::optional<double> fill_value = {});
Array take_along_axis(Operand arr, Operand indices, std::optional<int> axis = -1,
                      const std::optional<std::string>& mode = {},
                      std::optional<double> fill_value = {});
Array compress(Operand condition, Operand a, std::optional<int> axis = {},
               std::optional<Dim> size = {}, double fill_value = 0);
Array select(Operands condlist, Operands choicelist, Operand default_ = 0);
Array choose(Operand a, Operands choices);
// The indices of the elements that are not zero, one array for each axis. Without size their number
// must be known, which it is not under jit. With size they are truncated, or padded with
// fill_value.
std::vector<Array> nonzero(Operand a, std::optional<Dim> size = {}, double fill_value = 0);
Array flatnonzero(Operand a, std::optional<Dim> size = {}, double fill_value = 0);
Array argwhere(Operand a, std::optional<Dim> size = {}, double fill_value = 0);
// The distinct elements in ascending order.
Array unique(Operand ar, bool equal_nan = true, std::optional<Dim> size = {},
             std::optional<double> fill_value = {});
struct Unique {
  Array values, indices, inverse, counts;
};
Unique unique_all(Operand x, bool equal_nan = false, std::optional<Dim> size = {},
                  std::optional<double> fill_value = {});
std::pair<Array, Array> unique_counts(Operand x);
std::pair<Array, Array> unique_inverse(Operand x);
Array unique_values(Operand x);
std::vector<Array> unravel_index(Operand indices, const Shape& shape);
Array ravel_multi_index(Operands multi_index, const Shape& dims);
Array isin(Operand element, Operand test_elements, bool invert = false);

}  // namespace plait::numpy
