// See relu.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/relu.h"

#include <plait/base/transfer.h>
#include <plait/compile/backend.h>

#include <cmath>
#include <exception>
#include <limits>

#include "backends/cuda/cudnn/convolution_graph.h"
#include "backends/cuda/driver.h"

namespace plait::cuda {
namespace {

// An image with NaN at one pixel, by a kernel of ones of one pixel, plus zeros.
template <class T>
bool relu_of_convolution_keeps_nan(Device device, Layout layout) {
  constexpr std::int64_t channels = 32, side = 8;
  ConvolutionGraph graph;
  graph.dtype = dtype_of<T>();
  graph.layout = layout;
  graph.sizes = {LongSizes{1, channels, side, side}, LongSizes{channels, channels, 1, 1},
                 LongSizes{1, channels, side, side}};
  graph.before = graph.after = {0, 0};
  graph.strides = graph.dilations = {1, 1};
  graph.adds_bias = graph.has_relu = true;
  const std::shared_ptr<const Plan> plan = plan_for(device, graph, Choose::first).plan;
  if (!plan) return false;
  const Stream stream = Stream::make(device);  // where nobody else's failure is told
  const auto filled = [&](std::int64_t size, float value, float first) {
    const Buffer host = Buffer::empty(graph.dtype, {size});
    T* const values = host.view().template as<T>();
    for (std::int64_t i = 0; i < size; ++i) values[i] = T(i == 0 ? first : value);
    Buffer there = Buffer::empty(graph.dtype, {size}, stream);
    upload(host.view(), there.placed(), stream);
    return there;
  };
  const Buffer image = filled(channels * side * side, 1, std::numeric_limits<float>::quiet_NaN()),
               kernel = filled(channels * channels, 1, 1), bias = filled(channels, 0, 0),
               result = filled(channels * side * side, 0, 0);
  const Storage workspace =
      Storage::allocate(std::max<std::size_t>(1, plan->workspace_bytes()), stream);
  {
    const CurrentContext current(device);
    const ConvolutionMemory memory{
        {image.placed().data, kernel.placed().data, result.placed().data},
        nullptr,
        bias.placed().data};
    plan->run(numbered(graph, memory), workspace.data(), machine_of(device, stream_of(stream)));
  }
  const Buffer host = Buffer::empty(graph.dtype, {channels * side * side});
  download(result.placed(), host.view(), stream);
  return std::isnan(float(host.view().template as<T>()[0]));
}

bool do_all_keep_nan(Device device) {
  for (const Layout layout : {Layout::channels_first, Layout::channels_last})
    if (!relu_of_convolution_keeps_nan<float>(device, layout) ||
        !relu_of_convolution_keeps_nan<double>(device, layout) ||
        !relu_of_convolution_keeps_nan<float16>(device, layout) ||
        !relu_of_convolution_keeps_nan<bfloat16>(device, layout))
      return false;
  return true;
}

}  // namespace

bool convolution_relu_keeps_nan() {
  static const bool is_kept = [] {
    try {
      const bool is_kept = do_all_keep_nan(Device::named("cuda"));
      if (!is_kept) log_line("cudnn: its relu does not keep NaN, and is not used");
      return is_kept;
    } catch (const std::exception& error) {
      log_line(std::string("cudnn: its relu is not used: ") + error.what());
      return false;
    }
  }();
  return is_kept;
}

}  // namespace plait::cuda
