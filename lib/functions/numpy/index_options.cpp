// plait.numpy: choose, ravel_multi_index, indices and cross with all their options.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_edits.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

Array numpy::choose(Operand a, Operands choices) { return choose(a, choices, "raise"); }
Array numpy::choose(Operand a, Operands choices, const std::string& mode) {
  if (!is_integer(a.dtype()))
    throw DtypeError("choose: indices of dtype " + std::string(name_of(a.dtype())),
                     "give integers");
  if (choices.empty()) throw ValueError("choose: no choices", "give at least one");
  const Dim count = std::int64_t(choices.size());
  Array index = astype(a, default_int());
  if (mode == "wrap")
    index = remainder(index, number_of(count, default_int()));
  else if (mode == "raise")  // a negative index is none from the end
    index = take(counting(count), where(less(index, 0), number_of(count, default_int()), index), 0);
  else if (mode != "clip")
    throw ValueError("choose: mode is '" + mode + "'", "choose 'raise', 'wrap' or 'clip'");
  Array result = choices.back();
  for (std::size_t i = choices.size() - 1; i-- > 0;)
    result = where(less_equal(index, std::int64_t(i)), choices[i], result);
  return result;
}

Array numpy::ravel_multi_index(Operands multi_index, const Shape& dims, const std::string& mode,
                               const std::string& order) {
  if (order != "C" && order != "F")
    throw ValueError("ravel_multi_index: order is '" + order + "'", "choose 'C' or 'F'");
  Arrays indices(multi_index);
  Shape sizes = dims;
  for (std::size_t i = 0; i < indices.size() && i < dims.size(); ++i) {
    Array& index = indices[i];
    const Array size = number_of(dims[i], index.dtype());
    if (mode == "wrap") {
      index = remainder(index, size);
    } else if (mode == "clip") {
      index = clip(index, constant(0, index), number_of(dims[i] - 1, index.dtype()));
    } else if (mode != "raise") {
      throw ValueError("ravel_multi_index: mode is '" + mode + "'",
                       "choose 'raise', 'wrap' or 'clip'");
    } else if (index.known_buffer() && dims[i].is_constant()) {
      const std::vector<std::int64_t> values = index.to_vector<std::int64_t>();
      if (std::any_of(values.begin(), values.end(),
                      [&](std::int64_t value) { return value < 0 || value >= dims[i].constant(); }))
        throw IndexError("ravel_multi_index: an index lies outside of axis " + std::to_string(i) +
                             " of size " + dims[i].to_string(),
                         "give indices that are inside, or mode='clip' or 'wrap'");
    }
  }
  if (order == "F") {
    std::reverse(indices.begin(), indices.end());
    std::reverse(sizes.begin(), sizes.end());
  }
  return ravel_multi_index(indices, sizes);
}

Array numpy::cross(Operand a, Operand b, int axisa, int axisb, int axisc, std::optional<int> axis) {
  if (axis) axisa = axisb = axisc = *axis;
  const Array x = moveaxis(a, {axisa}, {-1}), y = moveaxis(b, {axisb}, {-1});
  const bool is_flat = x.shape(x.ndim() - 1) == Dim(2) && y.shape(y.ndim() - 1) == Dim(2);
  const Array result = cross(x, y, -1);
  return is_flat ? result : moveaxis(result, {-1}, {axisc});
}

namespace {

Array choose_of(Operand a, Operands choices, const std::string& mode) {
  return numpy::choose(a, choices, mode);
}
Array ravel_multi_index_of(Operands multi_index, const Shape& dims, const std::string& mode,
                           const std::string& order) {
  return numpy::ravel_multi_index(multi_index, dims, mode, order);
}
Argument indices_of(const Shape& dimensions, std::optional<DType> dtype, bool sparse) {
  if (!sparse) return detail::give(numpy::indices(dimensions, dtype));
  Arrays axes;
  for (Dim size : dimensions) axes.push_back(counting(size, dtype.value_or(default_int())));
  return detail::give(numpy::meshgrid(axes, true, "ij"));
}
Array cross_of(Operand a, Operand b, int axisa, int axisb, int axisc, std::optional<int> axis) {
  return numpy::cross(a, b, axisa, axisb, axisc, axis);
}

[[maybe_unused]] const FunctionInfo* const index_option_functions[] = {
    function("numpy", "choose(a, choices, out=None!, mode='raise')",
             "choices[a], element by element. An index outside is an IndexError, or counts modulo "
             "their number ('wrap'), or takes the first or last ('clip').",
             &choose_of),
    function("numpy", "ravel_multi_index(multi_index, dims, mode='raise', order='C')",
             "Indices of each axis as places in a row, of which the last axis runs fastest, or "
             "with order 'F' the first. Indices outside: an IndexError where they are known, "
             "counted modulo the size ('wrap') or the nearest inside ('clip').",
             &ravel_multi_index_of),
    function("numpy", "indices(dimensions, dtype=None, sparse=False)",
             "The index along each axis at each place of a shape, stacked; sparse: an array for "
             "each axis that has size 1 along the others.",
             &indices_of),
    function("numpy", "cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)",
             "The vector product along axes of size 3 (or 2: the third element is 0) of a and b, "
             "along axisc of the result; axis stands for all three.",
             &cross_of),
};

}  // namespace
}  // namespace plait
