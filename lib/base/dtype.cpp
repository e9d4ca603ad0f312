// The facts about element types: one table row per dtype, the 16-bit conversions, and promotion.
//
// Promotion is computed from JAX's lattice, of which tests/base/dtype_test.cpp holds the complete
// table. Besides the default dtypes of a thread, everything is a pure function of the closed set.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/dtype.h>
#include <plait/base/error.h>

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace plait {
namespace {

// Ordered: weak operands yield by comparison of categories.
enum class Category : std::uint8_t { stored, boolean, integer, floating, complex };

struct Facts {
  DType dtype;
  Category category;
  std::uint8_t size;
  bool is_signed;
  std::string_view name, short_name;
};

constexpr std::array<Facts, num_dtypes> all_facts = {{
    {DType::bool_, Category::boolean, 1, false, "bool", "bool"},
    {DType::int8, Category::integer, 1, true, "int8", "i8"},
    {DType::int16, Category::integer, 2, true, "int16", "i16"},
    {DType::int32, Category::integer, 4, true, "int32", "i32"},
    {DType::int64, Category::integer, 8, true, "int64", "i64"},
    {DType::uint8, Category::integer, 1, false, "uint8", "u8"},
    {DType::uint16, Category::integer, 2, false, "uint16", "u16"},
    {DType::uint32, Category::integer, 4, false, "uint32", "u32"},
    {DType::uint64, Category::integer, 8, false, "uint64", "u64"},
    {DType::float16, Category::floating, 2, true, "float16", "f16"},
    {DType::bfloat16, Category::floating, 2, true, "bfloat16", "bf16"},
    {DType::float32, Category::floating, 4, true, "float32", "f32"},
    {DType::float64, Category::floating, 8, true, "float64", "f64"},
    {DType::complex64, Category::complex, 8, true, "complex64", "c64"},
    {DType::complex128, Category::complex, 16, true, "complex128", "c128"},
    {DType::float8_e4m3fn, Category::stored, 1, true, "float8_e4m3fn", "f8_e4m3fn"},
    {DType::float8_e5m2, Category::stored, 1, true, "float8_e5m2", "f8_e5m2"},
    {DType::int4, Category::stored, 1, true, "int4", "i4"},
    {DType::uint4, Category::stored, 1, false, "uint4", "u4"},
    {DType::key, Category::stored, 8, false, "key<fry>", "key<fry>"},
}};

constexpr bool is_in_enum_order() {
  for (int i = 0; i < num_dtypes; ++i)
    if (all_facts[i].dtype != static_cast<DType>(i)) return false;
  return true;
}
static_assert(is_in_enum_order());

const Facts& facts_of(DType dtype) { return all_facts[static_cast<std::size_t>(dtype)]; }

DType signed_integer_of_size(int size) {
  switch (size) {
    case 1:
      return DType::int8;
    case 2:
      return DType::int16;
    case 4:
      return DType::int32;
    default:
      return DType::int64;
  }
}

// Same signedness: the wider. Mixed: the narrowest signed type that holds both, and float64 when
// uint64 leaves none.
DType promote_integers(const Facts& a, const Facts& b) {
  if (a.is_signed == b.is_signed) return a.size >= b.size ? a.dtype : b.dtype;
  const Facts& with_sign = a.is_signed ? a : b;
  const Facts& without = a.is_signed ? b : a;
  if (without.size == 8) return DType::float64;
  return signed_integer_of_size(std::max<int>(with_sign.size, 2 * without.size));
}

// The wider floating dtype wins. float16 and bfloat16 do not hold each other's range or precision,
// and promote to float32.
DType promote_floating(const Facts& a, const Facts& b) {
  if (a.size == b.size && a.dtype != b.dtype) return DType::float32;
  return a.size >= b.size ? a.dtype : b.dtype;
}

constinit thread_local DefaultDTypes default_dtypes;

DType default_of(Category category) {
  switch (category) {
    case Category::boolean:
      return DType::bool_;
    case Category::integer:
      return default_int();
    case Category::floating:
      return default_float();
    default:
      return default_complex();
  }
}

}  // namespace

DefaultDTypes DefaultDTypes::current() { return default_dtypes; }

DefaultDTypesScope::DefaultDTypesScope(DefaultDTypes dtypes) : outer_(default_dtypes) {
  const auto require = [](DType dtype, std::string_view kind, DType narrow, DType wide) {
    if (dtype != narrow && dtype != wide)
      throw ValueError(
          "default_dtypes: the default " + std::string(kind) + " is " + std::string(name_of(dtype)),
          "choose " + std::string(name_of(narrow)) + " or " + std::string(name_of(wide)) +
              "; give other dtypes where arrays are made");
  };
  require(dtypes.floating, "float", DType::float32, DType::float64);
  require(dtypes.integer, "int", DType::int32, DType::int64);
  default_dtypes = dtypes;
}
DefaultDTypesScope::~DefaultDTypesScope() { default_dtypes = outer_; }

DType default_float() { return default_dtypes.floating; }
DType default_int() { return default_dtypes.integer; }
DType default_complex() { return complex_dtype_of(default_dtypes.floating); }

float16::float16(float value) : bits(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT)) {}

float16::operator float() const { return _cvtsh_ss(bits); }

bfloat16::bfloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffU) > 0x7f800000U) {
    // Rounding could carry a NaN into infinity; the quiet bit keeps the mantissa from becoming
    // zero.
    bits = static_cast<std::uint16_t>((word >> 16) | 0x40U);
    return;
  }
  // Half to even: add just under half, plus one when the kept part is odd.
  bits = static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16) & 1U)) >> 16);
}

bfloat16::operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

std::int64_t size_of(DType dtype) { return facts_of(dtype).size; }
std::string_view name_of(DType dtype) { return facts_of(dtype).name; }
std::string_view short_name_of(DType dtype) { return facts_of(dtype).short_name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Facts& row : all_facts)
    if (name == row.name || name == row.short_name) return row.dtype;
  return std::nullopt;
}

DType carrier_of(DType dtype) {
  switch (dtype) {
    case DType::int4:
      return DType::int8;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::uint4:
      return DType::uint8;
    case DType::key:
      return DType::uint64;
    default:
      return dtype;
  }
}

void throw_stored(DType dtype) {
  const std::string name(name_of(dtype));
  if (dtype == DType::key)
    throw DtypeError("keys of random numbers are no numbers to compute with",
                     "draw numbers by the functions of random, or take their words with "
                     "random.key_data");
  throw DtypeError("elements of dtype " + name + " are stored, and nothing is computed with them",
                   "convert them first, as with astype(float32), and the result back");
}

bool is_bool(DType dtype) { return dtype == DType::bool_; }
bool is_integer(DType dtype) { return facts_of(dtype).category == Category::integer; }
bool is_signed_integer(DType dtype) { return is_integer(dtype) && facts_of(dtype).is_signed; }
bool is_unsigned_integer(DType dtype) { return is_integer(dtype) && !facts_of(dtype).is_signed; }
bool is_floating(DType dtype) { return facts_of(dtype).category == Category::floating; }
bool is_complex(DType dtype) { return facts_of(dtype).category == Category::complex; }
bool is_inexact(DType dtype) { return facts_of(dtype).category >= Category::floating; }

DType real_dtype_of(DType dtype) {
  if (!is_complex(dtype)) return dtype;
  return dtype == DType::complex64 ? DType::float32 : DType::float64;
}

DType complex_dtype_of(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::float64 ? DType::complex128 : DType::complex64;
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (is_stored(a) || is_stored(b)) throw_stored(is_stored(a) ? a : b);
  if (facts_of(a).category < facts_of(b).category) std::swap(a, b);
  const Facts& high = facts_of(a);
  const Facts& low = facts_of(b);
  switch (high.category) {
    case Category::boolean:
      return DType::bool_;
    case Category::integer:
      return is_bool(b) ? a : promote_integers(high, low);
    case Category::floating:
      return is_floating(b) ? promote_floating(high, low) : a;
    default:
      return b == DType::complex128 || b == DType::float64 ? DType::complex128 : a;
  }
}

WeakDType promote_weak(WeakDType a, WeakDType b) {
  // A Python bool is as precise as any bool: it has nothing to yield to.
  if (is_bool(a.dtype)) a.weak = false;
  if (is_bool(b.dtype)) b.weak = false;
  // Of two numbers of a kind the narrower one was made so: a literal follows it.
  if (a.weak && b.weak && facts_of(a.dtype).category == facts_of(b.dtype).category)
    return {size_of(a.dtype) < size_of(b.dtype) ? a.dtype : b.dtype, true};
  if (a.weak == b.weak) return {promote_types(a.dtype, b.dtype), a.weak};
  const DType strong = a.weak ? b.dtype : a.dtype;
  const Category category = facts_of(a.weak ? a.dtype : b.dtype).category;
  if (is_stored(strong)) throw_stored(strong);
  if (category <= facts_of(strong).category) return {strong, false};
  if (category == Category::complex && is_floating(strong))
    return {complex_dtype_of(strong), false};
  return {default_of(category), false};
}

}  // namespace plait
