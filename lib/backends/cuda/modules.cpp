// See modules.h.
// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "compiler.h"
#include "driver.h"

namespace plait::cuda {

Module::Module(Device device, const std::string& source) : device_(device) {
  const Cubin cubin = compile(source, architecture_of(device));
  const CurrentContext current(device);
  check(driver_api()->cuModuleLoadData(&module_, cubin.bytes.data()), "load a kernel");
}

Module::~Module() {
  if (is_forked()) return;
  const CurrentContext current(device_);
  driver_api()->cuModuleUnload(module_);  // fails where the device is lost: then it is gone
}

CUfunction Module::function(const std::string& name) const {
  CUfunction function = nullptr;
  check(driver_api()->cuModuleGetFunction(&function, module_, name.c_str()), "find a kernel");
  return function;
}

struct SharedModule::State {
  State(Device on, std::string text) : device(on), source(std::move(text)) {}
  const Device device;
  const std::string source;
  std::mutex mutex;
  std::condition_variable is_done;
  bool is_taken = false;  // by the thread that compiles it
  std::unique_ptr<const Module> module;
  std::exception_ptr error;

  // Then it is compiled anew for whoever asks next: memory or a file may have been missing.
  bool has_failed() {
    const std::lock_guard lock(mutex);
    return error != nullptr;
  }
  // Compiles it on this thread, unless another one does.
  void load() {
    {
      const std::lock_guard lock(mutex);
      if (std::exchange(is_taken, true)) return;
    }
    std::unique_ptr<const Module> made;
    std::exception_ptr thrown;
    try {
      made = std::make_unique<const Module>(device, source);
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    module = std::move(made);
    error = thrown;
    is_done.notify_all();
  }
};

namespace {

using States = std::map<std::pair<std::string, std::string>, std::weak_ptr<void>>;

// Threads that compile: at most as many as there are cores, and none while there is nothing to do.
class Compilers {
 public:
  static Compilers& get() {
    static Compilers& compilers = *new Compilers;
    return compilers;
  }
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    if (running_ >= most()) return;
    ++running_;
    std::thread([this] { run(); }).detach();
  }

 private:
  static std::size_t most() { return std::max(1u, std::thread::hardware_concurrency()); }
  void run() {
    std::unique_lock lock(mutex_);
    while (!work_.empty()) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
    --running_;
  }
  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
  std::size_t running_ = 0;
};

}  // namespace

SharedModule::SharedModule(Device device, std::string source) {
  static std::mutex& mutex = *new std::mutex;
  static States& states = *new States;
  const std::lock_guard lock(mutex);
  std::weak_ptr<void>& known = states[{device.to_string(), source}];
  state_ = std::static_pointer_cast<State>(known.lock());
  if (state_ && !state_->has_failed()) return;
  std::erase_if(states,
                [&](const auto& each) { return &each.second != &known && each.second.expired(); });
  state_ = std::make_shared<State>(device, std::move(source));
  known = state_;
  Compilers::get().add([state = std::weak_ptr(state_)] {
    if (const auto wanted = state.lock()) wanted->load();
  });
}

const Module& SharedModule::get() const {
  state_->load();
  std::unique_lock lock(state_->mutex);
  state_->is_done.wait(lock, [&] { return state_->module || state_->error; });
  if (state_->error) std::rethrow_exception(state_->error);
  return *state_->module;
}

}  // namespace plait::cuda
