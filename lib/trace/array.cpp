// Array: numbers, literals, and access to the value in memory. See array.h.
// SPDX-License-Identifier: Apache-2.0
#include "trace/usable.h"

#include <plait/base/memory.h>
#include <plait/base/stored.h>
#include <plait/trace/concrete.h>
#include <plait/trace/trace.h>

namespace plait {
namespace {

template <class T>
constexpr bool is_complex_element = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// Made by every eager operation, so its memory is cached.
class CachedNode final : public ConcreteNode {
 public:
  using ConcreteNode::ConcreteNode;
  static void* operator new(std::size_t bytes) { return allocate_object(bytes); }
  static void operator delete(void* pointer, std::size_t bytes) noexcept {
    deallocate_object(pointer, bytes);
  }
};

template <class T>
Array literal_scalar(T value, bool weak) {
  Buffer buffer = Buffer::scalar(value);
  buffer.set_free(true);
  return make_concrete(Aval{{}, dtype_of<T>(), weak}, std::move(buffer), true);
}

}  // namespace

Array Array::of_bool(bool value) { return literal_scalar(value, false); }
Array Array::of_integer(std::int64_t value) { return literal_scalar(value, true); }
Array Array::of_float(double value) { return literal_scalar(value, true); }
void Array::throw_too_large(std::uint64_t value) {
  throw ValueError("the integer " + std::to_string(value) + " does not fit in 64 bits with a sign",
                   "give numpy::array({value}, DType::uint64)");
}
Array::Array(complex128 value) : Array(literal_scalar(value, true)) {}

Array::Array(Buffer buffer, bool weak) {
  Aval aval{Shape::of(buffer.shape()), buffer.dtype(), weak};
  *this = make_concrete(aval, std::move(buffer));
}

Array make_concrete(const Aval& aval, Buffer buffer, bool is_literal) {
  return Array(new CachedNode(aval, std::move(buffer), is_literal));
}

namespace {

// Not inline: programs hold no such numbers, and read it as an array.
Array stored_scalar(const Literal& literal) {
  const DType dtype = literal.dtype;
  Buffer buffer = dtype == DType::int4  ? Buffer::scalar(std::int8_t(literal.integer))
                  : dtype == DType::key ? Buffer::scalar(std::uint64_t(literal.integer))
                  : is_float8(dtype)    ? Buffer::scalar(float8_bits(literal.real, dtype))
                                        : Buffer::scalar(std::uint8_t(literal.integer));
  buffer.set_free(true);
  return make_concrete({{}, dtype, false}, std::move(buffer));
}

}  // namespace

Array Array::literal(const Literal& literal) {
  if (is_stored(literal.dtype)) return stored_scalar(literal);
  return visit_dtype(literal.dtype, [&](auto element) {
    using T = decltype(element);
    T value;
    if constexpr (is_complex_element<T>)
      value = T(literal.as_complex());
    else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      value = T(float(literal.real));
    else if constexpr (std::is_floating_point_v<T>)
      value = T(literal.real);
    else
      value = T(literal.integer);
    return literal_scalar(value, literal.weak);
  });
}

Array Array::literal(double value, DType dtype) {
  return literal(cast(Literal{DType::float64, false, 0, value, 0}, dtype, false));
}

std::optional<Literal> Array::as_literal() const {
  if (!is_concrete()) return std::nullopt;
  const auto& node = static_cast<const ConcreteNode&>(*node_);
  if (!node.is_literal) return std::nullopt;
  return visit_dtype(dtype(), [&](auto element) -> Literal {
    using T = decltype(element);
    const T value = *static_cast<const T*>(node.buffer.data());
    Literal literal{dtype(), aval().weak, 0, 0, 0};
    if constexpr (is_complex_element<T>)
      literal.real = value.real(), literal.imaginary = value.imag();
    else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      literal.real = float(value);
    else if constexpr (std::is_floating_point_v<T>)
      literal.real = value;
    else
      literal.integer = std::int64_t(value);
    return literal;
  });
}

void Array::throw_empty() const {
  throw ValueError(
      "an Array that holds nothing was used: it was made without a value, or moved from",
      "give it a value first");
}

void Array::throw_axis(int axis) const {
  throw IndexError("axis " + std::to_string(axis) + " of an array of type " + aval().to_string(),
                   "name an axis from 0 to " + std::to_string(ndim() - 1));
}

std::optional<Buffer> Array::known_buffer() const {
  if (is_concrete()) return static_cast<const ConcreteNode*>(node_)->buffer;
  for (Trace* trace = Trace::current(); trace; trace = trace->parent()) {
    if (!trace->owns(*this)) continue;
    std::optional<Array> beneath = trace->known(*node_);
    if (!beneath) return std::nullopt;
    return beneath->known_buffer();
  }
  return std::nullopt;
}

Buffer Array::host_buffer() const { return buffer().on_host(); }

Buffer Array::numbers() const {
  const Buffer value = host_buffer();
  return is_stored(dtype()) ? numbers_of_stored(value.dense(), dtype()) : value;
}

Buffer Array::buffer() const {
  if (std::optional<Buffer> buffer = known_buffer()) return *std::move(buffer);
  throw_unknown_value(*this);
}

namespace {

// One element converted to another C++ type; complex numbers give their real part, where that is
// requested.
template <class To, class From>
To converted(From from) {
  if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>)
    return converted<To>(float(from));
  else if constexpr (std::is_same_v<To, bool>)
    return from != From(0);
  else if constexpr (is_complex_element<From> && !is_complex_element<To>)
    return converted<To>(from.real());
  else if constexpr (is_complex_element<From>)
    return To(typename To::value_type(from.real()), typename To::value_type(from.imag()));
  else if constexpr (is_complex_element<To>)
    return To(typename To::value_type(from));
  else
    return static_cast<To>(from);
}

}  // namespace

View Array::dense_view(DType dtype, Here here) const {
  here.remember();
  const Buffer value = buffer();
  if (value.dtype() != dtype)
    throw DtypeError("span: the elements are " + std::string(name_of(value.dtype())) + ", and " +
                         std::string(name_of(dtype)) + " was asked for",
                     "ask for the array's dtype, or take a copy with to_vector");
  if (!value.view().is_dense())
    throw ValueError("span: the elements do not lie in the order of rows",
                     "take a copy with to_vector");
  return value.view();
}

template <class T>
std::vector<T> Array::to_vector(Here here) const {
  here.remember();
  if (dtype() == DType::key) throw_stored(DType::key);
  const Buffer value = numbers().dense();
  if (is_complex(value.dtype()) && !is_complex_element<T>)
    throw DtypeError("to_vector: complex numbers have no real value",
                     "take real() or imag() first, or ask for complex numbers");
  return visit_dtype(value.dtype(), [&](auto element) {
    using From = decltype(element);
    const From* data = static_cast<const From*>(value.data());
    std::vector<T> result;
    result.reserve(std::size_t(value.view().size()));
    for (std::int64_t i = 0; i < value.view().size(); ++i) result.push_back(converted<T>(data[i]));
    return result;
  });
}

template <class T>
T Array::item(Here here) const {
  here.remember();
  if (dtype() == DType::key) throw_stored(DType::key);
  const Buffer value = numbers();
  if (num_elements(value.shape()) != 1)
    throw ShapeError(
        "only an array of one element converts to a scalar, and this one is " + aval().to_string(),
        "index it, or reduce it, first");
  return visit_dtype(value.dtype(), [&](auto element) -> T {
    using From = decltype(element);
    return converted<T>(*static_cast<const From*>(value.data()));
  });
}
template bool Array::item<bool>(Here) const;
template std::vector<bool> Array::to_vector<bool>(Here) const;
template std::int8_t Array::item<std::int8_t>(Here) const;
template std::vector<std::int8_t> Array::to_vector<std::int8_t>(Here) const;
template std::int16_t Array::item<std::int16_t>(Here) const;
template std::vector<std::int16_t> Array::to_vector<std::int16_t>(Here) const;
template std::int32_t Array::item<std::int32_t>(Here) const;
template std::vector<std::int32_t> Array::to_vector<std::int32_t>(Here) const;
template std::int64_t Array::item<std::int64_t>(Here) const;
template std::vector<std::int64_t> Array::to_vector<std::int64_t>(Here) const;
template long long Array::item<long long>(Here) const;
template std::vector<long long> Array::to_vector<long long>(Here) const;
template std::uint8_t Array::item<std::uint8_t>(Here) const;
template std::vector<std::uint8_t> Array::to_vector<std::uint8_t>(Here) const;
template std::uint16_t Array::item<std::uint16_t>(Here) const;
template std::vector<std::uint16_t> Array::to_vector<std::uint16_t>(Here) const;
template std::uint32_t Array::item<std::uint32_t>(Here) const;
template std::vector<std::uint32_t> Array::to_vector<std::uint32_t>(Here) const;
template std::uint64_t Array::item<std::uint64_t>(Here) const;
template std::vector<std::uint64_t> Array::to_vector<std::uint64_t>(Here) const;
template unsigned long long Array::item<unsigned long long>(Here) const;
template std::vector<unsigned long long> Array::to_vector<unsigned long long>(Here) const;
template float Array::item<float>(Here) const;
template std::vector<float> Array::to_vector<float>(Here) const;
template double Array::item<double>(Here) const;
template std::vector<double> Array::to_vector<double>(Here) const;
template complex64 Array::item<complex64>(Here) const;
template std::vector<complex64> Array::to_vector<complex64>(Here) const;
template complex128 Array::item<complex128>(Here) const;
template std::vector<complex128> Array::to_vector<complex128>(Here) const;

}  // namespace plait
