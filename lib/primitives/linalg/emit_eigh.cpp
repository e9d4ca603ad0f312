// eigh by Jacobi's method: rotations of pairs of rows and columns, of which those of a round are
// independent of each other, until nothing is left off the diagonal.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "primitives/linalg/emit_wide.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

class Eigen {
 public:
  Eigen(const loops::Tensor& x, bool is_lower, bool has_vectors)
      : x_(x),
        is_lower_(is_lower),
        has_vectors_(has_vectors),
        n_(num_rows(x.aval)),
        pairs_(n_),
        shape_(batch_of(x.aval)),
        wide_(wide_dtype_of(x.aval.dtype)),
        real_(real_dtype_of(wide_)),
        matrices_(make_stack(shape_, {n_, n_}, wide_)),
        vectors_(make_stack(shape_, {n_, n_}, wide_)),
        cosines_(make_stack(shape_, {pairs_.per_round()}, real_)),
        sines_(make_stack(shape_, {pairs_.per_round()}, wide_)),
        values_(make_stack(shape_, {n_}, real_)) {}

  loops::Tensors emit() const {
    const DType dtype = x_.aval.dtype;
    const loops::Tensor of_vectors = make(x_.aval.shape, dtype),
                        of_values = make_stack(shape_, {n_}, real_dtype_of(dtype));
    for_all(shape_, [&](const Indices& batch) {
      const Extent extent = extent_of(
          n_, n_, wide_, [&](const Index& i, const Index& j) { return given(batch, i, j); });
      begin(batch, extent.scale);
      if (n_ > 1) iterate(batch);
      finish(batch, extent, of_vectors, of_values);
    });
    if (!has_vectors_) return {of_values};
    return {of_vectors, of_values};
  }

 private:
  // The element of the Hermitian matrix, of which one triangle is read.
  Number given(const Indices& batch, const Index& i, const Index& j) const {
    const MatrixIn x{x_, batch};
    const Number row = number_of(i), column = number_of(j);
    const Number is_read = is_lower_ ? row > column : row < column;
    const Index first = index_of(select(is_read, row, column)),
                second = index_of(select(is_read, column, row));
    const Number element = cast(x(first, second), wide_);
    if (!is_complex(wide_)) return element;
    const Number zero = literal(0, real_);
    const Number im = select(row == column, zero, select(is_read, imag(element), -imag(element)));
    return complex_of(real(element), im);
  }

  void begin(const Indices& batch, Number scale) const {
    const MatrixIn a{matrices_, batch}, v{vectors_, batch, true};
    for_elements(n_, n_,
                 [&](const Index& i, const Index& j) { a.put(i, j, given(batch, i, j) / scale); });
    if (!has_vectors_) return;
    for_elements(n_, n_, [&](const Index& j, const Index& i) {
      v.put(i, j, select(number_of(i) == number_of(j), literal(1, wide_), literal(0, wide_)));
    });
  }

  void iterate(const Indices& batch) const {
    const MatrixIn a{matrices_, batch};
    const Sizes64 sizes{n_, n_};
    const auto squares = [&](bool is_off) {
      return sum(real_, n_ * n_, [&](const Index& place) {
        const Indices at = digits_of(place, sizes);
        const Number square = squared_size(a(at[0], at[1]));
        if (!is_off) return square;
        return select(number_of(at[0]) == number_of(at[1]), literal(0, real_), square);
      });
    };
    const Number all = squares(false);
    repeat_sweeps([&] {
      const Number off = squares(true);
      for_steps(pairs_.num_rounds(), [&](const Index& round) { rotate(batch, round); });
      return sqrt(off / all);
    });
  }

  void rotate(const Indices& batch, const Index& round) const {
    const MatrixIn a{matrices_, batch}, v{vectors_, batch, true};
    const VectorIn cosines{cosines_, batch}, sines{sines_, batch};
    for_all(pairs_.per_round(), [&](const Index& pair) {
      pairs_.run(round, pair, [&](const Index& p, const Index& q) {
        const Number product = a(p, q), is_none = abs(product) == literal(0, real_);
        const Rotation rotation = rotation_of(real(a(p, p)), real(a(q, q)), product);
        cosines.put(pair, select(is_none, literal(1, real_), rotation.c));
        sines.put(pair, select(is_none, literal(0, wide_), rotation.s));
      });
    });
    for_all(pairs_.per_round(), [&](const Index& pair) {  // J^H A
      pairs_.run(round, pair, [&](const Index& p, const Index& q) {
        const Number c = cosines(pair), s = sines(pair);
        for_all(n_, [&](const Index& j) {
          const Number x = a(p, j), y = a(q, j);
          a.put(p, j, x * c - s * y);
          a.put(q, j, conj(s) * x + y * c);
        });
      });
    });
    for_all(pairs_.per_round(), [&](const Index& pair) {  // A J, and V J
      pairs_.run(round, pair, [&](const Index& p, const Index& q) {
        const Number c = cosines(pair), s = sines(pair);
        const auto turn = [&](const MatrixIn& columns) {
          for_all(n_, [&](const Index& i) {
            const Number x = columns(i, p), y = columns(i, q);
            columns.put(i, p, x * c - conj(s) * y);
            columns.put(i, q, s * x + y * c);
          });
        };
        turn(a);
        if (has_vectors_) turn(v);
      });
    });
  }

  // The least eigenvalue first.
  void finish(const Indices& batch, const Extent& extent, const loops::Tensor& of_vectors,
              const loops::Tensor& of_values) const {
    const MatrixIn a{matrices_, batch}, v{vectors_, batch, true}, to{of_vectors, batch};
    const VectorIn values{values_, batch}, sorted{of_values, batch};
    const auto if_finite = [&](Number number) {
      return select(extent.is_finite, number, literal(NAN, number.dtype));
    };
    for_all(n_, [&](const Index& j) { values.put(j, real(a(j, j)) * extent.scale); });
    for_all(n_, [&](const Index& j) {
      const Number mine = values(j);
      const Number place = combined(add_p, integer(0), n_, [&](const Index& i) {
        const Number other = values(i), is_before = number_of(i) < number_of(j);
        return cast((other < mine) | ((other == mine) & is_before), DType::int64);
      });
      const Number is_known = extent.is_finite;  // else every place is 0
      const Index to_place = index_below(select(is_known, place, number_of(j)), n_);
      sorted.put(to_place, if_finite(mine));
      if (!has_vectors_) return;
      const Number phase = phase_of(n_, [&](const Index& i) { return v(i, j); });
      for_all(n_, [&](const Index& i) { to.put(i, to_place, if_finite(v(i, j) * phase)); });
    });
  }

  const loops::Tensor x_;
  const bool is_lower_, has_vectors_;
  const std::int64_t n_;
  const Pairs pairs_;
  const Shape shape_;
  const DType wide_, real_;
  const loops::Tensor matrices_, vectors_, cosines_, sines_, values_;
};

}  // namespace

loops::Tensors emit_eigh(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  return Eigen(w.in_memory(inputs[0]), equation.params.flag("lower"),
               equation.params.flag("compute_vectors"))
      .emit();
}

}  // namespace plait
