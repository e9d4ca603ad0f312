// Shared by the distributions of plait::scipy::stats: standardised arguments, and logarithms of
// probabilities.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/lax.h>
#include <plait/functions/scipy.h>
#include <plait/functions/scipy_stats.h>
#include <plait/primitives/special.h>

#include "functions/scipy/special.h"

namespace plait::functions {

// z = (x - loc) / scale, and the other parameters, in one dtype and shape.
struct Standardised {
  Array z, scale;
  Arrays parameters;
};
inline Standardised standardised(std::string_view function, Operand x, Operand loc, Operand scale,
                                 std::initializer_list<Operand> parameters = {}) {
  Arrays all{x, loc, scale};
  all.insert(all.end(), parameters.begin(), parameters.end());
  promote_dtypes(all, function);
  if (!is_inexact(all[0].dtype()))
    for (Array& array : all) array = to_inexact(array);
  promote_dtypes(all, function);
  for (const Array& array : all) floating_only(function, array);
  broadcast_shapes(std::span<Array>(all), function);
  return {(all[0] - all[1]) / all[2], all[2], Arrays(all.begin() + 3, all.end())};
}

// log(1 - exp(-x)) for x >= 0, each half by the function that is exact there.
inline Array log_one_minus_exp(const Array& x) {
  const Array is_small = x < M_LN2;
  const Array small = numpy::where(is_small, x, 1), large = numpy::where(is_small, 1, x);
  return numpy::where(is_small, lax::log(-lax::expm1(-small)), lax::log1p(-lax::exp(-large)));
}
// value where inside holds, else outside; value must be computed from x made safe by safely().
inline Array within(const Array& inside, const Array& value, double outside) {
  return numpy::where(inside, value, numpy::where(numpy::isnan(value), value, outside));
}

}  // namespace plait::functions
