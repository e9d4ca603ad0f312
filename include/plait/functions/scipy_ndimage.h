// plait::scipy: ndimage, integrate and cluster::vq under SciPy's names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::scipy {

namespace ndimage {

// input at places between its elements: coordinates has an array of places for each axis, and their
// shapes broadcast. order 0 takes the nearest element, 1 interpolates linearly. Outside lies, by
// mode: "constant", cval (as SciPy's "grid-constant"); "nearest", the edge; "wrap", input again (as
// "grid-wrap"); "mirror" and "reflect", its mirror image, without and with the edge. The result has
// input's dtype; integers are rounded. ValueError for another order or mode.
Array map_coordinates(Operand input, Operands coordinates, int order,
                      const std::string& mode = "constant", Operand cval = 0.0);

}  // namespace ndimage

namespace integrate {

using numpy::trapezoid;

}  // namespace integrate

namespace cluster::vq {

// For each row of obs the number of the nearest row of code_book, and its distance. Vectors are
// columns of numbers. check_finite says nothing: values are not known while a program is traced.
std::pair<Array, Array> vq(Operand obs, Operand code_book, bool check_finite = true);

}  // namespace cluster::vq

}  // namespace plait::scipy
