// See stack.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace plait {
namespace {

constexpr std::int64_t first_chunk = 8;

// Chunk k holds elements from (2^k - 1) * first_chunk on.
struct Place {
  std::size_t chunk;
  std::int64_t offset;
};
Place place_of(std::int64_t index) {
  const int chunk = std::bit_width(std::uint64_t(index / first_chunk + 1)) - 1;
  return {std::size_t(chunk), index - ((std::int64_t(1) << chunk) - 1) * first_chunk};
}

}  // namespace

void* Stack::Elements::at(std::int64_t index) const {
  const Place place = place_of(index);
  return static_cast<char*>(chunks_[place.chunk].data()) + place.offset * bytes_;
}

void* Stack::Elements::push() {
  const Place place = place_of(size_);
  if (place.chunk == chunks_.size())
    chunks_.push_back(
        Storage::allocate(std::size_t((first_chunk << place.chunk) * bytes_), stream_));
  void* const element = static_cast<char*>(chunks_[place.chunk].data()) + place.offset * bytes_;
  if (of_stacks_) new (element) Handle;
  ++size_;
  return element;
}

void Stack::Elements::wait_to_read(const Stream& stream) const {
  if (!stream_.is_host()) stream.wait_for(stream_, stream_.ticket());
}

void Stack::Elements::note_read(const Stream& stream) const {
  for (const Storage& chunk : chunks_) chunk.note_read(stream);
}

Stack::Elements::~Elements() {
  if (of_stacks_)
    for (std::int64_t i = 0; i < size_; ++i) static_cast<Handle*>(at(i))->~Handle();
}

std::int64_t Stack::size() const {
  std::int64_t size = 0;
  for (const Segment& segment : segments_) size = std::max(size, segment.end());
  return size;
}

void Stack::begin(std::int64_t first, RowNumbers rows, std::int64_t element_bytes) {
  segments_.push_back(
      {first, std::move(rows), std::make_shared<Elements>(element_bytes, of_stacks_, stream_)});
}

void* Stack::push() { return segments_.back().elements->push(); }

Stack::Handle Stack::renumbered(const Handle& stack, std::span<const std::int32_t> to) {
  if (!stack) return stack;
  auto result = std::make_shared<Stack>(stack->of_stacks_, stack->stream_);
  for (const Segment& segment : stack->segments_) {
    auto rows = segment.rows ? std::make_shared<std::vector<std::int32_t>>(*segment.rows)
                             : std::make_shared<std::vector<std::int32_t>>(to.size());
    if (!segment.rows) std::iota(rows->begin(), rows->end(), 0);
    bool any = false;
    for (std::int32_t& row : *rows) {
      row = row < 0 ? -1 : to[std::size_t(row)];
      any |= row >= 0;
    }
    if (any) result->segments_.push_back({segment.first, std::move(rows), segment.elements});
  }
  return result->segments_.empty() ? nullptr : result;
}

Stack::Handle Stack::merged(std::span<const Handle> stacks) {
  Handle result;
  bool is_own = false;
  for (const Handle& stack : stacks) {
    if (!stack) continue;
    if (!result) {
      result = stack;
      continue;
    }
    if (!is_own) {
      const Handle first = result;
      result = std::make_shared<Stack>(first->of_stacks_, first->stream_);
      result->segments_ = first->segments_;
      is_own = true;
    }
    result->segments_.insert(result->segments_.end(), stack->segments_.begin(),
                             stack->segments_.end());
  }
  return result;
}

Storage allocate_handle() {
  auto* const handle = new Stack::Handle;
  return Storage::foreign(handle, sizeof(Stack::Handle), [handle] { delete handle; });
}

}  // namespace plait
