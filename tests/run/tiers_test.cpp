// Programs that start at once and get faster: which tier runs when, and what becomes of a slow
// compilation that fails, is not wanted any more, or stays behind a fork.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/compile/backend.h>
#include <plait/plait.h>
#include <plait/trace/wait.h>
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
  Support supports(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval>,
                   Device) const override {
    const bool mine = equation.primitive->name() == "neg" && inputs[0].dtype == DType::int8 &&
                      inputs[0].rank() == 1 && inputs[0].shape.to_sizes()[0] >= 3 &&
                      inputs[0].shape.to_sizes()[0] <= 5;
    return mine ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target&) const override;
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
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    ++gate.run;
    kernel_->enqueue(inputs, outputs, scratch, launch);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

std::unique_ptr<Kernel> SlowBackend::compile(const Jaxpr& group, const Target&) const {
  gate.wait();
  ++gate.compiled;
  if (group->input_avals()[0].shape.to_sizes()[0] == 4)
    throw BackendError("out of registers", "use fewer");
  return std::make_unique<SlowKernel>(find_backend("reference")->compile(group, {}));
}

std::shared_ptr<const Executable> negation(std::int64_t n) {
  static const bool registered =
      register_backend(std::make_unique<SlowBackend>(), Preference::library);
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

// So often that a better tier is asked for, of however small a program.
void call_often(const Executable& executable, std::int64_t n) {
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) wrong += !is_right(executable, n);
  CHECK(wrong == 0);
}

// PLAIT_WAIT is for the programs of other tests: here the first tier is wanted.
const bool no_waiting = unsetenv("PLAIT_WAIT") == 0;

}  // namespace

TEST_CASE("a program runs on its first tier until the better one is compiled") {
  gate.close();
  const auto executable = negation(3);
  const int before = gate.run;
  call_often(*executable, 3);
  CHECK(gate.run == before);
  CHECK(executable->explain().find("tier: first; generated loops replace it") != std::string::npos);
  gate.open();
  CHECK(comes_true([&] { return is_right(*executable, 3) && gate.run > before; }));
  CHECK(executable->explain().find("slow") != std::string::npos);
  CHECK(executable->explain().find("tier: last") != std::string::npos);
}

TEST_CASE("a small program that runs twice is not compiled again") {
  gate.open();
  const int before = gate.compiled;
  const auto executable = negation(3);
  CHECK((is_right(*executable, 3) && is_right(*executable, 3)));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(gate.compiled == before);
}

TEST_CASE("what slow backends alone run is compiled before the first call") {
  gate.open();
  (void)negation(3);  // registers the backend
  const int before = gate.run;
  const Jaxpr program = parse("{ lambda ; a:i8[5] . let\n b:i8[5] = neg a\n in (b) }");
  const auto executable = compile(program, {.backends = {find_backend("slow")}});
  CHECK(is_right(*executable, 5));
  CHECK(gate.run == before + 1);
  CHECK(executable->explain().find("tier") == std::string::npos);
}

TEST_CASE("a compilation that fails leaves the first tier, which says so") {
  gate.open();
  const auto executable = negation(4);
  call_often(*executable, 4);
  CHECK(comes_true([&] {
    return is_right(*executable, 4) &&
           executable->explain().find("generated loops failed: out of registers") !=
               std::string::npos;
  }));
  CHECK(is_right(*executable, 4));
}

TEST_CASE("an executable may go while its better tier waits to be compiled") {
  gate.close();
  auto blocks = negation(5), gone = negation(3);
  call_often(*blocks, 5), call_often(*gone, 3);
  gone.reset();
  gate.open();
  const int before = gate.run;
  CHECK(comes_true([&] { return is_right(*blocks, 5) && gate.run > before; }));
}

TEST_CASE("threads that call one executable see it change tiers") {
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
  gate.open();
  const auto executable = negation(3);
  call_often(*executable, 3);
  const pid_t child = fork();
  if (child == 0) {
    bool right = true;
    for (int i = 0; i < 2000; ++i) right &= is_right(*executable, 3);
    _exit(right && is_right(*negation(5), 5) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("a fork waits for work in the background only until it holds no lock") {
  gate.open();
  std::vector<std::shared_ptr<const Executable>> running;
  int failed = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string n = std::to_string(1000 + round);
    const auto executable = compile(parse("{ lambda ; a:f32[" + n + "] . let\n b:f32[" + n +
                                          "] = tanh a\n c:f32[" + n + "] = mul b a\n in (c) }"));
    const Buffer input = lax::full({1000 + round}, 1, DType::float32).buffer().dense();
    for (int i = 0; i < 1000; ++i) executable->run(std::span(&input, 1));
    running.push_back(executable);
    const pid_t child = fork();
    if (child == 0) {
      executable->run(std::span(&input, 1));
      _exit(is_right(*negation(3), 3) ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  CHECK(failed == 0);
}

TEST_CASE("compile may wait for the last tier, of new programs and of running ones") {
  gate.open();
  const Jaxpr program = parse(
      "{ lambda ; a:i8[3] . let\n b:i8[3] = neg a\n c:i8[3] = neg b\n d:i8[3] "
      "= neg c\n in (d) }");
  const auto first = compile(program);
  CHECK(first->explain().find("tier: first") != std::string::npos);
  const Waiting waiting;
  const auto waited = compile(program);
  CHECK(waited == first);
  CHECK(first->explain().find("tier: last") != std::string::npos);
  const int before = gate.run;
  CHECK(is_right(*waited, 3));
  CHECK(gate.run > before);
}

TEST_CASE("a compilation that is waited for and fails leaves the first tier, which says so") {
  const Waiting waiting;
  const auto executable =
      compile(parse("{ lambda ; a:i8[4] . let\n b:i8[4] = neg a\n c:i8[4] = neg b\n d:i8[4] = neg "
                    "c\n in (d) }"));
  CHECK(is_right(*executable, 4));
  CHECK(executable->explain().find("generated loops failed: out of registers") !=
        std::string::npos);
}

TEST_CASE("a loop changes over to the better tier between iterations") {
  gate.close();
  const auto executable = compile(parse(
      "{ lambda ; a:i8[5] . let\n b:i8[5] = scan[body={ lambda ; a:i8[5] . let\n b:i8[5] = neg a\n "
      "in (b) }, carry=1, length=3001, reverse=false, xs=0] a\n in (b) }"));
  gate.open();
  const int before = gate.run;
  CHECK(comes_true([&] { return is_right(*executable, 5) && gate.run > before; }));
}

TEST_CASE("a jitted function waits when asked") {
  gate.open();
  const int before = gate.run;
  const auto f = jit([](const Array& x) { return lax::neg(x); });
  const Waiting waiting;
  CHECK(*static_cast<const std::int8_t*>(f(ints(3)).buffer().dense().data()) == -7);
  CHECK(gate.run > before);
}

TEST_CASE("a program that runs long is compiled again after few calls, by the time they took") {
  gate.open();
  // 0.5 ms a call and more, of which the loop of negations is the slow backend's, step by step.
  const auto executable = compile(parse(
      "{ lambda ; a:i8[5] b:f32[4000000] . let\n c:f32[4000000] = exp b\n d:f32[4000000] = sin c\n "
      "e:i8[5] = neg a\n in (e, d) }"));
  const Buffer inputs[] = {ints(5).buffer().dense(),
                           lax::full({4000000}, 1, DType::float32).buffer().dense()};
  const int before = gate.compiled;
  for (int i = 0; i < 4; ++i) executable->run(inputs);
  CHECK(comes_true([&] { return gate.compiled > before; }));
}

TEST_CASE("a C++ function is compiled for its arguments without a call, and jit waits for one") {
  gate.open();
  const auto negate = [](const Array& x) { return lax::neg(x); };
  const auto f = jit(negate);
  int compiled = gate.compiled, run = gate.run;
  f.compile_for(ints(3));
  CHECK(gate.compiled > compiled);
  CHECK(gate.run == run);
  CHECK(*static_cast<const std::int8_t*>(f(ints(3)).buffer().dense().data()) == -7);
  CHECK(gate.run == run + 1);

  const auto twice = [](const Array& x) { return lax::neg(lax::neg(lax::neg(x))); };
  const auto g = jit(twice, {.name = "g", .wait = true});
  compiled = gate.compiled;
  run = gate.run;
  CHECK(*static_cast<const std::int8_t*>(g(ints(5)).buffer().dense().data()) == -7);
  CHECK(gate.compiled > compiled);
  CHECK(gate.run > run);
}

namespace {

// Takes loops over float64 scalars whole, whatever they do, and says when.
class LoopBackend final : public Backend {
 public:
  static inline std::atomic<int> run{0};
  static inline std::atomic<double> first{0};  // the carry that the last run began with

  std::string_view name() const override { return "loops"; }
  bool runs_eagerly() const override { return false; }
  Support supports(const Equation& equation, std::span<const Aval> inputs, std::span<const Aval>,
                   Device) const override {
    const auto name = equation.primitive->name();
    const bool mine = (name == "while" || name == "scan") && inputs[0].rank() == 0 &&
                      inputs[0].dtype == DType::float64;
    return mine ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target&) const override {
    struct Whole final : Kernel {
      explicit Whole(std::unique_ptr<Kernel> kernel) : kernel(std::move(kernel)) {}
      std::int64_t scratch_bytes() const override { return kernel->scratch_bytes(); }
      void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
                   const Launch& launch) const override {
        ++LoopBackend::run;
        first = *inputs[0].as<double>();
        kernel->enqueue(inputs, outputs, scratch, launch);
      }
      std::unique_ptr<Kernel> kernel;
    };
    return std::make_unique<Whole>(find_backend("control")->compile(group, {}));
  }
};

double run_loop(const Executable& executable, double start) {
  const Buffer input = lax::full({}, start, DType::float64).buffer().dense();
  return *static_cast<const double*>(executable.run(std::span(&input, 1))[0].data());
}

std::shared_ptr<const Executable> counting(const std::string& loop) {
  static const bool registered =
      register_backend(std::make_unique<LoopBackend>(), Preference::library);
  REQUIRE(registered);
  return compile(parse("{ lambda ; a:f64[] . let\n b:f64[] = " + loop + " a\n in (b) }"));
}

std::string counting_to(const std::string& end, const std::string& params = "") {
  return "while[body={ lambda ; a:f64[] . let\n b:f64[] = add a 1.0:f64\n in (b) }, carry=1, "
         "cond={ "
         "lambda ; a:f64[] . let\n b:bool[] = cmp[direction='lt'] a " +
         end + ":f64\n in (b) }, cond_consts=0" + params + "]";
}

std::string counting_steps(const std::string& length) {
  return "scan[body={ lambda ; a:f64[] . let\n b:f64[] = add a 1.0:f64\n in (b) }, carry=1, "
         "length=" +
         length + ", reverse=false, xs=0]";
}

}  // namespace

TEST_CASE("a loop that is known to be long is compiled before its first call, a short one is not") {
  const int before = LoopBackend::run;
  const auto longer = counting(counting_steps("10000000")), shorter = counting(counting_steps("9"));
  CHECK(run_loop(*shorter, 1) == 10);
  CHECK(LoopBackend::run == before);
  CHECK(shorter->explain().find("tier: first") != std::string::npos);
  CHECK(longer->explain().find("tier: last; compiled before the first call") != std::string::npos);
  CHECK(LoopBackend::run == before);
}

TEST_CASE("a loop of unknown length changes over within a call and goes on where it was") {
  const int before = LoopBackend::run;
  CHECK(run_loop(*counting(counting_to("12.0")), 3) == 12);
  CHECK(LoopBackend::run == before);
  CHECK(run_loop(*counting(counting_to("1000000.0")), 3) == 1000000);
  CHECK(LoopBackend::run == before + 1);
  CHECK(LoopBackend::first > 3);
  CHECK(LoopBackend::first < 1000000);
}

TEST_CASE("a loop that changes over still ends after max_steps, and says how many") {
  CHECK_THROWS_WITH_AS(run_loop(*counting(counting_to("1000000000.0", ", max_steps=1000000")), 0),
                       doctest::Contains("after max_steps = 1000000 steps"), ValueError);
  CHECK(run_loop(*counting(counting_to("1000000.0", ", max_steps=1000000")), 0) == 1000000);
}

TEST_CASE("what goes on from a step of a loop is compiled once, however many are left") {
  const auto bounded = counting(counting_to("1000000.0", ", max_steps=2000000"));
  CHECK(run_loop(*bounded, 0) == 1000000);
  const int before = LoopBackend::run;
  CHECK(run_loop(*bounded, 500000) == 1000000);
  CHECK(LoopBackend::run == before + 1);
  CHECK(LoopBackend::first < 500100);  // at the first look: nothing is compiled any more
}
