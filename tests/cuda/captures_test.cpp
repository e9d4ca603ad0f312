// Programs whose steps are captured as graphs (run/captured_steps.h, backends/cuda/captures.h), on
// the stand-in: that they give what they give step by step, whatever memory they meet.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stream.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "../problem.h"
#include "loaded.h"

using namespace plait;
using plait::cuda::loaded;

namespace {

Device gpu() { return Device::named("cuda:0"); }

Array ramp(std::int64_t n, double start) {
  return device_put(lax::sin(lax::iota(DType::float32, {n}, 0) * 0.3 + start), {});
}

// Several kernels: a sort has its own, and so have what comes before and behind it.
Arrays sorted_sums(std::span<const Array> in) {
  const Array sorted = lax::sort(lax::tanh(in[0]) * 2.0, 0);
  return {lax::cumsum(sorted, 0), sorted + in[0]};
}

// The library has no small products.
Arrays with_product(std::span<const Array> in) {
  const Array sorted = lax::sort(in[0], 0);
  const Array matrix = lax::reshape(sorted, {64, 1}) + lax::reshape(sorted, {1, 64});
  return {numpy::matmul(matrix, matrix) * 0.01};
}

Arrays with_check(std::span<const Array> in) {
  const Array sorted = lax::sort(in[0], 0);
  plait::check(numpy::max(sorted) < 1.5, "too large");
  return {lax::cumsum(sorted, 0)};
}

Arrays in_loop(std::span<const Array> in) {
  const auto step = [](std::span<const Array> now) -> Arrays {
    const Array matrix = lax::reshape(now[0], {64, 1}) + lax::reshape(now[0], {1, 64});
    return {lax::sort(numpy::sum(numpy::matmul(matrix, matrix), 0) * 0.001, 0)};
  };
  return {flat::scan(step, Arrays{in[0]}, {}, {.length = 12}).carry[0]};
}

std::vector<Array> inputs() {
  std::vector<Array> all;
  for (int i = 0; i < 12; ++i) all.push_back(ramp(64, 0.1 * i));
  return all;
}

// Compiled for a device; called with memory of that device.
class OnGpu {
 public:
  explicit OnGpu(const Function& f) {
    const std::vector<Aval> avals{{{64}, DType::float32}};
    const Jaxpr program = make_jaxpr(f, avals).jaxpr;
    here_ = compile(program), there_ = compile(program, {.device = gpu()});
  }
  Arrays there(const Array& input) const { return wrapped(there_->run({{input.buffer()}})); }
  Arrays here(const Array& input) const { return wrapped(here_->run({{input.buffer()}})); }

 private:
  static Arrays wrapped(std::vector<Buffer> buffers) {
    Arrays arrays;
    for (Buffer& buffer : buffers) arrays.push_back(Array(std::move(buffer)));
    return arrays;
  }
  std::shared_ptr<const Executable> here_, there_;
};

// The library's products add in another order than the CPU.
void check_near(const Arrays& given, const Arrays& expected) {
  REQUIRE(given.size() == expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::vector<float> ours = device_put(given[i], {}).to_vector<float>(),
                             theirs = expected[i].to_vector<float>();
    REQUIRE(ours.size() == theirs.size());
    double most = 0;
    for (std::size_t j = 0; j < ours.size(); ++j)
      most = std::max(most, std::abs(double(ours[j]) - theirs[j]));
    CHECK(most < 1e-4);
  }
}

struct Calls {
  long graphs = loaded().standin_calls_of("cuGraphLaunch"),
       kernels = loaded().standin_calls_of("cuLaunchKernel"),
       changes = loaded().standin_calls_of("cuGraphExecKernelNodeSetParams"),
       captures = loaded().standin_calls_of("cuStreamBeginCapture");
  Calls operator-(const Calls& other) const {
    Calls difference = *this;
    difference.graphs -= other.graphs, difference.kernels -= other.kernels;
    difference.changes -= other.changes, difference.captures -= other.captures;
    return difference;
  }
};

}  // namespace

TEST_CASE("a program that is called again is one launch") {
  const OnGpu program(sorted_sums);
  const Array input = ramp(64, 0), there = device_put(input, gpu());
  const Arrays expected = program.here(input);
  for (int i = 0; i < 40; ++i) check_near(program.there(there), expected);
  const Calls before;
  for (int i = 0; i < 10; ++i) check_near(program.there(there), expected);
  const Calls more = Calls() - before;
  CHECK(more.graphs == 10);
  CHECK(more.kernels == 0);
  CHECK(more.captures == 0);
}

TEST_CASE("other memory: parameters are set, and nothing is captured again") {
  const OnGpu program(sorted_sums);
  std::vector<Arrays> kept;
  const std::vector<Array> all = inputs();
  const Calls before;
  for (int round = 0; round < 2; ++round)
    for (const Array& input : all) kept.push_back(program.there(device_put(input, gpu())));
  const Calls more = Calls() - before;
  for (std::size_t i = 0; i < kept.size(); ++i)
    check_near(kept[i], program.here(all[i % all.size()]));
  CHECK(more.graphs == 22);
  CHECK(more.captures == 4);  // for so many sets of addresses
  CHECK(more.changes > 18);
}

TEST_CASE("products are captured again, and no more where that never helps") {
  const OnGpu program(with_product);
  std::vector<Arrays> kept;
  const std::vector<Array> all = inputs();
  const Calls before;
  for (int round = 0; round < 3; ++round)
    for (const Array& input : all) kept.push_back(program.there(device_put(input, gpu())));
  const Calls more = Calls() - before;
  for (std::size_t i = 0; i < kept.size(); ++i)
    check_near(kept[i], program.here(all[i % all.size()]));
  CHECK(more.captures == 4 + 8);
  CHECK(more.graphs == 4 + 8);
}

TEST_CASE("a captured program that fails says so, and the next call does not") {
  const OnGpu program(with_check);
  const Array good = ramp(64, 0), bad = good + 1.0;
  const Array good_there = device_put(good, gpu()), bad_there = device_put(bad, gpu());
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    check_near(program.there(good_there), program.here(good));
    CHECK(problem([&] { device_put(program.there(bad_there)[0], {}).to_vector<float>(); }) ==
          problem([&] { program.here(bad); }));
  }
}

TEST_CASE("bodies of loops that the host drives are captured") {
  const OnGpu program(in_loop);
  const Array input = ramp(64, 0), there = device_put(input, gpu());
  const Calls before;
  check_near(program.there(there), program.here(input));
  CHECK((Calls() - before).graphs >= 8);
}

TEST_CASE("single calls fail while programs are captured, change and are replayed") {
  const std::vector<Array> all = inputs();
  Stream::current(gpu()).synchronize();
  Stream::current(gpu()).let_go();
  const std::size_t graphs = loaded().standin_live("graph"),
                    execs = loaded().standin_live("graph exec");
  const auto calls_of_all = [&](const OnGpu& program, std::size_t& num_right) {
    for (const Array& input : all) {
      try {
        check_near(program.there(device_put(input, gpu())), program.here(input));
        ++num_right;
      } catch (const Error&) {
      }
    }
  };
  for (const char* name :
       {"cuStreamBeginCapture", "cuStreamEndCapture", "cuStreamGetCaptureInfo",
        "cuGraphInstantiate", "cuGraphLaunch", "cuGraphExecKernelNodeSetParams", "cuGraphGetNodes",
        "cuLaunchKernel", "cuGraphExecUpdate", "cuGraphExecMemsetNodeSetParams"})
    for (int nth : {1, 3}) {
      CAPTURE(std::string(name));
      CAPTURE(nth);
      for (const Function& f : {Function(sorted_sums), Function(with_product)}) {
        const OnGpu program(f);
        std::size_t num_right = 0;
        loaded().standin_fail_call(name, nth, plait::cuda::CUDA_ERROR_NOT_SUPPORTED);
        calls_of_all(program, num_right);
        loaded().standin_fail_call(nullptr, 0, 0);
        CHECK(num_right + 1 >= all.size());
        const Arrays last = program.there(device_put(all[0], gpu()));
        check_near(last, program.here(all[0]));
      }
      loaded().standin_wait();
    }
  Stream::current(gpu()).synchronize();
  Stream::current(gpu()).let_go();
  CHECK(std::string(loaded().standin_last_error()) == "");
  CHECK(loaded().standin_live("graph") == graphs);
  CHECK(loaded().standin_live("graph exec") == execs);
}

// A mark costs as much as starting a kernel.
TEST_CASE("calls that nobody waits for set few marks") {
  const OnGpu program(sorted_sums);
  const Array input = device_put(ramp(64, 0.1), gpu());
  for (int i = 0; i < 10; ++i) (void)program.there(input);
  Stream::current(gpu()).synchronize();
  const long before = loaded().standin_calls_of("cuStreamWriteValue64");
  for (int i = 0; i < 200; ++i) (void)program.there(input);
  CHECK(loaded().standin_calls_of("cuStreamWriteValue64") - before < 20);
  check_near(program.there(input), program.here(ramp(64, 0.1)));
}

TEST_CASE("two threads call one captured program") {
  for (unsigned seed = 1; seed < 5; ++seed) {
    loaded().standin_set_seed(seed);
    const OnGpu program(sorted_sums);
    const std::vector<Array> all = inputs();
    const Stream streams[] = {Stream::make(gpu()), Stream::make(gpu())};
    std::vector<Arrays> found(48);
    const auto work = [&](std::size_t thread) {
      const StreamScope scope(streams[thread]);
      for (std::size_t i = 0; i < 24; ++i)
        found[24 * thread + i] = program.there(device_put(all[(i / 6) % all.size()], gpu()));
    };
    std::thread other([&] { CHECK(problem([&] { work(1); }) == ""); });
    CHECK(problem([&] { work(0); }) == "");
    other.join();
    for (std::size_t i = 0; i < found.size(); ++i)
      check_near(found[i], program.here(all[(i % 24) / 6 % all.size()]));
  }
}
