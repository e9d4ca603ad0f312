// qr by Householder reflections H = I - tau v v^H, as Eigen makes them. Columns lie side by side,
// so that threads that share one read neighbouring elements.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include <limits>

#include "primitives/linalg/emit_reflections.h"
#include "primitives/linalg/emit_wide.h"
#include "primitives/linalg/qr_scale.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

struct Scale {
  Number by, back;  // a factor and its inverse
};

// See qr_scale.h. max keeps NaN, which is not scaled, nor are infinities.
Scale scale_of(const MatrixIn& x, std::int64_t rows, std::int64_t columns, DType dtype) {
  const DType of_parts = real_dtype_of(dtype);
  const auto constant = [&](double value) { return literal(value, of_parts); };
  const Number largest = combined(max_p, constant(0), rows, [&](const Index& i) {
    return combined(max_p, constant(0), columns, [&](const Index& j) {
      const Number element = x(i, j), size = abs(real(element));
      return is_complex(dtype) ? maximum(size, abs(imag(element))) : size;
    });
  });
  Scale scale{constant(1), constant(1)};
  const auto where = [&](Number truth, double factor) {
    scale = {select(truth, constant(factor), scale.by),
             select(truth, constant(1 / factor), scale.back)};
  };
  const Number is_finite = largest <= constant(std::numeric_limits<double>::max());
  for (const auto [limit, factor] : matrices::scale_down)
    where((largest > constant(limit)) & is_finite, factor);
  for (const auto [limit, factor] : matrices::scale_up)
    where((largest > constant(0)) & (largest < constant(limit)), factor);
  return scale;
}

}  // namespace

loops::Tensors emit_qr(loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const std::int64_t m = num_rows(x.aval), n = num_columns(x.aval), steps = std::min(m, n),
                     k = equation.params.flag("full_matrices") ? m : steps;
  const Shape shape = batch_of(x.aval);
  const DType dtype = x.aval.dtype, wide = wide_dtype_of(dtype);
  const loops::Tensor factors = make_stack(shape, {n, m}, wide),
                      q = make_stack(shape, {k, m}, wide), taus = make_stack(shape, {steps}, wide),
                      of_q = make_stack(shape, {m, k}, dtype),
                      of_r = make_stack(shape, {k, n}, dtype);
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn from{x, batch}, work{factors, batch, true}, columns{q, batch, true};
    const VectorIn tau{taus, batch};
    // Narrower floats need no scale in the wide dtype.
    const std::optional<Scale> scale =
        wide == dtype && m * n > 0 ? std::optional(scale_of(from, m, n, dtype)) : std::nullopt;
    for_elements(n, m, [&](const Index& j, const Index& i) {
      const Number element = cast(from(i, j), wide);
      work.put(i, j, scale ? element * scale->by : element);
    });
    for_steps(steps, [&](const Index& step) {
      make_reflection(work, step, m, tau);
      reflect(work, step, tau(step), work, m, n, number_of(step) + integer(1));
    });
    for_elements(k, m, [&](const Index& j, const Index& i) {
      columns.put(i, j, select(number_of(i) == number_of(j), literal(1, wide), literal(0, wide)));
    });
    for_steps(steps, [&](const Index& step) {  // Q = H_0^H H_1^H ...
      const Index last = sum_of({steps - 1}, times(step, -1));
      reflect(work, last, conj(tau(last)), columns, m, k, integer(0));
    });
    const MatrixIn to_q{of_q, batch}, to_r{of_r, batch};
    for_elements(m, k, [&](const Index& i, const Index& j) { to_q.put(i, j, columns(i, j)); });
    for_elements(k, n, [&](const Index& i, const Index& j) {
      const Number element = scale ? work(i, j) * scale->back : work(i, j);
      to_r.put(i, j, select(number_of(i) <= number_of(j), element, literal(0, wide)));
    });
  });
  return {of_q, of_r};
}

}  // namespace plait
