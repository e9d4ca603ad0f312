// The stand-ins for CUDA's libraries, as tests call them: by the functions of the libraries, and by
// the controls of the stand-in (standin.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "here.h"
#include "standin.h"

namespace plait::cuda {

struct Loaded {
#define STANDIN_MEMBER(name, suffix, ...) CUresult (*name)(__VA_ARGS__);
  PLAIT_CUDA_DRIVER(STANDIN_MEMBER)
#undef STANDIN_MEMBER
#define STANDIN_MEMBER(name, result, ...) result (*name)(__VA_ARGS__);
  PLAIT_CUDA_NVRTC(STANDIN_MEMBER)
  STANDIN_CONTROLS(STANDIN_MEMBER)
#undef STANDIN_MEMBER
};
const Loaded& loaded();
// Another stand-in, which needs the driver's.
void* open_stand_in(const char* name);

// A device with a stream, which is the current one of its thread meanwhile.
class OnDevice {
 public:
  explicit OnDevice(int device = 0);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;

  CUstream stream = nullptr;
  CUmemoryPool pool = nullptr;

  CUdeviceptr allocate(std::size_t bytes);
  void free(CUdeviceptr memory);
  template <class T>
  CUdeviceptr upload(const std::vector<T>& values) {
    const CUdeviceptr memory = allocate(values.size() * sizeof(T));
    upload_bytes(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  // Waits. Empty where the device is lost.
  template <class T>
  std::vector<T> download(CUdeviceptr memory, std::size_t count) {
    std::vector<T> values(count);
    if (!download_bytes(values.data(), memory, count * sizeof(T))) return {};
    return values;
  }

 private:
  void upload_bytes(CUdeviceptr memory, const void* from, std::size_t bytes);
  bool download_bytes(void* to, CUdeviceptr memory, std::size_t bytes);
  std::vector<CUdeviceptr> allocated_;
};

// Kernels of a text, which is compiled.
class Module {
 public:
  explicit Module(const std::string& text);
  ~Module();
  Module(const Module&) = delete;
  CUfunction operator[](const char* kernel) const;

 private:
  CUmodule module_ = nullptr;
};

// The library of a text, or what the compiler says.
std::string compiled(const std::string& text, std::string* log = nullptr);

enum class Together { no, yes };  // cooperative
struct Sizes {
  unsigned grid, block, dynamic_bytes = 0;
  Together together = Together::no;
};
CUresult launch_with(const OnDevice& on, CUfunction kernel, const Sizes& sizes, void** params);
template <class... P>
CUresult launch(const OnDevice& on, CUfunction kernel, const Sizes& sizes, P... params) {
  void* addresses[] = {&params..., nullptr};
  return launch_with(on, kernel, sizes, addresses);
}

}  // namespace plait::cuda
