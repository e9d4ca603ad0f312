// The background thread and the executables that wait for it. See tiers.h.
// SPDX-License-Identifier: Apache-2.0
#include "run/tiers.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

namespace plait::tiers {
namespace {

constexpr int calls_before_promotion = 2;  // what runs once is not worth compiling

// One thread that does work in order, started with the first piece, joined at exit, forgotten by a
// forked child, which stays on first tiers.
class Background {
 public:
  // Never destroyed: at exit other threads may still ask for work, which is then dropped.
  static Background& instance() {
    static Background& background = *new Background;
    return background;
  }

  void add(std::function<void()> work) {
    if (is_child_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    if (!thread_.joinable()) start();
    queue_.push_back(std::move(work));
    wake_.notify_one();
  }

 private:
  void start() {
    pthread_atfork(nullptr, nullptr, [] { instance().is_child_ = true; });
    std::atexit([] { instance().stop(); });
    // Signals are for the threads of the user.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void stop() {
    if (is_child_) return;
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  void run() {
    setpriority(PRIO_PROCESS, id_t(gettid()), 10);  // of this thread, on Linux
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
      if (is_stopping_) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::atomic<bool> is_child_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool is_stopping_ = false;
  std::thread thread_;
};

class TieredExecutable final : public Executable,
                               public std::enable_shared_from_this<TieredExecutable> {
 public:
  TieredExecutable(std::shared_ptr<const Executable> first, Promote promote)
      : first_(std::move(first)), promote_(std::move(promote)) {}

  void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const override {
    current().run(inputs, outputs);
  }
  void run_into(std::span<const Buffer* const> inputs,
                std::span<const Buffer* const> outputs) const override {
    current().run_into(inputs, outputs);
  }
  std::unique_ptr<Session> open() const override { return current().open(); }
  const std::vector<Aval>& outputs() const override { return first_->outputs(); }
  std::int64_t arena_bytes() const override {
    return std::max(first_->arena_bytes(), better() ? better()->arena_bytes() : 0);
  }
  std::int64_t peak_bytes() const override {
    return std::max(first_->peak_bytes(), better() ? better()->peak_bytes() : 0);
  }

  std::string explain() const override {
    if (const Executable* better = this->better()) return better->explain() + "tier: last\n";
    const std::lock_guard lock(mutex_);
    return first_->explain() + "tier: first; " +
           (failure_.empty() ? "generated loops replace it after " +
                                   std::to_string(calls_before_promotion) + " calls"
                             : "generated loops failed: " + failure_) +
           "\n";
  }

 private:
  const Executable* better() const { return better_.load(std::memory_order_acquire); }

  const Executable& current() const {
    if (const Executable* better = this->better()) return *better;
    if (calls_.load(std::memory_order_relaxed) < calls_before_promotion &&
        calls_.fetch_add(1, std::memory_order_relaxed) + 1 == calls_before_promotion)
      Background::instance().add([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->promote();
      });
    return *first_;
  }

  void promote() const {
    try {
      better_owner_ = promote_();
      promote_ = nullptr;  // and the program that it holds
      better_.store(better_owner_.get(), std::memory_order_release);
    } catch (const std::exception& error) {
      log_line(std::string("a program stays on its first tier: ") + error.what());
      const std::lock_guard lock(mutex_);
      failure_ = error.what();
    }
  }

  const std::shared_ptr<const Executable> first_;
  mutable Promote promote_;  // the background thread's
  mutable std::atomic<int> calls_{0};
  mutable std::shared_ptr<const Executable> better_owner_;  // written once, before better_
  mutable std::atomic<const Executable*> better_{nullptr};
  mutable std::mutex mutex_;
  mutable std::string failure_;
};

}  // namespace

bool waits_for_all() {
  const char* wanted = std::getenv("PLAIT_WAIT");
  return wanted && *wanted && std::string_view(wanted) != "0";
}

std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote) {
  return std::make_shared<const TieredExecutable>(std::move(first), std::move(promote));
}

}  // namespace plait::tiers
