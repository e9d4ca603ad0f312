// Element types: names, the complete promotion table against JAX's, weak operands, and the rounding
// of 16-bit floats for every bit pattern.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/dtype.h>
#include <plait/base/error.h>

#include <bit>
#include <cmath>
#include <limits>
#include <sstream>
#include <thread>
#include <type_traits>

using namespace plait;

namespace {

// jax.numpy.promote_types of JAX 0.10.2 with 64-bit types enabled; rows and columns in enum order.
constexpr const char* jax_table[num_computing_dtypes] = {
    "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
    "i8 i8 i16 i32 i64 i16 i32 i64 f64 f16 bf16 f32 f64 c64 c128",
    "i16 i16 i16 i32 i64 i16 i32 i64 f64 f16 bf16 f32 f64 c64 c128",
    "i32 i32 i32 i32 i64 i32 i32 i64 f64 f16 bf16 f32 f64 c64 c128",
    "i64 i64 i64 i64 i64 i64 i64 i64 f64 f16 bf16 f32 f64 c64 c128",
    "u8 i16 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
    "u16 i32 i32 i32 i64 u16 u16 u32 u64 f16 bf16 f32 f64 c64 c128",
    "u32 i64 i64 i64 i64 u32 u32 u32 u64 f16 bf16 f32 f64 c64 c128",
    "u64 f64 f64 f64 f64 u64 u64 u64 u64 f16 bf16 f32 f64 c64 c128",
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 c64 c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 c64 c128",
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128",
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128",
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
};

DType at(int i) { return static_cast<DType>(i); }

WeakDType strong(DType dtype) { return {dtype, false}; }
constexpr WeakDType weak_int{DType::int64, true};
constexpr WeakDType weak_float{DType::float64, true};
constexpr WeakDType weak_complex{DType::complex128, true};

// The 16-bit float nearest to value, ties to even, found by search instead of by bit arithmetic.
template <class Half>
std::uint16_t nearest_bits(float value, std::uint16_t infinity_bits) {
  const auto as_double = [&](std::uint16_t bits) {
    Half half;
    half.bits = bits;
    // Beyond the largest finite number the next one would be twice its binade's end.
    if (bits == infinity_bits) {
      Half largest, below;
      largest.bits = static_cast<std::uint16_t>(bits - 1);
      below.bits = static_cast<std::uint16_t>(bits - 2);
      return 2.0 * static_cast<float>(largest) - static_cast<float>(below);
    }
    return static_cast<double>(static_cast<float>(half));
  };
  const double magnitude = std::fabs(static_cast<double>(value));
  int low = 0, high = infinity_bits;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (as_double(static_cast<std::uint16_t>(middle)) <= magnitude ? low : high) = middle;
  }
  const double to_low = magnitude - as_double(static_cast<std::uint16_t>(low));
  const double to_high = as_double(static_cast<std::uint16_t>(high)) - magnitude;
  const int chosen = to_low < to_high ? low : to_high < to_low ? high : low % 2 == 0 ? low : high;
  return static_cast<std::uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

template <class Half>
void check_every_bit_pattern(std::uint16_t infinity_bits) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(half);
    const bool is_nan = (bits & 0x7fff) > infinity_bits;
    REQUIRE(std::isnan(value) == is_nan);
    if (is_nan) {
      REQUIRE(std::isnan(static_cast<float>(Half(value))));
      REQUIRE(((Half(value).bits ^ half.bits) & 0x8000) == 0);
    } else {
      REQUIRE(Half(value).bits == half.bits);
    }
  }
}

template <class Half>
void check_rounding(std::uint16_t infinity_bits) {
  std::uint32_t random = 12345;
  for (int i = 0; i < 200000; ++i) {
    random = random * 1664525U + 1013904223U;
    // Sixteen low bits of all kinds: ties, just below and just above them are frequent.
    std::uint32_t word = random;
    if (i % 4 == 0) word = (word & 0xffff0000U) | 0x8000U;
    if (i % 4 == 1) word = (word & 0xffffe000U) | 0x1000U;
    if (i % 2 == 0) word = (word & 0x8fffffffU) | 0x38000000U;  // a range that binary16 has
    const float value = std::bit_cast<float>(word);
    if (std::isnan(value) || std::isinf(value)) continue;
    CAPTURE(value);
    REQUIRE(Half(value).bits == nearest_bits<Half>(value, infinity_bits));
  }
}

}  // namespace

TEST_CASE("promotion of every pair of dtypes is JAX's") {
  for (int i = 0; i < num_computing_dtypes; ++i) {
    std::istringstream row(jax_table[i]);
    for (int j = 0; j < num_computing_dtypes; ++j) {
      std::string expected;
      row >> expected;
      CAPTURE(name_of(at(i)));
      CAPTURE(name_of(at(j)));
      CHECK(short_name_of(promote_types(at(i), at(j))) == expected);
    }
  }
}

TEST_CASE("every dtype is found by both of its names") {
  for (int i = 0; i < num_dtypes; ++i) {
    CHECK(dtype_from_name(name_of(at(i))) == at(i));
    CHECK(dtype_from_name(short_name_of(at(i))) == at(i));
  }
  CHECK(name_of(DType::bool_) == "bool");
  CHECK(!dtype_from_name("float").has_value());
  CHECK(!dtype_from_name("").has_value());
}

TEST_CASE("stored dtypes have names, sizes and carriers, and no arithmetic") {
  for (int i = num_computing_dtypes; i < num_dtypes; ++i) {
    const DType dtype = at(i);
    CHECK(is_stored(dtype));
    CHECK(size_of(carrier_of(dtype)) == size_of(dtype));
    CHECK((!is_integer(dtype) && !is_inexact(dtype) && !is_bool(dtype)));
    CHECK(promote_types(dtype, dtype) == dtype);
    CHECK_THROWS_AS(promote_types(dtype, DType::float32), DtypeError);
    CHECK_THROWS_AS(promote_weak({dtype, false}, {DType::int32, true}), DtypeError);
    CHECK_THROWS_AS(visit_dtype(dtype, [](auto element) { return sizeof element; }), DtypeError);
  }
  for (int i = 0; i < num_computing_dtypes; ++i) CHECK(carrier_of(at(i)) == at(i));
}

TEST_CASE("visit_dtype calls with an element of the right type and size") {
  for (int i = 0; i < num_computing_dtypes; ++i) {
    visit_dtype(at(i), [&](auto element) {
      CHECK(dtype_of<decltype(element)>() == at(i));
      CHECK(size_of(at(i)) == static_cast<std::int64_t>(sizeof(element)));
    });
  }
}

TEST_CASE("each dtype is in one category") {
  for (int i = 0; i < num_computing_dtypes; ++i) {
    const DType d = at(i);
    CHECK(is_bool(d) + is_integer(d) + is_floating(d) + is_complex(d) == 1);
    CHECK(is_signed_integer(d) + is_unsigned_integer(d) == is_integer(d));
    CHECK(is_inexact(d) == (is_floating(d) || is_complex(d)));
  }
  CHECK(is_signed_integer(DType::int8));
  CHECK(is_unsigned_integer(DType::uint8));
  CHECK(is_floating(DType::bfloat16));
}

TEST_CASE("real and complex dtypes correspond") {
  CHECK(real_dtype_of(DType::complex64) == DType::float32);
  CHECK(real_dtype_of(DType::complex128) == DType::float64);
  CHECK(real_dtype_of(DType::int8) == DType::int8);
  CHECK(complex_dtype_of(DType::float16) == DType::complex64);
  CHECK(complex_dtype_of(DType::float64) == DType::complex128);
  CHECK(complex_dtype_of(DType::int64) == DType::complex64);
  CHECK(complex_dtype_of(DType::complex128) == DType::complex128);
}

TEST_CASE("of two weak operands of a category the narrower dtype stays") {
  CHECK(promote_weak({DType::float32, true}, weak_float) == WeakDType{DType::float32, true});
  CHECK(promote_weak(weak_int, {DType::int32, true}) == WeakDType{DType::int32, true});
  CHECK(promote_weak(weak_complex, {DType::complex64, true}) == WeakDType{DType::complex64, true});
  CHECK(promote_weak(weak_int, weak_float) == weak_float);
}

TEST_CASE("a weak operand of the same or a lower category yields") {
  CHECK(promote_weak(strong(DType::float32), weak_float) == strong(DType::float32));
  CHECK(promote_weak(weak_float, strong(DType::bfloat16)) == strong(DType::bfloat16));
  CHECK(promote_weak(strong(DType::int8), weak_int) == strong(DType::int8));
  CHECK(promote_weak(strong(DType::uint64), weak_int) == strong(DType::uint64));
  CHECK(promote_weak(strong(DType::float16), weak_int) == strong(DType::float16));
  CHECK(promote_weak(strong(DType::complex64), weak_float) == strong(DType::complex64));
  CHECK(promote_weak(strong(DType::complex64), weak_complex) == strong(DType::complex64));
}

TEST_CASE("a weak operand of a higher category gives the default of that category") {
  CHECK(promote_weak(strong(DType::int32), weak_float) == strong(DType::float32));
  CHECK(promote_weak(strong(DType::int64), weak_float) == strong(DType::float32));
  CHECK(promote_weak(strong(DType::bool_), weak_int) == strong(DType::int32));
  CHECK(promote_weak(strong(DType::bool_), weak_float) == strong(DType::float32));
  CHECK(promote_weak(strong(DType::int32), weak_complex) == strong(DType::complex64));
  CHECK(promote_weak(strong(DType::bfloat16), weak_complex) == strong(DType::complex64));
  CHECK(promote_weak(strong(DType::float64), weak_complex) == strong(DType::complex128));
}

TEST_CASE("two weak operands stay weak and wide") {
  CHECK(promote_weak(weak_int, weak_int) == weak_int);
  CHECK(promote_weak(weak_int, weak_float) == weak_float);
  CHECK(promote_weak(weak_complex, weak_float) == weak_complex);
  CHECK(promote_weak(strong(DType::int16), strong(DType::uint16)) == strong(DType::int32));
}

TEST_CASE("a bool is never weak") {
  const WeakDType weak_bool{DType::bool_, true};
  CHECK(promote_weak(weak_bool, weak_bool) == strong(DType::bool_));
  CHECK(promote_weak(weak_bool, weak_int) == strong(DType::int32));
  CHECK(promote_weak(weak_bool, strong(DType::int8)) == strong(DType::int8));
}

TEST_CASE("16-bit floats survive the way through float, NaN included") {
  check_every_bit_pattern<float16>(0x7c00);
  check_every_bit_pattern<bfloat16>(0x7f80);
}

TEST_CASE("conversion to 16-bit floats rounds to nearest, ties to even") {
  check_rounding<float16>(0x7c00);
  check_rounding<bfloat16>(0x7f80);
}

TEST_CASE("a NaN whose payload is in the dropped bits stays NaN") {
  for (const std::uint32_t word : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffffffffU}) {
    const float nan = std::bit_cast<float>(word);
    CHECK(std::isnan(static_cast<float>(float16(nan))));
    CHECK(std::isnan(static_cast<float>(bfloat16(nan))));
    CHECK(std::signbit(static_cast<float>(bfloat16(nan))) == std::signbit(nan));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(bfloat16(infinity)) == infinity);
  CHECK(static_cast<float>(float16(65520.0F)) == infinity);
  CHECK(static_cast<float>(bfloat16(std::numeric_limits<float>::max())) == infinity);
}

TEST_CASE("default dtypes hold in a scope, on its thread, and nest") {
  const WeakDType weak_float{DType::float64, true}, strong_int{DType::int32, false};
  {
    const DefaultDTypesScope wide({DType::float64, DType::int64});
    CHECK(default_float() == DType::float64);
    CHECK(default_int() == DType::int64);
    CHECK(default_complex() == DType::complex128);
    CHECK(promote_weak(weak_float, strong_int) == WeakDType{DType::float64, false});
    {
      const DefaultDTypesScope neutral{DefaultDTypes{}};
      CHECK(promote_weak(weak_float, strong_int) == WeakDType{DType::float32, false});
    }
    std::thread([] { CHECK(default_float() == DType::float32); }).join();
    CHECK(default_float() == DType::float64);
    CHECK_THROWS_AS(DefaultDTypesScope({DType::float16, DType::int64}), ValueError);
    CHECK(default_int() == DType::int64);
  }
  CHECK(default_int() == DType::int32);
}
