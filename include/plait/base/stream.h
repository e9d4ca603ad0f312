// Streams: ordered queues of work on a device. Work of the CPU is done when the call that asks for
// it returns; work of other devices later, in the order of its stream.
//
// Host code that needs a result takes the stream's ticket once the work was submitted, and waits
// for it. Marks on the device are set only when somebody asks: a call that nobody waits for costs
// none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <cstdint>
#include <exception>
#include <memory>

namespace plait {

class Stream {
 public:
  Stream() = default;  // the CPU's
  // The stream of this thread's calls: that of a StreamScope, or else the one that the device has.
  // BackendError when the device is lost, and in the child of a fork.
  static Stream current(Device device);
  static Stream make(Device device);  // a further one, for the life of the process

  bool is_host() const { return !queue_; }
  Device device() const;
  void* handle() const;  // the driver's; nullptr on the CPU

  // A number that is reached once what was submitted by now is done.
  std::uint64_t ticket() const;
  bool is_done(std::uint64_t ticket) const;
  // Work that is submitted here from now on waits until other has reached its ticket.
  void wait_for(const Stream& other, std::uint64_t ticket) const;
  // Waits until the ticket is reached, and throws what failed on the way, each failure once. Calls
  // the interrupt check (interrupt.h) meanwhile.
  void synchronize(std::uint64_t ticket) const;
  void synchronize() const { synchronize(ticket()); }

  // Something that must live until submitted work is done, and may know that the work has failed.
  struct Work {
    virtual ~Work() = default;
    virtual std::exception_ptr failure() const { return {}; }  // asked once the work is done
  };
  // Keeps it until what was submitted by now is done. Waits where much more is kept already.
  void keep(std::shared_ptr<const Work> work) const;
  void let_go() const noexcept;  // of what is done

  bool operator==(const Stream&) const = default;

 private:
  struct Queue;
  explicit Stream(Queue* queue) : queue_(queue) {}
  Queue* queue_ = nullptr;
};

// Makes a stream the current one of its device in this thread, while the scope lives.
class StreamScope {
 public:
  explicit StreamScope(Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;
};

}  // namespace plait
