// See plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cudnn/plan.h"

#include <plait/base/error.h>

#include <algorithm>

#include "backends/cuda/driver.h"
#include "backends/cuda/measure.h"

namespace plait::cuda {
namespace {

struct HandleOnStream {
  cudnnHandle_t handle = nullptr;
  CUstream stream = nullptr;
};

// Handles that no thread has now, by device. Plans refer to those that they were made with, so that
// none is destroyed: they pass from thread to thread.
struct SpareHandles {
  std::mutex mutex;
  std::map<int, std::vector<HandleOnStream>> of_device;
};
SpareHandles& spare_handles() {
  static SpareHandles& spare = *new SpareHandles;
  return spare;
}

class ThreadHandles {
 public:
  ~ThreadHandles() {
    SpareHandles& spare = spare_handles();
    const std::lock_guard lock(spare.mutex);
    for (const auto& [device, handle] : mine_) spare.of_device[device].push_back(handle);
  }
  cudnnHandle_t on(Device device, CUstream stream) {
    auto at = mine_.find(device.index);
    if (at == mine_.end()) at = mine_.emplace(device.index, take(device)).first;
    HandleOnStream& mine = at->second;
    if (mine.stream != stream) {
      check_cudnn(cudnn_api()->cudnnSetStream(mine.handle, stream), "use a stream");
      mine.stream = stream;
    }
    return mine.handle;
  }

 private:
  static HandleOnStream take(Device device) {
    {
      SpareHandles& spare = spare_handles();
      const std::lock_guard lock(spare.mutex);
      std::vector<HandleOnStream>& free = spare.of_device[device.index];
      if (!free.empty()) {
        const HandleOnStream last = free.back();
        free.pop_back();
        return last;
      }
    }
    HandleOnStream made;
    check_cudnn(cudnn_api()->cudnnCreate(&made.handle), "start on a device");
    return made;
  }

  std::map<int, HandleOnStream> mine_;
};

Descriptor make_graph(const Operations& operations, const Machine& machine) {
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  machine.set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, {});
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            std::int64_t(operations.operations.size()), operations.operations.data());
  return std::move(graph.finalize());
}

std::vector<Descriptor> proposals(const Descriptor& graph, int mode, const Machine& machine) {
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.get());
  heuristic.choice(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  machine.set(heuristic, {}, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  heuristic.finalize();
  const auto read = [&](std::int64_t most, cudnnBackendDescriptor_t* into) {
    std::int64_t count = 0;
    check_cudnn(
        cudnn_api()->cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, into),
        "choose an engine");
    return count;
  };
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> places;
  for (std::int64_t i = read(0, nullptr); i > 0; --i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    places.push_back(found.back().get());
  }
  if (found.empty()) return found;
  found.erase(found.begin() + read(std::int64_t(found.size()), places.data()), found.end());
  return found;
}

std::vector<int> notes_of(const Descriptor& engine, int attribute, int type) {
  std::vector<int> notes(32);
  std::int64_t count = 0;
  check_cudnn(cudnn_api()->cudnnBackendGetAttribute(
                  engine.get(), attribute, type, std::int64_t(notes.size()), &count, notes.data()),
              "ask of an engine");
  notes.resize(std::size_t(count));
  return notes;
}

// Whether an engine rounds and orders sums as plait does.
bool is_exact(const Descriptor& engine, bool may_use_tensor_cores) {
  const std::vector<int> notes =
      notes_of(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
  return std::none_of(notes.begin(), notes.end(), [&](int note) {
    return note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_FFT ||
           note == CUDNN_NUMERICAL_NOTE_WINOGRAD ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && !may_use_tensor_cores);
  });
}

bool is_compiled_for_a_plan(const Descriptor& engine) {
  const std::vector<int> notes =
      notes_of(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
  return std::find(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) !=
         notes.end();
}

}  // namespace

void Machine::set(Descriptor& descriptor, std::optional<int> handle_attribute,
                  std::optional<int> description_attribute) const {
  if (description && description_attribute)
    descriptor.object(*description_attribute, description);
  else if (handle && handle_attribute)
    descriptor.set(*handle_attribute, CUDNN_TYPE_HANDLE, 1, &handle);
}

Machine machine_of(Device device, CUstream stream) {
  static thread_local ThreadHandles handles;
  return {handles.on(device, stream), nullptr};
}

Descriptor describe_machine(const std::string& json) {
  Descriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           std::int64_t(json.size() + 1), json.c_str());
  return std::move(made.finalize());
}

Plan::Plan(Operations operations, const Machine& machine, std::optional<Device> measured_on)
    : operations_(std::move(operations)), graph_(make_graph(operations_, machine)) {
  std::string reason = "its heuristics propose none";
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    choose(proposed(mode, machine, reason), machine, measured_on, reason);
    if (chosen_) return;
  }
  throw BackendError("cuDNN has no engine: " + reason, "leave the library out: PLAIT_CUDNN=0");
}

// Those that are as exact as plait is, most promising first.
std::vector<Plan::Engine> Plan::proposed(int mode, const Machine& machine,
                                         std::string& reason) const {
  std::vector<Engine> engines;
  int place = 0;
  for (Descriptor& proposal : proposals(graph_, mode, machine)) {
    const Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    proposal.read_object(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    const std::int64_t number = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    ++place;
    if (!is_exact(engine, operations_.may_use_tensor_cores)) {
      reason = "none is as exact as plait is";
      continue;
    }
    engines.push_back(
        {std::move(proposal),
         std::to_string(mode) + "." + std::to_string(place) + " engine " + std::to_string(number),
         number,
         0,
         is_compiled_for_a_plan(engine),
         {}});
  }
  return engines;
}

// Whether the library makes a plan of an engine.
bool Plan::finalize(Engine& engine, const Machine& machine, std::string& reason) const {
  // Its kernel cannot be loaded where no device is: that an engine is proposed is all there is to
  // know.
  if (machine.description && engine.is_compiled_for_a_plan) return true;
  Descriptor plan = make(engine, machine);
  const cudnnStatus_t status = cudnn_api()->cudnnBackendFinalize(plan.get());
  if (status != CUDNN_STATUS_SUCCESS) {
    reason = name_of_cudnn(status);
    return false;
  }
  const std::int64_t bytes = plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  if (bytes > operations_.most_workspace) {
    reason = "one wants " + std::to_string(bytes) + " bytes to work in";
    return false;
  }
  engine.workspace_bytes = std::size_t(bytes);
  engine.plan = std::move(plan);
  return true;
}

void Plan::choose(std::vector<Engine> engines, const Machine& machine,
                  std::optional<Device> measured_on, std::string& reason) {
  if (measured_on && operations_.most_candidates > 1)
    if (const std::optional<std::string> known = kept_choice(*measured_on, problem_text()))
      for (Engine& engine : engines)
        if (engine.identity == *known && finalize(engine, machine, reason))
          return take(std::move(engine));
  const std::size_t most = measured_on && measures() ? std::size_t(operations_.most_candidates) : 1;
  std::vector<Engine> candidates;
  for (Engine& engine : engines) {
    if (candidates.size() == most) break;
    if (finalize(engine, machine, reason)) candidates.push_back(std::move(engine));
  }
  if (candidates.empty()) return;
  const std::size_t chosen = candidates.size() > 1 ? fastest_of(candidates, *measured_on) : 0;
  take(std::move(candidates[chosen]));
}

void Plan::take(Engine engine) {
  chosen_ = std::move(engine);
  if (chosen_->plan) free_.push_back(std::move(*chosen_->plan));
}

std::string Plan::problem_text() const {
  return "cuDNN " + std::to_string(cudnn_api()->cudnnGetVersion()) + ", " + operations_.problem;
}

std::size_t Plan::fastest_of(std::span<const Engine> engines, Device device) const {
  static constexpr float one = 1;  // for a number that is given by its value
  std::vector<std::size_t> bytes{0};
  for (const Engine& engine : engines) bytes[0] = std::max(bytes[0], engine.workspace_bytes);
  for (const auto& [number, count] : operations_.bytes) bytes.push_back(count);
  std::vector<Candidate> candidates;
  for (const Engine& engine : engines)
    candidates.push_back(
        {engine.identity, [this, &engine, device](CUstream stream, std::span<void* const> blocks) {
           std::vector<TensorMemory> memory;
           std::size_t next = 1;
           for (const auto& [number, count] : operations_.bytes) {
             void* const block = blocks[next++];
             memory.push_back({number, count == 0 ? &one : block});
           }
           execute(*engine.plan, memory, blocks[0], machine_of(device, stream));
         }});
  return fastest(device, problem_text(), candidates, bytes);
}

Descriptor Plan::make(const Engine& engine, const Machine& machine) const {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  machine.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.configuration.get());
  return plan;
}

void Plan::execute(const Descriptor& plan, std::span<const TensorMemory> memory, void* workspace,
                   const Machine& machine) const {
  std::vector<std::int64_t> numbers;
  std::vector<void*> data;
  for (const TensorMemory& each : memory) {
    numbers.push_back(each.number);
    data.push_back(const_cast<void*>(each.data));
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::int64_t(data.size()),
           data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  check_cudnn(cudnn_api()->cudnnBackendExecute(machine.handle, plan.get(), pack.get()),
              operations_.action);
}

void Plan::run(std::span<const TensorMemory> memory, void* workspace,
               const Machine& machine) const {
  std::optional<Descriptor> plan;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      plan = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!plan) plan = std::move(make(*chosen_, machine).finalize());
  execute(*plan, memory, workspace, machine);
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(*plan));
}

PlanOrReason make_plan(Device device, Choose how, const std::function<Operations()>& describe) {
  try {
    const CurrentContext current(device);
    return {
        std::make_shared<const Plan>(describe(), machine_of(device),
                                     how == Choose::fastest ? std::optional(device) : std::nullopt),
        {}};
  } catch (const BackendError& error) {
    return {nullptr, error.problem()};
  }
}

}  // namespace plait::cuda
