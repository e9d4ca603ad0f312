// Queues: the work of a stream, which a thread does in order, with pauses by seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>

namespace cuda_standin {

// Something that will have happened.
class Mark {
 public:
  void reach() {
    {
      const std::lock_guard lock(mutex_);
      is_reached_ = true;
      when_ = std::chrono::steady_clock::now();
    }
    reached_.notify_all();
  }
  bool is_reached() {
    const std::lock_guard lock(mutex_);
    return is_reached_;
  }
  std::chrono::steady_clock::time_point when() {
    const std::lock_guard lock(mutex_);
    return when_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    reached_.wait(lock, [&] { return is_reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  bool is_reached_ = false;
  std::chrono::steady_clock::time_point when_;
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  explicit Queue(unsigned seed) : random_(seed) {}
  void start();  // its thread, which lives until the queue is closed and done
  void submit(std::function<void()> work);
  void close();
  bool is_done();
  void wait();  // until all is done that was submitted by now

 private:
  void work();
  void pause();

  std::minstd_rand random_;
  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  std::deque<std::function<void()>> works_;
  std::uint64_t num_submitted_ = 0, num_done_ = 0;
  bool is_closed_ = false;
};

// 0: no pauses.
std::atomic<unsigned>& seed();

}  // namespace cuda_standin
