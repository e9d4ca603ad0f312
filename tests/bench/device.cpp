// bench_device: what plait itself costs on a device, in lines "name value": nanoseconds of calls of
// a captured program, on a device of no work. Its driver gives memory and starts nothing, so that
// what is left is plait's.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/compile/backend.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

#include "clock.h"
#include "right.h"

using namespace plait;

namespace {

class IdleDriver final : public Driver {
 public:
  std::string_view name() const override { return "idle"; }
  int num_devices() const override { return 1; }
  std::string describe(Device) const override { return "a device of no work"; }
  int dlpack_type() const override { return 12; }
  bool is_lost(Device) const override { return false; }
  void* allocate(Device, std::size_t bytes, void*) override { return take(bytes); }
  void deallocate(Device, void* data, std::size_t bytes, void*) noexcept override {
    if (bytes <= kept_bytes)
      free_.push_back(data);
    else
      std::free(data);
  }
  void* allocate_staging(Device, std::size_t bytes) override { return std::malloc(bytes); }
  void deallocate_staging(Device, void* data, std::size_t) noexcept override { std::free(data); }
  void* make_stream(Device) override { return this; }
  void mark(void*, std::uint64_t) override {}
  std::uint64_t reached(void*) override { return std::numeric_limits<std::uint64_t>::max(); }
  bool wait(void*, std::uint64_t, std::chrono::milliseconds) override { return true; }
  void order(void*, void*, std::uint64_t) override {}
  void copy(void*, const View&, const View&, Between) override {}
  void clear(void*, void*, std::size_t) override {}
  std::unique_ptr<Captured> capture(void*, const std::function<void()>& give) override {
    give();
    return std::make_unique<Captured>();
  }
  bool change(void*, Captured&, const std::function<void()>& give) override {
    give();
    return true;
  }
  void replay(void*, Captured&) override { ++num_replays; }
  long num_replays = 0;

 private:
  static constexpr std::size_t kept_bytes = 1024;
  void* take(std::size_t bytes) {
    if (bytes > kept_bytes || free_.empty()) return std::malloc(std::max(bytes, kept_bytes));
    void* const data = free_.back();
    free_.pop_back();
    return data;
  }
  std::vector<void*> free_;
};

struct IdleKernel final : Kernel {
  void enqueue(std::span<const View>, std::span<const View>, void*, const Launch&) const override {}
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return false; }
};

Device idle;

struct IdleBackend final : Backend {
  std::string_view name() const override { return "idle"; }
  bool runs_on(Device device) const override { return device.kind == idle.kind; }
  Support supports(const Equation&, std::span<const Aval>, std::span<const Aval>,
                   Device) const override {
    return Support::yes();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr&, const Target&) const override {
    return std::make_unique<IdleKernel>();
  }
};

}  // namespace

int main() {
  auto made = std::make_unique<IdleDriver>();
  const IdleDriver& driver = *made;
  idle = {register_driver(std::move(made)), 0};
  register_backend(std::make_unique<IdleBackend>(), Preference::library);
  const Array x = device_put(lax::iota(DType::float32, {8}, 0), idle);
  for (const int equations : {4, 40}) {
    const auto chain = [=](const Array& start) -> Array {
      Array y = start;
      for (int i = 0; i < equations; ++i) y = lax::sin(y);
      return y;
    };
    const auto executable = compile(make_jaxpr(chain, x).jaxpr, {.device = idle});
    const Buffer input = x.buffer();
    const Buffer* inputs[] = {&input};
    const auto call = [&] {
      Buffer output;
      executable->run(inputs, std::span<Buffer>(&output, 1));
    };
    for (int i = 0; i < 10; ++i) call();
    const long before = driver.num_replays;
    call();
    require_near(double(driver.num_replays - before), 1, 0, "replays of a call");
    std::printf("captured_call_of_%d_ns %.1f\n", equations, nanoseconds(200, 500, call));
  }
}
