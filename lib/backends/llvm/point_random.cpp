// Random bits where they are used: threefry2x32 of the key and an element's number, as
// lib/base/threefry.cpp has it. See points.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "points.h"

namespace plait::llvm {
namespace {

using Words = Lane<std::uint32_t>;

Builder here() { return Emitter::current().builder(); }

Words rotate_left(Words x, int count) { return shift_left(x, count) | shift_right(x, 32 - count); }

void mix(Words k0, Words k1, Words& x, Words& y) {
  const Words k2 = k0 ^ k1 ^ Words(0x1BD11BDAu);
  const Words keys[] = {k0, k1, k2};
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  x = x + k0, y = y + k1;
  for (int round = 0; round < 5; ++round) {
    for (int count : rotations[round % 2]) {
      x = x + y;
      y = rotate_left(y, count) ^ x;
    }
    x = x + keys[(round + 1) % 3];
    y = y + (keys[(round + 2) % 3] + Words(std::uint32_t(round + 1)));
  }
}

}  // namespace

int Points::pull_random_bits(const Equation& equation, const Indices& place, int mask) {
  const Atom& key = equation.inputs[0];
  const Sizes64 sizes = data_.avals[equation.outputs[0].id].shape.to_sizes();
  const std::size_t batch = std::size_t(data_.aval(key).rank() - 1);
  Indices words(place.begin(), place.begin() + std::ptrdiff_t(batch));
  words.push_back(fixed(0));
  const int k0 = pull(key, words, mask);
  words.back() = fixed(1);
  const int k1 = pull(key, words, mask);
  Index number = fixed(0);
  std::int64_t stride = 1;
  for (std::size_t axis = sizes.size(); axis-- > batch; stride *= sizes[axis])
    number = sum(number, place[axis].times(stride));
  const DType dtype = data_.avals[equation.outputs[0].id].dtype;
  const int level = std::max({level_of(k0), level_of(k1), level_of(number)});
  return add(level, 110, [=, this](const Emission& emission) {
    Words x(0u), y = Words::of(short_lanes_of(number, emission));
    mix(Words::of(emission.values[k0].v), Words::of(emission.values[k1].v), x, y);
    const Type type = Emitter::current().vector(Emitter::current().element(dtype));
    if (size_of(dtype) == 4) return Register{(x ^ y).v, dtype};
    if (size_of(dtype) < 4) return Register{api().BuildTrunc(here(), (x ^ y).v, type, ""), dtype};
    using Wide = Lane<std::uint64_t>;
    const Wide high = Wide::of(api().BuildZExt(here(), x.v, type, "")),
               low = Wide::of(api().BuildZExt(here(), y.v, type, ""));
    return Register{(shift_left(high, 32) | low).v, dtype};
  });
}

}  // namespace plait::llvm
