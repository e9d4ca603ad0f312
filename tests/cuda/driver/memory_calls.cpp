// The stand-in's driver: pools, host memory, copies.
//
// A pool gives memory out at the call; it is there when the stream comes to it. Memory that a
// stream frees is given out again at once to that stream, and to others when it is free.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "state.h"

namespace cuda_standin {
namespace {

constexpr int memcpy_node = 1, memset_node = 2;

// A block that a stream has been told to free.
struct Freed {
  CUmemoryPool pool;
  CUstream stream;
  std::uint64_t address;
  std::size_t bytes;
  bool is_taken_again = false;
};
struct Block {
  CUmemoryPool pool;
  std::size_t bytes;
};
struct Blocks {
  std::mutex mutex;
  std::map<std::uint64_t, Block> all;
  std::vector<std::shared_ptr<Freed>> freed;  // that streams have not come to
};
Blocks& blocks() {
  static Blocks& blocks = *new Blocks;
  return blocks;
}

int device_of(std::uint64_t address) {
  for (int device = 0; device < num_devices; ++device)
    if (memory_of(device).has(address)) return device;
  return -1;
}

// What a device sees there when the stream has come to it; nullptr, and the device is lost, where
// nothing is. Host memory is as it is.
char* memory_at(CUcontext context, std::uint64_t address, std::size_t bytes, const char* action) {
  const int device = device_of(address);
  if (device < 0) return reinterpret_cast<char*>(address);
  char* const memory = memory_of(device).find(address, bytes);
  if (memory == nullptr)
    lose(context->device, CUDA_ERROR_ILLEGAL_ADDRESS,
         std::string(action) + " of " + std::to_string(bytes) + " bytes meets " +
             memory_of(device).describe(address));
  return memory;
}

CUresult copy(CUstream stream, std::uint64_t from, std::uint64_t to, std::size_t bytes) {
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  return submit(*object, {memcpy_node,
                          [=, context = object->context] {
                            const char* src = memory_at(context, from, bytes, "a copy from memory");
                            if (src == nullptr) return;
                            char* dst = memory_at(context, to, bytes, "a copy to memory");
                            if (dst != nullptr) std::memmove(dst, src, bytes);
                          },
                          {}});
}

// All that pools of the device hold, of which nobody uses some.
std::uint64_t reserved_on(int device) {
  std::uint64_t bytes = 0;
  for (const auto& pool : state().pools.all())
    if (pool->device == device) bytes += pool->reserved;
  return bytes;
}

void use(CUmemPoolHandle_st& pool, std::size_t bytes) {
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  pool.reserved = std::max(pool.reserved, pool.used);
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
}

// A block of the size that this stream has been told to free, or else new memory.
std::uint64_t take(CUmemPoolHandle_st& pool, CUstream stream, std::size_t bytes) {
  for (const auto& freed : blocks().freed)
    if (freed->pool == &pool && freed->stream == stream && freed->bytes == bytes &&
        !freed->is_taken_again) {
      freed->is_taken_again = true;
      return freed->address;
    }
  const std::uint64_t needed = pool.used + bytes;
  if (pool.most != 0 && needed > pool.most) return 0;
  if (needed > pool.reserved &&
      reserved_on(pool.device) + (needed - pool.reserved) > state().memory)
    return 0;
  const std::uint64_t address = memory_of(pool.device).take(bytes);
  if (address != 0) use(pool, bytes);
  return address;
}

// When the stream has come to it.
void finish_free(CUcontext context, const std::shared_ptr<Freed>& freed) {
  DeviceMemory& memory = memory_of(freed->pool->device);
  const std::string damage = memory.end(freed->address);
  {
    const std::lock_guard lock(blocks().mutex);
    std::erase(blocks().freed, freed);
    if (!freed->is_taken_again) {
      freed->pool->used -= freed->bytes;
      memory.give_back(freed->address, freed->bytes);
    }
  }
  if (!damage.empty()) lose(context->device, CUDA_ERROR_ILLEGAL_ADDRESS, damage);
}

}  // namespace

void release_unused_memory(int device) {
  const std::lock_guard lock(blocks().mutex);
  for (const auto& pool : state().pools.all())
    if (pool->device == device)
      pool->reserved = std::max(pool->used, std::min(pool->reserved, pool->threshold));
}

STANDIN_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  STANDIN_CALL(Needs::start);
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (props->location.id < 0 || props->location.id >= num_devices) return CUDA_ERROR_INVALID_DEVICE;
  for (const unsigned char byte : props->reserved)
    if (byte != 0) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<CUmemPoolHandle_st>();
  made->device = props->location.id;
  made->most = props->maxSize;
  *pool = state().pools.add(std::move(made));
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int which, void* value) {
  STANDIN_CALL(Needs::start);
  const auto object = state().pools.find(pool);
  if (object == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(blocks().mutex);
  if (which >= 1 && which <= 3) return CUDA_SUCCESS;  // when memory may be used again
  const std::uint64_t number = *static_cast<std::uint64_t*>(value);
  if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return object->threshold = number, CUDA_SUCCESS;
  if (number != 0) return CUDA_ERROR_INVALID_VALUE;
  if (which == 6) return object->reserved_high = object->reserved, CUDA_SUCCESS;
  if (which == 8) return object->used_high = object->used, CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int which, void* value) {
  STANDIN_CALL(Needs::start);
  const auto object = state().pools.find(pool);
  if (object == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(blocks().mutex);
  if (which >= 1 && which <= 3) return *static_cast<int*>(value) = 1, CUDA_SUCCESS;
  if (which < 4 || which > 8) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t values[] = {object->threshold, object->reserved, object->reserved_high,
                                  object->used, object->used_high};
  *static_cast<std::uint64_t*>(value) = values[which - 4];
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes) {
  STANDIN_CALL(Needs::start);
  const auto object = state().pools.find(pool);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(blocks().mutex);
  object->reserved = std::max<std::uint64_t>(object->used, std::min(object->reserved, bytes));
  return CUDA_SUCCESS;
}

// Unlike CUDA's, memory of a graph: a capture refuses it.
STANDIN_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes,
                                                CUmemoryPool pool, CUstream stream) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  const auto from = state().pools.find(pool);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (from == nullptr || bytes == 0 || from->device != object->context->device)
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  std::uint64_t taken = 0;
  {
    const std::lock_guard lock(blocks().mutex);
    taken = take(*from, stream, bytes);
    if (taken == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    blocks().all[taken] = {pool, bytes};
  }
  *address = taken;
  return submit(
      *object,
      {10, [=, &memory = memory_of(from->device)] { memory.begin(taken, bytes); }, {}, true});
}

STANDIN_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  auto freed = std::make_shared<Freed>();
  // Submitted before another thread can be given the block, whose work would come first.
  std::unique_lock lock(blocks().mutex);
  const auto block = blocks().all.find(address);
  if (block == blocks().all.end()) return CUDA_ERROR_INVALID_VALUE;
  *freed = {block->second.pool, stream, address, block->second.bytes};
  blocks().all.erase(block);
  blocks().freed.push_back(freed);
  if (!is_planted("frees"))
    return submit(
        *object,
        {11, [freed, context = object->context] { finish_free(context, freed); }, {}, true});
  lock.unlock();
  return finish_free(object->context, freed), CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  STANDIN_CALL();
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (data == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  *data = pinned().allocate(bytes);
  return *data != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

STANDIN_EXPORT CUresult cuMemFreeHost(void* data) {
  STANDIN_CALL();
  if (const CUresult refused = refuse_in_captures()) return refused;
  return pinned().free(data) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  STANDIN_CALL();
  const std::lock_guard lock(blocks().mutex);
  *total = state().memory;
  const std::size_t reserved = reserved_on(current_context()->device);
  *free = *total - std::min(*total, reserved);
  return CUDA_SUCCESS;
}

// Pageable memory may change as soon as the call returns.
STANDIN_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                             CUstream stream) {
  STANDIN_CALL();
  if (device_of(to) < 0 || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto host = reinterpret_cast<std::uint64_t>(from);
  if (device_of(host) >= 0) return CUDA_ERROR_INVALID_VALUE;
  if (pinned().has(host, bytes)) return copy(stream, host, to, bytes);
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto saved = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  return submit(*object, {memcpy_node,
                          [=, context = object->context] {
                            char* dst = memory_at(context, to, bytes, "a copy to memory");
                            if (dst != nullptr) std::memcpy(dst, saved->data(), bytes);
                          },
                          {}});
}

// To pageable memory it is done when the call returns.
STANDIN_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                             CUstream stream) {
  STANDIN_CALL();
  const auto host = reinterpret_cast<std::uint64_t>(to);
  if (device_of(from) < 0 || to == nullptr || device_of(host) >= 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = copy(stream, from, host, bytes);
  if (result != CUDA_SUCCESS || pinned().has(host, bytes)) return result;
  const auto object = find_stream(stream);
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  object->queue->wait();
  return object->context->error;
}

STANDIN_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                             CUstream stream) {
  STANDIN_CALL();
  if (device_of(to) < 0 || device_of(from) < 0) return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, from, to, bytes);
}

STANDIN_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                          CUcontext from_context, std::size_t bytes,
                                          CUstream stream) {
  STANDIN_CALL();
  if (to_context == nullptr || from_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device_of(to) != to_context->device || device_of(from) != from_context->device)
    return CUDA_ERROR_INVALID_VALUE;
  return copy(stream, from, to, bytes);
}

Work memset_work(CUcontext context, CUdeviceptr to, unsigned char value, std::size_t bytes) {
  return {memset_node,
          [=] {
            char* dst = memory_at(context, to, bytes, "a memset");
            if (dst != nullptr) std::memset(dst, value, bytes);
          },
          {}};
}

STANDIN_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes,
                                        CUstream stream) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (device_of(to) < 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) return CUDA_SUCCESS;
  return submit(*object, memset_work(object->context, to, value, bytes));
}

STANDIN_EXPORT CUresult cuPointerGetAttribute(void* data, int which, CUdeviceptr address) {
  STANDIN_CALL(Needs::start);
  const int device = device_of(address);
  const bool is_pinned = device < 0 && pinned().has(address, 1);
  if (device < 0 && !is_pinned) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case 1:
      *static_cast<CUcontext*>(data) = &state().contexts[std::max(device, 0)];
      break;
    case 2:
      *static_cast<unsigned*>(data) = is_pinned ? 1 : 2;
      break;  // host, device
    case 3:
      *static_cast<CUdeviceptr*>(data) = address;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = std::max(device, 0);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace cuda_standin
