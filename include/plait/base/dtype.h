// The element types of arrays: their names, sizes, categories and promotion.
//
// The bottom of the flow: all other code refers to dtypes through this file. The set is closed.
// Promotion follows the array-API standard, extended by JAX's lattice where kinds mix.
//
// NOTE: [stored dtypes] The last few are for storage alone: narrow numbers, and keys of random
// numbers. Arrays of them are made, moved, selected and converted, and nothing is computed with
// them. In memory their elements are integers, of the dtype carrier_of: programs are rewritten to
// those before they are compiled (lib/compile/carriers.cpp), so that no kernel knows more dtypes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

enum class DType : std::uint8_t {
  bool_,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
  float8_e4m3fn,  // see NOTE: [stored dtypes]
  float8_e5m2,
  int4,
  uint4,
  key,  // of random numbers: an opaque value of two words
};
inline constexpr int num_dtypes = 20;
inline constexpr int num_computing_dtypes = 15;  // those before the stored ones

// IEEE binary16, stored; arithmetic happens in float.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value);
  explicit operator float() const;
};

// The upper half of a binary32, stored; arithmetic happens in float.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value);
  explicit operator float() const;
};

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<std::complex<T>> = true;

std::int64_t size_of(DType dtype);                            // bytes of one element
std::string_view name_of(DType dtype);                        // NumPy's name: "float32"
std::string_view short_name_of(DType dtype);                  // the jaxpr's name: "f32"
std::optional<DType> dtype_from_name(std::string_view name);  // either name

// Of the stored dtypes every other question is answered by no: they are no bools, integers, floats.
constexpr bool is_stored(DType dtype) { return int(dtype) >= num_computing_dtypes; }
// The dtype of the integers that are in memory for elements of a stored dtype; others unchanged.
DType carrier_of(DType dtype);
bool is_bool(DType dtype);
bool is_integer(DType dtype);  // signed or unsigned, not bool
bool is_signed_integer(DType dtype);
bool is_unsigned_integer(DType dtype);
bool is_floating(DType dtype);  // real floating point
bool is_complex(DType dtype);
bool is_inexact(DType dtype);  // floating or complex: what can be differentiated

DType real_dtype_of(DType dtype);     // complex64 -> float32; real dtypes unchanged
DType complex_dtype_of(DType dtype);  // float32 -> complex64; integers -> complex64

// The dtype of an operation on two strong operands (JAX's lattice): int32 with float16 is float16,
// uint64 with int64 is float64, float16 with bfloat16 is float32. DtypeError for stored dtypes,
// except of one with itself.
DType promote_types(DType a, DType b);

// The dtype and weakness of an operation on operands that may be weak (Python scalars). A weak
// operand yields to a strong one unless its category (bool < int < float < complex) is higher; then
// the result is the default dtype of that category, or the strong operand's own width for complex.
struct WeakDType {
  DType dtype;
  bool weak;
  bool operator==(const WeakDType&) const = default;
};
WeakDType promote_weak(WeakDType a, WeakDType b);

// What numbers are of that nothing else gives a dtype: of creation, of integers that become floats,
// of indices in results, and of weak numbers in arrays of their own.
struct DefaultDTypes {
  DType floating = DType::float32;  // or float64
  DType integer = DType::int32;     // or int64
  bool operator==(const DefaultDTypes&) const = default;
  static DefaultDTypes current();  // of this thread
};

// In its scope, on this thread, other dtypes are the default. Whoever keeps a trace keeps it for
// the dtypes around it; whoever works for later callers does so under DefaultDTypes{}, the neutral
// ones, which other threads have too. ValueError for other dtypes than those above.
class DefaultDTypesScope {
 public:
  explicit DefaultDTypesScope(DefaultDTypes dtypes);
  ~DefaultDTypesScope();
  DefaultDTypesScope(const DefaultDTypesScope&) = delete;

 private:
  const DefaultDTypes outer_;
};

DType default_float();
DType default_int();
DType default_complex();  // of the default float's width

// dtype_of<float>() == DType::float32, for every element type above.
template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<bool>() {
  return DType::bool_;
}
template <>
constexpr DType dtype_of<std::int8_t>() {
  return DType::int8;
}
template <>
constexpr DType dtype_of<std::int16_t>() {
  return DType::int16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::int32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::int64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::uint8;
}
template <>
constexpr DType dtype_of<std::uint16_t>() {
  return DType::uint16;
}
template <>
constexpr DType dtype_of<std::uint32_t>() {
  return DType::uint32;
}
template <>
constexpr DType dtype_of<std::uint64_t>() {
  return DType::uint64;
}
template <>
constexpr DType dtype_of<float16>() {
  return DType::float16;
}
template <>
constexpr DType dtype_of<bfloat16>() {
  return DType::bfloat16;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::float32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::float64;
}
template <>
constexpr DType dtype_of<complex64>() {
  return DType::complex64;
}
template <>
constexpr DType dtype_of<complex128>() {
  return DType::complex128;
}

[[noreturn]] void throw_stored(DType dtype);  // the DtypeError of who computes with such elements

// Calls visitor with a value-initialised element of the dtype: visit_dtype(d, [](auto t) {...}).
// DtypeError for stored dtypes.
template <class Visitor>
decltype(auto) visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::bool_:
      return visitor(bool{});
    case DType::int8:
      return visitor(std::int8_t{});
    case DType::int16:
      return visitor(std::int16_t{});
    case DType::int32:
      return visitor(std::int32_t{});
    case DType::int64:
      return visitor(std::int64_t{});
    case DType::uint8:
      return visitor(std::uint8_t{});
    case DType::uint16:
      return visitor(std::uint16_t{});
    case DType::uint32:
      return visitor(std::uint32_t{});
    case DType::uint64:
      return visitor(std::uint64_t{});
    case DType::float16:
      return visitor(float16{});
    case DType::bfloat16:
      return visitor(bfloat16{});
    case DType::float32:
      return visitor(float{});
    case DType::float64:
      return visitor(double{});
    case DType::complex64:
      return visitor(complex64{});
    case DType::complex128:
      return visitor(complex128{});
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::int4:
    case DType::uint4:
    case DType::key:
      break;
  }
  throw_stored(dtype);
}

}  // namespace plait
