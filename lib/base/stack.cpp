// See stack.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>

#include <bit>

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

void* Stack::at(std::int64_t index) const {
  const Place place = place_of(index);
  return static_cast<char*>(chunks_[place.chunk].data()) + place.offset * bytes_;
}

void* Stack::push() {
  const Place place = place_of(size_);
  if (place.chunk == chunks_.size())
    chunks_.push_back(Storage::allocate(std::size_t((first_chunk << place.chunk) * bytes_)));
  void* const element = static_cast<char*>(chunks_[place.chunk].data()) + place.offset * bytes_;
  if (of_stacks_) new (element) Handle;
  ++size_;
  return element;
}

Stack::~Stack() {
  if (of_stacks_)
    for (std::int64_t i = 0; i < size_; ++i) static_cast<Handle*>(at(i))->~Handle();
}

Storage allocate_handle() {
  auto* const handle = new Stack::Handle;
  return Storage::foreign(handle, sizeof(Stack::Handle), [handle] { delete handle; });
}

}  // namespace plait
