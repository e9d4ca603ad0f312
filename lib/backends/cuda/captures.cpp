// See captures.h and work.h.
//
// A graph is a chain: a node for each kernel, clear and copy of plait's, and the nodes of each call
// of a library. What plait gave is kept beside it, with the node of each kernel, so that a change
// sets the parameters of kernels whose values differ, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "captures.h"

#include <plait/base/error.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "driver.h"
#include "work.h"

namespace plait::cuda {
namespace {

// What was given by one call of a function of work.h. The node of a kernel or a clear, which may
// have other values, is known; other work has operands as its values.
struct Given {
  enum class Kind : std::uint8_t { kernel, clear, other };
  Kind kind = Kind::other;
  CUfunction function = nullptr;
  LaunchShape shape;
  std::vector<std::uint64_t> values;
  CUgraphNode node = nullptr;

  bool is_same_work(const Given& before) const {
    return kind == before.kind && function == before.function && shape == before.shape &&
           values.size() == before.values.size();
  }
};

struct Graph final : Driver::Captured {
  explicit Graph(DeviceState& state) : state(state) {}
  ~Graph() override {
    if (is_forked() || state.is_lost) return;
    const DriverApi& api = *driver_api();
    try {
      const CurrentContext current(state.device);
      if (exec) state.note(api.cuGraphExecDestroy(exec), "give captured work back");
      if (graph) state.note(api.cuGraphDestroy(graph), "give captured work back");
    } catch (...) {  // noted; what cannot be given back ends with the process
    }
  }
  DeviceState& state;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<Given> given;
};

// What a thread gives to a stream while it is captured, or while captured work changes.
struct Capturing {
  const DeviceState& state;
  CUstream stream;                // that it is given to
  CUstream in = nullptr;          // that captures it; null: captured work changes
  std::vector<Given> given = {};  // by now, when it is captured
  Graph* changing = nullptr;      // otherwise
  std::size_t num_given = 0;      // by now, of what changes
  bool must_capture_again = false;
};
thread_local Capturing* capturing = nullptr;

// Sets what the thread gives its work to.
class CapturingScope {
 public:
  explicit CapturingScope(Capturing& now) : outer_(std::exchange(capturing, &now)) {}
  ~CapturingScope() { capturing = outer_; }
  CapturingScope(const CapturingScope&) = delete;

 private:
  Capturing* const outer_;
};

Capturing* capturing_of(CUstream stream) {
  return capturing && capturing->stream == stream ? capturing : nullptr;
}

// Pointers to the values, as the driver takes them.
class Parameters {
 public:
  explicit Parameters(std::span<const std::uint64_t> values) {
    for (const std::uint64_t& value : values)
      pointers_.push_back(const_cast<std::uint64_t*>(&value));
  }
  void** data() { return pointers_.data(); }

 private:
  std::vector<void*> pointers_;
};

CUresult launch_now(CUstream stream, CUfunction function, const LaunchShape& shape,
                    std::span<const std::uint64_t> values) {
  const DriverApi& api = *driver_api();
  Parameters parameters(values);
  if (shape.is_cooperative)
    return api.cuLaunchCooperativeKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1,
                                         shape.shared_bytes, stream, parameters.data());
  return api.cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes,
                            stream, parameters.data(), nullptr);
}

// The node that was captured last.
CUresult find_last_node(CUstream stream, CUgraphNode& node) {
  int status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* last = nullptr;
  std::size_t count = 0;
  const CUresult result = driver_api()->cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr,
                                                               &last, nullptr, &count);
  if (result == CUDA_SUCCESS && count == 1) node = last[0];
  return result;
}

// Gives the node of a kernel or of a clear other values.
CUresult set_values(const DeviceState& state, CUgraphExec exec, CUgraphNode node,
                    const Given& wanted) {
  const DriverApi& api = *driver_api();
  if (wanted.kind == Given::Kind::clear) {
    const CUDA_MEMSET_NODE_PARAMS values{
        wanted.values[0], 0, 0, 1, std::size_t(wanted.values[1]), 1};
    return api.cuGraphExecMemsetNodeSetParams(exec, node, &values, state.context);
  }
  Parameters parameters(wanted.values);
  const LaunchShape& shape = wanted.shape;
  const CUDA_KERNEL_NODE_PARAMS values{
      wanted.function,    shape.blocks,      1,       1,       shape.threads, 1, 1,
      shape.shared_bytes, parameters.data(), nullptr, nullptr, nullptr};
  return api.cuGraphExecKernelNodeSetParams(exec, node, &values);
}

// Sets what differs from what was given in this place before.
CUresult change(Capturing& now, const Given& next) {
  Graph& graph = *now.changing;
  const std::size_t number = now.num_given++;
  if (number >= graph.given.size() || !graph.given[number].is_same_work(next)) {
    now.must_capture_again = true;
    return CUDA_SUCCESS;
  }
  Given& before = graph.given[number];
  if (before.values == next.values) return CUDA_SUCCESS;
  if (!before.node) {
    now.must_capture_again = true;
    return CUDA_SUCCESS;
  }
  const CUresult result = set_values(now.state, graph.exec, before.node, next);
  if (result == CUDA_SUCCESS) before.values = next.values;
  return result;
}
// Gives work to whoever takes it: the stream, what is captured, or what changes.
CUresult give(CUstream stream, Given work, const std::function<CUresult(CUstream)>& submit) {
  Capturing* const now = capturing_of(stream);
  if (!now) return submit(stream);
  if (!now->in) return change(*now, work);
  CUresult result = submit(now->in);
  if (result == CUDA_SUCCESS && work.kind != Given::Kind::other)
    result = find_last_node(now->in, work.node);
  now->given.push_back(std::move(work));
  return result;
}

// A stream that captures, of one thread at a time.
class CapturingStream {
 public:
  explicit CapturingStream(DeviceState& state) : state_(state), lock_(state.capture_mutex) {
    const DriverApi& api = *driver_api();
    if (!state.capture_stream)
      state.require(
          api.cuStreamCreateWithPriority(&state.capture_stream, CU_STREAM_NON_BLOCKING, 0),
          "make a stream");
    state.require(
        api.cuStreamBeginCapture(state.capture_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "capture work");
  }
  ~CapturingStream() {
    CUgraph graph = nullptr;
    if (!is_ended_ &&
        driver_api()->cuStreamEndCapture(state_.capture_stream, &graph) == CUDA_SUCCESS)
      driver_api()->cuGraphDestroy(graph);
  }
  CapturingStream(const CapturingStream&) = delete;
  CUstream stream() const { return state_.capture_stream; }
  CUgraph end() {
    CUgraph graph = nullptr;
    state_.require(driver_api()->cuStreamEndCapture(state_.capture_stream, &graph), "capture work");
    is_ended_ = true;
    return graph;
  }

 private:
  DeviceState& state_;
  const std::lock_guard<std::mutex> lock_;
  bool is_ended_ = false;
};

// The graph of the work, and what was given; not yet to be launched.
std::unique_ptr<Graph> captured_graph(DeviceState& state, CUstream stream,
                                      const std::function<void()>& give) {
  auto made = std::make_unique<Graph>(state);
  CapturingStream in(state);
  Capturing now{state, stream, in.stream()};
  {
    const CapturingScope scope(now);
    give();
  }
  made->graph = in.end();
  made->given = std::move(now.given);
  return made;
}

void instantiate(DeviceState& state, Graph& graph) {
  state.require_memory(
      [&] { return driver_api()->cuGraphInstantiateWithFlags(&graph.exec, graph.graph, 0); },
      "make a graph of captured work");
}

std::size_t num_nodes(DeviceState& state, CUgraph graph) {
  std::size_t count = 0;
  state.require(driver_api()->cuGraphGetNodes(graph, nullptr, &count), "count captured work");
  return count;
}

}  // namespace

CUresult launch(CUstream stream, CUfunction function, const LaunchShape& shape,
                std::span<const std::uint64_t> values) {
  if (!capturing_of(stream)) return launch_now(stream, function, shape, values);
  return give(stream, {Given::Kind::kernel, function, shape, {values.begin(), values.end()}},
              [&](CUstream on) { return launch_now(on, function, shape, values); });
}

CUresult clear(CUstream stream, CUdeviceptr data, std::size_t bytes) {
  if (!capturing_of(stream)) return driver_api()->cuMemsetD8Async(data, 0, bytes, stream);
  return give(stream, {Given::Kind::clear, nullptr, {}, {data, bytes}},
              [&](CUstream on) { return driver_api()->cuMemsetD8Async(data, 0, bytes, on); });
}

CUresult copy_bytes(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (!capturing_of(stream)) return driver_api()->cuMemcpyDtoDAsync(to, from, bytes, stream);
  return give(stream, {Given::Kind::other, nullptr, {}, {to, from, bytes}},
              [&](CUstream on) { return driver_api()->cuMemcpyDtoDAsync(to, from, bytes, on); });
}

void give_library(CUstream stream, std::span<const void* const> operands,
                  const std::function<void(CUstream)>& call) {
  if (!capturing_of(stream)) return call(stream);
  Given work;
  for (const void* operand : operands) work.values.push_back(value_of(operand));
  check(give(stream, std::move(work), [&](CUstream on) { return call(on), CUDA_SUCCESS; }),
        "change captured work");
}

// One node starts as soon by itself.
std::unique_ptr<Driver::Captured> capture_work(DeviceState& state, CUstream stream,
                                               const std::function<void()>& give) {
  std::unique_ptr<Graph> made = captured_graph(state, stream, give);
  if (num_nodes(state, made->graph) < 2) return nullptr;
  instantiate(state, *made);
  return made;
}

bool change_captured(DeviceState& state, CUstream stream, Driver::Captured& captured,
                     const std::function<void()>& give) {
  Graph& graph = static_cast<Graph&>(captured);
  Capturing now{state, stream};
  now.changing = &graph;
  {
    const CapturingScope scope(now);
    give();
  }
  if (!now.must_capture_again && now.num_given == graph.given.size()) return true;
  std::unique_ptr<Graph> again = captured_graph(state, stream, give);
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = driver_api()->cuGraphExecUpdate(graph.exec, again->graph, &info);
  if (result == CUDA_SUCCESS && again->given.size() == graph.given.size()) {
    // The nodes stay those that it was made of.
    for (std::size_t i = 0; i < again->given.size(); ++i)
      again->given[i].node = graph.given[i].node;
    graph.given = std::move(again->given);
    return false;
  }
  state.note(result, "change captured work");
  instantiate(state, *again);
  std::swap(graph.graph, again->graph);
  std::swap(graph.exec, again->exec);
  graph.given = std::move(again->given);
  return false;
}

void replay_captured(DeviceState& state, CUstream stream, Driver::Captured& captured) {
  const CUgraphExec exec = static_cast<Graph&>(captured).exec;
  const CUresult result = driver_api()->cuGraphLaunch(exec, stream);
  if (result == CUDA_SUCCESS) [[likely]]
    return;
  // The first launch may take memory.
  if (result != CUDA_ERROR_OUT_OF_MEMORY) state.fail(result, "run captured work");
  state.memory->release();
  state.require(driver_api()->cuGraphLaunch(exec, stream), "run captured work");
}

}  // namespace plait::cuda
