// A descriptor of cuDNN's graph interface: attributes are set, then it is finalized, and then
// others may refer to it. They do not keep it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/cudnn/api.h"

namespace plait::cuda {

// BackendError where the library refuses an attribute, or what they are together.
class Descriptor {
 public:
  explicit Descriptor(int kind) {
    check_cudnn(cudnn_api()->cudnnBackendCreateDescriptor(kind, &made_), "make a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(made_, other.made_);
    return *this;
  }
  ~Descriptor() {
    if (made_) cudnn_api()->cudnnBackendDestroyDescriptor(made_);
  }
  cudnnBackendDescriptor_t get() const { return made_; }

  Descriptor& set(int attribute, int type, std::int64_t count, const void* values) {
    check_cudnn(cudnn_api()->cudnnBackendSetAttribute(made_, attribute, type, count, values),
                "describe a graph");
    return *this;
  }
  Descriptor& choice(int attribute, int type, int value) { return set(attribute, type, 1, &value); }
  Descriptor& number(int attribute, std::int64_t value) {
    return set(attribute, CUDNN_TYPE_INT64, 1, &value);
  }
  Descriptor& numbers(int attribute, std::span<const std::int64_t> values) {
    return set(attribute, CUDNN_TYPE_INT64, std::int64_t(values.size()), values.data());
  }
  Descriptor& flag(int attribute) {
    const bool is_set = true;
    return set(attribute, CUDNN_TYPE_BOOLEAN, 1, &is_set);
  }
  Descriptor& object(int attribute, cudnnBackendDescriptor_t other) {
    return set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
  }
  Descriptor& finalize() {
    check_cudnn(cudnn_api()->cudnnBackendFinalize(made_), "take a graph");
    return *this;
  }

  std::int64_t number(int attribute) const {
    std::int64_t count = 0, value = 0;
    check_cudnn(cudnn_api()->cudnnBackendGetAttribute(made_, attribute, CUDNN_TYPE_INT64, 1, &count,
                                                      &value),
                "ask of a descriptor");
    return value;
  }
  // Copies what another refers to into a descriptor of that kind.
  void read_object(int attribute, const Descriptor& into) const {
    std::int64_t count = 0;
    cudnnBackendDescriptor_t place = into.get();
    check_cudnn(cudnn_api()->cudnnBackendGetAttribute(
                    made_, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &place),
                "ask of a descriptor");
  }

 private:
  cudnnBackendDescriptor_t made_ = nullptr;
};

}  // namespace plait::cuda
