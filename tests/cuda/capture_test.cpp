// The stand-in's driver by its own functions: what it refuses as CUDA does, pools, captures and
// graphs.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <thread>

#include "loaded.h"

using namespace plait::cuda;

namespace {

constexpr CUresult invalid_context = 201, capture_unsupported = 900, capture_invalidated = 901,
                   capture_unjoined = 904, capture_isolation = 905, captured_event = 907,
                   update_failure = 910;

const char* const text = R"(
#include "plait/kernel.h"
extern "C" __global__ void add(Out<int> m0, int x) { m0[threadIdx.x] += x; }
extern "C" __global__ void twice(Out<int> m0) { m0[threadIdx.x] *= 2; }
extern "C" __global__ void sum(In<int> m0, In<int> m1, Out<int> m2) {
  m2[threadIdx.x] = m0[threadIdx.x] + m1[threadIdx.x];
}
)";

CUstream make_stream() {
  CUstream stream = nullptr;
  REQUIRE(loaded().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  REQUIRE(loaded().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  return event;
}

CUresult start(CUstream stream, CUfunction kernel, std::vector<void*> params) {
  return loaded().cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, stream, params.data(), nullptr);
}

void begin(CUstream stream, int mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
  REQUIRE(loaded().cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
}

int status_of(CUstream stream) {
  int status = -1;
  CHECK(loaded().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  return status;
}

std::vector<CUgraphNode> kernels_of(CUgraph graph) {
  std::size_t count = 0;
  CHECK(loaded().cuGraphGetNodes(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  CHECK(loaded().cuGraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS);
  std::erase_if(nodes, [](CUgraphNode node) {
    int type = -1;
    CHECK(loaded().cuGraphNodeGetType(node, &type) == CUDA_SUCCESS);
    return type != CU_GRAPH_NODE_TYPE_KERNEL;
  });
  return nodes;
}

}  // namespace

TEST_CASE("calls that need a context") {
  loaded();
  CUstream stream = nullptr;
  void* data = nullptr;
  CHECK(loaded().cuStreamCreateWithPriority(&stream, 0, 0) == invalid_context);
  CHECK(loaded().cuMemHostAlloc(&data, 8, 0) == invalid_context);
  CHECK(loaded().cuCtxPopCurrent(nullptr) == invalid_context);
  CUcontext context = nullptr;
  CHECK(loaded().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  CHECK(context == nullptr);
  const OnDevice on(1);
  CHECK(loaded().cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  CHECK(context != nullptr);
  std::thread([] {
    CUcontext here = nullptr;
    CHECK(loaded().cuCtxGetCurrent(&here) == CUDA_SUCCESS);
    CHECK(here == nullptr);
  }).join();
}

TEST_CASE("functions that the stand-in does not have are there") {
  Dl_info info;
  REQUIRE(dladdr(reinterpret_cast<void*>(loaded().cuInit), &info) != 0);
  void* const library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  for (const char* name : {"cuMemAllocManaged", "cuGetProcAddress_v2", "cuLibraryLoadData"}) {
    auto* function = reinterpret_cast<CUresult (*)()>(dlsym(library, name));
    const bool is_there = function != nullptr;
    REQUIRE(is_there);
    CHECK(function() == CUDA_ERROR_NOT_SUPPORTED);
  }
}

TEST_CASE("a call that is to fail") {
  OnDevice on;
  loaded().standin_fail_call("cuMemsetD8Async", 2, CUDA_ERROR_UNKNOWN);
  const CUdeviceptr memory = on.upload(std::vector<int>(4, 7));
  const auto clear = [&] { return loaded().cuMemsetD8Async(memory, 0, 4, on.stream); };
  CHECK(clear() == CUDA_SUCCESS);
  CHECK(!loaded().standin_failed());
  CHECK(clear() == CUDA_ERROR_UNKNOWN);
  CHECK(loaded().standin_failed());
  CHECK(clear() == CUDA_SUCCESS);
  CHECK(on.download<int>(memory, 4) == std::vector<int>{0, 7, 7, 7});
}

TEST_CASE("memory that is not there") {
  OnDevice on;
  const Module module(text);
  int one = 1;
  CUdeviceptr memory = on.upload(std::vector<int>(4));
  on.free(memory);
  CHECK(loaded().cuMemFreeAsync(memory, on.stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(start(on.stream, module["add"], {&memory, &one}) == CUDA_SUCCESS);
  CHECK(loaded().cuStreamSynchronize(on.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(std::string(loaded().standin_last_error()).find("in memory that is freed") !=
        std::string::npos);
  // Every later call says so.
  CHECK(loaded().cuStreamQuery(on.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(loaded().cuMemAllocFromPoolAsync(&memory, 4, on.pool, on.stream) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  loaded().standin_forget_errors();
  memory = on.allocate(10);
  CHECK(loaded().cuMemsetD8Async(memory, 0, 11, on.stream) == CUDA_SUCCESS);
  CHECK(loaded().cuStreamSynchronize(on.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("memory of another device") {
  OnDevice there(1);
  CUdeviceptr memory = there.upload(std::vector<int>(4));
  loaded().cuStreamSynchronize(there.stream);
  OnDevice here(0);
  const Module module(text);
  int one = 1;
  CHECK(start(here.stream, module["add"], {&memory, &one}) == CUDA_SUCCESS);
  CHECK(loaded().cuStreamSynchronize(here.stream) == CUDA_ERROR_ILLEGAL_ADDRESS);
  int ordinal = -1;
  CHECK(loaded().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory) ==
        CUDA_SUCCESS);
  CHECK(ordinal == 1);
}

TEST_CASE("a kernel whose module is unloaded") {
  OnDevice on;
  CUdeviceptr memory = on.upload(std::vector<int>(4));
  int one = 1;
  std::uint64_t* word = nullptr;
  CHECK(loaded().cuMemHostAlloc(reinterpret_cast<void**>(&word), 8, 0) == CUDA_SUCCESS);
  *word = 0;
  CHECK(loaded().cuStreamWaitValue64(on.stream, CUdeviceptr(word), 1, CU_STREAM_WAIT_VALUE_GEQ) ==
        CUDA_SUCCESS);
  {
    const Module module(text);
    CHECK(start(on.stream, module["add"], {&memory, &one}) == CUDA_SUCCESS);
  }
  __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
  CHECK(loaded().cuStreamSynchronize(on.stream) == CUDA_ERROR_LAUNCH_FAILED);
  loaded().standin_forget_errors();
  CHECK(loaded().cuMemFreeHost(word) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  CHECK(loaded().cuModuleGetFunction(&function, nullptr, "add") != CUDA_SUCCESS);
  CUmodule none = nullptr;
  CHECK(loaded().cuModuleLoadData(&none, std::string(64, 'x').data()) == 200);
}

TEST_CASE("pools count their memory") {
  OnDevice on;
  const auto count = [&](int which) {
    std::uint64_t value = 0;
    CHECK(loaded().cuMemPoolGetAttribute(on.pool, which, &value) == CUDA_SUCCESS);
    return value;
  };
  std::uint64_t keep = ~std::uint64_t{0};
  CHECK(loaded().cuMemPoolSetAttribute(on.pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) ==
        CUDA_SUCCESS);
  const CUdeviceptr a = on.allocate(1000), b = on.allocate(500);
  CHECK(count(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1500);
  on.free(a);
  CHECK(on.allocate(1000) == a);  // again, in the order of the stream
  CHECK(count(CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1500);
  on.free(b);
  CHECK(loaded().cuStreamSynchronize(on.stream) == CUDA_SUCCESS);
  CHECK(count(CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1000);
  CHECK(count(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1500);
  CHECK(loaded().cuMemPoolTrimTo(on.pool, 0) == CUDA_SUCCESS);
  CHECK(count(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 1000);
}

TEST_CASE("a captured chain runs whenever its graph is launched") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    loaded().standin_set_seed(seed);
    OnDevice on;
    const Module module(text);
    CUdeviceptr memory = on.upload(std::vector<int>{0, 1, 2, 3});
    int x = 5;
    begin(on.stream);
    CHECK(start(on.stream, module["add"], {&memory, &x}) == CUDA_SUCCESS);
    CHECK(start(on.stream, module["twice"], {&memory}) == CUDA_SUCCESS);
    CHECK(status_of(on.stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph graph = nullptr;
    CHECK(loaded().cuStreamEndCapture(on.stream, &graph) == CUDA_SUCCESS);
    CHECK(status_of(on.stream) == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK(on.download<int>(memory, 4) == std::vector<int>{0, 1, 2, 3});
    CUgraphExec exec = nullptr;
    CHECK(loaded().cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    CHECK(loaded().cuGraphLaunch(exec, on.stream) == CUDA_SUCCESS);
    CHECK(loaded().cuGraphLaunch(exec, on.stream) == CUDA_SUCCESS);
    // Launches keep the parameters that they were given.
    const std::vector<CUgraphNode> kernels = kernels_of(graph);
    REQUIRE(kernels.size() == 2);
    CUDA_KERNEL_NODE_PARAMS params{};
    CHECK(loaded().cuGraphKernelNodeGetParams(kernels[0], &params) == CUDA_SUCCESS);
    CHECK(params.func == module["add"]);
    CHECK(*static_cast<int*>(params.kernelParams[1]) == 5);
    x = 100;
    void* changed[] = {&memory, &x};
    params.kernelParams = changed;
    CHECK(loaded().cuGraphExecKernelNodeSetParams(exec, kernels[0], &params) == CUDA_SUCCESS);
    CHECK(loaded().cuGraphDestroy(graph) == CUDA_SUCCESS);
    CHECK(on.download<int>(memory, 4) == std::vector<int>{30, 34, 38, 42});
    CHECK(loaded().cuGraphLaunch(exec, on.stream) == CUDA_SUCCESS);
    CHECK(loaded().cuGraphExecDestroy(exec) == CUDA_SUCCESS);
    CHECK(on.download<int>(memory, 4) == std::vector<int>{260, 268, 276, 284});
  }
}

TEST_CASE("streams that fork and join in a capture") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    loaded().standin_set_seed(seed);
    OnDevice on;
    const Module module(text);
    CUdeviceptr a = on.upload(std::vector<int>{1, 2, 3, 4}), b = on.upload(std::vector<int>(4)),
                c = on.upload(std::vector<int>(4));
    const CUstream other = make_stream();
    const CUevent fork = make_event(), join = make_event();
    int one = 1, ten = 10;
    CUgraph graph = nullptr;
    const auto record = [&](bool is_joined) {
      begin(on.stream);
      CHECK(start(on.stream, module["add"], {&a, &one}) == CUDA_SUCCESS);
      CHECK(loaded().cuEventRecord(fork, on.stream) == CUDA_SUCCESS);
      CHECK(loaded().cuStreamWaitEvent(other, fork, 0) == CUDA_SUCCESS);
      CHECK(start(other, module["add"], {&b, &ten}) == CUDA_SUCCESS);
      CHECK(start(on.stream, module["twice"], {&a}) == CUDA_SUCCESS);
      CHECK(loaded().cuEventRecord(join, other) == CUDA_SUCCESS);
      if (is_joined) CHECK(loaded().cuStreamWaitEvent(on.stream, join, 0) == CUDA_SUCCESS);
      if (is_joined) CHECK(start(on.stream, module["sum"], {&a, &b, &c}) == CUDA_SUCCESS);
      return loaded().cuStreamEndCapture(on.stream, &graph);
    };
    CHECK(record(false) == capture_unjoined);
    CHECK(graph == nullptr);
    REQUIRE(record(true) == CUDA_SUCCESS);
    CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
    CUgraphExec exec = nullptr;
    CHECK(loaded().cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS);
    CHECK(loaded().cuGraphLaunch(exec, on.stream) == CUDA_SUCCESS);
    CHECK(on.download<int>(c, 4) == std::vector<int>{14, 16, 18, 20});
    loaded().cuGraphExecDestroy(exec);
    loaded().cuGraphDestroy(graph);
    loaded().cuEventDestroy(fork);
    loaded().cuEventDestroy(join);
    loaded().cuStreamDestroy(other);
  }
}

TEST_CASE("what spoils a capture") {
  OnDevice on;
  const CUstream other = make_stream();
  const CUevent event = make_event(), outside = make_event();
  CHECK(loaded().cuEventRecord(outside, other) == CUDA_SUCCESS);
  CUdeviceptr memory = on.upload(std::vector<int>(4));
  CUgraph graph = nullptr;
  void* data = nullptr;
  const auto spoils = [&](CUresult error, auto&& call, int mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    begin(on.stream, mode);
    CHECK(loaded().cuMemsetD8Async(memory, 0, 4, on.stream) == CUDA_SUCCESS);
    CHECK(call() == error);
    CHECK(status_of(on.stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(loaded().cuMemsetD8Async(memory, 0, 4, on.stream) == capture_invalidated);
    CHECK(loaded().cuStreamEndCapture(on.stream, &graph) == capture_invalidated);
    CHECK(status_of(on.stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  };
  spoils(capture_unsupported, [&] { return loaded().cuStreamSynchronize(on.stream); });
  spoils(capture_unsupported, [&] { return loaded().cuStreamSynchronize(other); });
  spoils(capture_unsupported, [&] { return loaded().cuStreamQuery(on.stream); });
  spoils(capture_unsupported, [&] { return loaded().cuStreamQuery(other); });
  spoils(capture_unsupported, [&] { return loaded().cuEventQuery(outside); });
  spoils(capture_unsupported, [&] { return loaded().cuMemHostAlloc(&data, 8, 0); });
  spoils(capture_unsupported, [&] {
    CUdeviceptr more = 0;
    return loaded().cuMemAllocFromPoolAsync(&more, 8, on.pool, on.stream);
  });
  spoils(capture_unsupported, [&] { return loaded().cuMemFreeAsync(memory, on.stream); });
  spoils(capture_isolation, [&] { return loaded().cuStreamWaitEvent(on.stream, outside, 0); });
  spoils(captured_event, [&] {
    CHECK(loaded().cuEventRecord(event, on.stream) == CUDA_SUCCESS);
    return loaded().cuEventQuery(event);
  });
  // What other threads do spoils only captures that say so.
  const auto elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      const OnDevice there(1);
      result = loaded().cuMemHostAlloc(&data, 8, 0);
      if (result == CUDA_SUCCESS) loaded().cuMemFreeHost(data);
    }).join();
    return result;
  };
  begin(on.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(elsewhere() == CUDA_SUCCESS);
  CHECK(loaded().cuStreamEndCapture(on.stream, &graph) == CUDA_SUCCESS);
  CHECK(loaded().cuGraphDestroy(graph) == CUDA_SUCCESS);
  begin(on.stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(loaded().cuMemHostAlloc(&data, 8, 0) == CUDA_SUCCESS);
  CHECK(loaded().cuMemFreeHost(data) == CUDA_SUCCESS);
  CHECK(loaded().cuStreamEndCapture(on.stream, &graph) == CUDA_SUCCESS);
  CHECK(loaded().cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(on.download<int>(memory, 4) == std::vector<int>(4));
  loaded().cuEventDestroy(event);
  loaded().cuEventDestroy(outside);
  loaded().cuStreamDestroy(other);
}

TEST_CASE("a graph takes the place of one of the same shape") {
  OnDevice on;
  const Module module(text);
  CUdeviceptr memory = on.upload(std::vector<int>(4));
  const auto captured = [&](int x, int count) {
    begin(on.stream);
    for (int i = 0; i < count; ++i)
      CHECK(start(on.stream, module["add"], {&memory, &x}) == CUDA_SUCCESS);
    CUgraph graph = nullptr;
    CHECK(loaded().cuStreamEndCapture(on.stream, &graph) == CUDA_SUCCESS);
    return graph;
  };
  const CUgraph first = captured(1, 2), second = captured(10, 2), third = captured(1, 3);
  CUgraphExec exec = nullptr;
  CHECK(loaded().cuGraphInstantiateWithFlags(&exec, first, 0) == CUDA_SUCCESS);
  CUgraphExecUpdateResultInfo info{};
  CHECK(loaded().cuGraphExecUpdate(exec, second, &info) == CUDA_SUCCESS);
  CHECK(loaded().cuGraphExecUpdate(exec, third, &info) == update_failure);
  CHECK(info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CHECK(loaded().cuGraphLaunch(exec, on.stream) == CUDA_SUCCESS);
  CHECK(on.download<int>(memory, 4) == std::vector<int>(4, 20));
  loaded().cuGraphExecDestroy(exec);
  for (const CUgraph graph : {first, second, third}) loaded().cuGraphDestroy(graph);
}
