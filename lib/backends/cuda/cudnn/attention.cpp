// See attention.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/attention.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>
#include <plait/primitives/primitives.h>
#include <plait/transforms/composites.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/cudnn/attention_mask.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/frame.h"
#include "backends/cuda/work.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

// Products, in all; below, generated loops run it before the library's engine is compiled.
constexpr std::int64_t small_attention = 1 << 18;

// Before it, gradients may read beyond the last key.
constexpr std::size_t first_version_of_gradients = 91501;

// The tensors of an equation's operands, in order. A mask is what a bias is made of. Empty where
// there are not as many.
std::vector<AttentionTensor> operands_of(AttentionPart part, std::size_t count) {
  std::vector<AttentionTensor> all{AttentionTensor::q, AttentionTensor::k, AttentionTensor::v};
  const bool is_gradient = part == AttentionPart::gradient;
  if (count == (is_gradient ? 7 : 4)) all.push_back(AttentionTensor::bias);
  if (is_gradient)
    all.insert(all.end(),
               {AttentionTensor::result, AttentionTensor::statistics, AttentionTensor::cotangent});
  if (all.size() != count) all.clear();
  return all;
}
// And of its results.
std::vector<AttentionTensor> results_of(AttentionPart part, const Params& attributes) {
  if (part == AttentionPart::forward) return {AttentionTensor::result};
  if (part == AttentionPart::training)
    return {AttentionTensor::result, AttentionTensor::statistics};
  static constexpr AttentionTensor gradients[] = {AttentionTensor::of_q, AttentionTensor::of_k,
                                                  AttentionTensor::of_v};
  std::vector<AttentionTensor> results;
  for (const int operand : attributes.ints("wrt")) results.push_back(gradients[operand]);
  return results;
}

// The leading axes but the last, the heads, are one; its stride is 0 where they are not one in
// memory.
FourSizes four_strides(const Sizes64& shape, const Sizes64& strides) {
  const std::size_t rank = strides.size();
  FourSizes four{0, strides[rank - 3], strides[rank - 2], strides[rank - 1]};
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

AttentionGraph graph_of(AttentionPart part, const Params& attributes, std::span<const Aval> inputs,
                        std::span<const Sizes64> strides) {
  const int rank = inputs[0].rank();
  const auto size = [&](int operand, int from_back) {
    return inputs[std::size_t(operand)].shape[rank - from_back].constant();
  };
  AttentionGraph graph;
  graph.part = part;
  graph.dtype = inputs[0].dtype;
  for (int from_back = 4; from_back <= rank; ++from_back) graph.batch *= size(0, from_back);
  graph.heads = size(0, 3);
  graph.queries = size(0, 2);
  graph.keys = size(1, 2);
  graph.depth = size(0, 1);
  graph.value_depth = size(2, 1);
  graph.is_causal = attributes.has("causal");
  const std::vector<AttentionTensor> operands = operands_of(part, inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (operands[i] == AttentionTensor::bias)
      graph.bias = bias_of(inputs[i].shape.to_sizes(), strides[i]);
    if (std::size_t(operands[i]) >= num_strided_attention_tensors) continue;
    FourSizes& four = graph.strides[std::size_t(operands[i])];
    four = four_strides(inputs[i].shape.to_sizes(), strides[i]);
    const FourSizes sizes = graph.sizes_of(operands[i]);
    for (std::size_t axis = 4; axis-- > 0;)  // as dense memory has them
      if (sizes[axis] == 1) four[axis] = axis == 3 ? 1 : four[axis + 1] * sizes[axis + 1];
  }
  return graph;
}

// Whether the library reads memory of such strides, which vectors of an operand fill.
bool is_read_in_place(const FourSizes& strides) {
  return strides[3] == 1 &&
         std::all_of(strides.begin(), strides.begin() + 3,
                     [](std::int64_t stride) { return stride > 0 && stride % 8 == 0; });
}

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const Jaxpr& group, const Target& target)
      : part_(*attention_part_of(group->equations[0])),
        scale_(float(group->equations[0].params.get<double>("scale"))) {
    const Equation& equation = group->equations[0];
    const std::vector<Sizes64> strides =
        target.strides.empty() ? compile_passes::dense_inputs(group)
                               : std::vector<Sizes64>(target.strides.begin(), target.strides.end());
    const std::vector<AttentionTensor> tensors = operands_of(part_, equation.inputs.size());
    std::vector<Aval> avals;
    std::vector<Sizes64> lie;
    for (const Atom& atom : equation.inputs) {
      avals.push_back(group->aval(atom));
      lie.push_back(strides[std::size_t(atom.var().id)]);
      operands_.push_back({atom.var().id, tensors[operands_.size()]});
    }
    choose(equation, avals, lie, target.device);
    if (graph_.bias) {
      const auto view = [&](std::size_t operand) {
        return View{nullptr, avals[operand].dtype, avals[operand].shape.to_sizes(), lie[operand]};
      };
      mask_.emplace(graph_, view(mask_operand), view(0), target.device);
    }
    frame_.add(std::int64_t(plan_->workspace_bytes()));
    for (Operand& operand : operands_)
      if (operand.is_copied) operand.at = frame_.add(graph_.bytes_of(operand.tensor));
    if (mask_) mask_at_ = frame_.add(mask_->scratch_bytes());
    place_results(group);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    char* const frame = static_cast<char*>(scratch);
    AttentionMemory memory;
    for (const Operand& operand : operands_) {
      const View& given = inputs[std::size_t(operand.input)];
      const void*& data = memory.tensors[std::size_t(operand.tensor)];
      data = given.data;
      if (!operand.is_copied) continue;
      data = frame + operand.at;
      copy(given, {frame + operand.at, given.dtype, given.shape, dense_strides(given.shape)},
           launch.stream);
    }
    for (const Result& result : results_)
      memory.tensors[std::size_t(result.tensor)] =
          result.output ? outputs[*result.output].data : frame + result.at;
    const void* const of_q = memory.tensors[std::size_t(AttentionTensor::of_q)];
    if (mask_)
      mask_->before(inputs[std::size_t(operands_[mask_operand].input)],
                    inputs[std::size_t(operands_[0].input)], memory, frame + mask_at_, launch);
    memory.scale = &scale_, memory.excluded = &excluded_, memory.one = &one_;
    const Device device = launch.stream.device();
    const CurrentContext current(device);
    std::vector<const void*> operands{scratch};
    operands.insert(operands.end(), memory.tensors.begin(), memory.tensors.end());
    give_library(stream_of(launch.stream), operands, [&](CUstream stream) {
      plan_->run(numbered(graph_, memory), scratch, machine_of(device, stream));
    });
    if (mask_) mask_->behind(of_q, frame + mask_at_, launch);
  }

  std::int64_t operand_alignment() const override { return attention_alignment; }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return false; }
  bool is_whole() const override { return true; }
  std::int64_t scratch_bytes() const override { return frame_.bytes(); }
  std::string note() const override {
    std::string text = part_ == AttentionPart::gradient   ? "gradient of attention"
                       : part_ == AttentionPart::training ? "attention with statistics"
                                                          : "attention";
    text += ", engine " + std::to_string(plan_->engine());
    if (graph_.is_causal) text += ", causal";
    if (mask_) text += ", mask";
    for (const Operand& operand : operands_)
      if (operand.is_copied) text += ", copies " + std::string(name_of(operand.tensor));
    return text;
  }

 private:
  struct Operand {
    int input = 0;  // of the group
    AttentionTensor tensor = AttentionTensor::q;
    bool is_copied = false;
    std::int64_t at = 0;  // in the scratch memory
  };
  struct Result {
    AttentionTensor tensor = AttentionTensor::result;
    std::optional<std::size_t> output;  // of the group; in the scratch memory where nobody reads it
    std::int64_t at = 0;
  };

  static constexpr std::size_t mask_operand = 3;

  // Of a gradient with a mask: generated loops write what is read of q.
  bool is_replaced(AttentionTensor tensor) const {
    return tensor == AttentionTensor::bias ||
           (part_ == AttentionPart::gradient && graph_.bias && tensor == AttentionTensor::q);
  }

  // A plan for operands as they lie, or for copies of them.
  void choose(const Equation& equation, std::span<const Aval> avals, std::span<const Sizes64> lie,
              Device device) {
    const AttentionGraph dense = dense_attention(part_, equation.params, avals);
    graph_ = graph_of(part_, equation.params, avals, lie);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const std::size_t tensor = std::size_t(operands_[i].tensor);
      if (is_replaced(operands_[i].tensor)) {
        if (tensor < num_strided_attention_tensors) graph_.strides[tensor] = dense.strides[tensor];
        continue;
      }
      operands_[i].is_copied = tensor < num_strided_attention_tensors
                                   ? !is_read_in_place(graph_.strides[tensor])
                                   : lie[i] != dense_strides(avals[i].shape.to_sizes());
    }
    PlanOrReason found = take(dense, device);
    if (!found.plan) {
      for (Operand& operand : operands_) operand.is_copied = !is_replaced(operand.tensor);
      found = take(dense, device);
    }
    if (!found.plan)
      throw BackendError("cuDNN has no " + equation.params.text("symbol") + " of " +
                             avals[0].to_string() + ": " + found.reason,
                         "leave the library out: PLAIT_CUDNN=0");
    plan_ = found.plan;
  }
  PlanOrReason take(const AttentionGraph& dense, Device device) {
    for (const Operand& operand : operands_)
      if (const std::size_t tensor = std::size_t(operand.tensor);
          operand.is_copied && tensor < num_strided_attention_tensors)
        graph_.strides[tensor] = dense.strides[tensor];
    return plan_for(device, graph_);
  }

  void place_results(const Jaxpr& group) {
    const Equation& equation = group->equations[0];
    const std::vector<AttentionTensor> known = results_of(part_, equation.params);
    for (std::size_t i = 0; i < num_attention_tensors; ++i) {
      Result result{AttentionTensor(i), {}, 0};
      if (!graph_.writes(result.tensor)) continue;
      if (const auto at = std::find(known.begin(), known.end(), result.tensor); at != known.end()) {
        const Var var = equation.outputs[std::size_t(at - known.begin())];
        const auto output = std::find(group->outputs.begin(), group->outputs.end(), Atom(var));
        if (output != group->outputs.end())
          result.output = std::size_t(output - group->outputs.begin());
      }
      if (!result.output) result.at = frame_.add(graph_.bytes_of(result.tensor));
      results_.push_back(result);
    }
  }

  const AttentionPart part_;
  std::vector<Operand> operands_;
  std::vector<Result> results_;
  std::optional<AttentionMask> mask_;
  std::int64_t mask_at_ = 0;  // in the scratch memory
  AttentionGraph graph_;
  std::shared_ptr<const Plan> plan_;
  Frame frame_;
  const float scale_, excluded_ = -std::numeric_limits<float>::infinity(), one_ = 1;
};

// Why the operands are not those of a graph; empty where they are.
std::string why_no_graph(AttentionPart part, std::span<const Aval> inputs) {
  const int rank = inputs[0].rank();
  if (rank < 3) return "rank " + std::to_string(rank);
  if (inputs[0].dtype != DType::float16 && inputs[0].dtype != DType::bfloat16)
    return "no attention of " + std::string(name_of(inputs[0].dtype));
  const std::vector<AttentionTensor> operands = operands_of(part, inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Aval& input = inputs[i];
    const bool is_statistics = operands[i] == AttentionTensor::statistics;
    const DType expected = is_statistics                          ? DType::float32
                           : operands[i] == AttentionTensor::bias ? DType::bool_
                                                                  : inputs[0].dtype;
    if (input.dtype != expected) return "operands of several dtypes";
    const std::int64_t size = input.shape.num_elements().constant();
    if (size == 0) return "nothing to compute";
    if (size > std::numeric_limits<std::int32_t>::max()) return "more than 2^31 elements";
    if (input.rank() != (is_statistics ? rank - 1 : rank))
      return "operands that several examples share";
    for (int axis = 0; axis < rank - 2; ++axis)
      if (!(input.shape[axis] == inputs[0].shape[axis]))
        return "operands that several examples share";
  }
  return {};
}

}  // namespace

std::optional<AttentionPart> attention_part_of(const Equation& equation) {
  if (!(*equation.primitive == composite_p)) return std::nullopt;
  const std::string& symbol = equation.params.text("symbol");
  if (symbol == "attention") return AttentionPart::forward;
  if (symbol == "attention.fwd") return AttentionPart::training;
  if (symbol == "attention.lin.t") return AttentionPart::gradient;
  return std::nullopt;
}

AttentionGraph dense_attention(AttentionPart part, const Params& attributes,
                               std::span<const Aval> inputs) {
  std::vector<Sizes64> strides;
  for (const Aval& input : inputs) strides.push_back(dense_strides(input.shape.to_sizes()));
  return graph_of(part, attributes, inputs, strides);
}

Support supports_attention(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs, Device device) {
  const AttentionPart part = *attention_part_of(equation);
  // Programs that were saved before have derivatives with other residuals, under the same names.
  if (part == AttentionPart::gradient && !equation.params.has("wrt"))
    return Support::no("the transpose of a derivative with residuals");
  if (part == AttentionPart::training &&
      (outputs.size() != 2 || outputs[1].rank() != inputs[0].rank() - 1))
    return Support::no("a derivative with residuals");
  if (operands_of(part, inputs.size()).empty()) return Support::no("other operands");
  for (const Atom& atom : equation.inputs)
    if (!atom.is_var()) return Support::no("a scalar operand");
  if (std::string why = why_no_graph(part, inputs); !why.empty())
    return Support::no(std::move(why));
  const AttentionGraph graph = dense_attention(part, equation.params, inputs);
  const std::int64_t work =
      graph.batch * graph.heads * graph.queries * graph.keys * (graph.depth + graph.value_depth);
  if (work < small_attention) return Support::no("small: " + std::to_string(work) + " products");
  if (!cudnn_api()) return Support::no(why_no_cudnn());
  if (part == AttentionPart::gradient &&
      cudnn_api()->cudnnGetVersion() < first_version_of_gradients)
    return Support::no("a gradient by a version of cuDNN before 9.15.1");
  const PlanOrReason found = plan_for(device, graph);
  return found.plan ? Support::yes() : Support::no(found.reason);
}

std::unique_ptr<Kernel> make_attention_kernel(const Jaxpr& group, const Target& target) {
  return std::make_unique<AttentionKernel>(group, target);
}

}  // namespace plait::cuda
