// NumPy's rules for operands of unequal dtype and shape, and the arithmetic operators of Array.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/narrow.h>

#include "trace/usable.h"

namespace plait {

bool is_representable(const Array& number, DType dtype) {
  if (!is_integer(dtype) || !number.aval().weak || !is_integer(number.dtype())) return true;
  const std::optional<Literal> literal = number.as_literal();
  if (!literal) return true;
  const Literal there = cast(*literal, dtype, false);
  // Both wrap to the same 64 bits, which mean the same number unless the top bit is set and only
  // one dtype is signed.
  const bool same_sign =
      is_unsigned_integer(dtype) == is_unsigned_integer(number.dtype()) || literal->integer >= 0;
  return there.integer == literal->integer && same_sign;
}

void require_fits(const Array& number, DType dtype, std::string_view function) {
  if (plait::is_representable(number, dtype)) return;
  const std::string text = number.as_literal()->to_string();
  throw_unfit(function, text.substr(0, text.find(':')), dtype);
}

void promote_dtypes(std::span<Array> operands, std::string_view function) {
  for (const Array& operand : operands)
    if (!operand.is_valid()) check_usable(operand);
  WeakDType type = operands[0].aval().type();
  bool same = true;
  for (const Array& operand : operands) same &= operand.dtype() == type.dtype;
  if (same) return;
  for (const Array& operand : operands.subspan(1)) type = promote_weak(type, operand.aval().type());
  for (Array& operand : operands) {
    if (operand.dtype() == type.dtype) continue;
    operand = yielded(operand, type.dtype, operand.aval().weak && type.weak, function);
  }
}

Shape broadcast_shapes(std::span<const Shape> shapes, std::string_view function) {
  Shape result;
  for (const Shape& shape : shapes)
    if (shape.rank() > result.rank()) result.resize(shape.size(), 1);
  for (Dim& dim : result) dim = 1;
  for (const Shape& shape : shapes)
    for (int i = 0; i < shape.rank(); ++i) {
      Dim& dim = result[result.rank() - shape.rank() + i];
      if (dim == Dim(1))
        dim = shape[i];
      else if (!(shape[i] == dim) && !(shape[i] == Dim(1))) {
        std::string all;
        for (std::size_t s = 0; s < shapes.size(); ++s)
          all += (s == 0                   ? ""
                  : s + 1 == shapes.size() ? " and "
                                           : ", ") +
                 ("(" + shapes[s].to_string() + ")");
        throw ShapeError(std::string(function) + ": shapes " + all + " do not broadcast: sizes " +
                             dim.to_string() + " and " + shape[i].to_string() + " meet",
                         "make the sizes equal or 1; a named size broadcasts only with itself");
      }
    }
  return result;
}

void broadcast_shapes(std::span<Array> operands, std::string_view function) {
  const Shape* first = nullptr;
  bool same = true;
  for (const Array& operand : operands) {
    if (operand.ndim() == 0) continue;
    if (!first)
      first = &operand.shape();
    else
      same &= operand.shape() == *first;
  }
  if (same) return;
  std::vector<Shape> shapes;
  for (const Array& operand : operands) shapes.push_back(operand.shape());
  const Shape shape = broadcast_shapes(shapes, function);
  for (Array& operand : operands)
    if (operand.ndim() > 0) operand = broadcast_to(operand, shape);
}

namespace {

// Of bools, a sum is `or` and a product is `and`.
Array arithmetic(const Primitive& primitive, const Primitive* of_bools, std::string_view name,
                 Operand x, Operand y) {
  Array operands[] = {std::move(x), std::move(y)};
  promote_dtypes(operands, name);
  broadcast_shapes(operands, name);
  if (!is_bool(operands[0].dtype())) return bind(primitive, {operands[0], operands[1]});
  if (!of_bools)
    throw DtypeError(std::string(name) + ": bools do not " + std::string(name),
                     "use bitwise_xor, or convert one with astype");
  return bind(*of_bools, {operands[0], operands[1]});
}

}  // namespace

Array operator+(Operand x, Operand y) {
  return arithmetic(add_p, &or_p, "add", std::move(x), std::move(y));
}
Array operator-(Operand x, Operand y) {
  return arithmetic(sub_p, nullptr, "subtract", std::move(x), std::move(y));
}
Array operator*(Operand x, Operand y) {
  return arithmetic(mul_p, &and_p, "multiply", std::move(x), std::move(y));
}
Array operator-(Operand x) { return bind(neg_p, {x}); }
Array operator/(Operand x, Operand y) {
  Array operands[] = {std::move(x), std::move(y)};
  promote_dtypes(operands, "divide");
  if (!is_inexact(operands[0].dtype()))  // true division
    for (Array& operand : operands) {
      const bool weak = operand.aval().weak;
      operand = lax::convert_element_type(operand, weak ? DType::float64 : default_float(), weak);
    }
  promote_dtypes(operands, "divide");
  broadcast_shapes(operands, "divide");
  return bind(div_p, {operands[0], operands[1]});
}

}  // namespace plait
