// Drivers: what the memory and the streams of a kind of device need. A new accelerator registers
// one, and a backend whose kernels run there.
//
// Order is kept by plait (stream.h), not by drivers: who uses which memory, when work is done, what
// is kept alive until then, and what failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

// Thread-safe. Streams are handles of the driver's own, never null.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view name() const = 0;  // of the kind: "cuda"
  virtual int num_devices() const = 0;
  virtual std::string describe(Device device) const = 0;  // for people: model, memory
  virtual int dlpack_type() const = 0;                    // DLDeviceType
  // Whether a failure that cannot be undone has happened: then the device is not used again.
  virtual bool is_lost(Device device) const = 0;

  // Memory on the device, aligned to 256 bytes, that is free for use in the order of the stream;
  // nullptr when none is left. It is given back behind what the stream was given to do.
  virtual void* allocate(Device device, std::size_t bytes, void* stream) = 0;
  virtual void deallocate(Device device, void* data, std::size_t bytes, void* stream) noexcept = 0;
  // Host memory that the device copies from and to; nullptr when none is left.
  virtual void* allocate_staging(Device device, std::size_t bytes) = 0;
  virtual void deallocate_staging(Device device, void* data, std::size_t bytes) noexcept = 0;
  // What is known of the device's memory, in bytes, without using the device.
  struct MemoryStatistics {
    std::size_t in_use = 0, most_in_use = 0;  // of blocks that were given out
    std::size_t num_allocations = 0, largest = 0;
    std::size_t reserved = 0;      // taken from the device: in use, or kept for later
    std::size_t largest_kept = 0;  // of the blocks that are kept
    std::size_t limit = 0;         // of what may be in use
  };
  virtual std::optional<MemoryStatistics> memory_statistics(Device device) const {
    (void)device;
    return {};
  }
  // Gives back what is kept, for other libraries and processes.
  virtual void release_memory(Device device) { (void)device; }

  virtual void* make_stream(Device device) = 0;  // for the life of the process
  // Sets a mark behind what the stream was given to do. Numbers ascend.
  virtual void mark(void* stream, std::uint64_t number) = 0;
  virtual std::uint64_t reached(void* stream) = 0;  // the last mark that was reached; never waits
  // Returns whether the mark was reached in this time.
  virtual bool wait(void* stream, std::uint64_t number, std::chrono::milliseconds most) = 0;
  // What later is given to do from now on waits, on the device, until the mark of stream is
  // reached. Both belong to devices of this driver.
  virtual void order(void* later, void* stream, std::uint64_t number) = 0;

  // Streams of other libraries, by the numbers of DLPack (__dlpack__(stream=)): 1 and 2 are those
  // of the kind that have no handle, others are handles. By default the kind has no numbers, and
  // whoever exchanges memory waits on the host.
  virtual std::optional<std::int64_t> foreign_number(void* stream) const {  // of one of ours
    (void)stream;
    return {};
  }
  // As order, with a stream of another library that is given work later; or as if it had just set
  // the mark. They return whether they could.
  virtual bool order_foreign(std::int64_t later, void* stream, std::uint64_t number) {
    (void)later, (void)stream, (void)number;
    return false;
  }
  virtual bool order_behind_foreign(void* later, std::int64_t stream) {
    (void)later, (void)stream;
    return false;
  }

  // Work of a stream. Views have equal shapes and dtypes, and any strides on the device; host
  // memory is staging, and dense. The views themselves are free again on return.
  enum class Between : std::uint8_t { device, from_host, to_host };
  virtual void copy(void* stream, const View& from, const View& to, Between memories) = 0;
  virtual void clear(void* stream, void* data, std::size_t bytes) = 0;

  // Work that is given to a stream once, and run there many times for less than giving it costs.
  // give() submits it, by this thread to this stream: kernels, copies on the device and clears, but
  // no allocations and no waits. It is captured instead of run.
  struct Captured {
    virtual ~Captured() = default;
  };
  // nullptr where the kind captures nothing, or this work is not worth it.
  virtual std::unique_ptr<Captured> capture(void* stream, const std::function<void()>& give) {
    (void)stream, (void)give;
    return nullptr;
  }
  // give() submits the same work with other memory. Returns whether that was cheaper than capturing
  // anew. After an error the captured work is of no use.
  virtual bool change(void* stream, Captured& captured, const std::function<void()>& give) {
    (void)stream, (void)captured, (void)give;
    return false;
  }
  virtual void replay(void* stream, Captured& captured) { (void)stream, (void)captured; }
};

// Adds a kind of device for the life of the process. InternalError for a name that is taken.
Device::Kind register_driver(std::unique_ptr<Driver> driver);
Driver* driver_of(Device::Kind kind);  // nullptr: the CPU

}  // namespace plait
