// Loops that would not end stop when the host wants them to, whoever runs them: threads, octets,
// blocks, and grids.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "backends/cuda/kernel.h"
#include "compile/loop_programs.h"
#include "run/stop.h"
#include "run_kernel.h"

using namespace plait;

namespace {

namespace np = numpy;
using In = std::span<const Array>;

const Function goes_on = [](In s) -> Arrays { return {np::max(s[0]) > -1.0}; };
const Function step = [](In s) -> Arrays { return {np::flip(s[0]) * 0.5 + 0.25}; };
Arrays endless(In in) { return flat::while_loop(goes_on, step, in); }

// Two thousand million steps.
Arrays long_loop(In in) {
  const auto i32 = [](double value) { return Array::literal(value, DType::int32); };
  return flat::fori_loop(i32(0), i32(2e9), [](In s) { return step(s.subspan(1)); }, in);
}

Arrays endless_examples(In in) {
  flat::VmapOptions options;
  options.in_dims = {0};
  return flat::vmap(endless, in, options);
}

// What a call says that is asked to stop once it is on its way.
std::string said(const Function& function, const Shape& shape, std::int64_t fewest_of_cooperative,
                 const std::function<void(Failure&)>& ask, std::string& text) {
  const Aval aval{shape, DType::float32};
  const Jaxpr group = make_jaxpr(function, std::vector{aval}).jaxpr;
  const cuda::Lowered lowered = cuda::lowered(group, compile_passes::dense_inputs(group),
                                              kernels::device(), fewest_of_cooperative);
  REQUIRE(lowered.staged);
  text = cuda::text_of(*lowered.staged, "program0", cuda::Sizes::written).kernels.back().text;
  const auto made = cuda::make_program_kernels(std::array{lowered.staged}, kernels::device(),
                                               cuda::Sizes::written);
  CHECK(made[0]->can_fail());
  const Array input = device_put(np::zeros(shape, DType::float32), {});
  return kernels::run(*made[0], {input}, std::array{aval},
                      [&](Failure& word) {
                        std::this_thread::sleep_for(std::chrono::milliseconds(30));
                        ask(word);
                      })
      .error;
}

}  // namespace

TEST_CASE("loops that do not end stop when they are asked to") {
  struct Case {
    const char* look;
    Function function;
    Shape shape;
  };
  for (const auto& [look, function, shape] :
       {Case{"&& is_stopped", endless_examples, {70}},
        Case{"from_first_lane(is_stopped", endless_examples, {3, 20}},
        Case{"from_first_thread(threadIdx.x == 0 &&", endless, {100}},
        Case{"from_first_block(thread == 0 &&", endless, {300}},
        Case{"% 65536 == 65535 && is_stopped", long_loop, {}},
        Case{"% 1024 == 1023 && from_first_thread", long_loop, {100}},
        Case{"% 64 == 63 && from_first_block", long_loop, {300}}}) {
    std::string text;
    const std::string error = said(function, shape, 256, ask_to_stop, text);
    CAPTURE(text);
    CHECK(text.find(look) != text.npos);
    CHECK(error.find("the call that was to compute this was interrupted") != error.npos);
  }
}
