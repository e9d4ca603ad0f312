// Array: numbers, literals, and access to the value in memory. See array.h.
// SPDX-License-Identifier: Apache-2.0
#include "trace/usable.h"

#include <plait/base/memory.h>
#include <plait/trace/concrete.h>
#include <plait/trace/trace.h>

namespace plait {
namespace {

template <class T>
constexpr bool is_complex_element = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// Every eager operation makes one.
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
  return make_concrete(Aval{{}, dtype_of<T>(), weak}, Buffer::scalar(value), true);
}

}  // namespace

Array::Array(bool value) : Array(literal_scalar(value, false)) {}
Array::Array(std::int64_t value) : Array(literal_scalar(value, true)) {}
Array::Array(double value) : Array(literal_scalar(value, true)) {}
Array::Array(complex128 value) : Array(literal_scalar(value, true)) {}

Array::Array(Buffer buffer, bool weak) {
  Aval aval{Shape::of(buffer.shape()), buffer.dtype(), weak};
  *this = make_concrete(aval, std::move(buffer));
}

Array make_concrete(const Aval& aval, Buffer buffer, bool is_literal) {
  return Array(new CachedNode(aval, std::move(buffer), is_literal));
}

Array Array::literal(const Literal& literal) {
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

Buffer Array::buffer() const {
  if (std::optional<Buffer> buffer = known_buffer()) return *std::move(buffer);
  throw_unknown_value(*this);
}

template <class T>
T Array::item() const {
  const Buffer value = buffer();
  if (num_elements(value.shape()) != 1)
    throw ShapeError(
        "only an array of one element converts to a scalar, and this one is " + aval().to_string(),
        "index it, or reduce it, first");
  return visit_dtype(value.dtype(), [&](auto element) -> T {
    using From = decltype(element);
    const From from = *static_cast<const From*>(value.data());
    if constexpr (std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>)
      return T(float(from));
    else if constexpr (is_complex_element<From> && !is_complex_element<T>)
      return T(from.real());
    else if constexpr (is_complex_element<From>)
      return T(from.real(), from.imag());
    else
      return T(from);
  });
}
template bool Array::item<bool>() const;
template std::int64_t Array::item<std::int64_t>() const;
template int Array::item<int>() const;
template float Array::item<float>() const;
template double Array::item<double>() const;
template complex128 Array::item<complex128>() const;

}  // namespace plait
