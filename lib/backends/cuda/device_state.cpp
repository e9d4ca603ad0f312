// See device_state.h.
// SPDX-License-Identifier: Apache-2.0
#include "device_state.h"

#include <plait/base/error.h>
#include <plait/compile/backend.h>

#include <pthread.h>

#include <array>
#include <mutex>

#include "driver.h"

namespace plait::cuda {
namespace {

std::atomic<bool> is_child{false};
// Known before anything of CUDA is used.
[[maybe_unused]] const int watched = pthread_atfork(nullptr, nullptr, [] { is_child = true; });

int attribute(CUdevice handle, int which) {
  int value = 0;
  check(driver_api()->cuDeviceGetAttribute(&value, which, handle), "ask what a device can do");
  return value;
}

// plait's own, so that trimming it takes nothing from other libraries. It keeps what is freed, up
// to so many bytes.
CUmemoryPool make_pool(int index, std::uint64_t threshold) {
  const DriverApi& api = *driver_api();
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, index};
  CUmemoryPool pool = nullptr;
  check(api.cuMemPoolCreate(&pool, &properties), "make a pool of memory");
  check(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
        "set up a pool of memory");
  return pool;
}

// Never destroyed: memory may outlive main.
struct DeviceStates {
  std::mutex mutex;
  std::array<std::atomic<DeviceState*>, 256> by_index{};
};
DeviceStates& device_states() {
  static DeviceStates& states = *new DeviceStates;
  return states;
}

DeviceState* make_state(Device device) {
  const DriverApi& api = *driver_api();
  auto state = std::make_unique<DeviceState>();
  state->device = device;
  check(api.cuDeviceGet(&state->handle, device.index), "find a device");
  if (!attribute(state->handle, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
    throw BackendError(device.to_string() + " has no pools of memory, which plait needs",
                       "use another device");
  state->architecture =
      "sm_" +
      std::to_string(attribute(state->handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
      std::to_string(attribute(state->handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  state->has_stream_words =
      attribute(state->handle, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  check(api.cuDevicePrimaryCtxRetain(&state->context, state->handle), "use a device");
  std::size_t total = 0;
  check(api.cuDeviceTotalMem(&total, state->handle), "count the memory of a device");
  state->pool = make_pool(device.index, memory_limit(total).value_or(~std::uint64_t{0}));
  state->memory = std::make_unique<DeviceMemory>(*state, total);
  return state.release();
}

}  // namespace

bool is_forked() { return is_child; }

void DeviceState::note(CUresult result, const char* action) noexcept {
  if (!is_fatal(result) || is_lost.exchange(true)) return;
  try {
    log_line("cuda: " + device.to_string() + " is lost: cannot " + action + ": " + name_of(result));
  } catch (...) {  // the line is left out
  }
}

void DeviceState::fail(CUresult result, const char* action) {
  note(result, action);
  throw_error(result, action);
}

void DeviceState::require_memory(const std::function<CUresult()>& call, const char* action) {
  CUresult result = call();
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    memory->release();
    result = call();
  }
  require(result, action);
}

DeviceState* state_if_used(Device device) {
  return device_states().by_index[device.index].load(std::memory_order_acquire);
}

DeviceState& state_of(Device device) {
  if (is_forked()) [[unlikely]]
    throw BackendError(
        device.to_string() + " cannot be used in the child of a fork, since the parent has CUDA",
        "start processes afresh: multiprocessing.set_start_method(\"spawn\")");
  if (DeviceState* state = state_if_used(device)) [[likely]]
    return *state;
  const std::lock_guard lock(device_states().mutex);
  if (DeviceState* state = state_if_used(device)) return *state;
  DeviceState* made = make_state(device);
  device_states().by_index[device.index].store(made, std::memory_order_release);
  return *made;
}

CurrentContext::CurrentContext(Device device) {
  DeviceState& state = state_of(device);
  CUcontext before = nullptr;
  state.require(driver_api()->cuCtxGetCurrent(&before), "ask for the current context");
  if (before == state.context) return;
  state.require(driver_api()->cuCtxPushCurrent(state.context), "make a context current");
  is_pushed_ = true;
}

CurrentContext::~CurrentContext() {
  CUcontext own = nullptr;
  if (is_pushed_) driver_api()->cuCtxPopCurrent(&own);
}

std::string architecture_of(Device device) { return state_of(device).architecture; }

int attribute_of(Device device, int which) { return attribute(state_of(device).handle, which); }

}  // namespace plait::cuda
