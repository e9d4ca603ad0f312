// See modules.h.
// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "compile/gathering.h"
#include "compiler.h"
#include "device_state.h"
#include "driver.h"

namespace plait::cuda {

class Module::Loaded {
 public:
  Loaded(Device device, const Cubin& cubin) : device_(device) {
    const CurrentContext current(device);
    DeviceState& state = state_of(device);
    state.require_memory(
        [&] { return driver_api()->cuModuleLoadData(&module_, cubin.bytes.data()); },
        "load a kernel");
  }
  ~Loaded() {
    if (is_forked()) return;
    try {
      const CurrentContext current(device_);
      driver_api()->cuModuleUnload(module_);  // fails where the device is lost: then it is gone
    } catch (...) {
    }
  }
  Loaded(const Loaded&) = delete;

  CUfunction function(const std::string& name) const {
    CUfunction function = nullptr;
    state_of(device_).require_memory(  // loads it, where modules are loaded as they are used
        [&] { return driver_api()->cuModuleGetFunction(&function, module_, name.c_str()); },
        "find a kernel");
    return function;
  }

  // What texts were compiled to together is loaded once.
  static std::shared_ptr<const Loaded> shared(Device device, const Compiled& compiled) {
    using Known = std::map<std::pair<std::string, FileCache::Key>, std::weak_ptr<const Loaded>>;
    static std::mutex& mutex = *new std::mutex;
    static Known& known = *new Known;
    const std::pair key{device.to_string(), compiled.key};
    {
      const std::lock_guard lock(mutex);
      if (const auto found = known.find(key); found != known.end())
        if (auto loaded = found->second.lock()) return loaded;
    }
    auto made = std::make_shared<const Loaded>(device, *compiled.cubin);
    const std::lock_guard lock(mutex);
    std::erase_if(known, [](const auto& each) { return each.second.expired(); });
    const auto [place, is_first] = known.emplace(key, made);
    auto loaded = place->second.lock();
    return loaded ? loaded : made;
  }

 private:
  const Device device_;
  CUmodule module_ = nullptr;
};

CUfunction Module::function(const std::string& name) const {
  return loaded_->function(name + ending_);
}

struct SharedModule::State {
  State(Device on, std::string text) : device(on), source(std::move(text)) {}
  const Device device;
  const std::string source;
  std::mutex mutex;
  std::condition_variable is_done;
  bool is_taken = false;  // by whoever compiles it
  std::unique_ptr<const Module> module;
  std::exception_ptr error;

  // Then it is compiled anew for whoever asks next: memory or a file may have been missing.
  bool has_failed() {
    const std::lock_guard lock(mutex);
    return error != nullptr;
  }
  // Whether nobody else has.
  bool take() {
    const std::lock_guard lock(mutex);
    return !std::exchange(is_taken, true);
  }
  void finish(const Compiled& compiled) {
    try {
      std::unique_ptr<const Module> made(
          new Module(Module::Loaded::shared(device, compiled), compiled.ending));
      const std::lock_guard lock(mutex);
      module = std::move(made);
      is_done.notify_all();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  void fail(std::exception_ptr thrown) {
    const std::lock_guard lock(mutex);
    error = std::move(thrown);
    is_done.notify_all();
  }
};

namespace {

// Threads that compile: at most as many as there are cores, and none while there is nothing to do.
class Compilers {
 public:
  static Compilers& get() {
    static Compilers& compilers = *new Compilers;
    return compilers;
  }
  static std::size_t most() { return std::max(1u, std::thread::hardware_concurrency()); }
  void add(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_.push_back(std::move(work));
    if (running_ >= most()) return;
    ++running_;
    try {
      std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {  // there are too many: this one does it
      lock.unlock();
      run();
    }
  }

 private:
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
  using Known = std::map<std::pair<std::string, std::string>, std::weak_ptr<State>>;
  static std::mutex& mutex = *new std::mutex;
  static Known& all = *new Known;
  {
    const std::lock_guard lock(mutex);
    std::weak_ptr<State>& known = all[{device.to_string(), source}];
    state_ = known.lock();
    if (state_ && !state_->has_failed()) return;
    std::erase_if(
        all, [&](const auto& each) { return &each.second != &known && each.second.expired(); });
    state_ = std::make_shared<State>(device, std::move(source));
    known = state_;
  }
  // What is asked for by one executable begins together.
  static thread_local std::vector<std::weak_ptr<State>> gathered;
  gathered.push_back(state_);
  if (gathered.size() > 1) return;
  compile_passes::Gathering::at_end([] {
    States wanted;
    for (const std::weak_ptr<State>& each : std::exchange(gathered, {}))
      if (auto state = each.lock()) wanted.push_back(std::move(state));
    begin(std::move(wanted));
  });
}

void SharedModule::begin(States states) {
  std::erase_if(states, [](const auto& state) { return !state->take(); });
  if (states.empty()) return;
  Compilers::get().add([states = std::move(states)] { compile_all(states); });
}

// Those that are on disk are loaded; the others are shared out.
void SharedModule::compile_all(const States& states) {
  std::map<std::string, States> missing;  // by architecture
  for (const auto& state : states) try {
      const std::string architecture = architecture_of(state->device);
      if (const auto found = find_compiled(state->source, architecture))
        state->finish(*found);
      else
        missing[architecture].push_back(state);
    } catch (...) {
      state->fail(std::current_exception());
    }
  for (const auto& [architecture, these] : missing) {
    std::vector<std::string> sources;
    for (const auto& state : these) sources.push_back(state->source);
    for (const std::vector<std::size_t>& program : programs_of(sources, Compilers::most())) {
      States together;
      for (const std::size_t number : program) together.push_back(these[number]);
      Compilers::get().add([together = std::move(together)] { compile_program(together); });
    }
  }
}

// Each alone where the program is refused: then those that are right are there, and the others say
// what is wrong.
void SharedModule::compile_program(const States& states) {
  std::vector<std::string> sources;
  for (const auto& state : states) sources.push_back(state->source);
  std::vector<Compiled> compiled;
  try {
    compiled = compile_together(sources, architecture_of(states[0]->device));
  } catch (...) {
    if (states.size() == 1) return states[0]->fail(std::current_exception());
    for (const auto& state : states) compile_program({state});
    return;
  }
  for (std::size_t i = 0; i < states.size(); ++i) states[i]->finish(compiled[i]);
}

const Module& SharedModule::get() const {
  if (state_->take()) compile_all({state_});
  std::unique_lock lock(state_->mutex);
  state_->is_done.wait(lock, [&] { return state_->module || state_->error; });
  if (state_->error) std::rethrow_exception(state_->error);
  return *state_->module;
}

}  // namespace plait::cuda
