// parallel_for over libgomp's threads, the permit that one caller holds at a time, and the number
// of threads.
//
// NOTE: [waiting threads] libgomp keeps the threads of a parallel region. They wait for the next
// region, and the caller for the end of this one, by spinning and then sleeping, as OMP_WAIT_POLICY
// and GOMP_SPINCOUNT say. libgomp reads these once, when it is loaded. By default it spins for
// about 10 ms. On an idle machine that is fast. Where another process needs the core, all threads
// wait for one that the spinning threads keep from running, and each region takes that long. So
// plait loads libgomp itself and, when the environment says nothing, asks for 300 spins. A process
// that has already loaded libgomp is unaffected: its pool belongs to other code. Measured, per
// region:
//
//   on two cores                    idle, back to back   idle, after a pause   shared with others
//   libgomp's default               0.6 us               1 to 2 us             10000 us
//   2000 spins                      0.6 us               20 to 60 us           100 us
//   300 spins                       0.7 us               20 to 60 us           20 us
//   OMP_WAIT_POLICY=passive         7 to 40 us           10 to 80 us           7 to 100 us
// A training step of 25 regions, run beside compilers, took 7 ms with 300 spins, and 10 to 30 ms
// with 2000. A spin takes 15 to 40 ns.
//
// A caller that falls asleep at the end of a region wakes after its team has fallen asleep too, and
// then both do in every region: 30 us for 10 us of work. So the caller first waits in wait_for,
// which spins as long as waking a thread takes, and no longer.
//
// NOTE: [team size] Every region uses all threads; those without a range return at once. libgomp
// ends the threads that a smaller region does not need and restarts them for the next wide one,
// which costs more than any loop that is too short for all of them.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include <plait/base/error.h>

#include <dlfcn.h>
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/cgroup.h"
#include "base/spinning.h"

#if defined(__SANITIZE_THREAD__)
#define PLAIT_OWN_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PLAIT_OWN_THREADS 1
#endif
#endif

namespace plait {
namespace {

#ifdef PLAIT_OWN_THREADS
constexpr bool own_threads_only = true;  // ThreadSanitizer does not know libgomp's barriers
#else
constexpr bool own_threads_only = false;
#endif

constexpr int max_threads = 1024;

constinit std::atomic<bool> permit_is_taken{false};
constinit std::atomic<bool> is_forked_child{false};
constinit thread_local bool is_inside_loop = false;

std::optional<int> parse_thread_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (count < 1 || count > max_threads) return std::nullopt;
  return count;
}

int usable_cores() {
  cpu_set_t cores;
  // Fails on machines of more than 1024 cores, where the hardware's count is good enough.
  int count = sched_getaffinity(0, sizeof cores, &cores) == 0
                  ? CPU_COUNT(&cores)
                  : static_cast<int>(std::thread::hardware_concurrency());
  if (const auto quota = cgroup_cpus())
    count = std::min(count, static_cast<int>(std::ceil(*quota)));
  return std::clamp(count, 1, max_threads);
}

int initial_num_threads() {
  if (const char* text = std::getenv("PLAIT_THREADS"); text && *text) {
    if (const auto count = parse_thread_count(text)) return *count;
    throw ValueError(
        "PLAIT_THREADS is \"" + std::string(text) + "\", which is no number of threads",
        "set it to a number from 1 to " + std::to_string(max_threads));
  }
  // A list has one number per level of nesting; plait's loops are the outermost.
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const std::string_view list = text;
    if (const auto count = parse_thread_count(list.substr(0, list.find(',')))) return *count;
  }
  return usable_cores();
}

std::atomic<int>& thread_count() {
  static std::atomic<int>& count = *new std::atomic<int>(initial_num_threads());
  return count;
}

// The functions of libgomp, all of them or none.
struct OpenMP {
  void (*parallel)(void (*function)(void*), void* data, unsigned num_threads, unsigned flags);
  int (*get_thread_num)();
  int (*get_num_threads)();
  int (*get_max_threads)();
  void (*set_num_threads)(int count);
};

void* load_libgomp() {
  constexpr const char* name = "libgomp.so.1";
  if (void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT"))
    return dlopen(name, RTLD_NOW);
  setenv("GOMP_SPINCOUNT", "300", 0);
  void* loaded = dlopen(name, RTLD_NOW);
  unsetenv("GOMP_SPINCOUNT");  // child processes must not inherit it
  return loaded;
}

std::optional<OpenMP> find_openmp() {
  if (own_threads_only) return std::nullopt;
  void* libgomp = load_libgomp();
  if (!libgomp) return std::nullopt;
  OpenMP found;
  bool is_complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)> >(dlsym(libgomp, name));
    is_complete = is_complete && function;
  };
  find(found.parallel, "GOMP_parallel");
  find(found.get_thread_num, "omp_get_thread_num");
  find(found.get_num_threads, "omp_get_num_threads");
  find(found.get_max_threads, "omp_get_max_threads");
  find(found.set_num_threads, "omp_set_num_threads");
  return is_complete ? std::optional(found) : std::nullopt;
}

const std::optional<OpenMP>& openmp() {
  static const std::optional<OpenMP>& found = *new std::optional<OpenMP>(find_openmp());
  return found;
}

// At load time, before a backend can load libgomp implicitly, and while the process most likely has
// one thread, as changing the environment requires.
[[maybe_unused]] const bool has_openmp = openmp().has_value();

// The child of fork has none of the pool's threads, and libgomp would wait for them forever.
// Installed when the library is loaded, because others may use the pool before plait does.
[[maybe_unused]] const int fork_handler = pthread_atfork(
    nullptr, nullptr, [] { is_forked_child.store(true, std::memory_order_relaxed); });

bool take_permit() {
  return !permit_is_taken.load(std::memory_order_relaxed) &&
         !permit_is_taken.exchange(true, std::memory_order_acquire);
}

void return_permit() { permit_is_taken.store(false, std::memory_order_release); }

// When this thread left the last loop on all threads; libgomp has a team for each caller.
using Clock = std::chrono::steady_clock;
constinit thread_local Clock::time_point left_at{};
constexpr std::chrono::microseconds spinning_for{4};

std::int64_t short_grain(std::int64_t grain) {
  constexpr std::int64_t part = 5;
  return std::max<std::int64_t>(1, grain / part);
}

// A loop whose iterations lie in ranges. Each thread has some of them for its own, the same in
// every loop of that size, so that it finds in its cache what it wrote before; when they are done
// it takes what others have not begun. So nobody waits for a thread that is slow to wake, or that
// another process keeps from running, unless it has begun a range.
class Loop {
 public:
  Loop(RangeFunction function, void* state, std::int64_t count, std::int64_t grain,
       std::int64_t team_size)
      : function_(function), state_(state), count_(count) {
    constexpr std::int64_t ranges_each = 4;
    constexpr std::int64_t long_range = 1024;  // of which 64 are few
    const std::int64_t most = std::max<std::int64_t>(count / grain, 1);
    num_owners_ = std::min({team_size, most, max_owners});
    num_ranges_ = num_owners_ * std::clamp<std::int64_t>(most / num_owners_, 1, ranges_each);
    is_long_ = count / num_ranges_ >= std::max<std::int64_t>(grain + 64, long_range);
    for (std::int64_t owner = 0; owner < num_owners_; ++owner)
      num_begun_[std::size_t(owner)].store(0, std::memory_order_relaxed);
  }

  // What thread index of a team does.
  void run_share(std::int64_t index) noexcept {
    const std::int64_t each = num_ranges_ / num_owners_;
    is_inside_loop = true;
    for (std::int64_t next = 0; next < num_owners_; ++next) {
      const std::int64_t owner = (index + next) % num_owners_;
      std::atomic<std::int64_t>& num_begun = num_begun_[std::size_t(owner)];
      while (num_begun.load(std::memory_order_relaxed) < each) {
        const std::int64_t range = num_begun.fetch_add(1, std::memory_order_relaxed);
        if (range >= each) break;
        run_range(owner * each + range);
      }
    }
    is_inside_loop = false;
    num_left_.fetch_add(1, std::memory_order_release);
  }

  // The caller waits here for its team: see NOTE: [waiting threads].
  void wait_for(std::int64_t team_size) const {
    constexpr std::chrono::microseconds waking{40};
    constexpr int looks_between = 32;
    const Clock::time_point end = Clock::now() + waking;
    while (num_left_.load(std::memory_order_acquire) < team_size && Clock::now() < end)
      for (int look = 0; look < looks_between; ++look) {
        if (num_left_.load(std::memory_order_acquire) >= team_size) return;
        _mm_pause();
      }
  }

  // Rethrows the exception of a range, if any, in the caller, when all have ended.
  void throw_first() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static constexpr std::int64_t max_owners = 64;

  void run_range(std::int64_t range) noexcept {
    try {
      function_(state_, start_of(range), start_of(range + 1));
    } catch (...) {  // it must not leave a thread of the pool
      keep(range, std::current_exception());
    }
  }

  void keep(std::int64_t range, std::exception_ptr thrown) noexcept {
    const std::lock_guard lock(mutex_);
    if (thrown_ && thrown_by_ < range) return;
    thrown_ = std::move(thrown);
    thrown_by_ = range;
  }

  // Ranges differ by at most one iteration. Long ones start at multiples of 64, so that vectors
  // stay aligned and no two threads write one cache line.
  std::int64_t start_of(std::int64_t range) const {
    const std::int64_t start = count_ / num_ranges_ * range + std::min(range, count_ % num_ranges_);
    return range < num_ranges_ && is_long_ ? start / 64 * 64 : start;
  }

  const RangeFunction function_;
  void* const state_;
  const std::int64_t count_;
  std::int64_t num_owners_ = 1, num_ranges_ = 1;
  bool is_long_ = false;
  std::array<std::atomic<std::int64_t>, max_owners> num_begun_;  // by owner
  std::atomic<std::int64_t> num_left_{0};                        // threads that found nothing more
  std::mutex mutex_;  // guards the exception of the first range that threw
  std::exception_ptr thrown_;
  std::int64_t thrown_by_ = 0;
};

// The threads where there is no libgomp. The caller is thread 0 of the team. Never destroyed,
// because the other threads outlive main.
class OwnThreads {
 public:
  void run(Loop& loop, int team_size) {
    std::unique_lock lock(mutex_);
    for (; num_workers_ < team_size - 1; ++num_workers_)
      std::thread([this, index = num_workers_ + 1] { work(index); }).detach();
    loop_ = &loop;
    team_size_ = team_size;
    num_running_ = num_workers_;
    ++generation_;
    started_.notify_all();
    lock.unlock();
    loop.run_share(0);
    lock.lock();
    finished_.wait(lock, [this] { return num_running_ == 0; });
  }

 private:
  void work(int index) {
    std::unique_lock lock(mutex_);
    // A worker is started before the region that needs it begins, under the mutex.
    for (std::uint64_t seen = generation_ - 1;;) {
      started_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      Loop& loop = *loop_;
      const int team_size = team_size_;
      lock.unlock();
      if (index < team_size) loop.run_share(index);
      lock.lock();
      if (--num_running_ == 0) finished_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable started_, finished_;
  Loop* loop_ = nullptr;
  int num_workers_ = 0, num_running_ = 0, team_size_ = 0;
  std::uint64_t generation_ = 0;
};

void run_wide(Loop& loop, int team_size) {
  if (!openmp()) {
    static OwnThreads& threads = *new OwnThreads;
    threads.run(loop, team_size);
    return;
  }
  const auto run_share = [](void* data) {
    Loop& loop = *static_cast<Loop*>(data);
    const int index = openmp()->get_thread_num();
    loop.run_share(index);
    if (index == 0) loop.wait_for(openmp()->get_num_threads());
  };
  openmp()->parallel(run_share, &loop, static_cast<unsigned>(team_size), 0);
}

}  // namespace

int num_threads() {
  const int count = thread_count().load(std::memory_order_relaxed);
  return is_forked_child.load(std::memory_order_relaxed) ? 1 : count;
}

void set_num_threads(int count) {
  if (count < 1 || count > max_threads)
    throw ValueError("set_num_threads: " + std::to_string(count) + " is no number of threads",
                     "give a number from 1 to " + std::to_string(max_threads));
  thread_count().store(count, std::memory_order_relaxed);
}

void parallel_for(std::int64_t count, std::int64_t grain, RangeFunction function, void* state) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  const bool is_short = count / 2 < grain;
  const int team_size = is_short || is_inside_loop ? 1 : num_threads();
  if (team_size == 1 || !take_permit()) {
    function(state, 0, count);
    return;
  }
  Loop loop(function, state, count, grain, team_size);
  run_wide(loop, team_size);
  return_permit();
  left_at = Clock::now();
  loop.throw_first();
}

std::int64_t grain_while_spinning(std::int64_t grain) {
  if (grain == 1 || Clock::now() - left_at >= spinning_for) return grain;
  return short_grain(grain);
}

namespace {

// What the CloseLoops of this thread leave to the next ones.
constinit thread_local int left_out = 0, next_left_out = 0;

}  // namespace

CloseLoops::CloseLoops() : num_close_(-left_out), num_left_out_(std::max(next_left_out, many)) {}
CloseLoops::~CloseLoops() {
  left_out = std::max(-num_close_, 0);
  next_left_out = num_left_out_;
}

std::int64_t CloseLoops::begin(std::int64_t count, std::int64_t grain) {
  began_at_ = Clock::now();
  work_ = double(count) / double(grain);
  way_ = alone;
  if (num_close_ < 0) {
    ++num_close_;
    return count;
  }
  const bool is_close = began_at_ - ended_at_ < spinning_for;
  num_close_ = is_close ? std::min(num_close_ + 1, many) : 0;
  // Two of the first, so that it is known how long those take that are always shared.
  if (num_close_ == 4 || num_close_ == 5) return count;
  const std::int64_t least = num_close_ == many ? short_grain(grain) : grain_while_spinning(grain);
  if (count / 2 >= least) way_ = num_close_ == many && alone_.work > 0 ? shared : unknown;
  return least;
}

bool CloseLoops::is_sharing_slower(double work) const {
  constexpr double clearly = 1.1;
  return double(shared_.took.count()) * alone_.work > clearly * double(alone_.took.count()) * work;
}

void CloseLoops::end() {
  ended_at_ = Clock::now();
  if (way_ == unknown) return;
  Speed& speed = way_ == shared ? shared_ : alone_;
  speed.took += ended_at_ - began_at_;
  speed.work += work_;
  if (way_ == alone) return;
  // One that waited for a thread may have lost more than many can win.
  if (++num_shared_ < many && !is_sharing_slower(many * work_)) return;
  const bool is_slower = is_sharing_slower(shared_.work);
  num_left_out_ = is_slower ? std::min(2 * num_left_out_, most_left_out) : many;
  if (is_slower) {
    num_close_ = -num_left_out_;
    alone_ = {};
  }
  shared_ = {};
  num_shared_ = 0;
}

PoolScope::PoolScope(int max_threads)
    : num_threads_(is_inside_loop ? 1 : std::min(plait::num_threads(), max_threads)),
      outer_num_threads_(openmp() ? openmp()->get_max_threads() : 1),
      holds_permit_(num_threads_ > 1 && take_permit()) {
  if (!holds_permit_) num_threads_ = 1;
  if (openmp()) openmp()->set_num_threads(num_threads_);
}

PoolScope::~PoolScope() {
  if (openmp()) openmp()->set_num_threads(outer_num_threads_);
  if (!holds_permit_) return;
  return_permit();
  left_at = Clock::now();
}

}  // namespace plait
