// See hooks.h.
// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

#include "state.h"

namespace cuda_standin {

constexpr int host_node = 3;  // CUgraphNodeType

STANDIN_EXPORT int standin_current_device() {
  const CUcontext context = current_context();
  return context != nullptr ? context->device : -1;
}

STANDIN_EXPORT CUresult standin_submit(CUstream stream, std::function<void()> work) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (object->context != current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  return submit(*object, {host_node, std::move(work), {}});
}

STANDIN_EXPORT void* standin_memory(int device, std::uint64_t address, std::size_t bytes,
                                    const char* whose) {
  const DeviceMemory& memory = memory_of(device);
  if (void* const found = memory.find(address, bytes)) return found;
  lose(device, CUDA_ERROR_ILLEGAL_ADDRESS,
       std::string(whose) + " reaches for " + std::to_string(bytes) + " bytes " +
           memory.describe(address));
  return nullptr;
}

}  // namespace cuda_standin
