// Memory on devices. See placement.h and Storage in allocator.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/placement.h"

#include <plait/base/allocator.h>
#include <plait/base/driver.h>
#include <plait/base/error.h>
#include <plait/base/exchange.h>

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace plait {
namespace {

void* allocate_on(const Stream& stream, std::size_t bytes) {
  const Device device = stream.device();
  Driver& driver = *driver_of(device.kind);
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  if (void* data = driver.allocate(device, asked, stream.handle())) return data;
  stream.synchronize();  // what is kept for work that is done by now may hold memory
  if (void* data = driver.allocate(device, asked, stream.handle())) return data;
  throw_out_of_memory(device, bytes);
}

// What the next storage of this thread is made of, instead of memory of the driver.
struct Lent {
  void* data;
  std::function<void()> give_back;
};
thread_local Lent* lent = nullptr;

struct GivingBack final : Stream::Work {
  explicit GivingBack(std::function<void()> give_back) : give_back(std::move(give_back)) {}
  ~GivingBack() override { give_back(); }
  const std::function<void()> give_back;
};

}  // namespace

// Never destroyed. The mutex is held around fork, so that the child does not inherit it locked by a
// thread that it does not have.
struct Placement::Holders {
  std::mutex mutex;
  Placement* first = nullptr;
};
Placement::Holders& Placement::holders() {
  static Holders& all = *[] {
    pthread_atfork([] { holders().mutex.lock(); }, [] { holders().mutex.unlock(); },
                   [] { holders().mutex.unlock(); });
    return new Holders;
  }();
  return all;
}

Placement::Placement(const Stream& home, void* data, std::size_t bytes,
                     std::function<void()> give_back)
    : home_(home),
      data_(data),
      bytes_(bytes),
      give_back_(std::move(give_back)),
      writes_{{home, home.ticket()}} {
  if (!is_named()) return;
  asked_in_ = Source::current();
  const std::lock_guard lock(holders().mutex);
  next_ = std::exchange(holders().first, this);
  if (next_) next_->previous_ = this;
}

std::string holders_of(Device device) {
  struct Held {
    std::size_t bytes = 0, count = 0;
    Source asked_in;
  };
  std::vector<Held> all;
  {
    const std::lock_guard lock(Placement::holders().mutex);
    for (const Placement* one = Placement::holders().first; one; one = one->next_) {
      if (one->device() != device) continue;
      const auto known = std::ranges::find_if(all, [&](const Held& held) {
        return held.bytes == one->bytes_ && held.asked_in == one->asked_in_;
      });
      if (known == all.end())
        all.push_back({one->bytes_, 1, one->asked_in_});
      else
        ++known->count;
    }
  }
  constexpr std::size_t most_lines = 5;
  std::ranges::stable_sort(all, std::greater(),
                           [](const Held& held) { return held.bytes * held.count; });
  if (all.size() > most_lines) all.resize(most_lines);
  std::string text;
  for (const Held& held : all)
    text += "\n    " + (held.count > 1 ? std::to_string(held.count) + " x " : std::string()) +
            std::to_string(held.bytes) +
            " bytes: " + (held.asked_in ? held.asked_in.to_string() : "asked for by no known line");
  return text;
}

void throw_out_of_memory(Device device, std::size_t bytes) {
  std::string what = "cannot allocate " + std::to_string(bytes) + " bytes on " + device.to_string();
  if (const auto known = driver_of(device.kind)->memory_statistics(device))
    what += ", where " + std::to_string(known->in_use) + " of " + std::to_string(known->limit) +
            " are in use";
  if (const std::string held = holders_of(device); !held.empty()) what += ", most of it by" + held;
  throw MemoryError(std::move(what),
                    "work on smaller pieces (a smaller batch, vmap with chunk=), or drop arrays "
                    "that are no longer needed");
}

void Placement::wait_to_read(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  for (const Use& use : writes_) stream.wait_for(use.stream, use.ticket);
  if (written_by_ && written_by_->is_fine()) written_by_.reset();
  if (written_by_ && OutcomeScope::current()) OutcomeScope::current()->read(written_by_);
}

void Placement::wait_to_write(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  for (const Use& use : writes_) stream.wait_for(use.stream, use.ticket);
  for (const Use& use : reads_) stream.wait_for(use.stream, use.ticket);
}

void Placement::note(Uses& uses, const Stream& stream) {
  for (Use& use : uses)
    if (use.stream == stream) {
      use.ticket = stream.ticket();
      return;
    }
  uses.push_back({stream, stream.ticket()});
}

void Placement::note_read(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  note(reads_, stream);
}

void Placement::note_written(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  reads_.clear();
  writes_.clear();
  note(writes_, stream);
  written_by_ = OutcomeScope::current();
}

void Placement::deallocate() noexcept {
  if (!give_back_)
    return driver_of(device().kind)
        ->deallocate(device(), data_, std::max<std::size_t>(bytes_, 1), home_.handle());
  const std::uint64_t ticket = home_.ticket();
  home_.keep(std::make_shared<GivingBack>(std::move(give_back_)));
  if (home_.is_done(ticket)) home_.let_go();  // else whoever waits next gives it back
}

void Placement::release() noexcept {
  if (is_named()) {
    const std::lock_guard lock(holders().mutex);
    if (next_) next_->previous_ = previous_;
    (previous_ ? previous_->next_ : holders().first) = next_;
  }
  try {
    wait_to_write(home_);
  } catch (...) {  // a device that is lost waits for nothing
  }
  deallocate();
}

Storage Storage::allocate(std::size_t bytes, const Stream& stream) {
  if (stream.is_host()) return allocate(bytes);
  Lent* const from = std::exchange(lent, nullptr);
  void* data = from ? from->data : allocate_on(stream, bytes);
  auto* placement = new Placement(stream, data, bytes, from ? std::move(from->give_back) : nullptr);
  // Nothing of plait's is written where the storage does not begin (Planned::can_donate).
  Storage storage = foreign(from ? placement : data, bytes, [placement] {
    placement->release();
    delete placement;
  });
  storage.block_->placement = placement;
  storage.block_->device = stream.device();
  return storage;
}

Storage lent_storage(void* data, std::size_t bytes, const Stream& stream,
                     std::function<void()> give_back) {
  Lent memory{data, std::move(give_back)};
  lent = &memory;
  return Storage::allocate(bytes, stream);
}

void Storage::wait_to_read(const Stream& stream) const {
  if (block_ && block_->placement) block_->placement->wait_to_read(stream);
}
void Storage::wait_to_write(const Stream& stream) const {
  if (block_ && block_->placement) block_->placement->wait_to_write(stream);
}
void Storage::note_read(const Stream& stream) const {
  if (block_ && block_->placement) block_->placement->note_read(stream);
}
void Storage::note_written(const Stream& stream) const {
  if (block_ && block_->placement) block_->placement->note_written(stream);
}

}  // namespace plait
