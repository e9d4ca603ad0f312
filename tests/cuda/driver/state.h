// What the functions of the stand-in's driver share: handles, devices, and what comes before and
// after each call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../memory.h"
#include "../on_cpu/machine.h"
#include "../standin.h"
#include "backends/cuda/api.h"
#include "queue.h"

#define STANDIN_EXPORT extern "C" [[gnu::visibility("default")]]

namespace plait::cuda {

inline constexpr CUresult CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_INVALID_DEVICE = 101,
                          CUDA_ERROR_INVALID_IMAGE = 200, CUDA_ERROR_INVALID_CONTEXT = 201,
                          CUDA_ERROR_INVALID_HANDLE = 400, CUDA_ERROR_NOT_FOUND = 500,
                          CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
                          CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
                          CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
                          CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
                          CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
                          CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
                          CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
                          CUDA_ERROR_CAPTURED_EVENT = 907,
                          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
                          CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910;

// The primary context of a device.
struct CUctx_st {
  int device = 0;
  std::atomic<CUresult> error{CUDA_SUCCESS};  // once it is set, nothing works any more
};

// All that plait calls, as api.h declares it: definitions that differ do not compile.
extern "C" {
#define STANDIN_CALLED(name, suffix, ...) CUresult name##suffix(__VA_ARGS__);
PLAIT_CUDA_DRIVER(STANDIN_CALLED)
#undef STANDIN_CALLED
}

// A kernel with all that a launch of it needs; params are copied.
struct Kernel {
  std::shared_ptr<CUmod_st> module;
  CUfunction function = nullptr;
  on_cpu::Launch launch;
  std::vector<std::uint64_t> params;
  std::vector<void*> addresses;  // of params, for who asks
};
// Work of a stream. One that waits or marks is done on a lost device too.
struct Work {
  int type = 0;  // CUgraphNodeType
  std::function<void()> run;
  std::shared_ptr<Kernel> kernel;  // in place of run
  bool is_always_done = false;
};

struct CUfunc_st {
  CUmod_st* module;
  const on_cpu::Entry* entry;
  int dynamic_bytes = 48 << 10;  // at most, as it is set
};
struct CUmod_st {
  CUcontext context = nullptr;
  void* library = nullptr;
  std::map<std::string, CUfunc_st> functions;
  std::atomic<bool> is_unloaded{false};
  ~CUmod_st();
};

struct CUgraphNode_st {
  Work work;
  std::vector<CUgraphNode> after;
};
struct CUgraph_st {
  CUcontext context = nullptr;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
// Steps in an order that their edges allow; changed copy by copy, while launches hold others.
struct CUgraphExec_st {
  struct Step {
    CUgraphNode node;
    Work work;
    std::vector<std::size_t> after;
  };
  using Steps = std::vector<Step>;
  CUcontext context = nullptr;
  std::shared_ptr<const Steps> steps;
  std::shared_ptr<std::mutex> turn = std::make_shared<std::mutex>();  // of launches
};

// What streams record between the beginning and the end of a capture.
struct Capture {
  int mode = 0;
  CUstream origin = nullptr;
  std::thread::id thread;
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  std::set<CUstream> streams;
  bool is_invalid = false;
};
struct CUstream_st {
  CUcontext context = nullptr;
  std::shared_ptr<cuda_standin::Queue> queue;
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> last;  // of the capture
};
struct CUevent_st {
  CUcontext context = nullptr;
  std::shared_ptr<cuda_standin::Mark> mark;  // of the last record; nullptr: none
  std::shared_ptr<Capture> capture;
  std::vector<CUgraphNode> last;
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::size_t most = 0;  // 0: as much as there is
  std::uint64_t threshold = 0, used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};

}  // namespace plait::cuda

namespace cuda_standin {

using namespace plait::cuda;

// Handles that were given out and not destroyed.
template <class T>
class Handles {
 public:
  T* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    T* handle = object.get();
    all_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(T* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    return found != all_.end() ? found->second : nullptr;
  }
  std::shared_ptr<T> remove(T* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(handle);
    if (found == all_.end()) return nullptr;
    auto object = std::move(found->second);
    all_.erase(found);
    return object;
  }
  std::vector<std::shared_ptr<T>> all() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<T>> objects;
    for (const auto& [handle, object] : all_) objects.push_back(object);
    return objects;
  }

 private:
  std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> all_;
};

// Never destroyed: streams run until the process ends.
struct State {
  CUctx_st contexts[num_devices];
  std::once_flag made[num_devices];
  std::shared_ptr<CUstream_st> default_streams[num_devices];
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUmod_st> modules;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> execs;
  Handles<CUmemPoolHandle_st> pools;
  std::recursive_mutex capturing;               // of what captures record
  std::set<std::shared_ptr<Capture>> captures;  // that go on
  std::atomic<std::size_t> memory;              // bytes of each device
  std::atomic<std::uint64_t> num_launches{0};
  State();
};
State& state();
// One of those, or the default stream of the current context, which has a number for a handle.
std::shared_ptr<CUstream_st> find_stream(CUstream stream);

// The call of a function; what it returns at once unless all is well. Calls that need a context
// need one of a device that is not lost.
enum class Needs { nothing, start, context };
CUresult begin_call(const char* name, Needs needs = Needs::context);
#define STANDIN_CALL(...) \
  if (const CUresult early = begin_call(__func__ __VA_OPT__(, ) __VA_ARGS__)) return early

CUcontext current_context();
bool has_stream_values();  // whether streams write and wait for values
bool is_planted(const char* fault);
// A failure on a device, which is lost by it.
void lose(int device, CUresult error, const std::string& text);

// Gives work to a stream, or to what it captures.
CUresult submit(CUstream_st& stream, Work work);
void run_work(CUcontext context, const Work& work);
void run_kernel(CUcontext context, const Kernel& kernel);

// What must not be called while a capture goes on; it spoils the capture.
CUresult refuse_in_captures();
CUresult refuse_of_capturing(CUstream_st& stream);

}  // namespace cuda_standin
