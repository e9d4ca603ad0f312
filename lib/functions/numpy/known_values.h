// Places in arrays whose values are known here and now, counted and written down without a program:
// where elements are true, and where equal ones begin in an order. Integers from bools and from
// order, so that nothing is differentiated through them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

#include <vector>

namespace plait::functions {

// Whether an eager call may read the values: nothing is traced, and they lie in the host's memory.
bool is_known(const Array& x);

// Of known bools: how many are true, and of a row of them the places, as the default integer.
Array number_of_true(const Array& mask);
Array places_of_true(const Array& mask);
// Of known places in a row, the default integer and none negative: the index along each axis of a
// shape. The quickest for places that rise.
std::vector<Array> indices_along_axes(const Array& places, const Sizes64& shape);
// Of a known row in order: where each run of equal elements begins, as the default integer. NaN
// equals NaN if they are to be equal.
Array places_of_runs(const Array& sorted, bool equal_nan);
// Of known places of a row of n elements, which rise: how far each is from the next one, or the
// end.
Array distances(const Array& places, std::int64_t n);
// Of such runs of a row, whose elements came from the places of `order`: the number of the run of
// each of these.
Array runs_by_place(const Array& places, const Array& order);
// Of a known array whose last axis holds eight bools for each result: bytes whose bits they are,
// the first the highest or the lowest. And the bits of known bytes along a last axis.
enum class FirstBit { highest, lowest };
Array packed_bits(const Array& flags, FirstBit first);
Array unpacked_bits(const Array& bytes, FirstBit first);
// Whether some of a row of known integers is negative.
bool has_negative(const Array& integers);

}  // namespace plait::functions
