// Array's methods: NumPy's functions with the array as their first argument.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/subscript.h>
#include <plait/primitives/narrow.h>
#include <plait/trace/concrete.h>

#include <algorithm>
#include <cstring>

#include "functions/functions.h"

namespace plait {
namespace {

// The array as an operand, with the line of the method call.
Operand called(const Array& x, Here here) {
  here.remember();
  return Operand(x);
}

}  // namespace

Array Array::operator[](const Brackets& where) const { return getitem(*this, where.subscripts()); }
At Array::at(const Brackets& where) const { return At(*this, where.subscripts()); }

Array At::get(const SubscriptOptions& options) const {
  return getitem(array_, subscripts_, options);
}
Array At::set(Operand values, const SubscriptOptions& options) const {
  return update_item(array_, subscripts_, std::move(values), UpdateKind::set, options);
}
Array At::add(Operand values, const SubscriptOptions& options) const {
  return update_item(array_, subscripts_, std::move(values), UpdateKind::add, options);
}
Array At::multiply(Operand values, const SubscriptOptions& options) const {
  return update_item(array_, subscripts_, std::move(values), UpdateKind::multiply, options);
}
Array At::min(Operand values, const SubscriptOptions& options) const {
  return update_item(array_, subscripts_, std::move(values), UpdateKind::min, options);
}
Array At::max(Operand values, const SubscriptOptions& options) const {
  return update_item(array_, subscripts_, std::move(values), UpdateKind::max, options);
}

Array Array::T(Here here) const { return numpy::transpose(called(*this, here)); }
Array Array::mT(Here here) const { return numpy::matrix_transpose(called(*this, here)); }
Array Array::sum(const Axes& axis, std::optional<DType> dtype, bool keepdims, Here here) const {
  return numpy::sum(called(*this, here), axis, dtype, keepdims);
}
Array Array::prod(const Axes& axis, std::optional<DType> dtype, bool keepdims, Here here) const {
  return numpy::prod(called(*this, here), axis, dtype, keepdims);
}
Array Array::max(const Axes& axis, bool keepdims, Here here) const {
  return numpy::max(called(*this, here), axis, keepdims);
}
Array Array::min(const Axes& axis, bool keepdims, Here here) const {
  return numpy::min(called(*this, here), axis, keepdims);
}
Array Array::any(const Axes& axis, bool keepdims, Here here) const {
  return numpy::any(called(*this, here), axis, keepdims);
}
Array Array::all(const Axes& axis, bool keepdims, Here here) const {
  return numpy::all(called(*this, here), axis, keepdims);
}
Array Array::mean(const Axes& axis, std::optional<DType> dtype, bool keepdims, Here here) const {
  return numpy::mean(called(*this, here), axis, dtype, keepdims);
}
Array Array::var(const Axes& axis, std::optional<DType> dtype, double ddof, bool keepdims,
                 Here here) const {
  return numpy::var(called(*this, here), axis, dtype, ddof, keepdims);
}
Array Array::std(const Axes& axis, std::optional<DType> dtype, double ddof, bool keepdims,
                 Here here) const {
  return numpy::std(called(*this, here), axis, dtype, ddof, keepdims);
}
Array Array::argmax(std::optional<int> axis, bool keepdims, Here here) const {
  return numpy::argmax(called(*this, here), axis, keepdims);
}
Array Array::argmin(std::optional<int> axis, bool keepdims, Here here) const {
  return numpy::argmin(called(*this, here), axis, keepdims);
}
Array Array::cumsum(std::optional<int> axis, std::optional<DType> dtype, Here here) const {
  return numpy::cumsum(called(*this, here), axis, dtype);
}
Array Array::cumprod(std::optional<int> axis, std::optional<DType> dtype, Here here) const {
  return numpy::cumprod(called(*this, here), axis, dtype);
}
Array Array::reshape(const Shape& shape, Here here) const {
  return numpy::reshape(called(*this, here), shape);
}
Array Array::ravel(Here here) const { return numpy::ravel(called(*this, here)); }
Array Array::flatten(Here here) const { return numpy::ravel(called(*this, here)); }
Array Array::transpose(const std::vector<int>& axes, Here here) const {
  return numpy::transpose(called(*this, here), axes);
}
Array Array::swapaxes(int axis1, int axis2, Here here) const {
  return numpy::swapaxes(called(*this, here), axis1, axis2);
}
Array Array::squeeze(const Axes& axis, Here here) const {
  return numpy::squeeze(called(*this, here), axis);
}
Array Array::astype(DType dtype, Here here) const {
  return numpy::astype(called(*this, here), dtype);
}
Array Array::copy(Here here) const { return numpy::copy(called(*this, here)); }
Array Array::clip(const std::optional<Array>& min, const std::optional<Array>& max,
                  Here here) const {
  return numpy::clip(called(*this, here), min, max);
}
Array Array::clip(const std::optional<Array>& min, Here here) const {
  return numpy::clip(called(*this, here), min);
}
Array Array::round(int decimals, Here here) const {
  return numpy::round(called(*this, here), decimals);
}
Array Array::real(Here here) const { return numpy::real(called(*this, here)); }
Array Array::imag(Here here) const { return numpy::imag(called(*this, here)); }
Array Array::conj(Here here) const { return numpy::conj(called(*this, here)); }
Array Array::dot(const Array& b, Here here) const { return numpy::dot(called(*this, here), b); }
Array Array::sort(std::optional<int> axis, Here here) const {
  return numpy::sort(called(*this, here), axis);
}
Array Array::argsort(std::optional<int> axis, Here here) const {
  return numpy::argsort(called(*this, here), axis);
}
Array Array::take(const Array& indices, std::optional<int> axis, Here here) const {
  return numpy::take(called(*this, here), indices, axis);
}
Array Array::repeat(int repeats, std::optional<int> axis, Here here) const {
  return numpy::repeat(called(*this, here), repeats, axis);
}
Array Array::diagonal(int offset, int axis1, int axis2, Here here) const {
  return numpy::diagonal(called(*this, here), offset, axis1, axis2);
}
Array Array::trace(int offset, int axis1, int axis2, Here here) const {
  return numpy::trace(called(*this, here), offset, axis1, axis2);
}

// --- Operators -----------------------------------------------------------------------------------

Array operator&(Operand x, Operand y) { return numpy::bitwise_and(std::move(x), std::move(y)); }
Array operator|(Operand x, Operand y) { return numpy::bitwise_or(std::move(x), std::move(y)); }
Array operator^(Operand x, Operand y) { return numpy::bitwise_xor(std::move(x), std::move(y)); }
Array operator~(Operand x) { return numpy::bitwise_invert(std::move(x)); }
Array operator<(Operand x, Operand y) { return numpy::less(std::move(x), std::move(y)); }
Array operator<=(Operand x, Operand y) { return numpy::less_equal(std::move(x), std::move(y)); }
Array operator>(Operand x, Operand y) { return numpy::greater(std::move(x), std::move(y)); }
Array operator>=(Operand x, Operand y) { return numpy::greater_equal(std::move(x), std::move(y)); }
Array& operator+=(Array& x, Operand y) { return x = x + std::move(y); }
Array& operator-=(Array& x, Operand y) { return x = x - std::move(y); }
Array& operator*=(Array& x, Operand y) { return x = x * std::move(y); }
Array& operator/=(Array& x, Operand y) { return x = x / std::move(y); }

// --- Arrays from C++ values ----------------------------------------------------------------------

Array detail::array_of(const void* data, DType from, const Shape& shape, std::optional<DType> dtype,
                       Here here) {
  here.remember();
  const Sizes64 sizes = shape.to_sizes();
  Buffer buffer = Buffer::empty(from, sizes);
  if (buffer.bytes() > 0) std::memcpy(buffer.mutable_data(), data, std::size_t(buffer.bytes()));
  const Array array(std::move(buffer));
  if (!dtype || *dtype == from) return array;
  if (is_integer(from) && is_integer(*dtype)) return narrowed(array, *dtype, "array");
  return lax::convert_element_type(array, *dtype);
}

DType detail::list_dtype(DType dtype) {
  if (is_bool(dtype)) return dtype;
  if (is_integer(dtype)) return default_int();
  return is_complex(dtype) ? default_complex() : default_float();
}

Array detail::array_over(const void* data, DType dtype, std::size_t count,
                         std::shared_ptr<const void> owner, const std::optional<Shape>& shape,
                         Here here) {
  here.remember();
  const Shape taken = shape ? *shape : Shape{Dim(std::int64_t(count))};
  if (!(taken.num_elements() == Dim(std::int64_t(count))))
    throw ShapeError("frombuffer: an array of shape (" + taken.to_string() + ") has " +
                         taken.num_elements().to_string() + " elements, and the memory holds " +
                         std::to_string(count),
                     "give a shape of as many elements as there are");
  const std::size_t size = std::size_t(size_of(dtype));
  if (reinterpret_cast<std::uintptr_t>(data) % std::min<std::size_t>(size, 8) != 0)
    throw ValueError("frombuffer: the memory does not begin at a multiple of the " +
                         std::to_string(size) + " bytes of a " + std::string(name_of(dtype)),
                     "copy it with asarray");
  // Foreign memory is never written to.
  Storage storage = Storage::foreign(const_cast<void*>(data), count * size,
                                     [owner = std::move(owner)]() mutable { owner.reset(); });
  const Sizes64 sizes = taken.to_sizes();
  View view{storage.data(), carrier_of(dtype), sizes, dense_strides(sizes)};
  return make_concrete({taken, dtype}, Buffer(std::move(storage), std::move(view)));
}

void detail::throw_ragged(std::size_t row, std::size_t size, std::size_t first) {
  throw ShapeError("array: row " + std::to_string(row) + " has " + std::to_string(size) +
                       " elements, and row 0 has " + std::to_string(first),
                   "give rows of one length");
}

Array numpy::array(std::initializer_list<Array> arrays, std::optional<DType> dtype, Here here) {
  here.remember();
  const Array result = stack(Arrays(arrays), 0, dtype);
  return result.aval().weak ? asarray(result, detail::list_dtype(result.dtype()), here) : result;
}
Array numpy::asarray(const std::vector<bool>& values, std::optional<DType> dtype, Here here) {
  const auto copy = std::make_unique<bool[]>(values.size() + 1);
  std::copy(values.begin(), values.end(), copy.get());
  return detail::array_of(copy.get(), DType::bool_, {Dim(std::int64_t(values.size()))}, dtype,
                          here);
}
Array numpy::asarray(const Array& a, std::optional<DType> dtype, Here here) {
  here.remember();
  return dtype ? lax::convert_element_type(a, *dtype) : a;
}

}  // namespace plait
