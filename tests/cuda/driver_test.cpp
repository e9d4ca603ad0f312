// plait's driver of CUDA devices (backends/cuda/driver.h), on the stand-in: order between streams,
// memory, failures of single calls, other users of the same process.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/buffer.h>
#include <plait/base/error.h>
#include <plait/base/stream.h>
#include <plait/base/transfer.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "../problem.h"
#include "loaded.h"
#include "own_process.h"

using namespace plait;
using plait::cuda::is_in_own_process;
using plait::cuda::loaded;

namespace {

Device first() { return Device::named("cuda:0"); }
Device second() { return Device::named("cuda:1"); }

Buffer counting(std::int64_t n, float start = 0) {
  Buffer buffer = Buffer::empty(DType::float32, {n});
  auto* data = static_cast<float*>(buffer.mutable_data());
  std::iota(data, data + n, start);
  return buffer;
}

std::vector<float> values(const Buffer& buffer) {
  const Buffer host = buffer.on_host().dense();
  const auto* data = static_cast<const float*>(host.data());
  return {data, data + num_elements(host.shape())};
}

// Of the matrix with so many columns that the numbers make.
Buffer transposed(const Buffer& buffer, std::int64_t columns) {
  const std::int64_t rows = num_elements(buffer.shape()) / columns;
  return buffer.view_as({columns, rows}, {1, columns}, 0);
}

std::vector<float> expected_of(const Buffer& buffer, std::int64_t columns) {
  return values(transposed(buffer, columns).dense());
}

// What the stand-in holds; the device's own streams and pools stay.
std::string held() {
  std::string text;
  for (const char* what : {"bytes", "event"})
    text += std::to_string(loaded().standin_live(what)) + " " + what + ", ";
  return text + std::to_string(loaded().standin_context_depth()) + " contexts";
}

void with_seeds(const std::function<void()>& f) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    loaded().standin_set_seed(seed);
    f();
  }
  CHECK(std::string(loaded().standin_last_error()) == "");
}

int in_own_process(const std::string& cases, const char* variable, const char* value) {
  return plait::cuda::in_own_process("driver_test.cpp", cases, {{variable, value}});
}

}  // namespace

TEST_CASE("the stand-in's devices are plait's") {
  loaded();
  const std::vector<Device> all = devices();
  CHECK(std::ranges::count(all, first()) == 1);
  CHECK(std::ranges::count(all, second()) == 1);
}

TEST_CASE("numbers go to a device, to another one, and back") {
  with_seeds([] {
    const Buffer host = counting(1000);
    CHECK(values(host.on(first())) == values(host));
    CHECK(values(host.on(first()).on(second()).copy().on(first())) == values(host));
    CHECK(values(transposed(host.on(first()), 40)) == expected_of(host, 40));
    CHECK(values(transposed(host.on(first()), 40).copy()) == expected_of(host, 40));
    CHECK(values(transposed(host.on(first()), 40).on(second())) == expected_of(host, 40));
    CHECK(values(transposed(host, 40).on(first())) == expected_of(host, 40));
    CHECK(values(counting(0).on(first())).empty());
  });
}

TEST_CASE("a stream waits for what it needs of another") {
  const Stream one = Stream::make(first()), two = Stream::make(first()),
               far = Stream::make(second());
  with_seeds([&] {
    for (int i = 0; i < 10; ++i) {
      Buffer there;
      {
        const StreamScope scope(one);
        there = transposed(counting(3000, float(i)).on(first()), 30).copy();
      }
      const StreamScope scope(two);
      const StreamScope scope_there(far);
      const Buffer again = there.copy();
      const Buffer elsewhere = again.on(second());
      CHECK(values(again) == expected_of(counting(3000, float(i)), 30));
      CHECK(values(elsewhere) == expected_of(counting(3000, float(i)), 30));
    }
  });
}

TEST_CASE("memory is given back behind the work that uses it") {
  const Stream one = Stream::make(first()), two = Stream::make(first());
  const std::size_t before = loaded().standin_live("bytes");
  with_seeds([&] {
    for (int i = 0; i < 20; ++i) {
      Buffer result;
      {
        const StreamScope scope(one);
        const Buffer dropped = counting(512, float(i)).on(first());
        const StreamScope other(two);
        result = transposed(dropped, 16).copy();
      }
      const StreamScope scope(i % 2 == 0 ? one : two);
      const Buffer next = counting(512, -1).on(first());  // likely where dropped was
      CHECK(values(result) == expected_of(counting(512, float(i)), 16));
    }
  });
  CHECK(loaded().standin_live("bytes") == before);
}

TEST_CASE("memory that is used up") {
  values(counting(10).on(first()));
  loaded().standin_wait();  // for what is to be given back
  const std::size_t in_use = loaded().standin_live("bytes");
  loaded().standin_set_memory(in_use + (std::size_t{1} << 20));
  std::vector<Buffer> kept;
  const auto keep = [&] { kept.push_back(Buffer::empty(DType::float32, {1 << 16}, first())); };
  CHECK(problem([&] {
          for (int i = 0; i < 64; ++i) keep();
        }).find("cannot allocate") == 0);
  CHECK(kept.size() >= 3);
  // What is dropped is there again, also in other sizes and for other streams.
  kept.clear();
  for (const std::int64_t n : {1 << 17, 3 << 16, 1000})
    CHECK(values(counting(n).on(first())) == values(counting(n)));
  loaded().standin_set_memory(std::size_t{1} << 30);
}

// Any one call of the driver may fail: then there is an error or the right result, and nothing is
// left behind.
TEST_CASE("single calls that fail") {
  const Buffer host = counting(600);
  const std::vector<float> right = expected_of(host, 20);
  const auto work = [&] {
    const Buffer there = transposed(host.on(first()), 20);
    return values(there.copy().on(second()).copy());
  };
  CHECK(work() == right);
  const std::string before = held();
  const std::size_t pinned = loaded().standin_live("pinned bytes");
  for (const int code :
       {plait::cuda::CUDA_ERROR_OUT_OF_MEMORY, plait::cuda::CUDA_ERROR_INVALID_VALUE}) {
    int n = 0, num_errors = 0;
    for (bool has_failed = true; has_failed;) {
      ++n;
      CAPTURE(code);
      CAPTURE(n);
      loaded().standin_fail_call(nullptr, n, code);
      std::vector<float> found = right;
      const std::string error = problem([&] { found = work(); });
      CHECK(found == right);
      has_failed = loaded().standin_failed();
      loaded().standin_fail_call(nullptr, 0, 0);
      num_errors += !error.empty();
      CHECK(work() == right);  // which lets go of what streams have kept
      CHECK(held() == before);
      CHECK(loaded().standin_live("pinned bytes") <= 2 * pinned);  // of which some are kept
      REQUIRE(n < 1000);
    }
    CHECK(n > 10);
    CHECK(num_errors > 5);
  }
  CHECK(work() == right);
}

TEST_CASE("what is current in a thread stays so") {
  plait::cuda::CUcontext context = nullptr, current = nullptr;
  REQUIRE(loaded().cuDevicePrimaryCtxRetain(&context, 1) == 0);
  REQUIRE(loaded().cuCtxPushCurrent(context) == 0);
  CHECK(values(counting(100).on(first()).copy()) == values(counting(100)));
  CHECK(loaded().standin_context_depth() == 1);
  CHECK(loaded().cuCtxGetCurrent(&current) == 0);
  CHECK(current == context);
  CHECK(loaded().cuCtxPopCurrent(&current) == 0);
  CHECK(values(counting(100).on(second()).copy()) == values(counting(100)));
  CHECK(loaded().standin_context_depth() == 0);
}

TEST_CASE("two threads with two streams each") {
  const std::size_t before = loaded().standin_live("bytes");
  with_seeds([&] {
    std::vector<std::vector<float>> found(8);
    const auto work = [&](int thread) {
      const Stream streams[] = {Stream::make(first()),
                                Stream::make(thread == 0 ? first() : second())};
      for (int i = 0; i < 4; ++i) {
        Buffer there;
        {
          const StreamScope scope(streams[0]);
          there = transposed(counting(900, float(i)).on(first()), 30).copy();
        }
        const StreamScope scope(streams[1]);
        found[std::size_t(4 * thread + i)] = values(there.on(streams[1].device()).copy());
      }
    };
    std::thread other([&] { CHECK(problem([&] { work(1); }) == ""); });
    CHECK(problem([&] { work(0); }) == "");
    other.join();
    for (int i = 0; i < 8; ++i)
      CHECK(found[std::size_t(i)] == expected_of(counting(900, float(i % 4)), 30));
  });
  CHECK(loaded().standin_live("bytes") == before);
}

TEST_CASE("a child of fork has no device") {
  const Buffer there = counting(10).on(first());
  there.wait();
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused =
        problem([&] { values(there); }).find("child of a fork") != std::string::npos &&
        problem([] { values(counting(3).on(first())); }).find("child of a fork") !=
            std::string::npos;
    const bool is_fine = values(counting(3).copy()) == values(counting(3));
    _exit(is_refused && is_fine ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(values(there) == values(counting(10)));
}

TEST_CASE("a device that a kernel has broken is lost, and others are not") {
  CHECK(in_own_process("a device is broken", "STANDIN_SEED", "1") == 0);
}

// The same cases where streams write no values and wait for none, and what they see of faults.
TEST_CASE("other drivers") {
  const std::string plain = "numbers go*,a stream waits*,memory*,single calls*,two threads*";
  const std::string ordered = "a stream waits*,memory is given back*,two threads*";
  CHECK(in_own_process(plain, "STANDIN_STREAM_VALUES", "0") == 0);
  CHECK(in_own_process("numbers go*,a stream waits*", "PLAIT_DEVICE_CACHE", "1") == 0);
  for (const char* fault : {"waits", "frees", "values"}) {
    CAPTURE(std::string(fault));
    CHECK(in_own_process(ordered, "STANDIN_FAULT", fault) == 1);
  }
  CHECK(in_own_process(ordered, "STANDIN_FAULT", "none") == 0);
}

// In a process of its own alone: the others would have no device afterwards.
TEST_CASE("a device is broken") {
  if (!is_in_own_process()) return;
  const Buffer before = counting(10).on(first());
  before.wait();
  plait::cuda::CUcontext context = nullptr;
  loaded().cuDevicePrimaryCtxRetain(&context, 0);
  loaded().cuCtxPushCurrent(context);
  plait::cuda::CUstream stream = nullptr;
  REQUIRE(loaded().cuStreamCreateWithPriority(&stream, 1, 0) == 0);
  const plait::cuda::Module module(
      "#include \"plait/kernel.h\"\n"
      "extern \"C\" __global__ void kernel(Out<int> m0) { m0[3] = 1; }");
  plait::cuda::CUdeviceptr nowhere = 64;
  void* params[] = {&nowhere};
  CHECK(loaded().cuLaunchKernel(module["kernel"], 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr) ==
        0);
  CHECK(loaded().cuStreamSynchronize(stream) == plait::cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  loaded().cuCtxPopCurrent(nullptr);
  CHECK(std::string(loaded().standin_last_error()).find("kernel kernel, block 0, thread ") == 0);
  CHECK(problem([&] { values(before); }).find("ILLEGAL_ADDRESS") != std::string::npos);
  CHECK(problem([] { values(counting(3).on(first())); }) != "");
  CHECK(values(counting(10).on(second())) == values(counting(10)));
}
