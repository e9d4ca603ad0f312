// See measure.h.
// SPDX-License-Identifier: Apache-2.0
#include "measure.h"

#include <plait/base/stream.h>
#include <plait/compile/backend.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

#include "compile/file_cache.h"
#include "device_state.h"
#include "driver.h"
#include "work.h"

namespace plait::cuda {
namespace {

constexpr int rounds = 3;
constexpr double seconds_of_a_round = 1e-3;
constexpr int most_calls = 20;  // of a round
// By how much another candidate must be faster than one that the library proposes before it.
constexpr double least_gain = 0.98;

FileCache& files() {
  static FileCache& files = *new FileCache(".choice", "cuda");
  return files;
}

std::string text_of(Device device) {
  char name[256] = "";
  (void)driver_api()->cuDeviceGetName(name, sizeof name, state_of(device).handle);
  return std::string(name) + ", " + architecture_of(device) + ", " +
         std::to_string(attribute_of(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) +
         " multiprocessors";
}

FileCache::Key key_of(Device device, const std::string& problem) {
  return FileCache::key_of(problem + " on " + text_of(device));
}

// Nothing else runs there. One of each device: streams live as long as the process.
const Stream& stream_for(Device device) {
  static auto& streams = *new std::map<int, Stream>;
  const auto at = streams.find(device.index);
  return at != streams.end() ? at->second
                             : streams.emplace(device.index, Stream::make(device)).first->second;
}

class Event {
 public:
  Event() { check(driver_api()->cuEventCreate(&event_, 0), "make an event"); }
  ~Event() { driver_api()->cuEventDestroy(event_); }
  Event(const Event&) = delete;
  void record(CUstream stream) const {
    check(driver_api()->cuEventRecord(event_, stream), "record an event");
  }
  double seconds_since(const Event& begin) const {
    check(driver_api()->cuEventSynchronize(event_), "wait for an event");
    float milliseconds = 0;
    check(driver_api()->cuEventElapsedTime(&milliseconds, begin.event_, event_), "measure");
    return milliseconds * 1e-3;
  }

 private:
  CUevent event_ = nullptr;
};

class Measurement {
 public:
  Measurement(Device device, std::span<const std::size_t> bytes) : stream_(stream_for(device)) {
    for (const std::size_t count : bytes) {
      blocks_.push_back(Storage::allocate(std::max<std::size_t>(1, count), stream_));
      memory_.push_back(blocks_.back().data());
      check(clear(stream_of(stream_), value_of(memory_.back()), count), "clear memory");
    }
  }

  std::size_t run(std::span<const Candidate> candidates) {
    std::vector<int> calls;
    for (const Candidate& each : candidates) {
      (void)seconds_of(each, 1);  // which loads its kernel
      const double seconds = std::max(seconds_of(each, 1), 1e-6);
      calls.push_back(std::clamp(int(seconds_of_a_round / seconds), 1, most_calls));
    }
    std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < candidates.size(); ++i)
        best[i] = std::min(best[i], seconds_of(candidates[i], calls[i]) / calls[i]);
    std::size_t chosen = 0;
    for (std::size_t i = 1; i < best.size(); ++i)
      if (best[i] < best[chosen] * least_gain) chosen = i;
    return chosen;
  }

 private:
  double seconds_of(const Candidate& candidate, int calls) {
    const CUstream stream = stream_of(stream_);
    begin_.record(stream);
    for (int i = 0; i < calls; ++i) candidate.run(stream, memory_);
    end_.record(stream);
    return end_.seconds_since(begin_);
  }

  const Stream stream_;
  std::vector<Storage> blocks_;
  std::vector<void*> memory_;
  Event begin_, end_;
};

}  // namespace

bool measures() {
  static const bool is_asked = [] {
    const char* asked = std::getenv("PLAIT_MEASURE");
    return !asked || std::string_view(asked) != "0";
  }();
  return is_asked;
}

std::optional<std::string> kept_choice(Device device, const std::string& problem) {
  return measures() ? files().read(key_of(device, problem)) : std::nullopt;
}

std::size_t fastest(Device device, const std::string& problem,
                    std::span<const Candidate> candidates, std::span<const std::size_t> bytes) {
  if (candidates.size() < 2 || !measures()) return 0;
  // One at a time: those that run together are slower.
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  const CurrentContext current(device);
  if (const std::optional<std::string> known = kept_choice(device, problem))
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].identity == *known) return i;
  try {
    const std::size_t chosen = Measurement(device, bytes).run(candidates);
    files().write(key_of(device, problem), candidates[chosen].identity);
    return chosen;
  } catch (const std::exception& error) {
    log_line("cuda: the library's choice is taken for " + problem + ": " + error.what());
    return 0;
  }
}

}  // namespace plait::cuda
