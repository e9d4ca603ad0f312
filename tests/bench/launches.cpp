// bench_launches: what a step of plait that is captured costs above a bare cuGraphLaunch, in lines
// "name value" of microseconds of the thread that submits; "device 0" where there is no CUDA. For
// tests/gpu/run. bench_launches ROUNDS: of so many rounds the best.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/device.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace plait;

namespace {

constexpr int parts = 8, calls = 200;
int rounds = 20;

// Kernels one after the other: each needs a sum of all before it.
Array step(const Array& start) {
  Array x = start;
  for (int i = 0; i < parts / 2; ++i) x = x / (numpy::sum(x) + 1.0);
  return x;
}

// The least microseconds that submitting takes.
template <class Submit, class Wait>
double submitted(const Submit& submit, const Wait& wait) {
  using Clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) submit();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count() / calls);
    wait();
  }
  return best * 1e6;
}

// A graph of as many nodes, by the driver alone.
double bare() {
  const char* const folder = std::getenv("PLAIT_CUDA_LIBRARIES");
  const std::string path = std::string(folder && *folder ? folder : "") + "/libcuda.so.1";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto call = [&](const char* name, auto... arguments) {
    const auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name));
    const int status = function ? function(arguments...) : -1;
    if (status == 0) return;
    std::fprintf(stderr, "%s: error %d\n", name, status);
    std::exit(1);
  };
  struct Pool {
    int kind = 1, handles = 0, place = 1, device = 0;
    long rest[16] = {};
  } pool_of_device;
  void *context = nullptr, *stream = nullptr, *pool = nullptr, *graph = nullptr, *made = nullptr;
  unsigned long memory = 0;
  call("cuInit", 0u);
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreateWithPriority", &stream, 1u, 0);
  call("cuMemPoolCreate", &pool, &pool_of_device);
  call("cuMemAllocFromPoolAsync", &memory, sizeof(int), pool, stream);
  call("cuStreamBeginCapture_v2", stream, 1);
  for (int i = 0; i < parts; ++i)
    call("cuMemsetD8Async", memory, static_cast<unsigned char>(1), sizeof(int), stream);
  call("cuStreamEndCapture", stream, &graph);
  call("cuGraphInstantiateWithFlags", &made, graph, 0ul);
  const auto launch = reinterpret_cast<int (*)(void*, void*)>(dlsym(library, "cuGraphLaunch"));
  return submitted([&] { launch(made, stream); }, [&] { call("cuStreamSynchronize", stream); });
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) rounds = std::max(1, std::atoi(words[1]));
  std::vector<Device> found;
  for (const Device device : devices())
    if (device.to_string() == "cuda:0") found.push_back(device);
  std::printf("device %zu\n", found.size());
  if (found.empty()) return 0;
  const auto jitted = jit(step);
  const Array x = Array(lax::full({64}, 1, DType::float32).buffer().on(found[0]));
  Array y = jitted(x);
  const auto wait = [&] { block_until_ready(std::span(&y, 1)); };
  for (int i = 0; i < 10; ++i) y = jitted(x);
  wait();
  const double ours = submitted([&] { y = jitted(x); }, wait), theirs = bare();
  std::printf("captured_step_us %.3f\nbare_graph_us %.3f\nabove_us %.3f\n", ours, theirs,
              ours - theirs);
}
