// The stand-in's driver: graphs, whose nodes run in a random order that their edges allow.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "state.h"

namespace cuda_standin {

CUresult make_kernel(CUfunction function, on_cpu::Launch launch, void** params,
                     std::shared_ptr<Kernel>& made);
Work memset_work(CUcontext context, CUdeviceptr to, unsigned char value, std::size_t bytes);

namespace {

using Steps = CUgraphExec_st::Steps;

std::shared_ptr<Steps> steps_of(const CUgraph_st& graph) {
  auto steps = std::make_shared<Steps>();
  std::map<CUgraphNode, std::size_t> index;
  for (const auto& node : graph.nodes) {
    std::vector<std::size_t> after;
    for (const CUgraphNode earlier : node->after) after.push_back(index.at(earlier));
    index[node.get()] = steps->size();
    steps->push_back({node.get(), node->work, std::move(after)});
  }
  return steps;
}

void run_steps(CUcontext context, const Steps& steps, std::minstd_rand random) {
  std::vector<bool> is_done(steps.size());
  for (std::size_t num_done = 0; num_done < steps.size(); ++num_done) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!is_done[i] &&
          std::ranges::all_of(steps[i].after, [&](std::size_t j) { return is_done[j]; }))
        ready.push_back(i);
    const std::size_t next = ready[random() % ready.size()];
    run_work(context, steps[next].work);
    is_done[next] = true;
  }
}

CUgraphNode find_node(CUgraphNode node) {
  for (const auto& graph : state().graphs.all())
    for (const auto& candidate : graph->nodes)
      if (candidate.get() == node) return node;
  return nullptr;
}

CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS& params, bool is_cooperative,
                   std::shared_ptr<Kernel>& made) {
  for (const unsigned size : {params.gridDimY, params.gridDimZ, params.blockDimY, params.blockDimZ})
    if (size != 1) return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  if (params.extra != nullptr || params.func == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return make_kernel(
      params.func,
      {nullptr, params.gridDimX, params.blockDimX, params.sharedMemBytes, is_cooperative},
      params.kernelParams, made);
}

}  // namespace

STANDIN_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                    unsigned long long) {
  STANDIN_CALL();
  const auto object = state().graphs.find(graph);
  if (object == nullptr || exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<CUgraphExec_st>();
  made->context = object->context;
  made->steps = steps_of(*object);
  *exec = state().execs.add(std::move(made));
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  STANDIN_CALL();
  return state().graphs.remove(graph) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  STANDIN_CALL();
  return state().execs.remove(exec) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// A launch has the steps as they are now; launches of one graph do not overlap.
STANDIN_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  STANDIN_CALL();
  const auto object = state().execs.find(exec);
  const auto on = find_stream(stream);
  if (object == nullptr || on == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult refused = refuse_of_capturing(*on)) return refused;
  const unsigned random = unsigned(seed() * 7919 + state().num_launches++) + 1;
  const std::lock_guard lock(state().capturing);
  return submit(*on, {4,
                      [steps = object->steps, turn = object->turn, context = on->context, random] {
                        const std::lock_guard ours(*turn);
                        run_steps(context, *steps, std::minstd_rand(random));
                      },
                      {}});
}

STANDIN_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  STANDIN_CALL();
  const auto object = state().graphs.find(graph);
  if (object == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes == nullptr) return *count = object->nodes.size(), CUDA_SUCCESS;
  for (std::size_t i = 0; i < *count; ++i)
    nodes[i] = i < object->nodes.size() ? object->nodes[i].get() : nullptr;
  *count = std::min(*count, object->nodes.size());
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, int* type) {
  STANDIN_CALL();
  if (find_node(node) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->work.type;
  return CUDA_SUCCESS;
}

// The parameters live as long as the node.
STANDIN_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node,
                                                      CUDA_KERNEL_NODE_PARAMS* params) {
  STANDIN_CALL();
  if (find_node(node) == nullptr || node->work.kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Kernel& kernel = *node->work.kernel;
  kernel.addresses.clear();
  for (std::uint64_t& value : kernel.params) kernel.addresses.push_back(&value);
  *params = {kernel.function,
             kernel.launch.grid,
             1,
             1,
             kernel.launch.block,
             1,
             1,
             unsigned(kernel.launch.dynamic_bytes),
             kernel.addresses.data(),
             nullptr,
             nullptr,
             nullptr};
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                          const CUDA_KERNEL_NODE_PARAMS* params) {
  STANDIN_CALL();
  const auto object = state().execs.find(exec);
  if (object == nullptr || find_node(node) == nullptr || params == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(state().capturing);
  auto changed = std::make_shared<Steps>(*object->steps);
  const auto step = std::ranges::find(*changed, node, &CUgraphExec_st::Step::node);
  if (step == changed->end() || step->work.kernel == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::shared_ptr<Kernel> kernel;
  if (const CUresult refused = kernel_of(*params, step->work.kernel->launch.is_cooperative, kernel))
    return refused;
  step->work.kernel = std::move(kernel);
  object->steps = std::move(changed);
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                       const CUDA_MEMSET_NODE_PARAMS* params,
                                                       CUcontext context) {
  STANDIN_CALL();
  const auto object = state().execs.find(exec);
  if (object == nullptr || find_node(node) == nullptr || params == nullptr || context == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  if (params->elementSize != 1 || params->height != 1) return CUDA_ERROR_NOT_SUPPORTED;
  const std::lock_guard lock(state().capturing);
  auto changed = std::make_shared<Steps>(*object->steps);
  const auto step = std::ranges::find(*changed, node, &CUgraphExec_st::Step::node);
  if (step == changed->end()) return CUDA_ERROR_INVALID_VALUE;
  Work work = memset_work(context, params->dst, (unsigned char)(params->value), params->width);
  if (step->work.type != work.type) return CUDA_ERROR_INVALID_VALUE;
  step->work = std::move(work);
  object->steps = std::move(changed);
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                             CUgraphExecUpdateResultInfo* info) {
  STANDIN_CALL();
  const auto object = state().execs.find(exec);
  const auto to = state().graphs.find(graph);
  if (object == nullptr || to == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  constexpr int topology_changed = 2, type_changed = 3;
  const std::lock_guard lock(state().capturing);
  *info = {CU_GRAPH_EXEC_UPDATE_SUCCESS, nullptr, nullptr};
  auto changed = steps_of(*to);
  if (changed->size() != object->steps->size()) info->result = topology_changed;
  for (std::size_t i = 0; info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS && i < changed->size();
       ++i) {
    CUgraphExec_st::Step& step = (*changed)[i];
    const CUgraphExec_st::Step& old = (*object->steps)[i];
    if (step.after != old.after) info->result = topology_changed;
    if (step.work.type != old.work.type) info->result = type_changed;
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) info->errorNode = step.node;
    step.node = old.node;  // by which its parameters are set
  }
  if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  object->steps = std::move(changed);
  return CUDA_SUCCESS;
}

}  // namespace cuda_standin
