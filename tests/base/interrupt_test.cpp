// Stopping calls that take long.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/interrupt.h>

#include <chrono>
#include <thread>

using namespace plait;

namespace {

struct Stop {};
std::atomic<int> asked{0};
std::atomic<bool> stops{false};

void check() {
  ++asked;
  if (stops) throw Stop();
}

// Asks for so long, as a loop of short steps does.
void run_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) check_interrupts();
}

struct Installed {
  Installed() : before(set_interrupt_check(check)) {
    asked = 0;
    stops = false;
  }
  ~Installed() { set_interrupt_check(before); }
  const InterruptCheck before;
};

}  // namespace

TEST_CASE("who runs for long asks now and then, and not at every step") {
  const Installed installed;
  run_for(std::chrono::milliseconds(400));
  CHECK(asked >= 2);
  CHECK(asked <= 20);
}

TEST_CASE("what the check throws ends the call within 100 ms") {
  const Installed installed;
  stops = true;
  const auto start = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(run_for(std::chrono::seconds(5)), Stop);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(200));
}

TEST_CASE("nobody is asked where no check is installed") {
  {
    const Installed installed;
  }
  asked = 0;
  run_for(std::chrono::milliseconds(200));
  CHECK(asked == 0);
}

TEST_CASE("a watch is asked on its own thread, tells all, and keeps what was thrown") {
  const Installed installed;
  InterruptWatch watch;
  stops = true;
  bool others_ask = false;
  std::thread([&] {
    for (int i = 0; i < 20; ++i) {
      others_ask |= watch.should_stop();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }).join();
  CHECK_FALSE(others_ask);
  CHECK(asked == 0);
  CHECK_NOTHROW(watch.rethrow());
  while (!watch.should_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  bool is_told = false;
  std::thread([&] { is_told = watch.should_stop(); }).join();
  CHECK(is_told);
  CHECK_THROWS_AS(watch.rethrow(), Stop);
}
