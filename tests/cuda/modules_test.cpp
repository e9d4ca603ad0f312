// Machine code of kernels (backends/cuda/modules.h), on the stand-ins: what is compiled and loaded
// together, and what happens where the device has no memory for it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <cmath>
#include <thread>

#include "../problem.h"
#include "loaded.h"
#include "own_process.h"

using namespace plait;
using plait::cuda::loaded;

namespace {

Device gpu() { return Device::named("cuda:0"); }

// Several kernels: a sort has its own, and so have what comes before and behind it. Its own numbers
// make it a program of its own.
Jaxpr program_of(double number) {
  const std::vector<Aval> avals{{{64}, DType::float32}};
  return make_jaxpr(
             [=](std::span<const Array> in) -> Arrays {
               const Array sorted = lax::sort(lax::tanh(in[0]) * number, 0);
               return {lax::cumsum(sorted, 0), sorted + in[0]};
             },
             avals)
      .jaxpr;
}

Array ramp() { return lax::sin(lax::iota(DType::float32, {64}, 0) * 0.3); }

// The CPU may add in another order.
bool is_right(const Executable& executable, double number) {
  const std::vector<Buffer> found = executable.run({{device_put(ramp(), gpu()).buffer()}}),
                            expected = compile(program_of(number))->run({{ramp().buffer()}});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Buffer here = found[i].on_host();
    const auto *ours = static_cast<const float*>(here.data()),
               *theirs = static_cast<const float*>(expected[i].data());
    for (int k = 0; k < 64; ++k)
      if (!(std::abs(ours[k] - theirs[k]) < 1e-3f)) return false;
  }
  return true;
}

std::size_t num_steps(const Executable& executable) {
  const std::string text = executable.explain();
  std::size_t count = 0;
  for (std::size_t at = text.find("  cuda  "); at != text.npos; at = text.find("  cuda  ", at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("the kernels of an executable are few modules, and those of an equal one are the same") {
  const long before = loaded().standin_calls_of("cuModuleLoadData");
  const auto executable = compile(program_of(2.25), {.device = gpu()});
  REQUIRE(num_steps(*executable) >= 3);
  CHECK(is_right(*executable, 2.25));
  const long loads = loaded().standin_calls_of("cuModuleLoadData") - before;
  CHECK(loads < long(num_steps(*executable)));
  const auto equal = compile(program_of(2.25), {.device = gpu()});
  CHECK(is_right(*equal, 2.25));
  CHECK(loaded().standin_calls_of("cuModuleLoadData") - before == loads);
}

TEST_CASE("two threads compile equal programs, and run them on streams of their own") {
  std::thread threads[2];
  for (std::thread& thread : threads)
    thread = std::thread([] {
      const StreamScope scope(Stream::make(gpu()));
      for (const double number : {3.25, 3.5, 3.75})
        CHECK(problem([&] {
                if (!is_right(*compile(program_of(number), {.device = gpu()}), number))
                  throw ValueError("wrong numbers", "");
              }) == "");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::string(loaded().standin_last_error()) == "");
}

TEST_CASE("kernels and graphs that find no memory are tried again with what was kept") {
  double number = 5;
  for (const char* name : {"cuModuleLoadData", "cuModuleGetFunction", "cuGraphInstantiateWithFlags",
                           "cuGraphLaunch"}) {
    CAPTURE(std::string(name));
    const auto executable = compile(program_of(number += 0.25), {.device = gpu()});
    loaded().standin_fail_call(name, 1, plait::cuda::CUDA_ERROR_OUT_OF_MEMORY);
    for (int i = 0; i < 5; ++i) CHECK(is_right(*executable, number));
    CHECK(loaded().standin_failed());
    loaded().standin_fail_call(nullptr, 0, 0);
  }
}

// Nothing is kept on disk, and a program has a text that is refused: the others are there.
TEST_CASE("texts that are compiled together fail alone") {
  if (!plait::cuda::is_in_own_process()) {
    CHECK(plait::cuda::in_own_process(
              "modules_test.cpp", "texts that are compiled together fail alone",
              {{"PLAIT_CACHE_DIR", "0"}, {"STANDIN_MUTANT", "0:tanh(:no_such_function("}}) == 0);
    return;
  }
  const std::vector<Aval> avals{{{64}, DType::float32}};
  const auto wrong = compile(program_of(7), {.device = gpu()});
  CHECK(problem([&] {
          wrong->run({{device_put(ramp(), gpu()).buffer()}});
        }).find("no_such_function") != std::string::npos);
}
