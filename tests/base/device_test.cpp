// Memory of devices: the door to the host, order between streams, what is kept until work is done,
// and failures; on the stand-in (standin/standin.h).
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/error.h>
#include <plait/base/examples.h>
#include <plait/base/exchange.h>
#include <plait/base/interrupt.h>
#include <plait/base/stream.h>
#include <plait/base/transfer.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "../problem.h"
#include "base/outcome.h"
#include "standin/standin.h"

using namespace plait;

namespace {

Buffer counting(std::int64_t n, float first = 0) {
  Buffer buffer = Buffer::empty(DType::float32, {n});
  auto* data = static_cast<float*>(buffer.mutable_data());
  std::iota(data, data + n, first);
  return buffer;
}

std::vector<float> values(const Buffer& buffer) {
  const Buffer host = buffer.on_host().dense();
  const auto* data = static_cast<const float*>(host.data());
  return {data, data + num_elements(host.shape())};
}

// Adds one to what a buffer holds, in the order of the stream.
void add_one(const Buffer& buffer, const Stream& stream) {
  buffer.storage().wait_to_write(stream);
  const std::int64_t n = num_elements(buffer.shape());
  auto* data = static_cast<float*>(standin::translate(buffer.placed().data));
  standin::submit(stream, [data, n] {
    for (std::int64_t i = 0; i < n; ++i) data[i] += 1;
  });
  buffer.storage().note_written(stream);
}

struct Failing final : Stream::Work {
  explicit Failing(std::string what) : what(std::move(what)) {}
  std::exception_ptr failure() const override {
    return std::make_exception_ptr(IndexError(what, "use another index"));
  }
  std::string what;
};

}  // namespace

TEST_CASE("devices have names") {
  CHECK(Device{}.to_string() == "cpu:0");
  CHECK(Device::named("cpu") == Device{});
  CHECK(Device::named("standin") == standin::lazy());
  CHECK(Device::named("delayed:1") == standin::delayed(1));
  CHECK(standin::lazy(1).to_string() == "standin:1");
  CHECK(devices().size() == 5);
  CHECK(devices().front().is_host());
  CHECK(problem_and_fix<BackendError>([] { Device::named("tpu:7"); }) ==
        "there is no device tpu:7 | the devices are: cpu:0, standin:0, standin:1, delayed:0, "
        "delayed:1");
  CHECK(
      problem_and_fix<BackendError>([] { Device::named("standin:2"); }).starts_with("there is no"));
}

TEST_CASE("values of every dtype and layout come back as they went") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()})
    for (int number = 0; number < num_dtypes; ++number) {
      const auto dtype = static_cast<DType>(number);
      CAPTURE(name_of(dtype));
      Buffer source = Buffer::empty(dtype, {3, 4, 5});
      auto* bytes = static_cast<unsigned char*>(source.mutable_data());
      for (std::int64_t i = 0; i < source.bytes(); ++i)
        bytes[i] = dtype == DType::bool_ ? i % 2 : static_cast<unsigned char>(7 * i);
      const std::vector<Buffer> layouts = {
          source, source.view_as({5, 3}, {1, 20}, 5 * size_of(dtype)),
          source.view_as({3, 5}, {-20, -1}, 59 * size_of(dtype)),
          source.view_as({2, 4, 3}, {0, 5, 2}, 0), source.view_as({0, 4}, {5, 1}, 0)};
      for (const Buffer& layout : layouts) {
        const Buffer there = layout.on(device);
        CHECK(there.device() == device);
        CHECK(there.shape() == layout.shape());
        const Buffer back = there.on_host(), expected = layout.dense();
        CHECK(back.device().is_host());
        CHECK(std::memcmp(back.data(), expected.data(), std::size_t(expected.bytes())) == 0);
      }
      const Buffer there = source.on(device);
      for (const Buffer& layout : layouts) {  // the same views, of memory on the device
        const Sizes64 &shape = layout.shape(), &strides = layout.strides();
        const std::int64_t offset =
            static_cast<const char*>(layout.data()) - static_cast<const char*>(source.data());
        const Buffer back = there.view_as(shape, strides, offset).on_host();
        const Buffer expected = layout.dense();
        CHECK(std::memcmp(back.data(), expected.data(), std::size_t(expected.bytes())) == 0);
      }
    }
  const Buffer moved =
      counting(10).on(standin::lazy()).on(standin::delayed(1)).on(standin::lazy(1));
  CHECK(values(moved) == values(counting(10)));
}

TEST_CASE("the host does not read memory of a device") {
  const standin::Quiet quiet;
  const Buffer there = counting(4).on(standin::lazy());
  const std::string told =
      "the memory of an array on standin:0 cannot be read or written by the host | copy it to the "
      "host first: Buffer::on_host()";
  CHECK(problem_and_fix<ValueError>([&] { (void)there.data(); }) == told);
  CHECK(problem_and_fix<ValueError>([&] { (void)there.view(); }) == told);
  CHECK(problem_and_fix<ValueError>([&] { (void)Buffer(there).mutable_data(); }) == told);
  CHECK(there.on_host().data() != there.placed().data);

  standin::run_pending();
  const pid_t child = fork();  // the stand-in itself notices: its addresses fault
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
    std::freopen("/dev/null", "w", stderr);
    _exit(*static_cast<volatile const float*>(there.placed().data) == 3 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(!(WIFEXITED(status) && WEXITSTATUS(status) <= 1));
}

TEST_CASE("work is done in the order of its stream, and others wait for it") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const Buffer there = counting(1000).on(device);
    const Stream first = Stream::current(device), second = Stream::make(device);
    for (int i = 0; i < 20; ++i) {
      add_one(there, first);
      add_one(there, second);
    }
    CHECK(values(there) == values(counting(1000, 40)));
    const Buffer copied = [&] {
      const StreamScope scope(second);
      CHECK(Stream::current(device) == second);
      return there.copy();
    }();
    add_one(there, first);  // after the copy has read it
    CHECK(values(copied) == values(counting(1000, 40)));
    CHECK(values(there) == values(counting(1000, 41)));
    CHECK(Stream::current(device) == first);
  }
}

TEST_CASE("memory is given back once no stream uses it") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const std::size_t before = standin::bytes_in_use();
    const Stream first = Stream::current(device), second = Stream::make(device);
    std::vector<Buffer> copies;
    for (int i = 0; i < 50; ++i) {
      const StreamScope scope(second);
      const Buffer source = [&] {
        const StreamScope inner(first);
        return counting(500, float(i)).on(device);
      }();
      copies.push_back(source.copy());  // the source goes while its copy is pending
    }
    for (int i = 0; i < 50; ++i)
      CHECK(values(copies[std::size_t(i)]) == values(counting(500, float(i))));
    CHECK(standin::bytes_in_use() == before + 50 * 500 * sizeof(float));
    copies.clear();
    CHECK(standin::bytes_in_use() == before);
  }
  CHECK(standin::staging_in_use() <= 256 * 4096);  // blocks are kept
}

TEST_CASE("faults of the device are seen by these tests") {
  auto is_right = [](Device device) {
    const Stream first = Stream::current(device), second = Stream::make(device);
    bool right = true;
    for (int round = 0; round < 200 && right; ++round) {
      Buffer there = counting(1000).on(device);
      for (int i = 0; i < 4; ++i) add_one(there, i % 2 ? second : first);
      Buffer copied;
      {
        const StreamScope scope(second);
        copied = there.copy();
        there = Buffer();
        const Buffer next = counting(1000, 7).on(device);  // takes the memory, if it can
      }
      right = values(copied) == values(counting(1000, 4));
      standin::run_pending();
    }
    return right;
  };
  CHECK(is_right(standin::delayed()));
#if !defined(__SANITIZE_THREAD__)  // which reports the races that these are
  for (bool standin::Faults::* fault :
       {&standin::Faults::order_does_nothing, &standin::Faults::frees_at_once,
        &standin::Faults::marks_are_early}) {
    const standin::Quiet quiet;
    standin::faults().*fault = true;
    CHECK_FALSE(is_right(standin::delayed()));
  }
#endif
}

TEST_CASE("a lack of memory is told, and nothing is lost") {
  const standin::Quiet quiet;
  const Device device = standin::lazy();
  const std::size_t before = standin::bytes_in_use();
  {
    const Buffer source = counting(100'000);
    standin::faults().failing_allocation = 1;
    CHECK(values(source.on(device)) == values(source));  // it asks again
    const std::string told =
        problem_and_fix<MemoryError>([&] { Buffer::empty(DType::float32, {1 << 30}, device); });
    CHECK(told.starts_with("cannot allocate 4294967296 bytes on standin:0, where "));
    const Buffer large = counting(3'000'000);  // of a size of which none is kept
    standin::faults().failing_staging = 1;
    standin::faults().failing_again = true;
    CHECK(problem_and_fix<MemoryError>([&] {
            (void)large.on(device);
          }).starts_with("cannot allocate 12000000 bytes of host memory that standin:0 can copy"));
    CHECK(values(source.on(device)) == values(source));
    standin::faults().failing_again = false;
    standin::faults().failing_staging = 1;  // what is kept is given back, and it is asked again
    CHECK(values(large.on(device)) == values(large));
    CHECK(values(source.on(device)) == values(source));
  }
  CHECK(standin::bytes_in_use() == before);
}

TEST_CASE("a lack of memory names those who hold the most of it") {
  const standin::Quiet quiet;
  const Device device = standin::lazy();
  const auto asked_in = [&](int line, std::int64_t bytes) {
    const SourceScope scope(Source("train.cpp", line, "step"));
    return Buffer::empty(DType::uint8, {bytes}, device);
  };
  std::vector<Buffer> held{asked_in(1, 3 << 20), asked_in(2, 2 << 20), asked_in(2, 2 << 20),
                           asked_in(3, (1 << 20) - 1), asked_in(9, 1 << 20)};
  asked_in(4, 1 << 23);  // and drops it
  const Buffer elsewhere = Buffer::empty(DType::uint8, {1 << 24}, standin::lazy(1));
  const auto told = [&] {
    return problem_and_fix<MemoryError>([&] { Buffer::empty(DType::uint8, {1LL << 40}, device); });
  };
  CHECK(told().find(" are in use, most of it by\n"
                    "    2 x 2097152 bytes: train.cpp:2 in step\n"
                    "    3145728 bytes: train.cpp:1 in step\n"
                    "    1048576 bytes: train.cpp:9 in step | ") != std::string::npos);
  for (int line = 5; line < 20; ++line) held.push_back(asked_in(line, 4 << 20));
  const std::string many = told();
  CHECK(std::ranges::count(many, '\n') == 5);
  held.clear();
  CHECK(told().find(" are in use | ") != std::string::npos);
}

TEST_CASE("large arrays are copied in pieces, by memory that is kept") {
  const standin::Quiet quiet;
  const Buffer flat = counting(35'000'000);  // five pieces
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const auto same = [](const Buffer& on_device, const Buffer& here) {
      const Buffer back = on_device.on_host(), wanted = here.dense();
      CHECK(std::memcmp(back.data(), wanted.data(), std::size_t(wanted.bytes())) == 0);
    };
    const Buffer there = flat.on(device);
    same(there, flat);
    const std::vector<std::pair<Sizes64, Sizes64>> layouts = {
        {{7, 2, 1'000'000}, {5'000'000, 1, 2}}, {{1, 2, 9'000'000}, {0, 15'000'000, 1}}};
    for (const auto& [shape, strides] : layouts) {
      const Buffer view = flat.view_as(shape, strides, 0);
      same(there.view_as(shape, strides, 0), view);
      same(view.on(device), view);
    }
    Stream::current(device).synchronize();
    CHECK(standin::staging_in_use() <= 2 * 256 * (std::size_t{1} << 20));  // of two devices
  }
}

TEST_CASE("what failed is told at the next wait that covers it, once") {
  const standin::Quiet quiet;
  const Stream stream = Stream::make(standin::lazy());
  stream.keep(std::make_shared<Failing>("the first"));
  stream.synchronize(0);  // covers nothing
  const std::uint64_t ticket = stream.ticket();
  while (!stream.is_done(ticket)) {
  }
  CHECK_THROWS_WITH_AS(stream.synchronize(), doctest::Contains("the first"), IndexError);
  CHECK_NOTHROW(stream.synchronize());
  for (int i = 0; i < 3000; ++i) stream.keep(std::make_shared<Stream::Work>());  // stays bounded
  stream.keep(std::make_shared<Failing>("the second"));
  stream.keep(std::make_shared<Failing>("the third"));
  CHECK_THROWS_WITH_AS(stream.synchronize(), doctest::Contains("the second"), IndexError);
  CHECK_THROWS_WITH_AS(stream.synchronize(), doctest::Contains("the third"), IndexError);
  CHECK_NOTHROW(stream.synchronize());
}

TEST_CASE("what is kept lives until the work is done, and no longer") {
  const standin::Quiet quiet;
  const Stream stream = Stream::make(standin::delayed());
  auto kept = std::make_shared<const Stream::Work>();
  std::weak_ptr<const Stream::Work> watched = kept;
  standin::submit(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  stream.keep(std::move(kept));
  stream.let_go();
  CHECK_FALSE(watched.expired());
  stream.synchronize();
  CHECK(watched.expired());
}

TEST_CASE("a wait can be interrupted") {
  const standin::Quiet quiet;
  const Stream stream = Stream::make(standin::delayed());
  standin::submit(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); });
  struct Stopped {};
  set_interrupt_check([] { throw Stopped(); });
  CHECK_THROWS_AS(stream.synchronize(), Stopped);
  set_interrupt_check(nullptr);
  CHECK_NOTHROW(stream.synchronize());
}

TEST_CASE("memory that fails to be written says so whenever it is read") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const Stream first = Stream::current(device), second = Stream::make(device);
    struct Writing final : Stream::Work {
      explicit Writing(std::shared_ptr<Outcome> outcome) : outcome(std::move(outcome)) {}
      std::exception_ptr failure() const override {
        const auto thrown = std::make_exception_ptr(IndexError("it fails", ""));
        outcome->settle(thrown);
        return thrown;
      }
      std::shared_ptr<Outcome> outcome;
    };
    const Buffer good = counting(10).on(device);
    Buffer bad = counting(10).on(device);
    {
      auto outcome = std::make_shared<Outcome>(second, Outcome::Own::pending);
      const OutcomeScope scope(outcome);
      add_one(bad, second);
      second.keep(std::make_shared<Writing>(outcome));
    }
    const Buffer copied = bad.copy();
    for (int i = 0; i < 3; ++i) {
      CHECK_THROWS_WITH_AS(bad.on_host(), doctest::Contains("it fails"), IndexError);
      CHECK_THROWS_WITH_AS(copied.wait(), doctest::Contains("it fails"), IndexError);
      CHECK_THROWS_WITH_AS((void)copied.on(standin::lazy(1)), doctest::Contains("it fails"),
                           IndexError);
      CHECK(values(good) == values(counting(10)));
    }
    CHECK_THROWS_AS(second.synchronize(), IndexError);  // of the work itself, once
    CHECK_NOTHROW(second.synchronize());
    add_one(bad, first);  // written again, by what does not fail
    CHECK(values(bad) == values(counting(10, 2)));
  }
}

TEST_CASE("the error of work that is done later names the transforms of its submission") {
  const SavedScopes none = SavedScopes::of_this_thread();
  std::optional<SavedScopes> saved;
  {
    const TransformScope outer("grad", "loss"), inner("vmap", "");
    saved = SavedScopes::of_this_thread();
  }
  const TransformScope here("jvp", "f");
  {
    const ScopesAgain again(*saved);
    CHECK(std::string(IndexError("it fails", "").what()).find("while applying grad(vmap(loss))") !=
          std::string::npos);
    const ScopesAgain inner(none);
    CHECK(std::string(IndexError("it fails", "").what()).find("while") == std::string::npos);
  }
  CHECK(TransformScope::current() == "jvp(f)");
}

TEST_CASE("memory that another library lends is read in order, and given back behind that") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const Buffer theirs = counting(1000).on(device);
    std::atomic<int> given_back = 0;
    Buffer copied;
    {
      const Buffer lent(
          lent_storage(theirs.placed().data, 4000, Stream::current(device), [&] { ++given_back; }),
          theirs.placed());
      CHECK(lent.device() == device);
      CHECK(lent.storage().data() != lent.placed().data);
      if (device == standin::delayed())
        standin::submit(Stream::current(device),
                        [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
      copied = lent.copy();
    }
    CHECK(given_back == 0);
    CHECK(values(copied) == values(counting(1000)));
    Stream::current(device).synchronize();
    CHECK(given_back == 1);
  }
}

TEST_CASE("a stream of another library comes behind ours, and ours behind what it reads") {
  const standin::Quiet quiet;
  for (const Device device : {standin::lazy(), standin::delayed()}) {
    const Stream own = Stream::current(device), theirs = Stream::make(device);
    const std::int64_t number = foreign_number(theirs).value();
    const std::size_t before = standin::bytes_in_use();
    for (int i = 0; i < 30; ++i) {
      const Buffer copied = Buffer::empty(DType::float32, {1000}, device);
      standin::run_pending();
      {
        const Buffer given = counting(1000).on(device);
        add_one(given, own);
        let_foreign_read(given, number);
        copy(given.placed(), copied.placed(), theirs);
        note_foreign_read(given.storage(), number);
      }
      const Buffer next = counting(1000, 7).on(device);  // takes the memory, if it can
      theirs.synchronize();
      CHECK(values(copied) == values(counting(1000, 1)));
    }
    CHECK(standin::bytes_in_use() == before);
    const Buffer given = counting(10).on(device);  // a stream without a handle is waited for
    let_foreign_read(given, 1);
    CHECK(own.is_done(own.ticket() - 1));
  }
}

TEST_CASE("two threads use one buffer on streams of their own") {
  const standin::Quiet quiet;
  const Device device = standin::delayed();
  const Buffer source = counting(1000).on(device);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&] {
      const StreamScope scope(Stream::make(device));
      for (int i = 0; i < 100; ++i) {
        const Buffer copied = source.copy();
        add_one(copied, Stream::current(device));
        wrong += values(copied) != values(counting(1000, 1));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("the child of a fork is refused a device that its parent used") {
  const standin::Quiet quiet;
  (void)Stream::current(standin::lazy());
  const pid_t child = fork();
  if (child == 0) {
    const std::string told =
        problem_and_fix<BackendError>([] { Stream::current(standin::lazy()); });
    _exit(told.find("cannot be used in the child of a fork") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}
