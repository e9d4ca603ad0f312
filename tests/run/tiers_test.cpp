// Programs that start at once and get faster: which tier runs when, and what becomes of a slow
// compilation that fails, is not wanted any more, or stays behind a fork.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/compile/backend.h>
#include <plait/plait.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

using namespace plait;

namespace {

// Negates int8 arrays of 3, 4 or 5 elements, after a compilation that waits to be let through. Of 4
// it fails; others it leaves.
class SlowBackend final : public Backend {
 public:
  std::string_view name() const override { return "slow"; }
  bool runs_eagerly() const override { return false; }
  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval>) const override {
    const bool mine = equation.primitive->name() == "neg" && inputs[0].dtype == DType::int8 &&
                      inputs[0].rank() == 1 && inputs[0].shape.to_sizes()[0] >= 3 &&
                      inputs[0].shape.to_sizes()[0] <= 5;
    return mine ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group) const override;
};

struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  std::atomic<int> compiled{0}, run{0};

  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex);
    is_open = false;
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_open; });
  }
};
Gate gate;

class SlowKernel final : public Kernel {
 public:
  explicit SlowKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream& stream) const override {
    ++gate.run;
    kernel_->run(inputs, outputs, scratch, stream);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

std::unique_ptr<Kernel> SlowBackend::compile(const Jaxpr& group) const {
  gate.wait();
  ++gate.compiled;
  if (group->input_avals()[0].shape.to_sizes()[0] == 4)
    throw BackendError("out of registers", "use fewer");
  return std::make_unique<SlowKernel>(find_backend("reference")->compile(group));
}

std::shared_ptr<const Executable> negation(std::int64_t n) {
  static const bool registered =
      register_backend(std::make_unique<SlowBackend>(), Preference::loops);
  REQUIRE(registered);
  const std::string type = "i8[" + std::to_string(n) + "]";
  return compile(parse("{ lambda ; a:" + type + " . let\n b:" + type + " = neg a\n in (b) }"));
}

Array ints(std::int64_t n) { return lax::full({n}, 7, DType::int8); }

bool is_right(const Executable& executable, std::int64_t n) {
  const Buffer input = ints(n).buffer().dense();
  const Buffer output = executable.run(std::span(&input, 1))[0];
  for (std::int64_t i = 0; i < n; ++i)
    if (static_cast<const std::int8_t*>(output.data())[i] != -7) return false;
  return true;
}

// Whether it comes true within some seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

bool waits() {
  const char* wanted = std::getenv("PLAIT_WAIT");
  return wanted && *wanted && std::string(wanted) != "0";
}

}  // namespace

TEST_CASE("a program runs on its first tier until the better one is compiled") {
  if (waits()) return;
  gate.close();
  const auto executable = negation(3);
  const int before = gate.run;
  for (int i = 0; i < 5; ++i) CHECK(is_right(*executable, 3));
  CHECK(gate.run == before);
  CHECK(executable->explain().find("tier: first; generated loops replace it") != std::string::npos);
  gate.open();
  CHECK(comes_true([&] { return is_right(*executable, 3) && gate.run > before; }));
  CHECK(executable->explain().find("slow") != std::string::npos);
  CHECK(executable->explain().find("tier: last") != std::string::npos);
}

TEST_CASE("a program that runs once is not compiled again") {
  if (waits()) return;
  gate.open();
  const int before = gate.compiled;
  CHECK(is_right(*negation(3), 3));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(gate.compiled == before);
}

TEST_CASE("a compilation that fails leaves the first tier, which says so") {
  if (waits()) return;
  gate.open();
  const auto executable = negation(4);
  CHECK(comes_true([&] {
    return is_right(*executable, 4) &&
           executable->explain().find("generated loops failed: out of registers") !=
               std::string::npos;
  }));
  CHECK(is_right(*executable, 4));
}

TEST_CASE("an executable may go while its better tier waits to be compiled") {
  if (waits()) return;
  gate.close();
  auto blocks = negation(5), gone = negation(3);
  for (int i = 0; i < 3; ++i) CHECK((is_right(*blocks, 5) && is_right(*gone, 3)));
  gone.reset();
  gate.open();
  const int before = gate.run;
  CHECK(comes_true([&] { return is_right(*blocks, 5) && gate.run > before; }));
}

TEST_CASE("threads that call one executable see it change tiers") {
  if (waits()) return;
  gate.close();
  const auto executable = negation(5);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        if (i == 100) gate.open();
        wrong += !is_right(*executable, 5);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a forked child stays on first tiers and runs") {
  if (waits()) return;
  gate.open();
  const auto executable = negation(3);
  CHECK(is_right(*executable, 3));
  const pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (int i = 0; i < 4; ++i) right &= is_right(*executable, 3);
    _exit(right && is_right(*negation(5), 5) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}
