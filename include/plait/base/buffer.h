// Values in memory: dtype, shape, strides, and memory of the host or of a device. A Buffer is
// immutable once visible to a user and knows nothing of tracing; kernels read and write Views of
// it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/allocator.h>
#include <plait/base/device.h>
#include <plait/base/dtype.h>
#include <plait/base/shape.h>

namespace plait {

// Typed, strided memory that something else keeps alive. Strides are in elements and may be 0
// (broadcast) or negative (reversed).
struct View {
  void* data = nullptr;
  DType dtype = DType::float32;
  Sizes64 shape, strides;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t size() const { return num_elements(shape); }
  int rank() const { return static_cast<int>(shape.size()); }
  bool is_dense() const;  // row-major without gaps
};

class Buffer {
 public:
  Buffer() = default;
  // Uninitialised, dense, for use in the order of the device's current stream. MemoryError when the
  // memory cannot be allocated.
  static Buffer empty(DType dtype, const Sizes64& shape, Device device = {});
  static Buffer empty(DType dtype, const Sizes64& shape, const Stream& stream);
  static Buffer copy_of(const View& view);  // dense copy, on the host
  // One element of rank 0.
  template <class T>
  static Buffer scalar(T value) {
    Buffer buffer = empty(dtype_of<T>(), {});
    *static_cast<T*>(buffer.mutable_data()) = value;
    return buffer;
  }
  Buffer(Storage storage, View view)
      : device_(storage.device()),
        where_(device_.is_host() ? 0 : apart_bit),
        view_(std::move(view)),
        storage_(std::move(storage)) {}
  // Laid out as another view, from this address on.
  Buffer(Storage storage, const View& like, void* data)
      : device_(storage.device()),
        where_(device_.is_host() ? 0 : apart_bit),
        view_(like),
        storage_(std::move(storage)) {
    view_.data = data;
  }

  DType dtype() const { return view_.dtype; }
  const Sizes64& shape() const { return view_.shape; }
  const Sizes64& strides() const { return view_.strides; }
  Device device() const { return device_; }
  // Whether it is made of nothing but numbers, on no device by name. Such arrays go where the other
  // operands of an operation are.
  bool is_free() const { return where_ & free_bit; }
  void set_free(bool is_free) {
    where_ = std::uint8_t((where_ & ~free_bit) | (is_free ? free_bit : 0));
  }
  // What decides where an operation runs, in one number, which every operation reads: free_bit, and
  // apart_bit for memory of another device, or a handle of a stack, whose elements may lie there.
  static constexpr std::uint8_t free_bit = 1, apart_bit = 2;
  std::uint8_t where() const { return where_; }
  void set_apart() { where_ |= apart_bit; }
  const Storage& storage() const { return storage_; }
  std::int64_t bytes() const { return num_elements(shape()) * size_of(dtype()); }

  // Memory of the host. ValueError for memory on another device: take on_host() of it.
  const void* data() const { return host_view().data; }
  const View& view() const { return host_view(); }
  // For code that made the buffer and has not yet exposed it: what an Array holds never changes.
  void* mutable_data() { return host_view().data; }
  // Where it lies on its device, whichever that is: for work of that device, and to compare. The
  // host must not follow the address.
  const View& placed() const { return view_; }

  // Itself, or a copy there. A copy to the host waits for the memory to be written, and throws what
  // failed until then; a copy to a device is ordered on its current stream.
  Buffer on(Device device) const;
  Buffer on_host() const { return on({}); }
  // Until it is written; throws what failed until then.
  void wait() const;
  // This memory with another shape, strides and start (a byte offset), without a copy.
  Buffer view_as(const Sizes64& shape, const Sizes64& strides, std::int64_t byte_offset) const;
  Buffer copy() const;  // dense, on its device
  Buffer dense() const { return view_.is_dense() ? *this : copy(); }

 private:
  const View& host_view() const {
    if (!device_.is_host()) [[unlikely]]
      refuse_host();
    return view_;
  }
  [[noreturn]] void refuse_host() const;

  Device device_;  // of the storage
  std::uint8_t where_ = 0;
  View view_;
  Storage storage_;
};

// Copies elements between views of equal shape and dtype, any strides.
void copy_elements(const View& src, const View& dst);

}  // namespace plait
