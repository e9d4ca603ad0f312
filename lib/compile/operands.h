// The operands of an equation as memory: inputs of its group, and literals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <vector>

namespace plait {

class GroupOperands {
 public:
  // On a device, literals lie there, but for the first operands, which the kernel reads on the
  // host.
  GroupOperands(const Equation& equation, const Jaxpr& group, Device device = {},
                std::size_t num_on_host = 0) {
    for (const Atom& atom : equation.inputs) {
      plain_ &= atom.is_var() && atom.var().id == int(sources_.size());
      sources_.push_back(atom.is_var() ? atom.var().id
                                       : group->num_binders + int(literals_.size()));
      if (!atom.is_var())
        literals_.push_back(Array::literal(atom.literal())
                                .buffer()
                                .on(sources_.size() <= num_on_host ? Device{} : device));
    }
  }
  // Whether they are the inputs of the group, in order.
  bool is_plain() const { return plain_; }
  std::size_t size() const { return sources_.size(); }
  std::span<const View> collect(std::span<const View> inputs, View* views) const {
    for (std::size_t i = 0; i < sources_.size(); ++i)
      views[i] = sources_[i] < int(inputs.size()) ? inputs[sources_[i]]
                                                  : literals_[sources_[i] - inputs.size()].placed();
    return {views, sources_.size()};
  }

 private:
  std::vector<int> sources_;
  std::vector<Buffer> literals_;
  bool plain_ = true;
};

}  // namespace plait
