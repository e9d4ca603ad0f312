// See convolution.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/convolution.h"

#include <algorithm>

#include "primitives/convolution/conv.h"

namespace plait::cuda {
namespace {

using Part = ConvolutionTensor::Part;
using Axes = std::vector<ConvolutionTensor::Axis>;

LongSizes numbers_of(const Shape& shape) {
  LongSizes numbers;
  for (const Dim dim : shape) numbers.push_back(dim.constant());
  return numbers;
}
bool are_ones(const LongSizes& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](std::int64_t one) { return one == 1; });
}
std::int64_t product_of(const Sizes64& shape, const std::vector<int>& axes) {
  std::int64_t product = 1;
  for (const int axis : axes) product *= shape[std::size_t(axis)];
  return product;
}

// The parameters of an equation.
class Equated {
 public:
  Equated(const Params& params, const std::array<View, 3>& arrays)
      : conv_(params),
        arrays_(arrays),
        strides_(numbers_of(conv_.windows.strides)),
        low_(numbers_of(conv_.windows.low)),
        holes_(numbers_of(conv_.windows.base_dilation)),
        dilations_(numbers_of(conv_.windows.window_dilation)),
        feature_groups_(conv_.feature_groups.constant()),
        batch_groups_(conv_.batch_groups.constant()) {}

  std::vector<ConvolutionForm> forms() const {
    std::vector<ConvolutionForm> found;
    const auto add = [&](const std::optional<ConvolutionForm>& form) {
      if (form) found.push_back(*form);
    };
    const auto& [lhs, rhs, out] = conv_.dimensions;
    if (!are_ones(holes_)) {
      add(data_gradient());
    } else if (batch_groups_ != 1) {
      add(kernel_gradient());
    } else {
      if (is_read_in_reverse()) add(data_gradient());
      const bool is_gradient =
          product_of(arrays_[1].shape, spatial(rhs)) > product_of(arrays_[2].shape, spatial(out));
      if (is_gradient) add(kernel_gradient());
      add(forward());
    }
    return found;
  }

 private:
  bool is_read_in_reverse() const {
    bool is_reversed = false;
    for (std::size_t i = 2; i < conv_.dimensions.rhs_spec.size(); ++i) {
      const int axis = conv_.dimensions.rhs_spec[i];
      if (arrays_[1].shape[std::size_t(axis)] == 1) continue;
      if (arrays_[1].strides[std::size_t(axis)] >= 0) return false;
      is_reversed = true;
    }
    return is_reversed;
  }

  std::optional<ConvolutionForm> forward() const {
    const auto& [lhs, rhs, out] = conv_.dimensions;
    ConvolutionForm form;
    form.graph.direction = Direction::forward;
    set(form, Place::image, 0, lhs, {{lhs[0]}}, {{lhs[1]}});
    set(form, Place::kernel, 1, rhs, {{rhs[0]}}, {{rhs[1]}});
    set(form, Place::result, 2, out, {{out[0]}}, {{out[1]}});
    form.graph.strides = strides_;
    form.graph.dilations = dilations_;
    form.graph.before = low_;
    return finished(std::move(form));
  }

  // Its result is the image. Within a group, rhs has channels of the result as its features, and
  // those of the image, behind the groups, as its out features.
  std::optional<ConvolutionForm> data_gradient() const {
    if (batch_groups_ != 1 || !are_ones(strides_)) return std::nullopt;
    const auto& [lhs, rhs, out] = conv_.dimensions;
    ConvolutionForm form;
    form.graph.direction = Direction::data_gradient;
    set(form, Place::image, 2, out, {{out[0]}}, {{out[1]}});
    set(form, Place::result, 0, lhs, {{lhs[0]}}, {{lhs[1]}});
    if (feature_groups_ == 1)
      set(form, Place::kernel, 1, rhs, {{rhs[1]}}, {{rhs[0]}});
    else
      set(form, Place::kernel, 1, rhs, {{rhs[0], Part::groups}, {rhs[1]}},
          {{rhs[0], Part::of_a_group}});
    form.tensors[std::size_t(Place::kernel)].is_reversed = true;
    form.graph.strides = holes_;
    form.graph.dilations = dilations_;
    for (std::size_t i = 0; i < low_.size(); ++i)
      form.graph.before.push_back(reach(form, i) - low_[i]);
    return finished(std::move(form));
  }

  // Its result is the kernel. lhs has examples as features and channels as its batch; groups are
  // those of its channels, or, one for each set of examples, those of its features.
  std::optional<ConvolutionForm> kernel_gradient() const {
    const auto& [lhs, rhs, out] = conv_.dimensions;
    ConvolutionForm form;
    form.graph.direction = Direction::kernel_gradient;
    if (feature_groups_ == 1)
      set(form, Place::image, 0, lhs, {{lhs[1]}}, {{lhs[0]}});
    else
      set(form, Place::image, 0, lhs, {{lhs[1], Part::of_a_group}},
          {{lhs[1], Part::groups}, {lhs[0]}});
    set(form, Place::result, 1, rhs, {{rhs[1]}}, {{rhs[0]}});
    set(form, Place::kernel, 2, out, {{out[1]}}, {{out[0]}});
    form.graph.strides = dilations_;
    form.graph.dilations = strides_;
    form.graph.before = low_;
    return finished(std::move(form));
  }

  void set(ConvolutionForm& form, Place place, int array, const std::vector<int>& spec, Axes first,
           Axes second) const {
    ConvolutionTensor& tensor = form.tensors[std::size_t(place)];
    tensor = {array, std::move(first), std::move(second), spatial(spec), feature_groups_, false};
    form.graph.sizes[std::size_t(place)] = tensor.sizes_of(arrays_[std::size_t(array)]);
  }
  // From the first to the last pixel of a kernel.
  static std::int64_t reach(const ConvolutionForm& form, std::size_t i) {
    return form.graph.dilations[i] * (form.graph.of(Place::kernel)[i + 2] - 1);
  }

  // Finds the padding behind. What no window reads may be left out or added: as much as before is
  // what most engines take.
  std::optional<ConvolutionForm> finished(ConvolutionForm form) const {
    ConvolutionGraph& graph = form.graph;
    graph.dtype = arrays_[0].dtype;
    for (std::size_t i = 0; i < graph.before.size(); ++i) {
      const std::int64_t before = graph.before[i], stride = graph.strides[i],
                         count = graph.of(Place::result)[i + 2],
                         room = graph.of(Place::image)[i + 2] + before - reach(form, i) - 1;
      if (before < 0) return std::nullopt;
      const auto is_enough = [&](std::int64_t after) {
        return room + after >= 0 && (room + after) / stride + 1 == count;
      };
      const std::int64_t least = std::max<std::int64_t>(0, (count - 1) * stride - room);
      if (!is_enough(before) && !is_enough(least)) return std::nullopt;
      graph.after.push_back(is_enough(before) ? before : least);
    }
    return form;
  }

  const Conv conv_;
  const std::array<View, 3>& arrays_;
  const LongSizes strides_, low_, holes_, dilations_;
  const std::int64_t feature_groups_, batch_groups_;
};

}  // namespace

View ConvolutionTensor::view_of(const View& array) const {
  View view{array.data, array.dtype, {}, {}};
  for (const Axes* axes : {&first, &second})
    for (const Axis& axis : *axes) {
      const std::int64_t size = array.shape[std::size_t(axis.number)],
                         stride = array.strides[std::size_t(axis.number)];
      view.shape.push_back(axis.part == Part::all      ? size
                           : axis.part == Part::groups ? groups
                                                       : size / groups);
      view.strides.push_back(axis.part == Part::groups ? stride * (size / groups) : stride);
    }
  for (const int axis : spatial) {
    const std::int64_t size = array.shape[std::size_t(axis)],
                       stride = array.strides[std::size_t(axis)];
    view.shape.push_back(size);
    view.strides.push_back(is_reversed ? -stride : stride);
    if (is_reversed && view.data)
      view.data = view.as<char>() + (size - 1) * stride * std::int64_t(size_of(view.dtype));
  }
  return view;
}

LongSizes ConvolutionTensor::sizes_of(const View& array) const {
  const View view = view_of(array);
  LongSizes sizes;
  std::size_t next = 0;
  for (const Axes* axes : {&first, &second}) {
    sizes.push_back(1);
    for (std::size_t i = 0; i < axes->size(); ++i) sizes.back() *= view.shape[next++];
  }
  for (; next < view.shape.size(); ++next) sizes.push_back(view.shape[next]);
  return sizes;
}

View ConvolutionTensor::packed(const View& array, Layout layout, void* data) const {
  View view = view_of(array);
  view.data = data;
  const LongSizes strides = packed_strides(sizes_of(array), layout);
  std::size_t next = first.size() + second.size();
  for (std::size_t i = 2; i < strides.size(); ++i) view.strides[next++] = strides[i];
  next = first.size() + second.size();
  for (std::size_t i = 2; i-- > 0;) {
    std::int64_t stride = strides[i];
    for (std::size_t left = (i == 0 ? first : second).size(); left > 0; --left) {
      view.strides[--next] = stride;
      stride *= view.shape[next];
    }
  }
  return view;
}

bool ConvolutionTensor::is_packed(const View& array, Layout layout) const {
  const View view = view_of(array), wanted = packed(array, layout, nullptr);
  for (std::size_t i = 0; i < view.shape.size(); ++i)
    if (view.shape[i] != 1 && view.strides[i] != wanted.strides[i]) return false;
  return true;
}

std::vector<ConvolutionForm> forms_of(const Params& params, const std::array<View, 3>& arrays) {
  return Equated(params, arrays).forms();
}

Layout layout_of(const ConvolutionForm& form, const std::array<View, 3>& arrays) {
  for (const Place place : {Place::image, Place::result, Place::kernel}) {
    const ConvolutionTensor& tensor = form.of(place);
    const View& array = arrays[std::size_t(tensor.array)];
    const bool is_last = tensor.is_packed(array, Layout::channels_last);
    if (is_last != tensor.is_packed(array, Layout::channels_first))
      return is_last ? Layout::channels_last : Layout::channels_first;
  }
  return size_of(form.graph.dtype) == 2 ? Layout::channels_last : Layout::channels_first;
}

}  // namespace plait::cuda
