// Branches that some examples take. See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

#include <plait/backends/lane_work.h>

namespace plait {
namespace {

std::atomic<std::int64_t> live_rows{0}, all_rows{0};

class LaneCond final : public LaneKernel {
 public:
  LaneCond(const Jaxpr& group, Device device) : LaneKernel(group, device, 1) {
    const CondParams cond(equation().params);
    const Flags flags = batched(1, std::size_t(lanes_.body->num_binders));
    for (const Jaxpr& branch : cond.branches)
      branches_.push_back(std::make_unique<LaneBody>(branch, device, flags, sizes_));
    outputs_ = cond.branches[0]->output_avals();
  }

  // Who takes part, and which branch each takes.
  bool reads_on_host(std::size_t input) const override {
    return LaneKernel::reads_on_host(input) || operands_.reads(input, lanes_.guarded ? 1 : 0);
  }
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch& launch) const override {
    const Stream& stream = launch.stream;
    std::vector<Buffer> copies;
    std::vector<std::int32_t> live;
    const std::vector<View> operands = collect(inputs, copies, live, stream);
    std::vector<std::vector<std::int32_t>> takers(branches_.size());
    const std::int32_t last = std::int32_t(branches_.size()) - 1;
    for (std::int32_t i : live)
      takers[std::size_t(std::clamp(operands[0].as<std::int32_t>()[i], 0, last))].push_back(i);
    std::vector<std::vector<Stack::Handle>> stacks(outputs.size());
    Count count;
    for (std::size_t b = 0; b < branches_.size(); ++b)
      if (!takers[b].empty())
        run_branch(b, std::move(takers[b]), operands, outputs, stacks, count, stream);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs_[i].stack > 0) *outputs[i].as<Stack::Handle>() = Stack::merged(stacks[i]);
    fill_others(live, outputs, outputs_, stream);
  }

 private:
  void run_branch(std::size_t branch, std::vector<std::int32_t> takers,
                  std::span<const View> operands, std::span<const View> outputs,
                  std::vector<std::vector<Stack::Handle>>& stacks, Count& count,
                  const Stream& stream) const {
    const std::size_t num_takers = takers.size(), level = level_for(std::int64_t(num_takers));
    const ActiveRows rows = rows_of(std::move(takers));
    count.add(std::int64_t(num_takers), rows.size());
    std::vector<Buffer> owned;
    SharedFlags takes(rows.size(), stream);
    std::fill_n(takes.values.begin(), num_takers, true);
    takes.send();
    std::vector<View> in{takes.view()}, out;
    for (std::size_t i = 1; i < operands.size(); ++i)
      in.push_back(rows_of_operand(i, operands[i], rows, owned, stream));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!rows.numbers() && outputs_[i].stack == 0) {
        out.push_back(outputs[i]);
        continue;
      }
      owned.push_back(make_rows(outputs_[i], rows.size(), stream));
      out.push_back(owned.back().placed());
    }
    const ExampleScope scope(rows.numbers().get(), axes_);
    CompiledBody::Lease(branches_[branch]->at(level)).run(in, out, stream);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i].stack > 0)
        stacks[i].push_back(rows.scatter(*out[i].as<Stack::Handle>()));
      else if (rows.numbers())
        rows.scatter(out[i], outputs[i], row_bytes(outputs_[i]), stream);
    }
  }

  std::vector<std::unique_ptr<LaneBody>> branches_;
  std::vector<Aval> outputs_;
};

bool diverges(const Equation& equation) { return LanesParams(equation.params).is_divergent(); }

// By the one equation in the group's body.
std::unique_ptr<Kernel> compile_lanes(const Jaxpr& group, Device device) {
  static const ControlKernel kernels[] = {{&cond_p, make_kernel<LaneCond>},
                                          {&while_p, compile_lanes_while},
                                          {&scan_p, compile_lanes_scan}};
  const LanesParams lanes(group->equations[0].params);
  for (const ControlKernel& kernel : kernels)
    if (*kernel.primitive == *lanes.body->equations[0].primitive)
      return kernel.compile(group, device);
  throw InternalError("lanes: no kernel runs the body\n" + print(lanes.body));
}

const bool has_lanes = register_control({&lanes_p, compile_lanes, diverges});

}  // namespace

Count::~Count() { add_lane_work({live, all}); }

void add_lane_work(const LaneWork& work) {
  live_rows.fetch_add(work.live, std::memory_order_relaxed);
  all_rows.fetch_add(work.all, std::memory_order_relaxed);
}

LaneWork lane_work() {
  return {live_rows.load(std::memory_order_relaxed), all_rows.load(std::memory_order_relaxed)};
}

}  // namespace plait
