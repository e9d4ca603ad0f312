// The catalogue of plait.lax: the functions of primitives.h and lax.h under JAX's names, with JAX's
// forms of arguments (tuples of tuples, strings).
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>

#include "functions/lax/arguments.h"

namespace plait {
namespace {

using List = Argument::List;

[[noreturn]] void refuse(std::string_view function, std::string_view name,
                         std::string_view wanted) {
  throw DtypeError(
      std::string(function) + ": " + std::string(name) + " is not " + std::string(wanted),
      "see the documentation of lax." + std::string(function));
}
const List& list_of(const Argument& argument, std::string_view function, std::string_view name,
                    std::string_view wanted) {
  const auto* list = std::get_if<List>(&argument.value);
  if (!list) refuse(function, name, wanted);
  return *list;
}
std::vector<int> ints_of(const Argument& argument, std::string_view function,
                         std::string_view name) {
  std::optional<std::vector<int>> ints = detail::as_ints(argument);
  if (!ints) refuse(function, name, "a sequence of integers");
  return *ints;
}
using functions::conv_dimensions_of;
using functions::mode_of;
using functions::shape_or_empty;

template <Array (*function)(Operand, std::span<const int>)>
Array over(Operand operand, std::vector<int> axes) {
  return function(operand, axes);
}

// --- Shapes --------------------------------------------------------------------------------------

Array reshape(Operand operand, const Shape& new_sizes,
              const std::optional<std::vector<int>>& dimensions) {
  return numpy::reshape(dimensions ? lax::transpose(operand, *dimensions) : Array(operand),
                        new_sizes);
}
Array broadcast_in_dim(Operand operand, const Shape& shape, std::vector<int> broadcast_dimensions) {
  return lax::broadcast_in_dim(operand, shape, broadcast_dimensions);
}
Array full(const Shape& shape, Operand fill_value, std::optional<DType> dtype) {
  return numpy::full(shape, fill_value, dtype);
}
Array slice(Operand operand, const Shape& start_indices, const Shape& limit_indices,
            const std::optional<Shape>& strides) {
  return lax::slice(operand, start_indices, limit_indices, shape_or_empty(strides));
}
Array pad(Operand operand, Operand padding_value, const Argument& padding_config) {
  std::vector<lax::Padding> padding;
  for (const Argument& entry :
       list_of(padding_config, "pad", "padding_config", "a sequence of (low, high, interior)")) {
    const std::optional<Shape> sizes = detail::as_shape(entry);
    if (!sizes || sizes->size() != 3)
      refuse("pad", "padding_config", "a sequence of (low, high, interior)");
    padding.push_back({(*sizes)[0], (*sizes)[1], (*sizes)[2]});
  }
  return lax::pad(operand, padding_value, padding);
}

// Starts as scalars, or as one vector of them.
Arrays starts_of(const Argument& start_indices, int rank) {
  if (const std::optional<Arrays> scalars = detail::as_arrays(start_indices)) return *scalars;
  const std::optional<Array> vector = detail::as_array(start_indices);
  if (!vector || vector->ndim() != 1 || !(vector->shape(0) == Dim(rank)))
    refuse("dynamic_slice", "start_indices", "a sequence with an integer for each axis");
  Arrays starts;
  for (int i = 0; i < rank; ++i) starts.push_back(lax::index_in_dim(*vector, i, 0, false));
  return starts;
}
lax::NegativeIndices negative_of(bool allowed) {
  return allowed ? lax::NegativeIndices::wrap : lax::NegativeIndices::clamp;
}
Array dynamic_slice(Operand operand, const Argument& start_indices, const Shape& slice_sizes,
                    bool negative) {
  return lax::dynamic_slice(operand, starts_of(start_indices, operand.ndim()), slice_sizes,
                            negative_of(negative));
}
Array dynamic_update_slice(Operand operand, Operand update, const Argument& start_indices,
                           bool negative) {
  return lax::dynamic_update_slice(operand, update, starts_of(start_indices, operand.ndim()),
                                   negative_of(negative));
}
Array dynamic_slice_in_dim(Operand operand, Operand start_index, Dim slice_size, int axis,
                           bool negative) {
  return lax::dynamic_slice_in_dim(operand, start_index, slice_size, axis, negative_of(negative));
}
Array dynamic_index_in_dim(Operand operand, Operand index, int axis, bool keepdims, bool negative) {
  return lax::dynamic_index_in_dim(operand, index, axis, keepdims, negative_of(negative));
}
Array dynamic_update_slice_in_dim(Operand operand, Operand update, Operand start_index, int axis,
                                  bool negative) {
  return lax::dynamic_update_slice_in_dim(operand, update, start_index, axis,
                                          negative_of(negative));
}
Array dynamic_update_index_in_dim(Operand operand, Operand update, Operand index, int axis,
                                  bool negative) {
  return lax::dynamic_update_index_in_dim(operand, update, index, axis, negative_of(negative));
}

Shape broadcast_shapes_of(const Argument& shapes) {
  std::vector<Shape> list;
  for (const Argument& argument : list_of(shapes, "broadcast_shapes", "an argument", "a shape")) {
    const std::optional<Shape> shape = detail::as_shape(argument);
    if (!shape) refuse("broadcast_shapes", "an argument", "a shape");
    list.push_back(*shape);
  }
  return numpy::broadcast_shapes(list);
}

// --- Gather and scatter --------------------------------------------------------------------------

// The five lists of dimension numbers; the last two may be absent.
std::array<std::vector<int>, 5> five_lists(const Argument& numbers, std::string_view function) {
  const List& list =
      list_of(numbers, function, "dimension_numbers", "a tuple of sequences of integers");
  std::array<std::vector<int>, 5> result;
  if (list.size() < 3 || list.size() > 5)
    refuse(function, "dimension_numbers", "a tuple of 3 to 5 sequences");
  for (std::size_t i = 0; i < list.size(); ++i)
    result[i] = ints_of(list[i], function, "dimension_numbers");
  return result;
}
Array gather(Operand operand, Operand start_indices, const Argument& dimension_numbers,
             const Shape& slice_sizes, const std::optional<std::string>& mode,
             std::optional<double> fill_value) {
  auto [offset, collapsed, start, batch, indices_batch] = five_lists(dimension_numbers, "gather");
  return lax::gather(operand, start_indices,
                     lax::GatherDimensionNumbers{offset, collapsed, start, batch, indices_batch},
                     slice_sizes, mode_of(mode, "gather"), fill_value);
}
using Scatter = Array (*)(Operand, Operand, Operand, const lax::ScatterDimensionNumbers&,
                          const lax::ScatterOptions&);
template <Scatter function>
Array scatter(Operand operand, Operand scatter_indices, Operand updates,
              const Argument& dimension_numbers, bool indices_are_sorted, bool unique_indices,
              const std::optional<std::string>& mode) {
  return function(operand, scatter_indices, updates,
                  functions::scatter_dimensions_of(dimension_numbers),
                  {mode_of(mode, "scatter"), unique_indices, indices_are_sorted});
}

}  // namespace

lax::GatherScatterMode functions::mode_of(const std::optional<std::string>& mode,
                                          std::string_view function) {
  if (!mode || *mode == "raise") return lax::GatherScatterMode::check;
  if (*mode == "fill" || *mode == "drop" || *mode == "FILL_OR_DROP")
    return lax::GatherScatterMode::fill;
  if (*mode == "clip" || *mode == "CLIP") return lax::GatherScatterMode::clip;
  if (*mode == "promise" || *mode == "promise_in_bounds" || *mode == "PROMISE_IN_BOUNDS")
    return lax::GatherScatterMode::promise;
  throw ValueError(std::string(function) + ": mode is '" + *mode + "'",
                   "choose 'raise', 'fill', 'drop', 'clip' or 'promise'");
}

lax::ScatterDimensionNumbers functions::scatter_dimensions_of(const Argument& numbers) {
  auto [window, inserted, places, batch, indices_batch] = five_lists(numbers, "scatter");
  return {window, inserted, places, batch, indices_batch};
}

lax::ConvDimensions functions::conv_dimensions_of(const Argument& numbers,
                                                  std::string_view function) {
  if (numbers.is_none()) return {};
  const char* const wanted = "three strings, as (\"NHWC\", \"HWIO\", \"NHWC\")";
  const List& list = list_of(numbers, function, "dimension_numbers", wanted);
  if (list.size() != 3) refuse(function, "dimension_numbers", wanted);
  if (std::holds_alternative<std::string>(list[0].value)) {
    std::string_view words[3];
    for (int i = 0; i < 3; ++i) {
      const auto* word = std::get_if<std::string>(&list[i].value);
      if (!word) refuse(function, "dimension_numbers", wanted);
      words[i] = *word;
    }
    return lax::conv_dimension_numbers(words[0], words[1], words[2]);
  }
  return {ints_of(list[0], function, "dimension_numbers"),
          ints_of(list[1], function, "dimension_numbers"),
          ints_of(list[2], function, "dimension_numbers")};
}

namespace {

// --- Order ---------------------------------------------------------------------------------------

Argument sort(const Argument& operand, int dimension, bool is_stable, int num_keys) {
  if (const std::optional<Arrays> operands = detail::as_arrays(operand))
    return detail::give(lax::sort(Operands(*operands), dimension, is_stable, num_keys));
  const std::optional<Array> array = detail::as_array(operand);
  if (!array) refuse("sort", "operand", "an array or a sequence of arrays");
  return detail::give(lax::sort(*array, dimension, is_stable));
}
std::pair<Array, Array> top_k(Operand operand, Dim k, int axis) {
  return lax::top_k(operand, k, axis);
}

// --- Contraction and windows ---------------------------------------------------------------------

Array dot_general(Operand lhs, Operand rhs, const Argument& dimension_numbers,
                  std::optional<DType> preferred_element_type) {
  const char* const wanted = "((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))";
  const List& both = list_of(dimension_numbers, "dot_general", "dimension_numbers", wanted);
  if (both.size() != 2) refuse("dot_general", "dimension_numbers", wanted);
  std::vector<int> lists[4];
  for (int i = 0; i < 2; ++i) {
    const List& pair = list_of(both[i], "dot_general", "dimension_numbers", wanted);
    if (pair.size() != 2) refuse("dot_general", "dimension_numbers", wanted);
    for (int j = 0; j < 2; ++j)
      lists[2 * i + j] = ints_of(pair[j], "dot_general", "dimension_numbers");
  }
  Arrays operands{lhs, rhs};
  if (lhs.aval().weak || rhs.aval().weak) promote_dtypes(operands, "dot_general");
  return lax::dot_general(operands[0], operands[1], {lists[0], lists[1], lists[2], lists[3]},
                          preferred_element_type);
}

Array conv_general_dilated(Operand lhs, Operand rhs, const Shape& window_strides,
                           const functions::WindowPadding& padding,
                           const std::optional<Shape>& lhs_dilation,
                           const std::optional<Shape>& rhs_dilation,
                           const Argument& dimension_numbers, Dim feature_group_count,
                           Dim batch_group_count, std::optional<DType> preferred_element_type) {
  return lax::conv_general_dilated(lhs, rhs, window_strides, padding, shape_or_empty(lhs_dilation),
                                   shape_or_empty(rhs_dilation),
                                   conv_dimensions_of(dimension_numbers, "conv_general_dilated"),
                                   feature_group_count, batch_group_count, preferred_element_type);
}
Array conv(Operand lhs, Operand rhs, const Shape& window_strides,
           const functions::WindowPadding& padding, std::optional<DType> preferred_element_type) {
  return lax::conv(lhs, rhs, window_strides, padding, preferred_element_type);
}

using ReduceWindow = Array (*)(Operand, const Shape&, const Shape&, const lax::WindowPadding&,
                               const Shape&, const Shape&);
template <ReduceWindow function>
Array reduce_window(Operand operand, const Shape& window_dimensions,
                    const std::optional<Shape>& window_strides,
                    const functions::WindowPadding& padding,
                    const std::optional<Shape>& base_dilation,
                    const std::optional<Shape>& window_dilation) {
  return function(operand, window_dimensions, shape_or_empty(window_strides), padding,
                  shape_or_empty(base_dilation), shape_or_empty(window_dilation));
}

// --- The catalogue -------------------------------------------------------------------------------

[[maybe_unused]] const FunctionInfo* const shape_catalogue[] = {
    function("lax", "reshape(operand, new_sizes, dimensions=None)",
             "The elements in row-major order under another shape, after a transpose.", &reshape),
    function("lax", "transpose(operand, permutation)",
             "Axis i of the result is axis permutation[i].", &over<lax::transpose>),
    function("lax", "broadcast(operand, sizes)", "operand with axes of these sizes in front.",
             &lax::broadcast),
    function("lax", "broadcast_in_dim(operand, shape, broadcast_dimensions)",
             "operand repeated to a shape, its axis i at broadcast_dimensions[i].",
             &broadcast_in_dim),
    function("lax", "broadcast_shapes(*shapes)",
             "The shape that arrays of these shapes broadcast to.", &broadcast_shapes_of),
    function("lax", "expand_dims(array, dimensions)",
             "array with axes of size 1 at these places of the result.", &lax::expand_dims),
    function("lax", "squeeze(array, dimensions)", "array without these axes of size 1.",
             &lax::squeeze),
    function("lax", "collapse(operand, start_dimension, stop_dimension=None)",
             "A range of axes as one.", &lax::collapse),
    function(
        "lax", "iota(dtype, size)", "0, 1, 2, ... of a size.",
        +[](DType dtype, Dim size) { return lax::iota(dtype, size); }),
    function("lax", "broadcasted_iota(dtype, shape, dimension)",
             "0, 1, 2, ... along one axis of a shape.", &lax::broadcasted_iota),
    function(
        "lax", "full(shape, fill_value, dtype=None)",
        "An array of this shape with one number everywhere, in its own dtype unless one is given.",
        &full),
    function("lax", "full_like(x, fill_value, dtype=None, shape=None)",
             "A number everywhere, of x's shape and dtype.", &lax::full_like),
    function("lax", "slice(operand, start_indices, limit_indices, strides=None)",
             "Elements from starts to below limits, by strides.", &slice),
    function("lax", "slice_in_dim(operand, start_index, limit_index, stride=1, axis=0)",
             "slice along one axis; None is its end, and negative indices count from it.",
             &lax::slice_in_dim),
    function("lax", "index_in_dim(operand, index, axis=0, keepdims=True)", "One row along an axis.",
             &lax::index_in_dim),
    function("lax", "pad(operand, padding_value, padding_config)",
             "operand with elements before, after and between, (low, high, interior) for each "
             "axis; negative ones take away.",
             &pad),
    function("lax", "concatenate(operands, dimension)", "Arrays one after the other along an axis.",
             &lax::concatenate),
    function("lax", "split(operand, sizes, axis=0)", "Pieces of these sizes along an axis.",
             &lax::split),
    function("lax", "rev(operand, dimensions)", "Elements in reverse order along axes.",
             &over<lax::rev>),
    function("lax",
             "dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True)",
             "A window that starts at run-time indices, moved inside; negative ones count from the "
             "end, or with allow_negative_indices=False as 0.",
             &dynamic_slice),
    function("lax",
             "dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, "
             "allow_negative_indices=True)",
             "dynamic_slice along one axis; the others are kept whole.", &dynamic_slice_in_dim),
    function("lax",
             "dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, "
             "allow_negative_indices=True)",
             "One row at a run-time index.", &dynamic_index_in_dim),
    function("lax",
             "dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True)",
             "operand with a window replaced.", &dynamic_update_slice),
    function("lax",
             "dynamic_update_slice_in_dim(operand, update, start_index, axis, *, "
             "allow_negative_indices=True)",
             "dynamic_update_slice along one axis; update is whole along the others.",
             &dynamic_update_slice_in_dim),
    function(
        "lax",
        "dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True)",
        "operand with one row replaced.", &dynamic_update_index_in_dim),
    function("lax",
             "gather(operand, start_indices, dimension_numbers, slice_sizes, *, "
             "unique_indices=False!, indices_are_sorted=False!, mode=None, fill_value=None)",
             "Windows at many places. dimension_numbers: (offset_dims, collapsed_slice_dims, "
             "start_index_map, operand_batching_dims, "
             "start_indices_batching_dims).",
             &gather),
};

[[maybe_unused]] const FunctionInfo* const scatter_catalogue[] = {
    function("lax",
             "scatter(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "operand with windows at many places replaced. dimension_numbers: "
             "(update_window_dims, inserted_window_dims, "
             "scatter_dims_to_operand_dims, operand_batching_dims, scatter_indices_batching_dims).",
             &scatter<static_cast<Scatter>(lax::scatter)>),
    function("lax",
             "scatter_add(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that adds updates to the elements; places that are named twice take both.",
             &scatter<lax::scatter_add>),
    function("lax",
             "scatter_mul(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that multiplies elements by updates; places that are named twice take both.",
             &scatter<lax::scatter_mul>),
    function("lax",
             "scatter_min(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that keeps the smaller one.", &scatter<lax::scatter_min>),
    function("lax",
             "scatter_max(operand, scatter_indices, updates, dimension_numbers, *, "
             "indices_are_sorted=False, unique_indices=False, mode=None)",
             "scatter that keeps the larger one.", &scatter<lax::scatter_max>),
};

[[maybe_unused]] const FunctionInfo* const reduction_catalogue[] = {
    function("lax", "reduce_sum(operand, axes)",
             "The sum over axes, in the dtype of the operand; 0 of no elements.",
             &over<lax::reduce_sum>),
    function("lax", "reduce_prod(operand, axes)",
             "The product over axes, in the dtype of the operand; 1 of no elements.",
             &over<lax::reduce_prod>),
    function("lax", "reduce_max(operand, axes)", "The largest element over axes; NaN wins.",
             &over<lax::reduce_max>),
    function("lax", "reduce_min(operand, axes)", "The smallest element over axes; NaN wins.",
             &over<lax::reduce_min>),
    function("lax", "reduce_and(operand, axes)", "And over axes, of integers or bools.",
             &over<lax::reduce_and>),
    function("lax", "reduce_or(operand, axes)", "Or over axes, of integers or bools.",
             &over<lax::reduce_or>),
    function("lax", "argmax(operand, axis, index_dtype=None)",
             "The index of the largest element along an axis, in the default int; NaN wins.",
             &lax::argmax),
    function("lax", "argmin(operand, axis, index_dtype=None)",
             "The index of the smallest element along an axis, in the default int; NaN wins.",
             &lax::argmin),
    function("lax", "cumsum(operand, axis=0, reverse=False)",
             "Running sums along an axis, from its end when reverse, in the dtype of the operand.",
             &lax::cumsum),
    function(
        "lax", "cumprod(operand, axis=0, reverse=False)",
        "Running products along an axis, from its end when reverse, in the dtype of the operand.",
        &lax::cumprod),
    function("lax", "cummax(operand, axis=0, reverse=False)",
             "Running maxima along an axis, from its end when reverse; NaN wins.", &lax::cummax),
    function("lax", "cummin(operand, axis=0, reverse=False)",
             "Running minima along an axis, from its end when reverse; NaN wins.", &lax::cummin),
    function("lax", "cumlogsumexp(operand, axis=0, reverse=False)",
             "Logarithms of running sums of exponentials, without overflow.", &lax::cumlogsumexp),
    function("lax", "linear_recurrence(a, b, axis=0, reverse=False)",
             "h[i] = a[i] h[i-1] + b[i] along an axis, h[0] = b[0].", &lax::linear_recurrence),
    function("lax", "sort(operand, dimension=-1, is_stable=True, num_keys=1)",
             "Sorts an array, or several together by the first num_keys of them. NaN is greatest.",
             &sort),
    function("lax", "sort_key_val(keys, values, dimension=-1, is_stable=True)",
             "keys sorted, and values moved along.", &lax::sort_key_val),
    function("lax", "top_k(operand, k, *, axis=-1)",
             "(values, indices) of the k largest, largest first; of equal ones the first.", &top_k),
    function("lax",
             "reduce_window_sum(operand, window_dimensions, window_strides=None, padding='VALID', "
             "base_dilation=None, window_dilation=None)",
             "The sums over windows; padding and holes count as 0.",
             &reduce_window<lax::reduce_window_sum>),
    function("lax",
             "reduce_window_prod(operand, window_dimensions, window_strides=None, padding='VALID', "
             "base_dilation=None, window_dilation=None)",
             "The products over windows; padding and holes count as 1.",
             &reduce_window<lax::reduce_window_prod>),
    function("lax",
             "reduce_window_max(operand, window_dimensions, window_strides=None, padding='VALID', "
             "base_dilation=None, window_dilation=None)",
             "Maxima over windows; NaN wins.", &reduce_window<lax::reduce_window_max>),
    function("lax",
             "reduce_window_min(operand, window_dimensions, window_strides=None, padding='VALID', "
             "base_dilation=None, window_dilation=None)",
             "Minima over windows; NaN wins.", &reduce_window<lax::reduce_window_min>),
    function("lax", "dot(lhs, rhs, precision=None!, preferred_element_type=None)",
             "The product of vectors and matrices.", &lax::dot),
    function("lax", "batch_matmul(lhs, rhs, precision=None!)",
             "The product of matrices in the last two axes; the others are equal.",
             &lax::batch_matmul),
    function(
        "lax",
        "dot_general(lhs, rhs, dimension_numbers, precision=None!, preferred_element_type=None)",
        "Sums products over contracted axes, batch axes side by side. dimension_numbers: "
        "((lhs_contract, rhs_contract), (lhs_batch, "
        "rhs_batch)).",
        &dot_general),
    function(
        "lax",
        "conv(lhs, rhs, window_strides, padding, precision=None!, preferred_element_type=None)",
        "Convolution in NCHW and OIHW.", &conv),
    function(
        "lax",
        "conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, "
        "rhs_dilation=None, dimension_numbers=None, "
        "feature_group_count=1, batch_group_count=1, precision=None!, preferred_element_type=None)",
        "Convolution as neural networks mean it. padding: 'VALID', 'SAME', 'SAME_LOWER' or "
        "pairs; dimension_numbers: three strings, "
        "as ('NHWC', 'HWIO', 'NHWC').",
        &conv_general_dilated),
};

}  // namespace
}  // namespace plait
