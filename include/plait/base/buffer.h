// Values in memory: dtype, shape, strides, device memory. A Buffer is immutable once visible to a
// user and knows nothing of tracing; kernels read Views and write MutableViews of it.
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
  // Uninitialised, dense. MemoryError when the memory cannot be allocated.
  static Buffer empty(DType dtype, const Sizes64& shape, Device device = {});
  static Buffer copy_of(const View& view);  // dense copy
  // One element of rank 0.
  template <class T>
  static Buffer scalar(T value) {
    Buffer buffer = empty(dtype_of<T>(), {});
    *static_cast<T*>(buffer.mutable_data()) = value;
    return buffer;
  }
  Buffer(Storage storage, View view, Device device = {})
      : view_(std::move(view)), storage_(std::move(storage)), device_(device) {}

  DType dtype() const { return view_.dtype; }
  const Sizes64& shape() const { return view_.shape; }
  const Sizes64& strides() const { return view_.strides; }
  const void* data() const { return view_.data; }
  // For code that made the buffer and has not yet exposed it: what an Array holds never changes.
  void* mutable_data() { return view_.data; }
  const View& view() const { return view_; }
  const Storage& storage() const { return storage_; }
  Device device() const { return device_; }
  std::int64_t bytes() const { return num_elements(shape()) * size_of(dtype()); }
  // This memory with another shape, strides and start (a byte offset), without a copy.
  Buffer view_as(const Sizes64& shape, const Sizes64& strides, std::int64_t byte_offset) const;
  Buffer dense() const { return view_.is_dense() ? *this : copy_of(view_); }

 private:
  View view_;
  Storage storage_;
  Device device_;
};

// Copies elements between views of equal shape and dtype, any strides.
void copy_elements(const View& src, const View& dst);

}  // namespace plait
