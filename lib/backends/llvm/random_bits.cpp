// See random_bits.h.
// SPDX-License-Identifier: Apache-2.0
#include "random_bits.h"

namespace plait::llvm {

RandomWords threefry(Lane<std::uint32_t> first_key, Lane<std::uint32_t> second_key,
                     Lane<std::uint32_t> high, Lane<std::uint32_t> low) {
  using Word = Lane<std::uint32_t>;
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Word schedule[3] = {first_key, second_key, first_key ^ second_key ^ Word(0x1BD11BDAu)};
  Word x = high + schedule[0], y = low + schedule[1];
  for (std::uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      x = x + y;
      y = (shift_left(y, rotation) | shift_right(y, 32 - rotation)) ^ x;
    }
    x = x + schedule[(group + 1) % 3];
    y = y + (schedule[(group + 2) % 3] + Word(group + 1));
  }
  return {x, y};
}

Value random_word(DType dtype, Lane<std::uint32_t> x, Lane<std::uint32_t> y) {
  const Emitter& emitter = Emitter::current();
  const Type type = emitter.vector(emitter.element(dtype));
  const Builder builder = emitter.builder();
  if (dtype == DType::uint32) return (x ^ y).v;
  if (dtype != DType::uint64) return api().BuildTrunc(builder, (x ^ y).v, type, "");
  using Wide = Lane<std::uint64_t>;
  const Wide high = Wide::of(api().BuildZExt(builder, x.v, type, "")),
             low = Wide::of(api().BuildZExt(builder, y.v, type, ""));
  return (shift_left(high, 32) | low).v;
}

}  // namespace plait::llvm
