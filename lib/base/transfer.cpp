// See transfer.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/transfer.h>

#include <cstring>

#include "base/staging.h"

namespace plait {
namespace {

std::size_t bytes_of(const View& view) { return std::size_t(view.size() * size_of(view.dtype)); }

Driver& driver_of(const Stream& stream) { return *driver_of(stream.device().kind); }

// A dense view like another of a block.
View dense_view(const Staging& staging, const View& like) {
  return {staging.data(), like.dtype, like.shape, dense_strides(like.shape)};
}

}  // namespace

void copy(const View& from, const View& to, const Stream& stream) {
  if (bytes_of(to) == 0 || from.data == to.data) return;
  if (stream.is_host()) return copy_elements(from, to);
  driver_of(stream).copy(stream.handle(), from, to, Driver::Between::device);
}

void clear(const View& dense, const Stream& stream) {
  if (bytes_of(dense) == 0) return;
  if (stream.is_host())
    std::memset(dense.data, 0, bytes_of(dense));
  else
    driver_of(stream).clear(stream.handle(), dense.data, bytes_of(dense));
}

void upload(const View& host, const View& to, const Stream& stream) {
  if (bytes_of(to) == 0) return;
  if (stream.is_host()) return copy_elements(host, to);
  auto staging = std::make_shared<Staging>(stream.device(), bytes_of(to));
  const View dense = dense_view(*staging, host);
  copy_elements(host, dense);
  driver_of(stream).copy(stream.handle(), dense, to, Driver::Between::from_host);
  stream.keep(std::move(staging));
}

void download(const View& from, const View& host, const Stream& stream) {
  if (bytes_of(host) == 0) return;
  if (stream.is_host()) return copy_elements(from, host);
  const auto staging = std::make_shared<Staging>(stream.device(), bytes_of(host));
  const View dense = dense_view(*staging, host);
  driver_of(stream).copy(stream.handle(), from, dense, Driver::Between::to_host);
  stream.keep(staging);
  stream.synchronize();
  copy_elements(dense, host);
}

SharedFlags::SharedFlags(std::int64_t count, const Stream& stream)
    : values(std::size_t(count), false), stream_(stream), view_(host_view()) {
  static_assert(sizeof(bool) == 1);
  if (stream_.is_host()) return;
  there_ = Storage::allocate(std::size_t(count), stream_);
  view_.data = there_.data();
}

View SharedFlags::host_view() const {
  return {const_cast<char*>(values.data()), DType::bool_, {std::int64_t(values.size())}, {1}};
}

}  // namespace plait
