// Groups of functions of places as kernels: a function for each nest. See point_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/primitives/primitives.h>

#include <deque>
#include <numeric>

#include "base/spinning.h"
#include "kernel.h"
#include "picks.h"
#include "point_writer.h"
#include "reduction.h"
#include "segments.h"
#include "streams.h"

namespace plait::llvm {
namespace {

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

class PointKernel final : public Kernel {
 public:
  PointKernel(const Jaxpr& group, std::vector<PointNest> nests, std::span<const Sizes64> strides)
      : group_(group), lanes_(std::max(Reduction::width, lanes_for(*group))), checks_(*group) {
    for (PointNest& nest : nests) {
      Nest& made = nests_.emplace_back();
      made.plan = std::move(nest);
      made.layout = lay_out(*group_, made.plan, strides);
      made.units = units_of(made.plan, made.layout, lanes_);
      place(made);
      prepare(made, strides);
    }
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    checks_.run(inputs);
    for (const Nest& nest : nests_) run_nest(nest, inputs, outputs, static_cast<char*>(scratch));
  }

  std::int64_t scratch_bytes() const override { return scratch_bytes_; }

  std::string note() const override {
    std::string text = std::to_string(lanes_) + " lanes";
    for (const Nest& nest : nests_) {
      const char* const names[] = {", elements of ", ", rows of ", ", columns of "};
      text += names[int(nest.plan.kind)] + std::to_string(nest.plan.kind == PointNest::Kind::map
                                                              ? num_elements(nest.plan.shape)
                                                              : nest.plan.stages[0].n);
    }
    if (packed_bytes_ > 0) text += ", " + std::to_string(packed_bytes_) + " bytes packed";
    return text;
  }

 private:
  struct Nest {
    PointNest plan;
    PointLayout layout;
    PointUnits units;
    std::vector<std::int64_t> packed_at, numbers_at;  // in scratch, by input and by reduction
    std::vector<int> stored;                          // positions among the group's outputs
    std::vector<int> reduced;
    std::int64_t grain = 1;
    std::unique_ptr<StreamingCode> code;
  };

  std::int64_t bytes(int var) const { return size_of(group_->avals[var].dtype); }

  std::int64_t take_scratch(std::int64_t size) {
    const std::int64_t at = scratch_bytes_;
    scratch_bytes_ += aligned(size);
    return at;
  }

  int position_of(int var) const {
    for (std::size_t o = 0; o < group_->outputs.size(); ++o)
      if (group_->outputs[o].var().id == var) return int(o);
    throw InternalError("llvm: a result that nobody asked for");
  }

  void place(Nest& nest) {
    for (int i = 0; i < group_->num_binders; ++i) {
      const std::optional<View>& view = nest.layout.packed[i];
      nest.packed_at.push_back(view ? take_scratch(num_elements(view->shape) * bytes(i)) : -1);
      if (view) packed_bytes_ += num_elements(view->shape) * bytes(i);
    }
    for (int var : nest.plan.stored) nest.stored.push_back(position_of(var));
    for (int var : nest.plan.reduced) {
      nest.reduced.push_back(position_of(var));
      const ReductionStage& stage = nest.plan.stages[0];
      const std::int64_t count = stage.outer * stage.inner * stage.num_blocks();
      nest.numbers_at.push_back(
          is_direct(nest.plan) ? -1 : take_scratch(count * std::max<std::int64_t>(4, bytes(var))));
    }
  }

  void prepare(Nest& nest, std::span<const Sizes64> strides) {
    nest.code = std::make_unique<StreamingCode>(
        "points " + std::to_string(nests_.size()) + "\n" + describe(group_, strides),
        choose_streams(nest), [this, &nest](const std::vector<bool>& streams) {
          return write_points(*group_, nest.plan, nest.layout, nest.units, lanes_, streams);
        });
    double weight = 0;  // of one vector
    for (int e : nest.plan.equations) weight += weight_of(group_->equations[e]);
    const double vectors = double(num_elements(nest.plan.shape)) / double(nest.units.count) /
                           double(std::min<std::int64_t>(lanes_, nest.layout.lane_size));
    const double nanoseconds = vectors * (1 + 0.3 * weight);
    nest.grain = std::max<std::int64_t>(1, std::int64_t(20000 / std::max(1.0, nanoseconds)));
  }

  std::vector<bool> choose_streams(const Nest& nest) const {
    std::int64_t total = 0;
    for (int i = 0; i < group_->num_binders; ++i)
      total += num_elements(group_->avals[i].shape.to_sizes()) * bytes(i);
    for (int var : nest.plan.stored) total += num_elements(nest.plan.shape) * bytes(var);
    std::vector<bool> streams;
    for (int var : nest.plan.stored)
      streams.push_back(outgrows_caches(total) && lanes_ * bytes(var) % 64 == 0 &&
                        nest.layout.lane_size * bytes(var) % 64 == 0 &&
                        nest.units.tile * bytes(var) % 64 == 0);
    return streams;
  }

  void run_nest(const Nest& nest, std::span<const View> inputs, std::span<const View> outputs,
                char* scratch) const {
    std::vector<void*> memory;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!nest.layout.packed[i]) {
        memory.push_back(inputs[i].data);
        continue;
      }
      View from = *nest.layout.packed[i];
      from.data = inputs[i].data;
      View to = from;
      to.data = scratch + nest.packed_at[i];
      to.strides = dense_strides(to.shape);
      copy_elements(from, to);
      memory.push_back(to.data);
    }
    std::vector<View> stored;
    for (int o : nest.stored) {
      stored.push_back(outputs[o]);
      memory.push_back(outputs[o].data);
    }
    for (std::size_t r = 0; r < nest.reduced.size(); ++r)
      memory.push_back(nest.numbers_at[r] < 0 ? outputs[nest.reduced[r]].data
                                              : scratch + nest.numbers_at[r]);
    auto* const function = nest.code->code_for(stored).as<Function>();
    parallel_for(
        nest.units.count, grain_while_spinning(nest.grain),
        [&](std::int64_t begin, std::int64_t end) { function(memory.data(), begin, end); });
    for (std::size_t r = 0; r < nest.reduced.size(); ++r)
      if (nest.numbers_at[r] >= 0)
        finish_reduction(kind_of(nest.plan.reduced[r]), group_->avals[nest.plan.reduced[r]].dtype,
                         nest.plan.stages, scratch + nest.numbers_at[r],
                         outputs[nest.reduced[r]].data);
  }

  const std::string& kind_of(int var) const {
    for (const Equation& equation : group_->equations)
      if (equation.outputs[0].id == var) return equation.params.text("kind");
    throw InternalError("llvm: a reduction without an equation");
  }

  const Jaxpr group_;
  const int lanes_;
  std::deque<Nest> nests_;  // code refers to them
  const IndexChecks checks_;
  std::int64_t scratch_bytes_ = 0, packed_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_point_kernel(const Jaxpr& group, std::span<const Sizes64> strides) {
  std::vector<int> all(group->equations.size()), results;
  std::iota(all.begin(), all.end(), 0);
  for (const Atom& atom : group->outputs) results.push_back(atom.var().id);
  std::optional<std::vector<PointNest>> nests = find_points(*group, all, results, true);
  if (!nests) throw InternalError("llvm: a group that is not made of places\n" + print(group));
  return std::make_unique<PointKernel>(group, *std::move(nests), strides);
}

}  // namespace plait::llvm
