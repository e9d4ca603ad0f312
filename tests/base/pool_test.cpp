// parallel_for: every iteration once, ranges no shorter than the grain, one wide caller at a time,
// nothing wide inside a loop or after fork.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/error.h>
#include <plait/base/pool.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/spinning.h"

using namespace plait;

namespace {

struct RestoreNumThreads {
  int before = num_threads();
  ~RestoreNumThreads() { set_num_threads(before); }
};

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(std::int64_t count, std::int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

// Each thread has up to four.
std::size_t most_ranges(int threads) { return threads == 1 ? 1 : 4 * std::size_t(threads); }

// The exit status of a child process that runs body; a child that hangs is killed.
template <class Body>
int status_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("ranges cover every iteration once and are no shorter than the grain") {
  const RestoreNumThreads restore;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    for (const std::int64_t count : {0, 1, 2, 5, 63, 64, 1000, 4097, 1000003})
      for (const std::int64_t grain : {0, 1, 3, 64, 1000, 5000}) {
        CAPTURE(threads);
        CAPTURE(count);
        CAPTURE(grain);
        const Ranges ranges = ranges_of(count, grain);
        REQUIRE(ranges.size() <= most_ranges(threads));
        std::int64_t next = 0;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
          REQUIRE(ranges[i].first == next);
          next = ranges[i].second;
          if (i + 1 < ranges.size()) REQUIRE(next - ranges[i].first >= grain);
        }
        REQUIRE(next == count);
        if (count <= grain && count > 0) REQUIRE(ranges.size() == 1);
      }
  }
}

TEST_CASE("a long loop has ranges for all threads, at starts that keep vectors aligned") {
  const RestoreNumThreads restore;
  set_num_threads(3);
  const Ranges ranges = ranges_of(1000003, 1000);
  REQUIRE(ranges.size() == most_ranges(3));
  for (const auto& [begin, end] : ranges) CHECK(begin % 64 == 0);
}

TEST_CASE("a loop inside a wide loop is serial") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  std::atomic<int> num_inner{0};
  parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      parallel_for(1000, 1, [&](std::int64_t b, std::int64_t e) {
        if (b == 0 && e == 1000) ++num_inner;
      });
  });
  CHECK(num_inner == 2);
  CHECK(ranges_of(2, 1).size() == 2);  // and the next loop is wide again
}

TEST_CASE("a thread that does not run leaves its ranges to the others") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  // The first range to begin waits for all others to end.
  std::atomic<int> num_begun{0}, num_ended{0};
  parallel_for(8, 1, [&](std::int64_t begin, std::int64_t end) {
    REQUIRE(end - begin == 1);
    if (num_begun++ == 0)
      while (num_ended < 7) std::this_thread::yield();
    ++num_ended;
  });
  CHECK(num_ended == 8);
}

TEST_CASE("what the body of a loop throws reaches the caller, from the first range that threw") {
  const RestoreNumThreads restore;
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    set_num_threads(threads);
    for (const std::int64_t first : {0, 1, 500, 999})  // in the caller's range, and in the others'
      for (int round = 0; round < 20; ++round) {
        std::atomic<std::int64_t> num_ran{0};
        std::int64_t caught = -1;
        try {
          parallel_for(1000, 1, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              if (i >= first) throw ValueError(std::to_string(std::max(begin, first)), "");
              ++num_ran;
            }
          });
        } catch (const ValueError& error) {
          caught = std::stoll(error.problem());
        }
        REQUIRE(caught == first);
        REQUIRE(num_ran == first);  // the ranges before it ran to their ends
      }
    CHECK(ranges_of(1000, 1).size() == most_ranges(threads));  // the permit was returned
  }
}

TEST_CASE("an exception inside a loop inside a loop goes through both") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  const auto run = [] {
    parallel_for(2, 1, [](std::int64_t begin, std::int64_t) {
      parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
        if (begin == 1) throw 7;
      });
    });
  };
  CHECK_THROWS_AS(run(), int);
  CHECK(ranges_of(2, 1).size() == 2);
}

TEST_CASE("while one caller runs wide, another runs serial") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  std::atomic<bool> is_inside{false}, may_leave{false};
  std::thread other([&] {
    parallel_for(2, 1, [&](std::int64_t begin, std::int64_t) {
      if (begin != 0) return;
      is_inside = true;
      while (!may_leave) std::this_thread::yield();
    });
  });
  while (!is_inside) std::this_thread::yield();
  CHECK(ranges_of(1000, 1).size() == 1);
  {
    const PoolScope scope;
    CHECK(scope.num_threads() == 1);
  }
  may_leave = true;
  other.join();
  CHECK(ranges_of(1000, 1).size() == most_ranges(2));
}

TEST_CASE("many callers at once each see all their iterations") {
  const RestoreNumThreads restore;
  set_num_threads(3);
  std::vector<std::thread> callers;
  std::atomic<int> num_right{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<std::int64_t> sum{0};
        parallel_for(1000, 10, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) sum += i;
        });
        num_right += sum == 999 * 1000 / 2;
      }
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(num_right == 4 * 300);
}

TEST_CASE("a pool scope lends the threads to a library and takes the permit") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  {
    const PoolScope scope;
    CHECK(scope.num_threads() == 2);
    CHECK(ranges_of(1000, 1).size() == 1);
  }
  CHECK(ranges_of(1000, 1).size() == most_ranges(2));
}

TEST_CASE("a pool scope of one thread leaves the permit to others") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  const PoolScope scope(1);
  CHECK(scope.num_threads() == 1);
  CHECK(ranges_of(1000, 1).size() == most_ranges(2));
}

TEST_CASE("numbers of threads that make no sense are refused") {
  const RestoreNumThreads restore;
  for (const int count : {0, -1, 1025}) {
    try {
      set_num_threads(count);
      FAIL("accepted");
    } catch (const ValueError& error) {
      CHECK(error.problem().find(std::to_string(count)) != std::string::npos);
      CHECK(error.fix() == "give a number from 1 to 1024");
    }
  }
  set_num_threads(1);
  CHECK(num_threads() == 1);
}

TEST_CASE("the child of fork is single-threaded and does not hang") {
  const RestoreNumThreads restore;
  set_num_threads(2);
  CHECK(ranges_of(1000, 1).size() == most_ranges(2));
  const int status = status_in_child([] {
    set_num_threads(2);
    const PoolScope scope;
    return num_threads() == 1 && ranges_of(1000, 1).size() == 1 && scope.num_threads() == 1;
  });
  CHECK(status == 0);
  CHECK(ranges_of(1000, 1).size() == most_ranges(2));
}

TEST_CASE("loops that follow each other closely are shared sooner, unless that is slower") {
  constexpr int count = 100, grain = 60, short_grain = 12, most_tries = 100000;
  CloseLoops loops;
  int tries = 0;
  for (; tries < most_tries && loops.begin(count, grain) != short_grain; ++tries) loops.end();
  REQUIRE(tries < most_tries);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  loops.end();
  for (int i = 0; i < 16; ++i) {
    CHECK(loops.begin(count, grain) == count);
    loops.end();
  }
}
