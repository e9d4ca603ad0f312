// polar by the dynamically weighted Halley iteration: Nakatsukasa, Bai and Gygi, "Optimizing
// Halley's iteration for computing the matrix polar decomposition" (2010). Each step is one of QR
// factors, which needs no other form where the weights are small.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include <limits>

#include "primitives/linalg/emit_reflections.h"
#include "primitives/linalg/emit_wide.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

class Halley {
 public:
  Halley(const loops::Tensor& x, const Params& params)
      : given_(x),
        m_(num_rows(x.aval)),
        n_(num_columns(x.aval)),
        max_steps_(params.integer("max_iterations")),
        eps_(params.get<double>("eps")),
        shape_(batch_of(x.aval)),
        wide_(wide_dtype_of(x.aval.dtype)),
        real_(real_dtype_of(wide_)),
        factors_(make_stack(shape_, {m_, n_}, wide_)),
        before_(make_stack(shape_, {m_, n_}, wide_)),
        stacked_(make_stack(shape_, {n_, m_ + n_}, wide_)),
        columns_(make_stack(shape_, {n_, m_ + n_}, wide_)),
        taus_(make_stack(shape_, {n_}, wide_)),
        grams_(make_stack(shape_, {n_, n_}, wide_)) {
    if (eps_ <= 0)
      eps_ = real_dtype_of(x.aval.dtype) == DType::float32
                 ? double(std::numeric_limits<float>::epsilon())
                 : std::numeric_limits<double>::epsilon();
  }

  loops::Tensors emit() const {
    const loops::Tensor of_x = make_stack(shape_, {m_, n_}, given_.aval.dtype),
                        of_steps = make(shape_, DType::int32),
                        of_converged = make(shape_, DType::bool_);
    for_all(shape_, [&](const Indices& batch) {
      const MatrixIn x{factors_, batch}, gram{grams_, batch}, to{of_x, batch};
      const Numbers last = iterate(batch);
      // A step of Newton and Schulz removes what rounding has left.
      for_elements(n_, n_, [&](const Index& k, const Index& j) {
        gram.put(k, j, sum_of_products(wide_, m_, [&](const Index& i) {
                   return std::array{conj(x(i, k)), x(i, j)};
                 }));
      });
      for_elements(m_, n_, [&](const Index& i, const Index& j) {
        const Number product = sum_of_products(
            wide_, n_, [&](const Index& k) { return std::array{x(i, k), gram(k, j)}; });
        const Number polished = x(i, j) * constant(1.5) - product * constant(0.5);
        to.put(i, j, select(last[3], polished, literal(NAN, wide_)));
      });
      put(of_steps, batch, last[1]);
      put(of_converged, batch, last[2]);
    });
    return {of_x, of_steps, of_converged};
  }

 private:
  Number constant(double value) const { return literal(value, real_); }

  Number sum_of(const std::function<Number(const Index&, const Index&)>& term) const {
    const Sizes64 sizes{m_, n_};
    return sum(real_, m_ * n_, [&](const Index& place) {
      const Indices at = digits_of(place, sizes);
      return term(at[0], at[1]);
    });
  }

  // The bound of singular values from below, steps, whether these sufficed, and whether there is a
  // factor.
  Numbers iterate(const Indices& batch) const {
    const MatrixIn given{given_, batch}, x{factors_, batch};
    const auto element = [&](const Index& i, const Index& j) { return cast(given(i, j), wide_); };
    const Extent extent = extent_of(m_, n_, wide_, element);
    const auto sum_of_sizes = [&](std::int64_t count, const auto& each) {
      return sum(real_, count, [&](const Index& k) { return abs(each(k)); });
    };
    const Number of_columns = combined(max_p, constant(0), n_, [&](const Index& j) {
      return sum_of_sizes(m_, [&](const Index& i) { return element(i, j); });
    });
    const Number of_rows = combined(max_p, constant(0), m_, [&](const Index& i) {
      return sum_of_sizes(n_, [&](const Index& j) { return element(i, j); });
    });
    const Number size = sqrt(of_columns) * sqrt(of_rows);
    const Number is_zero = size == constant(0), may_run = extent.is_finite & !is_zero;
    for_elements(m_, n_, [&](const Index& i, const Index& j) {
      const Number one = select(number_of(i) == number_of(j), literal(1, wide_), literal(0, wide_));
      x.put(i, j, select(is_zero, one, element(i, j) / select(is_zero, constant(1), size)));
    });
    const Numbers last = repeated_while(
        {constant(eps_), integer(0), is_zero},
        [&](const Numbers& carried) {
          return may_run & !carried[2] & (carried[1] < integer(max_steps_));
        },
        [&](const Numbers& carried) { return step(batch, carried); });
    return {last[0], last[1], last[2], extent.is_finite};
  }

  Numbers step(const Indices& batch, const Numbers& carried) const {
    const MatrixIn x{factors_, batch}, before{before_, batch}, stacked{stacked_, batch, true},
        q{columns_, batch, true};
    const VectorIn taus{taus_, batch};
    const Number least = carried[0], one = constant(1);
    const Number l2 = least * least, cube = constant(4) * (one / l2 - one) / l2;
    const Number root = power(cube, constant(1.0 / 3)), square = sqrt(one + root);
    const Number a = square + sqrt(constant(8) - constant(4) * root +
                                   constant(8) * (constant(2) - l2) / (l2 * square)) /
                                  constant(2),
                 b = (a - one) * (a - one) / constant(4), c = a + b - one;
    const Number by = sqrt(c), of_before = b / c, of_product = (a - of_before) / by;
    for_elements(m_, n_, [&](const Index& i, const Index& j) { before.put(i, j, x(i, j)); });
    for_elements(n_, m_, [&](const Index& j, const Index& i) { stacked.put(i, j, x(i, j) * by); });
    for_elements(n_, n_, [&](const Index& j, const Index& i) {
      const Number is_diagonal = number_of(i) == number_of(j);
      stacked.put(below(i), j, select(is_diagonal, literal(1, wide_), literal(0, wide_)));
    });
    for_steps(n_, [&](const Index& k) {
      make_reflection(stacked, k, m_ + n_, taus);
      reflect(stacked, k, taus(k), stacked, m_ + n_, n_, number_of(k) + integer(1));
    });
    for_elements(n_, m_ + n_, [&](const Index& j, const Index& i) {
      q.put(i, j, select(number_of(i) == number_of(j), literal(1, wide_), literal(0, wide_)));
    });
    for_steps(n_, [&](const Index& k) {
      const Index last = written::sum_of({n_ - 1}, times(k, -1));
      reflect(stacked, last, conj(taus(last)), q, m_ + n_, n_, integer(0));
    });
    for_elements(m_, n_, [&](const Index& i, const Index& j) {
      const Number product = sum_of_products(
          wide_, n_, [&](const Index& k) { return std::array{q(i, k), conj(q(below(j), k))}; });
      x.put(i, j, before(i, j) * of_before + product * of_product);
    });
    const Number next = minimum(one, least * (a + b * l2) / (one + c * l2));
    const Number change = sqrt(sum_of(
        [&](const Index& i, const Index& j) { return squared_size(x(i, j) - before(i, j)); }));
    const Number size =
        sqrt(sum_of([&](const Index& i, const Index& j) { return squared_size(x(i, j)); }));
    const Number is_close = change <= constant(std::cbrt(4 * eps_)) * size;
    return {next, carried[1] + integer(1), (abs(next - one) < constant(10 * eps_)) & is_close};
  }

  Index below(const Index& i) const { return written::sum_of(i, {m_}); }

  const loops::Tensor given_;
  const std::int64_t m_, n_, max_steps_;
  double eps_;
  const Shape shape_;
  const DType wide_, real_;
  const loops::Tensor factors_, before_, stacked_, columns_, taus_, grams_;
};

}  // namespace

loops::Tensors emit_polar(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  return Halley(w.in_memory(inputs[0]), equation.params).emit();
}

}  // namespace plait
