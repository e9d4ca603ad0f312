// The stand-in's driver: modules, which are the libraries that the stand-in of NVRTC makes, and
// launches of their kernels.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "../cpu_compiler.h"
#include "state.h"

namespace plait::cuda {

CUmod_st::~CUmod_st() {
  if (library != nullptr) dlclose(library);
}

}  // namespace plait::cuda

namespace cuda_standin {
namespace {

constexpr std::size_t most_param_bytes = 32764;
constexpr unsigned most_blocks = 0x7fffffff;

// Bytes of a library, whose last part is its table of sections; 0: it is none of this machine.
std::size_t size_of_image(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_X86_64 ||
      header.e_type != ET_DYN)
    return 0;
  return header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
}

// A file for the time of loading, with a name that no other has: dlopen knows libraries by it.
void* load(const void* image, std::size_t bytes) {
  std::string path = (std::filesystem::temp_directory_path() / "plait-module-XXXXXX").string();
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return nullptr;
  const char* from = static_cast<const char*>(image);
  while (bytes > 0) {
    const ssize_t written = write(file, from, bytes);
    if (written <= 0) break;
    from += written;
    bytes -= std::size_t(written);
  }
  close(file);
  void* library = bytes == 0 ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) std::fprintf(stderr, "stand-in of CUDA: %s\n", dlerror());
  unlink(path.c_str());
  return library;
}

// The library of an image, and the kernels that are meant there.
const on_cpu::Entry* open(const void* image, void*& library) {
  const char* const text = static_cast<const char*>(image);
  if (std::strncmp(text, image_prefix, std::strlen(image_prefix)) != 0) {
    const std::size_t bytes = size_of_image(image);
    if (bytes == 0) return nullptr;
    library = load(image, bytes);
    return library == nullptr
               ? nullptr
               : static_cast<const on_cpu::Entry*>(dlsym(library, "plait_kernel_list"));
  }
  const std::string path(text + std::strlen(image_prefix), std::strchr(text, '\n'));
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto* lists =
      static_cast<const on_cpu::Entry* const*>(dlsym(library, "plait_kernel_lists"));
  return lists == nullptr ? nullptr : lists[std::atoi(std::strchr(text, '\n'))];
}

std::shared_ptr<CUmod_st> module_of(CUfunction function) {
  for (const auto& module : state().modules.all())
    for (const auto& [name, candidate] : module->functions)
      if (&candidate == function) return module;
  return nullptr;
}

int blocks_at_once(std::size_t threads, std::size_t dynamic_bytes) {
  const std::size_t whole_warps = (threads + 31) / 32 * 32;
  return int(std::min({std::size_t(on_cpu::threads_of_multiprocessor) / whole_warps,
                       std::size_t(on_cpu::blocks_of_multiprocessor),
                       on_cpu::shared_bytes_of_multiprocessor /
                           (dynamic_bytes + on_cpu::shared_bytes_for_system)}));
}

unsigned most_threads_of(const CUfunc_st& function) {
  const unsigned bound = function.entry->most_threads;
  return bound != 0 ? bound : unsigned(on_cpu::most_threads_of_block);
}

// What a launch may not be, whatever is running.
CUresult check_launch(const CUfunc_st& function, const on_cpu::Launch& launch) {
  if (launch.grid == 0 || launch.grid > most_blocks || launch.block == 0 ||
      launch.block > most_threads_of(function))
    return CUDA_ERROR_INVALID_VALUE;
  if (launch.dynamic_bytes > std::size_t(function.dynamic_bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (launch.is_cooperative &&
      launch.grid > unsigned(blocks_at_once(launch.block, launch.dynamic_bytes) *
                             on_cpu::num_multiprocessors))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult make_kernel(CUfunction function, on_cpu::Launch launch, void** params,
                     std::shared_ptr<Kernel>& made) {
  auto module = module_of(function);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  launch.kernel = function->entry;
  launch.device = module->context->device;
  if (const CUresult refused = check_launch(*function, launch)) return refused;
  const int count = function->entry->num_params;
  if (count > 0 && params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (std::size_t(count) * sizeof(std::uint64_t) > most_param_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  made = std::make_shared<Kernel>();
  made->module = std::move(module);
  made->function = function;
  made->launch = launch;
  made->params.resize(std::size_t(count));
  for (int i = 0; i < count; ++i)
    std::memcpy(&made->params[std::size_t(i)], params[i], function->entry->sizes[i]);
  return CUDA_SUCCESS;
}

void run_kernel(CUcontext context, const Kernel& kernel) {
  if (kernel.module->is_unloaded) {
    lose(context->device, plait::cuda::CUDA_ERROR_LAUNCH_FAILED,
         std::string("kernel ") + kernel.launch.kernel->name + ": its module is unloaded");
    return;
  }
  on_cpu::Launch launch = kernel.launch;
  launch.seed = seed() * std::uint64_t{1'000'003} + state().num_launches++;
  std::vector<std::uint64_t> values = kernel.params;
  std::vector<void*> params;
  for (std::uint64_t& value : values) params.push_back(&value);
  const on_cpu::Outcome outcome = on_cpu::run(launch, params.data());
  if (outcome.error != CUDA_SUCCESS) lose(context->device, outcome.error, outcome.text);
}

STANDIN_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  STANDIN_CALL();
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_shared<CUmod_st>();
  made->context = current_context();
  const on_cpu::Entry* entry = open(image, made->library);
  if (made->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  auto* machine = static_cast<on_cpu::Machine**>(dlsym(made->library, "plait_kernel_machine"));
  if (machine == nullptr || entry == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  *machine = &on_cpu::machine();
  for (; entry->name != nullptr; ++entry)
    made->functions[entry->name] = {made.get(), entry, on_cpu::static_shared_bytes};
  *module = state().modules.add(std::move(made));
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuModuleUnload(CUmodule module) {
  STANDIN_CALL();
  if (const CUresult refused = refuse_in_captures()) return refused;
  const auto object = state().modules.remove(module);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  object->is_unloaded = true;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                            const char* name) {
  STANDIN_CALL();
  const auto object = state().modules.find(module);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = object->functions.find(name);
  if (found == object->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = &found->second;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuFuncSetAttribute(CUfunction function, int which, int value) {
  STANDIN_CALL();
  if (module_of(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (which == 9) return CUDA_SUCCESS;  // how much of the cache is shared memory
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
      std::size_t(value) > on_cpu::shared_bytes_of_block)
    return CUDA_ERROR_INVALID_VALUE;
  function->dynamic_bytes = value;
  return CUDA_SUCCESS;
}

// Shared arrays that are static are not known before they are used: they count as 0 bytes.
STANDIN_EXPORT CUresult cuFuncGetAttribute(int* value, int which, CUfunction function) {
  STANDIN_CALL();
  if (module_of(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr || which < 0 || which > 15) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = int(most_threads_of(*function));
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case 5:  // version of the PTX
    case 6:
      *value = 90;
      break;  // .. and of the code
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->dynamic_bytes;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

// Each lies where its size allows.
STANDIN_EXPORT CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index,
                                           std::size_t* offset, std::size_t* size) {
  STANDIN_CALL();
  if (module_of(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= std::size_t(function->entry->num_params)) return CUDA_ERROR_INVALID_VALUE;
  std::size_t at = 0, bytes = 0;
  for (std::size_t i = 0; i <= index; ++i) {
    at += bytes;
    bytes = function->entry->sizes[i];
    at = (at + bytes - 1) / bytes * bytes;
  }
  *offset = at;
  if (size != nullptr) *size = bytes;
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                    CUfunction function,
                                                                    int threads,
                                                                    std::size_t dynamic_bytes) {
  STANDIN_CALL();
  if (module_of(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = blocks_at_once(std::size_t(threads), dynamic_bytes);
  return CUDA_SUCCESS;
}

// In one dimension: the language of plait's kernels has no more.
static CUresult launch(CUfunction function, std::initializer_list<unsigned> others,
                       on_cpu::Launch launch, CUstream stream, void** params, void** extra) {
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const unsigned size : others)
    if (size != 1) return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  if (extra != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::shared_ptr<Kernel> kernel;
  if (const CUresult refused = make_kernel(function, launch, params, kernel)) return refused;
  if (kernel->module->context != object->context) return CUDA_ERROR_INVALID_HANDLE;
  return submit(*object, {CU_GRAPH_NODE_TYPE_KERNEL, {}, std::move(kernel)});
}

STANDIN_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                       unsigned grid_z, unsigned block_x, unsigned block_y,
                                       unsigned block_z, unsigned dynamic_bytes, CUstream stream,
                                       void** params, void** extra) {
  STANDIN_CALL();
  return launch(function, {grid_y, grid_z, block_y, block_z},
                {nullptr, grid_x, block_x, dynamic_bytes}, stream, params, extra);
}

STANDIN_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x,
                                                  unsigned grid_y, unsigned grid_z,
                                                  unsigned block_x, unsigned block_y,
                                                  unsigned block_z, unsigned dynamic_bytes,
                                                  CUstream stream, void** params) {
  STANDIN_CALL();
  return launch(function, {grid_y, grid_z, block_y, block_z},
                {nullptr, grid_x, block_x, dynamic_bytes, true}, stream, params, nullptr);
}

}  // namespace cuda_standin
