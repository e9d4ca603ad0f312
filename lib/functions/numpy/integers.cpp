// plait.numpy: whole numbers and bits.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax_numbers.h>
#include <plait/functions/numpy_numbers.h>
#include <plait/transforms/transforms.h>

#include "functions/functions.h"
#include "functions/numpy/known_values.h"
#include "functions/one_program.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

Arrays positive_integers(std::string_view function, const Operand& x1, const Operand& x2) {
  Arrays x = promoted(function, {x1, x2});
  if (!is_integer(x[0].dtype()))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(x[0].dtype())) + " is no integer",
        "convert it with astype");
  const Shape shape = x[0].ndim() == 0 ? x[1].shape() : x[0].shape();
  for (Array& array : x) array = numpy::abs(plait::broadcast_to(array, shape));
  return x;
}

// Euclid's algorithm, element by element: gcd(x, y) = gcd(y, x mod y).
Array divisor_of(const Arrays& x) {
  const Array zero = constant(0, x[0]);
  const Function goes_on = [&](std::span<const Array> pair) {
    return Arrays{numpy::any(lax::ne(pair[1], zero))};
  };
  const Function step = [&](std::span<const Array> pair) {
    const Array ended = lax::eq(pair[1], zero);
    const Array rest = lax::rem(pair[0], lax::select(ended, lax::full_like(pair[1], 1), pair[1]));
    return Arrays{lax::select(ended, pair[0], pair[1]),
                  lax::select(ended, lax::full_like(rest, 0), rest)};
  };
  return flat::while_loop(goes_on, step, x, {}, "gcd")[0];
}

}  // namespace

Array numpy::gcd(Operand x1, Operand x2) {
  return in_one_program("gcd", Arrays{x1, x2}, [](std::span<const Array> x) {
    return Arrays{
        abs(divisor_of(positive_integers("gcd", x[0], x[1])))};  // of -128 as int8 as well
  });
}

Array numpy::lcm(Operand x1, Operand x2) {
  return in_one_program("lcm", Arrays{x1, x2}, [](std::span<const Array> inputs) {
    const Arrays x = positive_integers("lcm", inputs[0], inputs[1]);
    const Array divisor = divisor_of(x), zero = lax::eq(divisor, constant(0, divisor));
    return Arrays{abs(
        lax::mul(lax::div(x[0], lax::select(zero, lax::full_like(divisor, 1), divisor)), x[1]))};
  });
}

Array numpy::bitwise_count(Operand x) {
  if (is_bool(x.dtype())) return astype(x, DType::uint8);
  return in_one_program("bitwise_count", Arrays{x}, [](std::span<const Array> x) {
    return Arrays{astype(lax::population_count(numpy::abs(x[0])), DType::uint8)};
  });
}

// --- Bits as bytes -------------------------------------------------------------------------------

namespace {

FirstBit first_bit(std::string_view function, const std::string& bitorder) {
  if (bitorder != "big" && bitorder != "little")
    throw ValueError(std::string(function) + ": bitorder is '" + bitorder + "'",
                     "choose 'big' or 'little'");
  return bitorder == "big" ? FirstBit::highest : FirstBit::lowest;
}
// How far the bit of each place of a byte is from the lowest one.
Array bit_shifts(FirstBit first) {
  const Array places = counting(8, DType::uint8);
  return first == FirstBit::lowest ? places : lax::sub(Array::literal(7, DType::uint8), places);
}

}  // namespace

Array numpy::packbits(Operand a, std::optional<int> axis, const std::string& bitorder) {
  if (!is_integer(a.dtype()) && !is_bool(a.dtype()))
    throw DtypeError("packbits: dtype " + std::string(name_of(a.dtype())) + " has no bits",
                     "give bools or integers");
  const FirstBit first = first_bit("packbits", bitorder);
  const Array x = axis ? atleast_1d(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "packbits"), last = x.ndim() - 1;
  Array bits = moved(truth(x), dim, last);
  const Dim bytes = floor_divide(bits.shape(last) + 7, 8);
  std::vector<lax::Padding> padding(bits.ndim());
  padding[last].high = 8 * bytes - bits.shape(last);
  bits = lax::pad(bits, constant(0, bits), padding);
  Shape shape = bits.shape();
  shape[last] = bytes;
  shape.push_back(8);
  const Array flags = lax::reshape(bits, shape);
  if (is_known(flags)) return moved(packed_bits(flags, first), last, dim);
  const Array set = left_shift(plait::functions::astype(flags, DType::uint8), bit_shifts(first));
  return moved(lax::reduce_sum(set, std::vector<int>{last + 1}), last, dim);
}

Array numpy::unpackbits(Operand a, std::optional<int> axis, std::optional<int> count,
                        const std::string& bitorder) {
  if (a.dtype() != DType::uint8)
    throw DtypeError("unpackbits: dtype " + std::string(name_of(a.dtype())) + " is not uint8",
                     "convert it with astype");
  const FirstBit first = first_bit("unpackbits", bitorder);
  const Array x = axis ? atleast_1d(a) : raveled(a);
  const int dim = normalize_axis(axis.value_or(0), x.ndim(), "unpackbits"), last = x.ndim() - 1;
  const Array bytes = moved(x, dim, last);
  Shape shape = bytes.shape();
  shape[last] = shape[last] * 8;
  const auto bits = [&] {
    const Array moved_down = right_shift(expand_dims(bytes, {-1}), bit_shifts(first));
    return lax::reshape(bitwise_and(moved_down, Array::literal(1, DType::uint8)), shape);
  };
  Array rows = is_known(bytes) ? unpacked_bits(bytes, first) : bits();
  if (count) {
    const Dim size = shape[last], wanted = *count < 0 ? size + *count : Dim(*count);
    if (less_equal(0, wanted) == false)
      throw ValueError("unpackbits: count is " + std::to_string(*count) + ", and there are " +
                           size.to_string() + " bits",
                       "leave out at most as many as there are");
    std::vector<lax::Padding> padding(rows.ndim());
    padding[last].high = wanted - size;
    rows = lax::pad(rows, constant(0, rows), padding);
  }
  return moved(rows, last, dim);
}

namespace {

[[maybe_unused]] const FunctionInfo* const integer_functions[] = {
    function("numpy", "gcd(x1, x2)",
             "The greatest common divisor of integers, of their magnitudes; gcd(0, 0) = 0.",
             &numpy::gcd),
    function("numpy", "lcm(x1, x2)", "The least common multiple of integers' magnitudes.",
             &numpy::lcm),
    function("numpy", "bitwise_count(x)",
             "How many bits of the magnitude of each integer are set, as uint8.",
             &numpy::bitwise_count),
    function("numpy", "packbits(a, axis=None, bitorder='big')",
             "Each eight elements along an axis (None: of all in a row) as the bits of one uint8, "
             "set where they are not 0; the last byte is filled up with zeros. bitorder: whether "
             "the first is the highest bit ('big') or the lowest ('little').",
             &numpy::packbits),
    function("numpy", "unpackbits(a, axis=None, count=None, bitorder='big')",
             "The bits of uint8 along an axis (None: of all in a row), as uint8; count of them, or "
             "all but -count.",
             &numpy::unpackbits),
};

}  // namespace
}  // namespace plait
