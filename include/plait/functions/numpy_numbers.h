// NumPy's functions of whole numbers, of the parts and bits of numbers, and of Bessel's I0. Part of
// numpy.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::numpy {

// --- Integers ------------------------------------------------------------------------------------

Array gcd(Operand x1, Operand x2);
Array lcm(Operand x1, Operand x2);
Array bitwise_count(Operand x);  // of the magnitude: uint8
// Eight elements as the bits of one uint8, and back; bitorder: big or little.
Array packbits(Operand a, std::optional<int> axis = {}, const std::string& bitorder = "big");
// count: so many bits of each row; a negative one leaves so many out.
Array unpackbits(Operand a, std::optional<int> axis = {}, std::optional<int> count = {},
                 const std::string& bitorder = "big");

// --- Parts of floats -----------------------------------------------------------------------------

std::pair<Array, Array> modf(Operand x);   // fraction and whole number, both of x's sign
std::pair<Array, Array> frexp(Operand x);  // x = mantissa * 2^exponent, 0.5 <= |mantissa| < 1
Array ldexp(Operand x1, Operand x2);       // x1 * 2^x2
Array spacing(Operand x);

// --- Others --------------------------------------------------------------------------------------

Array i0(Operand x);
Array kaiser(Dim M, Operand beta);
Array sort_complex(Operand a);
Array array_equiv(Operand a1, Operand a2);

}  // namespace plait::numpy
