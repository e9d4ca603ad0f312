// Places values by two methods and keeps the better result. By time: the smallest hole that fits.
// It is linear, and good where values are alike. By size: the largest value first, wherever nothing
// is live during its lifetime (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net
// Inference, 2020, "greedy by size"). It often reaches the lower bound, the most bytes live at
// once, but it is quadratic. It is tried only where touching the excess pages for the first time
// would cost more than the search.
// SPDX-License-Identifier: Apache-2.0
#include "compile/arena.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "base/system_memory.h"

namespace plait::compile_passes {
namespace {

constexpr std::int64_t worth_a_search = 8 << 20;  // bytes of an arena above the lower bound
constexpr std::size_t most_searched = 1024;

// Ranges of the arena: best fit, else at the end.
class Holes {
 public:
  explicit Holes(Room room) : room_(room) {}
  std::int64_t take(std::int64_t bytes) {
    bytes = room_(bytes);
    most_at_once_ = std::max(most_at_once_, taken_ += bytes);
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole)
      if (hole->second >= bytes && (best == holes_.end() || hole->second < best->second))
        best = hole;
    std::int64_t offset = size_;
    if (best != holes_.end()) {
      offset = best->first;
      const std::int64_t left = best->second - bytes;
      holes_.erase(best);
      if (left > 0) holes_.emplace(offset + bytes, left);
    } else {
      // A hole at the end of the arena grows.
      if (auto last = holes_.rbegin();
          last != holes_.rend() && last->first + last->second == size_) {
        offset = last->first;
        holes_.erase(last->first);
      }
      size_ = offset + bytes;
    }
    return offset;
  }
  void give_back(std::int64_t offset, std::int64_t bytes) {
    bytes = room_(bytes);
    taken_ -= bytes;
    if (bytes == 0) return;
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    holes_.emplace(offset, bytes);
  }
  std::int64_t size() const { return size_; }
  std::int64_t most_at_once() const { return most_at_once_; }  // a lower bound for every placement

 private:
  const Room room_;
  std::map<std::int64_t, std::int64_t> holes_;  // offset -> bytes; neighbours merged
  std::int64_t size_ = 0, taken_ = 0, most_at_once_ = 0;
};

Holes place_by_time(std::span<Lifetime* const> lifetimes, Room room) {
  std::size_t steps = 0;
  for (const Lifetime* lifetime : lifetimes)
    steps = std::max(steps, std::size_t(lifetime->end) + 1);
  std::vector<std::vector<Lifetime*>> begins(steps), ends(steps);
  for (Lifetime* lifetime : lifetimes) {
    begins[std::size_t(lifetime->begin)].push_back(lifetime);
    ends[std::size_t(lifetime->end)].push_back(lifetime);
  }
  Holes holes(room);
  for (std::size_t step = 0; step < begins.size(); ++step) {
    // Large ones first: fewer holes fit them.
    std::ranges::stable_sort(begins[step], std::ranges::greater(), &Lifetime::bytes);
    for (Lifetime* lifetime : begins[step]) lifetime->offset = holes.take(lifetime->bytes);
    for (Lifetime* lifetime : ends[step]) holes.give_back(lifetime->offset, lifetime->bytes);
  }
  return holes;
}

// lifetimes: sorted by size, the largest first.
std::int64_t place_by_size(std::span<Lifetime* const> lifetimes, Room room) {
  std::vector<const Lifetime*> placed;  // in order of offset
  std::int64_t size = 0;
  for (Lifetime* lifetime : lifetimes) {
    const std::int64_t bytes = room(lifetime->bytes);
    std::int64_t end_of_others = 0, smallest = INT64_MAX;
    for (const Lifetime* other : placed) {
      if (other->end < lifetime->begin || other->begin > lifetime->end) continue;
      const std::int64_t hole = other->offset - end_of_others;
      if (hole >= bytes && hole < smallest) {
        smallest = hole;
        lifetime->offset = end_of_others;
      }
      end_of_others = std::max(end_of_others, other->offset + room(other->bytes));
    }
    if (smallest == INT64_MAX) lifetime->offset = end_of_others;
    size = std::max(size, lifetime->offset + bytes);
    placed.insert(std::ranges::upper_bound(placed, lifetime->offset, {}, &Lifetime::offset),
                  lifetime);
  }
  return size;
}

}  // namespace

std::int64_t room_on_host(std::int64_t bytes) { return memory::staggered(bytes); }
std::int64_t room_on_device(std::int64_t bytes) {
  constexpr std::int64_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

std::int64_t place_in_arena(std::span<Lifetime> lifetimes, Room room) {
  std::vector<Lifetime*> all;
  for (Lifetime& lifetime : lifetimes) all.push_back(&lifetime);
  const Holes by_time = place_by_time(all, room);
  const std::int64_t size = by_time.size();
  if (size - by_time.most_at_once() < worth_a_search) return size;
  std::vector<std::int64_t> offsets;
  for (const Lifetime& lifetime : lifetimes) offsets.push_back(lifetime.offset);
  std::ranges::stable_sort(all, std::ranges::greater(), &Lifetime::bytes);
  // The many small values of a long program follow the searched ones, placed by time.
  const std::size_t searched = std::min(all.size(), most_searched);
  const std::span<Lifetime* const> small = std::span(all).subspan(searched);
  const std::int64_t large_size = place_by_size(std::span(all).first(searched), room);
  const std::int64_t found = large_size + place_by_time(small, room).size();
  for (Lifetime* lifetime : small) lifetime->offset += large_size;
  if (found < size) return found;
  for (std::size_t i = 0; i < offsets.size(); ++i) lifetimes[i].offset = offsets[i];
  return size;
}

}  // namespace plait::compile_passes
