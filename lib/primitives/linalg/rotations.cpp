// See rotations.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/rotations.h"

#include <plait/base/pack.h>
#include <plait/base/pool.h>

#include <algorithm>

namespace plait::matrices {
namespace {

using V = Pack<double, 4>;
constexpr std::int64_t strip = 4 * V::width;  // rows

}  // namespace

// Rotations that follow each other in a sweep share a column, which stays in registers. Written out
// for four registers, so that they are no array in memory.
void Rotations::run(double* near) const {
  const Rotation *rotation = list_.data(), *const end = rotation + list_.size();
  while (rotation != end) {
    const double* const first = near + rotation->i * strip;
    V k0 = V::load(first), k1 = V::load(first + V::width), k2 = V::load(first + 2 * V::width),
      k3 = V::load(first + 3 * V::width);
    std::int32_t held = rotation->i;
    do {
      const V c(rotation->c), s(rotation->s);
      double* const x = near + rotation->i * strip;
      const double* const y = near + rotation->j * strip;
      const auto turn = [&](V& kept, int place) __attribute__((always_inline)) {
        const V other = V::load(y + place);
        math::fma(other, s, kept * c).store(x + place);
        kept = math::fma(-kept, s, other * c);
      };
      turn(k0, 0);
      turn(k1, V::width);
      turn(k2, 2 * V::width);
      turn(k3, 3 * V::width);
      held = rotation->j;
      ++rotation;
    } while (rotation != end && rotation->i == held);
    double* const last = near + held * strip;
    k0.store(last);
    k1.store(last + V::width);
    k2.store(last + 2 * V::width);
    k3.store(last + 3 * V::width);
  }
}

void Rotations::apply() {
  const std::int64_t count = (rows_ + strip - 1) / strip;
  const auto work = std::int64_t(list_.size()) * strip;
  parallel_for(count, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, work)),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<double> near(std::size_t(strip * columns_));
                 for (std::int64_t at = begin; at < end; ++at) {
                   const std::int64_t first = at * strip, height = std::min(strip, rows_ - first);
                   double* const there = first_ + first;
                   for (std::int64_t j = 0; j < columns_; ++j)
                     std::copy_n(there + j * rows_, height, &near[std::size_t(j * strip)]);
                   run(near.data());
                   for (std::int64_t j = 0; j < columns_; ++j)
                     std::copy_n(&near[std::size_t(j * strip)], height, there + j * rows_);
                 }
               });
  list_.clear();
}

}  // namespace plait::matrices
