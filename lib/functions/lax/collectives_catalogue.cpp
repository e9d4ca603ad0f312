// The catalogue of communication along named axes: the functions of primitives/collectives.h over
// trees of arrays, and over several axes.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/primitives/collectives.h>

namespace plait {
namespace {

// A name, or several.
struct AxisNames : lax::AxisNames {
  using lax::AxisNames::AxisNames;
  static constexpr const char* argument_type = "str, or sequence of str";
  static std::optional<AxisNames> from_argument(const Argument& argument) {
    if (const auto* name = std::get_if<std::string>(&argument.value)) return AxisNames(*name);
    const auto* list = std::get_if<Argument::List>(&argument.value);
    if (!list) return std::nullopt;
    std::vector<std::string> all;
    for (const Argument& part : *list) {
      const auto* name = std::get_if<std::string>(&part.value);
      if (!name) return std::nullopt;
      all.push_back(*name);
    }
    return AxisNames(std::move(all));
  }
};

// Pairs of source and destination.
struct Pairs {
  lax::Permutation pairs;
  static constexpr const char* argument_type = "sequence of pairs of int";
  static std::optional<Pairs> from_argument(const Argument& argument) {
    const auto* list = std::get_if<Argument::List>(&argument.value);
    if (!list) return std::nullopt;
    Pairs all;
    for (const Argument& part : *list) {
      const std::optional<std::vector<int>> pair = detail::as_ints(part);
      if (!pair || pair->size() != 2) return std::nullopt;
      all.pairs.emplace_back((*pair)[0], (*pair)[1]);
    }
    return all;
  }
};

void refuse_groups(const char* function, const Argument& groups) {
  if (!groups.is_none())
    throw ValueError(std::string(function) + ": axis_index_groups is given",
                     "leave it out: all examples of the axis take part");
}

using Leaf = std::function<Array(const Array& x)>;
Tree<Array> over_leaves(Tree<Array> tree, const Leaf& f) {
  for (Array& leaf : tree.leaves) leaf = f(leaf);
  return tree;
}

template <Array (*reduce)(Operand, const lax::AxisNames&)>
Tree<Array> reduced(const char* function, const Tree<Array>& x, const AxisNames& axis_name,
                    const Argument& groups) {
  refuse_groups(function, groups);
  return over_leaves(x, [&](const Array& leaf) { return reduce(leaf, axis_name); });
}

[[maybe_unused]] const FunctionInfo* const collective_functions[] = {
    function(
        "lax", "psum(x, axis_name, *, axis_index_groups=None)",
        "The sum of x over the examples of vmap(..., axis_name=...), the same for each; of a "
        "number, "
        "that times their count. x is a tree of arrays. ValueError outside of such an axis.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Argument& axis_index_groups) {
          return reduced<&lax::psum>("psum", x, axis_name, axis_index_groups);
        }),
    function(
        "lax", "pmean(x, axis_name, *, axis_index_groups=None)",
        "The mean of x, a tree of arrays, over the examples of a named axis.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Argument& axis_index_groups) {
          return reduced<&lax::pmean>("pmean", x, axis_name, axis_index_groups);
        }),
    function(
        "lax", "pmax(x, axis_name, *, axis_index_groups=None)",
        "The largest of x, a tree of arrays, over the examples of a named axis.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Argument& axis_index_groups) {
          return reduced<&lax::pmax>("pmax", x, axis_name, axis_index_groups);
        }),
    function(
        "lax", "pmin(x, axis_name, *, axis_index_groups=None)",
        "The smallest of x, a tree of arrays, over the examples of a named axis.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Argument& axis_index_groups) {
          return reduced<&lax::pmin>("pmin", x, axis_name, axis_index_groups);
        }),
    function(
        "lax",
        "all_gather(x, axis_name, *, axis_index_groups=None, axis=0, tiled=False, to='varying')",
        "The x of all examples of a named axis, along a new axis; tiled: joined along one that x "
        "has. to='invarying': as a value that is the same in all places of a mesh. x is a tree of "
        "arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Argument& axis_index_groups,
            int axis, bool tiled, const std::string& to) {
          refuse_groups("all_gather", axis_index_groups);
          if (to != "varying" && to != "invarying")
            throw ValueError("all_gather: to='" + to + "' is no kind of values here",
                             "give to='varying' or to='invarying'");
          const auto gather = to == "varying" ? lax::all_gather : lax::all_gather_invariant;
          return over_leaves(
              x, [&](const Array& leaf) { return gather(leaf, axis_name, axis, tiled); });
        }),
    function(
        "lax",
        "psum_scatter(x, axis_name, *, scatter_dimension=0, axis_index_groups=None, tiled=False)",
        "The part of the sum over a named axis that belongs to the example: scatter_dimension has "
        "a "
        "slice for each, and goes; tiled: several for each, and it stays. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, int scatter_dimension,
            const Argument& axis_index_groups, bool tiled) {
          refuse_groups("psum_scatter", axis_index_groups);
          return over_leaves(x, [&](const Array& leaf) {
            return lax::psum_scatter(leaf, axis_name, scatter_dimension, tiled);
          });
        }),
    function(
        "lax",
        "all_to_all(x, axis_name, split_axis, concat_axis, *, axis_index_groups=None, tiled=False)",
        "Slice j along split_axis goes to example j of a named axis, which gets one of each along "
        "concat_axis. split_axis goes, and concat_axis is new; tiled: x has both. x is a tree of "
        "arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, int split_axis, int concat_axis,
            const Argument& axis_index_groups, bool tiled) {
          refuse_groups("all_to_all", axis_index_groups);
          return over_leaves(x, [&](const Array& leaf) {
            return lax::all_to_all(leaf, axis_name, split_axis, concat_axis, tiled);
          });
        }),
    function(
        "lax", "ppermute(x, axis_name, perm)",
        "The x of the example that perm, pairs of source and destination, sends to this one; zeros "
        "where there is none. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const Pairs& perm) {
          return over_leaves(
              x, [&](const Array& leaf) { return lax::ppermute(leaf, axis_name, perm.pairs); });
        }),
    function(
        "lax", "pshuffle(x, axis_name, perm)",
        "The x of example perm[i], for example i of a named axis. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const std::vector<int>& perm) {
          return over_leaves(
              x, [&](const Array& leaf) { return lax::pshuffle(leaf, axis_name, perm); });
        }),
    function(
        "lax", "pswapaxes(x, axis_name, axis, *, axis_index_groups=None)",
        "x with an axis exchanged for a named one of the same size. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, int axis,
            const Argument& axis_index_groups) {
          refuse_groups("pswapaxes", axis_index_groups);
          return over_leaves(
              x, [&](const Array& leaf) { return lax::pswapaxes(leaf, axis_name, axis); });
        }),
    function(
        "lax", "axis_index(axis_name)",
        "The number of the example along a named axis, an int32; of several axes, the last of "
        "which "
        "counts fastest.",
        +[](const AxisNames& axis_name) { return lax::axis_index(axis_name); }),
    function(
        "lax", "pvary(x, axis_name)",
        "x, as one that differs along axes of the mesh of shard_map: gradients by it are not "
        "summed over "
        "the places. Along axes of vmap, x. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name) {
          return reduced<&lax::pvary>("pvary", x, axis_name, Argument());
        }),
    function(
        "lax", "pcast(x, axis_name, *, to)",
        "x, which is the same along axes of the mesh of shard_map, as one that differs: "
        "to='varying' is the only kind. Along axes of vmap, x. x is a tree of arrays.",
        +[](const Tree<Array>& x, const AxisNames& axis_name, const std::string& to) {
          return over_leaves(x, [&](const Array& leaf) { return lax::pcast(leaf, axis_name, to); });
        }),
    function(
        "lax", "axis_size(axis_name)", "The number of examples along a named axis, or several.",
        +[](const AxisNames& axis_name) { return Argument(lax::axis_size(axis_name)); }),
};

}  // namespace
}  // namespace plait
