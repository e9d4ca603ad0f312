// See machine.h.
// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "../memory.h"
#include "fibers.h"
#include "races.h"

namespace on_cpu {
namespace {

constexpr int illegal_address = 700, misaligned_address = 716, launch_failed = 719;
constexpr unsigned warp_size = 32;
constexpr std::uint64_t poison = ~std::uint64_t{0};
constexpr int fresh = 0xFF;
// Turns that a launch gives away for atomics, while no thread ends or meets another.
constexpr long most_vain_turns = 2'000'000;

enum class Wait : std::uint8_t { none, block, warp, grid };

struct Thread {
  unsigned block = 0, index = 0;  // of its block among those that run; in its block
  std::uint32_t number = 0;       // in the launch
  Fibers::Fiber* fiber = nullptr;
  Wait wait = Wait::none;
  Site site{};
  // What its last fence orders before its later atomics; 0: no fence.
  std::uint32_t fence_time = 0, fence_block_time = 0;
  std::vector<std::uint64_t> seen;  // addresses of atomics since the last fence
};

struct Warp {
  unsigned exited = 0, waiting = 0;
  struct Lane {
    Meeting meeting;
    unsigned mask;
    std::uint64_t value;
    int argument, width;
    Site site;
  } lanes[warp_size];
  std::uint64_t results[warp_size];
  // Meetings of some lanes may be on their way while others are at a larger one.
  unsigned waiting_for(unsigned mask) const {
    unsigned who = 0;
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if ((waiting >> lane & 1) != 0 && lanes[lane].mask == mask) who |= 1u << lane;
    return who;
  }
  // [i][j]: until when lane i knows what lane j did. Valid once lanes met.
  bool have_met = false;
  std::uint32_t known[warp_size][warp_size];
};

// Until when threads and blocks are known, by number.
struct Clock {
  std::unordered_map<std::uint32_t, std::uint32_t> threads, blocks;
  static void raise(std::uint32_t& time, std::uint32_t to) { time = std::max(time, to); }
  void merge(const Clock& other) {
    for (const auto& [number, time] : other.threads) raise(threads[number], time);
    for (const auto& [number, time] : other.blocks) raise(blocks[number], time);
  }
};

struct Block {
  unsigned number = 0;  // in the grid
  unsigned alive = 0, waiting = 0;
  bool is_first_gone = false;  // thread 0, which meets other blocks
  Site site{};
  std::uint32_t begin = 0, time = 0;  // when it began, and its threads last met
  std::vector<Warp> warps;
  std::vector<unsigned> unstarted;  // threads of it, the next one last
  Clock known;                      // of other blocks
  struct Array {
    const void* key;
    const char* name;
    std::uint64_t offset, bytes;
  };
  std::vector<Array> arrays;  // static, with room between
  std::uint64_t static_bytes = 0, shared_end = 0;
  std::vector<char> shared, is_written;
  std::vector<cuda_standin::Accesses> accesses;  // of shared memory
};

// Shared memory: the dynamic part, and behind it static arrays as threads come to them. What is
// left free between shows who leaves an array.
constexpr std::uint64_t between_arrays = 64;

struct Random {
  std::uint64_t state = 1;
  std::uint32_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return std::uint32_t(state >> 33);
  }
  std::uint32_t below(std::size_t n) { return std::uint32_t(next() % n); }
};

class Runner {
 public:
  Runner();
  Outcome run(const Launch& launch, void** params);

  // The machine, as the thread that runs sees it.
  void* access(std::uint64_t address, unsigned bytes, unsigned alignment, Access access);
  std::uint64_t shared(const void* key, const char* name, std::uint64_t bytes);
  std::uint64_t dynamic_shared();
  void sync_block(Site site);
  std::uint64_t meet(Meeting meeting, unsigned mask, std::uint64_t value, int argument, int width,
                     Site site);
  void sync_grid(std::uint64_t address, Site site);
  void fence();
  void work();  // of a fiber: threads, one after the other

  Place place;

 private:
  void begin();
  void start_block(unsigned slot, unsigned number);
  [[noreturn]] void fault(int error, const std::string& what);
  [[noreturn]] void fault_of_deadlock();
  std::string name_of(const Thread& thread) const { return name_of_number(thread.number); }
  std::string name_of_number(std::uint32_t number) const {
    return "block " + std::to_string(number / launch_.block) + ", thread " +
           std::to_string(number % launch_.block);
  }

  Thread* choose();
  void set_running(Thread& thread, Fibers::Fiber* fiber);
  void give_turn();
  void yield();
  void make_ready(Thread& thread);
  void end_thread();

  std::uint32_t tick();
  void end_block_meeting(Block& block);
  void end_warp_meeting(Thread& of, unsigned mask);
  void order_lanes(Warp& warp, unsigned who);
  void end_grid_meeting();
  Warp& warp_of(const Thread& thread) {
    return blocks_[thread.block].warps[thread.index / warp_size];
  }

  bool is_known(const Past& past) const;
  [[noreturn]] void report(Race race, std::uint64_t address, unsigned bytes, Access access,
                           Past other);
  void note_accesses(cuda_standin::Accesses* first, std::uint32_t start, std::uint64_t address,
                     unsigned bytes, Access access);
  void note_atomic(std::uint64_t address);
  static std::uint64_t add_shared(Block& block, std::uint64_t bytes);
  void* access_shared(std::uint64_t address, unsigned bytes, Access access);
  std::string name_of_shared(const Block& block, std::uint64_t offset) const;

  std::mutex mutex_;  // of launches
  Launch launch_;
  void** params_ = nullptr;
  Outcome outcome_;
  Random random_;
  cuda_standin::DeviceMemory* memory_ = nullptr;

  Fibers fibers_;
  Fibers::Fiber main_;
  Fibers::Fiber* fiber_ = nullptr;  // on which running_ runs
  Thread* running_ = nullptr;
  std::vector<Thread> threads_;  // of the blocks that run now, block by block
  std::vector<Block> blocks_;
  std::vector<unsigned> starting_;  // blocks of which some threads have not started
  std::vector<Thread*> ready_;
  std::size_t alive_ = 0, at_grid_ = 0;
  long vain_turns_ = 0;

  std::uint32_t time_ = 1, start_ = 1, grid_time_ = 1;
  bool has_fences_ = false;                            // in this launch
  std::unordered_map<std::uint64_t, Clock> released_;  // by the address of an atomic
};

Runner& runner() {
  static Runner& runner = *new Runner;
  return runner;
}

Runner::Runner() : fibers_([] { runner().work(); }) {}

std::string at(Site site) { return std::string(site.file) + ":" + std::to_string(site.line); }

bool is_same(Site a, Site b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

const char* word_for(Access access) {
  switch (access) {
    case Access::constant:
    case Access::read:
      return "reads";
    case Access::write:
      return "writes";
    case Access::atomic:
      break;
  }
  return "changes";
}

std::string hex(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

// ---- a launch

// All that was done before is over.
void Runner::begin() {
  if (time_ > Past::most_time / 2) {
    for (int device = 0; device < cuda_standin::num_devices; ++device)
      cuda_standin::memory_of(device).forget_accesses();
    blocks_.clear();
    time_ = 1;
  }
  start_ = grid_time_ = ++time_;
  has_fences_ = false;
  released_.clear();
  vain_turns_ = 0;
}

Outcome Runner::run(const Launch& launch, void** params) {
  const std::lock_guard lock(mutex_);
  if (std::uint64_t{launch.grid} * launch.block >= Past::most_threads)
    return {launch_failed, std::string("kernel ") + launch.kernel->name +
                               ": more threads than the stand-in counts; launch fewer blocks"};
  launch_ = launch;
  params_ = params;
  outcome_ = {};
  random_.state = launch.seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u;
  random_.next();
  memory_ = &cuda_standin::memory_of(launch.device);
  begin();
  place.block_size.x = launch.block;
  place.grid_size.x = launch.grid;
  const unsigned at_once = launch.is_cooperative ? launch.grid : 1;
  if (blocks_.size() < at_once) blocks_.resize(at_once);
  if (threads_.size() < std::size_t{at_once} * launch.block)
    threads_.resize(std::size_t{at_once} * launch.block);

  std::vector<unsigned> order(launch.grid);
  for (unsigned i = 0; i < launch.grid; ++i) order[i] = i;
  for (unsigned i = launch.grid; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  for (unsigned first = 0; first < launch.grid && outcome_.error == 0; first += at_once) {
    alive_ = at_grid_ = 0;
    ready_.clear();
    starting_.clear();
    for (unsigned slot = 0; slot < at_once; ++slot) start_block(slot, order[first + slot]);
    set_running(*choose(), fibers_.take());
    Fibers::change(main_, *fiber_);
  }
  if (outcome_.error != 0) fibers_.forget();
  return outcome_;
}

void Runner::start_block(unsigned slot, unsigned number) {
  Block& block = blocks_[slot];
  const unsigned size = launch_.block;
  block.number = number;
  block.alive = size;
  block.waiting = 0;
  block.is_first_gone = false;
  block.begin = ++time_;
  block.time = start_;
  block.known.threads.clear();
  block.known.blocks.clear();
  block.arrays.clear();
  block.static_bytes = 0;
  block.warps.resize((size + warp_size - 1) / warp_size);
  for (Warp& warp : block.warps) warp.exited = warp.waiting = 0, warp.have_met = false;
  if (size % warp_size != 0) block.warps.back().exited = ~0u << size % warp_size;
  block.unstarted.resize(size);
  for (unsigned i = 0; i < size; ++i) {
    block.unstarted[i] = i;
    Thread& thread = threads_[slot * size + i];
    thread.block = slot;
    thread.index = i;
    thread.number = number * size + i;
    thread.fiber = nullptr;
    thread.wait = Wait::none;
    thread.fence_time = 0;
    thread.seen.clear();
  }
  for (unsigned i = size; i > 1; --i)
    std::swap(block.unstarted[i - 1], block.unstarted[random_.below(i)]);
  alive_ += size;
  starting_.push_back(slot);
  block.shared_end = 0;
  if (launch_.dynamic_bytes > 0) add_shared(block, launch_.dynamic_bytes);
}

// Leaves the fibers as they are: nobody comes back to them.
void Runner::fault(int error, const std::string& what) {
  outcome_ = {error, std::string("kernel ") + launch_.kernel->name + ", " + name_of(*running_) +
                         ": " + what};
  Fibers::Fiber dropped;
  Fibers::change(dropped, main_);
  std::abort();
}

// ---- turns

// Another thread of those that can run; nullptr: there is none. One without a fiber is to be
// started.
Thread* Runner::choose() {
  if (starting_.empty() && ready_.empty()) return nullptr;
  if (!starting_.empty() && (ready_.empty() || random_.next() % 2 == 0)) {
    const std::uint32_t which = random_.below(starting_.size());
    const unsigned slot = starting_[which];
    std::vector<unsigned>& unstarted = blocks_[slot].unstarted;
    Thread* thread = &threads_[slot * launch_.block + unstarted.back()];
    unstarted.pop_back();
    if (unstarted.empty()) {
      starting_[which] = starting_.back();
      starting_.pop_back();
    }
    return thread;
  }
  std::swap(ready_[random_.below(ready_.size())], ready_.back());
  Thread* thread = ready_.back();
  ready_.pop_back();
  return thread;
}

void Runner::set_running(Thread& thread, Fibers::Fiber* fiber) {
  running_ = &thread;
  fiber_ = fiber;
  place.thread.x = thread.index;
  place.block.x = blocks_[thread.block].number;
}

// Each fiber comes here with a thread to be started, at first and whenever it is taken again.
void Runner::work() {
  while (true) {
    Fibers::Fiber* const fiber = fiber_;
    running_->fiber = fiber;
    launch_.kernel->call(params_);
    end_thread();
    Thread* const next = choose();
    if (next == nullptr && alive_ > 0) fault_of_deadlock();
    if (next != nullptr && next->fiber == nullptr) {
      set_running(*next, fiber);
      continue;
    }
    fibers_.give_back(fiber);
    if (next == nullptr) {
      Fibers::change(*fiber, main_);
    } else {
      set_running(*next, next->fiber);
      Fibers::change(*fiber, *fiber_);
    }
  }
}

// The thread that runs waits, or is ready: another one runs, until its turn comes again.
void Runner::give_turn() {
  Thread* const self = running_;
  Thread* const next = choose();
  if (next == nullptr) fault_of_deadlock();
  if (next == self) return;
  set_running(*next, next->fiber != nullptr ? next->fiber : fibers_.take());
  Fibers::change(*self->fiber, *fiber_);
}

void Runner::yield() {
  if (++vain_turns_ > most_vain_turns)
    fault(launch_failed, "waits for ever for what another thread should change");
  ready_.push_back(running_);
  give_turn();
}

void Runner::make_ready(Thread& thread) {
  thread.wait = Wait::none;
  ready_.push_back(&thread);
}

void Runner::end_thread() {
  Thread& thread = *running_;
  if (Fibers::is_full(*thread.fiber)) fault(launch_failed, "has used up its stack");
  Block& block = blocks_[thread.block];
  vain_turns_ = 0;
  --alive_;
  --block.alive;
  if (thread.index == 0) block.is_first_gone = true;
  Warp& warp = warp_of(thread);
  warp.exited |= 1u << thread.index % warp_size;
  for (unsigned lane = 0; warp.waiting != 0 && lane < warp_size; ++lane) {
    const unsigned mask = warp.lanes[lane].mask;
    if ((warp.waiting >> lane & 1) != 0 && (mask & ~warp.exited & ~warp.waiting_for(mask)) == 0)
      end_warp_meeting(thread, mask);
  }
  if (block.waiting > 0 && block.waiting == block.alive) end_block_meeting(block);
  if (at_grid_ > 0 && at_grid_ == alive_) end_grid_meeting();
}

void Runner::fault_of_deadlock() {
  std::string text = "the launch hangs:";
  int shown = 0;
  const std::size_t count = (launch_.is_cooperative ? launch_.grid : 1) * launch_.block;
  for (std::size_t i = 0; i < count && shown < 4; ++i) {
    const Thread& thread = threads_[i];
    if (thread.wait == Wait::none) continue;
    const char* where = thread.wait == Wait::block  ? "__syncthreads"
                        : thread.wait == Wait::grid ? "sync_grid"
                                                    : "the lanes of its mask";
    text += (shown++ > 0 ? "; " : " ") + name_of(thread) + " waits for " + where + " at " +
            at(thread.site);
  }
  fault(launch_failed, text);
}

// ---- meetings

std::uint32_t Runner::tick() {
  if (time_ == Past::most_time)
    fault(launch_failed, "threads meet more often than the stand-in counts");
  return ++time_;
}

void Runner::sync_block(Site site) {
  Thread& thread = *running_;
  Block& block = blocks_[thread.block];
  if (block.waiting > 0 && !is_same(block.site, site))
    fault(launch_failed, "meets its block at " + at(site) + ", where others wait at " +
                             at(block.site) + ": every thread must come to the same __syncthreads");
  block.site = thread.site = site;
  thread.wait = Wait::block;
  if (++block.waiting == block.alive) end_block_meeting(block);
  give_turn();
}

void Runner::end_block_meeting(Block& block) {
  block.waiting = 0;
  block.time = tick();
  vain_turns_ = 0;
  Thread* const threads = &threads_[std::size_t(&block - blocks_.data()) * launch_.block];
  for (unsigned i = 0; i < launch_.block; ++i)
    if (threads[i].wait == Wait::block) make_ready(threads[i]);
}

std::uint64_t Runner::meet(Meeting meeting, unsigned mask, std::uint64_t value, int argument,
                           int width, Site site) {
  Thread& thread = *running_;
  Warp& warp = warp_of(thread);
  const unsigned lane = thread.index % warp_size;
  if ((mask >> lane & 1) == 0)
    fault(launch_failed, "at " + at(site) + ": the mask " + hex(mask) + " lacks its own lane");
  if (width <= 0 || width > 32 || (width & (width - 1)) != 0)
    fault(launch_failed, "at " + at(site) + ": no width of a shuffle: " + std::to_string(width));
  for (unsigned other = 0; warp.waiting != 0 && other < warp_size; ++other) {
    if ((warp.waiting >> other & 1) == 0) continue;
    const Warp::Lane& there = warp.lanes[other];
    // Who does not wait for the other may come to it later.
    if ((mask >> other & 1) == 0 || (there.mask >> lane & 1) == 0) continue;
    if (there.mask != mask || there.meeting != meeting || !is_same(there.site, site))
      fault(launch_failed, "meets lanes " + hex(mask) + " at " + at(site) + ", where lane " +
                               std::to_string(other) + " waits for " + hex(there.mask) + " at " +
                               at(there.site));
  }
  warp.lanes[lane] = {meeting, mask, value, argument, width, site};
  warp.waiting |= 1u << lane;
  thread.wait = Wait::warp;
  thread.site = site;
  if ((mask & ~warp.exited & ~warp.waiting_for(mask)) == 0) end_warp_meeting(thread, mask);
  give_turn();
  return warp.results[lane];
}

// What a lane gets, and from which lane: -1 where it is nobody's.
int source_of(const Warp::Lane& lane, int self) {
  const int first = self & ~(lane.width - 1), last = first + lane.width - 1;
  switch (lane.meeting) {
    case Meeting::index:
      return first + (lane.argument & (lane.width - 1));
    case Meeting::down:
      return self + lane.argument > last ? self : self + lane.argument;
    case Meeting::up:
      return self - lane.argument < first ? self : self - lane.argument;
    case Meeting::exclusive_or:
      return (self ^ lane.argument) > last ? self : self ^ lane.argument;
    case Meeting::sync:
    case Meeting::ballot:
      break;
  }
  return -1;
}

// of: a thread of the warp.
void Runner::end_warp_meeting(Thread& of, unsigned mask) {
  Warp& warp = warp_of(of);
  Thread* const threads = &of - of.index % warp_size;
  const unsigned who = mask & warp.waiting_for(mask);
  std::uint64_t ballot = 0;
  for (unsigned i = 0; i < warp_size; ++i)
    if ((who >> i & 1) != 0) ballot |= (warp.lanes[i].value & 1) << i;
  for (unsigned i = 0; i < warp_size; ++i) {
    if ((who >> i & 1) == 0) continue;
    const int source = source_of(warp.lanes[i], int(i));
    if (source < 0) {
      warp.results[i] = ballot;
    } else if ((who >> source & 1) != 0) {
      warp.results[i] = warp.lanes[source].value;
    } else if ((mask >> source & 1) != 0) {
      running_ = &threads[i];
      fault(launch_failed, "at " + at(warp.lanes[i].site) + ": takes the number of lane " +
                               std::to_string(source) + ", which has exited");
    } else {
      warp.results[i] = poison;
    }
  }
  // Only __syncwarp orders memory: CUDA says that shuffles do not.
  if (warp.lanes[__builtin_ctz(who)].meeting == Meeting::sync) order_lanes(warp, who);
  warp.waiting &= ~who;
  vain_turns_ = 0;
  for (unsigned i = 0; i < warp_size; ++i)
    if ((who >> i & 1) != 0) make_ready(threads[i]);
}

// Each of them knows now what all of them know, and did.
void Runner::order_lanes(Warp& warp, unsigned who) {
  if (!warp.have_met) {
    for (auto& times : warp.known) std::fill(std::begin(times), std::end(times), start_);
    warp.have_met = true;
  }
  const std::uint32_t now = tick();
  std::uint32_t all[warp_size];
  for (unsigned j = 0; j < warp_size; ++j) {
    all[j] = (who >> j & 1) != 0 ? now : 0;
    for (unsigned i = 0; i < warp_size; ++i)
      if ((who >> i & 1) != 0) all[j] = std::max(all[j], warp.known[i][j]);
  }
  for (unsigned i = 0; i < warp_size; ++i)
    if ((who >> i & 1) != 0) std::copy(std::begin(all), std::end(all), warp.known[i]);
}

void Runner::sync_grid(std::uint64_t address, Site site) {
  Thread& thread = *running_;
  if (!launch_.is_cooperative)
    fault(launch_failed, "sync_grid at " + at(site) + " needs a cooperative launch");
  if (memory_->find(address, 2 * sizeof(unsigned)) == nullptr)
    fault(illegal_address, "sync_grid at " + at(site) + " is given " + hex(address) + ", " +
                               memory_->describe(address));
  thread.wait = Wait::grid;
  thread.site = site;
  if (++at_grid_ == alive_) end_grid_meeting();
  give_turn();
}

void Runner::end_grid_meeting() {
  for (unsigned slot = 0; slot < launch_.grid; ++slot)
    if (blocks_[slot].is_first_gone)
      fault(launch_failed, "the grid meets, but thread 0 of block " +
                               std::to_string(blocks_[slot].number) +
                               " has exited: on a GPU it hangs");
  at_grid_ = 0;
  grid_time_ = tick();
  vain_turns_ = 0;
  for (std::size_t i = 0; i < std::size_t{launch_.grid} * launch_.block; ++i)
    if (threads_[i].wait == Wait::grid) make_ready(threads_[i]);
}

// ---- memory between blocks: what is written before a fence and an atomic is known to whoever sees
// the atomic, once it passes a fence too

void Runner::fence() {
  Thread& thread = *running_;
  Block& block = blocks_[thread.block];
  thread.fence_time = tick();
  thread.fence_block_time = block.time;
  for (const std::uint64_t address : thread.seen) block.known.merge(released_[address]);
  thread.seen.clear();
  has_fences_ = true;
}

void Runner::note_atomic(std::uint64_t address) {
  Thread& thread = *running_;
  const Block& block = blocks_[thread.block];
  if (released_.contains(address) && std::ranges::count(thread.seen, address) == 0)
    thread.seen.push_back(address);
  if (thread.fence_time == 0) return;
  Clock& clock = released_[address];
  Clock::raise(clock.blocks[block.number], thread.fence_block_time);
  Clock::raise(clock.threads[thread.number], thread.fence_time);
  const Warp& warp = warp_of(thread);
  for (unsigned i = 0; warp.have_met && i < warp_size; ++i)
    Clock::raise(clock.threads[thread.number - thread.index % warp_size + i],
                 std::min(thread.fence_time, warp.known[thread.index % warp_size][i]));
  clock.merge(block.known);
}

bool Runner::is_known(const Past& past) const {
  const std::uint32_t time = past.time(), number = past.thread() / launch_.block;
  if (time < grid_time_) return true;
  const Thread& thread = *running_;
  const Block& block = blocks_[thread.block];
  if (number == block.number) {
    if (time < block.time) return true;
    const unsigned index = past.thread() % launch_.block;
    const Warp& warp = block.warps[index / warp_size];
    if (warp.have_met && index / warp_size == thread.index / warp_size &&
        time < warp.known[thread.index % warp_size][index % warp_size])
      return true;
  }
  if (!has_fences_) return false;
  const auto known_until = [time](const auto& times, std::uint32_t key) {
    const auto found = times.find(key);
    return found != times.end() && time < found->second;
  };
  return known_until(block.known.blocks, number) || known_until(block.known.threads, past.thread());
}

// ---- accesses

void Runner::report(Race race, std::uint64_t address, unsigned bytes, Access access, Past other) {
  const std::string where = (address & shared_bit) != 0
                                ? "shared memory"
                                : hex(address) + ", " + memory_->describe(address);
  const std::string what =
      std::string(word_for(access)) + " " + std::to_string(bytes) + " bytes of " + where;
  if (race == Race::constant)
    fault(launch_failed, what + " through In<T>, which " + name_of_number(other.thread()) +
                             " has written in this launch: take Out<T>");
  fault(launch_failed, "a race: " + what + ", which " + name_of_number(other.thread()) +
                           (other.is_atomic()  ? " changes"
                            : other.is_write() ? " writes"
                                               : " reads") +
                           " with no barrier between");
}

void Runner::note_accesses(cuda_standin::Accesses* first, std::uint32_t start,
                           std::uint64_t address, unsigned bytes, Access access) {
  const auto is_known = [this](const Past& past) { return this->is_known(past); };
  unsigned skipped = address % 8;
  for (unsigned done = 0; done < bytes; ++first, skipped = 0) {
    const unsigned count = std::min(bytes - done, 8 - skipped);
    const Past now = Past::make(running_->number, time_, ((1u << count) - 1) << skipped, access);
    Past other;
    const Race race = access_bytes(*first, now, access, start, random_.next(), is_known, other);
    if (race != Race::none) report(race, address, bytes, access, other);
    done += count;
  }
}

void* Runner::access(std::uint64_t address, unsigned bytes, unsigned alignment, Access access) {
  if (access == Access::atomic && random_.next() % 4 == 0) yield();
  if (address % alignment != 0)
    fault(misaligned_address, std::string(word_for(access)) + " " + std::to_string(bytes) +
                                  " bytes at " + hex(address) + ", which is not aligned to " +
                                  std::to_string(alignment));
  if ((address & shared_bit) != 0) return access_shared(address, bytes, access);
  char* const memory = memory_->find(address, bytes);
  if (memory == nullptr) {
    if (cuda_standin::pinned().has(address, bytes)) return reinterpret_cast<void*>(address);
    fault(illegal_address, std::string(word_for(access)) + " " + std::to_string(bytes) +
                               " bytes at " + hex(address) + ", " + memory_->describe(address));
  }
  note_accesses(memory_->accesses(address), start_, address, bytes, access);
  if (access == Access::atomic && has_fences_) note_atomic(address);
  return memory;
}

// Where it lies; nobody has written it.
std::uint64_t Runner::add_shared(Block& block, std::uint64_t bytes) {
  const std::uint64_t offset = block.shared_end;
  block.shared_end = (offset + bytes + between_arrays + 15) / 16 * 16;
  if (block.shared.size() < block.shared_end) {
    block.shared.resize(block.shared_end);
    block.is_written.resize(block.shared_end);
    block.accesses.resize(block.shared_end / 8);
  }
  std::memset(&block.shared[offset], fresh, bytes);
  std::memset(&block.is_written[offset], 0, bytes);
  return offset;
}

std::uint64_t Runner::shared(const void* key, const char* name, std::uint64_t bytes) {
  Block& block = blocks_[running_->block];
  for (const Block::Array& array : block.arrays)
    if (array.key == key) return shared_bit | array.offset;
  if (block.static_bytes + bytes > static_shared_bytes ||
      block.static_bytes + bytes + launch_.dynamic_bytes > shared_bytes_of_block)
    fault(launch_failed, std::string("no room for the shared array ") + name + " of " +
                             std::to_string(bytes) + " bytes");
  const std::uint64_t offset = add_shared(block, bytes);
  block.static_bytes += (bytes + 15) / 16 * 16;
  block.arrays.push_back({key, name, offset, bytes});
  return shared_bit | offset;
}

std::uint64_t Runner::dynamic_shared() {
  if (launch_.dynamic_bytes == 0)
    fault(launch_failed, "SHARED_BYTES without dynamic shared memory: give it at the launch");
  return shared_bit;
}

void* Runner::access_shared(std::uint64_t address, unsigned bytes, Access access) {
  Block& block = blocks_[running_->block];
  const std::uint64_t offset = address & ~shared_bit;
  const auto is_in = [&](std::uint64_t start, std::uint64_t size) {
    return offset >= start && offset - start < size && bytes <= size - (offset - start);
  };
  bool is_inside = is_in(0, launch_.dynamic_bytes);
  for (const Block::Array& array : block.arrays)
    is_inside = is_inside || is_in(array.offset, array.bytes);
  if (!is_inside)
    fault(illegal_address, std::string(word_for(access)) + " " + std::to_string(bytes) +
                               " bytes of shared memory outside of " +
                               name_of_shared(block, offset));
  // Only the bytes' writers know them: a race is told before memory that nobody wrote.
  note_accesses(&block.accesses[offset / 8], block.begin, address, bytes, access);
  char* const is_written = &block.is_written[offset];
  if (access != Access::write && std::memchr(is_written, 0, bytes) != nullptr)
    fault(launch_failed, std::string(word_for(access)) +
                             " shared memory that nobody has written, of " +
                             name_of_shared(block, offset));
  std::memset(is_written, 1, bytes);
  if (access == Access::atomic && has_fences_)
    note_atomic(address + (std::uint64_t{block.number} << 32));
  return &block.shared[offset];
}

// The array that begins before this byte.
std::string Runner::name_of_shared(const Block& block, std::uint64_t offset) const {
  if (offset < launch_.dynamic_bytes + between_arrays && launch_.dynamic_bytes > 0)
    return "SHARED_BYTES: byte " + std::to_string(offset) + " of " +
           std::to_string(launch_.dynamic_bytes);
  std::string name = "every array";
  for (const Block::Array& array : block.arrays)
    if (array.offset <= offset)
      name = std::string(array.name) + ": byte " + std::to_string(offset - array.offset) + " of " +
             std::to_string(array.bytes);
  return name;
}

}  // namespace

Machine& machine() {
  static Machine machine{
      &runner().place,
      [](unsigned long address, unsigned bytes, unsigned alignment, Access access) {
        return runner().access(address, bytes, alignment, access);
      },
      [](const void* key, const char* name, unsigned long bytes) -> unsigned long {
        return runner().shared(key, name, bytes);
      },
      []() -> unsigned long { return runner().dynamic_shared(); },
      [](Site site) { runner().sync_block(site); },
      [](Meeting meeting, unsigned mask, unsigned long value, int argument, int width, Site site)
          -> unsigned long { return runner().meet(meeting, mask, value, argument, width, site); },
      [](unsigned long address, Site site) { runner().sync_grid(address, site); },
      [] { runner().fence(); },
  };
  return machine;
}

Outcome run(const Launch& launch, void** params) { return runner().run(launch, params); }

}  // namespace on_cpu
