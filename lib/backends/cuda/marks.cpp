// See marks.h.
// SPDX-License-Identifier: Apache-2.0
#include "marks.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "driver.h"

namespace plait::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::microseconds spin{20}, first_sleep{20}, longest_sleep{1000};
constexpr std::size_t line = 64;  // bytes of host memory for a word: a line of its own

// Set behind what the stream was given to do.
CUevent record_event(CUstream stream, DeviceState& state) {
  const DriverApi& api = *driver_api();
  CUevent event = nullptr;
  state.require(api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "make an event");
  const CUresult result = api.cuEventRecord(event, stream);
  if (result != CUDA_SUCCESS) api.cuEventDestroy(event);
  state.require(result, "set a mark");
  return event;
}

}  // namespace

MarkedStream::MarkedStream(DeviceState& state) : state_(state) {
  const DriverApi& api = *driver_api();
  const CurrentContext current(state.device);
  if (state.has_stream_words) {
    void* memory = nullptr;
    state.require(api.cuMemHostAlloc(&memory, line, CU_MEMHOSTALLOC_PORTABLE),
                  "allocate host memory");
    word_ = new (memory) std::uint64_t(0);
  }
  state.require(api.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
                "make a stream");
  state.memory->add(kept_blocks_, stream_);
}

void MarkedStream::mark(std::uint64_t number) {
  if (state_.is_lost) return;  // all are reached
  const DriverApi& api = *driver_api();
  const CurrentContext current(state_.device);
  if (word_) {
    state_.require(api.cuStreamWriteValue64(stream_, word(), number, CU_STREAM_WRITE_VALUE_DEFAULT),
                   "set a mark");
    return;
  }
  const CUevent event = record_event(stream_, state_);
  const std::lock_guard lock(mutex_);
  events_.push_back({number, event});
}

std::uint64_t MarkedStream::reached() {
  if (state_.is_lost) return std::numeric_limits<std::uint64_t>::max();
  if (word_) return std::atomic_ref(*word_).load(std::memory_order_acquire);
  const DriverApi& api = *driver_api();
  const std::lock_guard lock(mutex_);
  while (!events_.empty()) {
    const CUresult result = api.cuEventQuery(events_.front().event);
    state_.note(result, "ask for a mark");
    if (result != CUDA_SUCCESS) break;
    past_ = events_.front().number;
    api.cuEventDestroy(events_.front().event);
    events_.pop_front();
  }
  return past_;
}

bool MarkedStream::poll() {
  const CUresult result = driver_api()->cuStreamQuery(stream_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  // Of the threads that wait, the one that sees it first throws it.
  if (result != CUDA_SUCCESS && !state_.is_lost) state_.fail(result, "run what it was given");
  return true;
}

bool MarkedStream::wait(std::uint64_t number, std::chrono::milliseconds most) {
  const auto begin = Clock::now();
  while (Clock::now() - begin < spin)
    if (reached() >= number) return true;
  const CurrentContext current(state_.device);
  auto sleep = first_sleep;
  // A device that has failed reaches no mark: the stream says so.
  while (poll(), reached() < number) {
    const auto left = begin + most - Clock::now();
    if (left <= Clock::duration::zero()) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(sleep, left));
    if (reached() >= number) return true;
    sleep = std::min(2 * sleep, longest_sleep);
  }
  return true;
}

void MarkedStream::order(CUstream later, const DeviceState& where, std::uint64_t number) {
  if (reached() >= number) return;
  if (!word_ || !where.has_stream_words) return order_behind(later, stream_, state_);
  check(driver_api()->cuStreamWaitValue64(later, word(), number, CU_STREAM_WAIT_VALUE_GEQ),
        "let a stream wait");
}

void order_behind(CUstream later, CUstream stream, DeviceState& state) {
  const DriverApi& api = *driver_api();
  CUevent event = nullptr;
  {
    const CurrentContext current(state.device);
    event = record_event(stream, state);
  }
  const CUresult result = api.cuStreamWaitEvent(later, event, 0);
  api.cuEventDestroy(event);  // once nothing waits for it
  state.require(result, "let a stream wait");
}

}  // namespace plait::cuda
