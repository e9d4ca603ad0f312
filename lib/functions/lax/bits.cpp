// plait.lax: the bits of numbers. See lax_numbers.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax_numbers.h>

#include <cmath>

#include "functions/float_layout.h"
#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

void require_bits(std::string_view function, const Array& x) {
  if (!is_integer(x.dtype()))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(x.dtype())) + " is no integer",
        "convert it with astype");
}
DType unsigned_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::uint8;
    case 2:
      return DType::uint16;
    case 4:
      return DType::uint32;
    default:
      return DType::uint64;
  }
}
Array word(std::uint32_t value) { return Array::literal(double(value), DType::uint32); }
// The bits of integers as one or two uint32, the lower one first.
Arrays words_of(const Array& x) {
  const Array bits = lax::bitcast_convert_type(x, unsigned_of(x.dtype()));
  if (size_of(x.dtype()) < 8) return {astype(bits, DType::uint32)};
  const Array half = Array::literal(32, DType::uint64);
  const Array low = lax::shift_right_logical(lax::shift_left(bits, half), half);
  return {astype(low, DType::uint32), astype(lax::shift_right_logical(bits, half), DType::uint32)};
}

// Sums of neighbouring bits, of pairs, of fours, and then of bytes by a product.
Array count_bits(const Array& v) {
  auto shifted = [](const Array& x, int by) { return lax::shift_right_logical(x, word(by)); };
  const Array pairs = lax::sub(v, lax::bitwise_and(shifted(v, 1), word(0x55555555u)));
  const Array fours = lax::add(lax::bitwise_and(pairs, word(0x33333333u)),
                               lax::bitwise_and(shifted(pairs, 2), word(0x33333333u)));
  const Array bytes = lax::bitwise_and(lax::add(fours, shifted(fours, 4)), word(0x0f0f0f0fu));
  return shifted(lax::mul(bytes, word(0x01010101u)), 24);
}

// The bits at and below the highest one of each word that is set.
Array smeared(Array v) {
  for (int by : {1, 2, 4, 8, 16}) v = lax::bitwise_or(v, lax::shift_right_logical(v, word(by)));
  return v;
}

}  // namespace

Array lax::population_count(Operand x) {
  require_bits("population_count", x);
  Array count;
  for (const Array& part : words_of(x))
    count = count.is_valid() ? add(count, count_bits(part)) : count_bits(part);
  return astype(count, x.dtype());
}

Array lax::clz(Operand x) {
  require_bits("clz", x);
  const Arrays words = words_of(x);
  const int width = int(size_of(x.dtype())) * 8;
  Array length = count_bits(smeared(words[0]));  // of the number without leading zeros
  if (words.size() == 2) {
    const Array high = count_bits(smeared(words[1]));
    length = select(eq(high, constant(0, high)), length, add(high, constant(32, high)));
  }
  return astype(sub(word(width), length), x.dtype());
}

// The product of two words by four products of their halves.
Array lax::mulhi(Operand x, Operand y) {
  require_bits("mulhi", x);
  if (x.dtype() != y.dtype() || !(x.shape() == y.shape()))
    throw DtypeError("mulhi: operands of different dtypes or shapes",
                     "convert and broadcast them to one");
  const int width = int(size_of(x.dtype())) * 8;
  const bool is_signed = is_signed_integer(x.dtype());
  if (width < 64) {
    const DType wide = is_signed ? DType::int64 : DType::uint64;
    const Array product = mul(astype(x, wide), astype(y, wide));
    return astype(shift_right_arithmetic(product, Array::literal(width, wide)), x.dtype());
  }
  const Arrays a = words_of(x), b = words_of(y);
  auto product = [](const Array& p, const Array& q) {
    return mul(astype(p, DType::uint64), astype(q, DType::uint64));
  };
  const Array half = Array::literal(32, DType::uint64);
  auto upper = [&](const Array& p) { return shift_right_logical(p, half); };
  auto lower = [&](const Array& p) { return upper(shift_left(p, half)); };
  const Array cross = product(a[1], b[0]), other = product(a[0], b[1]);
  const Array carry = add(add(upper(product(a[0], b[0])), lower(cross)), lower(other));
  Array high = add(add(product(a[1], b[1]), upper(cross)), add(upper(other), upper(carry)));
  if (!is_signed) return high;
  // A negative number is its bits less 2^64.
  const Array zero = constant(0, x), none = zeros_like(x.aval());
  high = bitcast_convert_type(high, DType::int64);
  high = sub(high, select(lt(x, zero), y, none));
  return sub(high, select(lt(y, zero), x, none));
}

Array lax::nextafter(Operand x1, Operand x2) { return numpy::nextafter(x1, x2); }

Array lax::reduce_precision(Operand operand, int exponent_bits, int mantissa_bits) {
  if (!is_floating(operand.dtype()))
    throw DtypeError("reduce_precision: dtype " + std::string(name_of(operand.dtype())),
                     "give floats");
  if (exponent_bits < 1 || mantissa_bits < 0)
    throw ValueError("reduce_precision: " + std::to_string(exponent_bits) + " and " +
                         std::to_string(mantissa_bits) + " bits",
                     "give at least one bit of exponent, and none or more of mantissa");
  const FloatLayout layout = layout_of(operand.dtype());
  auto number = [&](double value) { return Array::literal(value, layout.word); };
  const Array x = stop_gradient(operand);
  const Array bits = bitcast_convert_type(abs(x), layout.word);
  Array rounded = bits;
  if (mantissa_bits < layout.fraction) {
    const int cut = layout.fraction - mantissa_bits;
    const Array odd =
        bitwise_and(shift_right_logical(bits, number(cut)), number(1));  // half to even
    rounded = add(bits, add(odd, number(std::ldexp(1.0, cut - 1) - 1)));
    rounded = shift_left(shift_right_logical(rounded, number(cut)), number(cut));
  }
  Array size = bitcast_convert_type(rounded, operand.dtype());
  const int bias = exponent_bits < 12 ? (1 << (exponent_bits - 1)) - 1 : layout.bias;
  if (bias < layout.bias) {
    const Array exponent = shift_right_logical(rounded, number(layout.fraction));
    size = select(gt(exponent, number(layout.bias + bias)), filled(INFINITY, size), size);
    size = select(le(exponent, number(layout.bias - bias)), filled(0, size), size);
  }
  const Array result = select(ne(x, x), x, numpy::copysign(size, x));
  // operand + (result - operand) is exact, and has the derivative of operand.
  const Array keeps = bitwise_and(bitwise_and(numpy::isfinite(x), numpy::isfinite(result)),
                                  eq(eq(result, constant(0, x)), eq(x, constant(0, x))));
  const Array error = select(keeps, sub(result, x), zeros_like(x.aval()));
  return select(keeps, add(operand, error), result);
}

Array lax::reduce_xor(Operand operand, const std::vector<int>& axes) {
  if (!is_integer(operand.dtype()) && !is_bool(operand.dtype()))
    throw DtypeError("reduce_xor: dtype " + std::string(name_of(operand.dtype())),
                     "give integers or bools");
  Array x = operand;
  for (int axis : Axes(axes).of(operand.ndim(), "reduce_xor")) {
    // Halves are folded onto each other until one row is left.
    while (less_equal(x.shape(axis), 1) == false) {
      const Dim n = x.shape(axis), half = floor_divide(n + 1, 2);
      std::vector<Padding> padding(x.ndim());
      padding[axis].high = 2 * half - n;
      const Array even = pad(x, constant(0, x), padding);
      x = bitwise_xor(part(even, axis, 0, half), part(even, axis, half, 2 * half));
    }
  }
  const std::vector<int> dims = Axes(axes).of(operand.ndim(), "reduce_xor");
  return is_bool(x.dtype()) ? reduce_or(x, dims) : reduce_sum(x, dims);
}

Array lax::round(Operand x, RoundingMethod rounding_method) {
  const Array even = round(x);
  if (rounding_method == RoundingMethod::to_nearest_even) return even;
  // Where x lies between the even one and the other, the other is farther from 0 if it is not.
  const Array size = abs(x), below = floor(size), one = filled(1, size);
  const Array is_half = ge(sub(size, below), filled(0.5, size));
  return numpy::copysign(select(is_half, add(below, one), below), x);
}

std::pair<Array, Array> lax::rng_bit_generator(Operand key, const Shape& shape, DType dtype) {
  const bool is_wide = key.dtype() == DType::uint64;
  if (!(is_wide || key.dtype() == DType::uint32) || key.ndim() != 1 ||
      key.shape(0) != Dim(is_wide ? 2 : 4))
    throw DtypeError("rng_bit_generator: a key " + key.aval().to_string(),
                     "give uint32[4] or uint64[2]");
  if (!is_unsigned_integer(dtype))
    throw DtypeError("rng_bit_generator: bits of dtype " + std::string(name_of(dtype)),
                     "ask for uint8, uint16, uint32 or uint64");
  Arrays words;
  for (const Array& word : numpy::unstack(key, 0)) {
    words.push_back(astype(word, DType::uint32));
    if (is_wide)
      words.push_back(
          astype(shift_right_logical(word, Array::literal(32, DType::uint64)), DType::uint32));
  }
  Array stream = numpy::stack({words[0], words[1]}, 0);
  for (int i : {2, 3}) stream = random_fold(stream, words[i]);
  const Array bits = random_bits(stream, shape, int(size_of(dtype)) * 8);
  const Array drawn = number_of(shape.num_elements(), DType::uint64);
  const Array low = astype(drawn, DType::uint32);
  const Array high =
      astype(shift_right_logical(drawn, Array::literal(32, DType::uint64)), DType::uint32);
  const Array next = add(words[2], low);
  const Array last = add(add(words[3], high), astype(lt(next, low), DType::uint32));
  auto wide = [](const Array& lower, const Array& upper) {
    const Array shifted =
        shift_left(astype(upper, DType::uint64), Array::literal(32, DType::uint64));
    return bitwise_or(astype(lower, DType::uint64), shifted);
  };
  const Arrays parts = is_wide ? Arrays{wide(words[0], words[1]), wide(next, last)}
                               : Arrays{words[0], words[1], next, last};
  return {numpy::stack(parts, 0), bits};
}

namespace {

// Parts of elements are a last axis. They are taken out, and put together, by shifts.
Array bits_as(Operand operand, DType new_dtype) {
  const int from = int(size_of(operand.dtype())), to = int(size_of(new_dtype));
  if (from == to) return lax::bitcast_convert_type(operand, new_dtype);
  if (is_complex(operand.dtype()) || is_complex(new_dtype) || is_bool(operand.dtype()) ||
      is_bool(new_dtype))
    throw DtypeError("bitcast_convert_type: " + std::string(name_of(operand.dtype())) + " as " +
                         std::string(name_of(new_dtype)) + ", of another width",
                     "convert integers and floats");
  const int count = std::max(from, to) / std::min(from, to), width = 8 * std::min(from, to);
  auto unsigned_of_size = [](int bytes) {
    return bytes == 1   ? DType::uint8
           : bytes == 2 ? DType::uint16
           : bytes == 4 ? DType::uint32
                        : DType::uint64;
  };
  const DType narrow = unsigned_of_size(std::min(from, to));
  const DType wide = unsigned_of_size(std::max(from, to));
  auto by = [&](int part) { return Array::literal(double(part * width), wide); };
  const Array bits = lax::bitcast_convert_type(operand, from < to ? narrow : wide);
  if (from > to) {
    Arrays parts;
    for (int i = 0; i < count; ++i)
      parts.push_back(astype(lax::shift_right_logical(bits, by(i)), narrow));
    return lax::bitcast_convert_type(numpy::stack(parts, -1), new_dtype);
  }
  const int last = operand.ndim() - 1;
  if (last < 0 || operand.shape(last) != Dim(count))
    throw ShapeError(
        "bitcast_convert_type: an array of shape (" + operand.shape().to_string() + ") as " +
            std::string(name_of(new_dtype)),
        "give a last axis of " + std::to_string(count) + ", for the parts of an element");
  Array whole;
  for (int i = 0; i < count; ++i) {
    const Array part =
        lax::shift_left(astype(lax::index_in_dim(bits, i, last, false), wide), by(i));
    whole = i == 0 ? part : lax::bitwise_or(whole, part);
  }
  return lax::bitcast_convert_type(whole, new_dtype);
}

std::pair<Array, Array> rng_bit_generator_of(Operand key, const Shape& shape,
                                             std::optional<DType> dtype, int algorithm) {
  if (algorithm < 0 || algorithm > 2)
    throw ValueError("rng_bit_generator: algorithm is " + std::to_string(algorithm),
                     "give one of lax.RandomAlgorithm");
  return lax::rng_bit_generator(key, shape, dtype.value_or(DType::uint32));
}
Array round_of(Operand x, int rounding_method) {
  if (rounding_method != 0 && rounding_method != 1)
    throw ValueError("round: rounding_method is " + std::to_string(rounding_method),
                     "give one of lax.RoundingMethod");
  return lax::round(x, lax::RoundingMethod(rounding_method));
}
Array reduce_xor_of(Operand operand, const std::vector<int>& axes) {
  return lax::reduce_xor(operand, axes);
}

[[maybe_unused]] const FunctionInfo* const bit_catalogue[] = {
    function("lax", "population_count(x)", "How many bits of each integer are set, in its dtype.",
             &lax::population_count),
    function("lax", "clz(x)",
             "How many bits of each integer lie above the highest one that is "
             "set, in its dtype; all of them for 0.",
             &lax::clz),
    function(
        "lax", "bitcast_convert_type(operand, new_dtype)",
        "The same bits as another dtype. A narrower one has a further axis for the parts of an "
        "element, the lowest bits first; for a wider one this is the last axis of operand.",
        &bits_as),
    function("lax", "nextafter(x1, x2)", "The float next to x1 towards x2. Its derivative is 0.",
             &lax::nextafter),
    function("lax", "reduce_precision(operand, exponent_bits, mantissa_bits)",
             "Floats rounded, half to even, to so many bits of exponent and mantissa: what is too "
             "large becomes infinite, what is too small 0. The dtype stays.",
             &lax::reduce_precision),
    function("lax", "round(x, rounding_method=1)",
             "The nearest integer, of floats; of halves the even one, or with "
             "lax.RoundingMethod.AWAY_FROM_ZERO (0), which is JAX's default, the larger one in "
             "size.",
             &round_of),
    function("lax", "rng_bit_generator(key, shape, dtype=None, algorithm=0, *, out_sharding=None!)",
             "(new key, bits) for the words of a key that is not typed, uint32[4] or uint64[2]: "
             "bits of shape and of an unsigned dtype, uint32 by default. The generator is that of "
             "random, for every algorithm of lax.RandomAlgorithm; the last half of the key counts "
             "elements.",
             &rng_bit_generator_of),
    function("lax", "reduce_xor(operand, axes)", "Exclusive or over axes, of integers or bools.",
             &reduce_xor_of),
};

}  // namespace
}  // namespace plait
