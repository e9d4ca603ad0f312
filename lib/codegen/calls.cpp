// See calls.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/calls.h"

#include <algorithm>

namespace plait::codegen {
namespace {

void collect(const Block& block, std::vector<const Statement*>& calls) {
  for (const Statement& s : block) {
    if (s.kind == Statement::Kind::call) calls.push_back(&s);
    for (const Block& inner : s.blocks) collect(inner, calls);
  }
}

}  // namespace

Calls::Calls(const LoopProgram& program) {
  collect(program.body, calls_);
  for (const Statement* call : calls_)
    scratch_bytes_ = std::max(scratch_bytes_, call->call->kernel->scratch_bytes());
}

int Calls::number_of(const Statement& call) const {
  return int(std::find(calls_.begin(), calls_.end(), &call) - calls_.begin());
}

RunningCalls::RunningCalls(const Calls& calls, void* scratch, const Launch& launch)
    : scratch_(scratch), launch_(launch) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = *calls[i].call;
    Views views{call.kernel.get(), {}, {}};
    const auto add = [](std::vector<View>& to, const Aval& aval, const Sizes64& strides) {
      to.push_back({nullptr, aval.dtype, aval.shape.to_sizes(), strides});
    };
    const std::span<const Aval> inputs = call.program->input_avals();
    for (std::size_t operand = 0; operand < inputs.size(); ++operand)
      add(views.operands, inputs[operand], call.strides[operand]);
    for (const Aval& aval : call.program->output_avals())
      add(views.results, aval, dense_strides(aval.shape.to_sizes()));
    views_.push_back(std::move(views));
  }
}

void RunningCalls::run(int call, void* const* addresses) {
  Views& views = views_[std::size_t(call)];
  for (View& view : views.operands) view.data = *addresses++;
  for (View& view : views.results) view.data = *addresses++;
  views.kernel->enqueue(views.operands, views.results, scratch_, launch_);
}

}  // namespace plait::codegen
