// Axis trees: how in_axes and out_axes of vmap spread over nested arguments. See api.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/api.h>

namespace plait {

void AxisTree::spread(const TreeDef& structure, std::vector<std::optional<int>>& axes) const {
  if (!is_list_) {
    axes.insert(axes.end(), structure.num_leaves(), axis_);
    return;
  }
  if (parts_.size() != structure.children().size())
    throw TreeError("vmap: a list of " + std::to_string(parts_.size()) + " axes for " + std::to_string(structure.children().size()) +
                        " parts of " + structure.to_string(),
                    "give one axis, or one for each part");
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].spread(structure.children()[i], axes);
}

}  // namespace plait
