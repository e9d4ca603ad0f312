// Memory of CUDA devices (backends/cuda/memory.h) on the stand-in: blocks that streams give back,
// limits, pressure, statistics, and what is said where there is none left. In processes of their
// own, in which blocks are kept: elsewhere in these tests the stand-in sees each by itself.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/buffer.h>
#include <plait/base/driver.h>
#include <plait/base/error.h>
#include <plait/base/memory.h>
#include <plait/base/stream.h>
#include <plait/base/transfer.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include "../problem.h"
#include "loaded.h"
#include "own_process.h"

using namespace plait;
using plait::cuda::is_in_own_process;
using plait::cuda::loaded;

namespace {

constexpr std::int64_t MiB = 1 << 20;

Device first() { return Device::named("cuda:0"); }
Device second() { return Device::named("cuda:1"); }
Driver::MemoryStatistics counted(Device device = first()) {
  return *driver_of(device.kind)->memory_statistics(device);
}

Buffer empty(std::int64_t bytes) { return Buffer::empty(DType::uint8, {bytes}, first()); }
Buffer empty(std::int64_t bytes, const Stream& stream) {
  return Buffer::empty(DType::uint8, {bytes}, stream);
}
const void* address(const Buffer& buffer) { return buffer.placed().data; }

Buffer counting(std::int64_t n, float start) {
  Buffer buffer = Buffer::empty(DType::float32, {n});
  auto* data = static_cast<float*>(buffer.mutable_data());
  std::iota(data, data + n, start);
  return buffer;
}
bool is_counting(const Buffer& buffer, float start) {
  const Buffer host = buffer.on_host();
  const auto* data = static_cast<const float*>(host.data());
  for (std::int64_t i = 0; i < num_elements(host.shape()); ++i)
    if (data[i] != start + float(i)) return false;
  return true;
}

int alone(const std::string& cases, const char* variable = "PLAIT_DEVICE_CACHE",
          const char* value = "1") {
  return plait::cuda::in_own_process("memory_test.cpp", cases,
                                     {{"PLAIT_DEVICE_CACHE", "1"}, {variable, value}});
}

}  // namespace

TEST_CASE("memory that is kept for streams") {
  if (is_in_own_process()) return;
  CHECK(alone("kept: *") == 0);
  CHECK(alone("limited: *", "PLAIT_DEVICE_MEMORY", "8MiB") == 0);
  CHECK(alone("limited: *", "PLAIT_DEVICE_MEMORY", "0.78125%") == 0);  // of a GiB
  CHECK(alone("refused: *", "PLAIT_DEVICE_MEMORY", "much") == 0);
  CHECK(alone("not kept: *", "PLAIT_DEVICE_CACHE", "0") == 0);
}

TEST_CASE("kept: a program that is called again gets the same addresses, and asks for no more") {
  if (!is_in_own_process()) return;
  const std::vector<std::int64_t> sizes{1000, 1000, 3 * MiB, 1000, 5000, 3 * MiB, 0, 1 << 16};
  const auto call = [&] {
    std::vector<Buffer> blocks;
    for (const std::int64_t bytes : sizes) blocks.push_back(empty(bytes));
    return blocks;
  };
  std::vector<Buffer> blocks = call();
  std::vector<const void*> addresses;
  for (const Buffer& block : blocks) addresses.push_back(address(block));
  // Of those of a size, the lowest first.
  std::sort(blocks.begin(), blocks.end(),
            [](const Buffer& a, const Buffer& b) { return address(a) < address(b); });
  blocks.clear();
  blocks = call();
  std::vector<const void*> stable;
  for (const Buffer& block : blocks) stable.push_back(address(block));
  CHECK(std::ranges::is_permutation(stable, addresses));
  CHECK(stable[0] < stable[1]);
  CHECK(stable[1] < stable[3]);
  CHECK(stable[2] < stable[5]);
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (Buffer& block : blocks) block = Buffer();
    const long calls = loaded().standin_calls();
    blocks = call();
    CHECK(loaded().standin_calls() == calls);
    for (std::size_t k = 0; k < sizes.size(); ++k) CHECK(address(blocks[k]) == stable[k]);
  }
}

TEST_CASE("kept: blocks take at most an eighth more than what was asked for") {
  if (!is_in_own_process()) return;
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{256}, std::int64_t{257},
                                   std::int64_t{2048}, std::int64_t{2049}, std::int64_t{99'999},
                                   MiB - 1, MiB, MiB + 1, 33 * MiB + 5, 100 * MiB + 1}) {
    CAPTURE(bytes);
    const std::size_t before = counted().in_use;
    const Buffer block = empty(bytes);
    const auto taken = std::int64_t(counted().in_use - before);
    CHECK(taken >= bytes);
    CHECK(taken <= std::max<std::int64_t>(bytes + bytes / 8, bytes + 255));
  }
}

TEST_CASE("kept: a stream gets nothing that another one has given back") {
  if (!is_in_own_process()) return;
  const Stream one = Stream::make(first()), two = Stream::make(first());
  const void* const there = address(empty(5000, one));
  CHECK(address(empty(5000, two)) != there);
  CHECK(address(empty(5000, one)) == there);
}

// What two threads see of their numbers, while all of their blocks are given back and taken again.
TEST_CASE("kept: two threads with two streams each share blocks and see their own numbers") {
  if (!is_in_own_process()) return;
  const std::size_t before = counted().in_use;
  std::atomic<int> wrong = 0;
  const auto work = [&](int thread) {
    const Stream streams[] = {Stream::make(first()), Stream::make(first())};
    for (int i = 0; i < 60; ++i) {
      const float start = float(1000 * thread + i);
      Buffer copied;
      {
        const StreamScope scope(streams[i % 2]);
        const Buffer there = counting(700, start).on(first());
        const StreamScope other(streams[1 - i % 2]);
        copied = there.copy();
      }
      const StreamScope scope(streams[i % 2]);
      const Buffer next = counting(700, -1).on(first());  // likely where the numbers were
      wrong += !is_counting(copied, start);
    }
  };
  for (unsigned seed = 0; seed < 4; ++seed) {
    loaded().standin_set_seed(seed);
    std::thread other([&] { work(1); });
    work(0);
    other.join();
  }
  CHECK(wrong == 0);
  CHECK(counted().in_use == before);
  CHECK(std::string(loaded().standin_last_error()) == "");
}

TEST_CASE("kept: what is kept is given back before there is no memory") {
  if (!is_in_own_process()) return;
  const Stream one = Stream::make(first()), two = Stream::make(first());
  clear_memory();
  loaded().standin_wait();
  const std::size_t used = loaded().standin_live("bytes");
  loaded().standin_set_memory(used + std::size_t(16 * MiB));
  for (unsigned seed = 0; seed < 4; ++seed) {
    loaded().standin_set_seed(seed);
    for (int i = 0; i < 5; ++i) {
      // Of several sizes, on a stream whose work goes on.
      for (const std::int64_t size : {12 * MiB, 3 * MiB}) {
        const StreamScope scope(one);
        const Buffer there = counting(size / 4, 3).on(first());
        CHECK(counted().in_use >= std::size_t(size));
      }
      const Buffer all = empty(15 * MiB, i % 2 == 0 ? two : one);
      CHECK(counted().reserved <= std::size_t(16 * MiB) + used);
    }
  }
  // A call of an older library finds what nobody uses, once it is asked for.
  {
    const Buffer block = empty(15 * MiB);
  }
  CHECK(loaded().standin_live("bytes") >= std::size_t(15 * MiB));
  CHECK(counted().largest_kept >= std::size_t(15 * MiB));
  clear_memory();
  loaded().standin_wait();
  CHECK(loaded().standin_live("bytes") == used);
  CHECK(counted().largest_kept == 0);
  loaded().standin_set_memory(std::size_t{1} << 30);
}

// Any allocation of the driver's may fail, once or from then on, and any one call of it.
TEST_CASE("kept: memory that runs out at any point loses nothing") {
  if (!is_in_own_process()) return;
  const Stream one = Stream::make(first()), two = Stream::make(first());
  const auto work = [&] {
    std::vector<Buffer> held;
    for (int i = 0; i < 4; ++i) {
      const StreamScope scope(i % 2 == 0 ? one : two);
      held.push_back(counting(1000 * (i + 1), float(i)).on(first()));
      held.push_back(held.back().copy());
    }
    return std::ranges::all_of(
        held, [&](const Buffer& one) { return is_counting(one, float((&one - held.data()) / 2)); });
  };
  CHECK(work());
  const std::size_t before = counted().in_use;
  const auto after_failure = [&] {
    loaded().standin_fail_call(nullptr, 0, 0);
    CHECK(work());
    CHECK(counted().in_use == before);
  };
  for (int n = 1; n <= 8; ++n) {
    CAPTURE(n);
    clear_memory();
    loaded().standin_fail_call("cuMemAllocFromPoolAsync", n, plait::cuda::CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(work());  // it asks again
    CHECK(loaded().standin_failed());
    after_failure();
  }
  for (const int code :
       {plait::cuda::CUDA_ERROR_OUT_OF_MEMORY, plait::cuda::CUDA_ERROR_INVALID_VALUE}) {
    for (int n = 1;; ++n) {
      CAPTURE(n);
      CAPTURE(code);
      clear_memory();
      loaded().standin_fail_call(nullptr, n, code);
      bool is_right = true;
      (void)problem([&] { is_right = work(); });
      CHECK(is_right);
      const bool has_failed = loaded().standin_failed();
      after_failure();
      if (!has_failed) break;
      REQUIRE(n < 500);
    }
  }
  // Under less and less memory.
  clear_memory();
  loaded().standin_wait();
  int errors = 0;
  for (std::size_t left = 64 << 10;; left -= 4 << 10) {
    clear_memory();
    loaded().standin_wait();
    loaded().standin_set_memory(loaded().standin_live("bytes") + left);
    bool is_right = true;
    const std::string told = problem([&] { is_right = work(); });
    CHECK(is_right);
    errors += told.starts_with("cannot allocate ");
    loaded().standin_set_memory(std::size_t{1} << 30);
    after_failure();
    if (left == 0) break;
  }
  CHECK(errors > 5);
}

TEST_CASE("kept: statistics add up") {
  if (!is_in_own_process()) return;
  clear_memory();
  const Driver::MemoryStatistics before = counted();
  CHECK(before.limit == std::size_t{1} << 30);
  {
    const Buffer a = empty(2 * MiB), b = empty(300), c = empty(200 * MiB);
    const Driver::MemoryStatistics now = counted();
    CHECK(now.in_use == before.in_use + std::size_t(202 * MiB) + 512);
    CHECK(now.num_allocations == before.num_allocations + 3);
    CHECK(now.largest == std::size_t(200 * MiB));
    CHECK(now.most_in_use >= now.in_use);
    CHECK(now.reserved >= now.in_use);
    CHECK(now.largest_kept == 0);
  }
  CHECK(counted().in_use == before.in_use);
  CHECK(counted().largest_kept == std::size_t(200 * MiB));
  CHECK(counted().most_in_use >= before.in_use + std::size_t(202 * MiB));
  CHECK(counted().reserved >= std::size_t(202 * MiB));
  const Driver::MemoryStatistics elsewhere = counted(second());
  CHECK(elsewhere.in_use == 0);
  CHECK(elsewhere.limit == std::size_t{1} << 30);
  clear_memory();
  loaded().standin_wait();
  CHECK(loaded().standin_live("bytes") == counted().in_use);
}

// Of 8 MiB, in the words of PLAIT_DEVICE_MEMORY.
TEST_CASE("limited: no more than the limit is in use, and errors name who uses it") {
  if (!is_in_own_process()) return;
  const Stream one = Stream::make(first()), two = Stream::make(first());
  CHECK(counted().limit == std::size_t(8 * MiB));
  const auto asked_in = [&](int line, std::int64_t bytes, const Stream& stream) {
    const SourceScope scope(Source("train.cpp", line, "step"));
    return empty(bytes, stream);
  };
  std::vector<Buffer> held;
  held.push_back(asked_in(3, 3 * MiB, one));
  held.push_back(asked_in(7, 2 * MiB, one));
  held.push_back(asked_in(7, 2 * MiB, two));
  const std::string told = problem([&] { asked_in(9, 2 * MiB, one); });
  CHECK(told ==
        "cannot allocate 2097152 bytes on cuda:0, where 7340032 of 8388608 are in use, most of it "
        "by\n    2 x 2097152 bytes: train.cpp:7 in step\n    3145728 bytes: train.cpp:3 in step");
  held.pop_back();
  held.push_back(asked_in(9, 3 * MiB, one));  // of what two has given back
  CHECK(counted().in_use == std::size_t(8 * MiB));
  CHECK(problem([&] { asked_in(1, 1, two); }) != "");
  held.clear();
  for (int i = 0; i < 30; ++i) {
    const Buffer there = asked_in(i, (1 + i % 8) * MiB - i, i % 3 == 0 ? one : two);
    CHECK(counted().in_use <= counted().limit);
    CHECK(counted().largest_kept + counted().in_use <= counted().limit);
  }
  for (int i = 0; i < 20; ++i) asked_in(i, 3 * MiB, one);  // the same block again and again
  CHECK(problem([&] { asked_in(1, 8 * MiB, one); }) == "");
  CHECK(counted().most_in_use == std::size_t(8 * MiB));
  CHECK(problem([&] { asked_in(2, 9 * MiB, one); }).starts_with("cannot allocate 9437184 bytes"));
  CHECK(problem([&] { asked_in(2, std::int64_t{1} << 62, one); }) != "");
}

TEST_CASE("limited: two threads that run out of memory see their own numbers") {
  if (!is_in_own_process()) return;
  const std::size_t before = counted().in_use;
  std::atomic<int> wrong = 0, right = 0, refused = 0;
  const auto work = [&](unsigned thread) {
    const Stream streams[] = {Stream::make(first()), Stream::make(first())};
    std::mt19937 random(thread);
    for (int i = 0; i < 40; ++i) {
      const std::int64_t n = 100'000 + std::int64_t(random() % 400'000);
      const float start = float(1000 * thread + unsigned(i));
      const std::string told = problem([&] {
        const StreamScope scope(streams[i % 2]);
        const Buffer there = counting(n, start).on(first());
        const StreamScope other(streams[1 - i % 2]);
        const Buffer copied = there.copy();
        ++(is_counting(copied, start) ? right : wrong);
      });
      refused += told.starts_with("cannot allocate ");
      if (!told.empty() && !told.starts_with("cannot allocate ")) ++wrong;
    }
  };
  std::thread other([&] { work(2); });
  const Buffer held = empty(3 * MiB);
  work(1);
  other.join();
  CHECK(wrong == 0);
  CHECK(right > 20);
  CHECK(right + refused == 80);
  CHECK(counted().in_use == before + std::size_t(3 * MiB));
  CHECK(counted().most_in_use <= counted().limit);
  CHECK(std::string(loaded().standin_last_error()) == "");
}

TEST_CASE("refused: a limit that is none is named") {
  if (!is_in_own_process()) return;
  for (int i = 0; i < 2; ++i)
    CHECK(problem_and_fix([] { empty(10); }) ==
          "PLAIT_DEVICE_MEMORY is \"much\", which is no amount of memory | set it to \"12GB\", "
          "\"512MiB\", a number of bytes, or to a part of each device's memory, such as \"50%\"");
}

TEST_CASE("not kept: blocks are as large as what was asked for, and given back at once") {
  if (!is_in_own_process()) return;
  const std::size_t before = loaded().standin_live("bytes");
  {
    const Buffer block = empty(1001);
    CHECK(counted().in_use == 1001);
    CHECK(loaded().standin_live("bytes") == before + 1001);
  }
  loaded().standin_wait();
  CHECK(loaded().standin_live("bytes") == before);
  CHECK(counted().in_use == 0);
}
