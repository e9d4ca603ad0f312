// Memory on devices. See placement.h and Storage in allocator.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/placement.h"

#include <plait/base/allocator.h>
#include <plait/base/driver.h>
#include <plait/base/error.h>

#include <algorithm>

namespace plait {
namespace {

void* allocate_on(const Stream& stream, std::size_t bytes) {
  const Device device = stream.device();
  Driver& driver = *driver_of(device.kind);
  const std::size_t asked = std::max<std::size_t>(bytes, 1);
  if (void* data = driver.allocate(device, asked, stream.handle())) return data;
  stream.synchronize();  // what is kept for work that is done by now may hold memory
  if (void* data = driver.allocate(device, asked, stream.handle())) return data;
  throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes on " + device.to_string(),
                    "work on smaller pieces (a smaller batch, vmap with chunk=), or drop arrays "
                    "that are no longer needed");
}

}  // namespace

void Placement::wait_to_read(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  for (const Use& use : writes_) stream.wait_for(use.stream, use.ticket);
}

void Placement::wait_to_write(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  for (const Use& use : writes_) stream.wait_for(use.stream, use.ticket);
  for (const Use& use : reads_) stream.wait_for(use.stream, use.ticket);
}

void Placement::note(std::vector<Use>& uses, const Stream& stream) {
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
}

void Placement::release() noexcept {
  Driver& driver = *driver_of(device().kind);
  try {
    wait_to_write(home_);
  } catch (...) {  // a device that is lost waits for nothing
  }
  driver.deallocate(device(), data_, std::max<std::size_t>(bytes_, 1), home_.handle());
}

Storage Storage::allocate(std::size_t bytes, const Stream& stream) {
  if (stream.is_host()) return allocate(bytes);
  void* data = allocate_on(stream, bytes);
  auto* placement = new Placement(stream, data, bytes);
  Storage storage = foreign(data, bytes, [placement] {
    placement->release();
    delete placement;
  });
  storage.block_->placement = placement;
  storage.block_->device = stream.device();
  return storage;
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
