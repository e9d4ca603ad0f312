// See loaded.h.
// SPDX-License-Identifier: Apache-2.0
#include "loaded.h"

#include <dlfcn.h>

#include <map>

namespace plait::cuda {
namespace {

void* library(const char* name) {
  const char* folder = std::getenv("PLAIT_CUDA_LIBRARIES");
  REQUIRE_MESSAGE(folder != nullptr, "PLAIT_CUDA_LIBRARIES must name the folder of the stand-ins");
  void* handle = dlopen((std::string(folder) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(handle != nullptr, dlerror());
  return handle;
}

template <class F>
void find(F*& function, void* library, const char* name) {
  function = reinterpret_cast<F*>(dlsym(library, name));
  const bool is_found = function != nullptr;
  REQUIRE_MESSAGE(is_found, name);
}

}  // namespace

void* open_stand_in(const char* name) {
  (void)loaded();
  return library(name);
}

const Loaded& loaded() {
  static const Loaded all = [] {
    Loaded found;
    void* const driver = library("libcuda.so.1");
    void* const nvrtc = library("libnvrtc.so.13");
#define STANDIN_FIND(name, suffix, ...) find(found.name, driver, #name #suffix);
    PLAIT_CUDA_DRIVER(STANDIN_FIND)
#undef STANDIN_FIND
#define STANDIN_FIND(name, ...) find(found.name, nvrtc, #name);
    PLAIT_CUDA_NVRTC(STANDIN_FIND)
#undef STANDIN_FIND
#define STANDIN_FIND(name, ...) find(found.name, driver, #name);
    STANDIN_CONTROLS(STANDIN_FIND)
#undef STANDIN_FIND
    REQUIRE(found.cuInit(0) == CUDA_SUCCESS);
    return found;
  }();
  return all;
}

OnDevice::OnDevice(int device) {
  CUcontext context = nullptr;
  REQUIRE(loaded().cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  REQUIRE(loaded().cuCtxPushCurrent(context) == CUDA_SUCCESS);
  REQUIRE(loaded().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  REQUIRE(loaded().cuMemPoolCreate(&pool, &props) == CUDA_SUCCESS);
}

// Devices that were lost are found again.
OnDevice::~OnDevice() {
  loaded().standin_fail_call(nullptr, 0, 0);
  loaded().standin_forget_errors();
  for (const CUdeviceptr memory : allocated_) loaded().cuMemFreeAsync(memory, stream);
  loaded().cuStreamSynchronize(stream);
  loaded().standin_forget_errors();
  loaded().cuStreamDestroy(stream);
  loaded().cuCtxPopCurrent(nullptr);
}

CUdeviceptr OnDevice::allocate(std::size_t bytes) {
  CUdeviceptr memory = 0;
  REQUIRE(loaded().cuMemAllocFromPoolAsync(&memory, bytes, pool, stream) == CUDA_SUCCESS);
  allocated_.push_back(memory);
  return memory;
}

void OnDevice::free(CUdeviceptr memory) {
  std::erase(allocated_, memory);
  REQUIRE(loaded().cuMemFreeAsync(memory, stream) == CUDA_SUCCESS);
}

void OnDevice::upload_bytes(CUdeviceptr memory, const void* from, std::size_t bytes) {
  REQUIRE(loaded().cuMemcpyHtoDAsync(memory, from, bytes, stream) == CUDA_SUCCESS);
}

bool OnDevice::download_bytes(void* to, CUdeviceptr memory, std::size_t bytes) {
  return loaded().cuMemcpyDtoHAsync(to, memory, bytes, stream) == CUDA_SUCCESS &&
         loaded().cuStreamSynchronize(stream) == CUDA_SUCCESS;
}

std::string compiled(const std::string& text, std::string* log) {
  static std::map<std::string, std::string> libraries;  // by their texts
  std::string& library = libraries[text];
  if (!library.empty()) return library;
  nvrtcProgram program = nullptr;
  REQUIRE(loaded().nvrtcCreateProgram(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr) ==
          NVRTC_SUCCESS);
  const char* options[] = {"--gpu-architecture=sm_90", "--fmad=false", "--std=c++20"};
  const nvrtcResult result = loaded().nvrtcCompileProgram(program, 3, options);
  std::size_t size = 0;
  loaded().nvrtcGetProgramLogSize(program, &size);
  std::string said(size - 1, ' ');
  loaded().nvrtcGetProgramLog(program, said.data());
  if (log != nullptr) *log = said;
  if (log == nullptr) REQUIRE_MESSAGE(result == NVRTC_SUCCESS, said);
  loaded().nvrtcGetCUBINSize(program, &size);
  library.resize(size);
  loaded().nvrtcGetCUBIN(program, library.data());
  loaded().nvrtcDestroyProgram(&program);
  return library;
}

Module::Module(const std::string& text) {
  REQUIRE(loaded().cuModuleLoadData(&module_, compiled(text).data()) == CUDA_SUCCESS);
}

Module::~Module() { loaded().cuModuleUnload(module_); }

CUfunction Module::operator[](const char* kernel) const {
  CUfunction function = nullptr;
  REQUIRE(loaded().cuModuleGetFunction(&function, module_, kernel) == CUDA_SUCCESS);
  return function;
}

CUresult launch_with(const OnDevice& on, CUfunction kernel, const Sizes& sizes, void** params) {
  if (sizes.together == Together::yes)
    return loaded().cuLaunchCooperativeKernel(kernel, sizes.grid, 1, 1, sizes.block, 1, 1,
                                              sizes.dynamic_bytes, on.stream, params);
  return loaded().cuLaunchKernel(kernel, sizes.grid, 1, 1, sizes.block, 1, 1, sizes.dynamic_bytes,
                                 on.stream, params, nullptr);
}

}  // namespace plait::cuda
