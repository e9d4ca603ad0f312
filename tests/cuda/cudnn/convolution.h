// Convolutions of the stand-in of cuDNN and their gradients, with sums and relu behind them, one
// element after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "backends/cuda/device/plait/base/dtype.h"
#include "program.h"

namespace standin {

// A convolution or one of its gradients.
struct Convolution {
  explicit Convolution(const Object& object)
      : names(*names_of(object.kind)),
        image(*object.object(names.image, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        kernel(*object.object(names.kernel, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        result(*object.object(names.result, CUDNN_BACKEND_TENSOR_DESCRIPTOR)) {
    const Object& how = *object.object(names.how, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    before = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    after = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    strides = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    dilations = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    sums = how.one<int>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  }
  const ConvolutionNames& names;
  Tensor image, kernel, result;
  Numbers before, after, strides, dilations;
  int sums;
  int direction() const { return int(&names - directions); }
  const Tensor& written() const {
    return direction() == 0 ? result : direction() == 1 ? image : kernel;
  }
};

inline cudnnStatus_t check_how(const Object& how) {
  const std::size_t count = std::size_t(how.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (const int attribute :
       {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
        CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
    const bool is_padding = attribute == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS ||
                            attribute == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    const Numbers numbers = how.all<std::int64_t>(attribute);
    if (numbers.size() != count) return bad("a convolution's dimensions");
    for (const std::int64_t number : numbers)
      if (number < (is_padding ? 0 : 1)) return bad("a convolution's paddings or strides");
  }
  if (how.one<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return bad("a convolution's mode");
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t check_convolution(const Object& object) {
  const ConvolutionNames& names = *names_of(object.kind);
  for (const int attribute : {names.image, names.kernel, names.result})
    if (!object.object(attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      return bad("an operation's tensor");
  if (!object.object(names.how, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR))
    return bad("an operation's convolution");
  const Convolution c(object);
  const std::size_t rank = c.image.sizes.size();
  if (c.kernel.sizes.size() != rank || c.result.sizes.size() != rank ||
      c.strides.size() + 2 != rank)
    return bad("an operation's dimensions");
  const std::int64_t in_group = c.kernel.sizes[1], groups = c.image.sizes[1] / in_group;
  if (c.image.sizes[1] % in_group != 0 || c.kernel.sizes[0] % groups != 0 ||
      c.result.sizes[1] != c.kernel.sizes[0] || c.result.sizes[0] != c.image.sizes[0])
    return bad("an operation's channels");
  for (std::size_t i = 0; i < c.strides.size(); ++i) {
    const std::int64_t room = c.image.sizes[i + 2] + c.before[i] + c.after[i] -
                              c.dilations[i] * (c.kernel.sizes[i + 2] - 1) - 1;
    if (room < 0 || room / c.strides[i] + 1 != c.result.sizes[i + 2])
      return bad("an operation's spatial sizes");
  }
  const bool is_wide = c.sums == CUDNN_DATA_DOUBLE;
  for (const Tensor* tensor : {&c.image, &c.kernel, &c.result}) {
    if (tensor->is_virtual && tensor->type != c.sums) return bad("the type of sums between");
    if (!tensor->is_virtual && (tensor->type == CUDNN_DATA_DOUBLE) != is_wide)
      return bad("an operation's types");
  }
  const int type = is_wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  for (const int scale : {names.scale, names.old_scale})
    if (object.values.at(scale).type != type) return bad("the type of an operation's scales");
  const auto scale = [&](int attribute) {
    return is_wide ? object.one<double>(attribute) : double(object.one<float>(attribute));
  };
  return scale(names.scale) == 1 && scale(names.old_scale) == 0 ? CUDNN_STATUS_SUCCESS
                                                                : bad("an operation's scales");
}

struct Pointwise {
  explicit Pointwise(const Object& object)
      : x(*object.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        y(*object.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR)) {
    const Object& how = *object.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                       CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode = how.one<int>(CUDNN_ATTR_POINTWISE_MODE);
    keeps_nan = how.has(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) &&
                how.one<int>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN;
    if (const Object* b =
            object.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      added.emplace(*b);
  }
  Tensor x, y;
  std::optional<Tensor> added;
  int mode = 0;
  bool keeps_nan = false;
};

inline cudnnStatus_t check_step(const Object& object) {
  for (const int attribute :
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC})
    if (!object.object(attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      return bad("an operation's tensor");
  if (!object.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                     CUDNN_BACKEND_POINTWISE_DESCRIPTOR))
    return bad("an operation's mode");
  const Pointwise p(object);
  if (p.x.sizes != p.y.sizes || !p.x.is_virtual) return bad("an operation's tensors");
  if (p.mode == CUDNN_POINTWISE_RELU_FWD)
    return p.added ? bad("relu of two tensors") : CUDNN_STATUS_SUCCESS;
  if (p.mode != CUDNN_POINTWISE_ADD || !p.added) return bad("an operation's mode");
  for (std::size_t i = 0; i < p.x.sizes.size(); ++i)
    if (p.added->sizes[i] != p.x.sizes[i] && p.added->sizes[i] != 1)
      return bad("the sizes of what is added");
  return CUDNN_STATUS_SUCCESS;
}

struct ConvolutionProgram final : Program {
  // operations: alive, and finalized.
  explicit ConvolutionProgram(const std::vector<Object*>& operations)
      : convolution(*operations[0]) {
    for (std::size_t i = 1; i < operations.size(); ++i) steps.emplace_back(*operations[i]);
  }
  Convolution convolution;
  std::vector<Pointwise> steps;

  const Tensor& result() const { return steps.empty() ? convolution.written() : steps.back().y; }
  std::vector<Tensor> written() const override { return {result()}; }
  std::vector<Tensor> in_memory() const override {
    std::vector<Tensor> all;
    for (const Tensor* tensor : {&convolution.image, &convolution.kernel, &convolution.result})
      if (!tensor->is_virtual) all.push_back(*tensor);
    for (const Pointwise& step : steps) {
      if (step.added) all.push_back(*step.added);
      if (!step.y.is_virtual) all.push_back(step.y);
    }
    return all;
  }
  cudnnStatus_t check() const override {
    std::int64_t last = convolution.written().number;
    for (const Pointwise& step : steps) {
      if (step.x.number != last) return bad("a graph's order");
      last = step.y.number;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  // Engines run it in one layout throughout, and relu behind a sum alone.
  bool is_taken() const {
    const bool is_step_taken = steps.empty() || (is_fused && convolution.direction() == 0 &&
                                                 steps[0].mode == CUDNN_POINTWISE_ADD);
    const std::vector<Tensor> all = in_memory();
    return is_step_taken && std::ranges::any_of(std::array{false, true}, [&](bool channels_last) {
             return std::ranges::all_of(
                 all, [&](const Tensor& tensor) { return tensor.is_packed(channels_last); });
           });
  }
  std::vector<int> engines(int mode) const override {
    if (!is_taken()) return {};
    if (mode == CUDNN_HEUR_MODE_FALLBACK) return {in_any_order, exact_fallback};
    if (!are_proposed) return {with_winograd};
    std::vector<int> engines;
    if (convolution.image.type == CUDNN_DATA_FLOAT) engines.push_back(with_tf32);
    if (convolution.sums != CUDNN_DATA_DOUBLE) engines.push_back(with_winograd);
    engines.insert(engines.end(), {in_any_order, never_a_plan});
    const std::size_t planted = planted_engines().size();
    for (std::size_t i = 0; i < planted; ++i) engines.push_back(first_planted + int(i));
    if (planted == 0) engines.push_back(exact);
    return engines;
  }
  std::vector<int> notes(int engine) const override {
    switch (engine) {
      case with_tf32:
        return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
      case with_winograd:
        return {CUDNN_NUMERICAL_NOTE_WINOGRAD};
      case in_any_order:
        return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
      default:
        if (convolution.image.type == CUDNN_DATA_FLOAT) return {};
        return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
    }
  }
  std::int64_t workspace(int engine) const override {
    constexpr std::int64_t wanted = 4096;
    return engine == exact && result().count() > 512 ? wanted : 0;
  }
  std::string text() const override {
    static constexpr const char* names[] = {"forward", "data gradient", "kernel gradient"};
    const Convolution& c = convolution;
    std::string text = std::string(names[c.direction()]) + " " + joined(c.image.sizes) + " by " +
                       joined(c.kernel.sizes) + (c.image.is_packed(true) ? " last" : " first");
    for (const Pointwise& step : steps)
      text += step.mode == CUDNN_POINTWISE_RELU_FWD     ? " relu"
              : step.added->count() == c.result.count() ? " array"
                                                        : " bias";
    return text;
  }
  void run(int engine, const std::map<std::int64_t, void*>& memory) const override;
};

inline bool drops_nan() {
  static const bool is_asked = [] {
    const char* relu = std::getenv("STANDIN_RELU");
    return relu != nullptr && std::string_view(relu) == "drops_nan";
  }();
  return is_asked;
}

// T: of tensors in memory, S: of sums.
template <class T, class S>
struct Execution {
  const ConvolutionProgram& graph;
  int engine;
  const std::map<std::int64_t, void*>& memory;

  const T* values(const Tensor& tensor) const {
    return static_cast<const T*>(memory.at(tensor.number));
  }
  S rounded(T value) const {
    S wide = S(value);
    if (engine == with_tf32) {
      float small = float(wide);
      std::uint32_t bits;
      std::memcpy(&bits, &small, sizeof bits);
      bits &= ~std::uint32_t(0x1fff);
      std::memcpy(&small, &bits, sizeof bits);
      wide = S(small);
    }
    return wide;
  }

  // Adds up in the order of the result's elements, of kernels' and of channels.
  std::vector<S> convolved() const {
    const Convolution& c = graph.convolution;
    const std::size_t n = c.strides.size();
    std::vector<S> sums(std::size_t(c.written().count()));
    const T* const image = c.direction() == 1 ? nullptr : values(c.image);
    const T* const kernel = c.direction() == 2 ? nullptr : values(c.kernel);
    const T* const result = c.direction() == 0 ? nullptr : values(c.result);
    const std::int64_t in_group = c.kernel.sizes[1],
                       out_group = c.kernel.sizes[0] / (c.image.sizes[1] / in_group);
    // Spatial offsets of a kernel's pixel at a result's pixel; false outside of the image.
    const auto each_pixel = [&](const auto& f) {
      Numbers at(n, 0), tap(n, 0);
      const auto next = [&](Numbers& place, const Numbers& sizes) {
        for (std::size_t i = n; i-- > 0;) {
          if (++place[i] < sizes[i + 2]) return true;
          place[i] = 0;
        }
        return false;
      };
      do {
        std::fill(tap.begin(), tap.end(), 0);
        do {
          std::int64_t x = 0, w = 0, y = 0;
          bool is_inside = true;
          for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t pixel = at[i] * c.strides[i] + tap[i] * c.dilations[i] - c.before[i];
            is_inside &= pixel >= 0 && pixel < c.image.sizes[i + 2];
            x += pixel * c.image.strides[i + 2];
            w += tap[i] * c.kernel.strides[i + 2];
            y += at[i] * c.result.strides[i + 2];
          }
          if (is_inside) f(x, w, y);
        } while (next(tap, c.kernel.sizes));
      } while (next(at, c.result.sizes));
    };
    for (std::int64_t b = 0; b < c.image.sizes[0]; ++b)
      for (std::int64_t k = 0; k < c.kernel.sizes[0]; ++k)
        for (std::int64_t i = 0; i < in_group; ++i) {
          const std::int64_t channel = k / out_group * in_group + i;
          each_pixel([&](std::int64_t x, std::int64_t w, std::int64_t y) {
            x += b * c.image.strides[0] + channel * c.image.strides[1];
            w += k * c.kernel.strides[0] + i * c.kernel.strides[1];
            y += b * c.result.strides[0] + k * c.result.strides[1];
            if (c.direction() == 0)
              sums[std::size_t(y)] += rounded(image[x]) * rounded(kernel[w]);
            else if (c.direction() == 1)
              sums[std::size_t(x)] += rounded(result[y]) * rounded(kernel[w]);
            else
              sums[std::size_t(w)] += rounded(image[x]) * rounded(result[y]);
          });
        }
    return sums;
  }

  void apply(const Pointwise& step, std::vector<S>& sums) const {
    if (step.mode == CUDNN_POINTWISE_RELU_FWD) {
      const bool keeps_nan = step.keeps_nan && !drops_nan();
      for (S& sum : sums) sum = keeps_nan ? (sum <= 0 ? S(0) : sum) : std::fmax(sum, S(0));
      return;
    }
    const Tensor& b = *step.added;
    const T* const added = values(b);
    Numbers at(b.sizes.size(), 0);
    for (std::size_t left = sums.size(); left > 0; --left) {
      std::int64_t from = 0, to = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        from += b.sizes[i] == 1 ? 0 : at[i] * b.strides[i];
        to += at[i] * step.x.strides[i];
      }
      sums[std::size_t(to)] += S(added[from]);
      for (std::size_t i = at.size(); i-- > 0;) {
        if (++at[i] < step.x.sizes[i]) break;
        at[i] = 0;
      }
    }
  }

  void run() const {
    std::vector<S> sums = convolved();
    for (const Pointwise& step : graph.steps) apply(step, sums);
    T* const written = static_cast<T*>(memory.at(graph.result().number));
    const bool is_spoilt = engine == with_winograd || engine == in_any_order;
    for (std::size_t i = 0; i < sums.size(); ++i)
      written[i] = is_spoilt ? T(std::numeric_limits<float>::quiet_NaN()) : T(sums[i]);
  }
};

inline void ConvolutionProgram::run(int engine, const std::map<std::int64_t, void*>& memory) const {
  switch (convolution.image.type) {
    case CUDNN_DATA_DOUBLE:
      return Execution<double, double>{*this, engine, memory}.run();
    case CUDNN_DATA_HALF:
      return Execution<plait::float16, float>{*this, engine, memory}.run();
    case CUDNN_DATA_BFLOAT16:
      return Execution<plait::bfloat16, float>{*this, engine, memory}.run();
    default:
      return Execution<float, float>{*this, engine, memory}.run();
  }
}

}  // namespace standin
