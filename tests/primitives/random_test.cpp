// random_bits, random_fold and random_split against jax.random of JAX 0.10.2 with
// jax_threefry_partitionable=True.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/pool.h>
#include <plait/plait.h>

#include "properties.h"

using namespace plait;
using namespace plait::test;

namespace {

using Words = std::vector<std::uint32_t>;
Array key(std::uint32_t seed) { return array<std::uint32_t>({0, seed}); }

}  // namespace

TEST_CASE("a permutation of a size is jax.random.permutation, of a named one too") {
  const auto shuffled = [](const Array& x) -> Array {
    return random::permutation(key(3), x.shape(0));
  };
  const std::vector<std::int32_t> of_five{0, 4, 2, 1, 3}, of_2000{1883, 819, 811, 456};
  CHECK(elements<std::int32_t>(random::permutation(key(3), 5)) == of_five);
  CHECK(elements<std::int32_t>(random::permutation(key(3), numpy::arange(5))) == of_five);
  CHECK(elements<std::int32_t>(mask(shuffled, "n")(numpy::zeros({5}), {{"n", 5}})) == of_five);
  const Array large = mask(shuffled, "n")(numpy::zeros({2000}), {{"n", 2000}});
  CHECK(elements<std::int32_t>(lax::slice_in_dim(large, 0, 4, 1, 0)) == of_2000);
}

TEST_CASE("bits of every width and shape equal jax.random.bits") {
  CHECK(elements<std::uint8_t>(lax::random_bits(key(42), {2, 3}, 8)) ==
        std::vector<std::uint8_t>{0xa2, 0xd9, 0xf9, 0xd7, 0x15, 0xd8});
  CHECK(elements<std::uint16_t>(lax::random_bits(key(42), {2, 3}, 16)) ==
        std::vector<std::uint16_t>{0x13a2, 0x30d9, 0xf9f9, 0xc1d7, 0x7315, 0x4ed8});
  CHECK(elements<std::uint32_t>(lax::random_bits(key(42), {2, 3}, 32)) ==
        std::vector<std::uint32_t>{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315,
                                   0x95fb4ed8});
  CHECK(elements<std::uint64_t>(lax::random_bits(key(42), {2, 3}, 64)) ==
        std::vector<std::uint64_t>{0x6d3e048f1022172d, 0x3d7b32dadd083f4, 0x92fb20ea0f38d913,
                                   0xbad56946354ba891, 0xb013aee3c34eddf6, 0xa4d91a963122544e});
  CHECK(elements<std::uint32_t>(lax::random_bits(key(7), {})) == Words{0xac91290b});
  CHECK(lax::random_bits(key(7), {2, 0, 3}, 64).shape() == Shape{2, 0, 3});
}

TEST_CASE("folding in data equals jax.random.fold_in") {
  CHECK(elements<std::uint32_t>(lax::random_fold(key(0), array<std::uint32_t>({0x0}, {}))) ==
        Words{0x6b200159, 0x99ba4efe});
  CHECK(elements<std::uint32_t>(lax::random_fold(key(42), array<std::uint32_t>({0x7}, {}))) ==
        Words{0x97d0552f, 0x51bf719f});
  CHECK(elements<std::uint32_t>(lax::random_fold(
            key(42), array<std::uint32_t>({0xdeadbeef}, {}))) == Words{0x620b66ab, 0xd15de6fc});
  CHECK(elements<std::uint32_t>(lax::random_fold(
            key(123), array<std::uint32_t>({0xffffffff}, {}))) == Words{0x892dc67a, 0x87d664b1});
  CHECK(elements<std::uint32_t>(lax::random_fold(key(5), array<std::uint32_t>({0, 1, 2}))) ==
        Words{0xa264258c, 0xd500890a, 0xc12eec8, 0xe7ac32ac, 0xd63ea9be, 0x6a60a62e});
}

TEST_CASE("splitting a key equals jax.random.split") {
  CHECK(elements<std::uint32_t>(lax::random_split(key(0))) ==
        Words{0x6b200159, 0x99ba4efe, 0x375f238f, 0xcddb151d});
  CHECK(elements<std::uint32_t>(lax::random_split(key(42), {5})) ==
        Words{0x6d3e048f, 0x1022172d, 0x3d7b32d, 0xadd083f4, 0x92fb20ea, 0xf38d913, 0xbad56946,
              0x354ba891, 0xb013aee3, 0xc34eddf6});
  CHECK(elements<std::uint32_t>(lax::random_split(key(9), {2, 3})) ==
        Words{0xa838a535, 0xa248cb6d, 0x8873c87, 0xff351a6f, 0x9f8925a4, 0xf4f24c19, 0x6fe766a3,
              0x75f9bbea, 0xc713272f, 0xfe5f042b, 0x747c51ef, 0xa745c6b1});
  CHECK(lax::random_split(key(9), {0}).shape() == Shape{0, 2});
  // Keys of keys.
  const Array second = example_of(lax::random_split(key(1)), 0, 1);
  CHECK(elements<std::uint32_t>(example_of(lax::random_split(second), 0, 0)) ==
        Words{0xc351eaa0, 0xa404b45c});
}

TEST_CASE("an array of keys gives bits for each key") {
  const Array keys = array<std::uint32_t>({0, 1, 0, 42, 7, 7}, {3, 2});
  for (int width : {8, 16, 32, 64}) {
    const Array all = lax::random_bits(keys, {2, 5}, width);
    CHECK(all.shape() == Shape{3, 2, 5});
    for (int i = 0; i < 3; ++i)
      check_close(example_of(all, 0, i), lax::random_bits(example_of(keys, 0, i), {2, 5}, width));
  }
  const Array children = lax::random_split(keys, {2, 2});
  CHECK(children.shape() == Shape{3, 2, 2, 2});
  for (int i = 0; i < 3; ++i)
    check_close(example_of(children, 0, i), lax::random_split(example_of(keys, 0, i), {2, 2}));
}

TEST_CASE("bits do not depend on how the work is divided") {
  const Array whole = lax::random_bits(key(3), {100003}, 32);
  const int threads = num_threads();
  set_num_threads(1);
  check_close(lax::random_bits(key(3), {100003}, 32), whole, 0);
  set_num_threads(threads);
}

TEST_CASE("random primitives say what is wrong") {
  CHECK(problem_and_fix([&] { lax::random_bits(array<std::int32_t>({0, 1}), {2}); }) ==
        "random_bits: a key of dtype int32 | give a key, as random.key makes it");
  CHECK(problem_and_fix([&] { lax::random_bits(array<std::uint32_t>({0, 1, 2}), {2}); }) ==
        "random_bits: a key of shape (3) | give a key of shape (2), or an array of keys of shape "
        "(..., 2)");
  CHECK(problem_and_fix([&] { lax::random_bits(key(0), {2}, 24); }) ==
        "random_bits: there are no integers of 24 bits | choose 8, 16, 32 or 64");
  CHECK(problem_and_fix([&] {
          lax::random_fold(array<std::uint32_t>({0, 1, 0, 2}, {2, 2}),
                           array<std::uint32_t>({1, 2, 3}));
        }) ==
        "random_fold: keys of shape (2) and data of shape (3) | give equal shapes, one key, or one "
        "datum");
  CHECK(problem_and_fix([&] { lax::random_fold(key(0), array<std::int32_t>({1})); }) ==
        "random_fold: data of dtype int32 | convert it to uint32 with astype");
}

TEST_CASE("batches of the random primitives hold for their samples") {
  check_samples(random_bits_p);
  check_samples(random_fold_p);
}

TEST_CASE("random bits of a padded array count by real sizes") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  using Values = Sample::Input::Values;
  for (std::int64_t size : {0, 1, 4, 6}) {
    const Extents extents{{"n", {size, 6}}, {"m", {3, 5}}};
    auto check_shape = [&](const Shape& shape, int width) {
      check_mask(random_bits_p, {{{2}, DType::uint32}},
                 {{"shape", shape}, {"bit_width", Dim(width)}}, extents, 0, Values::key);
    };
    check_shape({n}, 32);
    check_shape({n, 3}, 16);
    check_shape({3, n}, 32);
    check_shape({m, n, 2}, 64);
    check_mask(random_bits_p, {{{n, 2}, DType::uint32}},
               {{"shape", Shape{2, m}}, {"bit_width", Dim(8)}}, extents, 0, Values::key);
    check_mask(random_fold_p, {{{n, 2}, DType::uint32}, {{n}, DType::uint32}}, {}, extents, 0,
               Values::key);
  }
}
