// Arrays from C++ values: numpy::array, asarray and frombuffer. Part of numpy.h.
//
//   numpy::array({1.0, 2.0})                     // float32, as lists of numbers are in Python
//   numpy::array({{1, 2}, {3, 4}}, DType::float64)
//   numpy::asarray(std::vector<double>{1, 2})    // float64: memory keeps its type
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>

#include <iterator>

namespace plait {
namespace detail {

// The element type for a C++ number: std::int64_t for every 64-bit integer.
template <class Number>
constexpr auto element() {
  if constexpr (std::is_integral_v<Number> && !std::is_same_v<Number, bool> &&
                !std::is_same_v<Number, char>) {
    if constexpr (std::is_unsigned_v<Number>)
      return std::conditional_t<
          sizeof(Number) == 8, std::uint64_t,
          std::conditional_t<
              sizeof(Number) == 4, std::uint32_t,
              std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>>>();
    else
      return std::conditional_t<
          sizeof(Number) == 8, std::int64_t,
          std::conditional_t<sizeof(Number) == 4, std::int32_t,
                             std::conditional_t<sizeof(Number) == 2, std::int16_t, std::int8_t>>>();
  } else if constexpr (std::is_same_v<Number, bool> || std::is_same_v<Number, float> ||
                       std::is_same_v<Number, double> || std::is_same_v<Number, complex64> ||
                       std::is_same_v<Number, complex128> || std::is_same_v<Number, float16> ||
                       std::is_same_v<Number, bfloat16>) {
    return Number();
  }
}
template <class Number>
concept Element = !std::is_void_v<decltype(element<Number>())>;
template <Element Number>
constexpr DType element_dtype = dtype_of<decltype(element<Number>())>();

template <class List>
using ElementOfList = std::remove_cvref_t<decltype(*std::data(std::declval<const List&>()))>;
template <class List>
concept Elements = requires(const List& list) {
  std::data(list);
  std::size(list);
} && Element<ElementOfList<List>>;

// A row-major copy of elements, converted if another dtype is given.
Array array_of(const void* data, DType from, const Shape& shape, std::optional<DType> dtype,
               Here here);
// The default dtype for numbers of this dtype: float32 for float64.
DType list_dtype(DType dtype);
Array array_over(const void* data, DType dtype, std::size_t count,
                 std::shared_ptr<const void> owner, const std::optional<Shape>& shape, Here here);
[[noreturn]] void throw_ragged(std::size_t row, std::size_t size, std::size_t first);

}  // namespace detail

namespace numpy {

// Numbers in braces, of the default dtype of their kind unless one is given: float32, int32,
// complex64, bool. Arrays in braces are stacked. ShapeError for rows of different lengths.
template <detail::Element Number>
Array array(std::initializer_list<Number> values, std::optional<DType> dtype = {},
            Here here = PLAIT_HERE) {
  constexpr DType from = detail::element_dtype<Number>;
  return detail::array_of(std::data(values), from, {Dim(std::int64_t(values.size()))},
                          dtype.value_or(detail::list_dtype(from)), here);
}
template <detail::Element Number>
Array array(std::initializer_list<std::initializer_list<Number>> rows,
            std::optional<DType> dtype = {}, Here here = PLAIT_HERE) {
  constexpr DType from = detail::element_dtype<Number>;
  const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  const auto values = std::make_unique<Number[]>(rows.size() * columns + 1);
  std::size_t row = 0;
  for (const auto& list : rows) {
    if (list.size() != columns) detail::throw_ragged(row, list.size(), columns);
    std::copy(list.begin(), list.end(), values.get() + row++ * columns);
  }
  return detail::array_of(values.get(), from,
                          {Dim(std::int64_t(rows.size())), Dim(std::int64_t(columns))},
                          dtype.value_or(detail::list_dtype(from)), here);
}
// Arrays, and numbers of mixed kinds.
Array array(std::initializer_list<Array> arrays, std::optional<DType> dtype = {},
            Here here = PLAIT_HERE);

// A copy of a vector, a span or a std::array, of the dtype of its elements unless one is given.
template <detail::Elements List>
Array asarray(const List& values, std::optional<DType> dtype = {}, Here here = PLAIT_HERE) {
  return detail::array_of(std::data(values), detail::element_dtype<detail::ElementOfList<List>>,
                          {Dim(std::int64_t(std::size(values)))}, dtype, here);
}
Array asarray(const std::vector<bool>& values, std::optional<DType> dtype = {},
              Here here = PLAIT_HERE);
Array asarray(const Array& a, std::optional<DType> dtype = {}, Here here = PLAIT_HERE);
template <class Values>
  requires(detail::Elements<Values> || std::is_same_v<Values, std::vector<bool>> ||
           std::is_same_v<Values, Array>)
Array array(const Values& values, std::optional<DType> dtype = {}, Here here = PLAIT_HERE) {
  return asarray(values, dtype, here);
}

// Memory that somebody else owns, without a copy, as an array of this shape (by default, one axis).
// owner is held for as long as anything reads the memory, which must not change until then.
// ShapeError for a shape of another size, ValueError for misaligned memory.
template <detail::Element Number>
Array frombuffer(std::span<const Number> buffer, std::shared_ptr<const void> owner,
                 const std::optional<Shape>& shape = {}, Here here = PLAIT_HERE) {
  return detail::array_over(buffer.data(), detail::element_dtype<Number>, buffer.size(),
                            std::move(owner), shape, here);
}
// A shared vector is its own owner.
template <detail::Element Number>
Array frombuffer(const std::shared_ptr<const std::vector<Number>>& buffer,
                 const std::optional<Shape>& shape = {}, Here here = PLAIT_HERE) {
  return frombuffer(std::span<const Number>(*buffer), buffer, shape, here);
}

}  // namespace numpy
}  // namespace plait
