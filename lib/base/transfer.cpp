// See transfer.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/transfer.h>

#include <cstring>
#include <deque>
#include <functional>

#include "base/staging.h"

namespace plait {
namespace {

std::size_t bytes_of(const View& view) { return std::size_t(view.size() * size_of(view.dtype)); }

Driver& driver_of(const Stream& stream) { return *driver_of(stream.device().kind); }

// A dense view like another of a block.
View dense_view(const Staging& staging, const View& like) {
  return {staging.data(), like.dtype, like.shape, dense_strides(like.shape)};
}

// Large arrays are copied in pieces, a few of which are under way at a time: so the host's copies
// and the device's overlap, and blocks that are there serve any size.
constexpr std::int64_t most_pieces = 4;

View part_of(View view, std::int64_t begin, std::int64_t count) {
  view.data = static_cast<char*>(view.data) + begin * view.strides[0] * size_of(view.dtype);
  view.shape[0] = count;
  return view;
}

View row_of(View view, std::int64_t row) {
  view = part_of(std::move(view), row, 1);
  view.shape.erase(0);
  view.strides.erase(0);
  return view;
}

// Calls copy for views of equal parts, of at most Staging::largest_kept bytes.
template <class Copy>
void in_pieces(const View& from, const View& to, const Copy& copy) {
  constexpr auto most = std::int64_t(Staging::largest_kept);
  const auto bytes = std::int64_t(bytes_of(from));
  if (bytes <= most) return copy(from, to);
  const std::int64_t rows = from.shape[0], rows_at_once = most / (bytes / rows);
  if (rows_at_once == 0) {
    for (std::int64_t row = 0; row < rows; ++row)
      in_pieces(row_of(from, row), row_of(to, row), copy);
  } else {
    for (std::int64_t row = 0; row < rows; row += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, rows - row);
      copy(part_of(from, row, count), part_of(to, row, count));
    }
  }
}

// What a stream copies by staging memory, in order.
class Pieces {
 public:
  explicit Pieces(const Stream& stream) : stream_(stream) {}
  // Before another one: ends the oldest, if there are as many as may be.
  void make_room() {
    if (std::int64_t(pieces_.size()) == most_pieces) end_one();
  }
  // then: what the host does once the piece is there.
  void add(std::shared_ptr<Staging> staging, std::function<void()> then = {}) {
    pieces_.push_back({stream_.ticket(), std::move(then)});
    stream_.keep(std::move(staging));
  }
  void end_all() {
    while (!pieces_.empty()) end_one();
  }

 private:
  void end_one() {
    stream_.synchronize(pieces_.front().ticket);
    if (pieces_.front().then) pieces_.front().then();
    pieces_.pop_front();
  }
  struct Piece {
    std::uint64_t ticket;
    std::function<void()> then;
  };
  const Stream stream_;
  std::deque<Piece> pieces_;
};

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
  Pieces pieces(stream);
  in_pieces(host, to, [&](const View& from, const View& there) {
    pieces.make_room();
    auto staging = std::make_shared<Staging>(stream.device(), bytes_of(from));
    const View dense = dense_view(*staging, from);
    copy_elements(from, dense);
    driver_of(stream).copy(stream.handle(), dense, there, Driver::Between::from_host);
    pieces.add(std::move(staging));
  });
}

void download(const View& from, const View& host, const Stream& stream) {
  if (bytes_of(host) == 0) return;
  if (stream.is_host()) return copy_elements(from, host);
  Pieces pieces(stream);
  in_pieces(from, host, [&](const View& there, const View& to) {
    pieces.make_room();
    auto staging = std::make_shared<Staging>(stream.device(), bytes_of(to));
    const View dense = dense_view(*staging, to);
    driver_of(stream).copy(stream.handle(), there, dense, Driver::Between::to_host);
    pieces.add(staging, [staging, dense, to] { copy_elements(dense, to); });
  });
  pieces.end_all();
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
