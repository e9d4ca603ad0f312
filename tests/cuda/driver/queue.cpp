// See queue.h.
// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <chrono>
#include <cstdlib>
#include <thread>

namespace cuda_standin {

std::atomic<unsigned>& seed() {
  static std::atomic<unsigned> seed = [] {
    const char* text = std::getenv("STANDIN_SEED");
    return text != nullptr ? unsigned(std::strtoul(text, nullptr, 10)) : 1u;
  }();
  return seed;
}

void Queue::start() {
  std::thread([self = shared_from_this()] { self->work(); }).detach();
}

void Queue::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    ++num_submitted_;
  }
  submitted_.notify_one();
}

void Queue::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  submitted_.notify_one();
}

bool Queue::is_done() {
  const std::lock_guard lock(mutex_);
  return num_done_ == num_submitted_;
}

void Queue::wait() {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this, last = num_submitted_] { return num_done_ >= last; });
}

void Queue::work() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [&] { return !works_.empty() || is_closed_; });
      if (works_.empty()) return;
      work = std::move(works_.front());
      works_.pop_front();
    }
    pause();
    work();
    work = nullptr;  // what it holds is gone when it counts as done
    {
      const std::lock_guard lock(mutex_);
      ++num_done_;
    }
    finished_.notify_all();
  }
}

void Queue::pause() {
  if (seed() == 0) return;
  const std::uint32_t chance = std::uint32_t(random_()) ^ seed() * 0x9E3779B9u;
  if (chance % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds((chance >> 3) % 300));
}

}  // namespace cuda_standin
