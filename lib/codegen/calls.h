// The kernels that a loop program calls: what no statement says, a library does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codegen/program.h"

namespace plait::codegen {

// The calls of a program, in the order in which it prints them.
class Calls {
 public:
  explicit Calls(const LoopProgram& program);
  std::size_t size() const { return calls_.size(); }
  int number_of(const Statement& call) const;
  const Statement& operator[](std::size_t call) const { return *calls_[call]; }
  // Memory that any of the calls may need while it runs.
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  std::vector<const Statement*> calls_;
  std::int64_t scratch_bytes_ = 0;
};

// The calls of one run.
class RunningCalls {
 public:
  RunningCalls(const Calls& calls, void* scratch, const Launch& launch);
  // addresses: where the operands begin, and then the results.
  void run(int call, void* const* addresses);
  // An operand, or behind them a result; without an address between runs.
  const View& view(int call, std::size_t array) const {
    const Views& views = views_[std::size_t(call)];
    return array < views.operands.size() ? views.operands[array]
                                         : views.results[array - views.operands.size()];
  }

 private:
  struct Views {
    const Kernel* kernel;
    std::vector<View> operands, results;
  };
  std::vector<Views> views_;
  void* const scratch_;
  const Launch& launch_;
};

}  // namespace plait::codegen
