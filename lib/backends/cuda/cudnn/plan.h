// Plans: graphs of cuDNN with the engine that runs them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "backends/cuda/cudnn/descriptor.h"

namespace plait::cuda {

// What a plan is made for: a device through the handle that a thread has for it, or the description
// of one, by which the library tells what it takes where no device is.
struct Machine {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t description = nullptr;

  void set(Descriptor& descriptor, std::optional<int> handle_attribute,
           std::optional<int> description_attribute) const;
};
// This thread's, whose work goes to the stream. The device's context is current.
Machine machine_of(Device device, CUstream stream = nullptr);
// A finalized description, of JSON as the library writes it.
Descriptor describe_machine(const std::string& json);

// Operations between tensors, described to the library.
struct Operations {
  std::vector<Descriptor> all;  // with all that they refer to
  std::vector<cudnnBackendDescriptor_t> operations;
  // Those in memory, by number. A number that is given by its value has no bytes.
  std::map<std::int64_t, std::size_t> bytes;
  std::string problem;  // all that the choice of an engine depends on, beside the device
  // Of float32 these round factors to 10 bits.
  bool may_use_tensor_cores = true;
  std::int64_t most_workspace = 0;
  int most_candidates = 1;  // engines that are measured, each of which is compiled
  const char* action = "";  // to run them: "start a convolution"

  // Keeps a finalized descriptor.
  cudnnBackendDescriptor_t keep(Descriptor descriptor) {
    all.push_back(std::move(descriptor));
    return all.back().get();
  }
};

// Memory of a tensor, by the number that it has in its graph. That of a number which is given by
// its value is the host's.
struct TensorMemory {
  std::int64_t number = 0;
  const void* data = nullptr;
};

// Which engine is taken, of those that a graph has: the first one that the library proposes, or the
// fastest of some, measured on a device (measure.h).
enum class Choose { first, fastest };

// Run from many threads at once.
class Plan {
 public:
  // With an engine that takes the graph and is as exact as plait is: it adds up in the type of the
  // graph's sums, in an order that does not change, and NaN stays where it is. BackendError where
  // there is none. measured_on: the device whose fastest engine is chosen; else it is the first.
  Plan(Operations operations, const Machine& machine, std::optional<Device> measured_on = {});
  std::int64_t engine() const { return chosen_->number; }
  std::size_t workspace_bytes() const { return chosen_->workspace_bytes; }
  // What the machine's handle is set to runs it.
  void run(std::span<const TensorMemory> memory, void* workspace, const Machine& machine) const;

 private:
  // An engine with the choices that it leaves open.
  struct Engine {
    Descriptor configuration;
    std::string identity;  // among those proposed
    std::int64_t number = 0;
    std::size_t workspace_bytes = 0;
    bool is_compiled_for_a_plan = false;
    std::optional<Descriptor> plan;  // finalized
  };
  std::vector<Engine> proposed(int mode, const Machine& machine, std::string& reason) const;
  bool finalize(Engine& engine, const Machine& machine, std::string& reason) const;
  void choose(std::vector<Engine> engines, const Machine& machine,
              std::optional<Device> measured_on, std::string& reason);
  void take(Engine engine);
  std::string problem_text() const;
  std::size_t fastest_of(std::span<const Engine> engines, Device device) const;
  Descriptor make(const Engine& engine, const Machine& machine) const;  // to be finalized
  void execute(const Descriptor& plan, std::span<const TensorMemory> memory, void* workspace,
               const Machine& machine) const;

  Operations operations_;
  Descriptor graph_;
  std::optional<Engine> chosen_;
  // The library's plans are not to be used by several threads at once: each call has its own.
  mutable std::mutex mutex_;
  mutable std::vector<Descriptor> free_;
};

// The plan of a device for a graph, or why there is none. Graph: what describe makes operations of,
// with an order. It is looked for once.
struct PlanOrReason {
  std::shared_ptr<const Plan> plan;
  std::string reason;
};
PlanOrReason make_plan(Device device, Choose how, const std::function<Operations()>& describe);

template <class Graph>
PlanOrReason plan_for(Device device, const Graph& graph, Choose how = Choose::fastest) {
  constexpr std::size_t most_plans = 4096;
  using Key = std::tuple<std::uint8_t, Choose, Graph>;
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<Key, PlanOrReason>;
  const Key key{device.index, how, graph};
  {
    const std::lock_guard lock(mutex);
    if (const auto at = known.find(key); at != known.end()) return at->second;
  }
  const PlanOrReason made = make_plan(device, how, [&] { return describe(graph); });
  const std::lock_guard lock(mutex);
  if (known.size() >= most_plans) known.clear();
  return known.emplace(key, made).first->second;
}

}  // namespace plait::cuda
