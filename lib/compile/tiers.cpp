// The background thread and the executables that wait for it. See tiers.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/tiers.h"

#include <plait/base/progress.h>
#include <plait/compile/compile.h>
#include <plait/rules/inline.h>
#include <plait/trace/devices.h>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "base/before_exit.h"

namespace plait::tiers {
namespace {

thread_local bool is_background = false;
thread_local std::span<const Backend* const> slow_backends_here;

struct Stopped {};  // thrown through work that the process no longer needs

// One thread that runs work in order. It starts with the first piece of work and is joined at exit.
// A forked child has no such thread, and stays on first tiers.
//
// NOTE: [fork] A child inherits the locks of its parent's other threads, but not the threads. So
// fork waits until the work reaches a point where it holds no lock (breathe), which is never far.
class Background {
 public:
  // Never destroyed: at exit other threads may still add work, which is then dropped.
  static Background& instance() {
    static Background& background = *new Background;
    return background;
  }

  bool is_child() const { return is_child_.load(std::memory_order_relaxed); }

  void add(std::function<void()> work) {
    if (is_child()) return;
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    if (!thread_.joinable()) start();
    queue_.push_back(std::move(work));
    changed_.notify_all();
  }

  // Joins the thread. Work that is added later is dropped.
  static void end() { instance().stop(); }
  void stop() {
    if (is_child()) return;
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  void breathe() {
    std::unique_lock lock(mutex_);
    if (is_stopping_) throw Stopped();
    if (num_forks_ == 0) return;
    is_working_ = false;
    changed_.notify_all();
    changed_.wait(lock, [this] { return num_forks_ == 0; });
    is_working_ = true;
  }

 private:
  void start() {
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(); },
                   [] { instance().in_child(); });
    before_exit(end);
    // Signals are for the user's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void before_fork() {
    std::unique_lock lock(mutex_);
    ++num_forks_;
    changed_.wait(lock, [this] { return !is_working_; });
    lock.release();  // until after the fork
  }
  void after_fork() {
    --num_forks_;
    mutex_.unlock();
    changed_.notify_all();
  }
  void in_child() {
    is_child_ = true;
    num_forks_ = 0;
    mutex_.unlock();
  }

  void run() {
    is_background = true;
    const SilentProgress silent;
    // Of this thread alone, on Linux. A call that waits for nothing goes first, but not for long:
    // it is many times slower as long as this takes.
    const auto thread = id_t(gettid());
    setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + 5);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_stopping_ || (num_forks_ == 0 && !queue_.empty()); });
      if (is_stopping_) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      is_working_ = true;
      lock.unlock();
      try {
        work();
      } catch (const Stopped&) {
      }
      work = nullptr;
      lock.lock();
      is_working_ = false;
      changed_.notify_all();
    }
  }

  std::atomic<bool> is_child_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  int num_forks_ = 0;  // that are waiting
  bool is_working_ = false, is_stopping_ = false;
  std::thread thread_;
};

// Registered from the start, so that no work begins while the process ends.
[[maybe_unused]] const bool ends = (before_exit(Background::end), true);

class TieredExecutable final : public Executable,
                               public std::enable_shared_from_this<TieredExecutable> {
 public:
  TieredExecutable(std::shared_ptr<const Executable> first, Promote promote, Worth worth,
                   std::string failure = {})
      : first_(std::move(first)),
        promote_(std::move(promote)),
        worth_(worth),
        failure_(std::move(failure)) {}

  void run(std::span<const Buffer* const> inputs, std::span<Buffer> outputs) const override {
    counted([&](const Executable& executable) { executable.run(inputs, outputs); });
  }
  void run_into(std::span<const Buffer* const> inputs,
                std::span<const Buffer* const> outputs) const override {
    counted([&](const Executable& executable) { executable.run_into(inputs, outputs); });
  }
  std::unique_ptr<Session> open() const override;
  std::vector<bool> carries_in_place() const override { return first_->carries_in_place(); }
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
           (failure_.empty()
                ? "generated loops replace it after " + std::to_string(worth_.calls) +
                      " calls, or " + std::to_string((worth_.time.count() + 999'999) / 1'000'000) +
                      " ms of them"
                : "generated loops failed: " + failure_) +
           "\n";
  }

  const Executable& current() const override { return better() ? *better() : *first_; }

  // Runs a call on the current tier, and counts it.
  template <class Call>
  void counted(const Call& call) const {
    if (const Executable* better = this->better()) return call(*better);
    if (is_asked_for_.load(std::memory_order_relaxed)) return call(*first_);
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    call(*first_);
    const std::int64_t time = std::chrono::nanoseconds(Clock::now() - start).count();
    const int calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::int64_t spent = spent_.fetch_add(time, std::memory_order_relaxed) + time;
    if (calls < worth_.calls && spent < worth_.time.count()) return;
    if (is_asked_for_.exchange(true, std::memory_order_relaxed)) return;
    Background::instance().add([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->promote();
    });
  }

  void promote() const {
    const std::lock_guard alone(promoting_);
    if (better() || !promote_) return;
    const Waiting waiting;  // the programs that it holds are compiled with it
    try {
      better_owner_ = promote_();
      better_.store(better_owner_.get(), std::memory_order_release);
    } catch (const std::exception& error) {
      log_line(std::string("a program stays on its first tier: ") + error.what());
      const std::lock_guard lock(mutex_);
      failure_ = error.what();
    }
    promote_ = nullptr;  // and the program that it holds
  }

 private:
  const Executable* better() const { return better_.load(std::memory_order_acquire); }

  const std::shared_ptr<const Executable> first_;
  mutable std::mutex promoting_;
  mutable Promote promote_;  // guarded by promoting_
  const Worth worth_;
  mutable std::atomic<int> calls_{0};
  mutable std::atomic<std::int64_t> spent_{0};  // nanoseconds, on the first tier
  mutable std::atomic<bool> is_asked_for_{false};
  mutable std::shared_ptr<const Executable> better_owner_;  // written once, before better_
  mutable std::atomic<const Executable*> better_{nullptr};
  mutable std::mutex mutex_;
  mutable std::string failure_;
};

// A session keeps nothing between runs, so each run may use another tier.
class TieredSession final : public Session {
 public:
  explicit TieredSession(const TieredExecutable& executable) : executable_(executable) {}
  void run(std::span<const View> inputs, std::span<const View> outputs,
           const Stream& stream) override {
    executable_.counted([&](const Executable& now) {
      if (&now != opened_) {
        session_ = now.open();
        opened_ = &now;
      }
      session_->run(inputs, outputs, stream);
    });
  }

 private:
  const TieredExecutable& executable_;
  const Executable* opened_ = nullptr;
  std::unique_ptr<Session> session_;
};

std::unique_ptr<Session> TieredExecutable::open() const {
  return std::make_unique<TieredSession>(*this);
}

bool is_asked_to_wait() {
  const char* wanted = std::getenv("PLAIT_WAIT");
  return wanted && *wanted && std::string_view(wanted) != "0";
}

}  // namespace

FirstTier::FirstTier(std::span<const Backend* const> slow) : outer_(slow_backends_here) {
  slow_backends_here = slow;
}
FirstTier::~FirstTier() { slow_backends_here = outer_; }
std::span<const Backend* const> FirstTier::slow_backends() { return slow_backends_here; }

std::chrono::nanoseconds compilation_time(std::size_t num_equations) {
  return std::chrono::milliseconds(3) * std::int64_t((num_equations + 9) / 10);
}

bool is_waiting() { return Waiting::is_on() || is_asked_to_wait(); }

std::shared_ptr<const Executable> make_tiered(std::shared_ptr<const Executable> first,
                                              Promote promote, Worth worth) {
  return std::make_shared<const TieredExecutable>(std::move(first), std::move(promote), worth);
}

std::shared_ptr<const Executable> make_failed(std::shared_ptr<const Executable> first,
                                              const std::string& reason) {
  log_line("a program stays on its first tier: " + reason);
  return std::make_shared<const TieredExecutable>(std::move(first), nullptr, Worth{}, reason);
}

void finish(const Executable& executable) {
  // In a forked child, the thread that was promoting may be gone.
  if (Background::instance().is_child()) return;
  if (const auto* tiered = dynamic_cast<const TieredExecutable*>(&executable)) tiered->promote();
}

void breathe() {
  if (is_background) Background::instance().breathe();
}

}  // namespace plait::tiers

namespace plait {
namespace {

void compile_calls_of(const Jaxpr& program) {
  for (const Equation& equation : program->equations)
    if (Inline::table().find(*equation.primitive))
      compile(open_body(equation.params), {.device = DeviceScope::current()});
}

[[maybe_unused]] const bool installed = (set_call_compiler(compile_calls_of), true);

}  // namespace
}  // namespace plait
