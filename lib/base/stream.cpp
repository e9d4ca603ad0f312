// Streams: tickets, what is kept until work is done, and what failed. See stream.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/error.h>
#include <plait/base/interrupt.h>
#include <plait/base/stream.h>

#include <pthread.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "base/stoppable.h"

namespace plait {
namespace {

constexpr std::chrono::milliseconds slice{50};  // of a wait, between interrupt checks
constexpr std::size_t few_kept = 32;            // between marks; not asked whether they are done
constexpr std::size_t most_kept = 1024;
constexpr std::size_t most_failures = 16;  // that nobody has been told of

// A context of a device does not survive a fork, and neither do the threads of its driver.
std::atomic<bool> has_streams{false}, is_forked{false};

thread_local std::vector<Stream> scopes;

void refuse_if_unusable(Device device, const Driver& driver) {
  if (is_forked)
    throw BackendError(
        device.to_string() + " cannot be used in the child of a fork, since the parent used it",
        "start processes afresh: multiprocessing.set_start_method(\"spawn\")");
  if (driver.is_lost(device))
    throw BackendError(device.to_string() + " is lost after a failure that cannot be undone",
                       "start a new process; the first error says what failed");
}

}  // namespace

struct Stream::Queue {
  Queue(Device device, Driver& driver)
      : device(device), driver(driver), handle(driver.make_stream(device)) {}

  // With the mutex held: the mark is behind what was submitted before the ticket was given out.
  void set_mark(std::uint64_t ticket) {
    if (marked < ticket) driver.mark(handle, ++marked);
  }
  void mark_behind(std::uint64_t ticket) {
    const std::lock_guard lock(mutex);
    set_mark(ticket);
  }
  void wait(std::uint64_t ticket) {
    mark_behind(ticket);
    try {
      while (!driver.wait(handle, ticket, slice)) check_interrupts();
    } catch (...) {
      stop(ticket);
      throw;
    }
  }
  void stop(std::uint64_t ticket);
  void let_go();
  std::exception_ptr take_failure(std::uint64_t ticket);

  const Device device;
  Driver& driver;
  void* const handle;
  std::mutex mutex;
  std::uint64_t marked = 0;  // the number of the last mark
  struct Kept {
    std::uint64_t ticket;
    std::shared_ptr<const Work> work;
  };
  std::deque<Kept> kept;  // in the order of tickets
  std::size_t kept_since_mark = 0;
  struct Failure {
    std::uint64_t ticket;
    std::exception_ptr thrown;
  };
  std::deque<Failure> failures;
};

// What the ticket stands for, as far as it goes on.
void Stream::Queue::stop(std::uint64_t ticket) {
  const std::lock_guard lock(mutex);
  for (const Kept& each : kept)
    if (each.ticket <= ticket)
      if (const auto* work = dynamic_cast<const Stoppable*>(each.work.get())) work->stop();
}

void Stream::Queue::let_go() {
  std::vector<std::shared_ptr<const Work>> done;  // destroyed without the mutex
  const std::lock_guard lock(mutex);
  if (kept.empty()) return;
  const std::uint64_t reached = driver.reached(handle);
  while (!kept.empty() && kept.front().ticket <= reached) {
    if (std::exception_ptr thrown = kept.front().work->failure())
      if (failures.size() < most_failures) failures.push_back({kept.front().ticket, thrown});
    done.push_back(std::move(kept.front().work));
    kept.pop_front();
  }
}

std::exception_ptr Stream::Queue::take_failure(std::uint64_t ticket) {
  const std::lock_guard lock(mutex);
  if (failures.empty() || failures.front().ticket > ticket) return {};
  std::exception_ptr thrown = failures.front().thrown;
  failures.pop_front();
  return thrown;
}

Stream Stream::make(Device device) {
  if (device.is_host()) return {};
  Driver& driver = *driver_of(device.kind);
  refuse_if_unusable(device, driver);
  [[maybe_unused]] static const int watched =
      pthread_atfork(nullptr, nullptr, [] { is_forked = has_streams.load(); });
  has_streams = true;
  return Stream(new Queue(device, driver));  // never destroyed: memory may outlive main
}

Stream Stream::current(Device device) {
  if (device.is_host()) return {};
  refuse_if_unusable(device, *driver_of(device.kind));
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
    if (scope->device() == device) return *scope;
  static thread_local Stream last;  // that of the device which this thread has asked for last
  if (last.queue_ && last.queue_->device == device) return last;
  static std::mutex& mutex = *new std::mutex;
  static auto& own = *new std::map<std::pair<Device::Kind, int>, Stream>;
  const std::lock_guard lock(mutex);
  Stream& stream = own[{device.kind, device.index}];
  if (stream.is_host()) stream = make(device);
  return last = stream;
}

Device Stream::device() const { return queue_ ? queue_->device : Device{}; }
void* Stream::handle() const { return queue_ ? queue_->handle : nullptr; }

std::uint64_t Stream::ticket() const {
  if (!queue_) return 0;
  const std::lock_guard lock(queue_->mutex);
  return queue_->marked + 1;
}

bool Stream::is_done(std::uint64_t ticket) const {
  if (!queue_) return true;
  queue_->mark_behind(ticket);
  return queue_->driver.reached(queue_->handle) >= ticket;
}

void Stream::wait_for(const Stream& other, std::uint64_t ticket) const {
  if (!other.queue_ || other == *this) return;
  if (queue_ && &queue_->driver == &other.queue_->driver) {
    other.queue_->mark_behind(ticket);
    queue_->driver.order(queue_->handle, other.queue_->handle, ticket);
  } else {
    other.queue_->wait(ticket);
  }
}

void Stream::synchronize(std::uint64_t ticket) const {
  if (!queue_) return;
  queue_->wait(ticket);
  queue_->let_go();
  if (const std::exception_ptr thrown = queue_->take_failure(ticket))
    std::rethrow_exception(thrown);
  refuse_if_unusable(queue_->device, queue_->driver);
}

void Stream::keep(std::shared_ptr<const Work> work) const {
  if (!queue_) return;
  std::uint64_t oldest = 0;
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->kept.push_back({queue_->marked + 1, std::move(work)});
    // A mark costs as much as starting a kernel.
    if (++queue_->kept_since_mark < few_kept) return;
    queue_->kept_since_mark = 0;
    queue_->set_mark(queue_->marked + 1);
    if (queue_->kept.size() >= most_kept) oldest = queue_->kept.front().ticket;
  }
  // Without interrupt checks: destructors keep things.
  while (oldest > 0 && !queue_->driver.wait(queue_->handle, oldest, slice)) {
  }
  queue_->let_go();
}

void Stream::let_go() const noexcept {
  if (queue_) queue_->let_go();
}

StreamScope::StreamScope(Stream stream) { scopes.push_back(stream); }
StreamScope::~StreamScope() { scopes.pop_back(); }

}  // namespace plait
