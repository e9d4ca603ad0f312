// plait.numpy: partitions. A sorted axis is partitioned at every place.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_edits.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

void require_places(std::string_view function, const Array& a, const std::vector<int>& kth,
                    const std::optional<int>& axis) {
  const Dim n =
      axis ? a.shape(normalize_axis(*axis, a.ndim(), function)) : a.shape().num_elements();
  for (int k : kth)
    if (less_equal(n, k) == true || less_equal(-n, k) == false)
      throw ValueError(std::string(function) + ": the place " + std::to_string(k) + " of " +
                           n.to_string() + " elements",
                       "name places that there are");
}

}  // namespace

Array numpy::partition(Operand a, const std::vector<int>& kth, std::optional<int> axis) {
  require_places("partition", a, kth, axis);
  return sort(a, axis);
}
Array numpy::argpartition(Operand a, const std::vector<int>& kth, std::optional<int> axis) {
  require_places("argpartition", a, kth, axis);
  return argsort(a, axis);
}

namespace {

[[maybe_unused]] const FunctionInfo* const partition_functions[] = {
    function("numpy", "partition(a, kth, axis=-1)",
             "The elements along an axis (None: in a row) with those that are not greater before "
             "the place kth, or each of several, and the others behind; NaN is greatest. They are "
             "in order altogether.",
             &numpy::partition),
    function("numpy", "argpartition(a, kth, axis=-1)",
             "The indices, int32, that partition along an axis.", &numpy::argpartition),
};

}  // namespace
}  // namespace plait
