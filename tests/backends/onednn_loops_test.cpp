// Products in loops: oneDNN takes what a loop holds constant from a packed copy. The values are
// those of the same products outside loops, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/transforms/transforms.h>

#include <array>

#include "../same_bits.h"
#include "backend_here.h"

using namespace plait;

TEST_CASE("products by what a loop holds constant have the bits of others" *
          needs_backend("onednn")) {
  struct Sizes {
    std::int64_t rows, width;
  };
  for (const Sizes& sizes : {Sizes{1, 256}, {5, 130}, {32, 256}, {64, 64}})
    for (const bool is_transposed : {false, true}) {
      const std::int64_t rows = sizes.rows, width = sizes.width;
      CAPTURE(rows);
      CAPTURE(width);
      const Array h = random::normal(random::key(1), {Dim(rows), Dim(width)}),
                  w = random::normal(random::key(2), {Dim(width), Dim(width)}) * 0.1,
                  u = random::normal(random::key(3), {Dim(width), Dim(width)}) * 0.1;
      const auto step = [axis = is_transposed ? 1 : 0](const Array& h, const Array& w) {
        return lax::tanh(lax::dot_general(h, w, {{1}, {axis}, {}, {}}));
      };
      // A loop within a loop: w stays for both, and what is inside changes for the inner one.
      const Function nested = [&](std::span<const Array> in) {
        const auto outer = [&](std::span<const Array> carry) -> Arrays {
          const auto inner = [&](std::span<const Array> now) -> Arrays {
            return {step(step(now[0], in[1]), carry[1])};
          };
          const Arrays one{carry[0]};
          return {flat::scan(inner, one, {}, {Dim(5)}).carry[0], carry[1] * 0.5};
        };
        return flat::scan(outer, std::array{in[0], in[2]}, {}, {Dim(6)}).carry;
      };
      Array expected = h, changing = u;
      for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 5; ++j) expected = step(step(expected, w), changing);
        changing = changing * 0.5;
      }
      const Arrays inputs{h, w, u};
      CHECK(same_bits(nested(inputs)[0], expected));
      CHECK(same_bits(flat::Jit(nested, "nested")(inputs)[0], expected));
    }
}
