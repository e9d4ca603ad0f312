// See kernel.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/kernel.h"

#include <plait/base/error.h>
#include <plait/base/transfer.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include "backends/cuda/cublaslt/product.h"
#include "backends/cuda/cudnn/relu.h"
#include "backends/cuda/driver.h"
#include "backends/cuda/frame.h"
#include "backends/cuda/rest.h"
#include "backends/cuda/work.h"
#include "compile/loop_programs.h"

namespace plait::cuda {
namespace {

constexpr Place places[] = {Place::image, Place::kernel, Place::result};

View array_of(const Aval& aval, const Sizes64& strides) {
  return {nullptr, aval.dtype, aval.shape.to_sizes(), strides};
}
View dense_array(const Aval& aval) { return array_of(aval, dense_strides(aval.shape.to_sizes())); }

Layout other_than(Layout layout) {
  return layout == Layout::channels_first ? Layout::channels_last : Layout::channels_first;
}

int channel_axis_of(const Equation& convolution) { return convolution.params.ints("out_spec")[1]; }

// Whether an array of a result's shape repeats numbers for each channel.
bool is_repeated_channel(const View& array, int channel_axis) {
  for (int axis = 0; axis < array.rank(); ++axis)
    if (axis != channel_axis && array.shape[std::size_t(axis)] != 1 &&
        array.strides[std::size_t(axis)] != 0)
      return false;
  return true;
}
// Of such an array, with memory: one number for each channel.
View channels_of(const View& array, int channel_axis) {
  return {array.data,
          array.dtype,
          {array.shape[std::size_t(channel_axis)]},
          {array.strides[std::size_t(channel_axis)]}};
}

Epilogues taken_behind(const Equation& convolution) {
  Epilogues taken;
  taken.row_axes = {channel_axis_of(convolution)};
  taken.relu_keeps_nan = convolution_relu_keeps_nan;
  return taken;
}

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const Jaxpr& group, const Target& target)
      : group_(group), equation_(group->equations[0]) {
    strides_ = target.strides.empty()
                   ? compile_passes::dense_inputs(group)
                   : std::vector<Sizes64>(target.strides.begin(), target.strides.end());
    if (group->outputs.size() != 1)
      throw InternalError("a convolution with its epilogue has " +
                          std::to_string(group->outputs.size()) + " results");
    for (std::size_t i = 0; i < 2; ++i) {
      inputs_[i] = equation_.inputs[i].var().id;
      arrays_[i] = operand(inputs_[i]);
    }
    arrays_[2] = dense_array(group->aval(equation_.outputs[0]));
    choose(target.device);
    lay_out();
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    char* const frame = static_cast<char*>(scratch);
    void* const left = rest_->is_empty() ? outputs[0].data : frame + between_;
    std::array<View, 3> arrays = arrays_;
    for (std::size_t i = 0; i < 2; ++i) arrays[i].data = inputs[std::size_t(inputs_[i])].data;
    arrays[2].data = left;
    ConvolutionMemory memory;
    for (const Place place : places) {
      const std::size_t i = std::size_t(place);
      const ConvolutionTensor& tensor = form_.of(place);
      const View& array = arrays[std::size_t(tensor.array)];
      const View lies = tensor.view_of(array);
      memory.tensors[i] = lies.data;
      if (!copies_[i]) continue;
      memory.tensors[i] = frame + *copies_[i];
      if (place != graph_.written())
        copy(lies, tensor.packed(array, graph_.layout, frame + *copies_[i]), launch.stream);
    }
    place_epilogue(inputs, frame, launch.stream, memory);
    run(memory, frame, launch.stream);
    const ConvolutionTensor& written = form_.of(graph_.written());
    if (const auto at = copies_[std::size_t(graph_.written())])
      copy(written.packed(arrays[2], graph_.layout, frame + *at), written.view_of(arrays[2]),
           launch.stream);
    if (!rest_->is_empty()) rest_->enqueue(inputs, left, outputs, frame + rest_at_, launch);
  }

  std::exception_ptr error_of(const Failure& failure) const override {
    return rest_->is_empty() ? Kernel::error_of(failure) : rest_->kernel().error_of(failure);
  }
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return !rest_->is_empty() && rest_->kernel().can_fail(); }
  std::int64_t scratch_bytes() const override { return frame_.bytes(); }
  std::string note() const override {
    static constexpr const char* directions[] = {"forward", "data gradient", "kernel gradient"};
    std::string text = directions[std::size_t(graph_.direction)];
    const auto add = [&](const std::string& part) { text += ", " + part; };
    if (graph_.dtype == DType::float32 && allows_tf32()) add("tf32");
    if (graph_.adds_array) add("adds");
    if (graph_.adds_bias) add("bias");
    if (graph_.has_relu) add("relu");
    static constexpr const char* names[] = {"lhs", "rhs", "result"};
    for (const Place place : places)
      if (copies_[std::size_t(place)]) add(std::string("copies ") + names[form_.of(place).array]);
    add("engine " + std::to_string(plan_->engine()));
    if (!rest_->is_empty()) add("then " + rest_->kernel().note());
    return text;
  }

 private:
  View operand(int input) const {
    return array_of(group_->avals[std::size_t(input)], strides_[std::size_t(input)]);
  }

  // With the whole epilogue, or without.
  void choose(Device device) {
    const std::vector<int> uses = count_uses(*group_);
    const Epilogue epilogue =
        epilogue_of(*group_, uses, 0, Rows::found_before, taken_behind(equation_));
    const bool can_fuse = find_operands(epilogue);
    std::string reason = "no such convolution";
    for (const bool is_fused : {true, false}) {
      if (is_fused && !can_fuse) continue;
      for (const ConvolutionForm& form : forms_of(equation_.params, arrays_)) {
        if (is_fused && form.graph.direction != Direction::forward) continue;
        const Layout layout = layout_of(form, arrays_);
        for (const Layout each : {layout, other_than(layout)}) {
          ConvolutionGraph graph = form.graph;
          graph.layout = each;
          if (is_fused) {
            graph.adds_array = added_.has_value();
            graph.adds_bias = true;
            graph.has_relu = epilogue.activation == Activation::relu;
          }
          const PlanOrReason found = plan_for(device, graph);
          reason = found.reason;
          if (!found.plan) continue;
          graph_ = graph, form_ = form, plan_ = found.plan;
          rest_.emplace(
              group_, strides_, is_fused ? epilogue.result : equation_.outputs[0],
              is_fused ? std::span<const int>(epilogue.equations) : std::span<const int>(), device);
          return;
        }
      }
    }
    throw BackendError("cuDNN has no convolution of " +
                           group_->aval(equation_.inputs[0]).to_string() + " by " +
                           group_->aval(equation_.inputs[1]).to_string() + ": " + reason,
                       "leave the library out: PLAIT_CUDNN=0");
  }
  // Which operands are added as an array, and which one for each channel.
  bool find_operands(const Epilogue& epilogue) {
    for (const Var var : epilogue.added) {
      if (var.id >= group_->num_binders) return false;
      if (!bias_ && is_repeated_channel(operand(var.id), channel_axis_of(equation_)))
        bias_ = var.id;
      else if (!added_)
        added_ = var.id;
      else
        return false;
    }
    return bias_.has_value();
  }

  // Places the parts of the scratch memory; the workspace comes first.
  void lay_out() {
    const auto add = [&](std::int64_t bytes) { return frame_.add(bytes); };
    const std::int64_t size = std::int64_t(size_of(graph_.dtype));
    add(std::int64_t(plan_->workspace_bytes()));
    for (const Place place : places) {
      const ConvolutionTensor& tensor = form_.of(place);
      const View& array = arrays_[std::size_t(tensor.array)];
      if (!tensor.is_packed(array, graph_.layout))
        copies_[std::size_t(place)] = add(num_elements(array.shape) * size);
    }
    if (graph_.adds_array && !form_.of(Place::result).is_packed(operand(*added_), graph_.layout))
      added_copy_ = add(num_elements(arrays_[2].shape) * size);
    if (graph_.adds_bias && !channels_of(operand(*bias_), channel_axis_of(equation_)).is_dense())
      bias_copy_ = add(graph_.of(Place::result)[1] * size);
    if (rest_->is_empty()) return;
    between_ = add(rest_->bytes_between());
    rest_at_ = add(rest_->scratch_bytes());
  }

  void place_epilogue(std::span<const View> inputs, char* frame, const Stream& stream,
                      ConvolutionMemory& memory) const {
    if (graph_.adds_array) {
      View array = operand(*added_);
      array.data = inputs[std::size_t(*added_)].data;
      memory.added = array.data;
      if (added_copy_) {
        const ConvolutionTensor& tensor = form_.of(Place::result);
        memory.added = frame + *added_copy_;
        copy(tensor.view_of(array), tensor.packed(array, graph_.layout, frame + *added_copy_),
             stream);
      }
    }
    if (graph_.adds_bias) {
      View array = operand(*bias_);
      array.data = inputs[std::size_t(*bias_)].data;
      const View channels = channels_of(array, channel_axis_of(equation_));
      memory.bias = channels.data;
      if (bias_copy_) {
        memory.bias = frame + *bias_copy_;
        copy(channels, {frame + *bias_copy_, channels.dtype, channels.shape, {1}}, stream);
      }
    }
  }

  void run(const ConvolutionMemory& memory, void* workspace, const Stream& stream) const {
    const Device device = stream.device();
    const CurrentContext current(device);
    std::vector<const void*> operands{workspace, memory.added, memory.bias};
    operands.insert(operands.end(), memory.tensors.begin(), memory.tensors.end());
    std::uintptr_t all = tensor_alignment;
    for (const void* data : operands) all |= reinterpret_cast<std::uintptr_t>(data);
    const Plan& plan = plan_for_memory(std::int64_t(all & -all), device);
    give_library(stream_of(stream), operands, [&](CUstream given) {
      plan.run(numbered(graph_, memory), workspace, machine_of(device, given));
    });
  }
  // For memory that is aligned less, such as a view of a row, made when it is first seen.
  const Plan& plan_for_memory(std::int64_t alignment, Device device) const {
    if (alignment >= tensor_alignment) return *plan_;
    Unaligned& place = unaligned_[std::countr_zero(std::uint64_t(alignment))];
    std::call_once(place.once, [&] {
      ConvolutionGraph graph = graph_;
      graph.alignment = alignment;
      graph.most_workspace = std::int64_t(plan_->workspace_bytes());
      const PlanOrReason found = plan_for(device, graph, Choose::first);
      if (!found.plan)
        throw BackendError("cuDNN has no engine for memory that is aligned to " +
                               std::to_string(alignment) + " bytes: " + found.reason,
                           "leave the library out: PLAIT_CUDNN=0");
      place.plan = found.plan;
    });
    return *place.plan;
  }

  const Jaxpr group_;
  const Equation& equation_;
  std::vector<Sizes64> strides_;  // of the group's inputs
  std::array<int, 2> inputs_ = {};
  std::array<View, 3> arrays_;  // lhs, rhs and the convolution's result, without memory
  ConvolutionGraph graph_;
  ConvolutionForm form_;
  std::shared_ptr<const Plan> plan_;
  struct Unaligned {
    std::once_flag once;
    std::shared_ptr<const Plan> plan;
  };
  mutable Unaligned unaligned_[std::countr_zero(std::uint64_t(tensor_alignment))];
  std::optional<int> added_, bias_;  // inputs of the group
  std::optional<Rest> rest_;
  // In the scratch memory: packed copies of what does not lie as the library is told.
  std::array<std::optional<std::int64_t>, 3> copies_;
  std::optional<std::int64_t> added_copy_, bias_copy_;
  Frame frame_;
  std::int64_t between_ = 0, rest_at_ = 0;
};

}  // namespace

Epilogue convolution_epilogue(const JaxprData& program, std::span<const int> uses,
                              int convolution) {
  const Equation& equation = program.equations[std::size_t(convolution)];
  Epilogue found = epilogue_of(program, uses, convolution, Rows::known, taken_behind(equation));
  const bool has_bias = std::any_of(found.added.begin(), found.added.end(), [&](Var var) {
    return std::any_of(program.equations.begin(), program.equations.end(), [&](const Equation& e) {
      return *e.primitive == broadcast_in_dim_p && e.outputs[0] == var;
    });
  });
  return has_bias ? found : Epilogue{};
}

std::vector<ConvolutionGraph> dense_graphs(const Params& params, std::span<const Aval> inputs,
                                           const Aval& output) {
  const std::array<View, 3> arrays{dense_array(inputs[0]), dense_array(inputs[1]),
                                   dense_array(output)};
  std::vector<ConvolutionGraph> graphs;
  for (const ConvolutionForm& form : forms_of(params, arrays)) {
    graphs.push_back(form.graph);
    graphs.back().layout = layout_of(form, arrays);
  }
  return graphs;
}

std::unique_ptr<Kernel> make_convolution_kernel(const Jaxpr& group, const Target& target) {
  return std::make_unique<ConvolutionKernel>(group, target);
}

}  // namespace plait::cuda
