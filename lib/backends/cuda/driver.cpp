// See driver.h.
// SPDX-License-Identifier: Apache-2.0
#include "driver.h"

#include <plait/base/driver.h>
#include <plait/base/error.h>
#include <plait/compile/backend.h>

#include <optional>

#include "base/placement.h"
#include "captures.h"
#include "copies.h"
#include "marks.h"
#include "work.h"

namespace plait::cuda {
namespace {

constexpr int kDLCUDA = 2;

MarkedStream& marked(void* stream) { return *static_cast<MarkedStream*>(stream); }
CUdeviceptr address_of(const void* data) {
  return CUdeviceptr(reinterpret_cast<std::uintptr_t>(data));
}
std::size_t bytes_of(const View& view) { return std::size_t(view.size() * size_of(view.dtype)); }

// Streams that have no handle have the numbers that DLPack gives them: 1 and 2.
CUstream foreign_stream(std::int64_t number) {
  return reinterpret_cast<CUstream>(std::uintptr_t(number));
}

std::size_t total_memory(Device device) {
  CUdevice handle = 0;
  std::size_t bytes = 0;
  check(driver_api()->cuDeviceGet(&handle, device.index), "find a device");
  check(driver_api()->cuDeviceTotalMem(&bytes, handle), "count the memory of a device");
  return bytes;
}

// Dense memory of the device on the way between the host and a view with gaps.
class Way {
 public:
  Way(MarkedStream& stream, const View& like)
      : stream_(stream),
        view_{stream.state().memory->allocate(stream.kept_blocks(), bytes_of(like)), like.dtype,
              like.shape, dense_strides(like.shape)} {
    if (!view_.data) throw_out_of_memory(stream.state().device, bytes_of(like));
  }
  ~Way() { stream_.state().memory->deallocate(stream_.kept_blocks(), view_.data, bytes_of(view_)); }
  Way(const Way&) = delete;
  const View& view() const { return view_; }

 private:
  MarkedStream& stream_;
  const View view_;
};

class CudaDriver final : public Driver {
 public:
  std::string_view name() const override { return "cuda"; }
  int num_devices() const override { return std::min(driver_api()->num_devices, 256); }
  std::string describe(Device device) const override;
  int dlpack_type() const override { return kDLCUDA; }
  bool is_lost(Device device) const override {
    const DeviceState* state = state_if_used(device);
    return state && state->is_lost;
  }

  void* allocate(Device device, std::size_t bytes, void* stream) override {
    return state_of(device).memory->allocate(marked(stream).kept_blocks(), bytes);
  }
  // What is gone with the parent of a fork, or with the context, is not given back.
  void deallocate(Device device, void* data, std::size_t bytes, void* stream) noexcept override {
    if (is_forked() || is_lost(device)) return;
    state_if_used(device)->memory->deallocate(marked(stream).kept_blocks(), data, bytes);
  }
  std::optional<MemoryStatistics> memory_statistics(Device device) const override {
    if (is_forked()) return {};
    if (const DeviceState* state = state_if_used(device)) return state->memory->statistics();
    const std::size_t total = total_memory(device);
    MemoryStatistics unused;
    unused.limit = std::min(total, memory_limit(total).value_or(total));
    return unused;
  }
  void release_memory(Device device) override {
    DeviceState* const state = is_forked() ? nullptr : state_if_used(device);
    if (state && !state->is_lost) state->memory->release();
  }
  void* allocate_staging(Device device, std::size_t bytes) override;
  void deallocate_staging(Device device, void* data, std::size_t) noexcept override;

  void* make_stream(Device device) override { return new MarkedStream(state_of(device)); }
  void mark(void* stream, std::uint64_t number) override { marked(stream).mark(number); }
  std::uint64_t reached(void* stream) override { return marked(stream).reached(); }
  bool wait(void* stream, std::uint64_t number, std::chrono::milliseconds most) override {
    return marked(stream).wait(number, most);
  }
  void order(void* later, void* stream, std::uint64_t number) override {
    const CurrentContext current(marked(later).state().device);
    marked(stream).order(marked(later).stream(), marked(later).state(), number);
  }
  std::optional<std::int64_t> foreign_number(void* stream) const override {
    return std::int64_t(reinterpret_cast<std::uintptr_t>(marked(stream).stream()));
  }
  bool order_foreign(std::int64_t later, void* stream, std::uint64_t number) override {
    const CurrentContext current(marked(stream).state().device);
    marked(stream).order(foreign_stream(later), marked(stream).state(), number);
    return true;
  }
  bool order_behind_foreign(void* later, std::int64_t stream) override {
    const CurrentContext current(marked(later).state().device);
    order_behind(marked(later).stream(), foreign_stream(stream), marked(later).state());
    return true;
  }

  void copy(void* stream, const View& from, const View& to, Between memories) override;
  void clear(void* stream, void* data, std::size_t bytes) override {
    DeviceState& state = marked(stream).state();
    const CurrentContext current(state.device);
    state.require(cuda::clear(marked(stream).stream(), address_of(data), bytes), "clear memory");
  }

  std::unique_ptr<Captured> capture(void* stream, const std::function<void()>& give) override {
    DeviceState& state = marked(stream).state();
    const CurrentContext current(state.device);
    return capture_work(state, marked(stream).stream(), give);
  }
  bool change(void* stream, Captured& captured, const std::function<void()>& give) override {
    DeviceState& state = marked(stream).state();
    const CurrentContext current(state.device);
    return change_captured(state, marked(stream).stream(), captured, give);
  }
  void replay(void* stream, Captured& captured) override {
    DeviceState& state = marked(stream).state();
    const CurrentContext current(state.device);
    replay_captured(state, marked(stream).stream(), captured);
  }
};

std::string CudaDriver::describe(Device device) const {
  if (is_forked()) return "not usable in the child of a fork";
  const DriverApi& api = *driver_api();
  CUdevice handle = 0;
  char model[256] = "";
  int major = 0, minor = 0;
  check(api.cuDeviceGet(&handle, device.index), "find a device");
  check(api.cuDeviceGetName(model, sizeof model, handle), "name a device");
  check(api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle),
        "ask what a device can do");
  check(api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle),
        "ask what a device can do");
  return std::string(model) + ", " + std::to_string(total_memory(device) >> 30) +
         " GiB, compute capability " + std::to_string(major) + "." + std::to_string(minor);
}

void* CudaDriver::allocate_staging(Device device, std::size_t bytes) {
  const CurrentContext current(device);
  void* data = nullptr;
  const CUresult result = driver_api()->cuMemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  state_of(device).require(result, "allocate host memory");
  return data;
}

void CudaDriver::deallocate_staging(Device device, void* data, std::size_t) noexcept {
  if (is_forked() || is_lost(device)) return;
  try {
    const CurrentContext current(device);
    state_of(device).note(driver_api()->cuMemFreeHost(data), "free host memory");
  } catch (...) {
  }
}

// The device that memory lies on.
int ordinal_of(const View& view, DeviceState& state) {
  int ordinal = 0;
  state.require(driver_api()->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                                    address_of(view.data)),
                "ask where memory is");
  return ordinal;
}

// Between equal runs of bytes on devices, of which one is the stream's.
void copy_run(DeviceState& state, CUstream stream, const View& from, const View& to) {
  const DriverApi& api = *driver_api();
  const std::size_t bytes = bytes_of(from);
  if (api.num_devices > 1) {
    const int source = ordinal_of(from, state), target = ordinal_of(to, state);
    if (source != target) {
      const auto context = [&](int ordinal) {
        return state_of({state.device.kind, std::uint8_t(ordinal)}).context;
      };
      return state.require(
          api.cuMemcpyPeerAsync(address_of(to.data), context(target), address_of(from.data),
                                context(source), bytes, stream),
          "copy between devices");
    }
  }
  state.require(copy_bytes(stream, address_of(to.data), address_of(from.data), bytes), "copy");
}

void CudaDriver::copy(void* handle, const View& from, const View& to, Between memories) {
  const DriverApi& api = *driver_api();
  DeviceState& state = marked(handle).state();
  const CUstream stream = marked(handle).stream();
  const CurrentContext current(state.device);
  const bool is_run = are_one_run(from, to);
  if (memories == Between::device) {
    if (is_run) return copy_run(state, stream, from, to);
    return copy_strided(state.device, stream, from, to);
  }
  // What has gaps on the device lies dense there on the way.
  const bool from_host = memories == Between::from_host;
  const View& there = from_host ? to : from;
  std::optional<Way> way;
  if (!is_run) way.emplace(marked(handle), there);
  const View& dense = way ? way->view() : there;
  if (from_host) {
    state.require(api.cuMemcpyHtoDAsync(address_of(dense.data), from.data, bytes_of(from), stream),
                  "copy to a device");
    if (way) copy_strided(state.device, stream, dense, to);
  } else {
    if (way) copy_strided(state.device, stream, from, dense);
    state.require(api.cuMemcpyDtoHAsync(to.data, address_of(dense.data), bytes_of(to), stream),
                  "copy to the host");
  }
}

}  // namespace

CUstream stream_of(const Stream& stream) { return marked(stream.handle()).stream(); }

bool is_cuda(Device device) {
  const Driver* const driver = driver_of(device.kind);
  return driver && driver->name() == "cuda";
}

bool register_cuda_driver() {
  static const bool is_registered = [] {
    if (!driver_api()) {
      report_missing_backend("cuda", why_no_driver(), true);
      return false;
    }
    register_driver(std::make_unique<CudaDriver>());
    return true;
  }();
  return is_registered;
}

}  // namespace plait::cuda
