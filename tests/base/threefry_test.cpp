// Threefry against jax.random of JAX 0.10.2 with jax_threefry_partitionable=True.
// SPDX-License-Identifier: Apache-2.0
#include "plait/base/threefry.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using namespace plait;

namespace {

template <class T>
std::vector<T> bits(ThreefryKey key, std::size_t count, std::uint64_t first = 0) {
  std::vector<T> dst(count);
  threefry_bits(key, first, std::span<T>(dst));
  return dst;
}

template <class T>
struct Digest {
  std::uint64_t sum = 0;
  T all_xor = 0, last = 0;
  explicit Digest(const std::vector<T>& values) {
    for (T v : values) sum += v, all_xor ^= v;
    last = values.back();
  }
};

}  // namespace

TEST_CASE("threefry2x32 gives the known answers of the Random123 distribution") {
  static_assert(threefry2x32({0, 0}, {0, 0}) ==
                std::array<std::uint32_t, 2>{0x6b200159, 0x99ba4efe});
  CHECK(threefry2x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        std::array<std::uint32_t, 2>{0x1cb996fc, 0xbb002be7});
  CHECK(threefry2x32({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}) ==
        std::array<std::uint32_t, 2>{0xc4923a9c, 0x483df7a0});
}

TEST_CASE("a key is the two words of its seed") {
  CHECK(threefry_key(42) == ThreefryKey{0, 42});
  CHECK(threefry_key(0xdeadbeef12345678) == ThreefryKey{0xdeadbeef, 0x12345678});
  CHECK(threefry_key(static_cast<std::uint64_t>(-1)) == ThreefryKey{0xffffffff, 0xffffffff});
}

TEST_CASE("bits of every width equal jax.random.bits") {
  CHECK(bits<std::uint32_t>(threefry_key(0), 11) ==
        std::vector<std::uint32_t>{0xf29a4fa7, 0xfa843692, 0x55110e28, 0x77faa835, 0x91e43bb7,
                                   0x2a5e6943, 0x4f68ea7d, 0xb081ccfe, 0xbf2c1963, 0x2bc79dd6,
                                   0xfc40270d});
  CHECK(bits<std::uint32_t>(threefry_key(42), 11) ==
        std::vector<std::uint32_t>{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315,
                                   0x95fb4ed8, 0x1326b799, 0xc66f24b0, 0xb2eefe8d, 0xd191fbb0,
                                   0x59ad9a31});
  CHECK(bits<std::uint64_t>(threefry_key(42), 11) ==
        std::vector<std::uint64_t>{0x6d3e048f1022172d, 0x03d7b32dadd083f4, 0x92fb20ea0f38d913,
                                   0xbad56946354ba891, 0xb013aee3c34eddf6, 0xa4d91a963122544e,
                                   0xa506c508b6207291, 0x97d0552f51bf719f, 0x3c9991678e776fea,
                                   0x4349448b92d8bf3b, 0x3df0e1d3645d7be2});
  CHECK(bits<std::uint64_t>(threefry_key(0xdeadbeef12345678), 11) ==
        std::vector<std::uint64_t>{0xe879651fc595a2f1, 0x4efc3fc884f9fd04, 0x6ef851a21785b403,
                                   0xd42580c8adadcdf2, 0x750961edd330ee94, 0x283156cea58bbc17,
                                   0x694d87e3d8087331, 0x561caa31413fc552, 0xfb77647211ee9108,
                                   0x7e2ef5425faa3ed2, 0x432b51ddaf22f7d9});
  CHECK(bits<std::uint16_t>(threefry_key(1ull << 32), 11) ==
        std::vector<std::uint16_t>{0x807f, 0x3c25, 0xede0, 0xc1f2, 0xa9a1, 0xf4b5, 0x7346, 0xee36,
                                   0xb5f9, 0x095e, 0xdfbd});
  CHECK(
      bits<std::uint8_t>(threefry_key(0xdeadbeef12345678), 11) ==
      std::vector<std::uint8_t>{0xee, 0xcc, 0xa1, 0x3a, 0x79, 0xd9, 0xd2, 0x63, 0x7a, 0x90, 0x04});
  CHECK(bits<std::uint32_t>(threefry_key(7), 1)[0] == 0xac91290b);  // shape ()
  CHECK(bits<std::uint32_t>(threefry_key(7), 0).empty());
}

TEST_CASE("a long array of bits equals JAX's") {
  const Digest d32(bits<std::uint32_t>(threefry_key(7), 100003));
  CHECK(d32.sum == 0xc3405b094bb3);
  CHECK(d32.all_xor == 0x2238b2fd);
  CHECK(d32.last == 0xdde758e8);
  const Digest d16(bits<std::uint16_t>(threefry_key(7), 100003));
  CHECK(d16.sum == 0xc2c14bb3);
  CHECK(d16.all_xor == 0xb2fd);
  const Digest d8(bits<std::uint8_t>(threefry_key(7), 100003));
  CHECK(d8.sum == 0xc2e5b3);
  CHECK(d8.all_xor == 0xfd);
  std::uint64_t hash = 0;  // of the first elements, in order, of an array of shape (1003, 97)
  for (std::uint32_t v : bits<std::uint32_t>(threefry_key(7), 5000)) hash = hash * 1000003 ^ v;
  CHECK(hash == 0x5c68d8a542f8cae7);
}

TEST_CASE("any part of an array can be filled alone, also where the high counter word changes") {
  const ThreefryKey key = threefry_key(12345);
  for (std::uint64_t start : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 50}) {
    const std::vector<std::uint64_t> whole = bits<std::uint64_t>(key, 100, start);
    for (std::uint64_t i = 0; i < whole.size(); ++i) {
      const auto [x, y] = threefry2x32(key, threefry_words(start + i));
      CHECK(whole[i] == (std::uint64_t{x} << 32 | y));
      CHECK(bits<std::uint64_t>(key, 1, start + i)[0] == whole[i]);
    }
    const std::vector<std::uint64_t> part = bits<std::uint64_t>(key, 61, start + 13);
    CHECK(part == std::vector<std::uint64_t>(whole.begin() + 13, whole.begin() + 74));
  }
}

TEST_CASE("split and fold_in equal JAX's") {
  const ThreefryKey key = threefry_key(7);  // jax.random.split(key, (2, 2))
  CHECK(threefry_split(key, 0) == ThreefryKey{0xd817648b, 0x74864d80});
  CHECK(threefry_split(key, 1) == ThreefryKey{0x0ba028bf, 0xf22056bf});
  CHECK(threefry_split(key, 2) == ThreefryKey{0x399897a9, 0x741fbe03});
  CHECK(threefry_split(key, 3) == ThreefryKey{0x107b9334, 0x61dcd604});
  CHECK(threefry_split(threefry_key(42), 2) == ThreefryKey{0x92fb20ea, 0x0f38d913});

  CHECK(threefry_fold_in(threefry_key(42), 0) == ThreefryKey{0x6d3e048f, 0x1022172d});
  CHECK(threefry_fold_in(threefry_key(42), 7) == ThreefryKey{0x97d0552f, 0x51bf719f});
  CHECK(threefry_fold_in(threefry_key(42), 0xffffffff) == ThreefryKey{0x8ef6c48d, 0xe7eb97ca});
  CHECK(threefry_fold_in(threefry_key(0xdeadbeef12345678), 1) ==
        ThreefryKey{0x4efc3fc8, 0x84f9fd04});
}
