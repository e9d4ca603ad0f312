// Convolutions as primitives. See conv_primitive.h.
// SPDX-License-Identifier: Apache-2.0
#include "conv_primitive.h"

#include <plait/base/pool.h>

namespace plait::onednn {
namespace {

using Memory = dnnl::memory;
constexpr auto direct = dnnl::algorithm::convolution_direct;

// Strides of [batch, group, feature, spatial ...] with features last.
Dims channels_last(const Dims& dims) {
  Dims strides(dims.size());
  strides[2] = 1;
  strides[1] = dims[2];
  std::int64_t step = dims[1] * dims[2];
  for (std::size_t i = dims.size(); i-- > 3;) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = step;
  return strides;
}

bool is_same_memory(const TensorSpec& spec, const Dims& strides) {
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (spec.dims[i] != 1 && spec.strides[i] != strides[i]) return false;
  return true;
}

// Images in the form of primitives: groups of features are plain features.
Memory::desc image_desc(const TensorSpec& spec) {
  Dims dims = spec.dims, strides = channels_last(dims);
  dims[2] *= dims[1];
  dims.erase(dims.begin() + 1), strides.erase(strides.begin() + 1);
  return {dims, element_of(spec.dtype), strides};
}

TensorSpec without_single_group(TensorSpec spec) {
  if (spec.dims[0] != 1) return spec;
  spec.dims.erase(spec.dims.begin()), spec.strides.erase(spec.strides.begin());
  return spec;
}

Memory::desc any_kernel(const TensorSpec& spec) {
  return {without_single_group(spec).dims, element_of(spec.dtype), Memory::format_tag::any};
}

[[noreturn]] void refuse() {
  throw dnnl::error(dnnl_unimplemented, "no fast kernel for a convolution");
}

template <class Descriptor>
bool is_fast(const Descriptor& found) {
  return found && std::string_view(found.impl_info_str()).substr(0, 3) != "ref";
}

// Kernels of windows of one pixel for AMX load tiles of 64 bytes from the channels of each, as
// those of matrix products do: see product.cpp.
bool reads_behind_pixels(std::string_view kernel, const TensorSpec& image) {
  return image.dims[2] * size_of(image.dtype) % 64 != 0 &&
         kernel.find("1x1") != std::string_view::npos &&
         kernel.find("amx") != std::string_view::npos;
}

dnnl::primitive_attr attributes_with(const dnnl::post_ops& behind) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(behind);
  return attributes;
}

}  // namespace

void ConvolutionPrimitive::Move::run(void* src, void* dst) const {
  Memory a(from, engine(), src), b(to, engine(), dst);
  reorder.execute(stream(), a, b);
}

ConvolutionPrimitive::Argument ConvolutionPrimitive::argument(int number, Role role,
                                                              const Memory::desc& lies,
                                                              const Memory::desc& moved,
                                                              const Memory::desc& taken) {
  const Memory::desc &from = role == Role::operand ? lies : moved,
                     &to = role == Role::operand ? moved : lies;
  return {number, taken, Move{reorder_of(from, to), from, to}};
}

ConvolutionPrimitive::Argument ConvolutionPrimitive::image(int number, Role role,
                                                           const TensorSpec& spec) {
  const Dims wanted = channels_last(spec.dims);
  if (is_same_memory(spec, wanted)) return {number, image_desc(spec), std::nullopt};
  const Memory::data_type element = element_of(spec.dtype);
  return argument(number, role, {spec.dims, element, spec.strides}, {spec.dims, element, wanted},
                  image_desc(spec));
}

ConvolutionPrimitive::Argument ConvolutionPrimitive::kernel(int number, Role role,
                                                            const TensorSpec& spec,
                                                            const Memory::desc& taken) {
  const TensorSpec plain = without_single_group(spec);
  const Memory::desc lies(plain.dims, element_of(plain.dtype), plain.strides);
  if (lies == taken) return {number, taken, std::nullopt};
  return argument(number, role, lies, taken, taken);
}

void ConvolutionPrimitive::add_forward(const ConvolutionGeometry& g,
                                       std::span<const TensorSpec> operands,
                                       const TensorSpec& output, const Epilogues& epilogues) {
  const Memory::desc src = image_desc(operands[0]), dst = image_desc(output);
  auto find = [&](const dnnl::post_ops& behind) {
    dnnl::convolution_forward::primitive_desc found(
        engine(), dnnl::prop_kind::forward_training, direct, src, any_kernel(operands[1]), dst,
        g.strides, g.dilations, g.begin, g.end, attributes_with(behind), true);
    while (found && reads_behind_pixels(found.impl_info_str(), operands[0]))
      if (!found.next_impl()) refuse();
    return found;
  };
  auto chosen = find({});
  if (!is_fast(chosen)) refuse();
  std::vector<Memory::desc> behind;
  for (const TensorSpec& spec : operands.subspan(2))
    behind.emplace_back(spec.dims, element_of(spec.dtype), spec.strides);
  if (!behind.empty()) {
    const auto all = find(epilogues.post_operations(behind));
    has_epilogues_ = all && std::string_view(all.impl_info_str()) == chosen.impl_info_str() &&
                     all.weights_desc() == chosen.weights_desc();
    if (has_epilogues_) chosen = all;
  }
  primitive_ = dnnl::convolution_forward(chosen);
  scratchpad_ = chosen.scratchpad_desc();
  arguments_ = {image(DNNL_ARG_SRC, Role::operand, operands[0]),
                kernel(DNNL_ARG_WEIGHTS, Role::operand, operands[1], chosen.weights_desc())};
  for (std::size_t i = 0; i < behind.size() && has_epilogues_; ++i)
    arguments_.push_back(
        {DNNL_ARG_ATTR_MULTIPLE_POST_OP(int(i)) | DNNL_ARG_SRC_1, behind[i], std::nullopt});
  output_ = image(DNNL_ARG_DST, Role::result, output);
}

void ConvolutionPrimitive::add_gradient(const ConvolutionGeometry& g,
                                        std::span<const TensorSpec> operands,
                                        const TensorSpec& output) {
  const bool by_kernel = g.form == Form::weights;
  const TensorSpec &src = by_kernel ? operands[0] : output,
                   &dst = by_kernel ? operands[1] : operands[0],
                   &weights = by_kernel ? output : operands[1];
  const dnnl::primitive_attr attributes = attributes_with({});
  const dnnl::convolution_forward::primitive_desc forward(
      engine(), dnnl::prop_kind::forward_training, direct, image_desc(src), any_kernel(weights),
      image_desc(dst), g.strides, g.dilations, g.begin, g.end, attributes);
  has_epilogues_ = operands.size() == 2;
  if (by_kernel) {
    const dnnl::convolution_backward_weights::primitive_desc chosen(
        engine(), direct, image_desc(src), any_kernel(weights), image_desc(dst), g.strides,
        g.dilations, g.begin, g.end, forward, attributes);
    if (!is_fast(chosen)) refuse();
    primitive_ = dnnl::convolution_backward_weights(chosen);
    scratchpad_ = chosen.scratchpad_desc();
    arguments_ = {image(DNNL_ARG_SRC, Role::operand, src),
                  image(DNNL_ARG_DIFF_DST, Role::operand, dst)};
    output_ = kernel(DNNL_ARG_DIFF_WEIGHTS, Role::result, weights, chosen.diff_weights_desc());
    return;
  }
  const dnnl::convolution_backward_data::primitive_desc chosen(
      engine(), direct, image_desc(src), any_kernel(weights), image_desc(dst), g.strides,
      g.dilations, g.begin, g.end, forward, attributes);
  if (!is_fast(chosen)) refuse();
  primitive_ = dnnl::convolution_backward_data(chosen);
  scratchpad_ = chosen.scratchpad_desc();
  arguments_ = {image(DNNL_ARG_DIFF_DST, Role::operand, dst),
                kernel(DNNL_ARG_WEIGHTS, Role::operand, weights, chosen.weights_desc())};
  output_ = image(DNNL_ARG_DIFF_SRC, Role::result, src);
}

std::shared_ptr<const ConvolutionPrimitive> ConvolutionPrimitive::make(
    const ConvolutionGeometry& geometry, std::span<const TensorSpec> operands,
    const TensorSpec& output, std::int64_t work, const Epilogues& epilogues) {
  auto made = std::make_shared<ConvolutionPrimitive>();
  made->max_threads_ = work <= narrow_work ? 1 : num_threads();
  const Entered entered(made->max_threads_);
  if (entered.use.is_refused()) return nullptr;
  try {
    if (geometry.form == Form::forward)
      made->add_forward(geometry, operands, output, epilogues);
    else
      made->add_gradient(geometry, operands, output);
    return made;
  } catch (const dnnl::error& error) {
    log_line(std::string("onednn: ") + error.what() + "; the reference runs the convolution");
    return nullptr;
  }
}

void ConvolutionPrimitive::run(std::span<void* const> operands, void* output) const {
  const Entered entered(max_threads_);
  entered.use.stop_if_refused();
  try {
    std::vector<Storage> storages;
    auto allocate = [&](const Memory::desc& desc) {
      storages.push_back(Storage::allocate(desc.get_size()));
      return storages.back().data();
    };
    std::unordered_map<int, Memory> arguments;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      void* data = operands[i];
      if (argument.move) {
        data = allocate(argument.taken);
        argument.move->run(operands[i], data);
      }
      arguments.emplace(argument.number, Memory(argument.taken, engine(), data));
    }
    void* const result = output_.move ? allocate(output_.taken) : output;
    arguments.emplace(output_.number, Memory(output_.taken, engine(), result));
    if (scratchpad_.get_size() > 0)
      arguments.emplace(DNNL_ARG_SCRATCHPAD, Memory(scratchpad_, engine(), allocate(scratchpad_)));
    primitive_.execute(stream(), arguments);
    if (output_.move) output_.move->run(result, output);
    stream().wait();
  } catch (const dnnl::error& error) {
    throw_failed(error);
  }
}

}  // namespace plait::onednn
