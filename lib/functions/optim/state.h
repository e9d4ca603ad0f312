// What optimisers share: leaf by leaf over trees, and states of a count and moments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/lax.h>
#include <plait/functions/optim.h>

#include "functions/functions.h"

namespace plait::functions::optimiser {

using optim::ArrayTree;
using Pair = std::pair<ArrayTree, ArrayTree>;

// TreeError unless tree has the structure of like, the gradients.
void require_structure(std::string_view function, const ArrayTree& tree, const ArrayTree& like,
                       const char* what);

// A tree whose leaf i is leaf(i); leaves that are not floats stay as they are.
template <class Leaf>
ArrayTree map_leaves(const ArrayTree& tree, const Leaf& leaf) {
  ArrayTree result{tree.structure, {}};
  for (std::size_t i = 0; i < tree.leaves.size(); ++i)
    result.leaves.push_back(is_inexact(tree.leaves[i].dtype()) ? leaf(i) : tree.leaves[i]);
  return result;
}

// An option's number in the dtype of a leaf.
Array in_dtype(const Array& number, const Array& leaf);
ArrayTree zeros_like(const ArrayTree& params);
// |x|^2.
Array squared(const Array& x);
// decay a + (1 - decay) b.
Array decayed(const Array& a, const Array& b, const Array& decay);
// decay moment + (1 - decay) grads, and the same with |grads|^2.
ArrayTree decayed(const ArrayTree& moment, const ArrayTree& grads, const Array& decay);
ArrayTree decayed_square(const ArrayTree& moment, const ArrayTree& grads, const Array& decay);
// -learning_rate d.
ArrayTree scaled_down(const ArrayTree& direction, const Array& learning_rate);

// A state (count, tree, ...), whose trees have the structure of the parameters.
struct Counted {
  Array count;
  std::vector<ArrayTree> trees;
  // The state after a step.
  ArrayTree next(std::initializer_list<ArrayTree> trees_after) const;
};
ArrayTree tuple_of(std::initializer_list<ArrayTree> parts);
ArrayTree first_count();
// TreeError unless the state is that of so many trees.
Counted counted(std::string_view function, const ArrayTree& state, const ArrayTree& grads,
                std::size_t num_trees);

// Adam's direction before the learning rate: the bias-corrected mean over the square root of the
// bias-corrected mean square, both after the step.
ArrayTree adam_direction(const Counted& state, const ArrayTree& mu, const ArrayTree& nu,
                         const optim::AdamOptions& options);

}  // namespace plait::functions::optimiser
