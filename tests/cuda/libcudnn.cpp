// A stand-in for cuDNN's graph interface: descriptors take the attributes that plait sets, once
// each and before they are finalized, and are checked when they are; graphs of a convolution, or
// one of its gradients, with sums and relu behind it, and of attention and its gradient run one
// element after the other on the streams of the driver's stand-in.
//
// Heuristics propose engines that plait must not use, first: their notes say that they round
// (tensor cores for float32), add up in any order or spread NaN, and they do so; one is refused
// when it becomes a plan. Variable of the environment: STANDIN_RELU=drops_nan makes relu max(x, 0).
// SPDX-License-Identifier: Apache-2.0
#include "libcudnn.h"

#include <chrono>
#include <thread>

#include "cudnn/attention.h"
#include "cudnn/convolution.h"
#include "driver/hooks.h"

#define STANDIN_EXPORT extern "C" [[gnu::visibility("default")]]

namespace plait::cuda {
struct cudnnContext {
  int device = 0;
  CUstream stream = nullptr;
};
}  // namespace plait::cuda

namespace {

using namespace standin;

std::atomic<long> num_graphs{0}, num_plans{0}, num_handles{0};
std::atomic<int> last_engine{0};
std::mutex mutex;
std::string last_graph, failing_call;
int failing_status = 0;

std::optional<cudnnStatus_t> asked_to_fail(const char* call) {
  const std::lock_guard lock(mutex);
  if (failing_call != call) return std::nullopt;
  failing_call.clear();
  return refuse(failing_status, "as asked");
}

std::shared_ptr<const Program> program_of(const Object& graph) {
  const std::vector<Object*> operations = graph.all<Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (names_of(operations[0]->kind)) return std::make_shared<ConvolutionProgram>(operations);
  return std::make_shared<AttentionProgram>(operations);
}

cudnnStatus_t check_graph(const Object& object) {
  const std::vector<Object*> operations = object.all<Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (const Object* operation : operations)
    if (!is_alive(operation) || !operation->is_finalized) return bad("a graph's operation");
  const bool is_convolution = names_of(operations[0]->kind) != nullptr;
  for (std::size_t i = 1; is_convolution && i < operations.size(); ++i) {
    if (operations[i]->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a graph that stands for nothing");
    if (const cudnnStatus_t status = check_step(*operations[i])) return status;
  }
  const std::shared_ptr<const Program> program = program_of(object);
  if (const cudnnStatus_t status = program->check()) return status;
  const std::vector<Tensor> written = program->written();
  if (written.empty() || written.back().is_virtual) return bad("a graph without a result");
  std::set<std::int64_t> numbers;
  for (const Tensor& tensor : program->in_memory())
    if (!numbers.insert(tensor.number).second) return bad("two tensors of one number");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_plan(Object& plan) {
  const Object* configuration =
      plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (!configuration || !is_alive(configuration->graph)) return bad("a plan's configuration");
  if (plan.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == plan.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
    return bad("a plan's device");
  if (configuration->engine == never_a_plan)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an engine that never runs");
  plan.engine = configuration->engine;
  plan.graph = configuration->graph;
  plan.workspace = program_of(*plan.graph)->workspace(plan.engine);
  ++num_plans;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_object(Object& object) {
  for (const Known& each : known)
    if (each.kind == object.kind && each.is_needed && !object.has(each.attribute))
      return bad("attribute " + std::to_string(each.attribute) + " is not set");
  if (const ConvolutionNames* names = names_of(object.kind)) {
    for (const int attribute :
         {names->image, names->kernel, names->result, names->how, names->scale, names->old_scale})
      if (!object.has(attribute))
        return bad("attribute " + std::to_string(attribute) + " is not set");
    return check_convolution(object);
  }
  switch (object.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(object);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_how(object);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(object);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return object.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                           CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                 ? CUDNN_STATUS_SUCCESS
                 : bad("a heuristic's graph");
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return check_plan(object);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

// An execution, with numbers that are given by their values as they were then.
struct Call {
  std::shared_ptr<const Program> program;
  int engine, device;
  std::map<std::int64_t, std::uint64_t> addresses;
  std::map<std::int64_t, float> given;
  std::uint64_t workspace;
  std::int64_t workspace_bytes;

  void run() {
    std::map<std::int64_t, void*> memory;
    for (const Tensor& tensor : program->in_memory()) {
      void* const data = tensor.is_by_value ? static_cast<void*>(&given.at(tensor.number))
                                            : standin_memory(device, addresses.at(tensor.number),
                                                             tensor.reach(), "a tensor");
      if (data == nullptr) return;
      memory.emplace(tensor.number, data);
    }
    if (workspace_bytes > 0) {
      void* const spoilt =
          standin_memory(device, workspace, std::size_t(workspace_bytes), "a graph's workspace");
      if (spoilt == nullptr) return;
      std::memset(spoilt, 0xab, std::size_t(workspace_bytes));
    }
    program->run(engine, memory);
    const std::vector<int> longer = planted_engines();
    if (const std::size_t which = std::size_t(engine - first_planted);
        engine >= first_planted && which < longer.size())
      std::this_thread::sleep_for(std::chrono::microseconds(longer[which]));
  }
};

Object& object_of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Object*>(descriptor); }

cudnnStatus_t copy_out(const void* from, std::int64_t count, std::size_t bytes, std::int64_t most,
                       std::int64_t* found, void* into) {
  *found = count;
  std::memcpy(into, from, std::size_t(std::min(count, most)) * bytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_proposals(const Object& heuristic, std::int64_t most, std::int64_t* count,
                             void* into) {
  const Object* graph = heuristic.one<Object*>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph->has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) ==
      heuristic.has(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))
    return bad("a heuristic's device");
  const std::vector<int> engines =
      program_of(*graph)->engines(heuristic.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE));
  *count = std::int64_t(engines.size());
  for (std::int64_t i = 0; i < std::min(*count, most); ++i) {
    Object& configuration = object_of(static_cast<cudnnBackendDescriptor_t*>(into)[i]);
    if (configuration.kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return bad("no configuration");
    configuration.engine = engines[std::size_t(i)];
    configuration.graph = graph;
    configuration.is_finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

STANDIN_EXPORT std::size_t cudnnGetVersion() { return 91900; }
STANDIN_EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
STANDIN_EXPORT void cudnnGetLastErrorString(char* message, std::size_t most) {
  if (most == 0) return;
  const std::size_t count = std::min(most - 1, said().size());
  std::memcpy(message, said().data(), count);
  message[count] = '\0';
  said().clear();
}
STANDIN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (const auto asked = asked_to_fail("cudnnCreate")) return *asked;
  const int device = standin_current_device();
  if (device < 0) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device is current");
  *handle = new cudnnContext{device, nullptr};
  ++num_handles;
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(int kind,
                                                          cudnnBackendDescriptor_t* descriptor) {
  auto* made = new Object(kind);
  const std::lock_guard lock(alive_mutex());
  alive().insert(made);
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  {
    const std::lock_guard lock(alive_mutex());
    if (alive().erase(static_cast<const Object*>(descriptor)) == 0) return CUDNN_STATUS_BAD_PARAM;
  }
  delete static_cast<Object*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                      int attribute, int type, std::int64_t count,
                                                      const void* values) {
  Object& object = object_of(descriptor);
  if (object.is_finalized) return bad("a descriptor that is finalized");
  const std::optional<Known> found = find_known(object.kind, attribute);
  const bool is_wide_scale = found && found->type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE;
  if (!found || (found->type != type && !is_wide_scale) || count < 1 || values == nullptr)
    return bad("attribute " + std::to_string(attribute) + " of descriptor " +
               std::to_string(object.kind));
  const char* const bytes = static_cast<const char*>(values);
  Object::Value value{type, count, {bytes, bytes + std::size_t(count) * bytes_of(type)}};
  if (!object.values.emplace(attribute, std::move(value)).second)
    return bad("attribute " + std::to_string(attribute) + " is set twice");
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Object& object = object_of(descriptor);
  if (object.is_finalized) return bad("a descriptor that is finalized");
  if (object.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    if (const auto asked = asked_to_fail("plan")) return *asked;
  const cudnnStatus_t status = check_object(object);
  object.is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                                      int attribute, int type, std::int64_t most,
                                                      std::int64_t* count, void* values) {
  const Object& object = object_of(descriptor);
  if (!object.is_finalized) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "it is asked of");
  if (attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return give_proposals(object, most, count, values);
  if (attribute == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    Object& engine = object_of(*static_cast<cudnnBackendDescriptor_t*>(values));
    engine.engine = object.engine;
    engine.graph = object.graph;
    engine.is_finalized = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (attribute == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
    const std::vector<int> notes = program_of(*object.graph)->notes(object.engine);
    return copy_out(notes.data(), std::int64_t(notes.size()), sizeof(int), most, count, values);
  }
  if (attribute == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && type == CUDNN_TYPE_BEHAVIOR_NOTE) {
    *count = 0;
    return CUDNN_STATUS_SUCCESS;
  }
  const std::int64_t number = object.engine;
  if (attribute == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64)
    return copy_out(&number, 1, sizeof number, most, count, values);
  if (attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64)
    return copy_out(&object.workspace, 1, sizeof object.workspace, most, count, values);
  return bad("attribute " + std::to_string(attribute) + " is asked for");
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                                 cudnnBackendDescriptor_t descriptor,
                                                 cudnnBackendDescriptor_t pack) {
  if (const auto asked = asked_to_fail("cudnnBackendExecute")) return *asked;
  const Object &plan = object_of(descriptor), &given = object_of(pack);
  if (handle == nullptr || handle->device != standin_current_device())
    return refuse(CUDNN_STATUS_NOT_INITIALIZED, "another device is current");
  if (!plan.is_finalized || !given.is_finalized || !is_alive(plan.graph))
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan or its memory");
  const Numbers numbers = given.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto data = given.all<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Call call{program_of(*plan.graph),
            plan.engine,
            handle->device,
            {},
            {},
            given.one<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE),
            plan.workspace};
  if (numbers.size() != data.size()) return bad("the number of tensors");
  for (std::size_t i = 0; i < data.size(); ++i) call.addresses.emplace(numbers[i], data[i]);
  const std::vector<Tensor> tensors = call.program->in_memory();
  if (tensors.size() != call.addresses.size()) return bad("the number of tensors");
  const std::vector<Tensor> results = call.program->written();
  std::set<std::uint64_t> written;
  for (const Tensor& tensor : results)
    if (!written.insert(call.addresses[tensor.number]).second) return bad("results in one place");
  for (const Tensor& tensor : tensors) {
    const auto at = call.addresses.find(tensor.number);
    if (at == call.addresses.end() || at->second == 0) return bad("a tensor without memory");
    if (tensor.is_by_value) {
      std::memcpy(&call.given[tensor.number], reinterpret_cast<const void*>(at->second),
                  sizeof(float));
      continue;
    }
    if (at->second % std::uint64_t(tensor.alignment) != 0) return bad("memory that is not aligned");
    const bool is_result = std::ranges::any_of(
        results, [&](const Tensor& each) { return each.number == tensor.number; });
    if (!is_result && written.count(at->second) != 0) return bad("a result that is an operand");
  }
  {
    const std::lock_guard lock(mutex);
    last_graph = call.program->text();
  }
  last_engine = call.engine;
  ++num_graphs;
  return standin_submit(handle->stream, [call]() mutable { call.run(); }) == CUDA_SUCCESS
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream takes nothing");
}

STANDIN_EXPORT long standin_graphs() { return num_graphs; }
STANDIN_EXPORT long standin_plans() { return num_plans; }
STANDIN_EXPORT long standin_handles() { return num_handles; }
STANDIN_EXPORT const char* standin_last_graph() {
  static thread_local std::string shown;
  const std::lock_guard lock(mutex);
  shown = last_graph;
  return shown.c_str();
}
STANDIN_EXPORT void standin_fail_cudnn(const char* call, int status) {
  const std::lock_guard lock(mutex);
  failing_call = call == nullptr ? "" : call;
  failing_status = status;
}
STANDIN_EXPORT int standin_last_engine() { return last_engine; }
STANDIN_EXPORT void standin_plant_engines(const int* microseconds, int count) {
  const std::lock_guard lock(planting);
  planted.assign(microseconds, microseconds + count);
}
STANDIN_EXPORT void standin_set_fused(bool are_taken) { is_fused = are_taken; }
STANDIN_EXPORT void standin_set_proposals(bool are_there) { are_proposed = are_there; }
