// plait.lax: products of groups of rows, ragged_dot and ragged_dot_general. See lax_numbers.h.
//
// A product with a mask of members, one number for each place of the ragged axis and each group, is
// one einsum of three operands, so that derivatives, batches and padding are those of products.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax_numbers.h>

#include <algorithm>

#include "functions/lax/arguments.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

bool is_in(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// Whether each place of an axis of this size lies in each group: axes (..., place, group).
Array members(const Array& group_sizes, Dim size) {
  const int last = group_sizes.ndim() - 1;
  const Array ends = lax::cumsum(group_sizes, last), starts = lax::sub(ends, group_sizes);
  const Array place = numpy::expand_dims(counting(size, ends.dtype()), {1});
  return numpy::logical_and(numpy::greater_equal(place, numpy::expand_dims(starts, {last})),
                            numpy::less(place, numpy::expand_dims(ends, {last})));
}

// The letters of an einsum.
class Letters {
 public:
  char next() {
    if (used_ == 52) throw ShapeError("ragged_dot_general: too many axes", "give fewer");
    return char(used_ < 26 ? 'a' + used_++ : 'A' + used_++ - 26);
  }

 private:
  int used_ = 0;
};

[[noreturn]] void refuse_axes(const std::string& what, const char* fix) {
  throw ShapeError("ragged_dot_general: " + what, fix);
}

}  // namespace

Array lax::ragged_dot_general(Operand lhs, Operand rhs, Operand group_sizes,
                              const RaggedDotDimensions& dimensions,
                              std::optional<DType> preferred_element_type) {
  const DotDimensions& dot = dimensions.dot;
  const int ragged = dimensions.lhs_ragged;
  if (ragged < 0 || ragged >= lhs.ndim())
    refuse_axes("the ragged axis " + std::to_string(ragged) + " of an array of " +
                    std::to_string(lhs.ndim()) + " axes",
                "name an axis of lhs");
  if (!is_integer(group_sizes.dtype()) || group_sizes.ndim() < 1)
    throw DtypeError("ragged_dot_general: group sizes of dtype " +
                         std::string(name_of(group_sizes.dtype())) + " and shape (" +
                         group_sizes.shape().to_string() + ")",
                     "give integers, one for each group");
  const bool is_contracted = is_in(dot.lhs_contract, ragged);
  const bool is_batch = is_in(dot.lhs_batch, ragged);
  const bool is_own = !is_contracted && !is_batch;
  if (is_own != dimensions.rhs_group.has_value())
    refuse_axes(is_own ? "no axis of rhs for the groups"
                       : "an axis of rhs for the groups, where the ragged axis is of rhs too",
                is_own ? "name one" : "name none");
  const std::size_t contracted = dot.lhs_contract.size(), batches = dot.lhs_batch.size();
  if (contracted != dot.rhs_contract.size() || batches != dot.rhs_batch.size())
    refuse_axes("lhs and rhs contract or batch over different numbers of axes",
                "name as many axes of both");

  Letters letters;
  const char group = letters.next();
  std::string left, right, batch, own_left, own_right;
  for (int axis = 0; axis < lhs.ndim(); ++axis) left += letters.next();
  right.assign(rhs.ndim(), '?');
  auto share = [&](const std::vector<int>& of_lhs, const std::vector<int>& of_rhs) {
    for (std::size_t i = 0; i < of_lhs.size(); ++i) {
      const int axis = of_lhs[i], other = of_rhs[i];
      if (axis < 0 || axis >= lhs.ndim() || other < 0 || other >= rhs.ndim())
        refuse_axes("axes " + std::to_string(axis) + " and " + std::to_string(other) +
                        " of arrays of shapes (" + lhs.shape().to_string() + ") and (" +
                        rhs.shape().to_string() + ")",
                    "name axes that they have");
      right[other] = left[axis];
    }
  };
  share(dot.lhs_contract, dot.rhs_contract);
  share(dot.lhs_batch, dot.rhs_batch);
  if (is_own) {
    if (*dimensions.rhs_group < 0 || *dimensions.rhs_group >= rhs.ndim())
      refuse_axes("axis " + std::to_string(*dimensions.rhs_group) + " of rhs for the groups",
                  "name one that it has");
    right[*dimensions.rhs_group] = group;
  }
  for (char& letter : right)
    if (letter == '?') own_right += letter = letters.next();
  std::vector<int> prefix, same_kind;  // of lhs, before the ragged axis
  for (int axis : dot.lhs_batch) batch += left[axis];
  for (int axis = 0; axis < lhs.ndim(); ++axis)
    if (!is_in(dot.lhs_contract, axis) && !is_in(dot.lhs_batch, axis)) {
      own_left += left[axis];
      if (is_own) same_kind.push_back(axis);
    }
  if (is_contracted) same_kind = dot.lhs_contract;
  if (!is_batch) prefix = dot.lhs_batch;
  if (is_batch) same_kind = dot.lhs_batch;
  prefix.insert(prefix.end(), same_kind.begin(),
                std::find(same_kind.begin(), same_kind.end(), ragged));

  // Group sizes of one axis are those of every prefix.
  std::string of_members;
  if (group_sizes.ndim() > 1) {
    for (int axis : prefix) of_members += left[axis];
    if (group_sizes.ndim() != int(prefix.size()) + 1)
      refuse_axes("group sizes of shape (" + group_sizes.shape().to_string() + ")",
                  "give one axis, or one for each batch axis and each axis before the ragged one");
  }
  of_members += left[ragged];
  Array member = members(group_sizes, lhs.shape(ragged));
  if (is_batch)
    member = numpy::any(member, std::vector<int>{member.ndim() - 1});
  else
    of_members += group;
  Arrays operands{lhs, rhs};
  promote_dtypes(operands, "ragged_dot_general");
  const std::string result =
      (is_contracted ? std::string(1, group) : std::string()) + batch + own_left + own_right;
  return numpy::einsum(of_members + "," + left + "," + right + "->" + result,
                       {astype(member, operands[0].dtype()), operands[0], operands[1]},
                       preferred_element_type);
}

Array lax::ragged_dot(Operand lhs, Operand rhs, Operand group_sizes,
                      std::optional<DType> preferred_element_type) {
  if (lhs.ndim() != 2 || rhs.ndim() != 3 || group_sizes.ndim() != 1 ||
      !(group_sizes.shape(0) == rhs.shape(0)) || !(lhs.shape(1) == rhs.shape(1)))
    throw ShapeError("ragged_dot: operands of shapes (" + lhs.shape().to_string() + "), (" +
                         rhs.shape().to_string() + ") and (" + group_sizes.shape().to_string() +
                         ")",
                     "give rows (m, k), a matrix (k, n) for each group, and the groups' sizes");
  return ragged_dot_general(lhs, rhs, group_sizes, {{{1}, {1}, {}, {}}, 0, 0},
                            preferred_element_type);
}

namespace {

// JAX's numbers: (((lhs_contract, rhs_contract), (lhs_batch, rhs_batch)), (ragged,), (group,)).
lax::RaggedDotDimensions ragged_dimensions_of(const Argument& numbers) {
  const auto refuse = []() -> const Argument::List& {
    throw DtypeError(
        "ragged_dot_general: ragged_dot_dimension_numbers is not (dot_dimension_numbers, "
        "lhs_ragged_dimensions, rhs_group_dimensions)",
        "make it with lax.RaggedDotDimensionNumbers");
  };
  auto list_of = [&](const Argument& argument, std::size_t size) -> const Argument::List& {
    const auto* list = std::get_if<Argument::List>(&argument.value);
    return list && list->size() == size ? *list : refuse();
  };
  auto ints_of = [&](const Argument& argument) {
    std::optional<std::vector<int>> ints = detail::as_ints(argument);
    if (!ints) refuse();
    return *ints;
  };
  const Argument::List& three = list_of(numbers, 3);
  const Argument::List& dot = list_of(three[0], 2);
  const Argument::List &contract = list_of(dot[0], 2), &batch = list_of(dot[1], 2);
  const std::vector<int> ragged = ints_of(three[1]), group = ints_of(three[2]);
  if (ragged.size() != 1 || group.size() > 1)
    refuse_axes(std::to_string(ragged.size()) + " ragged axes and " + std::to_string(group.size()) +
                    " axes of groups",
                "name one ragged axis, and one axis of groups or none");
  lax::RaggedDotDimensions result{
      {ints_of(contract[0]), ints_of(contract[1]), ints_of(batch[0]), ints_of(batch[1])},
      ragged[0],
      {}};
  if (!group.empty()) result.rhs_group = group[0];
  return result;
}

Array ragged_dot_general_of(Operand lhs, Operand rhs, Operand group_sizes, const Argument& numbers,
                            std::optional<DType> preferred_element_type) {
  return lax::ragged_dot_general(lhs, rhs, group_sizes, ragged_dimensions_of(numbers),
                                 preferred_element_type);
}

[[maybe_unused]] const FunctionInfo* const ragged_catalogue[] = {
    function("lax",
             "ragged_dot(lhs, rhs, group_sizes, precision=None!, preferred_element_type=None, "
             "group_offset=None!)",
             "The rows of lhs (m, k), of which the first group_sizes[0] are multiplied with rhs[0] "
             "(k, n), the next group_sizes[1] with rhs[1], and so on; rows beyond are 0.",
             &lax::ragged_dot),
    function("lax",
             "ragged_dot_general(lhs, rhs, group_sizes, ragged_dot_dimension_numbers, "
             "precision=None!, preferred_element_type=None, group_offset=None!, "
             "out_sharding=None!)",
             "dot_general where the places of one axis of lhs are in groups of group_sizes, one "
             "after the other; ragged_dot_dimension_numbers: (dot_dimension_numbers, (axis of "
             "lhs,), (axis of rhs for the groups,) or ()). An axis of lhs alone: each place meets "
             "the matrix of its group. A contracted axis: one sum for each group, along a first "
             "axis. A batch axis: the product. Places beyond the groups give 0. group_sizes (g,), "
             "or with the batch axes of lhs, and those of the ragged axis's kind before it, in "
             "front.",
             &ragged_dot_general_of),
};

}  // namespace
}  // namespace plait
