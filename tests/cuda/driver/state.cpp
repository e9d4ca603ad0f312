// See state.h; and what tests ask (../standin.h).
// SPDX-License-Identifier: Apache-2.0
#include "state.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_standin {
namespace {

struct Controls {
  std::mutex mutex;
  std::string failing;  // a function; empty: any
  int countdown = 0;
  CUresult code = 0;
  bool has_failed = false;
  long calls = 0;
  std::map<std::string, long> calls_by_name;
  std::string last_error;
  char shown[4096] = "";
};
Controls& controls() {
  static Controls& controls = *new Controls;
  return controls;
}

// cuMemcpyHtoDAsync_v2 is called cuMemcpyHtoDAsync too.
bool is_named(const char* name, const std::string& wanted) {
  const std::size_t length = wanted.size();
  return std::strncmp(name, wanted.c_str(), length) == 0 &&
         (name[length] == '\0' || std::strncmp(name + length, "_v", 2) == 0);
}

// Of these, and of what comes before them, a caller cannot be saved.
bool gives_back(const char* name) {
  for (const char* call : {"cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
                           "cuMemFreeAsync", "cuMemFreeHost", "cuEventDestroy", "cuStreamDestroy",
                           "cuModuleUnload", "cuGraphDestroy", "cuGraphExecDestroy"})
    if (is_named(name, call)) return true;
  return false;
}

CUresult planned_failure(const char* name) {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  ++c.calls, ++c.calls_by_name[name];
  if (c.countdown == 0 || (c.failing.empty() ? gives_back(name) : !is_named(name, c.failing)))
    return CUDA_SUCCESS;
  if (--c.countdown > 0) return CUDA_SUCCESS;
  c.has_failed = true;
  return c.code;
}

std::atomic<pid_t> started_in{0};  // 0: cuInit was not called

}  // namespace

State::State() : memory(std::size_t{1} << 30) {
  for (int i = 0; i < num_devices; ++i) contexts[i].device = i;
  if (const char* text = std::getenv("STANDIN_MEMORY")) memory = std::strtoull(text, nullptr, 10);
}

State& state() {
  static State& state = *new State;
  return state;
}

CUresult begin_call(const char* name, Needs needs) {
  if (const CUresult planned = planned_failure(name)) return planned;
  if (needs == Needs::nothing) return CUDA_SUCCESS;
  if (started_in != getpid()) return CUDA_ERROR_NOT_INITIALIZED;  // a child of fork among others
  if (needs == Needs::start) return CUDA_SUCCESS;
  const CUcontext context = current_context();
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : context->error.load();
}

bool is_planted(const char* fault) {
  static const char* const text = std::getenv("STANDIN_FAULT");
  return text != nullptr && std::strcmp(text, fault) == 0;
}

void lose(int device, CUresult error, const std::string& text) {
  CUresult none = CUDA_SUCCESS;
  state().contexts[device].error.compare_exchange_strong(none, error);
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  c.last_error = text;
  std::fprintf(stderr, "stand-in of CUDA, device %d: %s\n", device, text.c_str());
}

STANDIN_EXPORT CUresult cuInit(unsigned flags) {
  STANDIN_CALL(Needs::nothing);
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  pid_t nobody = 0;
  started_in.compare_exchange_strong(nobody, getpid());
  return started_in == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

}  // namespace cuda_standin

using namespace cuda_standin;

extern "C" {

[[gnu::visibility("default")]] void standin_fail_call(const char* name, int n, int code) {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  c.failing = name != nullptr ? name : "";
  c.countdown = n;
  c.code = code;
  c.has_failed = false;
}

[[gnu::visibility("default")]] bool standin_failed() {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  return c.has_failed;
}

[[gnu::visibility("default")]] long standin_calls_of(const char* name) {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  long calls = 0;
  for (const auto& [called, count] : c.calls_by_name)
    if (is_named(called.c_str(), name)) calls += count;
  return calls;
}
[[gnu::visibility("default")]] long standin_calls() {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  return c.calls;
}

[[gnu::visibility("default")]] const char* standin_last_error() {
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  std::snprintf(c.shown, sizeof(c.shown), "%s", c.last_error.c_str());
  return c.shown;
}

[[gnu::visibility("default")]] void standin_forget_errors() {
  standin_wait();
  for (CUctx_st& context : state().contexts) context.error = CUDA_SUCCESS;
  Controls& c = controls();
  const std::lock_guard lock(c.mutex);
  c.last_error.clear();
}

[[gnu::visibility("default")]] void standin_set_seed(unsigned value) { seed() = value; }

[[gnu::visibility("default")]] void standin_set_memory(std::size_t bytes) {
  state().memory = bytes;
}

[[gnu::visibility("default")]] void standin_wait() {
  for (const auto& stream : state().streams.all()) stream->queue->wait();
  for (const auto& stream : state().default_streams)
    if (stream != nullptr) stream->queue->wait();
}

[[gnu::visibility("default")]] std::size_t standin_live(const char* what) {
  const std::string kind = what;
  if (kind == "stream") return state().streams.all().size();
  if (kind == "event") return state().events.all().size();
  if (kind == "module") return state().modules.all().size();
  if (kind == "graph") return state().graphs.all().size();
  if (kind == "graph exec") return state().execs.all().size();
  if (kind == "pool") return state().pools.all().size();
  if (kind == "pinned bytes") return pinned().in_use();
  std::size_t bytes = 0;
  standin_wait();
  for (const auto& pool : state().pools.all()) bytes += pool->used;
  return bytes;
}

}  // extern "C"
