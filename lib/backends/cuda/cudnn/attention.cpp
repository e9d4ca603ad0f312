// See attention.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/attention.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>
#include <plait/primitives/primitives.h>
#include <plait/transforms/composites.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/driver.h"
#include "backends/cuda/frame.h"
#include "backends/cuda/work.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Products, in all; below, generated loops run it before the library's engine is compiled.
constexpr std::int64_t small_attention = 1 << 18;

// The leading axes but the last, the heads, are one; its stride is 0 where they are not one in
// memory.
std::array<std::int64_t, 4> four_strides(const Sizes64& shape, const Sizes64& strides) {
  const std::size_t rank = strides.size();
  std::array<std::int64_t, 4> four{0, strides[rank - 3], strides[rank - 2], strides[rank - 1]};
  std::int64_t next = 0;  // the stride of an axis that goes on where those behind it end
  for (std::size_t axis = rank - 3; axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (next == 0)
      four[0] = strides[axis];
    else if (strides[axis] != next)
      four[0] = 0;
    next = shape[axis] * strides[axis];
    if (four[0] == 0) break;
  }
  return four;
}

AttentionGraph graph_of(const Params& attributes, std::span<const Aval> inputs,
                        std::span<const Sizes64> strides) {
  const int rank = inputs[0].rank();
  const auto size = [&](int operand, int from_back) {
    return inputs[std::size_t(operand)].shape[rank - from_back].constant();
  };
  AttentionGraph graph;
  graph.dtype = inputs[0].dtype;
  for (int from_back = 4; from_back <= rank; ++from_back) graph.batch *= size(0, from_back);
  graph.heads = size(0, 3);
  graph.queries = size(0, 2);
  graph.keys = size(1, 2);
  graph.depth = size(0, 1);
  graph.value_depth = size(2, 1);
  graph.is_causal = attributes.has("causal");
  for (int i = 0; i < 3; ++i) {
    std::array<std::int64_t, 4>& four = graph.strides[std::size_t(i)];
    four = four_strides(inputs[std::size_t(i)].shape.to_sizes(), strides[std::size_t(i)]);
    const std::array<std::int64_t, 4> sizes = graph.sizes_of(i);
    for (std::size_t axis = 4; axis-- > 0;)  // as dense memory has them
      if (sizes[axis] == 1) four[axis] = axis == 3 ? 1 : four[axis + 1] * sizes[axis + 1];
  }
  return graph;
}

// Whether the library reads memory of such strides, which vectors of an operand fill.
bool is_read_in_place(const std::array<std::int64_t, 4>& strides) {
  return strides[3] == 1 &&
         std::all_of(strides.begin(), strides.begin() + 3,
                     [](std::int64_t stride) { return stride > 0 && stride % 8 == 0; });
}

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Jaxpr& group, const Target& target)
      : scale_(float(group->equations[0].params.get<double>("scale"))) {
    const Equation& equation = group->equations[0];
    const std::vector<Sizes64> strides =
        target.strides.empty() ? compile_passes::dense_inputs(group)
                               : std::vector<Sizes64>(target.strides.begin(), target.strides.end());
    std::vector<Aval> avals;
    std::vector<Sizes64> lie;
    for (const Atom& atom : equation.inputs) {
      inputs_.push_back(atom.var().id);
      avals.push_back(group->aval(atom));
      lie.push_back(strides[std::size_t(atom.var().id)]);
    }
    const AttentionGraph dense = dense_attention(equation.params, avals);
    graph_ = graph_of(equation.params, avals, lie);
    for (std::size_t i = 0; i < 3; ++i) are_copied_[i] = !is_read_in_place(graph_.strides[i]);
    PlanOrReason found = take(dense, target.device);
    if (!found.plan) {
      are_copied_ = {true, true, true};
      found = take(dense, target.device);
    }
    if (!found.plan)
      throw BackendError("cuDNN has no attention of " + avals[0].to_string() + ": " + found.reason,
                         "leave the library out: PLAIT_CUDNN=0");
    plan_ = found.plan;
    const auto add = [&](std::int64_t bytes) { return frame_.add(bytes); };
    add(std::int64_t(plan_->workspace_bytes()));
    for (std::size_t i = 0; i < 3; ++i)
      if (are_copied_[i])
        copies_[i] =
            add(avals[i].shape.num_elements().constant() * std::int64_t(size_of(graph_.dtype)));
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    char* const frame = static_cast<char*>(scratch);
    AttentionMemory memory;
    for (std::size_t i = 0; i < 3; ++i) {
      const View& given = inputs[std::size_t(inputs_[i])];
      memory.tensors[i] = given.data;
      if (!are_copied_[i]) continue;
      memory.tensors[i] = frame + copies_[i];
      copy(given, {frame + copies_[i], given.dtype, given.shape, dense_strides(given.shape)},
           launch.stream);
    }
    memory.tensors[3] = outputs[0].data;
    memory.scale = &scale_, memory.excluded = &excluded_;
    const Device device = launch.stream.device();
    const CurrentContext current(device);
    std::vector<const void*> operands{scratch};
    operands.insert(operands.end(), memory.tensors.begin(), memory.tensors.end());
    give_library(stream_of(launch.stream), operands, [&](CUstream stream) {
      plan_->run(numbered(graph_, memory), scratch, machine_of(device, stream));
    });
  }

  std::int64_t operand_alignment() const override { return attention_alignment; }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return false; }
  bool is_whole() const override { return true; }
  std::int64_t scratch_bytes() const override { return frame_.bytes(); }
  std::string note() const override {
    std::string text = "engine " + std::to_string(plan_->engine());
    if (graph_.is_causal) text += ", causal";
    for (std::size_t i = 0; i < 3; ++i)
      if (are_copied_[i]) text += std::string(", copies ") + "qkv"[i];
    return text;
  }

 private:
  PlanOrReason take(const AttentionGraph& dense, Device device) {
    for (std::size_t i = 0; i < 3; ++i)
      if (are_copied_[i]) graph_.strides[i] = dense.strides[i];
    return plan_for(device, graph_);
  }

  std::vector<int> inputs_;  // of the group
  AttentionGraph graph_;
  std::shared_ptr<const Plan> plan_;
  std::array<bool, 3> are_copied_ = {};
  std::array<std::int64_t, 3> copies_ = {};  // in the scratch memory
  Frame frame_;
  const float scale_, excluded_ = -std::numeric_limits<float>::infinity();
};

}  // namespace

bool is_attention(const Equation& equation) {
  return *equation.primitive == composite_p && equation.params.text("symbol") == "attention";
}

AttentionGraph dense_attention(const Params& attributes, std::span<const Aval> inputs) {
  std::vector<Sizes64> strides;
  for (const Aval& input : inputs) strides.push_back(dense_strides(input.shape.to_sizes()));
  return graph_of(attributes, inputs, strides);
}

Support supports_attention(const Equation& equation, std::span<const Aval> inputs, Device device) {
  if (inputs.size() != 3) return Support::no("a mask that is not causal");
  for (const Atom& atom : equation.inputs)
    if (!atom.is_var()) return Support::no("a scalar operand");
  const int rank = inputs[0].rank();
  if (rank < 3) return Support::no("rank " + std::to_string(rank));
  for (const Aval& input : inputs) {
    if (input.dtype != DType::float16 && input.dtype != DType::bfloat16)
      return Support::no("no attention of " + std::string(name_of(input.dtype)));
    const std::int64_t size = input.shape.num_elements().constant();
    if (size == 0) return Support::no("nothing to compute");
    if (size > std::numeric_limits<std::int32_t>::max())
      return Support::no("more than 2^31 elements");
    for (int axis = 0; axis < rank - 2; ++axis)
      if (input.rank() != rank || !(input.shape[axis] == inputs[0].shape[axis]))
        return Support::no("operands that several examples share");
  }
  const AttentionGraph graph = dense_attention(equation.params, inputs);
  const std::int64_t work =
      graph.batch * graph.heads * graph.queries * graph.keys * (graph.depth + graph.value_depth);
  if (work < small_attention) return Support::no("small: " + std::to_string(work) + " products");
  if (!cudnn_api()) return Support::no(why_no_cudnn());
  const PlanOrReason found = plan_for(device, graph);
  return found.plan ? Support::yes() : Support::no(found.reason);
}

std::unique_ptr<Kernel> make_attention_kernel(const Jaxpr& group, const Target& target) {
  return std::make_unique<AttentionKernel>(group, target);
}

}  // namespace plait::cuda
