// eig by Schur's form: eigenvectors of the triangular matrix, each by substitution, and in the
// order of their eigenvalues.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "primitives/linalg/emit_schur.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

enum class Side : std::uint8_t { left, right };

class GeneralEigen {
 public:
  GeneralEigen(const loops::Tensor& x, bool has_vectors)
      : is_real_(!is_complex(x.aval.dtype)),
        form_(x, true, has_vectors ? SchurForm::Vectors::all : SchurForm::Vectors::none),
        n_(form_.size()),
        shape_(form_.batch_shape()),
        places_(make_stack(shape_, {n_}, DType::int32)) {
    if (!has_vectors) return;
    substituted_ = make_stack(shape_, {n_, n_}, wide);
    products_ = make_stack(shape_, {n_, n_}, wide);
  }

  // The eigenvalues, and the eigenvectors of each side.
  loops::Tensors emit(const loops::Tensor& values, const std::vector<Side>& sides) const {
    loops::Tensors results{values};
    Shape matrices = values.aval.shape;
    matrices.push_back(n_);
    for (std::size_t i = 0; i < sides.size(); ++i)
      results.push_back(make(matrices, values.aval.dtype));
    for_all(shape_, [&](const Indices& batch) {
      const Number found = form_.decompose(batch);
      order(batch, found, values);
      for (std::size_t i = 0; i < sides.size(); ++i)
        vectors(batch, found, sides[i], results[i + 1]);
    });
    return results;
  }

 private:
  static constexpr DType wide = DType::complex128, real_dtype = DType::float64;
  static Number constant(double value) { return literal(value, real_dtype); }
  static Number unknown() { return literal(NAN, wide); }

  // By real parts, then by imaginary ones.
  void order(const Indices& batch, Number found, const loops::Tensor& values) const {
    const MatrixIn t = form_.t(batch);
    const VectorIn places{places_, batch}, sorted{values, batch};
    for_all(n_, [&](const Index& j) {
      const Number mine = t(j, j);
      const Number place = combined(add_p, integer(0), n_, [&](const Index& i) {
        const Number other = t(i, i), x = real(other), y = real(mine), u = imag(other),
                     v = imag(mine), is_before = number_of(i) < number_of(j);
        return cast((x < y) | ((x == y) & ((u < v) | ((u == v) & is_before))), DType::int64);
      });
      const Number known = select(found, place, number_of(j));  // else every place is 0
      places.put(j, known);
      sorted.put(index_below(known, n_), select(found, mine, unknown()));
    });
  }

  void vectors(const Indices& batch, Number found, Side side, const loops::Tensor& result) const {
    const MatrixIn t = form_.t(batch), z = form_.z(batch), y{substituted_, batch, true},
                   v{products_, batch, true}, to{result, batch};
    const VectorIn places{places_, batch};
    const Sizes64 sizes{n_, n_};
    const Number largest = combined(max_p, constant(0), n_ * n_, [&](const Index& place) {
      const Indices at = digits_of(place, sizes);
      return abs(t(at[0], at[1]));
    });
    const Number least = maximum(constant(0x1p-52) * largest, constant(0x1p-1000));
    for_all(n_, [&](const Index& k) { substitute(t, y, k, side, least); });
    for_elements(n_, n_, [&](const Index& k, const Index& i) {
      v.put(i, k, sum_of_products(wide, n_, [&](const Index& l) {
              return std::array{z(i, l), y(l, k)};
            }));
    });
    for_all(n_, [&](const Index& k) {
      // Those of a pair of conjugate eigenvalues are conjugate, and those of real ones real.
      Number is_second = literal(0, DType::bool_), is_single = is_second;
      Index from = k;
      if (is_real_) {
        const Number pair = cast(form_.pairs(batch)(k), DType::int64);
        is_second = pair == integer(2), is_single = pair == integer(0);
        const Number before = maximum(number_of(k) - integer(1), integer(0));
        from = index_below(select(is_second, before, number_of(k)), n_);
      }
      const Number phase = phase_of(n_, [&](const Index& i) { return v(i, from); });
      const auto element = [&](const Index& i) {
        const Number turned = v(i, from) * phase;
        if (!is_real_) return turned;
        return complex_of(real(turned), select(is_single, constant(0),
                                               select(is_second, -imag(turned), imag(turned))));
      };
      const Number length =
          sqrt(sum(real_dtype, n_, [&](const Index& i) { return squared_size(element(i)); }));
      const Index place = index_below(cast(places(k), DType::int64), n_);
      for_all(n_, [&](const Index& i) {
        to.put(i, place, select(found, element(i) / length, unknown()));
      });
    });
  }

  // See eig.cpp: from element k, which is 1, up, or for left ones down. It is scaled to a largest
  // element of 1.
  void substitute(const MatrixIn& t, const MatrixIn& y, const Index& k, Side side,
                  Number least) const {
    const Number row = number_of(k), none = literal(0, wide);
    const bool is_right = side == Side::right;
    for_all(n_, [&](const Index& i) {
      y.put(i, k, select(number_of(i) == row, literal(1, wide), none));
    });
    for_steps(n_ - 1, [&](const Index& step) {
      const Number at =
          is_right ? row - integer(1) - number_of(step) : row + integer(1) + number_of(step);
      only_where(is_right ? at >= integer(0) : at < integer(n_), [&] {
        const Index i = index_below(minimum(maximum(at, integer(0)), integer(n_ - 1)), n_);
        const Number known = sum_of_products(wide, n_, [&](const Index& l) {
          const Number place = number_of(l);
          const Number is_in =
              is_right ? (place > at) & (place <= row) : (place >= row) & (place < at);
          return std::array{select(is_in, is_right ? t(i, l) : conj(t(l, i)), none),
                            select(is_in, y(l, k), none)};
        });
        const Number gap = t(i, i) - t(k, k), divisor = is_right ? gap : conj(gap);
        const Number is_small = abs(divisor) < least;
        const Number found = -known / select(is_small, complex_of(least, constant(0)), divisor);
        y.put(i, k, found);
        const Number size = abs(found);
        only_where(size > constant(1e150),
                   [&] { for_all(n_, [&](const Index& l) { y.put(l, k, y(l, k) / size); }); });
      });
    });
    const Number most =
        combined(max_p, constant(0), n_, [&](const Index& i) { return abs(y(i, k)); });
    for_all(n_, [&](const Index& i) { y.put(i, k, y(i, k) / most); });
  }

  const bool is_real_;
  const SchurForm form_;
  const std::int64_t n_;
  const Shape shape_;
  const loops::Tensor places_;
  loops::Tensor substituted_, products_;
};

}  // namespace

loops::Tensors emit_eig(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  std::vector<Side> sides;
  if (equation.params.flag("left_vectors")) sides.push_back(Side::left);
  if (equation.params.flag("right_vectors")) sides.push_back(Side::right);
  const DType dtype =
      real_dtype_of(x.aval.dtype) == DType::float32 ? DType::complex64 : DType::complex128;
  const loops::Tensor values = make_stack(batch_of(x.aval), {num_rows(x.aval)}, dtype);
  return GeneralEigen(x, !sides.empty()).emit(values, sides);
}

}  // namespace plait
