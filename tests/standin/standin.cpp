// See standin.h.
// SPDX-License-Identifier: Apache-2.0
#include "standin/standin.h"

#include <plait/base/error.h>
#include <plait/base/stream.h>

#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace standin {
namespace {

using plait::Device;
using plait::View;

constexpr std::size_t memory_bytes = std::size_t{1} << 31, guard = 256;
constexpr unsigned char fresh = 0xA5, freed = 0xDB, at_guard = 0xC3;
constexpr std::size_t most_pending = 64;

[[noreturn]] void stop(const char* what) {
  std::fprintf(stderr, "standin: %s\n", what);
  std::abort();
}

// Addresses that are given out are not accessible; the memory behind them lies at a fixed distance.
class Memory {
 public:
  Memory() {
    base_ = static_cast<char*>(mmap(nullptr, 2 * memory_bytes, PROT_NONE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (base_ == MAP_FAILED ||
        mprotect(base_ + memory_bytes, memory_bytes, PROT_READ | PROT_WRITE) != 0)
      stop("no address space");
  }

  // Blocks are handed out again last freed first, whole, so that an early reuse is likely.
  void* allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + 2 * guard + guard - 1) / guard * guard;
    const std::lock_guard lock(mutex_);
    std::vector<std::size_t>& free = free_[whole];
    std::size_t offset = end_;
    if (!free.empty()) {
      offset = free.back();
      free.pop_back();
    } else if (end_ + whole > memory_bytes) {
      return nullptr;
    } else {
      end_ += whole;
    }
    counted_.in_use += bytes;
    counted_.most_in_use = std::max(counted_.most_in_use, counted_.in_use);
    counted_.largest = std::max(counted_.largest, bytes);
    ++counted_.num_allocations;
    char* memory = base_ + memory_bytes + offset;
    std::memset(memory, at_guard, whole);
    std::memset(memory + guard, fresh, bytes);
    return base_ + offset + guard;
  }

  void deallocate(void* address, std::size_t bytes) {
    const std::size_t whole = (bytes + 2 * guard + guard - 1) / guard * guard;
    const std::lock_guard lock(mutex_);
    auto* memory = static_cast<unsigned char*>(real(address));
    for (std::size_t i = 1; i <= guard; ++i)
      if (memory[-std::ptrdiff_t(i)] != at_guard) stop("written before a block");
    for (std::size_t i = bytes; i + 2 * guard < whole + guard; ++i)
      if (memory[i] != at_guard) stop("written behind a block");
    std::memset(memory, freed, bytes);
    counted_.in_use -= bytes;
    free_[whole].push_back(std::size_t(static_cast<char*>(address) - base_) - guard);
  }

  bool has(const void* address) const { return address >= base_ && address < base_ + memory_bytes; }
  void* real(const void* address) const {
    if (!has(address)) stop("an address of the host was given to the device");
    return const_cast<char*>(static_cast<const char*>(address)) + memory_bytes;
  }
  plait::Driver::MemoryStatistics counted() {
    const std::lock_guard lock(mutex_);
    plait::Driver::MemoryStatistics found = counted_;
    found.reserved = end_;
    found.limit = memory_bytes;
    return found;
  }

 private:
  char* base_;
  std::mutex mutex_;
  std::size_t end_ = 0;
  plait::Driver::MemoryStatistics counted_;
  std::map<std::size_t, std::vector<std::size_t>> free_;  // offsets, by size
};
Memory& memory() {
  static Memory& memory = *new Memory;
  return memory;
}

std::atomic<std::int64_t> staging{0};

// A stream: work in order. Never destroyed.
class Queue {
 public:
  Queue(Mode mode, unsigned seed) : mode_(mode), random_(seed) {
    if (mode_ == Mode::delayed) std::thread([this] { work(); }).detach();
  }

  void submit(std::function<void()> item) {
    std::size_t pending = 0;
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
      pending = items_.size();
    }
    submitted_.notify_one();
    if (mode_ == Mode::lazy && pending > most_pending) run_one();
  }
  void mark(std::uint64_t number) {
    auto reach = [this, number] {
      {
        const std::lock_guard lock(mutex_);
        reached_ = number;
      }
      arrived_.notify_all();
    };
    if (faults().marks_are_early)
      reach();
    else
      submit(reach);
  }
  std::uint64_t reached() {
    if (mode_ == Mode::lazy) run_one();  // who asks again and again gets there
    return reached_;
  }
  // Nothing for a mark that was reached: so no two streams wait for each other's turn.
  bool wait(std::uint64_t number, std::chrono::milliseconds most) {
    while (mode_ == Mode::lazy && reached_ < number)
      if (!run_one()) return false;
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, most, [&] { return reached_ >= number; });
  }
  void advance() {
    if (mode_ == Mode::delayed || !run_one())
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  void run_all() {
    while (mode_ == Mode::lazy && run_one()) {
    }
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return items_.empty() && !is_running_; });
  }

 private:
  bool run_one() {
    const std::lock_guard turn(turn_);
    std::function<void()> item;
    {
      const std::lock_guard lock(mutex_);
      if (items_.empty()) return false;
      item = std::move(items_.front());
      items_.pop_front();
    }
    item();
    return true;
  }
  void work() {
    while (true) {
      std::function<void()> item;
      bool pauses = false;
      {
        std::unique_lock lock(mutex_);
        is_running_ = false;
        if (items_.empty()) arrived_.notify_all();
        submitted_.wait(lock, [&] { return !items_.empty(); });
        item = std::move(items_.front());
        items_.pop_front();
        is_running_ = true;
        pauses = random_() % 8 == 0;
      }
      if (pauses) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
      item();
    }
  }

  const Mode mode_;
  std::minstd_rand random_;
  std::recursive_mutex turn_;  // of the thread that runs lazy work
  std::mutex mutex_;
  std::condition_variable submitted_, arrived_;
  std::deque<std::function<void()>> items_;
  bool is_running_ = false;
  std::atomic<std::uint64_t> reached_{0};
};

struct Queues {
  std::mutex mutex;
  std::vector<Queue*> all;
};
Queues& queues() {
  static Queues& queues = *new Queues;
  return queues;
}

Queue& queue_of(void* stream) { return *static_cast<Queue*>(stream); }

// Any stream may be another library's. There are none without a handle: nullptr.
Queue* queue_of_number(std::int64_t number) {
  const std::lock_guard lock(queues().mutex);
  for (Queue* queue : queues().all)
    if (std::int64_t(reinterpret_cast<std::uintptr_t>(queue)) == number) return queue;
  return nullptr;
}

// What this thread gives to a stream while it is captured.
struct Captured final : plait::Driver::Captured {
  std::vector<std::function<void()>> work;
};
struct Capturing {
  Queue* queue = nullptr;
  Captured* into = nullptr;
};
thread_local Capturing capturing;

// Work of plait's, as opposed to what the stand-in does about it.
void give(void* stream, std::function<void()> work) {
  if (capturing.queue == stream)
    capturing.into->work.push_back(std::move(work));
  else
    queue_of(stream).submit(std::move(work));
}

// Counts down to the one that fails.
bool fails(int& countdown) { return countdown > 0 && --countdown == 0; }

class StandinDriver final : public plait::Driver {
 public:
  StandinDriver(std::string name, Mode mode) : name_(std::move(name)), mode_(mode) {}
  std::string_view name() const override { return name_; }
  int num_devices() const override { return 2; }
  std::string describe(Device) const override { return "a stand-in for tests"; }
  // Numbers that DLPack has for other kinds: an extension device, and MAIA.
  int dlpack_type() const override { return mode_ == Mode::lazy ? 12 : 16; }
  bool is_lost(Device) const override { return false; }

  void* allocate(Device, std::size_t bytes, void*) override {
    if (is_asked_again_.exchange(false) && faults().failing_again) return nullptr;
    is_asked_again_ = fails(faults().failing_allocation);
    return is_asked_again_ ? nullptr : memory().allocate(bytes);
  }
  void deallocate(Device, void* data, std::size_t bytes, void* stream) noexcept override {
    auto free = [=] { memory().deallocate(data, bytes); };
    if (faults().frees_at_once)
      free();
    else
      queue_of(stream).submit(free);
  }
  // Of all devices together.
  std::optional<MemoryStatistics> memory_statistics(Device) const override {
    return memory().counted();
  }
  void* allocate_staging(Device, std::size_t bytes) override {
    if (is_staging_asked_again_.exchange(false) && faults().failing_again) return nullptr;
    is_staging_asked_again_ = fails(faults().failing_staging);
    if (is_staging_asked_again_) return nullptr;
    staging += std::int64_t(bytes);
    return std::malloc(bytes);
  }
  void deallocate_staging(Device, void* data, std::size_t bytes) noexcept override {
    staging -= std::int64_t(bytes);
    std::memset(data, freed, bytes);
    std::free(data);
  }

  void* make_stream(Device) override {
    const std::lock_guard lock(queues().mutex);
    queues().all.push_back(new Queue(mode_, unsigned(queues().all.size()) + 1));
    return queues().all.back();
  }
  void mark(void* stream, std::uint64_t number) override { queue_of(stream).mark(number); }
  std::uint64_t reached(void* stream) override { return queue_of(stream).reached(); }
  bool wait(void* stream, std::uint64_t number, std::chrono::milliseconds most) override {
    return queue_of(stream).wait(number, most);
  }
  void order(void* later, void* stream, std::uint64_t number) override {
    if (faults().order_does_nothing) return;
    queue_of(later).submit([=] {
      while (!queue_of(stream).wait(number, std::chrono::milliseconds(1000))) {
      }
    });
  }

  std::optional<std::int64_t> foreign_number(void* stream) const override {
    return std::int64_t(reinterpret_cast<std::uintptr_t>(stream));
  }
  bool order_foreign(std::int64_t later, void* stream, std::uint64_t number) override {
    Queue* const foreign = queue_of_number(later);
    if (foreign) order(foreign, stream, number);
    return foreign;
  }
  bool order_behind_foreign(void* later, std::int64_t stream) override {
    Queue* const foreign = queue_of_number(stream);
    if (!foreign) return false;
    if (faults().order_does_nothing) return true;
    auto is_there = std::make_shared<std::atomic<bool>>(false);
    foreign->submit([=] { *is_there = true; });
    queue_of(later).submit([=] {
      while (!*is_there) foreign->advance();
    });
    return true;
  }

  void copy(void* stream, const View& from, const View& to, Between memories) override {
    const bool from_host = memories == Between::from_host, to_host = memories == Between::to_host;
    if ((from_host && memory().has(from.data)) || (to_host && memory().has(to.data)))
      stop("an address of the device was given as the host's");
    if ((from_host && !from.is_dense()) || (to_host && !to.is_dense()))
      stop("host memory of a copy has gaps");
    if (capturing.queue == stream && memories != Between::device)
      stop("work with memory of the host is captured");
    give(stream, [from = from_host ? from : translate(from), to = to_host ? to : translate(to)] {
      copy_elements(from, to);
    });
  }
  void clear(void* stream, void* data, std::size_t bytes) override {
    give(stream, [real = memory().real(data), bytes] { std::memset(real, 0, bytes); });
  }

  std::unique_ptr<Driver::Captured> capture(void* stream,
                                            const std::function<void()>& submit) override {
    auto captured = std::make_unique<standin::Captured>();
    change(stream, *captured, submit);
    return captured;
  }
  bool change(void* stream, Driver::Captured& captured,
              const std::function<void()>& submit) override {
    auto& into = static_cast<standin::Captured&>(captured);
    into.work.clear();
    capturing = {&queue_of(stream), &into};
    try {
      submit();
    } catch (...) {
      capturing = {};
      throw;
    }
    capturing = {};
    return true;
  }
  void replay(void* stream, Driver::Captured& captured) override {
    for (const auto& work : static_cast<standin::Captured&>(captured).work)
      queue_of(stream).submit(work);
  }

 private:
  const std::string name_;
  const Mode mode_;
  std::atomic<bool> is_asked_again_{false}, is_staging_asked_again_{false};
};

Device::Kind kind_of(Mode mode) {
  static const Device::Kind lazy_kind =
      plait::register_driver(std::make_unique<StandinDriver>("standin", Mode::lazy));
  static const Device::Kind delayed_kind =
      plait::register_driver(std::make_unique<StandinDriver>("delayed", Mode::delayed));
  return mode == Mode::lazy ? lazy_kind : delayed_kind;
}
[[maybe_unused]] const Device::Kind registered = kind_of(Mode::lazy);

}  // namespace

Device lazy(int index) { return {kind_of(Mode::lazy), std::uint8_t(index)}; }
Device delayed(int index) { return {kind_of(Mode::delayed), std::uint8_t(index)}; }

Faults& faults() {
  static Faults faults;
  return faults;
}

void run_pending() {
  std::vector<Queue*> all;
  {
    const std::lock_guard lock(queues().mutex);
    all = queues().all;
  }
  for (Queue* queue : all) queue->run_all();
}

std::size_t bytes_in_use() {
  run_pending();
  return memory().counted().in_use;
}

std::size_t staging_in_use() { return std::size_t(staging.load()); }

void submit(const plait::Stream& stream, std::function<void()> work) {
  give(stream.handle(), std::move(work));
}

void* translate(const void* device_address) { return memory().real(device_address); }

View translate(View view) {
  view.data = translate(view.data);
  return view;
}

}  // namespace standin
