// See rest.h.
// SPDX-License-Identifier: Apache-2.0
#include "rest.h"

#include <algorithm>

#include "codegen/lower.h"
#include "kernel.h"

namespace plait::cuda {

Rest::Rest(const Jaxpr& group, std::span<const Sizes64> strides, Var result,
           std::span<const int> done, Device device) {
  const Aval& aval = group->aval(result);
  between_ = {nullptr, aval.dtype, aval.shape.to_sizes(), {}};
  between_.strides = dense_strides(between_.shape);
  std::vector<int> left;
  for (int i = 1; i < int(group->equations.size()); ++i)
    if (std::find(done.begin(), done.end(), i) == done.end()) left.push_back(i);
  if (left.empty()) return;
  const int outputs[] = {group->outputs[0].var().id};
  std::vector<Sizes64> read;
  std::vector<Var> known;  // in the order in which program_of finds its operands
  for (const int index : left) {
    const Equation& equation = group->equations[std::size_t(index)];
    for (const Atom& atom : equation.inputs) {
      if (!atom.is_var() || std::find(known.begin(), known.end(), atom.var()) != known.end())
        continue;
      known.push_back(atom.var());
      const bool is_between = atom.var() == result;
      if (!is_between && atom.var().id >= group->num_binders) continue;
      inputs_.push_back(is_between ? -1 : atom.var().id);
      read.push_back(is_between ? between_.strides : strides[std::size_t(atom.var().id)]);
    }
    for (const Var var : equation.outputs) known.push_back(var);
  }
  kernel_ = make_program_kernel(codegen::program_of(*group, left, outputs), read, device);
}

void Rest::enqueue(std::span<const View> inputs, void* between, std::span<const View> outputs,
                   void* scratch, const Launch& launch) const {
  View result = between_;
  result.data = between;
  std::vector<View> operands;
  for (const int input : inputs_)
    operands.push_back(input < 0 ? result : inputs[std::size_t(input)]);
  kernel_->enqueue(operands, outputs, scratch, launch);
}

}  // namespace plait::cuda
