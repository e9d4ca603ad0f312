// plait.scipy.special.sph_harm_y: spherical harmonics, by a recurrence in the degree.
// SPDX-License-Identifier: Apache-2.0
#include "functions/scipy/special.h"

#include <plait/functions/lax.h>
#include <plait/functions/scipy.h>
#include <plait/transforms/transforms.h>

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {

// Y_n^m = P_n^m(cos theta) exp(i m phi), normalised. With x = cos theta and m >= 0, P_m^m is (-sin
// theta)^m sqrt((2 m + 1) Gamma(m + 1/2) / (4 pi^(3/2) m!)), and P_(l+1)^m = a (x P_l^m - b
// P_(l-1)^m) with a^2 = (4 (l + 1)^2 - 1) / ((l + 1)^2 - m^2) and b^2 = (l^2 - m^2) / (4 l^2 - 1);
// P_n^-m is
// (-1)^m P_n^m.
Array special::sph_harm_y(Operand n, Operand m, Operand theta, Operand phi,
                          const std::optional<int>& n_max) {
  const int steps = n_max ? *n_max : int(numpy::max(n).item<std::int64_t>());
  if (steps < 0)
    throw ValueError("sph_harm_y: the largest degree is " + std::to_string(steps),
                     "give at least 0");
  Arrays angles{theta, phi};
  promote_dtypes(angles, "sph_harm_y");
  for (Array& angle : angles) angle = floating_only("sph_harm_y", to_inexact(angle));
  const DType to = angles[0].aval().weak ? default_float() : angles[0].dtype();
  Arrays all{astype(n, to), astype(m, to), astype(angles[0], to), astype(angles[1], to)};
  const Shape shapes[] = {all[0].shape(), all[1].shape(), all[2].shape(), all[3].shape()};
  const Shape shape = plait::broadcast_shapes(shapes, "sph_harm_y");
  for (Array& array : all) array = plait::broadcast_to(array, shape);
  const Array &degree = all[0], order = lax::abs(all[1]);
  const Array x = lax::cos(all[2]), square = order * order, zero = filled(0, x);
  const Array half = order * 0.5, is_odd = numpy::not_equal(half, lax::floor(half));
  const Array logarithm = lax::lgamma(order + 0.5) - lax::lgamma(order + 1);
  const Array size =
      lax::sqrt((order * 2 + 1) * lax::exp(logarithm) * (0.25 / (M_PI * std::sqrt(M_PI))));
  const Array sine = lax::abs(lax::sin(all[2]));  // sqrt(1 - cos^2), as in SciPy for any angle
  const Array power = numpy::where(numpy::equal(order, 0), 1, lax::pow(sine, order));
  const Array sign = numpy::where(is_odd, -1, 1);
  const Array first = size * power * sign;
  // Carries: P_l, P_(l-1), and P_n where l has reached n.
  const flat::Scanned scanned = flat::scan(
      [&](std::span<const Array> now) -> Arrays {
        const Array l = order + astype(now[3], to), next = l + 1;
        const Array a = lax::sqrt((next * next * 4 - 1) / (next * next - square));
        const Array below = numpy::where(l > 0, l * l * 4 - 1, 1);
        const Array b = lax::sqrt((l * l - square) / below);
        const Array above = a * (x * now[0] - b * now[1]);
        return {above, now[0], numpy::where(numpy::equal(next, degree), above, now[2])};
      },
      Arrays{first, zero, numpy::where(numpy::equal(order, degree), first, zero)},
      Arrays{counting(steps)});
  const Array legendre = scanned.carry[2] * numpy::where(is_odd & (all[1] < 0), -1, 1);
  const Array turn = all[1] * all[3];
  return lax::complex(legendre * lax::cos(turn), legendre * lax::sin(turn));
}

}  // namespace scipy
}  // namespace plait
